//! Drop-tail: first in, first out, and a limit.

use super::{Discipline, Waiting};
use crate::{Descriptor, DropCause};
use paceline_units::{DataSize, Rate, Time, TimeDelta};
use std::collections::VecDeque;

/// How much may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropTailLimit {
    /// This many bytes.
    Bytes(DataSize),
    /// This many packets.
    Packets(u32),
    /// What the link drains in this time at the rate it has when a packet arrives: the limit in bytes follows each
    /// change of capacity. Packets that already wait stay; an outage keeps the limit that was in force before it.
    /// At least one packet of 1500 bytes always fits.
    DrainTime(TimeDelta),
}

/// The drop-tail queue.
#[derive(Debug)]
pub struct DropTail {
    limit: DropTailLimit,
    waiting: VecDeque<Waiting>,
    bytes: DataSize,
    /// The last rate above zero that was seen, for [`DropTailLimit::DrainTime`].
    rate: Rate,
    /// The limit in bytes at `rate`.
    limit_at_rate: DataSize,
}

impl DropTail {
    /// An empty queue.
    pub fn new(limit: DropTailLimit) -> Self {
        let (rate, limit_at_rate) = (Rate::ZERO, DataSize::ZERO);
        Self { limit, waiting: VecDeque::new(), bytes: DataSize::ZERO, rate, limit_at_rate }
    }

    fn fits(&mut self, size: DataSize, rate: Rate) -> bool {
        match self.limit {
            DropTailLimit::Bytes(limit) => self.bytes + size <= limit,
            DropTailLimit::Packets(limit) => self.waiting.len() < limit as usize,
            DropTailLimit::DrainTime(time) => {
                if rate != self.rate && !rate.is_zero() {
                    self.rate = rate;
                    self.limit_at_rate = (rate * time).max(DataSize::from_bytes(1500));
                }
                self.bytes + size <= self.limit_at_rate
            }
        }
    }
}

impl Discipline for DropTail {
    fn enqueue(&mut self, now: Time, packet: Descriptor, rate: Rate) -> Result<(), DropCause> {
        if !self.fits(packet.size, rate) {
            return Err(DropCause::Overflow);
        }
        self.bytes += packet.size;
        self.waiting.push_back(Waiting { packet, arrived: now });
        Ok(())
    }

    fn dequeue(&mut self, _: Time, _: &mut Vec<Waiting>) -> Option<Waiting> {
        let head = self.waiting.pop_front()?;
        self.bytes -= head.packet.size;
        Some(head)
    }

    fn is_empty(&self) -> bool {
        self.waiting.is_empty()
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
    fn limits_hold_to_the_byte() {
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
}
