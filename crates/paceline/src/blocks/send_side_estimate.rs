// SPDX-License-Identifier: MIT OR Apache-2.0
//! The loss-based controller of libwebrtc from 2013 to 2018 (`SendSideBandwidthEstimation`). It grows from the lowest
//! rate of the last second: a rate that was constant increases immediately, and then once per second.
//!
//! ```text
//!         1.08 min(A over 1 s) + 1 kbit/s    f <= 0.02
//! A(k) =  A (1 - 0.5 f)                      f > 0.1, once per report and once in 300 ms + RTT
//!         A                                  otherwise;   and always A <= REMB
//! ```
//!
//! It runs every 25 ms on the last report, while that is less than six seconds old.

use crate::{Bounds, params};
use alloc::collections::VecDeque;
use paceline_units::{Fraction, Rate, Time, TimeDelta};

params! {
    /// The parameters of the controller.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct SendSideConfig {
        /// libwebrtc's values.
        const LIBWEBRTC;

        /// Fraction lost up to which the rate grows.
        low as "loss_low": f64 = 0.02, in 0.0..=1.0, from "kDefaultLowLossThreshold";
        /// Fraction lost above which the rate falls.
        high as "loss_high": f64 = 0.1, in 0.0..=1.0, from "kDefaultHighLossThreshold";
        /// Growth factor over the lowest rate of the last second.
        increase as "loss_increase": f64 = 1.08, in 1.0..=10.0, from "UpdateEstimate";
        /// Decrease of the rate per fraction lost.
        decrease as "loss_decrease": f64 = 0.5, in 0.0..=1.0, from "UpdateEstimate";
    }
}

/// The interval of updates.
const PROCESS: TimeDelta = TimeDelta::from_millis(25);
/// The window of the lowest rate.
const INCREASE_INTERVAL: TimeDelta = TimeDelta::from_millis(1000);
/// Added to each growth step.
const LEAST_GROWTH: Rate = Rate::from_kbps(1);
/// The shortest time between two decreases, to which the round-trip time is added.
const DECREASE_INTERVAL: TimeDelta = TimeDelta::from_millis(300);
/// Until this time after the first report a REMB also increases the rate, if nothing was lost.
const START_PHASE: TimeDelta = TimeDelta::from_millis(2000);
/// Older reports are ignored: 1.2 times the longest report interval, 5 s.
const REPORT_MAX_AGE: TimeDelta = TimeDelta::from_millis(6000);

/// The highest rate until there is a lower limit, also if a REMB is higher.
const MAX: Rate = Rate::from_kbps(1_000_000);

/// The controller.
#[derive(Clone, Debug)]
pub struct SendSideEstimate {
    config: SendSideConfig,
    min: Rate,
    max: Rate,
    rate: Rate,
    /// The receiver's estimate.
    remb: Option<Rate>,
    loss: f64,
    rtt: TimeDelta,
    /// The times at which the first and the last report arrived.
    reports: Option<(Time, Time)>,
    decreased: Option<Time>,
    /// Whether the last report has already led to a decrease.
    applied: bool,
    next: Time,
    /// Candidates for the lowest rate of the last second, in increasing order: rates that no later one is below.
    least: VecDeque<(Time, Rate)>,
}

impl SendSideEstimate {
    /// Creates a controller at the rate `start`. The rate never falls below `min`.
    pub fn new(config: SendSideConfig, start: Rate, min: Rate) -> Self {
        Self {
            config,
            min,
            max: MAX,
            rate: start,
            remb: None,
            loss: 0.0,
            rtt: TimeDelta::ZERO,
            reports: None,
            decreased: None,
            applied: false,
            next: Time::ZERO + PROCESS,
            // At most one for each update of the last second, if only a slowly rising cap limits the rate.
            least: VecDeque::with_capacity(64),
        }
    }

