//! A queue for packets that are worthless after a while: at departure it drops those that have waited too long, and a full
//! queue drops its oldest packet in favour of the arriving one.

use super::{Descriptor, Discipline, Drops, LimitCheck, LinkRate, QueueEntry, QueueLimit, QueuedPacket};
use crate::parameter::{Parameter, ParameterKind, Value};
use crate::records::DropReason;
use paceline_units::{DataSize, Time, TimeDelta};
use std::collections::VecDeque;

/// The longest interval between interactive frames that a viewer accepts; assumed.
const LONGEST_WAIT: TimeDelta = TimeDelta::from_millis(40);

pub(super) const ENTRY: QueueEntry = QueueEntry {
    name: "expiry",
    summary: "first in, first out; drops packets that have waited too long",
    limit: QueueEntry::limit(QueueLimit::Packets(100), "100 packets", "the most packets (assumed)"),
    parameters: &[Parameter::new(
        "longest_wait",
        ParameterKind::Time(TimeDelta::ZERO, TimeDelta::from_secs(60)),
        (Value::Time(LONGEST_WAIT), "40 ms"),
        "the time after which a packet is dropped when it would leave (assumed)",
    )],
    build: |setup| {
        let (limit, longest_wait) = (LimitCheck::of_queue(setup.limit), setup.values.time("longest_wait"));
        Box::new(Expiry { limit, longest_wait, queue: VecDeque::new(), bytes: DataSize::ZERO })
    },
};

struct Expiry {
    limit: LimitCheck,
    longest_wait: TimeDelta,
    queue: VecDeque<QueuedPacket>,
    bytes: DataSize,
}

impl Expiry {
    fn pop(&mut self) -> Option<QueuedPacket> {
        let head = self.queue.pop_front()?;
        self.bytes -= head.packet.size;
        Some(head)
    }
}

impl Discipline for Expiry {
    fn enqueue(&mut self, now: Time, rate: LinkRate<'_>, packet: Descriptor, drops: &mut Drops) {
        while !self.limit.fits(self.bytes, self.queue.len(), packet.size, rate) {
            match self.pop() {
                Some(oldest) => drops.push(oldest.packet, DropReason::Overflow),
                None => return drops.push(packet, DropReason::Overflow),
            }
        }
        self.bytes += packet.size;
        self.queue.push_back(QueuedPacket { packet, arrived: now });
    }

    fn dequeue(&mut self, now: Time, _: LinkRate<'_>, drops: &mut Drops) -> Option<QueuedPacket> {
        while let Some(head) = self.pop() {
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
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_guide_shows_this_file() {
        let (example, _) = include_str!("expiry.rs").split_once("\n#[cfg(test)]").unwrap();
        assert!(
            include_str!("../../../../../docs/how-to/queue.md").contains(example),
            "docs/how-to/queue.md is out of date"
        );
    }
}
