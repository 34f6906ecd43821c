// SPDX-License-Identifier: MIT OR Apache-2.0
//! Deficit round robin by DSCP (Shreedhar and Varghese 1995): each of four classes sends up to its quantum in a round, in
//! proportion to its weight.

use super::classes::{CLASSES, ClassScheduler, Classes, Queues};
use super::fifo::Fifo;
use super::{QueueEntry, QueuedPacket};
use crate::parameter::{Parameter, ParameterKind};
use paceline_units::DataSize;

pub(super) const ENTRY: QueueEntry = QueueEntry {
    name: "drr",
    summary: "deficit round robin of four classes by DSCP, as in RFC 8325: voice, video, best effort, background",
    limit: QueueEntry::limit(
        "300 ms",
        "the level of all classes together above which the last packet of the longest class is dropped (RFC 8867, \
         section 4.2)",
    ),
    parameters: &[
        Parameter::new(
            "quantum",
            ParameterKind::Size(DataSize::from_bytes(100), DataSize::from_bytes(1_000_000)),
            "1514 B",
        )
        .about(
            "the bytes that a class of weight 1 sends in a round (Shreedhar and Varghese 1995; the default is that of \
             RFC 8290, section 5.2.4)",
        ),
        Parameter::new("voice_weight", WEIGHT, "4").about("the weight of EF, VA, CS6 and CS7 (assumed)"),
        Parameter::new("video_weight", WEIGHT, "4").about("the weight of AF4x, AF3x, CS5, CS4 and CS3 (assumed)"),
        Parameter::new("best_effort_weight", WEIGHT, "2").about("the weight of all other packets (assumed)"),
        Parameter::new("background_weight", WEIGHT, "1").about("the weight of CS1 and LE (assumed)"),
    ],
    build: |setup| {
        let quantum = setup.values.size("quantum").as_bytes();
        let weights = ["voice_weight", "video_weight", "best_effort_weight", "background_weight"];
        let quanta = weights.map(|name| quantum * u64::from(setup.values.count(name)));
        Classes::boxed(setup.limit, Drr { quanta, deficits: [0; CLASSES], turn: 0 })
    },
};

const WEIGHT: ParameterKind = ParameterKind::Count(1, 1000);

struct Drr {
    /// Bytes of each class in a round.
    quanta: [u64; CLASSES],
    /// Bytes that each class may still send in this round.
    deficits: [u64; CLASSES],
    /// The class that is served.
    turn: usize,
}

impl ClassScheduler for Drr {
    /// The longest class, if it is longer than that of the packet.
    fn victim(&self, queues: &Queues, class: usize) -> Option<usize> {
        let bytes = |class: &usize| queues[*class].bytes();
        (0..CLASSES).max_by_key(bytes).filter(|longest| bytes(longest) > bytes(&class))
    }

    fn next(&mut self, queues: &mut Queues) -> Option<QueuedPacket> {
        if queues.iter().all(Fifo::is_empty) {
            return None;
        }
        loop {
            let (queue, deficit) = (&mut queues[self.turn], &mut self.deficits[self.turn]);
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
            if !queues[self.turn].is_empty() {
                self.deficits[self.turn] += self.quanta[self.turn];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::queue::Descriptor;
    use crate::link::queue::classes::class_of;
    use crate::link::queue::testing::{self, arrive, build, leave};
    use paceline_units::{Ecn, Time};

    fn packet((id, dscp, bytes): (u32, &str, u64)) -> Descriptor {
        let (size, dscp) = (DataSize::from_bytes(bytes), dscp.parse().unwrap());
        Descriptor { size, dscp, ..testing::packet(id, Ecn::NotEct) }
    }

    #[test]
    fn backlogged_classes_share_by_weight_whatever_their_packet_sizes() {
        let mut queue = build(&ENTRY, 100_000, &[]);
        for id in 0..2000 {
            for (dscp, bytes) in [("EF", 200), ("AF41", 1500), ("DF", 700), ("LE", 1500)] {
                let packets = (0..1500 / bytes).map(|_| packet((id, dscp, bytes)));
                assert_eq!(arrive(&mut *queue, Time::ZERO, packets), []);
            }
        }
        let mut bytes = [0.0; CLASSES];
        while bytes.iter().sum::<f64>() < 4e6 {
            let left = leave(&mut *queue, Time::ZERO, 1).0[0].packet;
            bytes[class_of(left.dscp)] += left.size.as_bytes() as f64;
        }
        for (sent, share) in bytes.iter().zip([4.0, 4.0, 2.0, 1.0]) {
            assert!((sent / 4e6 / (share / 11.0) - 1.0).abs() < 0.01, "{bytes:?}");
        }
    }

    #[test]
    fn the_longest_class_loses_its_last_packet() {
        let mut queue = build(&ENTRY, 4, &[]);
        let mut dropped = |packets: &[(u32, &str, u64)]| {
            let dropped = arrive(&mut *queue, Time::ZERO, packets.iter().copied().map(packet));
            dropped.iter().map(|(id, _)| *id).collect::<Vec<_>>()
        };
        assert_eq!(dropped(&[(0, "DF", 500), (1, "DF", 500), (2, "EF", 600), (3, "DF", 500), (4, "EF", 100)]), [3]);
        assert_eq!(dropped(&[(5, "DF", 500)]), [5], "its own class is the longest");
        assert_eq!((queue.backlog(), queue.is_empty()), (DataSize::from_bytes(1700), false));
    }
}
