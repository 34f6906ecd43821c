// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waiting packets in order of arrival, with their bytes.

use super::{Descriptor, QueuedPacket};
use paceline_units::{DataSize, Time, TimeDelta};
use std::collections::VecDeque;

/// A first-in, first-out queue without a limit.
#[derive(Clone, Debug, Default)]
pub struct Fifo {
    packets: VecDeque<QueuedPacket>,
    bytes: DataSize,
}

impl Fifo {
    /// Adds a packet that arrives at `now`.
    #[inline]
    pub fn push(&mut self, now: Time, packet: Descriptor) {
        self.bytes += packet.size;
        self.packets.push_back(QueuedPacket { packet, arrived: now });
    }

    /// Removes the first packet.
    #[inline]
    pub fn pop(&mut self) -> Option<QueuedPacket> {
        let head = self.packets.pop_front()?;
        self.bytes -= head.packet.size;
        Some(head)
    }

    /// Removes the packet that arrived last.
    pub fn pop_last(&mut self) -> Option<QueuedPacket> {
        let tail = self.packets.pop_back()?;
        self.bytes -= tail.packet.size;
        Some(tail)
    }

    /// Returns the first packet.
    pub fn front(&self) -> Option<&QueuedPacket> {
        self.packets.front()
    }

    /// Returns the time for which the first packet has waited; zero if the queue is empty.
    pub fn head_delay(&self, now: Time) -> TimeDelta {
        self.packets.front().map_or(TimeDelta::ZERO, |head| now - head.arrived)
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Returns the sum of the sizes.
    #[inline]
    pub fn bytes(&self) -> DataSize {
        self.bytes
    }
}
