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
}

/// Records are hashed in batches of this many, which costs less than one by one.
const BATCH: usize = 64;

pub(super) struct TraceHash {
    hash: Xxh3,
    /// Records that are not hashed yet, in fields of eight bytes.
    pending: Vec<[[u8; 8]; 4]>,
}

impl TraceHash {
    pub fn new() -> Self {
        Self { hash: Xxh3::new(), pending: Vec::with_capacity(BATCH) }
    }

    #[inline]
    pub fn add(&mut self, at: Time, component: usize, event: TraceEvent, packet: u64, size: DataSize, ecn: Ecn) {
        let kind = u64::from(component as u32) | (event as u64) << 32 | (ecn as u64) << 40;
        let fields = [at.as_nanos() as u64, packet, size.as_bytes(), kind];
        self.pending.push(fields.map(u64::to_le_bytes));
        if self.pending.len() == BATCH {
            self.hash.update(self.pending.as_flattened().as_flattened());
            self.pending.clear();
        }
    }

    pub fn finish(&self) -> u64 {
        let mut hash = self.hash.clone();
        hash.update(self.pending.as_flattened().as_flattened());
        hash.digest()
    }
}
