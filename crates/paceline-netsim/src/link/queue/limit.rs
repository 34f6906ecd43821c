//! The limit of a queue: in bytes, in packets, or in the time that the link needs to drain it.

use super::LinkRate;
pub use paceline_flow::parameter::QueueLimit;
use paceline_units::{DataSize, Rate};

/// Minimum of a drain-time limit: a queue without room for one packet would pass none.
const PACKET: DataSize = DataSize::from_bytes(1500);

/// A limit and its current value in bytes.
#[derive(Clone, Debug)]
pub struct LimitCheck {
    limit: QueueLimit,
    /// Minimum of a drain-time limit, bytes.
    least: DataSize,
    /// The last rate above zero, for [`QueueLimit::DrainTime`].
    rate: Rate,
    /// The limit in bytes at `rate`.
    limit_at_rate: DataSize,
}

impl LimitCheck {
    /// Returns the check of a queue limit. A drain time is at least one packet of 1500 bytes.
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
                bytes + size <= self.limit_at_rate
            }
        }
    }
}
