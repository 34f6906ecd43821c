// SPDX-License-Identifier: MIT OR Apache-2.0
//! The loss-based estimate before [`LossV2`](super::LossV2) (libwebrtc's `LossBasedBandwidthEstimation`, deleted in 2025-06): it
//! expects less loss the higher the rate is.
//!
//! ```text
//! L(A, b)     = (b / A)^0.5, at most 1                      the loss that is accepted at a rate, with a balance b
//! A(l, b)     = b / l^2                                     the rate at which a loss is accepted
//! avg         += w(dt) (loss - avg)                         w(dt) = 1 - exp(-dt / 800 ms)
//! most        = avg if that is higher, else most += w(dt) (avg - most)
//! R_max       = R if that is higher, else R_max += w(dt) (R - R_max)
//! most < L(A, 0.5 kbit/s):            A = max(A, min(A_1s f(RTT) + 1 kbit/s, A(most, 0.5 kbit/s)))
//! otherwise, min(avg, loss) > L(A, 4 kbit/s), once a report and at most each RTT + 300 ms:
//!                                     A = min(A, max(0.99 R_max, A(min(avg, loss), 4 kbit/s)))
//! ```
//!
//! `A_1s` is the lowest target of the last second. `f` falls from 1.08 to 1.02 as the round-trip time rises from 200 to 800 ms.

use crate::PacketReport;
use libm::{exp, sqrt};
use paceline_units::{Rate, Time, TimeDelta};

// Names in brackets are those of `LossBasedControlConfig` (`loss_based_bandwidth_estimation.cc`).
/// The largest and the smallest increase (`max_increase_factor`, `min_increase_factor`).
const INCREASE: (f64, f64) = (1.08, 1.02);
/// The round-trip times of the largest and of the smallest increase (`increase_low_rtt`, `increase_high_rtt`).
const INCREASE_RTT: (TimeDelta, TimeDelta) = (TimeDelta::from_millis(200), TimeDelta::from_millis(800));
/// Added to an increase (`increase_offset`).
const INCREASE_OFFSET: Rate = Rate::from_bps(1000);
/// A decrease over the highest acknowledged rate (`decrease_factor`).
const DECREASE: f64 = 0.99;
/// The time constant of all averages (`loss_window`, `loss_max_window`, `acknowledged_rate_max_window`).
const WINDOW: TimeDelta = TimeDelta::from_millis(800);
/// The balance below whose loss the rate increases (`loss_bandwidth_balance_increase`).
const BALANCE_INCREASE: Rate = Rate::from_bps(500);
/// The balance above whose loss the rate decreases (`loss_bandwidth_balance_decrease`).
const BALANCE_DECREASE: Rate = Rate::from_bps(4000);
/// The time between decreases, without the round-trip time (`decrease_interval`).
const DECREASE_INTERVAL: TimeDelta = TimeDelta::from_millis(300);
/// Older feedback increases nothing (1.2 `kMaxRtcpFeedbackInterval`).
const REPORT_TIMEOUT: TimeDelta = TimeDelta::from_secs(6);
/// The time that the first sample counts for.
const FIRST_INTERVAL: TimeDelta = TimeDelta::from_secs(1);
/// A lower loss is none.
const LOSS_MIN: f64 = 1e-5;

/// The estimator.
#[derive(Clone, Debug, Default)]
pub struct LossV1 {
    /// The estimate; zero before the first one.
    rate: Rate,
    last_loss: f64,
    average: f64,
    most: f64,
    acked_max: Rate,
    acked_at: Option<Time>,
    reported: Option<Time>,
    decreased: Option<Time>,
    decreased_since_report: bool,
}

impl LossV1 {
    /// Returns whether there was any feedback.
    pub fn is_ready(&self) -> bool {
        self.reported.is_some()
    }

    /// Starts with this rate and without loss (`Initialize`).
    pub fn start(&mut self, rate: Rate) {
        (self.rate, self.average, self.most) = (rate, 0.0, 0.0);
    }

    /// Multiplies the estimate, because the flow got another rate from outside (RFC 8699).
    pub fn scale(&mut self, ratio: f64) {
        self.rate = self.rate.scale(ratio);
    }

