// SPDX-License-Identifier: MIT OR Apache-2.0
//! The combination of all limits into one target (libwebrtc's `SendSideBandwidthEstimation`): the delay-based rate, the
//! loss-based rate, the back-off without feedback, and the last REMB.
//!
//! ```text
//! RTT' > 3 s:                            A = 0.8 A each second
//! first 2 s without loss:                A = max(A, delay-based rate, REMB), until the loss-based rate is known
//! loss-based rate known:                 A = that rate
//! otherwise, by receiver reports:        loss <= 2 %: 1.08 times the lowest A of the last second, + 1 kbit/s
//!                                        loss > 10 %: A (1 - loss / 2), once per report
//! always:                                A = min(A, delay-based rate, maximum), at least the minimum
//! target = min(A, REMB)
//! ```

use super::capacity_tracker::CapacityTracker;
use super::loss_v1::LossV1;
use super::loss_v2::{LossState, LossV2, LossV2Config};
use super::rtt_backoff::{BackoffConfig, RttBackoff};
use crate::blocks::units::MIN_RATE;
use crate::{PacketReport, params};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use paceline_units::{Fraction, Rate, Time, TimeDelta};

/// Which estimate bounds the rate by loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossModel {
    /// The loss of receiver reports alone.
    Reports,
    /// `LossV2`, once it is known.
    V2,
    /// `LossV1`, as soon as there is feedback.
    V1,
}

params! {
    /// The parameters of the combination.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct BandwidthConfig {
        /// libwebrtc of 2026-08 (`send_side_bandwidth_estimation.cc`).
        const LIBWEBRTC;

        /// Loss-based estimate; 0: of receiver reports alone, 1: LossBasedBweV2, 2: LossBasedBandwidthEstimation.
        model as "loss_model": LossModel = LossModel::V2, of [LossModel::Reports, LossModel::V2, LossModel::V1],
            from "libwebrtc; LossBasedBandwidthEstimation was deleted in 2025-06";
        /// Receiver reports: loss up to which the rate increases.
        low as "loss_low": f64 = 0.02, in 0.0..=1.0, from "kDefaultLowLossThreshold";
        /// Receiver reports: loss above which the rate decreases.
        high as "loss_high": f64 = 0.1, in 0.0..=1.0, from "kDefaultHighLossThreshold";
        /// Receiver reports: rate below which the rate increases at any loss.
        floor as "loss_floor_bps": Rate = Rate::ZERO, in 0.0..=1e9, from "kDefaultBitrateThreshold";
        /// Receiver reports: increase over the lowest rate of the last second.
        increase as "loss_growth": f64 = 1.08, in 1.0..=10.0, from "UpdateEstimate";
        /// Whether the loss-based estimate waits for the first receiver report.
        waits_for_report as "loss_after_report": bool = false, from "so before 2025-12";
        /// Whether there is a stable target of its own, which grows slowly.
        has_stable_target as "stable_target": bool = false, from "LinkCapacityTracker; so before 2025-08";
        /// The back-off without feedback.
        backoff: BackoffConfig = BackoffConfig::LIBWEBRTC, block all;
        /// The parameters of [`LossModel::V2`].
        v2: LossV2Config = LossV2Config::LIBWEBRTC, block all;
    }
}

/// The highest rate if none is configured (`kDefaultMaxBitrate`).
const MAX_DEFAULT: Rate = Rate::from_bps(1_000_000_000);
/// The start phase (`kStartPhase`).
const START_PHASE: TimeDelta = TimeDelta::from_secs(2);
/// The lowest rate of this time counts for an increase (`kBweIncreaseInterval`).
const INCREASE_INTERVAL: TimeDelta = TimeDelta::from_secs(1);
/// The time between decreases, without the round-trip time (`kBweDecreaseInterval`).
const DECREASE_INTERVAL: TimeDelta = TimeDelta::from_millis(300);
/// A report counts for this long (1.2 `kMaxRtcpFeedbackInterval`).
const REPORT_TIMEOUT: TimeDelta = TimeDelta::from_secs(6);
/// Added to an increase (`UpdateEstimate`).
const INCREASE_OFFSET: Rate = Rate::from_bps(1000);
/// The resolution of the history (`UpdateMinHistory`).
const HISTORY_RESOLUTION: TimeDelta = TimeDelta::from_millis(1);

