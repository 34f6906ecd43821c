//! A progress bar on stderr, for whatever takes more than a second.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::{Duration, Instant};

/// Counts simulated seconds.
pub struct Progress {
    bar: ProgressBar,
    began: Instant,
}

/// Nothing is drawn before this.
const QUIET: Duration = Duration::from_secs(1);

impl Progress {
    /// `total`: simulated seconds in all.
    pub fn new(total: u64) -> Self {
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden());
        let style = ProgressStyle::with_template("{bar:40} {pos}/{len} simulated seconds, {eta} left");
        bar.set_style(style.expect("the template is well-formed"));
        Self { bar, began: Instant::now() }
    }

    /// So many more simulated seconds are to come.
    pub fn expect(&self, more: u64) {
        self.bar.inc_length(more);
    }

    /// A simulated second is over.
    pub fn tick(&self) {
        if self.bar.is_hidden() && self.began.elapsed() > QUIET {
            self.bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(8));
        }
        self.bar.inc(1);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
