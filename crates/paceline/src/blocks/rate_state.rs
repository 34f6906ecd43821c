// SPDX-License-Identifier: MIT OR Apache-2.0
//! The state `sigma` of the rate controllers.

use super::Usage;

/// The state `sigma`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateState {
    /// The rate grows.
    Increase,
    /// The rate decreases.
    Decrease,
    /// The rate stays while the queue drains.
    Hold,
}

impl RateState {
    /// Names, in order of [`index`](Self::index).
    pub const NAMES: &'static [&'static str] = &["increase", "decrease", "hold"];
    /// Returns the state as a signal value.
    pub fn index(self) -> f64 {
        self as u8 as f64
    }
    /// Returns the state of libwebrtc's controllers, whose Hold after a decrease ends at once.
    pub fn of(usage: Usage) -> Self {
        match usage {
            Usage::Over => Self::Decrease,
            Usage::Under => Self::Hold,
            Usage::Normal => Self::Increase,
        }
    }
    /// Returns the next state (mmsys16, figure 4; the table of the draft of June 2015, section 4.4).
    pub fn next(self, usage: Usage) -> Self {
        match (self, usage) {
            (_, Usage::Over) => Self::Decrease,
            (_, Usage::Under) => Self::Hold,
            (Self::Decrease, Usage::Normal) => Self::Hold,
            (Self::Hold | Self::Increase, Usage::Normal) => Self::Increase,
        }
    }
}
