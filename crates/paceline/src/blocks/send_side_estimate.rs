//! The loss-based controller as libwebrtc's `SendSideBandwidthEstimation` had it from 2013 to 2018: growth from the
//! least rate of the last second, so that a rate that has stood still rises at once and then once a second.
//!
//! ```text
//!         1.08 min(A over 1 s) + 1 kbit/s    f <= 0.02
//! A(k) =  A (1 - 0.5 f)                      f > 0.1, once per report and once in 300 ms + RTT
//!         A                                  otherwise;   and always A <= REMB
//! ```
//!
//! It runs each 25 ms on the last report, for as long as that is less than six seconds old.

use crate::{Block, Fields};
use paceline_units::{Fraction, Rate, Time, TimeDelta};
use std::collections::VecDeque;

/// Numbers of the controller.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SendSideConfig {
    /// Up to this fraction lost the rate grows.
    pub low: f64,
    /// Above this fraction lost the rate falls.
    pub high: f64,
    /// Growth over the least rate of the last second.
    pub increase: f64,
    /// Share of the fraction lost by which the rate falls.
    pub decrease: f64,
}

impl Block for SendSideConfig {
    fn fields(&mut self, fields: &mut Fields<'_>) {
        fields.number("loss_low", "", (0.0, 1.0), &mut self.low).says("up to this loss the rate grows");
        fields.number("loss_high", "", (0.0, 1.0), &mut self.high).says("above this loss the rate falls");
        fields
            .number("loss_increase", "", (1.0, 10.0), &mut self.increase)
            .says("growth over the least rate of the last second");
        fields.number("loss_decrease", "", (0.0, 1.0), &mut self.decrease).says("fall per fraction lost");
    }
}

/// How often it runs.
const PROCESS: TimeDelta = TimeDelta::from_millis(25);
/// The window of the least rate.
const INCREASE_INTERVAL: TimeDelta = TimeDelta::from_millis(1000);
/// Added to each growth.
const LEAST_GROWTH: Rate = Rate::from_kbps(1);
/// Least time between two falls, before the round-trip time.
const DECREASE_INTERVAL: TimeDelta = TimeDelta::from_millis(300);
/// For this long after the first report a REMB is trusted upwards, as long as nothing was lost.
const START_PHASE: TimeDelta = TimeDelta::from_millis(2000);
/// A report older than this says nothing: 1.2 times the longest interval of reports, 5 s.
const REPORT_MAX_AGE: TimeDelta = TimeDelta::from_millis(6000);

/// The most that it ever answers, whatever a REMB says.
const MAX: Rate = Rate::from_kbps(1_000_000);

/// The controller.
#[derive(Clone, Debug)]
pub struct SendSideEstimate {
    config: SendSideConfig,
    min: Rate,
    rate: Rate,
    /// The receiver's estimate.
    remb: Option<Rate>,
    loss: f64,
    rtt: TimeDelta,
    /// When the first and the last report came.
    reports: Option<(Time, Time)>,
    decreased: Option<Time>,
    /// Whether the last report has already led to a fall.
    acted: bool,
    next: Time,
    /// Rates of the last second, from the least on: only those that no later one undercut.
    least: VecDeque<(Time, Rate)>,
}

impl SendSideEstimate {
    /// At `start`; never below `min`.
    pub fn new(config: SendSideConfig, start: Rate, min: Rate) -> Self {
        Self {
            config,
            min,
            rate: start,
            remb: None,
            loss: 0.0,
            rtt: TimeDelta::ZERO,
            reports: None,
            decreased: None,
            acted: false,
            next: Time::ZERO + PROCESS,
            // One for each run of the last second, if a cap that rises slowly is all that holds the rate down.
            least: VecDeque::with_capacity(64),
        }
    }

    /// `A`.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// A receiver report on at least 20 packets came.
    pub fn handle_report(&mut self, now: Time, fraction_lost: Fraction, rtt: Option<TimeDelta>) {
        let first = self.reports.map_or(now, |(first, _)| first);
        self.reports = Some((first, now));
        self.rtt = rtt.filter(|rtt| rtt.is_positive()).unwrap_or(self.rtt);
        (self.loss, self.acted) = (fraction_lost.get(), false);
        self.update(now);
    }

    /// A REMB came, or what the sender estimates from delay: a cap from now on.
    pub fn handle_remb(&mut self, rate: Rate) {
        self.remb = Some(rate);
        self.rate = self.capped(self.rate);
    }

    /// The time of [`poll_timeout`](Self::poll_timeout) has come.
    pub fn handle_timeout(&mut self, now: Time) {
        self.next = now + PROCESS;
        self.update(now);
    }

    /// When it runs next.
    pub fn poll_timeout(&self) -> Time {
        self.next
    }

