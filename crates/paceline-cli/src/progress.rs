// SPDX-License-Identifier: MIT OR Apache-2.0
//! A progress bar on stderr for work that takes more than a second.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use paceline_netsim::world::World;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Time before the bar appears.
const BAR_AFTER: Duration = Duration::from_secs(1);
/// Time between two log lines when stderr is not a terminal.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// Counts finished units of work: seconds of runs, or jobs of a sweep.
pub struct Progress {
    bar: ProgressBar,
    started: Instant,
    is_terminal: bool,
    /// The unit, for log lines.
    unit: &'static str,
    /// Units that an earlier process finished.
    before: u64,
    /// Number of log lines printed.
    printed: AtomicU64,
}

impl Progress {
    fn new(total: u64, template: &str, unit: &'static str, before: u64) -> Self {
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden());
        bar.set_style(ProgressStyle::with_template(template).expect("the template is well-formed"));
        let is_terminal = std::io::stderr().is_terminal();
        Self { bar, started: Instant::now(), is_terminal, unit, before, printed: AtomicU64::new(0) }
    }

    /// Counts `total` seconds of runs.
    pub fn of_seconds(total: f64, world: &dyn World) -> Self {
        let unit = if world.real_time() { "seconds" } else { "simulated seconds" };
        Self::new(total as u64, &format!("{{bar:40}} {{pos}}/{{len}} {unit}, {{eta}} left"), unit, 0)
    }

    /// Counts `count` jobs of a sweep of which `before` more are already done.
    pub fn of_jobs(count: u64, before: u64) -> Self {
        if before > 0 {
            eprintln!("{before} jobs are already stored, {count} remain");
        }
        let template = "{bar:40} {human_pos} of {human_len} jobs, {per_sec}, {eta} left";
        Self::new(count, template, "jobs", before)
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
        } else {
            let lines = elapsed.as_secs() / LOG_INTERVAL.as_secs();
            if lines > self.printed.fetch_max(lines, Ordering::Relaxed) {
                eprintln!("{}", self.log_line(elapsed));
            }
        }
    }

    /// Prints a line above the bar.
    pub fn println(&self, text: &str) {
        self.bar.suspend(|| eprintln!("{text}"));
    }

    fn log_line(&self, elapsed: Duration) -> String {
        let (done, count, unit) = (self.bar.position(), self.bar.length().unwrap_or(0), self.unit);
        let rate = done as f64 / elapsed.as_secs_f64();
        let left = Duration::from_secs((count.saturating_sub(done) as f64 / rate) as u64);
        let (done, count) = (done + self.before, count + self.before);
        format!("{done} of {count} {unit}, {rate:.1} a second, {} left", indicatif::HumanDuration(left))
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// A line on stderr that replaces itself; nothing if stderr is not a terminal.
#[cfg(all(feature = "testbed", target_os = "linux"))]
#[derive(Clone)]
pub struct StatusLine(ProgressBar);

#[cfg(all(feature = "testbed", target_os = "linux"))]
impl Default for StatusLine {
    fn default() -> Self {
        // Hides itself where stderr is not a terminal.
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        bar.set_style(ProgressStyle::with_template("{msg}").expect("the template is well-formed"));
        Self(bar)
    }
}

#[cfg(all(feature = "testbed", target_os = "linux"))]
impl StatusLine {
    /// Shows a text.
    pub fn show(&self, text: &str) {
        self.0.set_message(text.to_owned());
    }

    /// Removes the line.
    pub fn clear(&self) {
        self.0.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_line_states_what_is_done_and_the_time_left() {
        let progress = Progress::new(90, "{pos}", "jobs", 10);
        progress.bar.inc(20);
        assert_eq!(progress.log_line(Duration::from_secs(10)), "30 of 100 jobs, 2.0 a second, 35 seconds left");
        assert_eq!(progress.log_line(Duration::from_secs(600)), "30 of 100 jobs, 0.0 a second, 35 minutes left");
    }
}
