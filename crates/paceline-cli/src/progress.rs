//! A progress bar on stderr for work that takes more than a second.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use paceline_netsim::backend::Backend;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Time before the bar appears.
const BAR_AFTER: Duration = Duration::from_secs(1);
/// Time between two log lines when stderr is not a terminal.
const LOG_INTERVAL: Duration = Duration::from_secs(60);

/// Counts finished units of work: seconds of runs, or jobs of a sweep.
pub struct Progress {
    bar: ProgressBar,
    started: Instant,
    is_terminal: bool,
    jobs: Option<JobLog>,
}

/// Log lines about jobs, for stderr that is not a terminal.
struct JobLog {
    /// Jobs that an earlier process finished.
    before: u64,
    printed: AtomicU64,
}

impl Progress {
    fn new(total: u64, template: &str, jobs: Option<JobLog>) -> Self {
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden());
        bar.set_style(ProgressStyle::with_template(template).expect("the template is well-formed"));
        Self { bar, started: Instant::now(), is_terminal: std::io::stderr().is_terminal(), jobs }
    }

    /// Counts `total` seconds of runs.
    pub fn of_seconds(total: f64, world: &dyn Backend) -> Self {
        let unit = if world.real_time() { "seconds" } else { "simulated seconds" };
        Self::new(total as u64, &format!("{{bar:40}} {{pos}}/{{len}} {unit}, {{eta}} left"), None)
    }

    /// Counts `count` jobs of a sweep of which `before` more are already done.
    pub fn of_jobs(count: u64, before: u64) -> Self {
        if before > 0 {
            eprintln!("{before} jobs are already stored, {count} remain");
        }
        let template = "{bar:40} {human_pos} of {human_len} jobs, {per_sec}, {eta} left";
        Self::new(count, template, Some(JobLog { before, printed: AtomicU64::new(0) }))
    }

    /// Adds seconds to the total.
    pub fn expect(&self, more: f64) {
        self.bar.inc_length(more as u64);
    }

    /// Counts one finished unit.
    pub fn tick(&self) {
        self.bar.inc(1);
        let elapsed = self.started.elapsed();
        if self.is_terminal {
            if self.bar.is_hidden() && elapsed > BAR_AFTER {
                self.bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(8));
            }
        } else if let Some(jobs) = &self.jobs {
            let lines = elapsed.as_secs() / LOG_INTERVAL.as_secs();
            if lines > jobs.printed.fetch_max(lines, Ordering::Relaxed) {
                eprintln!("{}", self.log_line(jobs.before, elapsed));
            }
        }
    }

    /// Prints a line above the bar.
    pub fn println(&self, text: &str) {
        self.bar.suspend(|| eprintln!("{text}"));
    }

    fn log_line(&self, before: u64, elapsed: Duration) -> String {
        let (done, count) = (self.bar.position(), self.bar.length().unwrap_or(0));
        let rate = done as f64 / elapsed.as_secs_f64();
        let left = Duration::from_secs((count.saturating_sub(done) as f64 / rate) as u64);
        let (done, count) = (done + before, count + before);
        format!("{done} of {count} jobs, {rate:.1} a second, {} left", indicatif::HumanDuration(left))
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