    /// Returns `A`.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// Sets the limits of the rate, which apply at once.
    pub fn set_bounds(&mut self, bounds: &Bounds) {
        (self.min, self.max) = (bounds.min, bounds.max.min(MAX));
        self.rate = self.capped(self.rate);
    }

    /// Sets the round-trip time. A time of zero is ignored.
    pub fn set_rtt(&mut self, rtt: TimeDelta) {
        if rtt.is_positive() {
            self.rtt = rtt;
        }
    }

    /// Handles a receiver report that covers at least 20 packets.
    pub fn handle_report(&mut self, now: Time, fraction_lost: Fraction) {
        let first = self.reports.map_or(now, |(first, _)| first);
        self.reports = Some((first, now));
        (self.loss, self.applied) = (fraction_lost.get(), false);
        self.update(now);
    }

    /// Sets the rate to the result of a probe. It replaces the cap and what is known about the last second.
    pub fn handle_probe(&mut self, rate: Rate) {
        (self.remb, self.rate) = (None, rate.min(self.max).max(self.min));
        self.least.clear();
    }

    /// Replaces the rate by the flow's share of the rate of several flows (RFC 8699, appendix A). The rates of the last second, from
    /// which it grows, and its cap change in the same ratio, which is returned.
    pub fn set_coupled(&mut self, share: Rate) -> f64 {
        let ratio = share.as_bps_f64() / self.rate.as_bps_f64().max(1.0);
        self.least.iter_mut().for_each(|(_, rate)| *rate = rate.scale(ratio));
        self.remb = self.remb.map(|cap| cap.scale(ratio).max(share));
        self.rate = self.capped(share);
        ratio
    }

    /// Handles a REMB, or the sender's own delay-based rate: it caps the rate from now on.
    pub fn handle_remb(&mut self, rate: Rate) {
        self.remb = Some(rate);
        self.rate = self.capped(self.rate);
    }

    /// Updates the rate at the time of [`next_update`](Self::next_update).
    pub fn handle_timeout(&mut self, now: Time) {
        self.next = now + PROCESS;
        self.update(now);
    }

    /// Returns the time at which the next update is due.
    pub fn next_update(&self) -> Time {
        self.next
    }

    fn update(&mut self, now: Time) {
        if self.loss == 0.0 && self.reports.is_none_or(|(first, _)| now - first < START_PHASE) {
            let raised = self.remb.map_or(self.rate, |remb| remb.max(self.rate));
            if raised != self.rate {
                self.least.clear();
                self.least.push_back((now, self.rate));
                self.rate = self.capped(raised);
                return;
            }
        }
        let least = self.least(now);
        let Some((_, last)) = self.reports else { return };
        if now - last >= REPORT_MAX_AGE {
            return;
        }
        let c = &self.config;
        if self.loss <= c.low {
            self.rate = self.capped(increased(least, c.increase));
        } else if self.loss > c.high && !self.applied {
            let interval = DECREASE_INTERVAL + self.rtt;
            if self.decreased.is_none_or(|decreased| now - decreased >= interval) {
                (self.decreased, self.applied) = (Some(now), true);
                self.rate = self.capped(self.rate.scale(1.0 - c.decrease * self.loss));
            }
        }
    }

    /// Returns the lowest rate of the last second, including the current one.
    fn least(&mut self, now: Time) -> Rate {
        const MILLISECOND: TimeDelta = TimeDelta::from_millis(1);
        while self.least.front().is_some_and(|(at, _)| now - *at + MILLISECOND > INCREASE_INTERVAL) {
            self.least.pop_front();
        }
        while self.least.back().is_some_and(|(_, rate)| self.rate <= *rate) {
            self.least.pop_back();
        }
        self.least.push_back((now, self.rate));
        self.least.front().map_or(self.rate, |(_, rate)| *rate)
    }

    fn capped(&self, rate: Rate) -> Rate {
        rate.min(self.remb.unwrap_or(MAX).min(self.max)).max(self.min)
    }
}

