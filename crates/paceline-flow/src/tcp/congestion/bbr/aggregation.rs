//! ACKs that bunch: how much more than the bandwidth explains they tell of at once, so that the window does not run out
//! between bunches (`bbr_update_ack_aggregation`).

use paceline_units::{DataSize, Rate, Time, TimeDelta};

/// Round trips after which the older of two maxima is forgotten (`bbr_extra_acked_win_rtts`).
const ROUNDS: u32 = 5;
/// The excess counts up to what the bandwidth brings in this time (`bbr_extra_acked_max_us`).
const EXCESS_MAX: TimeDelta = TimeDelta::from_millis(100);
/// An epoch is no longer than so many segments (`bbr_ack_epoch_acked_reset_thresh`).
const EPOCH_MAX: u64 = 1 << 20;

/// The excess, and its maximum over five to ten round trips.
#[derive(Debug)]
pub(super) struct Aggregation {
    /// An epoch: for so long ACKs have told of more than the bandwidth explains.
    since: Time,
    acked: DataSize,
    /// Maxima of this stretch of rounds and of the one before.
    excess: [DataSize; 2],
    rounds: u32,
}

/// What an ACK means for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Told {
    pub now: Time,
    pub acked: DataSize,
    pub bandwidth: Rate,
    pub round_begins: bool,
    /// The excess is no more than the window.
    pub cwnd: DataSize,
    pub segment: DataSize,
}

impl Aggregation {
    pub fn new(now: Time) -> Self {
        Self { since: now, acked: DataSize::ZERO, excess: [DataSize::ZERO; 2], rounds: 0 }
    }

    pub fn handle_ack(&mut self, told: Told) {
        if told.round_begins {
            self.rounds += 1;
            if self.rounds >= ROUNDS {
                self.rounds = 0;
                self.excess = [DataSize::ZERO, self.excess[0]];
            }
        }
        let mut expected = told.bandwidth * (told.now - self.since);
        let longest = EPOCH_MAX * told.segment.as_bytes();
        if self.acked <= expected || (self.acked + told.acked).as_bytes() >= longest {
            (self.since, self.acked, expected) = (told.now, DataSize::ZERO, DataSize::ZERO);
        }
        self.acked += told.acked;
        let excess = self.acked.saturating_sub(expected).min(told.cwnd);
        self.excess[0] = excess.max(self.excess[0]);
    }

    /// What the window gets on top.
    pub fn allowance(&self, bandwidth: Rate) -> DataSize {
        self.excess[0].max(self.excess[1]).min(bandwidth * EXCESS_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: fn(u64) -> DataSize = DataSize::from_bytes;

    /// ACKs of so many bytes, so many milliseconds apart, at 1 byte a microsecond; the allowance after each.
    fn after(acks: &[(i64, u64)], round_begins: bool) -> Vec<u64> {
        let bandwidth = Rate::from_kbps(8000);
        let mut aggregation = Aggregation::new(Time::ZERO);
        let mut now = Time::ZERO;
        let step = |&(wait, acked): &(i64, u64)| {
            now += TimeDelta::from_millis(wait);
            let (cwnd, segment) = (BYTES(60_000), BYTES(1000));
            aggregation.handle_ack(Told { now, acked: BYTES(acked), bandwidth, round_begins, cwnd, segment });
            aggregation.allowance(bandwidth).as_bytes()
        };
        acks.iter().map(step).collect()
    }

    #[test]
    fn the_excess_over_the_bandwidth_is_what_a_bunch_brings() {
        // A bunch begins its epoch: all of it came at once.
        assert_eq!(after(&[(10, 10_000), (1, 10_000), (1, 10_000)], false), [10_000, 19_000, 28_000]);
        // ACKs at the pace of the bandwidth: two segments at most.
        assert_eq!(after(&[(2, 2000), (2, 2000), (2, 2000)], false), [2000; 3]);
        // No more than the window, nor than 100 ms.
        assert_eq!(after(&[(10, 90_000)], false), [60_000]);
    }

    #[test]
    fn a_maximum_is_forgotten_after_five_to_ten_rounds() {
        let mut acks = vec![(10, 30_000)];
        acks.extend([(30, 1000); 12]);
        let allowances = after(&acks, true);
        let first_small = allowances.iter().position(|bytes| *bytes == 1000);
        assert_eq!(first_small, Some(9), "{allowances:?}");
    }
}
