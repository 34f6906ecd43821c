// SPDX-License-Identifier: MIT OR Apache-2.0
//! One FIFO queue with a limit, whose packets an algorithm marks and drops.

use super::fifo::Fifo;
use super::{Descriptor, Discipline, Drops, LimitCheck, LinkRate, QueueLimit, QueuedPacket};
use crate::records::DropReason;
use paceline_units::{DataSize, Time};

/// Marks and drops the packets of a FIFO queue.
pub trait Aqm: Send + 'static {
    /// Whether the limit is checked before [`admits`](Self::admits).
    const CHECKS_LIMIT_FIRST: bool = true;
    /// Whether [`next`](Self::next) may drop packets.
    const DROPS_AT_DEPARTURE: bool = false;

    /// Returns whether an arriving packet is queued. It may mark the packet.
    #[inline]
    fn admits(&mut self, now: Time, rate: LinkRate<'_>, queue: &Fifo, packet: &mut Descriptor) -> bool {
        let _ = (now, rate, queue, packet);
        true
    }

    /// Removes the packet to serve at `now`. It may mark this packet, and drop others.
    #[inline]
    fn next(&mut self, now: Time, rate: LinkRate<'_>, queue: &mut Fifo, drops: &mut Drops) -> Option<QueuedPacket> {
        let _ = (now, rate, drops);
        queue.pop()
    }
}

/// A FIFO queue with a limit. A full queue drops the arriving packet.
#[derive(Clone, Debug)]
pub struct Single<A> {
    limit: LimitCheck,
    queue: Fifo,
    aqm: A,
}

impl<A: Aqm> Single<A> {
    /// Creates an empty queue.
    pub fn with(limit: QueueLimit, aqm: A) -> Self {
        Self { limit: LimitCheck::of_queue(limit), queue: Fifo::default(), aqm }
    }

    #[inline(always)]
    fn has_room(&mut self, packet: &Descriptor, rate: LinkRate<'_>) -> bool {
        self.limit.fits(self.queue.bytes(), self.queue.len(), packet.size, rate)
    }
}

impl<A: Aqm> Discipline for Single<A> {
    #[inline(always)]
    fn enqueue(&mut self, now: Time, rate: LinkRate<'_>, mut packet: Descriptor, drops: &mut Drops) {
        if A::CHECKS_LIMIT_FIRST && !self.has_room(&packet, rate) {
            return drops.push(packet, DropReason::Overflow);
        }
        if !self.aqm.admits(now, rate, &self.queue, &mut packet) {
            return drops.push(packet, DropReason::Aqm);
        }
        if !A::CHECKS_LIMIT_FIRST && !self.has_room(&packet, rate) {
            return drops.push(packet, DropReason::Overflow);
        }
        self.queue.push(now, packet);
    }

    #[inline]
    fn dequeue(&mut self, now: Time, rate: LinkRate<'_>, drops: &mut Drops) -> Option<QueuedPacket> {
        self.aqm.next(now, rate, &mut self.queue, drops)
    }

    fn acts_at_departure(&self) -> bool {
        A::DROPS_AT_DEPARTURE
    }

    fn set_limit(&mut self, limit: QueueLimit) {
        self.limit.set(limit);
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    fn backlog(&self) -> DataSize {
        self.queue.bytes()
    }
}