/// The combination. The fields are in order of use.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Bandwidth {
    backoff: RttBackoff,
    /// The rate of all limits but the last REMB.
    pub target: Rate,
    /// The lowest target.
    pub min: Rate,
    /// The last REMB.
    receiver_limit: Rate,
    /// The last round-trip time; zero before it.
    pub rtt: TimeDelta,
    /// How loss limits the rate.
    pub loss_state: LossState,
    /// The fraction lost of the last report, times 256, at most 255.
    pub fraction_q8: u8,
    decreased_since_report: bool,
    settings: Settings,
    max: Rate,
    delay_limit: Rate,
    acked: Option<Rate>,
    first_report: Option<Time>,
    /// The time of the last report over enough packets.
    last_report: Option<Time>,
    last_decrease: Option<Time>,
    /// The lowest rates of the last second, in order of time and of rate.
    history: VecDeque<(Time, Rate)>,
    /// The loss-based estimate.
    pub v2: LossV2,
    v1: Option<Box<LossV1>>,
    tracker: CapacityTracker,
}

/// The numbers that the blocks do not have.
#[derive(Clone, Copy, Debug)]
struct Settings {
    model: LossModel,
    low: f64,
    high: f64,
    floor: Rate,
    increase: f64,
    waits_for_report: bool,
    has_stable_target: bool,
}

impl Bandwidth {
    /// Creates a combination without limits. Call [`set_bounds`](Self::set_bounds) and [`set_rate`](Self::set_rate) next.
    pub fn new(config: BandwidthConfig) -> Self {
        let BandwidthConfig { model, v2, low, high, floor, increase, waits_for_report, has_stable_target, backoff } =
            config;
        Self {
            settings: Settings { model, low, high, floor, increase, waits_for_report, has_stable_target },
            backoff: RttBackoff::new(backoff),
            v2: LossV2::new(v2),
            v1: (model == LossModel::V1).then(Box::default),
            tracker: CapacityTracker::default(),
            target: Rate::ZERO,
            min: MIN_RATE,
            max: MAX_DEFAULT,
            history: VecDeque::new(),
            first_report: None,
            last_report: None,
            fraction_q8: 0,
            decreased_since_report: false,
            last_decrease: None,
            rtt: TimeDelta::ZERO,
            acked: None,
            receiver_limit: Rate::MAX,
            delay_limit: Rate::MAX,
            loss_state: LossState::DelayBased,
        }
    }

    /// Returns the target, which the last REMB bounds.
    #[inline]
    pub fn target(&self) -> Rate {
        self.target.min(self.receiver_limit).max(self.min)
    }

    /// Returns whether feedback is missing for so long that the rate backs off.
    #[inline]
    pub fn backs_off(&self) -> bool {
        self.backoff.is_above_limit()
    }

    /// Returns the stable target, if it is not the target.
    #[inline]
    pub fn stable_target(&self) -> Option<Rate> {
        self.settings.has_stable_target.then(|| self.tracker.estimate())
    }

    /// Sets the lowest and the highest rate ([`Rate::MAX`]: unlimited).
    pub fn set_bounds(&mut self, min: Rate, max: Rate) {
        self.min = min.max(MIN_RATE);
        self.max = if max == Rate::MAX || max.is_zero() { MAX_DEFAULT } else { max.max(self.min) };
        self.v2.set_bounds(self.min, self.max);
    }

    pub fn set_start(&mut self, now: Time, start: Rate) {
        self.tracker.handle_start(start);
        self.set_rate(now, start);
    }

    /// Sets the rate, regardless of the last delay-based rate: the start rate, or the result of a probe.
    pub fn set_rate(&mut self, now: Time, rate: Rate) {
        self.delay_limit = Rate::MAX;
        self.set_target(now, rate);
        self.history.clear();
    }

    /// Replaces the rate by the flow's share of the rate of several flows (RFC 8699, appendix A). The rates from which the next one is
    /// derived change in the same ratio, so that the limits by delay and loss and the growth by receiver reports go on from
    /// there. Returns the ratio.
    pub fn set_coupled(&mut self, now: Time, share: Rate) -> f64 {
        let ratio = share.as_bps_f64() / self.target.as_bps_f64();
        self.history.iter_mut().for_each(|(_, rate)| *rate = rate.scale(ratio));
        self.v2.scale(ratio);
        if let Some(v1) = &mut self.v1 {
            v1.scale(ratio);
        }
        if self.delay_limit != Rate::MAX {
            // Rounding must not let the limit cut the share.
            self.delay_limit = self.delay_limit.scale(ratio).max(share);
        }
        self.set_target(now, share);
        ratio
    }

