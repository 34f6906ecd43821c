// SPDX-License-Identifier: MIT OR Apache-2.0
//! Strict priority by DSCP: voice before video, best effort and background. A lower class is served only while every higher one
//! is empty.

use super::classes::{CLASSES, ClassScheduler, Classes, Queues};
use super::fifo::Fifo;
use super::{QueueEntry, QueuedPacket};

pub(super) const ENTRY: QueueEntry = QueueEntry {
    name: "priority",
    summary: "strict priority of four classes by DSCP, as in RFC 8325: voice, video, best effort, background",
    limit: QueueEntry::limit(
        "300 ms",
        "the level of all classes together above which the last packet of the lowest class is dropped (RFC 8867, \
         section 4.2)",
    ),
    parameters: &[],
    build: |setup| Classes::boxed(setup.limit, Priority),
};

struct Priority;

impl ClassScheduler for Priority {
    fn victim(&self, queues: &Queues, class: usize) -> Option<usize> {
        (class + 1..CLASSES).rev().find(|lower| !queues[*lower].is_empty())
    }

    fn next(&mut self, queues: &mut Queues) -> Option<QueuedPacket> {
        queues.iter_mut().find_map(Fifo::pop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::queue::Descriptor;
    use crate::link::queue::testing::{arrive, build, leave, packet};
    use crate::records::DropReason;
    use paceline_units::{Ecn, Time};

    #[test]
    fn higher_classes_go_first_and_push_out_lower_ones() {
        let mut queue = build(&ENTRY, 5, &[]);
        let mut arrive = |id, dscp: &str| {
            let packet = Descriptor { dscp: dscp.parse().unwrap(), ..packet(id, Ecn::NotEct) };
            arrive(&mut *queue, Time::ZERO, [packet])
        };
        let dropped = |id| [(id, DropReason::Overflow)];
        for (id, dscp) in [(0, "LE"), (1, "DF"), (2, "DF"), (3, "EF"), (4, "AF41")] {
            assert_eq!(arrive(id, dscp), []);
        }
        assert_eq!(arrive(5, "EF"), dropped(0), "background first");
        assert_eq!(arrive(6, "EF"), dropped(2), "then the last of best effort");
        assert_eq!(arrive(7, "DF"), dropped(7), "no lower one");
        let (order, _) = leave(&mut *queue, Time::ZERO, 9);
        assert_eq!(order.iter().map(|queued| queued.packet.id).collect::<Vec<_>>(), [3, 5, 6, 4, 1]);
    }
}
