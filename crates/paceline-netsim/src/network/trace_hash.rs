// SPDX-License-Identifier: MIT OR Apache-2.0
//! The trace hash: a 64-bit hash over the decisions of a run.
//!
//! It covers due time, component, kind, packet, size and ECN field of every decision of links and endpoints, as
//! fixed-width little-endian integers. It excludes properties of the host and the seed itself, and does not depend on
//! observers.

use paceline_units::{DataSize, Ecn, Time};
use xxhash_rust::xxh3::Xxh3;

/// The kind of a decision.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub enum TraceEvent {
    /// An endpoint sent a packet.
    Sent = 1,
    /// A packet crossed a hop.
    Crossed = 2,
    /// A full queue dropped a packet.
    Overflow = 3,
    /// A packet was lost on the wire.
    Loss = 4,
    /// Active queue management dropped a packet.
    Aqm = 5,
    /// A packet reached its endpoint.
    Arrived = 6,
    /// A frame was rendered.
    Frame = 7,
    /// A controller made a new decision.
    Decision = 8,
    /// A hop dropped a packet that is larger than its MTU.
    Mtu = 9,
    /// A hop replaced its queue, in which the packet waited.
    Purge = 10,
}

/// Records are hashed in batches of this many, which costs less than one by one.
const BATCH: usize = 64;

/// The trace hash of a run, record by record.
pub struct TraceHash {
    hash: Xxh3,
    /// The last records, in fields of eight bytes.
    records: [[[u8; 8]; 4]; BATCH],
    /// Number of records so far. Whole batches are hashed.
    count: usize,
}

impl Default for TraceHash {
    fn default() -> Self {
        Self { hash: Xxh3::new(), records: [[[0; 8]; 4]; BATCH], count: 0 }
    }
}

impl TraceHash {
    /// Adds a decision of a component: a hop or an end of a flow.
    #[inline]
    pub fn add(&mut self, at: Time, component: usize, event: TraceEvent, packet: u64, size: DataSize, ecn: Ecn) {
        let kind = u64::from(component as u32) | (event as u64) << 32 | (ecn as u64) << 40;
        let fields = [at.as_nanos() as u64, packet, size.as_bytes(), kind];
        // A loop, because `map` of an array is not inlined at every level of optimisation.
        for (record, field) in self.records[self.count % BATCH].iter_mut().zip(fields) {
            *record = field.to_le_bytes();
        }
        self.count += 1;
        if self.count.is_multiple_of(BATCH) {
            self.hash.update(self.records.as_flattened().as_flattened());
        }
    }

    /// Returns the hash of all decisions so far.
    pub fn finish(&self) -> u64 {
        let mut hash = self.hash.clone();
        hash.update(self.records[..self.count % BATCH].as_flattened().as_flattened());
        hash.digest()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digest_is_that_of_all_records_one_after_the_other() {
        let (mut trace, mut bytes) = (TraceHash::default(), Vec::new());
        for n in 0..3 * BATCH as u64 {
            assert_eq!(trace.finish(), xxhash_rust::xxh3::xxh3_64(&bytes), "{n}");
            trace.add(Time::from_nanos(n as i64), 7, TraceEvent::Arrived, n, DataSize::from_bytes(1200), Ecn::Ce);
            for field in [n, n, 1200] {
                bytes.extend(field.to_le_bytes());
            }
            bytes.extend([7, 0, 0, 0, TraceEvent::Arrived as u8, Ecn::Ce as u8, 0, 0]);
        }
    }
}
