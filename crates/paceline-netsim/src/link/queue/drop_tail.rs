//! Drop-tail: first in, first out, with a limit. With a marking threshold, an ECN-capable packet that exceeds the
//! threshold is marked as congestion experienced (RFC 3168) and queued; other packets are not changed.

use super::{Descriptor, Discipline, QueuedPacket};
use paceline_records::DropReason;
use paceline_units::{DataSize, Ecn, Rate, Time, TimeDelta};
use std::collections::VecDeque;

/// A limit on the queued packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropTailLimit {
    /// Bytes.
    Bytes(DataSize),
    /// Packets.
    Packets(u32),
    /// The bytes that the link drains in this time at its rate when a packet arrives. The limit in bytes follows every
    /// change of capacity. Queued packets stay; an outage keeps the limit that was in force before it.
    /// As a queue limit it is at least 1500 bytes; as a marking threshold it has no minimum.
    DrainTime(TimeDelta),
}

/// The drop-tail queue.
#[derive(Debug)]
pub struct DropTail {
    limit: ByteLimit,
    mark: Option<ByteLimit>,
    queue: VecDeque<QueuedPacket>,
    bytes: DataSize,
}

/// Minimum of a drain-time limit: a queue without room for one packet would pass none.
const PACKET: DataSize = DataSize::from_bytes(1500);

/// A limit and its current value in bytes.
#[derive(Debug)]
struct ByteLimit {
    limit: DropTailLimit,
    /// Minimum of a drain-time limit, bytes.
    least: DataSize,
    /// The last rate above zero, for [`DropTailLimit::DrainTime`].
    rate: Rate,
    /// The limit in bytes at `rate`.
    limit_at_rate: DataSize,
}

impl DropTail {
    /// Creates an empty queue.
    pub fn new(limit: DropTailLimit) -> Self {
        Self { limit: ByteLimit::new(limit, PACKET), mark: None, queue: VecDeque::new(), bytes: DataSize::ZERO }
    }

    /// Sets the marking threshold; `None` marks nothing.
    pub fn marking(self, mark: Option<DropTailLimit>) -> Self {
        Self { mark: mark.map(|mark| ByteLimit::new(mark, DataSize::ZERO)), ..self }
    }
}

impl ByteLimit {
    fn new(limit: DropTailLimit, least: DataSize) -> Self {
        Self { limit, least, rate: Rate::ZERO, limit_at_rate: DataSize::ZERO }
    }

    /// Returns whether a packet of `size` stays within the limit while this many bytes and packets are queued.
    fn fits(&mut self, queued: (DataSize, usize), size: DataSize, rate: Rate) -> bool {
        let (bytes, packets) = queued;
        match self.limit {
            DropTailLimit::Bytes(limit) => bytes + size <= limit,
            DropTailLimit::Packets(limit) => packets < limit as usize,
            DropTailLimit::DrainTime(time) => {
                if rate != self.rate && !rate.is_zero() {
                    self.rate = rate;
                    self.limit_at_rate = (rate * time).max(self.least);
                }
                bytes + size <= self.limit_at_rate
            }
        }
    }
}

impl Discipline for DropTail {
    fn enqueue(&mut self, now: Time, mut packet: Descriptor, rate: Rate) -> Result<(), DropReason> {
        let queued = (self.bytes, self.queue.len());
        if !self.limit.fits(queued, packet.size, rate) {
            return Err(DropReason::Overflow);
        }
        if let Some(mark) = &mut self.mark
            && !mark.fits(queued, packet.size, rate)
            && packet.ecn.is_capable()
        {
            packet.ecn = Ecn::Ce;
        }
        self.bytes += packet.size;
        self.queue.push_back(QueuedPacket { packet, arrived: now });
        Ok(())
    }

    fn dequeue(&mut self, _: Time, _: &mut Vec<QueuedPacket>) -> Option<QueuedPacket> {
        let head = self.queue.pop_front()?;
        self.bytes -= head.packet.size;
        Some(head)
    }

    fn set_limit(&mut self, limit: DropTailLimit) {
        let rate = self.limit.rate;
        self.limit = ByteLimit::new(limit, PACKET);
        if let DropTailLimit::DrainTime(time) = limit {
            // During an outage no later arrival sets the rate.
            self.limit.rate = rate;
            self.limit.limit_at_rate = (rate * time).max(PACKET);
        }
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
    use super::*;
    use paceline_units::{Ecn, FlowId};

    fn accepted(limit: DropTailLimit, rates: &[u64]) -> usize {
        let mut queue = DropTail::new(limit);
        let packet = Descriptor { id: 0, flow: FlowId(0), size: DataSize::from_bytes(1000), ecn: Ecn::NotEct };
        rates.iter().filter(|r| queue.enqueue(Time::ZERO, packet, Rate::from_kbps(**r)).is_ok()).count()
    }

    #[test]
    fn limits_are_exact_to_the_byte() {
        assert_eq!(accepted(DropTailLimit::Bytes(DataSize::from_bytes(3000)), &[1; 9]), 3);
        assert_eq!(accepted(DropTailLimit::Bytes(DataSize::from_bytes(2999)), &[1; 9]), 2);
        assert_eq!(accepted(DropTailLimit::Packets(4), &[1; 9]), 4);
        // 300 ms at 80 kbps are 3000 bytes; at 160 kbps, 6000; an outage keeps the last limit.
        let time = DropTailLimit::DrainTime(TimeDelta::from_millis(300));
        assert_eq!(accepted(time, &[80; 9]), 3);
        assert_eq!(accepted(time, &[80, 80, 80, 80, 160, 160, 0, 0, 0]), 6);
        assert_eq!(accepted(time, &[160, 160, 160, 160, 80, 80]), 4);
        assert_eq!(accepted(time, &[8; 9]), 1, "one packet always fits");
    }

    /// ECN fields of packets of 1000 bytes after a marking queue; all arrive at once.
    fn marked(mark: DropTailLimit, ecn: Ecn, kbps: u64) -> Vec<Ecn> {
        let mut queue = DropTail::new(DropTailLimit::Packets(6)).marking(Some(mark));
        for id in 0..8 {
            let packet = Descriptor { id, flow: FlowId(0), size: DataSize::from_bytes(1000), ecn };
            assert_eq!(queue.enqueue(Time::ZERO, packet, Rate::from_kbps(kbps)).is_ok(), id < 6, "the limit holds");
        }
        let mut drops = Vec::new();
        core::iter::from_fn(|| queue.dequeue(Time::ZERO, &mut drops)).map(|w| w.packet.ecn).collect()
    }

    #[test]
    fn marks_packets_above_the_threshold() {
        let bytes = |n| DropTailLimit::Bytes(DataSize::from_bytes(n));
        let time = |ms| DropTailLimit::DrainTime(TimeDelta::from_millis(ms));
        for (mark, kbps, unmarked) in [
            (bytes(3000), 1, 3),
            (bytes(2999), 1, 2),
            (DropTailLimit::Packets(4), 1, 4),
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
