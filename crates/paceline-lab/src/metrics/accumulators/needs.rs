// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is gathered only for the metrics that read it, because it costs much of the time of a run.

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Needs {
    /// Delays of each packet and each frame.
    pub packet_delays: bool,
    pub round_trips: bool,
    pub freezes: bool,
    pub shares: bool,
}

impl Needs {
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            packet_delays: self.packet_delays || other.packet_delays,
            round_trips: self.round_trips || other.round_trips,
            freezes: self.freezes || other.freezes,
            shares: self.shares || other.shares,
        }
    }
}
