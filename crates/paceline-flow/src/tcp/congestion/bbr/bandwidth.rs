//! The bottleneck's bandwidth: the greatest delivery rate of the last ten round trips.

use paceline_units::Rate;

/// Round trips over which the maximum is taken (`bbr_bw_rtts`): a cycle of gains and two more.
const ROUNDS: u64 = 10;

/// BtlBw and its filter. The kernel keeps the three best samples and forgets by them; this keeps the best of each round.
#[derive(Debug, Default)]
pub(super) struct Bandwidth {
    of_round: [Rate; ROUNDS as usize],
    /// The latest round of which there is a sample.
    round: u64,
}

impl Bandwidth {
    /// A rate was measured in this round. One that the application limited counts only where it is no less than what is
    /// known. Without a sample that counts nothing is forgotten, so silence does not lower the estimate.
    pub fn handle_sample(&mut self, rate: Rate, limited: bool, round: u64) {
        if limited && rate < self.rate() {
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

    /// BtlBw.
    pub fn rate(&self) -> Rate {
        self.of_round.into_iter().fold(Rate::ZERO, Rate::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MBPS: fn(u64) -> Rate = |mbps| Rate::from_kbps(1000 * mbps);

    #[test]
    fn the_maximum_lasts_ten_rounds() {
        let mut bandwidth = Bandwidth::default();
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
    fn an_application_that_sends_little_does_not_lower_it() {
        let mut bandwidth = Bandwidth::default();
        bandwidth.handle_sample(MBPS(8), false, 1);
        for round in 2..100 {
            bandwidth.handle_sample(MBPS(1), true, round);
            assert_eq!(bandwidth.rate(), MBPS(8), "round {round}");
        }
        // It may raise it; and the first honest sample ends the wait.
        bandwidth.handle_sample(MBPS(9), true, 100);
        assert_eq!(bandwidth.rate(), MBPS(9));
        bandwidth.handle_sample(MBPS(1), false, 110);
        assert_eq!(bandwidth.rate(), MBPS(1));
    }
}
