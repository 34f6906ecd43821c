// SPDX-License-Identifier: MIT OR Apache-2.0
//! Drop-tail: first in, first out, with a limit. With a marking threshold, an ECN-capable packet that exceeds the
//! threshold is marked as congestion experienced (RFC 3168) and queued; other packets are not changed.

use super::fifo::Fifo;
use super::single::{Aqm, Single};
use super::{Descriptor, LimitCheck, LinkRate, QueueEntry, QueueLimit};
use crate::parameter::{Parameter, ParameterKind};
use paceline_units::{Ecn, Time};

pub(super) const ENTRY: QueueEntry = QueueEntry {
    name: "drop-tail",
    summary: "first in, first out; a full queue drops the arriving packet, above a mark it marks (ECN); both in time, bytes \
              or packets",
    limit: QueueEntry::limit("300 ms", "the level above which an arriving packet is dropped (RFC 8867, section 4.2)"),
    parameters: &[Parameter::optional("mark", ParameterKind::Level, "no packet is marked").about(
        "the queue level above which ECN-capable packets are marked (congestion experienced) as they are queued: a \
         drain time, a size or a number of packets",
    )],
    build: |setup| Box::new(DropTail::marking(setup.limit, setup.values.level("mark"))),
};

/// The drop-tail queue.
pub type DropTail = Single<Mark>;

/// Marks ECN-capable packets that exceed a threshold as they arrive.
#[derive(Clone, Debug)]
pub struct Mark(Option<LimitCheck>);

impl DropTail {
    /// Creates an empty queue.
    pub fn new(limit: QueueLimit) -> Self {
        Self::marking(limit, None)
    }

    /// Creates an empty queue with a marking threshold; `None` marks nothing.
    pub fn marking(limit: QueueLimit, mark: Option<QueueLimit>) -> Self {
        Self::with(limit, Mark(mark.map(LimitCheck::of_threshold)))
    }
}

impl Aqm for Mark {
    #[inline(always)]
    fn admits(&mut self, _: Time, rate: LinkRate<'_>, queue: &Fifo, packet: &mut Descriptor) -> bool {
        if let Some(mark) = &mut self.0
            && !mark.fits(queue.bytes(), queue.len(), packet.size, rate)
            && packet.ecn.is_capable()
        {
            packet.ecn = Ecn::Ce;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::Capacity;
    use crate::link::queue::{Discipline, Drops, testing};
    use paceline_units::{DataSize, Rate, TimeDelta};

    fn packet(ecn: Ecn) -> Descriptor {
        Descriptor { size: DataSize::from_bytes(1000), ..testing::packet(0, ecn) }
    }

    /// Returns whether the queue takes a packet at this rate.
    fn is_queued(queue: &mut DropTail, packet: Descriptor, kbps: u64) -> bool {
        let (capacity, mut drops) = (Capacity::constant(Rate::from_kbps(kbps)), Drops::default());
        queue.enqueue(Time::ZERO, LinkRate::at(Some(&capacity), Time::ZERO), packet, &mut drops);
        drops.is_empty()
    }

    fn accepted(limit: QueueLimit, rates: &[u64]) -> usize {
        let mut queue = DropTail::new(limit);
        rates.iter().filter(|r| is_queued(&mut queue, packet(Ecn::NotEct), **r)).count()
    }

    #[test]
    fn limits_are_exact_to_the_byte() {
        assert_eq!(accepted(QueueLimit::Bytes(DataSize::from_bytes(3000)), &[1; 9]), 3);
        assert_eq!(accepted(QueueLimit::Bytes(DataSize::from_bytes(2999)), &[1; 9]), 2);
        assert_eq!(accepted(QueueLimit::Packets(4), &[1; 9]), 4);
        // 300 ms at 80 kbps are 3000 bytes; at 160 kbps, 6000; an outage keeps the last limit.
        let time = QueueLimit::DrainTime(TimeDelta::from_millis(300));
        assert_eq!(accepted(time, &[80; 9]), 3);
        assert_eq!(accepted(time, &[80, 80, 80, 80, 160, 160, 0, 0, 0]), 6);
        assert_eq!(accepted(time, &[160, 160, 160, 160, 80, 80]), 4);
        assert_eq!(accepted(time, &[8; 9]), 1, "one packet always fits");
    }

    /// ECN fields of packets of 1000 bytes after a marking queue; all arrive at once.
    fn marked(mark: QueueLimit, ecn: Ecn, kbps: u64) -> Vec<Ecn> {
        let mut queue = DropTail::marking(QueueLimit::Packets(6), Some(mark));
        for id in 0..8 {
            assert_eq!(is_queued(&mut queue, packet(ecn), kbps), id < 6, "the limit holds");
        }
        let mut dequeue = || queue.dequeue(Time::ZERO, LinkRate::at(None, Time::ZERO), &mut Drops::default());
        core::iter::from_fn(&mut dequeue).map(|queued| queued.packet.ecn).collect()
    }

    #[test]
    fn marks_packets_above_the_threshold() {
        let bytes = |n| QueueLimit::Bytes(DataSize::from_bytes(n));
        let time = |ms| QueueLimit::DrainTime(TimeDelta::from_millis(ms));
        for (mark, kbps, unmarked) in [
            (bytes(3000), 1, 3),
            (bytes(2999), 1, 2),
            (QueueLimit::Packets(4), 1, 4),
            (bytes(6000), 1, 6),
            // 300 ms at 80 kbps are 3000 bytes.
            (time(300), 80, 3),
            (time(299), 80, 2),
            // Below the size of a packet: every packet is marked, where a queue limit would pass one.
            (time(100), 80, 1),
            (time(99), 80, 0),
        ] {
            for ecn in [Ecn::Ect0, Ecn::Ect1] {
                let expected: Vec<Ecn> = (0..6).map(|n| if n < unmarked { ecn } else { Ecn::Ce }).collect();
                assert_eq!(marked(mark, ecn, kbps), expected, "{mark:?}");
            }
            assert_eq!(marked(mark, Ecn::NotEct, kbps), [Ecn::NotEct; 6], "{mark:?}");
            assert_eq!(marked(mark, Ecn::Ce, kbps), [Ecn::Ce; 6], "{mark:?}");
        }
    }
}
