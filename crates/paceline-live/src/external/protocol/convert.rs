//! Converts the types of the library to those of the protocol.

use super::{Ecn, Event, Kind, Packet, ReceiverMessage, RoundTrip, Sent, Setup, Stream};
use paceline::{Bounds, Message, PacketKind, PacketReport, QueuedFrame, SentPacket, StreamState};

impl From<&paceline::Setup> for Setup {
    fn from(setup: &paceline::Setup) -> Self {
        Self {
            start_bps: setup.start.as_bps(),
            min_bps: setup.min.as_bps(),
            max_bps: setup.max.as_bps(),
            packet_size_bytes: setup.packet_size.as_bytes(),
        }
    }
}

impl From<PacketKind> for Kind {
    fn from(kind: PacketKind) -> Self {
        match kind {
            PacketKind::Media => Self::Media,
            PacketKind::Retransmission => Self::Retransmission,
            PacketKind::Fec => Self::Fec,
            PacketKind::Padding => Self::Padding,
        }
    }
}

impl From<paceline_units::Ecn> for Ecn {
    fn from(ecn: paceline_units::Ecn) -> Self {
        match ecn {
            paceline_units::Ecn::NotEct => Self::NotEct,
            paceline_units::Ecn::Ect0 => Self::Ect0,
            paceline_units::Ecn::Ect1 => Self::Ect1,
            paceline_units::Ecn::Ce => Self::Ce,
        }
    }
}

impl From<&SentPacket> for Sent {
    fn from(p: &SentPacket) -> Self {
        Self {
            sequence: p.sequence,
            size_bytes: p.size.as_bytes(),
            stream: p.stream.0,
            kind: p.kind.into(),
            probe: p.probe,
            in_flight_bytes: p.in_flight.map(|size| size.as_bytes()),
        }
    }
}

impl From<&PacketReport> for Packet {
    fn from(p: &PacketReport) -> Self {
        Self {
            sequence: p.sequence,
            sent_ns: p.sent.as_nanos(),
            arrival_ns: p.arrival.map(|at| at.as_nanos()),
            size_bytes: p.size.as_bytes(),
            in_flight_bytes: p.in_flight.as_bytes(),
            stream: p.stream.0,
            kind: p.kind.into(),
            probe: p.probe,
            ecn: p.ecn.map(Ecn::from),
        }
    }
}

impl From<&paceline::RoundTrip> for RoundTrip {
    fn from(rtt: &paceline::RoundTrip) -> Self {
        Self { last_ns: rtt.last.as_nanos(), smoothed_ns: rtt.smoothed.as_nanos() }
    }
}

impl ReceiverMessage {
    /// Returns the message; `None` for one that this protocol does not have.
    pub fn new(message: &Message) -> Option<Self> {
        Some(match message {
            Message::Remb(rate) => Self::Remb { rate_bps: rate.as_bps() },
            Message::Nada(report) => Self::Nada {
                ramp_up: report.mode == paceline::NadaMode::RampUp,
                signal_ns: report.signal.as_nanos(),
                incoming_bps: report.incoming.as_bps(),
            },
            Message::App(message) => Self::App {
                application: message.name().map(char::from).iter().collect(),
                subtype: message.subtype(),
                data: message.data().to_vec(),
            },
            _ => return None,
        })
    }
}

impl From<&StreamState> for Stream {
    fn from(s: &StreamState) -> Self {
        Self {
            stream: s.stream.0,
            queued_bytes: s.queued.as_bytes(),
            unused_bps: s.unused.as_bps(),
            priority: s.priority,
            min_bps: s.min.as_bps(),
            max_bps: s.max.as_bps(),
        }
    }
}

impl From<&QueuedFrame> for Event<'_> {
    fn from(f: &QueuedFrame) -> Self {
        Self::Frame { stream: f.stream.0, size_bytes: f.size.as_bytes(), packets: f.packets, key: f.key }
    }
}

impl From<&Bounds> for Event<'_> {
    fn from(b: &Bounds) -> Self {
        Self::Bounds { min_bps: b.min.as_bps(), max_bps: b.max.as_bps() }
    }
}
