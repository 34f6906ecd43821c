// SPDX-License-Identifier: MIT OR Apache-2.0
//! The limit of a queue: in bytes, in packets, or in the time that the link needs to drain it.

use super::LinkRate;
pub use crate::flow::parameter::QueueLimit;
use paceline_units::{DataSize, Rate};

/// Minimum of a drain-time limit.
const PACKET: DataSize = DataSize::from_bytes(1500);

/// A limit and its current value in bytes.
#[derive(Clone, Debug)]
pub struct LimitCheck {
    limit: QueueLimit,
    /// Minimum of a drain-time limit, bytes.
    least: DataSize,
    /// The last rate above zero, for [`QueueLimit::DrainTime`].
    rate: Rate,
    limit_at_rate: DataSize,
}

impl LimitCheck {
    /// Returns the check of a queue limit. A drain time is at least 1500 bytes, and always has room for one packet: a queue
    /// without room would pass none.
    pub fn of_queue(limit: QueueLimit) -> Self {
        Self { limit, least: PACKET, rate: Rate::ZERO, limit_at_rate: DataSize::ZERO }
    }

    /// Returns the check of a threshold, such as one above which packets are marked. It has no minimum.
    pub fn of_threshold(limit: QueueLimit) -> Self {
        Self { least: DataSize::ZERO, ..Self::of_queue(limit) }
    }

    /// Sets a new limit for later packets.
    pub fn set(&mut self, limit: QueueLimit) {
        self.limit = limit;
        if let QueueLimit::DrainTime(time) = limit {
            // During an outage no later arrival sets the rate.
            self.limit_at_rate = (self.rate * time).max(self.least);
        }
    }

    /// Returns whether a packet of `size` stays within the limit while `bytes` and `packets` are queued.
    #[inline]
    pub fn fits(&mut self, bytes: DataSize, packets: usize, size: DataSize, rate: LinkRate<'_>) -> bool {
        match self.limit {
            QueueLimit::Bytes(limit) => bytes + size <= limit,
            QueueLimit::Packets(limit) => packets < limit as usize,
            QueueLimit::DrainTime(time) => {
                let rate = rate.get();
                if rate != self.rate && !rate.is_zero() {
                    self.rate = rate;
                    self.limit_at_rate = (rate * time).max(self.least);
                }
                bytes + size <= self.limit_at_rate || (bytes == DataSize::ZERO && self.least == PACKET)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::Capacity;
    use paceline_units::Time;

    /// By hand: 1 ms of 1 Mbit/s is 125 bytes, so the limit is 1500 bytes. A packet of 1512 bytes, a full TCP segment of 1460
    /// bytes, fits an empty queue alone; below a threshold it does not.
    #[test]
    fn drain_time_has_room_for_one_packet_of_any_size() {
        let capacity = Capacity::constant(Rate::from_kbps(1000));
        let rate = LinkRate::at(Some(&capacity), Time::ZERO);
        let size = DataSize::from_bytes;
        let time = QueueLimit::DrainTime(paceline_units::TimeDelta::from_millis(1));
        let mut limit = LimitCheck::of_queue(time);
        assert!(limit.fits(size(0), 0, size(1512), rate));
        assert!(!limit.fits(size(1), 1, size(1512), rate));
        assert!(limit.fits(size(900), 1, size(600), rate));
        assert!(!limit.fits(size(901), 2, size(600), rate));
        assert!(!LimitCheck::of_threshold(time).fits(size(0), 0, size(1512), rate));
    }
}
