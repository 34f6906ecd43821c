//! Detection of the full pipe, which ends STARTUP: the bandwidth no longer grows.

use paceline_units::Rate;

/// A round in which the bandwidth grows by less than this factor does not count as growth (`bbr_full_bw_thresh`). The
/// pipe is full after this many such rounds (`bbr_full_bw_cnt`): three, so that a receive window has time to grow and
/// other flows have time to release bandwidth.
const GROWTH: f64 = 1.25;
const ROUNDS: u32 = 3;

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
        self.rounds >= ROUNDS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