    /// Applies the limits to the rate.
    pub fn apply_limits(&mut self, now: Time) {
        self.set_target(now, self.target);
    }

    /// Handles a REMB; zero: no limit.
    pub fn handle_remb(&mut self, now: Time, rate: Rate) {
        self.receiver_limit = if rate.is_zero() { Rate::MAX } else { rate };
        self.apply_limits(now);
    }

    /// Handles a delay-based rate; zero: no limit.
    pub fn handle_delay_based(&mut self, now: Time, rate: Rate) {
        self.tracker.handle_delay_based(now, rate);
        self.delay_limit = if rate.is_zero() { Rate::MAX } else { rate };
        self.apply_limits(now);
    }

    /// Handles the acknowledged rate, or that it is unknown.
    pub fn set_acked(&mut self, now: Time, acked: Option<Rate>) {
        self.acked = acked;
        let Some(acked) = acked else { return };
        if self.settings.model == LossModel::V2 {
            self.v2.set_acked(acked);
        }
        if let Some(v1) = &mut self.v1 {
            v1.handle_acked(now, acked);
        }
    }

    /// Handles all packets of a feedback message; see [`LossV2::handle_feedback`].
    pub fn handle_feedback(&mut self, now: Time, packets: &[PacketReport], clock: TimeDelta, in_alr: bool) {
        if let Some(v1) = &mut self.v1 {
            v1.handle_feedback(now, packets);
        }
        if self.settings.model == LossModel::V2 {
            self.v2.handle_feedback(packets, clock, self.delay_limit, in_alr);
            self.update(now);
        }
    }

    /// Handles a receiver report over too few packets for a loss ratio.
    pub fn handle_short_report(&mut self, now: Time) {
        self.first_report.get_or_insert(now);
    }

    /// Handles the loss of receiver reports.
    pub fn handle_report(&mut self, now: Time, fraction: Fraction) {
        self.first_report.get_or_insert(now);
        // The fraction was a quotient of integers: half of its last digit must not lower the result.
        self.fraction_q8 = (fraction.get() * 256.0 + 1e-9).min(255.0) as u8;
        (self.decreased_since_report, self.last_report) = (false, Some(now));
        self.update(now);
    }

    pub fn set_rtt(&mut self, rtt: TimeDelta) {
        if rtt.is_positive() {
            self.rtt = rtt;
        }
    }

    #[inline]
    pub fn handle_sent(&mut self, now: Time) {
        self.backoff.handle_sent(now);
    }

    /// Handles the return of the network: feedback is expected from the next packet on.
    pub fn handle_available(&mut self) {
        self.backoff.restart();
    }

    /// Handles a round-trip time from per-packet feedback.
    pub fn handle_feedback_rtt(&mut self, now: Time, rtt: TimeDelta) {
        self.backoff.handle_rtt(now, rtt);
    }

    /// Updates the rate (`UpdateEstimate`).
    pub fn update(&mut self, now: Time) {
        if self.backoff.is_above_limit() {
            self.back_off(now);
            return;
        }
        if self.fraction_q8 == 0 && self.is_in_start_phase(now) && !self.v2_is_ready_in_start_phase() {
            let rate = [self.receiver_limit, self.delay_limit]
                .into_iter()
                .filter(|limit| *limit != Rate::MAX)
                .fold(self.target, Rate::max);
            if let Some(v1) = &mut self.v1 {
                v1.start(rate);
            }
            if rate != self.target {
                self.history.clear();
                self.history.push_back((now, if self.v1.is_some() { rate } else { self.target }));
                self.set_target(now, rate);
                return;
            }
        }
        self.update_history(now);
        let has_report = self.last_report.is_some() || !self.settings.waits_for_report;
        if let Some((rate, state)) = self.v2.result().filter(|_| has_report && self.settings.model == LossModel::V2) {
            self.loss_state = state;
            self.set_target(now, rate);
            return;
        }
        if let Some(v1) = self.v1.as_mut().filter(|v1| v1.is_ready() && self.last_report.is_some()) {
            let lowest = self.history.front().map_or(self.target, |(_, lowest)| *lowest);
            let rate = v1.update(now, lowest, self.delay_limit, self.rtt);
            self.set_target(now, rate);
            return;
        }
        match self.rate_by_report(now) {
            Some(rate) => self.set_target(now, rate),
            None => self.apply_limits(now),
        }
    }

