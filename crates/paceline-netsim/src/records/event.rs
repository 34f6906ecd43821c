// SPDX-License-Identifier: MIT OR Apache-2.0
//! The events of a run.

use crate::records::packet::{DropReason, PacketRecord};
use paceline_units::{DataSize, Ecn, FlowId, Fraction, Rate, StreamId, Time, TimeDelta};
use std::fmt;

/// A half of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum HalfName {
    /// At the sender.
    Send,
    /// At the receiver.
    Receive,
}

/// An event of a run. Times are in the clock of the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum EventRecord {
    /// An endpoint sent a packet.
    Sent {
        /// Time of the event.
        at: Time,
        packet: PacketRecord,
    },
    /// A packet crossed a hop. Emitted when the packet reaches the far end of the hop.
    Crossed {
        /// Time of arrival at the far end.
        at: Time,
        /// The hop: index in [`RunHeader::hops`](crate::records::RunHeader::hops).
        hop: u16,
        packet: PacketRecord,
        /// Queuing delay: from arrival at the hop to start of service.
        waited: TimeDelta,
        /// The time at which the last bit left the server.
        left: Time,
        /// Whether the hop marked the packet as congestion experienced (RFC 3168).
        marked: bool,
    },
    /// A hop dropped a packet.
    Dropped {
        /// Time of the event.
        at: Time,
        /// The hop: index in [`RunHeader::hops`](crate::records::RunHeader::hops).
        hop: u16,
        packet: PacketRecord,
        reason: DropReason,
        /// The time at which the last bit left the server; `None` if the packet was not served. Only losses on the wire
        /// are served.
        left: Option<Time>,
    },
    /// A packet reached the endpoint to which it was sent.
    Arrived {
        /// Time of the event.
        at: Time,
        packet: PacketRecord,
        /// One-way delay since the packet was sent.
        delay: TimeDelta,
        /// ECN field.
        ecn: Ecn,
    },
    /// A receiver report gave the sender a round-trip time.
    RoundTrip {
        /// Time of the event.
        at: Time,
        flow: FlowId,
        /// The sample.
        rtt: TimeDelta,
    },
    /// A receiver report gave the sender a fraction lost.
    FractionLost {
        /// Time of the event.
        at: Time,
        flow: FlowId,
        /// 0 to 1.
        fraction: f64,
    },
    /// The controller made a new decision.
    Decision {
        /// Time of the event.
        at: Time,
        flow: FlowId,
        /// Target rate, headers included.
        target: Rate,
        pacing: Rate,
    },
    /// The receiver sent a REMB.
    Remb {
        /// Time of the event.
        at: Time,
        flow: FlowId,
        /// The rate that the REMB carries.
        rate: Rate,
    },
    /// A frame was rendered.
    Frame {
        /// Time of the event.
        at: Time,
        flow: FlowId,
        stream: StreamId,
        /// The time at which the frame was captured.
        captured: Time,
        /// Encoded size.
        size: DataSize,
        /// Frames that the receiver gave up since the previous rendered frame.
        dropped: u16,
    },
    /// The sender dropped a frame because the pacer's queue was full.
    FrameDropped {
        /// Time of the event.
        at: Time,
        flow: FlowId,
        stream: StreamId,
    },
    /// A TCP receiver delivered bytes to its application, in order.
    Read {
        /// Time of the event.
        at: Time,
        flow: FlowId,
        /// The number of bytes.
        size: DataSize,
    },
    /// A controller or a TCP sender emitted a signal.
    Signal {
        /// Time of the event.
        at: Time,
        flow: FlowId,
        /// The half that emitted it.
        half: HalfName,
        /// Index in that half's table of signals.
        signal: u8,
        /// The value, in the unit that the table names.
        value: f64,
    },
    /// The user changed a hop during the run.
    LinkUpdated {
        /// Time of the event.
        at: Time,
        /// The hop: index in [`RunHeader::hops`](crate::records::RunHeader::hops).
        hop: u16,
        /// The change.
        to: LinkUpdate,
    },
}

impl EventRecord {
    /// Returns the time of the event.
    pub fn at(&self) -> Time {
        match *self {
            Self::Sent { at, .. }
            | Self::Crossed { at, .. }
            | Self::Dropped { at, .. }
            | Self::Arrived { at, .. }
            | Self::RoundTrip { at, .. }
            | Self::FractionLost { at, .. }
            | Self::Decision { at, .. }
            | Self::Remb { at, .. }
            | Self::Frame { at, .. }
            | Self::FrameDropped { at, .. }
            | Self::Read { at, .. }
            | Self::Signal { at, .. }
            | Self::LinkUpdated { at, .. } => at,
        }
    }
}

/// A change of a hop that takes effect at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LinkUpdate {
    /// Sets the capacity to a constant rate.
    Capacity(Rate),
    /// Stops service for this time; then the former capacity applies again.
    Outage(TimeDelta),
    /// Sets the propagation delay.
    Delay(TimeDelta),
    /// Sets the loss ratio; each packet is lost independently.
    Loss(Fraction),
    /// Sets the queue limit, in drain time.
    Queue(TimeDelta),
    /// Restores everything that the scenario specifies for the current time.
    Scenario,
}

impl fmt::Display for LinkUpdate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Capacity(rate) => write!(f, "capacity {rate}"),
            Self::Outage(time) => write!(f, "an outage of {time}"),
            Self::Delay(time) => write!(f, "delay {time}"),
            Self::Loss(fraction) => write!(f, "loss {fraction}"),
            Self::Queue(time) => write!(f, "a queue of {time}"),
            Self::Scenario => f.write_str("reset to the scenario"),
        }
    }
}
