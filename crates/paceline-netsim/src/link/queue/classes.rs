// SPDX-License-Identifier: MIT OR Apache-2.0
//! Four classes of packets by DSCP, as those of Wi-Fi (RFC 8325, section 4.3, figure 1), each with a FIFO queue.

use super::fifo::Fifo;
use super::{Descriptor, Discipline, Drops, LimitCheck, LinkRate, QueueLimit, QueuedPacket};
use crate::records::DropReason;
use paceline_units::{DataSize, Dscp, Time};

pub(super) const CLASSES: usize = 4;

/// Returns the class of a packet: 0 voice, 1 video, 2 best effort, 3 background.
pub(super) fn class_of(dscp: Dscp) -> usize {
    match dscp.bits() {
        // EF, VA, CS6, CS7.
        46 | 44 | 48 | 56 => 0,
        // CS5, AF4x, CS4, AF3x, CS3.
        40 | 34 | 36 | 38 | 32 | 26 | 28 | 30 | 24 => 1,
        // CS1, and LE (RFC 8622, section 8).
        8 | 1 => 3,
        _ => 2,
    }
}

/// Serves the classes, and chooses what a full queue drops.
pub(super) trait ClassScheduler: Send + 'static {
    /// Returns the class that loses its last packet for one that arrives in `class`; `None` if the arriving one is dropped.
    fn victim(&self, queues: &Queues, class: usize) -> Option<usize>;
    /// Removes the packet to serve next.
    fn next(&mut self, queues: &mut Queues) -> Option<QueuedPacket>;
}

pub(super) type Queues = [Fifo; CLASSES];

/// A queue for each class, with a limit for all together.
pub(super) struct Classes<S> {
    limit: LimitCheck,
    queues: Queues,
    scheduler: S,
}

impl<S: ClassScheduler> Classes<S> {
    pub fn boxed(limit: QueueLimit, scheduler: S) -> Box<dyn Discipline> {
        Box::new(Self { limit: LimitCheck::of_queue(limit), queues: Queues::default(), scheduler })
    }
}

impl<S: ClassScheduler> Discipline for Classes<S> {
    fn enqueue(&mut self, now: Time, rate: LinkRate<'_>, packet: Descriptor, drops: &mut Drops) {
        let class = class_of(packet.dscp);
        while !self.limit.fits(self.backlog(), self.queues.iter().map(Fifo::len).sum(), packet.size, rate) {
            let victim = self.scheduler.victim(&self.queues, class);
            match victim.and_then(|victim| self.queues[victim].pop_last()) {
                Some(last) => drops.push(last.packet, DropReason::Overflow),
                None => return drops.push(packet, DropReason::Overflow),
            }
        }
        self.queues[class].push(now, packet);
    }

    fn dequeue(&mut self, _: Time, _: LinkRate<'_>, _: &mut Drops) -> Option<QueuedPacket> {
        self.scheduler.next(&mut self.queues)
    }

    fn set_limit(&mut self, limit: QueueLimit) {
        self.limit.set(limit);
    }

    fn is_empty(&self) -> bool {
        self.queues.iter().all(Fifo::is_empty)
    }

    fn backlog(&self) -> DataSize {
        self.queues.iter().map(Fifo::bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codepoints_are_in_the_classes_of_rfc_8325() {
        let of = |names: &[&str]| names.iter().map(|name| class_of(name.parse().unwrap())).collect::<Vec<_>>();
        assert_eq!(of(&["EF", "VA", "CS6", "CS7"]), [0; 4]);
        assert_eq!(of(&["CS5", "AF41", "AF42", "AF43", "CS4", "AF31", "AF32", "AF33", "CS3"]), [1; 9]);
        assert_eq!(of(&["DF", "AF21", "AF23", "CS2", "AF11", "AF13", "63"]), [2; 7]);
        assert_eq!(of(&["CS1", "LE"]), [3; 2]);
    }
}
