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
pub enum Kind {
    /// An end sent a packet.
    Sent = 1,
    /// A packet crossed a hop.
    Crossed = 2,
    /// A queue was full.
    Overflow = 3,
    /// Lost on the wire.
    Loss = 4,
    /// Dropped by an active queue discipline.
    Early = 5,
    /// A packet reached its end.
    Arrived = 6,
    /// A frame was rendered.
    Frame = 7,
    /// A controller decided anew.
    Decision = 8,
}

pub(super) struct TraceHash(Xxh3);

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
