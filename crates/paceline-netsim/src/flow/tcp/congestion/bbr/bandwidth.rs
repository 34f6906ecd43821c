// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bottleneck bandwidth: the maximum delivery rate of the last ten round trips, the round trips by delivered data,
//! and the full pipe, which ends STARTUP: the bandwidth no longer grows.

use paceline_units::{DataSize, Rate};

/// Round trips of the maximum filter (`bbr_bw_rtts`): a gain cycle and two more.
const ROUNDS: u64 = 10;

/// The maximum filter of BtlBw. Linux keeps the three best samples; this filter keeps the best of each round.
#[derive(Debug, Default)]
pub(super) struct BandwidthFilter {
    of_round: [Rate; ROUNDS as usize],
    /// The latest round with a sample.
    round: u64,
}

impl BandwidthFilter {
    /// Handles a delivery rate sample of this round. An application-limited sample counts only if it is at least the
    /// current maximum. Old maxima expire only when a sample counts, so pauses do not lower the estimate.
    pub fn handle_sample(&mut self, rate: Rate, app_limited: bool, round: u64) {
        if app_limited && rate < self.rate() {
            return;
        }
        for passed in (self.round + 1..=round).take(ROUNDS as usize) {
            self.of_round[(passed % ROUNDS) as usize] = Rate::ZERO;
        }
        if round >= self.round + ROUNDS {
            self.of_round = [Rate::ZERO; ROUNDS as usize];
        }
        self.round = round;
        let best = &mut self.of_round[(round % ROUNDS) as usize];
        *best = rate.max(*best);
    }

    /// Returns BtlBw.
    pub fn rate(&self) -> Rate {
        self.of_round.into_iter().fold(Rate::ZERO, Rate::max)
    }
}

/// Counts round trips. A round ends when a segment is acknowledged that was sent after the round had begun.
#[derive(Debug, Default)]
pub(super) struct RoundCounter {
    pub count: u64,
    /// The round ends with a segment that was sent when this much had been delivered (`next_rtt_delivered`).
    end: DataSize,
    /// The current ACK begins a round (`round_start`).
    pub begins: bool,
}

impl RoundCounter {
    /// Handles an ACK of a segment that was sent when `before` had been delivered, with `delivered` delivered now.
    pub fn handle_ack(&mut self, before: DataSize, delivered: DataSize) {
        self.begins = before >= self.end;
        if self.begins {
            self.end = delivered;
            self.count += 1;
        }
    }

    /// Begins counting the next round when this much is delivered.
    pub fn restart(&mut self, delivered: DataSize) {
        self.end = delivered;
    }
}

/// A round in which the bandwidth grows by less than this factor does not count as growth (`bbr_full_bw_thresh`). The
/// pipe is full after this many such rounds (`bbr_full_bw_cnt`): three, so that a receive window has time to grow and
/// other flows have time to release bandwidth.
const GROWTH: f64 = 1.25;
const ROUNDS_MAX: u32 = 3;

#[derive(Debug, Default)]
pub(super) struct FullPipe {
    best: Rate,
    rounds: u32,
}

impl FullPipe {
    /// Handles the beginning of a round, after one that was not application-limited.
    pub fn handle_round(&mut self, bandwidth: Rate) {
        if self.is_reached() {
            return;
        }
        if bandwidth >= self.best.scale(GROWTH) {
            self.best = bandwidth;
            self.rounds = 0;
        } else {
            self.rounds += 1;
        }
    }

    /// Resets the best bandwidth after a timeout.
    pub fn handle_timeout(&mut self) {
        self.best = Rate::ZERO;
    }

    /// Returns whether the pipe is full. This never becomes false again.
    pub fn is_reached(&self) -> bool {
        self.rounds >= ROUNDS_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MBPS: fn(u64) -> Rate = |mbps| Rate::from_kbps(1000 * mbps);

    #[test]
    fn maximum_lasts_ten_rounds() {
        let mut bandwidth = BandwidthFilter::default();
        bandwidth.handle_sample(MBPS(8), false, 1);
        bandwidth.handle_sample(MBPS(5), false, 1);
        for round in 2..=10 {
            bandwidth.handle_sample(MBPS(6), false, round);
            assert_eq!(bandwidth.rate(), MBPS(8), "round {round}");
        }
        bandwidth.handle_sample(MBPS(4), false, 11);
        assert_eq!(bandwidth.rate(), MBPS(6));
        bandwidth.handle_sample(MBPS(3), false, 20);
        assert_eq!(bandwidth.rate(), MBPS(4));
        bandwidth.handle_sample(MBPS(2), false, 1000);
        assert_eq!(bandwidth.rate(), MBPS(2));
    }

    #[test]
    fn app_limited_samples_do_not_lower_the_maximum() {
        let mut bandwidth = BandwidthFilter::default();
        bandwidth.handle_sample(MBPS(8), false, 1);
        for round in 2..100 {
            bandwidth.handle_sample(MBPS(1), true, round);
            assert_eq!(bandwidth.rate(), MBPS(8), "round {round}");
        }
        // They may raise it, and the next sample that is not limited makes old maxima expire.
        bandwidth.handle_sample(MBPS(9), true, 100);
        assert_eq!(bandwidth.rate(), MBPS(9));
        bandwidth.handle_sample(MBPS(1), false, 110);
        assert_eq!(bandwidth.rate(), MBPS(1));
    }

    #[test]
    fn a_round_ends_when_a_segment_sent_in_it_is_delivered() {
        let mut rounds = RoundCounter::default();
        let mut begun = Vec::new();
        // Ten in flight, one delivered per ACK: segment n was sent when n - 10 were delivered.
        for n in 1..=35_u64 {
            rounds.handle_ack(DataSize::from_bytes(n.saturating_sub(10)), DataSize::from_bytes(n));
            if rounds.begins {
                begun.push(n);
            }
        }
        assert_eq!((begun, rounds.count), (vec![1, 11, 21, 31], 4));
        rounds.restart(DataSize::from_bytes(35));
        rounds.handle_ack(DataSize::from_bytes(34), DataSize::from_bytes(44));
        assert!(!rounds.begins);
        rounds.handle_ack(DataSize::from_bytes(35), DataSize::from_bytes(45));
        assert!(rounds.begins);
    }

    #[test]
    fn three_rounds_without_growth_fill_the_pipe() {
        let mut full = FullPipe::default();
        for (kbps, reached) in [
            (100, false),
            (200, false),
            (249, false),
            (249, false),
            (250, false),
            (312, false),
            (312, false),
            (9, true),
        ] {
            full.handle_round(Rate::from_kbps(kbps));
            assert_eq!(full.is_reached(), reached, "{kbps}");
        }
        full.handle_round(Rate::from_kbps(9000));
        assert!(full.is_reached());
    }
}