    fn update(&mut self, now: Time) {
        if self.loss == 0.0 && self.reports.is_none_or(|(first, _)| now - first < START_PHASE) {
            let told = self.remb.map_or(self.rate, |remb| remb.max(self.rate));
            if told != self.rate {
                self.least.clear();
                self.least.push_back((now, self.rate));
                self.rate = self.capped(told);
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
        } else if self.loss > c.high && !self.acted {
            let interval = DECREASE_INTERVAL + self.rtt;
            if self.decreased.is_none_or(|decreased| now - decreased >= interval) {
                (self.decreased, self.acted) = (Some(now), true);
                self.rate = self.capped(self.rate.scale(1.0 - c.decrease * self.loss));
            }
        }
    }

    /// The least rate of the last second, the present one included.
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
        rate.min(self.remb.unwrap_or(MAX).min(MAX)).max(self.min)
    }
}

fn increased(least: Rate, factor: f64) -> Rate {
    least.scale(factor) + LEAST_GROWTH
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: SendSideConfig = SendSideConfig { low: 0.02, high: 0.1, increase: 1.08, decrease: 0.5 };

    fn estimate(kbps: u64) -> SendSideEstimate {
        SendSideEstimate::new(CONFIG, Rate::from_kbps(kbps), Rate::from_kbps(30))
    }
    fn run(e: &mut SendSideEstimate, until_ms: i64) -> u64 {
        while e.poll_timeout() <= Time::from_millis(until_ms) {
            e.handle_timeout(e.poll_timeout());
        }
        e.rate().as_bps()
    }
    fn lost(q8: u8) -> Fraction {
        Fraction::from_q8(q8)
    }

    /// By hand: 1000 → 1081 at the report, and a second later 1.08 · 1081 + 1 = 1168.48; six seconds after the report
    /// nothing grows any more.
    #[test]
    fn growth_in_steps_of_a_second() {
        let mut e = estimate(1000);
        assert_eq!(run(&mut e, 3000), 1_000_000, "nothing is known yet");
        e.handle_report(Time::from_millis(3000), lost(0), None);
        assert_eq!(e.rate().as_bps(), 1_081_000);
        assert_eq!(run(&mut e, 3950), 1_081_000);
        assert_eq!(run(&mut e, 4050), 1_168_480);
        let grown = run(&mut e, 9000);
        assert!((1_500_000..1_700_000).contains(&grown), "{grown}");
        assert_eq!(run(&mut e, 60_000), grown);
    }

    /// V1.5: 51 of 256 lost take 1000 kbit/s to 900.390625. Falls wait for a new report, and for 300 ms and a round trip.
    #[test]
    fn falls_once_per_report_and_interval() {
        let (mut e, rtt) = (estimate(1000), Some(TimeDelta::from_millis(100)));
        e.handle_report(Time::from_millis(1000), lost(51), rtt);
        assert_eq!(e.rate().as_bps(), 900_391);
        assert_eq!(run(&mut e, 2000), 900_391, "one fall a report");
        e.handle_report(Time::from_millis(2000), lost(51), rtt);
        let second = e.rate().as_bps();
        assert_eq!(second, 810_704);
        e.handle_report(Time::from_millis(2399), lost(51), rtt);
        assert_eq!(e.rate().as_bps(), second, "399 ms after the last fall");
        assert_eq!(run(&mut e, 2425), 729_950, "as soon as they have passed");
        for q8 in [6, 15, 25] {
            e.handle_report(Time::from_millis(4000), lost(q8), rtt);
            assert_eq!(e.rate().as_bps(), 729_950, "between 2 and 10 %");
        }
        e.handle_report(Time::from_millis(4000), lost(26), rtt);
        assert!(e.rate().as_bps() < 729_950);
        for (ms, rate) in [(1399, 900_391), (1400, 810_704)] {
            let mut e = estimate(1000);
            e.handle_report(Time::from_millis(1000), lost(51), rtt);
            e.handle_report(Time::from_millis(ms), lost(51), rtt);
            assert_eq!(e.rate().as_bps(), rate, "a report after {} ms", ms - 1000);
        }
    }

    #[test]
    fn a_remb_is_a_cap_and_in_the_first_two_seconds_a_target() {
        let mut e = estimate(1000);
        e.handle_remb(Rate::from_kbps(1500));
        assert_eq!(run(&mut e, 100), 1_500_000);
        e.handle_remb(Rate::from_kbps(400));
        assert_eq!(e.rate(), Rate::from_kbps(400));
        e.handle_report(Time::from_millis(1000), lost(0), None);
        run(&mut e, 3100);
        e.handle_remb(Rate::from_kbps(2000));
        assert!(run(&mut e, 3200) < 700_000, "the start is over");
        e.handle_remb(Rate::ZERO);
        assert_eq!(e.rate(), Rate::from_kbps(30));
    }
}
