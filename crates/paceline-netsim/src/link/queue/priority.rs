//! Strict priority by DSCP: voice before video, best effort and background. A lower class is served only while every higher one
//! is empty.

use super::classes::{CLASSES, Classes, class_of};
use super::{Descriptor, Discipline, Drops, LimitCheck, LinkRate, QueueEntry, QueueLimit, QueuedPacket};
use crate::records::DropReason;
use paceline_units::{DataSize, Time, TimeDelta};

pub(super) const ENTRY: QueueEntry = QueueEntry {
    name: "priority",
    summary: "strict priority of four classes by DSCP, as in RFC 8325: voice, video, best effort, background",
    limit: QueueEntry::limit(
        QueueLimit::DrainTime(TimeDelta::from_millis(300)),
        "300 ms",
        "the level of all classes together above which the last packet of the lowest class is dropped (RFC 8867, section 4.2)",
    ),
    parameters: &[],
    build: |setup| Box::new(Priority { limit: LimitCheck::of_queue(setup.limit), classes: Classes::default() }),
};

struct Priority {
    limit: LimitCheck,
    classes: Classes,
}

impl Discipline for Priority {
    fn enqueue(&mut self, now: Time, rate: LinkRate<'_>, packet: Descriptor, drops: &mut Drops) {
        let class = class_of(packet.dscp);
        while !self.classes.has_room(&mut self.limit, packet.size, rate) {
            let lowest = (class + 1..CLASSES).rev().find_map(|lower| self.classes.pop_last(lower));
            match lowest {
                Some(lower) => drops.push(lower.packet, DropReason::Overflow),
                None => return drops.push(packet, DropReason::Overflow),
            }
        }
        self.classes.queues[class].push(now, packet);
    }

    fn dequeue(&mut self, _: Time, _: LinkRate<'_>, _: &mut Drops) -> Option<QueuedPacket> {
        self.classes.queues.iter_mut().find_map(super::fifo::Fifo::pop)
    }

    fn set_limit(&mut self, limit: QueueLimit) {
        self.limit.set(limit);
    }

    fn is_empty(&self) -> bool {
        self.classes.is_empty()
    }

    fn backlog(&self) -> DataSize {
        self.classes.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_units::{Ecn, FlowId};

    fn packet(id: u32, dscp: &str) -> Descriptor {
        let size = DataSize::from_bytes(1000);
        Descriptor { id, flow: FlowId(0), size, ecn: Ecn::NotEct, dscp: dscp.parse().unwrap() }
    }

    #[test]
    fn higher_classes_go_first_and_push_out_lower_ones() {
        let limit = LimitCheck::of_queue(QueueLimit::Packets(5));
        let mut queue = Priority { limit, classes: Classes::default() };
        let (mut drops, now) = (Drops::default(), Time::ZERO);
        let mut arrive = |id, dscp| {
            queue.enqueue(now, LinkRate::at(None, now), packet(id, dscp), &mut drops);
            drops.drain().map(|(packet, reason)| (packet.id, reason)).next()
        };
        let dropped = |id| Some((id, DropReason::Overflow));
        for (id, dscp) in [(0, "LE"), (1, "DF"), (2, "DF"), (3, "EF"), (4, "AF41")] {
            assert_eq!(arrive(id, dscp), None);
        }
        assert_eq!(arrive(5, "EF"), dropped(0), "background first");
        assert_eq!(arrive(6, "EF"), dropped(2), "then the last of best effort");
        assert_eq!(arrive(7, "DF"), dropped(7), "no lower one");
        let order = std::iter::from_fn(|| queue.dequeue(now, LinkRate::at(None, now), &mut drops));
        assert_eq!(order.map(|queued| queued.packet.id).collect::<Vec<_>>(), [3, 5, 6, 4, 1]);
    }
}
