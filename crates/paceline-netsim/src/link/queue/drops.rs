// SPDX-License-Identifier: MIT OR Apache-2.0
//! The packets that a discipline drops, in order, each with its reason.

use super::Descriptor;
use crate::records::DropReason;

/// Collects the packets that a discipline drops during one call. The link empties it after each call and keeps its
/// memory.
#[derive(Debug, Default)]
pub struct Drops(Vec<(Descriptor, DropReason)>);

impl Drops {
    /// Adds a packet: [`DropReason::Overflow`] if the queue is full, [`DropReason::Aqm`] if the discipline drops it for
    /// another reason.
    #[inline]
    pub fn push(&mut self, packet: Descriptor, reason: DropReason) {
        self.0.push((packet, reason));
    }

    /// Returns whether nothing was dropped.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the packets and reasons, in the order in which they were dropped.
    pub fn as_slice(&self) -> &[(Descriptor, DropReason)] {
        &self.0
    }

    /// Removes and returns all packets, in the order in which they were dropped.
    pub fn drain(&mut self) -> impl Iterator<Item = (Descriptor, DropReason)> {
        self.0.drain(..)
    }
}
