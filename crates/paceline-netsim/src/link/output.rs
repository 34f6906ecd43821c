// SPDX-License-Identifier: MIT OR Apache-2.0
//! What becomes of a packet that enters a link.

use super::queue::Descriptor;
use crate::records::DropReason;
use paceline_units::{Time, TimeDelta};

/// The outcome for a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// The packet reaches the far end.
    Delivered {
        /// The packet, with the ECN field that it leaves with.
        packet: Descriptor,
        /// Queuing delay: from arrival to start of service.
        waited: TimeDelta,
        /// The time at which the last bit left the server.
        left: Time,
        /// Arrival time at the far end.
        due: Time,
    },
    /// The link dropped the packet.
    Dropped {
        packet: Descriptor,
        reason: DropReason,
        /// Time of the drop: at the far end for a loss, otherwise the time at which the queue dropped the packet.
        due: Time,
        /// The time at which the last bit left the server; `None` if the packet was not served. Only losses on the wire
        /// are served.
        left: Option<Time>,
    },
}

impl Output {
    pub fn packet(&self) -> &Descriptor {
        match self {
            Self::Delivered { packet, .. } | Self::Dropped { packet, .. } => packet,
        }
    }

    /// Returns the time of the outcome.
    #[inline]
    pub fn due(&self) -> Time {
        match self {
            Self::Delivered { due, .. } | Self::Dropped { due, .. } => *due,
        }
    }
}
