//! The bottleneck bandwidth: the maximum delivery rate of the last ten round trips.

use paceline_units::Rate;

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
}