    /// Handles the packets of a feedback message (`UpdateLossStatistics`).
    pub fn handle_feedback(&mut self, now: Time, packets: &[PacketReport]) {
        if packets.is_empty() {
            return;
        }
        let lost = packets.iter().filter(|packet| packet.arrival.is_none()).count();
        let weight = weight(self.reported.replace(now).map_or(FIRST_INTERVAL, |last| now - last));
        self.last_loss = lost as f64 / packets.len() as f64;
        self.decreased_since_report = false;
        self.average += weight * (self.last_loss - self.average);
        self.most = match self.average > self.most {
            true => self.average,
            false => self.most + weight * (self.average - self.most),
        };
    }

    /// Handles the acknowledged rate (`UpdateAcknowledgedBitrate`).
    pub fn handle_acked(&mut self, now: Time, acked: Rate) {
        let weight = weight(self.acked_at.replace(now).map_or(FIRST_INTERVAL, |last| now - last));
        self.acked_max = match acked > self.acked_max {
            true => acked,
            false => self.acked_max - (self.acked_max - acked).scale(weight),
        };
    }

    /// Updates the estimate and returns it (`Update`), with the lowest target of the last second, the delay-based rate
    /// ([`Rate::MAX`]: unknown), and the round-trip time.
    pub fn update(&mut self, now: Time, lowest: Rate, delay_based: Rate, rtt: TimeDelta) -> Rate {
        if self.rate.is_zero() {
            self.rate = delay_based;
        }
        // One spike of the loss decreases the rate once.
        let loss = self.average.min(self.last_loss);
        let is_fresh = self.reported.is_some_and(|last| now - last < REPORT_TIMEOUT);
        let may_decrease =
            !self.decreased_since_report && self.decreased.is_none_or(|last| now - last >= rtt + DECREASE_INTERVAL);
        if is_fresh && self.most < accepted_loss(self.rate, BALANCE_INCREASE) {
            let increased = lowest.scale(increase(rtt)) + INCREASE_OFFSET;
            self.rate = increased.min(accepting_rate(self.most, BALANCE_INCREASE)).max(self.rate);
        } else if may_decrease && loss > accepted_loss(self.rate, BALANCE_DECREASE) {
            let decreased = self.acked_max.scale(DECREASE).max(accepting_rate(loss, BALANCE_DECREASE));
            if decreased < self.rate {
                (self.rate, self.decreased, self.decreased_since_report) = (decreased, Some(now), true);
            }
        }
        self.rate
    }
}

/// Returns the loss that is accepted at a rate (`GetLossFromBitrate`, exponent 0.5).
fn accepted_loss(rate: Rate, balance: Rate) -> f64 {
    if balance >= rate { 1.0 } else { sqrt(balance.as_bps_f64() / rate.as_bps_f64()) }
}

/// Returns the rate at which a loss is accepted (`BitrateFromLoss`, exponent 0.5); [`Rate::MAX`] without loss.
fn accepting_rate(loss: f64, balance: Rate) -> Rate {
    if loss < LOSS_MIN { Rate::MAX } else { balance.scale(1.0 / (loss * loss)) }
}

/// Returns the factor of an increase (`GetIncreaseFactor`).
fn increase(rtt: TimeDelta) -> f64 {
    let (low, high) = INCREASE_RTT;
    let above = (rtt.clamp(low, high) - low).as_secs_f64() / (high - low).as_secs_f64();
    INCREASE.1 + (1.0 - above) * (INCREASE.0 - INCREASE.1)
}

