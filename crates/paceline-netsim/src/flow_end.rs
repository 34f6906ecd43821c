// SPDX-License-Identifier: MIT OR Apache-2.0
//! The two ends of a flow.

use crate::records::TapPoint;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowEnd {
    /// The source of the data.
    Sender = 0,
    /// The destination of the data.
    Receiver = 1,
}

impl FlowEnd {
    /// Returns the opposite end.
    pub fn other(self) -> Self {
        match self {
            Self::Sender => Self::Receiver,
            Self::Receiver => Self::Sender,
        }
    }

    #[inline]
    pub(crate) fn tap_point(self) -> TapPoint {
        match self {
            Self::Sender => TapPoint::Sender,
            Self::Receiver => TapPoint::Receiver,
        }
    }
}
