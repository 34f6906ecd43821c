//! Loss protection: what of the target goes into repair, and what is left for the encoder.
//!
//! ```text
//! v = A_s - r_RTX - r_FEC,   r_FEC <= A_s / 2                                     (fhmn13, section 2.3)
//! ```
//!
//! * [`ResendBudget`] bounds retransmissions: repair must not starve the media that it repairs. What does not fit is
//!   not sent; the receiver will ask again.
//! * [`FecDemand`] says how much forward error correction the losses of late ask for, [`divide`] what comes of it.

use paceline_units::{DataSize, Fraction, Rate, Time, TimeDelta};
use std::collections::VecDeque;

/// The share of the target that retransmissions may use in the long run. fhmn13 and libwebrtc allow all of it, which
/// after a fall of capacity leaves nothing to new frames for seconds; half is the share that fhmn13 gives to FEC.
pub const RESEND_SHARE: f64 = 0.5;

/// Forward error correction at most this share of the target (fhmn13, section 2.3; libwebrtc's tables end there too).
pub const FEC_SHARE_MAX: f64 = 0.5;
/// And at least this once there were losses: libwebrtc protects the first partition of a frame, taken for a fifth of it
/// (`media_opt_util.cc` of 2013, `VCMFecMethod::ProtectionFactor`).
const FEC_SHARE_MIN: f64 = 0.2;
/// Between them the share grows with the fraction lost: four times it, and 0.13. That is libwebrtc's table for 2 Mbit/s
/// at 30 frames a second of 352 x 240 (`fec_tables_xor.h` of 2013) without its steps, to within 0.05; it reaches a half
/// at a loss of 9 %.
const FEC_SHARE_SLOPE: f64 = 4.0;
const FEC_SHARE_OFFSET: f64 = 0.13;
/// The largest loss of this span counts (libwebrtc: `kMaxFilter` over 10 samples, one a second).
const LOSS_MEMORY: TimeDelta = TimeDelta::from_secs(10);
/// Below this round-trip time a retransmission comes soon enough (libwebrtc: `kLowRttNackMs`).
const FEC_RTT_MIN: TimeDelta = TimeDelta::from_millis(20);

/// Forward error correction of a sender's video.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum FecScheme {
    /// None.
    #[default]
    None,
    /// ULPFEC (RFC 5109) in RED (RFC 2198), in the sequence space of the media.
    Ulpfec,
}

impl FecScheme {
    /// Every scheme by name.
    pub const NAMES: [(&str, Self); 2] = [("none", Self::None), ("ulpfec", Self::Ulpfec)];
}

/// What bounds retransmissions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ResendRule {
    /// [`RESEND_SHARE`] of the target, and at once no more than the target sends in one round trip.
    #[default]
    HalfTarget,
    /// What the target sends in one round trip, for each NACK (fhmn13, section 2.3), and in any second no more than the
    /// target (libwebrtc).
    RoundTrip,
}

impl ResendRule {
    /// Every rule by name.
    pub const NAMES: [(&str, Self); 2] = [("half", Self::HalfTarget), ("rtt", Self::RoundTrip)];
}

/// How a sender protects its media.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Protection {
    /// Its forward error correction.
    pub fec: FecScheme,
    /// What bounds its retransmissions.
    pub resend: ResendRule,
}

/// The budget for retransmissions.
#[derive(Clone, Debug)]
pub struct ResendBudget {
    rule: ResendRule,
    /// What may be resent now: of the bucket or, by the other rule, for this NACK.
    credit: DataSize,
    updated: Time,
    /// What was resent in the last second, and its sum; empty where the rule asks for none.
    second: VecDeque<(Time, DataSize)>,
    in_second: DataSize,
}

impl ResendBudget {
    /// Nothing may be resent yet.
    pub fn new(rule: ResendRule, start: Time) -> Self {
        Self { rule, credit: DataSize::ZERO, updated: start, second: VecDeque::new(), in_second: DataSize::ZERO }
    }

    /// A NACK came, at this target and round-trip time.
    pub fn handle_nack(&mut self, target: Rate, rtt: TimeDelta) {
        if self.rule == ResendRule::RoundTrip {
            self.credit = target * rtt;
        }
    }

