//! Deficit round robin by DSCP (Shreedhar and Varghese 1995): each of four classes sends up to its quantum in a round, in
//! proportion to its weight.

use super::classes::{CLASSES, Classes, class_of};
use super::{Descriptor, Discipline, Drops, LimitCheck, LinkRate, QueueEntry, QueueLimit, QueuedPacket};
use crate::parameter::{Parameter, ParameterKind, Value};
use crate::records::DropReason;
use paceline_units::{DataSize, Time, TimeDelta};

/// An Ethernet frame, so that a class can send a packet in each round, as in RFC 8290, section 5.2.4.
const QUANTUM: DataSize = DataSize::from_bytes(1514);

pub(super) const ENTRY: QueueEntry = QueueEntry {
    name: "drr",
    summary: "deficit round robin of four classes by DSCP, as in RFC 8325: voice, video, best effort, background",
    limit: QueueEntry::limit(
        QueueLimit::DrainTime(TimeDelta::from_millis(300)),
        "300 ms",
        "the level of all classes together above which the last packet of the longest class is dropped (RFC 8867, section 4.2)",
    ),
    parameters: &[
        Parameter::new(
            "quantum",
            ParameterKind::Size(DataSize::from_bytes(100), DataSize::from_bytes(1_000_000)),
            (Value::Size(QUANTUM), "1514 B"),
            "the bytes that a class of weight 1 sends in a round (Shreedhar and Varghese 1995; the default is that of RFC \
             8290, section 5.2.4)",
        ),
        weight("voice_weight", (Value::Count(4), "4"), "the weight of EF, VA, CS6 and CS7 (assumed)"),
        weight("video_weight", (Value::Count(4), "4"), "the weight of AF4x, AF3x, CS5, CS4 and CS3 (assumed)"),
        weight("best_effort_weight", (Value::Count(2), "2"), "the weight of all other packets (assumed)"),
        weight("background_weight", (Value::Count(1), "1"), "the weight of CS1 and LE (assumed)"),
    ],
    build: |setup| {
        let quantum = setup.values.size("quantum").as_bytes();
        let weights = ["voice_weight", "video_weight", "best_effort_weight", "background_weight"];
        Box::new(Drr {
            quanta: weights.map(|name| quantum * u64::from(setup.values.count(name))),
            deficits: [0; CLASSES],
            turn: 0,
            limit: LimitCheck::of_queue(setup.limit),
            classes: Classes::default(),
        })
    },
};

const fn weight(name: &'static str, default: (Value, &'static str), description: &'static str) -> Parameter {
    Parameter::new(name, ParameterKind::Count(1, 1000), default, description)
}

struct Drr {
    /// Bytes of each class in a round.
    quanta: [u64; CLASSES],
    /// Bytes that each class may still send in this round.
    deficits: [u64; CLASSES],
    /// The class that is served.
    turn: usize,
    limit: LimitCheck,
    classes: Classes,
}

impl Discipline for Drr {
    fn enqueue(&mut self, now: Time, rate: LinkRate<'_>, packet: Descriptor, drops: &mut Drops) {
        let class = class_of(packet.dscp);
        while !self.classes.has_room(&mut self.limit, packet.size, rate) {
            let bytes = |class: &usize| self.classes.queues[*class].bytes();
            let longest = (0..CLASSES).max_by_key(bytes).filter(|longest| bytes(longest) > bytes(&class));
            match longest.and_then(|longest| self.classes.pop_last(longest)) {
                Some(last) => drops.push(last.packet, DropReason::Overflow),
                None => return drops.push(packet, DropReason::Overflow),
            }
        }
        self.classes.queues[class].push(now, packet);
    }

    fn dequeue(&mut self, _: Time, _: LinkRate<'_>, _: &mut Drops) -> Option<QueuedPacket> {
        if self.classes.is_empty() {
            return None;
        }
        loop {
            let (queue, deficit) = (&mut self.classes.queues[self.turn], &mut self.deficits[self.turn]);
            match queue.front().map(|head| head.packet.size.as_bytes()) {
                Some(size) if size <= *deficit => {
                    *deficit -= size;
                    let next = queue.pop();
                    if queue.is_empty() {
                        *deficit = 0;
                    }
                    return next;
                }
                Some(_) => {}
                None => *deficit = 0,
            }
            self.turn = (self.turn + 1) % CLASSES;
            if !self.classes.queues[self.turn].is_empty() {
                self.deficits[self.turn] += self.quanta[self.turn];
            }
        }
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
    use crate::link::MTU;
    use crate::link::queue::QueuePlan;
    use crate::parameter::Values;
    use paceline_units::{Ecn, FlowId, RandomStreams};

    fn queue(limit: u32) -> Box<dyn Discipline> {
        let values = Values::new(ENTRY.parameters, &[]);
        let plan = QueuePlan { discipline: &ENTRY, limit: QueueLimit::Packets(limit), values };
        plan.build(&RandomStreams::new(1), "hop/test", MTU)
    }

    fn packet(id: u32, dscp: &str, bytes: u64) -> Descriptor {
        let (flow, size) = (FlowId(0), DataSize::from_bytes(bytes));
        Descriptor { id, flow, size, ecn: Ecn::NotEct, dscp: dscp.parse().unwrap() }
    }

    #[test]
    fn backlogged_classes_share_by_weight_whatever_their_packet_sizes() {
        let mut queue = queue(100_000);
        let (mut drops, now) = (Drops::default(), Time::ZERO);
        for id in 0..2000 {
            for (dscp, bytes) in [("EF", 200), ("AF41", 1500), ("DF", 700), ("LE", 1500)] {
                for _ in 0..(1500 / bytes) {
                    queue.enqueue(now, LinkRate::at(None, now), packet(id, dscp, bytes), &mut drops);
                }
            }
        }
        let mut bytes = [0.0; CLASSES];
        while bytes.iter().sum::<f64>() < 4e6 {
            let left = queue.dequeue(now, LinkRate::at(None, now), &mut drops).unwrap();
            bytes[class_of(left.packet.dscp)] += left.packet.size.as_bytes() as f64;
        }
        for (sent, share) in bytes.iter().zip([4.0, 4.0, 2.0, 1.0]) {
            assert!((sent / 4e6 / (share / 11.0) - 1.0).abs() < 0.01, "{bytes:?}");
        }
        assert!(drops.is_empty());
    }

    #[test]
    fn the_longest_class_loses_its_last_packet() {
        let mut queue = queue(4);
        let (mut drops, now) = (Drops::default(), Time::ZERO);
        for (id, dscp, bytes) in [(0, "DF", 500), (1, "DF", 500), (2, "EF", 600), (3, "DF", 500), (4, "EF", 100)] {
            queue.enqueue(now, LinkRate::at(None, now), packet(id, dscp, bytes), &mut drops);
        }
        assert_eq!(drops.drain().map(|(packet, _)| packet.id).collect::<Vec<_>>(), [3]);
        queue.enqueue(now, LinkRate::at(None, now), packet(5, "DF", 500), &mut drops);
        assert_eq!(drops.drain().map(|(packet, _)| packet.id).collect::<Vec<_>>(), [5], "its own class is the longest");
        assert_eq!((queue.backlog(), queue.is_empty()), (DataSize::from_bytes(1700), false));
    }
}
