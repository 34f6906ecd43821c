// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lines to a program.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A line to the program.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Input<'a> {
    /// The flow begins. The answer is the first decision.
    Start {
        /// The limits of the flow.
        setup: Setup,
        /// The value of each declared parameter.
        parameters: BTreeMap<String, f64>,
    },
    /// What happened since the last line.
    Events {
        /// The events in order, as they happened. The last one caused the line, unless the list was full.
        events: Vec<TimedEvent<'a>>,
        /// The time of the line.
        now_ns: i64,
    },
}

/// Limits of a flow.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
pub struct Setup {
    /// The first target.
    pub start_bps: u64,
    /// The lowest target.
    pub min_bps: u64,
    /// The highest rate that the sources can use.
    pub max_bps: u64,
    /// The size of the largest RTP packet, without IP and UDP headers.
    pub packet_size_bytes: u64,
}

/// An event with its time.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq)]
pub struct TimedEvent<'a> {
    /// The time on the sender's clock. Times never decrease.
    pub at_ns: i64,
    /// What happened.
    #[serde(flatten)]
    pub event: Event<'a>,
}

/// What happened.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event<'a> {
    /// A packet left the pacer.
    Sent {
        /// The packet.
        packet: Sent,
    },
    /// Per-packet feedback, joined with the history of sent packets.
    Feedback {
        /// The packets whose state changed, by sequence number.
        packets: Cow<'a, [Packet]>,
        /// The bytes that are neither acknowledged nor lost.
        outstanding_bytes: u64,
        /// The bytes sent after the highest acknowledged packet.
        after_highest_bytes: u64,
        /// The round-trip time, where the format contains it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rtt: Option<RoundTrip>,
    },
    /// A sample of the round-trip time.
    Rtt {
        /// The sample.
        rtt: RoundTrip,
    },
    /// The loss in receiver reports.
    Report {
        /// The fraction of packets lost since the previous report, 0 to 1.
        fraction_lost: f64,
    },
    /// A message of the receive half.
    Message {
        /// The message.
        message: ReceiverMessage,
    },
    /// Proof that packets arrive.
    Liveness,
    /// The state of a stream.
    Stream {
        /// The state.
        stream: Stream,
    },
    /// A frame was queued in the pacer.
    Frame {
        /// The stream.
        stream: u8,
        /// The size of its packets on the network.
        size_bytes: u64,
        /// The number of its packets.
        packets: u32,
        /// Whether it can be decoded without earlier frames.
        key: bool,
    },
    /// The application began or ceased to limit the flow.
    ApplicationLimit {
        /// Whether it limits the flow.
        limited: bool,
    },
    /// A stream ended.
    StreamRemoved {
        /// The stream.
        stream: u8,
    },
    /// The limits of the target changed.
    Bounds {
        /// The lowest target.
        min_bps: u64,
        /// The highest target.
        max_bps: u64,
    },
    /// The network route changed: what was measured says nothing about the new path.
    Route {
        /// The limits on the new path.
        setup: Setup,
    },
    /// The network was lost or returned.
    Availability {
        /// Whether there is a network.
        available: bool,
    },
    /// The time that the last answer requested has come.
    Timeout,
}

/// A packet that left the pacer.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
pub struct Sent {
    /// The number within the flow, from 0.
    pub sequence: u64,
    /// The size on the network, IP and UDP headers included.
    pub size_bytes: u64,
    /// The stream.
    pub stream: u8,
    /// The purpose.
    pub kind: Kind,
    /// The probe cluster that the packet belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<u16>,
    /// The bytes that were neither acknowledged nor lost before this packet left; absent without per-packet feedback.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_flight_bytes: Option<u64>,
}

/// The purpose of a packet.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The first transmission of media.
    Media,
    /// A retransmission.
    Retransmission,
    /// Forward error correction.
    Fec,
    /// Padding alone.
    Padding,
}

/// The receiver's report on one packet, joined with the sender's record of it.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
pub struct Packet {
    /// The number within the flow.
    pub sequence: u64,
    /// The time at which the packet left the pacer.
    pub sent_ns: i64,
    /// The time at which it arrived, on the receiver's clock, whose origin is unknown; null if it is reported lost.
    pub arrival_ns: Option<i64>,
    /// The size on the network.
    pub size_bytes: u64,
    /// The bytes that were neither acknowledged nor lost before this packet left.
    pub in_flight_bytes: u64,
    /// The stream.
    pub stream: u8,
    /// The purpose.
    pub kind: Kind,
    /// The probe cluster that the packet belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<u16>,
    /// The ECN field on arrival; absent if the feedback does not contain it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ecn: Option<Ecn>,
}

/// An ECN codepoint.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Ecn {
    /// Not ECN-capable.
    #[default]
    NotEct,
    /// ECT(0).
    Ect0,
    /// ECT(1), for L4S.
    Ect1,
    /// Congestion experienced; not in answers.
    Ce,
}

/// The round-trip time.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
pub struct RoundTrip {
    /// The last sample.
    pub last_ns: i64,
    /// The smoothed time: each sample has a weight of 1/8.
    pub smoothed_ns: i64,
}

/// A message of the receive half.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq)]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum ReceiverMessage {
    /// The receiver estimated maximum bitrate.
    Remb {
        /// The rate.
        rate_bps: u64,
    },
    /// The report of a NADA receiver.
    Nada {
        /// Whether the mode is accelerated ramp-up; else gradual update.
        ramp_up: bool,
        /// The congestion signal `x_curr`.
        signal_ns: i64,
        /// The incoming rate `r_recv`.
        incoming_bps: u64,
    },
    /// An application-defined message.
    App {
        /// The name of four ASCII characters.
        application: String,
        /// The subtype.
        subtype: u8,
        /// Up to 16 words.
        data: Vec<u32>,
    },
}

/// The state of a stream.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema, PartialEq)]
pub struct Stream {
    /// The stream.
    pub stream: u8,
    /// The size of its packets in the pacer's queue.
    pub queued_bytes: u64,
    /// The rate that was allocated to the stream and that its source did not use.
    pub unused_bps: u64,
    /// The weight when streams share the target.
    pub priority: f64,
    /// The lowest rate of the source.
    pub min_bps: u64,
    /// The highest rate of the source.
    pub max_bps: u64,
}