    /// Whether `size` may be resent now, at this target and round-trip time; if so it is spent.
    pub fn spend(&mut self, now: Time, size: DataSize, target: Rate, rtt: TimeDelta) -> bool {
        match self.rule {
            ResendRule::HalfTarget => {
                let full = (target * rtt).max(size);
                let earned = target.scale(RESEND_SHARE) * (now - self.updated);
                self.credit = (self.credit + earned).min(full);
                self.updated = now;
            }
            ResendRule::RoundTrip => {
                self.forget_before(now - TimeDelta::from_secs(1));
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

    fn forget_before(&mut self, from: Time) {
        while let Some((_, size)) = self.second.front().filter(|(at, _)| *at <= from) {
            self.in_second -= *size;
            self.second.pop_front();
        }
    }
}

/// How much forward error correction the losses of late ask for.
#[derive(Clone, Debug, Default)]
pub struct FecDemand {
    /// Losses of the last [`LOSS_MEMORY`] that no later one exceeds: the first is the largest.
    losses: VecDeque<(Time, Fraction)>,
}

impl FecDemand {
    /// No loss yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A report told this fraction lost.
    pub fn handle_report(&mut self, now: Time, lost: Fraction) {
        while self.losses.back().is_some_and(|(_, before)| before.get() <= lost.get()) {
            self.losses.pop_back();
        }
        self.losses.push_back((now, lost));
    }

    /// The share of the target that FEC is wanted to have: none without loss in the last 10 s or on a short way, else
    /// between a fifth and a half.
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

/// What the target is divided into, besides retransmissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Division {
    /// `r_FEC`.
    pub fec: Rate,
    /// `v`: what is left for the encoder.
    pub media: Rate,
}

/// Divides a target: FEC gets what is wanted up to half of it, the media what FEC and retransmissions leave.
pub fn divide(target: Rate, fec_wanted: Rate, resent: Rate) -> Division {
    let fec = fec_wanted.min(target.scale(FEC_SHARE_MAX));
    Division { fec, media: target.saturating_sub(fec).saturating_sub(resent) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KBPS: fn(u64) -> Rate = Rate::from_kbps;

    #[test]
    fn half_the_target_after_one_round_trip_at_once() {
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

    /// At 1 Mbit/s and 50 ms, 6250 bytes for each NACK; and in a second no more than 125 000.
    #[test]
    fn a_round_trip_of_the_target_for_each_nack() {
        let (target, rtt) = (KBPS(1000), TimeDelta::from_millis(50));
        let size = DataSize::from_bytes(625);
        let mut budget = ResendBudget::new(ResendRule::RoundTrip, Time::ZERO);
        assert!(!budget.spend(Time::ZERO, size, target, rtt), "nobody asked");
        let mut spent = |ms: i64| {
            let now = Time::from_millis(ms);
            budget.handle_nack(target, rtt);
            core::iter::repeat_with(|| budget.spend(now, size, target, rtt)).take_while(|fits| *fits).count()
        };
        assert_eq!(spent(0), 10, "6250 bytes");
        let rest: usize = (1..100).map(|i| spent(10 * i)).sum();
        assert_eq!(rest, 190, "200 packets are 125 000 bytes");
        assert_eq!(spent(1000), 10, "those of time zero are a second old");
        assert_eq!(spent(1001), 0);
    }

    /// A target of 1 Mbit/s, 50 kbit/s of it resent, 600 wanted for FEC: 500 for FEC, 450 for the encoder.
    #[test]
    fn the_encoder_gets_what_repair_leaves() {
        let of = |fec, media| Division { fec: KBPS(fec), media: KBPS(media) };
        assert_eq!(divide(KBPS(1000), KBPS(600), KBPS(50)), of(500, 450));
        assert_eq!(divide(KBPS(1000), KBPS(0), KBPS(0)), of(0, 1000));
        assert_eq!(divide(KBPS(1000), KBPS(200), KBPS(50)), of(200, 750));
        assert_eq!(divide(KBPS(100), KBPS(50), KBPS(90)), of(50, 0), "never less than nothing");
    }

    #[test]
    fn the_largest_loss_of_ten_seconds_counts() {
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
        assert_eq!(share(&mut demand, 12_001), 330, "the 5 % are left: 0.13 + 4 x 0.05");
        assert_eq!(share(&mut demand, 14_001), 200, "then the 1 %: the least");
        assert_eq!(share(&mut demand, 15_001), 0);
        demand.handle_report(at(20_000), lost(0.0875));
        assert_eq!(share(&mut demand, 20_000), 480);
        assert_eq!(demand.share(at(20_000), TimeDelta::from_millis(19)), 0.0, "a resend is there as soon");
    }
}
