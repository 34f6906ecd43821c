//! The seam between a controller and the flow that it steers.
//!
//! The send half decides; the receive half, where there is one, watches arrivals and writes reports. Both sit
//! behind the join: they see typed facts, never bytes; the flow keeps the history and runs the pacer. A half that
//! only wants one call per feedback implements that method alone: every other has an empty default.

use crate::Signals;
use crate::blocks::GroupDelta;
use paceline_units::{DataSize, Ecn, Fraction, Rate, RemoteTime, StreamId, Time, TimeDelta};

/// A controller as a flow holds it: an optional half at each end, what joins them, and the ECN codepoint it sends.
pub struct Controller {
    /// The half at the sender. Without one the flow sends as fast as its sources please.
    pub send: Option<Box<dyn SendHalf>>,
    /// The half at the receiver.
    pub receive: Option<Box<dyn ReceiveHalf>>,
    /// The report that the receiving endpoint sends on its own account, besides what the receive half asks for.
    pub feedback: FeedbackKind,
    /// Codepoint of the media packets.
    pub ecn: Ecn,
}

/// Which per-packet report the receiving endpoint writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedbackKind {
    /// None: sender and receiver reports only, and what the receive half emits.
    None,
    /// Transport-wide feedback.
    TransportWide {
        /// Time between two reports.
        interval: TimeDelta,
        /// Reports are further apart, up to this, where they would take more than a twentieth of the rate that they
        /// report on.
        longest: TimeDelta,
    },
    /// Congestion control feedback of RFC 8888: by stream, with the ECN field of each packet. Arrivals are rounded to
    /// 1/1024 s before the report; every packet is told of in two reports.
    Rfc8888 {
        /// Time between two reports.
        interval: TimeDelta,
        /// Reports are further apart, up to this, where they would take more than a twentieth of the rate that they
        /// report on.
        longest: TimeDelta,
    },
}

/// What a stream carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediaKind {
    /// Frames of several packets, repaired by NACK and RTX; VP8 payload descriptors (RFC 7741).
    Video,
    /// Frames of one packet, never repaired.
    Audio,
}

/// What kind of packet it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketKind {
    /// First transmission of media.
    Media,
    /// A retransmission.
    Retransmission,
    /// Forward error correction of media, in the media's sequence space.
    Fec,
    /// Nothing but padding.
    Padding,
}

/// A packet as it left the pacer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentPacket {
    /// Number within the flow, from 0, without wrap.
    pub sequence: u64,
    /// Bytes on the network, IP and UDP headers included.
    pub size: DataSize,
    /// Which stream it belongs to.
    pub stream: StreamId,
    /// What it is.
    pub kind: PacketKind,
}

/// What the receiver said of one packet, joined with what the sender knows of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketReport {
    /// Number within the flow.
    pub sequence: u64,
    /// When it left the pacer.
    pub sent: Time,
    /// Bytes on the network.
    pub size: DataSize,
    /// When it arrived, on the receiver's clock; `None`: reported lost.
    pub arrival: Option<RemoteTime>,
    /// ECN field on arrival, as far as reports say it: transport-wide feedback does not.
    pub ecn: Ecn,
}

/// One feedback message after the join: every packet that it settles, in order of sequence.
#[derive(Clone, Copy, Debug)]
pub struct Feedback<'a> {
    /// The packets that this message settled; those settled before are not in it.
    pub packets: &'a [PacketReport],
    /// Sent, and neither acknowledged nor lost, after this message. What a lost message told of is not in it.
    pub outstanding: DataSize,
    /// Sent after the highest acknowledged packet (bytes in flight of RFC 8298), after this message.
    pub after_highest: DataSize,
}

/// What an RTCP sender or receiver report says of the flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReceiverReport {
    /// Fraction of packets lost since the report before (RFC 3550, section 6.4.1).
    pub fraction_lost: Fraction,
    /// Round-trip time from LSR and DLSR, if they gave one.
    pub rtt: Option<TimeDelta>,
}

/// How a stream is doing at the sender, and what it asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StreamState {
    /// Which stream.
    pub stream: StreamId,
    /// What waits in the pacer for it.
    pub queued: DataSize,
    /// What the stream was allowed and its source did not use.
    pub unused: Rate,
    /// Its weight when streams share the target, above zero.
    pub priority: f64,
    /// The least that its source makes, IP and UDP headers included.
    pub min: Rate,
    /// The most that it makes.
    pub max: Rate,
}

impl StreamState {
    /// A stream of weight 1 that uses what it is given, whatever that is.
    pub fn new(stream: StreamId, queued: DataSize) -> Self {
        Self { stream, queued, unused: Rate::ZERO, priority: 1.0, min: Rate::ZERO, max: Rate::from_bps(u64::MAX) }
    }
}

/// What encoder and pacer are to do, until the next decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// What the flow sends in all, IP and UDP headers included.
    pub target: Rate,
    /// How fast the pacer may empty its queue.
    pub pacing: Rate,
    /// Bound on bytes in flight, if the controller has one.
    pub window: Option<Window>,
    /// Up to this rate, padding fills what media leaves free. Zero: none.
    pub padding: Rate,
}

