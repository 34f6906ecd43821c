//! What a loss does to the window: in the first round trip of a recovery only what is delivered lets anything go; after
//! the repair the window is what it was (`bbr_set_cwnd_to_recover_or_restore`).

use super::super::{Repair, Sample};
use paceline_units::DataSize;

/// The window through a repair.
#[derive(Debug)]
pub(super) struct Conservation {
    /// How the sender stood at the last ACK that told something.
    before: Repair,
    conserves: bool,
    /// The window to come back to.
    prior: DataSize,
}

/// What an ACK lets the window do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Advice {
    /// This window, and no growth.
    Conserve(DataSize),
    /// From this window it goes on as the model says; `begins`: no.
    Go(DataSize),
}

impl Conservation {
    pub fn new() -> Self {
        Self { before: Repair::None, conserves: false, prior: DataSize::ZERO }
    }

    /// A repair or PROBE_RTT begins (`bbr_save_cwnd`); `lowered`: the window is low already, so that the greater counts.
    pub fn save(&mut self, cwnd: DataSize, lowered: bool) {
        let lowered = lowered || self.before != Repair::None;
        self.prior = if lowered { self.prior.max(cwnd) } else { cwnd };
    }

    /// The window to come back to.
    pub fn prior(&self) -> DataSize {
        self.prior
    }

    pub fn handle_timeout(&mut self) {
        self.before = Repair::Timeout;
    }

    /// A round trip began: what the model says holds again.
    pub fn handle_round(&mut self) {
        self.conserves = false;
    }

    /// True when a recovery begins with this ACK, so that its first round trip is counted from here.
    pub fn begins(&self, sample: &Sample) -> bool {
        sample.repair == Repair::Recovery && self.before != Repair::Recovery
    }

    /// An ACK of something new. What was lost leaves the window.
    pub fn handle_ack(&mut self, sample: &Sample, cwnd: DataSize, segment: DataSize) -> Advice {
        let conserved = sample.pipe + sample.acked;
        let mut window =
            if sample.lost > DataSize::ZERO { cwnd.saturating_sub(sample.lost).max(segment) } else { cwnd };
        if self.begins(sample) {
            self.conserves = true;
            window = conserved;
        } else if self.before != Repair::None && sample.repair == Repair::None {
            self.conserves = false;
            window = window.max(self.prior);
        }
        self.before = sample.repair;
        if self.conserves { Advice::Conserve(window.max(conserved)) } else { Advice::Go(window) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_units::Time;

    const SEGMENTS: fn(u64) -> DataSize = |n| DataSize::from_bytes(1000 * n);

    fn sample(acked: u64, lost: u64, pipe: u64, repair: Repair) -> Sample {
        Sample {
            now: Time::ZERO,
            acked: SEGMENTS(acked),
            lost: SEGMENTS(lost),
            delivered: SEGMENTS(acked),
            rate: None,
            limited: false,
            round_trip: None,
            srtt: None,
            pipe_before: SEGMENTS(pipe + acked),
            pipe: SEGMENTS(pipe),
            repair,
        }
    }

    #[test]
    fn a_recovery_conserves_for_a_round_then_grows_and_then_gives_the_window_back() {
        let mut conservation = Conservation::new();
        let step = |c: &mut Conservation, s: Sample, cwnd| c.handle_ack(&s, SEGMENTS(cwnd), SEGMENTS(1));
        let open = sample(2, 0, 48, Repair::None);
        assert_eq!(step(&mut conservation, open, 100), Advice::Go(SEGMENTS(100)));
        conservation.save(SEGMENTS(100), false);
        // It begins: what is in flight and what is delivered, whatever the window was.
        let first = sample(1, 5, 43, Repair::Recovery);
        assert!(conservation.begins(&first));
        assert_eq!(step(&mut conservation, first, 100), Advice::Conserve(SEGMENTS(44)));
        let second = sample(2, 1, 41, Repair::Recovery);
        assert!(!conservation.begins(&second));
        assert_eq!(step(&mut conservation, second, 44), Advice::Conserve(SEGMENTS(43)));
        // The next round: losses still leave the window, and no further than to a segment.
        conservation.handle_round();
        assert_eq!(step(&mut conservation, sample(2, 3, 40, Repair::Recovery), 43), Advice::Go(SEGMENTS(40)));
        assert_eq!(step(&mut conservation, sample(2, 90, 40, Repair::Recovery), 43), Advice::Go(SEGMENTS(1)));
        // PROBE_RTT meanwhile does not make the small window the one to come back to.
        conservation.save(SEGMENTS(40), false);
        assert_eq!(step(&mut conservation, sample(2, 0, 40, Repair::None), 43), Advice::Go(SEGMENTS(100)));
    }

    #[test]
    fn after_a_timeout_the_window_grows_from_one_segment_and_is_given_back() {
        let mut conservation = Conservation::new();
        conservation.save(SEGMENTS(50), false);
        conservation.handle_timeout();
        conservation.save(SEGMENTS(1), false);
        let repairs = sample(1, 0, 0, Repair::Timeout);
        assert_eq!(conservation.handle_ack(&repairs, SEGMENTS(1), SEGMENTS(1)), Advice::Go(SEGMENTS(1)));
        let over = sample(1, 0, 1, Repair::None);
        assert_eq!(conservation.handle_ack(&over, SEGMENTS(2), SEGMENTS(1)), Advice::Go(SEGMENTS(50)));
    }
}
