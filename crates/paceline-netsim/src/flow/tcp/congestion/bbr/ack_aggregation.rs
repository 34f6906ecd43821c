// SPDX-License-Identifier: MIT OR Apache-2.0
//! ACK aggregation: measures how much data aggregated ACKs acknowledge beyond the bandwidth, so that the window does
//! not run out between them (`bbr_update_ack_aggregation`).

use paceline_units::{DataSize, Rate, Time, TimeDelta};

/// Round trips per window of the maximum filter, which covers two windows (`bbr_extra_acked_win_rtts`).
const ROUNDS: u32 = 5;
/// The window grows by at most the data that the bandwidth delivers in this time (`bbr_extra_acked_max_us`).
const EXCESS_MAX: TimeDelta = TimeDelta::from_millis(100);
/// The longest epoch, in segments (`bbr_ack_epoch_acked_reset_thresh`).
const EPOCH_MAX: u64 = 1 << 20;

/// The excess of acknowledged data over the bandwidth, and its maximum over five to ten round trips.
#[derive(Debug)]
pub(super) struct AckAggregation {
    /// Start of the epoch in which ACKs have acknowledged more than the bandwidth explains, and the bytes since.
    since: Time,
    acked: DataSize,
    /// Maxima of the current window of rounds and of the previous one.
    excess: [DataSize; 2],
    rounds: u32,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct AckInput {
    pub now: Time,
    pub acked: DataSize,
    pub bandwidth: Rate,
    pub round_begins: bool,
    /// Upper bound of the excess.
    pub cwnd: DataSize,
    pub segment: DataSize,
}

impl AckAggregation {
    pub fn new(now: Time) -> Self {
        Self { since: now, acked: DataSize::ZERO, excess: [DataSize::ZERO; 2], rounds: 0 }
    }

    pub fn handle_ack(&mut self, ack: AckInput) {
        if ack.round_begins {
            self.rounds += 1;
            if self.rounds >= ROUNDS {
                self.rounds = 0;
                self.excess = [DataSize::ZERO, self.excess[0]];
            }
        }
        let mut expected = ack.bandwidth * (ack.now - self.since);
        let longest = EPOCH_MAX * ack.segment.as_bytes();
        if self.acked <= expected || (self.acked + ack.acked).as_bytes() >= longest {
            (self.since, self.acked, expected) = (ack.now, DataSize::ZERO, DataSize::ZERO);
        }
        self.acked += ack.acked;
        let excess = self.acked.saturating_sub(expected).min(ack.cwnd);
        self.excess[0] = excess.max(self.excess[0]);
    }

    /// Returns the addition to the window.
    pub fn allowance(&self, bandwidth: Rate) -> DataSize {
        self.excess[0].max(self.excess[1]).min(bandwidth * EXCESS_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: fn(u64) -> DataSize = DataSize::from_bytes;

    /// Handles ACKs of (milliseconds since the last one, bytes) at 1 byte per microsecond. Returns the allowance after
    /// each.
    fn after(acks: &[(i64, u64)], round_begins: bool) -> Vec<u64> {
        let bandwidth = Rate::from_kbps(8000);
        let mut aggregation = AckAggregation::new(Time::ZERO);
        let mut now = Time::ZERO;
        let step = |&(wait, acked): &(i64, u64)| {
            now += TimeDelta::from_millis(wait);
            let (cwnd, segment) = (BYTES(60_000), BYTES(1000));
            aggregation.handle_ack(AckInput { now, acked: BYTES(acked), bandwidth, round_begins, cwnd, segment });
            aggregation.allowance(bandwidth).as_bytes()
        };
        acks.iter().map(step).collect()
    }

    #[test]
    fn excess_is_the_acked_data_beyond_the_bandwidth() {
        // An aggregated ACK begins an epoch, and all of it is excess.
        assert_eq!(after(&[(10, 10_000), (1, 10_000), (1, 10_000)], false), [10_000, 19_000, 28_000]);
        // ACKs at the rate of the bandwidth: at most two segments.
        assert_eq!(after(&[(2, 2000), (2, 2000), (2, 2000)], false), [2000; 3]);
        // At most the window, and at most 100 ms.
        assert_eq!(after(&[(10, 90_000)], false), [60_000]);
    }

    #[test]
    fn maximum_expires_after_five_to_ten_rounds() {
        let mut acks = vec![(10, 30_000)];
        acks.extend([(30, 1000); 12]);
        let allowances = after(&acks, true);
        let first_small = allowances.iter().position(|bytes| *bytes == 1000);
        assert_eq!(first_small, Some(9), "{allowances:?}");
    }
}
