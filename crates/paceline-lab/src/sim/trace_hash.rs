//! The trace hash: what a run decided, in 64 bits.
//!
//! Covers due time, component, kind, packet, size and ECN field of every decision of links and endpoints, as
//! fixed-width little-endian integers, and leaves out what the machine adds and the seed itself. Equal whether or not
//! anybody listens to rows.

use paceline_units::{DataSize, Ecn, Time};
use xxhash_rust::xxh3::Xxh3;

/// What was decided.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub(crate) enum Kind {
    Sent = 1,
    Crossed = 2,
    Overflow = 3,
    Loss = 4,
    Early = 5,
    Arrived = 6,
    Frame = 7,
    Decision = 8,
}

pub(crate) struct TraceHash(Xxh3);

impl TraceHash {
    pub fn new() -> Self {
        Self(Xxh3::new())
    }

    #[inline]
    pub fn add(&mut self, at: Time, component: usize, kind: Kind, packet: u64, size: DataSize, ecn: Ecn) {
        let mut record = [0u8; 32];
        record[..8].copy_from_slice(&at.as_nanos().to_le_bytes());
        record[8..16].copy_from_slice(&packet.to_le_bytes());
        record[16..24].copy_from_slice(&size.as_bytes().to_le_bytes());
        record[24..28].copy_from_slice(&(component as u32).to_le_bytes());
        record[28] = kind as u8;
        record[29] = ecn as u8;
        self.0.update(&record);
    }

    pub fn finish(&self) -> u64 {
        self.0.digest()
    }
}
