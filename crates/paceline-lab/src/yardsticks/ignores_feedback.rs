// SPDX-License-Identifier: MIT OR Apache-2.0
//! `faulty-ignores-feedback`: the rate grows by 8 % each second up to the maximum, whatever feedback arrives, and whether any
//! arrives. The guard against missing feedback is absent.

use libm::pow;
use paceline::{Bounds, Config, Controller, Decision, Entry, Event, Parameters, SendHalf, Setup, Signals};
use paceline_units::{Rate, Time, TimeDelta};

pub(super) const NAME: &str = "faulty-ignores-feedback";

/// Growth per second: that of GoogCC far from the last over-use (`MultiplicativeRateIncrease`, libwebrtc's `aimd_rate_control.cc`).
const GROWTH_PER_SECOND: f64 = 1.08;
const INTERVAL: TimeDelta = TimeDelta::from_millis(100);
/// Pacing rate over target: that of libwebrtc before the first feedback (`kDefaultPaceMultiplier`).
const PACING_FACTOR: f64 = 2.5;

pub(super) fn entry() -> Entry {
    let summary = "one fault: the rate grows by 8 % per second up to the maximum, without feedback";
    Entry::new(NAME, summary, "a yardstick, from no paper; growth of googcc", IgnoresFeedback)
}

#[derive(Clone, Debug)]
struct IgnoresFeedback;

impl Parameters for IgnoresFeedback {}

impl Config for IgnoresFeedback {
    const CONTROLS: bool = false;

    fn halves(&self, setup: &Setup) -> Controller {
        Controller::from_sender(OpenLoop::new(setup))
    }
}

#[derive(Clone, Debug)]
struct OpenLoop {
    target: Rate,
    bounds: Bounds,
    /// The next growth; `None` before the first event.
    due: Option<Time>,
}

impl OpenLoop {
    fn new(setup: &Setup) -> Self {
        Self { target: setup.start, bounds: setup.bounds(), due: None }
    }
}

impl SendHalf for OpenLoop {
    fn handle_event(&mut self, now: Time, event: &Event<'_>, _: &mut Signals) {
        match *event {
            Event::Bounds(bounds) => (self.bounds, self.target) = (*bounds, bounds.clamp(self.target)),
            Event::RouteChange(setup) => *self = Self::new(setup),
            Event::Timeout => self.handle_timeout(now),
            _ => {}
        }
    }

    fn decides_on_sent(&self) -> bool {
        false
    }

    fn poll_timeout(&self) -> Option<Time> {
        Some(self.due.unwrap_or(Time::ZERO))
    }

    fn decision(&self) -> Decision {
        Decision::new(self.target).with_pacing(self.target.scale(PACING_FACTOR))
    }
}

impl OpenLoop {
    fn handle_timeout(&mut self, now: Time) {
        if self.due.is_some_and(|due| due <= now) {
            let factor = pow(GROWTH_PER_SECOND, INTERVAL.as_secs_f64());
            self.target = self.bounds.clamp(self.target.scale(factor));
        }
        self.due = Some(now + INTERVAL);
    }
}

#[cfg(test)]
mod tests {
    use super::super::altered::tests::{SETUP, feed};
    use super::*;

    /// By hand: 1000 kbit/s · 1.08^10 = 2159 kbit/s, and ln 4 / ln 1.08 = 18.01 s to 4000 kbit/s. The first timeout starts the clock, at
    /// 49 ms, and each of the others is at the next message, so that 100 ms are 100 ms.
    #[test]
    fn rate_grows_to_the_maximum_although_all_packets_are_lost() {
        let mut half = IgnoresFeedback.halves(&SETUP).send.unwrap();
        let targets = feed(&mut *half, (0, 30_000), |_| None);
        let after = |seconds: usize| targets[seconds * 20];
        assert_eq!(after(0), 1000);
        assert!(after(10).abs_diff(2159) <= 2, "{}", after(10));
        assert!((3900..4000).contains(&after(18)), "{}", after(18));
        assert_eq!(after(19), 4000, "the maximum");
    }
}
