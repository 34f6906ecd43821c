// SPDX-License-Identifier: MIT OR Apache-2.0
//! A queue for packets that are worthless after a while: at departure it drops those that have waited too long, and a full
//! queue drops its oldest packet in favour of the arriving one.

use super::fifo::Fifo;
use super::{Descriptor, Discipline, Drops, LimitCheck, LinkRate, QueueEntry, QueueLimit, QueuedPacket};
use crate::parameter::{Parameter, ParameterKind};
use crate::records::DropReason;
use paceline_units::{DataSize, Time, TimeDelta};

const LONGEST_WAIT: ParameterKind = ParameterKind::Time(TimeDelta::ZERO, TimeDelta::from_secs(60));

pub(super) const ENTRY: QueueEntry = QueueEntry {
    name: "expiry",
    summary: "first in, first out; drops packets that have waited too long",
    limit: QueueEntry::limit("100 packets", "the most packets (assumed)"),
    parameters: &[Parameter::new("longest_wait", LONGEST_WAIT, "40 ms")
        .about("the time after which a packet is dropped when it would leave (assumed)")],
    build: |setup| {
        let (limit, longest_wait) = (LimitCheck::of_queue(setup.limit), setup.values.time("longest_wait"));
        Box::new(Expiry { limit, longest_wait, queue: Fifo::default() })
    },
};

struct Expiry {
    limit: LimitCheck,
    longest_wait: TimeDelta,
    queue: Fifo,
}

impl Discipline for Expiry {
    fn enqueue(&mut self, now: Time, rate: LinkRate<'_>, packet: Descriptor, drops: &mut Drops) {
        while !self.limit.fits(self.queue.bytes(), self.queue.len(), packet.size, rate) {
            match self.queue.pop() {
                Some(oldest) => drops.push(oldest.packet, DropReason::Overflow),
                None => return drops.push(packet, DropReason::Overflow),
            }
        }
        self.queue.push(now, packet);
    }

    fn dequeue(&mut self, now: Time, _: LinkRate<'_>, drops: &mut Drops) -> Option<QueuedPacket> {
        while let Some(head) = self.queue.pop() {
            if now - head.arrived <= self.longest_wait {
                return Some(head);
            }
            drops.push(head.packet, DropReason::Aqm);
        }
        None
    }

    fn set_limit(&mut self, limit: QueueLimit) {
        self.limit.set(limit);
    }

    fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    fn backlog(&self) -> DataSize {
        self.queue.bytes()
    }
}