fn increased(least: Rate, factor: f64) -> Rate {
    least.scale(factor) + LEAST_GROWTH
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(kbps: u64) -> SendSideEstimate {
        SendSideEstimate::new(SendSideConfig::LIBWEBRTC, Rate::from_kbps(kbps), Rate::from_kbps(30))
    }
    fn run(e: &mut SendSideEstimate, until_ms: i64) -> u64 {
        while e.next_update() <= Time::from_millis(until_ms) {
            e.handle_timeout(e.next_update());
        }
        e.rate().as_bps()
    }
    fn lost(q8: u8) -> Fraction {
        Fraction::from_q8(q8)
    }

    /// By hand: 1000 → 1081 at the report, and a second later 1.08 · 1081 + 1 = 1168.48. Growth ends six seconds after
    /// the report.
    #[test]
    fn grows_in_steps_of_a_second() {
        let mut e = estimate(1000);
        assert_eq!(run(&mut e, 3000), 1_000_000, "no report yet");
        e.handle_report(Time::from_millis(3000), lost(0));
        assert_eq!(e.rate().as_bps(), 1_081_000);
        assert_eq!(run(&mut e, 3950), 1_081_000);
        assert_eq!(run(&mut e, 4050), 1_168_480);
        let grown = run(&mut e, 9000);
        assert!((1_500_000..1_700_000).contains(&grown), "{grown}");
        assert_eq!(run(&mut e, 60_000), grown);
    }

    /// V1.5: 51 of 256 lost take 1000 kbit/s to 900.390625. A decrease needs a new report, and 300 ms plus a round-trip
    /// time since the last one.
    #[test]
    fn decreases_once_per_report_and_interval() {
        let estimate = |kbps| {
            let mut e = estimate(kbps);
            e.set_rtt(TimeDelta::from_millis(100));
            e
        };
        let mut e = estimate(1000);
        e.handle_report(Time::from_millis(1000), lost(51));
        assert_eq!(e.rate().as_bps(), 900_391);
        assert_eq!(run(&mut e, 2000), 900_391, "one decrease per report");
        e.handle_report(Time::from_millis(2000), lost(51));
        let second = e.rate().as_bps();
        assert_eq!(second, 810_704);
        e.handle_report(Time::from_millis(2399), lost(51));
        assert_eq!(e.rate().as_bps(), second, "399 ms after the last decrease");
        assert_eq!(run(&mut e, 2425), 729_950, "as soon as the interval has passed");
        for q8 in [6, 15, 25] {
            e.handle_report(Time::from_millis(4000), lost(q8));
            assert_eq!(e.rate().as_bps(), 729_950, "between 2 and 10 %");
        }
        e.handle_report(Time::from_millis(4000), lost(26));
        assert!(e.rate().as_bps() < 729_950);
        for (ms, rate) in [(1399, 900_391), (1400, 810_704)] {
            let mut e = estimate(1000);
            e.handle_report(Time::from_millis(1000), lost(51));
            e.handle_report(Time::from_millis(ms), lost(51));
            assert_eq!(e.rate().as_bps(), rate, "a report after {} ms", ms - 1000);
        }
    }

    #[test]
    fn remb_caps_the_rate_and_raises_it_in_the_first_two_seconds() {
        let mut e = estimate(1000);
        e.handle_remb(Rate::from_kbps(1500));
        assert_eq!(run(&mut e, 100), 1_500_000);
        e.handle_remb(Rate::from_kbps(400));
        assert_eq!(e.rate(), Rate::from_kbps(400));
        e.handle_report(Time::from_millis(1000), lost(0));
        run(&mut e, 3100);
        e.handle_remb(Rate::from_kbps(2000));
        assert!(run(&mut e, 3200) < 700_000, "after the start phase");
        e.handle_remb(Rate::ZERO);
        assert_eq!(e.rate(), Rate::from_kbps(30));
    }
}
