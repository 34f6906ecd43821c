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

pub(super) struct TraceHash(Xxh3);

impl TraceHash {
    pub fn new() -> Self {
        Self(Xxh3::new())
    }

    #[inline]
    pub fn add(&mut self, at: Time, component: usize, event: TraceEvent, packet: u64, size: DataSize, ecn: Ecn) {
        let mut record = [0u8; 32];
        record[..8].copy_from_slice(&at.as_nanos().to_le_bytes());
        record[8..16].copy_from_slice(&packet.to_le_bytes());
        record[16..24].copy_from_slice(&size.as_bytes().to_le_bytes());
        record[24..28].copy_from_slice(&(component as u32).to_le_bytes());
        record[28] = event as u8;
        record[29] = ecn as u8;
        self.0.update(&record);
    }

    pub fn finish(&self) -> u64 {
        self.0.digest()
    }
}
