// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loss protection: which part of the target is used for repair, and which part is left for the encoder.
//!
//! ```text
//! v = A_s - r_RTX - r_FEC,   r_FEC <= A_s / 2                                     (fhmn13, section 2.3)
//! ```
//!
//! * [`ResendBudget`] bounds retransmissions: repair must not starve the media that it repairs. A retransmission that
//!   exceeds the budget is not sent; the receiver will request it again.
//! * [`FecDemand`] derives the wanted share of forward error correction from recent losses; [`split_target`] bounds it.

use alloc::collections::VecDeque;
use paceline_units::{DataSize, Fraction, Rate, Time, TimeDelta};

/// The share of the target that retransmissions may use in the long run. fhmn13 and libwebrtc allow all of it, which
/// after a drop in capacity leaves no rate for new frames for seconds. One half is the share that fhmn13 allows for
/// FEC.
pub const RESEND_SHARE: f64 = 0.5;

/// The largest share of forward error correction in the target (fhmn13, section 2.3; also the end of libwebrtc's
/// tables).
pub const FEC_SHARE_MAX: f64 = 0.5;
/// The lowest share once there were losses: libwebrtc protects the first partition of a frame, a fifth of it
/// (`media_opt_util.cc` of 2013, `VCMFecMethod::ProtectionFactor`).
const FEC_SHARE_MIN: f64 = 0.2;
/// In between, the share is 0.13 plus four times the fraction lost. This is libwebrtc's table for 2 Mbit/s at 30 frames
/// per second of 352 x 240 (`fec_tables_xor.h` of 2013) without its steps, to within 0.05; it reaches one half at a
/// loss of 9 %.
const FEC_SHARE_SLOPE: f64 = 4.0;
const FEC_SHARE_OFFSET: f64 = 0.13;
/// The largest loss within this time counts (libwebrtc: `kMaxFilter` over 10 samples, one per second).
const LOSS_MEMORY: TimeDelta = TimeDelta::from_secs(10);
/// Below this round-trip time retransmissions arrive early enough (libwebrtc: `kLowRttNackMs`).
const FEC_RTT_MIN: TimeDelta = TimeDelta::from_millis(20);

/// The forward error correction of a sender's video.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum FecScheme {
    /// None.
    #[default]
    None,
    /// ULPFEC (RFC 5109) in RED (RFC 2198), in the sequence number space of the media.
    Ulpfec,
}

impl FecScheme {
    /// All schemes with their names.
    pub const NAMES: [(&str, Self); 2] = [("none", Self::None), ("ulpfec", Self::Ulpfec)];
}

/// The bound on retransmissions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ResendRule {
    /// [`RESEND_SHARE`] of the target, with bursts of up to one round-trip time of the target.
    #[default]
    HalfTarget,
    /// One round-trip time of the target for each NACK (fhmn13, section 2.3), and no more than the target in any second
    /// (libwebrtc).
    RoundTrip,
}

impl ResendRule {
    /// All rules with their names.
    pub const NAMES: [(&str, Self); 2] = [("half", Self::HalfTarget), ("rtt", Self::RoundTrip)];
}

/// The loss protection of a sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Protection {
    /// The forward error correction.
    pub fec: FecScheme,
    /// The bound on retransmissions.
    pub resend: ResendRule,
}

/// The budget for retransmissions.
#[derive(Clone, Debug)]
pub struct ResendBudget {
    rule: ResendRule,
    /// The bytes that may be resent now: the content of the bucket, or the rest for this NACK with the other rule.
    credit: DataSize,
    updated: Time,
    /// The retransmissions of the last second, and their sum; empty if the rule does not need them.
    second: VecDeque<(Time, DataSize)>,
    in_second: DataSize,
}

impl ResendBudget {
    /// Creates an empty budget.
    pub fn new(rule: ResendRule, start: Time) -> Self {
        Self { rule, credit: DataSize::ZERO, updated: start, second: VecDeque::new(), in_second: DataSize::ZERO }
    }