    #[cold]
    fn back_off(&mut self, now: Time) {
        match self.backoff.decreased(now, self.last_decrease, self.target) {
            Some(rate) => {
                self.last_decrease = Some(now);
                self.tracker.lower(now, rate);
                self.set_target(now, rate);
            }
            None => self.apply_limits(now),
        }
    }

    fn is_in_start_phase(&self, now: Time) -> bool {
        self.first_report.is_none_or(|first| now - first < START_PHASE)
    }

    fn v2_is_ready_in_start_phase(&self) -> bool {
        self.settings.model == LossModel::V2 && self.v2.is_ready_in_start_phase()
    }

    /// Returns the rate by the last receiver report, if that changes it.
    fn rate_by_report(&mut self, now: Time) -> Option<Rate> {
        if now - self.last_report? >= REPORT_TIMEOUT {
            return None;
        }
        let loss = f64::from(self.fraction_q8) / 256.0;
        if self.target < self.settings.floor || loss <= self.settings.low {
            let (_, lowest) = self.history.front()?;
            let rate = Rate::from_bps((lowest.as_bps_f64() * self.settings.increase + 0.5) as u64);
            return Some(rate + INCREASE_OFFSET);
        }
        let may_decrease = !self.decreased_since_report
            && self.last_decrease.is_none_or(|last| now - last >= DECREASE_INTERVAL + self.rtt);
        if self.target > self.settings.floor && loss > self.settings.high && may_decrease {
            (self.last_decrease, self.decreased_since_report) = (Some(now), true);
            return Some(decreased(self.target, self.fraction_q8));
        }
        None
    }

    /// Updates the lowest rates of the last second (`UpdateMinHistory`).
    fn update_history(&mut self, now: Time) {
        while self.history.front().is_some_and(|(at, _)| now - *at + HISTORY_RESOLUTION > INCREASE_INTERVAL) {
            self.history.pop_front();
        }
        while self.history.back().is_some_and(|(_, rate)| self.target <= *rate) {
            self.history.pop_back();
        }
        self.history.push_back((now, self.target));
    }

    /// Sets the rate within the limits (`UpdateTargetBitrate`).
    fn set_target(&mut self, now: Time, rate: Rate) {
        self.target = rate.min(self.delay_limit).min(self.max).max(self.min);
        if self.settings.has_stable_target {
            self.tracker.handle_target(now, self.acked, self.target);
        }
    }
}

