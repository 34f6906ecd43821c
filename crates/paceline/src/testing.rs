// SPDX-License-Identifier: MIT OR Apache-2.0
//! Inputs that the unit tests share.

use crate::{Arrival, Event, MediaKind, PacketKind, ReceiverReport, RoundTrip, SendHalf, SentPacket, Setup, Signals};
use paceline_units::{DataSize, Ecn, Fraction, Rate, StreamId, Time, TimeDelta};

/// 300 kbit/s within 30 kbit/s and 2 Mbit/s.
pub const SETUP: Setup = Setup::new(Rate::from_kbps(300), Rate::from_kbps(30), Rate::from_kbps(2000));

pub fn at(ms: i64) -> Time {
    Time::from_millis(ms)
}

pub fn kbps(kbps: u64) -> Rate {
    Rate::from_kbps(kbps)
}

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

/// Passes events to a send half that emits no signals.
pub trait Drive: SendHalf {
    /// Handles an event at a time in milliseconds. Returns the new target.
    fn on(&mut self, ms: i64, event: Event<'_>) -> Rate {
        self.handle_event(Time::from_millis(ms), &event, &mut Signals::disabled());
        self.decision().target
    }
}

impl<T: SendHalf + ?Sized> Drive for T {}
