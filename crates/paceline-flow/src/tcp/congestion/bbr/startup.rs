//! STARTUP: twice the rate each round trip, until that brings no more.

use paceline_units::Rate;

/// Growth below which a round trip brought no more (`bbr_full_bw_thresh`), and how many of those end it
/// (`bbr_full_bw_cnt`): three, so that a receive window has time to grow and others time to give way.
const GROWTH: f64 = 1.25;
const ROUNDS: u32 = 3;

/// Whether the pipe is full.
#[derive(Debug, Default)]
pub(super) struct FullPipe {
    best: Rate,
    rounds: u32,
}

impl FullPipe {
    /// A round trip began, after one in which the application always had something to send.
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

    /// After a timeout what was best is looked for anew.
    pub fn handle_timeout(&mut self) {
        self.best = Rate::ZERO;
    }

    /// From then on, for good.
    pub fn is_reached(&self) -> bool {
        self.rounds >= ROUNDS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_rounds_without_a_quarter_more_fill_the_pipe() {
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
