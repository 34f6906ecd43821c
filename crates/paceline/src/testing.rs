//! Inputs that the unit tests share.

use crate::{Arrival, MediaKind, PacketKind, ReceiverReport, RoundTrip, SentPacket, Setup};
use paceline_units::{DataSize, Ecn, Fraction, Rate, StreamId, Time, TimeDelta};

/// 300 kbit/s within 30 kbit/s and 2 Mbit/s.
pub const SETUP: Setup = Setup::new(Rate::from_kbps(300), Rate::from_kbps(30), Rate::from_kbps(2000));

/// An arriving video packet of stream 0 with its send time; RTP timestamp and sequence number are 0.
pub fn arrival(sent_ms: i64, bytes: u64) -> Arrival {
    Arrival {
        sent: Some(Time::from_millis(sent_ms)),
        timestamp: 0,
        sequence: 0,
        stream: StreamId(0),
        media: MediaKind::Video,
        kind: PacketKind::Media,
        size: DataSize::from_bytes(bytes),
        ecn: Ecn::NotEct,
    }
}

/// A sent packet of stream 0.
pub fn sent(sequence: u64, kind: PacketKind, bytes: u64) -> SentPacket {
    SentPacket { kind, ..SentPacket::new(sequence, DataSize::from_bytes(bytes)) }
}

/// A receiver report.
pub fn report(fraction_lost: f64) -> ReceiverReport {
    ReceiverReport { fraction_lost: Fraction::new(fraction_lost).expect("a fraction") }
}

/// The first sample of a round-trip time.
pub fn rtt(ms: i64) -> RoundTrip {
    RoundTrip::after(None, TimeDelta::from_millis(ms))
}