/// Returns the rate after a loss of `q8 / 256`: it decreases by half of that.
fn decreased(rate: Rate, q8: u8) -> Rate {
    Rate::from_bps((rate.as_bps_f64() * f64::from(512 - u16::from(q8)) / 512.0) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::at;

    const REPORTS: BandwidthConfig = BandwidthConfig { model: LossModel::Reports, ..BandwidthConfig::LIBWEBRTC };

    fn started(config: BandwidthConfig, kbps: u64) -> Bandwidth {
        let mut bandwidth = Bandwidth::new(config);
        bandwidth.set_bounds(Rate::from_kbps(30), Rate::from_kbps(5000));
        bandwidth.set_start(at(0), Rate::from_kbps(kbps));
        bandwidth
    }
    fn report(bandwidth: &mut Bandwidth, ms: i64, q8: u8) -> u64 {
        bandwidth.handle_report(at(ms), Fraction::from_q8(q8));
        bandwidth.target().as_bps()
    }

    #[test]
    fn delay_based_rate_and_remb_count_at_once_in_the_start_phase() {
        let mut bandwidth = started(REPORTS, 300);
        bandwidth.handle_delay_based(at(100), Rate::from_kbps(900));
        assert_eq!(bandwidth.target(), Rate::from_kbps(300));
        bandwidth.update(at(125));
        assert_eq!(bandwidth.target(), Rate::from_kbps(900));
        bandwidth.handle_delay_based(at(150), Rate::from_kbps(700));
        assert_eq!(bandwidth.target(), Rate::from_kbps(700), "a limit applies at once");
        bandwidth.handle_remb(at(160), Rate::from_kbps(650));
        assert_eq!(bandwidth.target(), Rate::from_kbps(650));
        bandwidth.handle_remb(at(170), Rate::ZERO);
        assert_eq!(bandwidth.target(), Rate::from_kbps(700));
    }

    /// By hand: 1.08 · 1000 + 1 = 1081; the lowest rate of the last second counts. 26/256 are 10.2 %: 512 - 26 of 512.
    #[test]
    fn reports_increase_hold_and_decrease() {
        let mut bandwidth = started(REPORTS, 1000);
        bandwidth.handle_short_report(at(0));
        assert_eq!(report(&mut bandwidth, 1999, 0), 1_081_000, "in the start phase as well");
        assert_eq!([5, 6, 25].map(|q8| report(&mut bandwidth, 2000, q8)), [1_081_000; 3]);
        assert_eq!(report(&mut bandwidth, 2200, 0), 1_081_000);
        assert_eq!(report(&mut bandwidth, 3250, 0), 1_168_480, "the lowest rate is now 1081");
        bandwidth.set_rtt(TimeDelta::from_millis(100));
        assert_eq!(report(&mut bandwidth, 4000, 26), 1_109_143);
        bandwidth.update(at(4900));
        assert_eq!(bandwidth.target().as_bps(), 1_109_143, "once per report");
        assert_eq!(report(&mut bandwidth, 4950, 26), 1_052_819);
        assert_eq!(report(&mut bandwidth, 5349, 255), 1_052_819, "300 ms and a round-trip time");
        assert_eq!(report(&mut bandwidth, 5350, 255), 528_465);
        bandwidth.update(at(11_351));
        assert_eq!(bandwidth.target().as_bps(), 528_465, "the report is too old");
    }

    #[test]
    fn missing_feedback_lowers_the_rate_each_second() {
        let mut bandwidth = started(BandwidthConfig::LIBWEBRTC, 1000);
        bandwidth.handle_sent(at(0));
        bandwidth.handle_sent(at(3000));
        bandwidth.update(at(3000));
        assert_eq!(bandwidth.target(), Rate::from_kbps(1000));
        bandwidth.handle_sent(at(3001));
        let rates = [3001, 3500, 4001, 5001].map(|ms| {
            bandwidth.update(at(ms));
            bandwidth.target().as_bps() / 1000
        });
        assert_eq!(rates, [800, 800, 640, 512]);
        (6..40).for_each(|s| bandwidth.update(Time::from_secs(s)));
        assert_eq!(bandwidth.target(), Rate::from_kbps(30), "the minimum");
    }

    #[test]
    fn fraction_is_rounded_down_to_a_256th() {
        let mut bandwidth = started(REPORTS, 1000);
        for (lost, of, q8) in [(1, 20, 12), (5, 256, 5), (20, 20, 255), (49, 50, 250)] {
            bandwidth.handle_report(at(0), Fraction::new(f64::from(lost) / f64::from(of)).unwrap());
            assert_eq!(bandwidth.fraction_q8, q8, "{lost} of {of}");
        }
    }

    /// By hand: no loss in the start phase; then half of the packets are lost, and 99 % of the acknowledged rate remains.
    #[test]
    fn loss_based_v1_counts_after_a_receiver_report() {
        let config = BandwidthConfig { model: LossModel::V1, ..BandwidthConfig::LIBWEBRTC };
        let mut bandwidth = started(config, 1000);
        bandwidth.handle_delay_based(at(100), Rate::from_kbps(2000));
        bandwidth.update(at(100));
        assert_eq!(bandwidth.target(), Rate::from_kbps(2000), "the delay-based rate, in the start phase");
        bandwidth.set_acked(at(3000), Some(Rate::from_kbps(800)));
        let lost = |n| PacketReport::new(n, at(2900), paceline_units::DataSize::from_bytes(1000), None);
        bandwidth.handle_feedback(at(3000), &[lost(1), lost(2)], TimeDelta::ZERO, false);
        assert_eq!(bandwidth.target(), Rate::from_kbps(2000), "no receiver report");
        bandwidth.handle_report(at(3000), Fraction::new(0.5).unwrap());
        assert_eq!(bandwidth.target(), Rate::from_kbps(792));
    }
}