/// Returns the weight of a sample after this time (`ExponentialUpdate`).
fn weight(interval: TimeDelta) -> f64 {
    1.0 - exp(-interval.as_secs_f64() / WINDOW.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::kbps;
    use alloc::vec::Vec;
    use paceline_units::{DataSize, RemoteTime};

    const RTT: TimeDelta = TimeDelta::from_millis(100);

    fn near(value: f64, expected: f64, what: &str) {
        assert!((value - expected).abs() < 1e-6 * expected.abs().max(1e-3), "{what}: {value}, expected {expected}");
    }

    /// Ten packets, of which these are lost.
    fn message(lost: u64) -> Vec<PacketReport> {
        let report = |n| {
            let arrival = (n >= lost).then(|| RemoteTime::from_nanos(n as i64));
            PacketReport::new(n, Time::ZERO, DataSize::from_bytes(1000), arrival)
        };
        (0..10).map(report).collect()
    }

    /// The vectors of the specification of this block.
    #[test]
    fn thresholds_match_the_vectors() {
        near(accepted_loss(kbps(1000), BALANCE_INCREASE), 0.022_360_7, "loss of an increase");
        near(accepted_loss(kbps(1000), BALANCE_DECREASE), 0.063_245_55, "loss of a decrease");
        assert_eq!(accepted_loss(kbps(4), BALANCE_DECREASE), 1.0);
        assert_eq!(accepting_rate(0.1, BALANCE_DECREASE), kbps(400));
        assert_eq!(accepting_rate(0.9e-5, BALANCE_DECREASE), Rate::MAX);
        for (ms, factor) in [(0, 1.08), (200, 1.08), (500, 1.05), (800, 1.02), (3000, 1.02)] {
            near(increase(TimeDelta::from_millis(ms)), factor, "increase");
        }
        near(weight(TimeDelta::from_millis(800)), 0.632_120_56, "weight");
    }

    /// By hand: after 1 s the average of 50 % loss is 0.5 (1 - exp(-1.25)) = 0.356748. That is accepted at 31.4 kbit/s, and 0.99 of
    /// the acknowledged 600 kbit/s is more.
    #[test]
    fn loss_decreases_the_rate_once_a_report() {
        let mut v1 = LossV1::default();
        assert!(!v1.is_ready());
        v1.start(kbps(1000));
        v1.handle_acked(Time::from_secs(1), kbps(600));
        v1.handle_feedback(Time::from_secs(1), &message(5));
        assert!(v1.is_ready());
        near(v1.average, 0.356_747_6, "average loss");
        let update = |v1: &mut LossV1, ms| v1.update(Time::from_millis(ms), kbps(1000), kbps(2000), RTT).as_bps();
        assert_eq!(update(&mut v1, 1000), 594_000);
        v1.handle_acked(Time::from_millis(1800), kbps(300));
        assert_eq!(update(&mut v1, 1800), 594_000, "not twice for one report");
        v1.handle_feedback(Time::from_millis(1350), &message(5));
        assert_eq!(update(&mut v1, 1399), 594_000, "not within the round-trip time and 300 ms");
        // 600 - 300 (1 - exp(-1)) = 410.364 kbit/s
        assert_eq!(update(&mut v1, 1400), 406_260);
    }

    #[test]
    fn rate_increases_while_the_loss_is_low_and_feedback_is_fresh() {
        let mut v1 = LossV1::default();
        v1.start(kbps(500));
        v1.handle_feedback(Time::from_secs(1), &message(0));
        let update = |v1: &mut LossV1, s, rtt| v1.update(Time::from_secs(s), kbps(500), kbps(2000), rtt).as_bps();
        assert_eq!(update(&mut v1, 1, RTT), 541_000);
        assert_eq!(update(&mut v1, 2, TimeDelta::from_millis(500)), 541_000, "526 would be lower");
        assert_eq!(v1.update(Time::from_secs(6), kbps(600), kbps(2000), RTT).as_bps(), 649_000);
        assert_eq!(v1.update(Time::from_secs(7), kbps(700), kbps(2000), RTT).as_bps(), 649_000, "6 s without feedback");
        // 10 % of one message: an average of 7.1 % is between both thresholds of low rates, and holds.
        v1.start(kbps(100));
        v1.handle_feedback(Time::from_secs(7), &message(1));
        assert_eq!(v1.update(Time::from_secs(7), kbps(100), kbps(2000), RTT), kbps(100));
    }

    #[test]
    fn estimate_begins_with_the_delay_based_rate() {
        let mut v1 = LossV1::default();
        v1.handle_feedback(Time::from_secs(1), &message(10));
        assert_eq!(
            v1.update(Time::from_secs(1), kbps(500), kbps(5), RTT),
            kbps(5),
            "nothing is too much for a low rate"
        );
    }
}
