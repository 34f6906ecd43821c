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
