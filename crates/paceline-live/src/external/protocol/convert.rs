// SPDX-License-Identifier: MIT OR Apache-2.0
//! Converts the types of the library to those of the protocol.

use super::{Ecn, Event, EventKind, Kind, Packet, ReceiverMessage, RoundTrip, Sent, Setup, Stream};
use paceline::{Message, PacketKind, PacketReport, QueuedFrame, SentPacket, StreamState};

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
    fn new(message: &Message) -> Option<Self> {
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

impl Event<'_> {
    /// Returns an event and its kind; `None` of one that this protocol does not have.
    pub fn of(event: &paceline::Event<'_>) -> Option<(EventKind, Self)> {
        Some(match *event {
            paceline::Event::Sent(packet) => (EventKind::Sent, Self::Sent { packet: packet.into() }),
            paceline::Event::Feedback(feedback) => {
                let event = Self::Feedback {
                    packets: feedback.packets.iter().map(Packet::from).collect(),
                    outstanding_bytes: feedback.outstanding.as_bytes(),
                    after_highest_bytes: feedback.after_highest.as_bytes(),
                    rtt: feedback.rtt.as_ref().map(Into::into),
                };
                (EventKind::Feedback, event)
            }
            paceline::Event::RoundTrip(rtt) => (EventKind::Rtt, Self::Rtt { rtt: rtt.into() }),
            paceline::Event::Report(report) => {
                (EventKind::Report, Self::Report { fraction_lost: report.fraction_lost.get() })
            }
            paceline::Event::Message(message) => {
                (EventKind::Message, Self::Message { message: ReceiverMessage::new(message)? })
            }
            paceline::Event::Liveness => (EventKind::Liveness, Self::Liveness),
            paceline::Event::Stream(stream) => (EventKind::Stream, Self::Stream { stream: stream.into() }),
            paceline::Event::StreamRemoved(stream) => {
                (EventKind::StreamRemoved, Self::StreamRemoved { stream: stream.0 })
            }
            paceline::Event::Frame(QueuedFrame { stream, size, packets, key, .. }) => {
                let (stream, size_bytes, packets, key) = (stream.0, size.as_bytes(), *packets, *key);
                (EventKind::Frame, Self::Frame { stream, size_bytes, packets, key })
            }
            paceline::Event::ApplicationLimit(limited) => {
                (EventKind::ApplicationLimit, Self::ApplicationLimit { limited })
            }
            paceline::Event::Bounds(bounds) => {
                (EventKind::Bounds, Self::Bounds { min_bps: bounds.min.as_bps(), max_bps: bounds.max.as_bps() })
            }
            paceline::Event::RouteChange(setup) => (EventKind::Route, Self::Route { setup: setup.into() }),
            paceline::Event::Availability(available) => (EventKind::Availability, Self::Availability { available }),
            paceline::Event::Timeout => (EventKind::Timeout, Self::Timeout),
            _ => return None,
        })
    }
}
