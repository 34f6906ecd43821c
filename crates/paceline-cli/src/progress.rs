//! A progress bar on stderr, for whatever takes more than a second.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use paceline_lab::world::World;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Counts the seconds of a world.
pub struct Progress {
    bar: ProgressBar,
    began: Instant,
}

/// Nothing is drawn before this.
const QUIET: Duration = Duration::from_secs(1);

impl Progress {
    /// `total`: seconds of the world in all.
    pub fn new(total: u64, world: &dyn World) -> Self {
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden());
        let seconds = if world.real_time() { "seconds" } else { "simulated seconds" };
        let style = ProgressStyle::with_template(&format!("{{bar:40}} {{pos}}/{{len}} {seconds}, {{eta}} left"));
        bar.set_style(style.expect("the template is well-formed"));
        Self { bar, began: Instant::now() }
    }

    /// So many more seconds are to come.
    pub fn expect(&self, more: u64) {
        self.bar.inc_length(more);
    }

    /// A second is over.
    pub fn tick(&self) {
        if self.bar.is_hidden() && self.began.elapsed() > QUIET {
            self.bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(8));
        }
        self.bar.inc(1);
    }
}

impl Progress {
    /// Says something, above the bar.
    pub fn say(&self, text: &str) {
        self.bar.suspend(|| eprintln!("{text}"));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Counts jobs, says how many are done in a second and how long the rest will take. A file that stderr goes to gets a
/// line each minute.
pub struct Jobs {
    bar: ProgressBar,
    before: u64,
    began: Instant,
    said: AtomicU64,
}

/// Between two lines of a file.
const LINE: Duration = Duration::from_secs(60);

impl Jobs {
    /// So many are to be done, besides those that were done `before`.
    pub fn new(count: u64, before: u64) -> Self {
        let bar = ProgressBar::with_draw_target(Some(count), ProgressDrawTarget::hidden());
        let style = ProgressStyle::with_template("{bar:40} {human_pos} of {human_len} jobs, {per_sec}, {eta} left");
        bar.set_style(style.expect("the template is well-formed"));
        if before > 0 {
            eprintln!("{before} jobs were done before, {count} are to do");
        }
        Self { bar, before, began: Instant::now(), said: AtomicU64::new(0) }
    }

    /// One is over.
    pub fn done(&self) {
        self.bar.inc(1);
        let gone = self.began.elapsed();
        if std::io::stderr().is_terminal() {
            if self.bar.is_hidden() && gone > QUIET {
                self.bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(8));
            }
            return;
        }
        let lines = gone.as_secs() / LINE.as_secs();
        if lines > self.said.fetch_max(lines, Ordering::Relaxed) {
            eprintln!("{}", self.line(gone));
        }
    }

    fn line(&self, gone: Duration) -> String {
        let (done, count) = (self.bar.position(), self.bar.length().unwrap_or(0));
        let rate = done as f64 / gone.as_secs_f64();
        let left = Duration::from_secs((count.saturating_sub(done) as f64 / rate) as u64);
        let (done, count) = (done + self.before, count + self.before);
        format!("{done} of {count} jobs, {rate:.1} a second, {} left", indicatif::HumanDuration(left))
    }
}

impl Drop for Jobs {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
