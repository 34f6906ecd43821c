//! The budget for retransmissions: repair must not starve the media that it repairs.
//!
//! A bucket fills at a share of the target and holds what the target sends in one round trip (fhmn13, section 3.2:
//! retransmissions for a NACK are at most `A_s · RTT`). What does not fit is not sent; the receiver will ask again.

use paceline_units::{DataSize, Rate, Time, TimeDelta};

/// The share of the target that retransmissions may use in the long run. fhmn13 and libwebrtc allow all of it, which
/// after a fall of capacity leaves nothing to new frames for seconds; half is the share that fhmn13 gives to FEC.
pub const RESEND_SHARE: f64 = 0.5;

/// The budget.
#[derive(Clone, Debug)]
pub struct ResendBudget {
    credit: DataSize,
    updated: Time,
}

impl ResendBudget {
    /// An empty bucket.
    pub fn new(start: Time) -> Self {
        Self { credit: DataSize::ZERO, updated: start }
    }

    /// Whether `size` may be resent now, at this target and round-trip time; if so it is spent.
    pub fn spend(&mut self, now: Time, size: DataSize, target: Rate, rtt: TimeDelta) -> bool {
        let full = (target * rtt).max(size);
        let earned = target.scale(RESEND_SHARE) * (now - self.updated);
        self.credit = (self.credit + earned).min(full);
        self.updated = now;
        let fits = size <= self.credit;
        if fits {
            self.credit -= size;
        }
        fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_the_target_after_one_round_trip_at_once() {
        let (target, rtt) = (Rate::from_kbps(1000), TimeDelta::from_millis(100));
        let size = DataSize::from_bytes(1250); // 10 ms of the target
        let mut budget = ResendBudget::new(Time::ZERO);
        let mut spent = |ms: i64| {
            let now = Time::from_millis(ms);
            core::iter::repeat_with(|| budget.spend(now, size, target, rtt)).take_while(|fits| *fits).count()
        };
        assert_eq!(spent(0), 0);
        assert_eq!(spent(1000), 10, "the bucket holds 100 ms of the target");
        assert_eq!((1..=100).map(|i| spent(1000 + 10 * i)).sum::<usize>(), 50, "then half of the target");
    }
}