/// A bound on data in flight, and which of the two counts it bounds. The flow keeps it where it knows what is in
/// flight: with per-packet feedback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// On what was sent and neither acknowledged nor lost.
    Outstanding(DataSize),
    /// On what was sent after the highest acknowledged packet (RFC 8298).
    AfterHighest(DataSize),
}

/// The half at the sender. Times never go back.
pub trait SendHalf: Send {
    /// A packet left the pacer.
    fn handle_sent(&mut self, now: Time, packet: &SentPacket) {
        let _ = (now, packet);
    }
    /// A per-packet feedback message came.
    fn handle_feedback(&mut self, now: Time, feedback: &Feedback<'_>, signals: &mut Signals) {
        let _ = (now, feedback, signals);
    }
    /// A sender or receiver report came with a block on this flow.
    fn handle_report(&mut self, now: Time, report: &ReceiverReport, signals: &mut Signals) {
        let _ = (now, report, signals);
    }
    /// A message of a receive half came, behind a report. It steers and is no news of packets: the report is.
    fn handle_message(&mut self, now: Time, message: &Message, signals: &mut Signals) {
        let _ = (now, message, signals);
    }
    /// News of packets that were sent, too little of it to be told in a report of its own. The guard that every
    /// registered half runs under wants to know: whoever drives a half and withholds small reports tells it here.
    fn handle_heard(&mut self, now: Time) {
        let _ = now;
    }
    /// How the streams are doing; told before each of their frames.
    fn handle_stream(&mut self, now: Time, stream: &StreamState) {
        let _ = (now, stream);
    }
    /// The time of [`poll_timeout`](Self::poll_timeout) has come.
    fn handle_timeout(&mut self, now: Time, signals: &mut Signals) {
        let _ = (now, signals);
    }
    /// When [`handle_timeout`](Self::handle_timeout) is wanted; [`Time::MAX`] for never.
    fn poll_timeout(&self) -> Time {
        Time::MAX
    }
    /// What to do now. Asked after every `handle_*`.
    fn decision(&self) -> Decision;
    /// The share of one stream, if the controller divides the target itself, by what [`StreamState`] says; asked with
    /// each frame and each new decision. Otherwise the flow does: minima first, then by priority up to the maxima.
    fn stream_rate(&self, stream: StreamId) -> Option<Rate> {
        let _ = stream;
        None
    }
}

/// A packet as the receiver saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When it was sent, as its abs-send-time says: the sender's clock in steps of 2^-18 s, unwrapped by the
    /// endpoint. The origin is unknown; only differences mean anything. `None`: the packet carried no stamp.
    pub sent: Option<Time>,
    /// RTP timestamp: packets of one frame share it.
    pub timestamp: u32,
    /// RTP sequence number.
    pub sequence: u16,
    /// Which stream.
    pub stream: StreamId,
    /// What the stream carries.
    pub media: MediaKind,
    /// What it is.
    pub kind: PacketKind,
    /// Bytes on the network, IP and UDP headers included.
    pub size: DataSize,
    /// ECN field.
    pub ecn: Ecn,
}

/// What a receive half wants told to its other half. A half ignores what is not meant for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Message {
    /// Receiver estimated maximum bitrate.
    Remb(Rate),
    /// A measured gradient: the receiver leaves the estimate to the sender.
    Gradient(GradientReport),
    /// NADA's feedback.
    Nada(NadaReport),
}

/// The step between two groups of packets and what comes in (med16, section II-B).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GradientReport {
    /// The step, of which `d_m` is the gradient.
    pub step: GroupDelta,
    /// `R`; zero while it is not known.
    pub incoming: Rate,
}

/// What a NADA receiver tells (RFC 8698, section 5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NadaReport {
    /// `rmode`.
    pub mode: NadaMode,
    /// `x_curr`, the composite congestion signal; told in tenths of a millisecond.
    pub signal: TimeDelta,
    /// `r_recv`.
    pub incoming: Rate,
}

/// How a NADA sender is to adapt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NadaMode {
    /// The path has room: towards what is received, and more.
    RampUp,
    /// By the signal and its change.
    Gradual,
}

impl NadaMode {
    /// Names, in order of [`index`](Self::index).
    pub const NAMES: &'static [&'static str] = &["ramp-up", "gradual"];
    /// The mode as a signal value.
    pub fn index(self) -> f64 {
        self as u8 as f64
    }
}

/// The half at the receiver, on the receiver's clock. Times never go back.
pub trait ReceiveHalf: Send {
    /// A packet arrived.
    fn handle_arrival(&mut self, now: RemoteTime, arrival: &Arrival, signals: &mut Signals);
    /// The time of [`poll_timeout`](Self::poll_timeout) has come.
    fn handle_timeout(&mut self, now: RemoteTime, signals: &mut Signals) {
        let _ = (now, signals);
    }
    /// When [`handle_timeout`](Self::handle_timeout) is wanted; [`RemoteTime::MAX`] for never.
    fn poll_timeout(&self) -> RemoteTime {
        RemoteTime::MAX
    }
    /// The next message to send. Asked after every `handle_*`, until `None`.
    fn poll_message(&mut self, now: RemoteTime) -> Option<Message>;
}