    /// Empties the budget and forgets all retransmissions.
    pub fn restart(&mut self, now: Time) {
        *self = Self::new(self.rule, now);
    }

    /// Handles a NACK at this target and round-trip time.
    pub fn handle_nack(&mut self, target: Rate, rtt: TimeDelta) {
        if self.rule == ResendRule::RoundTrip {
            self.credit = target * rtt;
        }
    }

    /// Returns whether `size` may be resent now, at this target and round-trip time; if so, it is taken from the
    /// budget.
    pub fn spend(&mut self, now: Time, size: DataSize, target: Rate, rtt: TimeDelta) -> bool {
        match self.rule {
            ResendRule::HalfTarget => {
                let full = (target * rtt).max(size);
                let earned = target.scale(RESEND_SHARE) * (now - self.updated);
                self.credit = (self.credit + earned).min(full);
                self.updated = now;
            }
            ResendRule::RoundTrip => {
                self.remove_before(now - TimeDelta::from_secs(1));
                if self.in_second + size > target * TimeDelta::from_secs(1) {
                    return false;
                }
            }
        }
        let fits = size <= self.credit;
        if fits {
            self.credit -= size;
            if self.rule == ResendRule::RoundTrip {
                self.second.push_back((now, size));
                self.in_second += size;
            }
        }
        fits
    }

    fn remove_before(&mut self, from: Time) {
        while let Some((_, size)) = self.second.front().filter(|(at, _)| *at <= from) {
            self.in_second -= *size;
            self.second.pop_front();
        }
    }
}

/// The share of forward error correction that recent losses require.
#[derive(Clone, Debug, Default)]
pub struct FecDemand {
    /// The losses within [`LOSS_MEMORY`] that no later one exceeds; the first is the largest.
    losses: VecDeque<(Time, Fraction)>,
}

impl FecDemand {
    /// Creates a demand without losses.
    pub fn new() -> Self {
        Self::default()
    }

    /// Handles a report with this fraction lost.
    pub fn handle_report(&mut self, now: Time, lost: Fraction) {
        while self.losses.back().is_some_and(|(_, before)| before.get() <= lost.get()) {
            self.losses.pop_back();
        }
        self.losses.push_back((now, lost));
    }

    /// Returns the wanted share of FEC in the target: zero without loss in the last 10 s or with a short round-trip
    /// time, otherwise 0.2 to 0.5.
    pub fn share(&mut self, now: Time, rtt: TimeDelta) -> f64 {
        while self.losses.front().is_some_and(|(at, _)| now - *at > LOSS_MEMORY) {
            self.losses.pop_front();
        }
        let loss = self.losses.front().map_or(0.0, |(_, lost)| lost.get());
        if loss == 0.0 || rtt < FEC_RTT_MIN {
            return 0.0;
        }
        (FEC_SHARE_OFFSET + FEC_SHARE_SLOPE * loss).clamp(FEC_SHARE_MIN, FEC_SHARE_MAX)
    }
}

/// The parts of a target, besides retransmissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TargetSplit {
    /// `r_FEC`.
    pub fec: Rate,
    /// `v`, the rate for the encoder.
    pub media: Rate,
}

