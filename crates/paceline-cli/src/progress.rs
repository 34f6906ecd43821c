//! A progress bar on stderr, for whatever takes more than a second.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use paceline_lab::world::World;
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
