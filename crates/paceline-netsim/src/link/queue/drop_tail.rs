//! Drop-tail: first in, first out, with a limit. With a marking threshold, an ECN-capable packet that exceeds the
//! threshold is marked as congestion experienced (RFC 3168) and queued; other packets are not changed.

use super::{Descriptor, Discipline, Drops, LimitCheck, LinkRate, QueueEntry, QueueLimit, QueuedPacket};
use crate::parameter::{Parameter, ParameterKind};
use crate::records::DropReason;
use paceline_units::{DataSize, Ecn, Time, TimeDelta};
use std::collections::VecDeque;

pub(super) const ENTRY: QueueEntry = QueueEntry {
    name: "drop-tail",
    summary: "first in, first out; a full queue drops the arriving packet, above a mark it marks (ECN); both in time, bytes \
              or packets",
    limit: QueueEntry::limit(
        QueueLimit::DrainTime(TimeDelta::from_millis(300)),
        "300 ms",
        "the level above which an arriving packet is dropped (RFC 8867, section 4.2)",
    ),
    parameters: &[Parameter::optional(
        "mark",
        ParameterKind::Level,
        "no packet is marked",
        "the queue level above which ECN-capable packets are marked (congestion experienced) as they are queued: a drain \
         time, a size or a number of packets",
    )],
    build: |setup| Box::new(DropTail::new(setup.limit).marking(setup.values.level("mark"))),
};

/// The drop-tail queue.
#[derive(Clone, Debug)]
pub struct DropTail {
    limit: LimitCheck,
    mark: Option<LimitCheck>,
    queue: VecDeque<QueuedPacket>,
    bytes: DataSize,
}

impl DropTail {
    /// Creates an empty queue.
    pub fn new(limit: QueueLimit) -> Self {
        Self { limit: LimitCheck::of_queue(limit), mark: None, queue: VecDeque::new(), bytes: DataSize::ZERO }
    }

    /// Sets the marking threshold; `None` marks nothing.
    pub fn marking(self, mark: Option<QueueLimit>) -> Self {
        Self { mark: mark.map(LimitCheck::of_threshold), ..self }
    }
}

impl Discipline for DropTail {
    #[inline(always)]
    fn enqueue(&mut self, now: Time, rate: LinkRate<'_>, mut packet: Descriptor, drops: &mut Drops) {
        let packets = self.queue.len();
        if !self.limit.fits(self.bytes, packets, packet.size, rate) {
            return drops.push(packet, DropReason::Overflow);
        }
        if let Some(mark) = &mut self.mark
            && !mark.fits(self.bytes, packets, packet.size, rate)
            && packet.ecn.is_capable()
        {
            packet.ecn = Ecn::Ce;
        }
        self.bytes += packet.size;
        self.queue.push_back(QueuedPacket { packet, arrived: now });
    }

    #[inline]
    fn dequeue(&mut self, _: Time, _: LinkRate<'_>, _: &mut Drops) -> Option<QueuedPacket> {
        let head = self.queue.pop_front()?;
        self.bytes -= head.packet.size;
        Some(head)
    }

    fn acts_at_departure(&self) -> bool {
        false
    }

    fn set_limit(&mut self, limit: QueueLimit) {
        self.limit.set(limit);
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    fn backlog(&self) -> DataSize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::Capacity;
    use paceline_units::{Dscp, FlowId, Rate};

    /// Returns whether the queue takes a packet at this rate.
    fn is_queued(queue: &mut DropTail, packet: Descriptor, kbps: u64) -> bool {
        let (capacity, mut drops) = (Capacity::constant(Rate::from_kbps(kbps)), Drops::default());
        queue.enqueue(Time::ZERO, LinkRate::at(Some(&capacity), Time::ZERO), packet, &mut drops);
        drops.is_empty()
    }

    fn accepted(limit: QueueLimit, rates: &[u64]) -> usize {
        let mut queue = DropTail::new(limit);
        let packet = Descriptor {
            id: 0,
            flow: FlowId(0),
            size: DataSize::from_bytes(1000),
            ecn: Ecn::NotEct,
            dscp: Dscp::DEFAULT,
        };
        rates.iter().filter(|r| is_queued(&mut queue, packet, **r)).count()
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
        let mut queue = DropTail::new(QueueLimit::Packets(6)).marking(Some(mark));
        for id in 0..8 {
            let packet = Descriptor { id, flow: FlowId(0), size: DataSize::from_bytes(1000), ecn, dscp: Dscp::DEFAULT };
            assert_eq!(is_queued(&mut queue, packet, kbps), id < 6, "the limit holds");
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