/// Splits a target: FEC gets the wanted rate, at most half of the target; media gets what FEC and retransmissions
/// leave.
pub fn split_target(target: Rate, fec_wanted: Rate, resent: Rate) -> TargetSplit {
    let fec = if fec_wanted.is_zero() { Rate::ZERO } else { fec_wanted.min(target.scale(FEC_SHARE_MAX)) };
    TargetSplit { fec, media: target.saturating_sub(fec).saturating_sub(resent) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KBPS: fn(u64) -> Rate = Rate::from_kbps;

    #[test]
    fn half_target_rule_allows_a_round_trip_and_then_half_the_target() {
        let (target, rtt) = (KBPS(1000), TimeDelta::from_millis(100));
        let size = DataSize::from_bytes(1250); // 10 ms of the target
        let mut budget = ResendBudget::new(ResendRule::HalfTarget, Time::ZERO);
        let mut spent = |ms: i64| {
            let now = Time::from_millis(ms);
            core::iter::repeat_with(|| budget.spend(now, size, target, rtt)).take_while(|fits| *fits).count()
        };
        assert_eq!(spent(0), 0);
        assert_eq!(spent(1000), 10, "the bucket holds 100 ms of the target");
        assert_eq!((1..=100).map(|i| spent(1000 + 10 * i)).sum::<usize>(), 50, "then half of the target");
    }

    /// At 1 Mbit/s and 50 ms: 6250 bytes for each NACK, and no more than 125 000 in a second.
    #[test]
    fn round_trip_rule_allows_a_round_trip_for_each_nack() {
        let (target, rtt) = (KBPS(1000), TimeDelta::from_millis(50));
        let size = DataSize::from_bytes(625);
        let mut budget = ResendBudget::new(ResendRule::RoundTrip, Time::ZERO);
        assert!(!budget.spend(Time::ZERO, size, target, rtt), "no NACK yet");
        let mut spent = |ms: i64| {
            let now = Time::from_millis(ms);
            budget.handle_nack(target, rtt);
            core::iter::repeat_with(|| budget.spend(now, size, target, rtt)).take_while(|fits| *fits).count()
        };
        assert_eq!(spent(0), 10, "6250 bytes");
        let rest: usize = (1..100).map(|i| spent(10 * i)).sum();
        assert_eq!(rest, 190, "200 packets are 125 000 bytes");
        assert_eq!(spent(1000), 10, "the first ones are a second old");
        assert_eq!(spent(1001), 0);
    }

    /// A target of 1 Mbit/s with 50 kbit/s of retransmissions and 600 wanted for FEC: 500 for FEC, 450 for the encoder.
    #[test]
    fn encoder_gets_the_rate_that_repair_leaves() {
        let of = |fec, media| TargetSplit { fec: KBPS(fec), media: KBPS(media) };
        assert_eq!(split_target(KBPS(1000), KBPS(600), KBPS(50)), of(500, 450));
        assert_eq!(split_target(KBPS(1000), KBPS(0), KBPS(0)), of(0, 1000));
        assert_eq!(split_target(KBPS(1000), KBPS(200), KBPS(50)), of(200, 750));
        assert_eq!(split_target(KBPS(100), KBPS(50), KBPS(90)), of(50, 0), "never negative");
    }

    #[test]
    fn largest_loss_of_ten_seconds_sets_the_fec_share() {
        let (mut demand, rtt) = (FecDemand::new(), TimeDelta::from_millis(50));
        let at = Time::from_millis;
        let lost = |part: f64| Fraction::new(part).unwrap();
        let share = |demand: &mut FecDemand, ms| (demand.share(at(ms), rtt) * 1000.0).round() as u32;
        assert_eq!(share(&mut demand, 0), 0);
        demand.handle_report(at(1000), lost(0.0));
        assert_eq!(share(&mut demand, 1000), 0, "no loss, no FEC");
        demand.handle_report(at(2000), lost(0.2));
        assert_eq!(share(&mut demand, 2000), 500);
        demand.handle_report(at(4000), lost(0.05));
        demand.handle_report(at(5000), lost(0.01));
        assert_eq!(share(&mut demand, 12_000), 500, "10 s after the 20 %");
        assert_eq!(share(&mut demand, 12_001), 330, "the 5 % remain: 0.13 + 4 x 0.05");
        assert_eq!(share(&mut demand, 14_001), 200, "then the 1 %: the lowest share");
        assert_eq!(share(&mut demand, 15_001), 0);
        demand.handle_report(at(20_000), lost(0.0875));
        assert_eq!(share(&mut demand, 20_000), 480);
        assert_eq!(demand.share(at(20_000), TimeDelta::from_millis(19)), 0.0, "a retransmission is as fast");
    }
}
