//! Rows: what a world tells while it runs. Metrics, files and plots are made from rows and from nothing else.

use crate::moves::Move;
use crate::sight::Sight;
use paceline_units::{DataSize, Ecn, FlowId, Rate, StreamId, Time, TimeDelta};

/// What kind of datagram it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum PacketClass {
    /// First transmission of media.
    Media,
    /// Retransmission.
    Retransmission,
    /// Forward error correction.
    Fec,
    /// Padding.
    Padding,
    /// RTCP from the sender of the flow.
    SenderControl,
    /// RTCP from the receiver of the flow: travels against the media.
    ReceiverControl,
    /// A TCP segment from the sender, for the first time.
    TcpData,
    /// A TCP segment from the sender, again.
    TcpRetransmission,
    /// A TCP segment from the receiver: travels against the data.
    TcpAck,
}

impl PacketClass {
    /// Every class, in order.
    pub const ALL: [Self; 9] = [
        Self::Media,
        Self::Retransmission,
        Self::Fec,
        Self::Padding,
        Self::SenderControl,
        Self::ReceiverControl,
        Self::TcpData,
        Self::TcpRetransmission,
        Self::TcpAck,
    ];
    /// What each is called in files.
    pub const NAMES: [&'static str; 9] = [
        "media",
        "retransmission",
        "fec",
        "padding",
        "sender_control",
        "receiver_control",
        "tcp_data",
        "tcp_retransmission",
        "tcp_ack",
    ];

    /// What it is called in files.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// Whether it travels against the flow's data, on the way back.
    #[inline]
    pub fn goes_back(self) -> bool {
        matches!(self, Self::ReceiverControl | Self::TcpAck)
    }

    /// Whether it is a TCP segment; all others are UDP datagrams.
    #[inline]
    pub fn is_tcp(self) -> bool {
        matches!(self, Self::TcpData | Self::TcpRetransmission | Self::TcpAck)
    }
}

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum DropReason {
    /// The queue was full.
    Overflow,
    /// Lost on the wire.
    Loss,
    /// By an active queue discipline.
    Early,
}

impl DropReason {
    /// What each is called in files.
    pub const NAMES: [&'static str; 3] = ["overflow", "loss", "early"];

    /// What it is called in files.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

/// A datagram, as rows name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketRow {
    /// Number within the run, from 0, in order of sending.
    pub packet: u64,
    /// Whose it is.
    pub flow: FlowId,
    /// What it is.
    pub class: PacketClass,
    /// Size on the network, IP and transport headers included.
    pub size: DataSize,
}

/// Which half of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum HalfName {
    /// At the sender.
    Send,
    /// At the receiver.
    Receive,
}

/// Something that happened. Times are the world's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Row {
    /// An endpoint sent a datagram.
    Sent {
        /// When.
        at: Time,
        /// What.
        packet: PacketRow,
    },
    /// A datagram crossed a hop. Told when it is at the hop's far end.
    Crossed {
        /// When it is at the far end.
        at: Time,
        /// Which hop: index in [`RunHeader::hops`].
        hop: u16,
        /// What.
        packet: PacketRow,
        /// How long it waited before its service.
        waited: TimeDelta,
        /// When its last bit left the server.
        left: Time,
        /// The hop marked it: congestion experienced.
        marked: bool,
    },
    /// A hop dropped a datagram.
    Dropped {
        /// When.
        at: Time,
        /// Which hop.
        hop: u16,
        /// What.
        packet: PacketRow,
        /// Why.
        reason: DropReason,
        /// When its last bit left the server, if it was served: lost on the wire.
        left: Option<Time>,
    },
    /// A datagram reached the endpoint that it was sent to.
    Arrived {
        /// When.
        at: Time,
        /// What.
        packet: PacketRow,
        /// One-way delay since it was sent.
        delay: TimeDelta,
        /// ECN field.
        ecn: Ecn,
    },
    /// A receiver report gave the sender a round-trip time.
    RoundTrip {
        /// When.
        at: Time,
        /// Which flow.
        flow: FlowId,
        /// The sample.
        rtt: TimeDelta,
    },
    /// A receiver report told the sender a fraction lost.
    FractionLost {
        /// When.
        at: Time,
        /// Which flow.
        flow: FlowId,
        /// 0 to 1.
        fraction: f64,
    },
    /// The controller decided anew.
    Decision {
        /// When.
        at: Time,
        /// Which flow.
        flow: FlowId,
        /// Target, headers included.
        target: Rate,
        /// Pacing rate.
        pacing: Rate,
    },
    /// A REMB left the receiver.
    Remb {
        /// When.
        at: Time,
        /// Which flow.
        flow: FlowId,
        /// What it says.
        rate: Rate,
    },
    /// A frame was rendered.
    Frame {
        /// When.
        at: Time,
        /// Which flow.
        flow: FlowId,
        /// Which of its streams.
        stream: StreamId,
        /// When it was captured.
        captured: Time,
        /// Encoded size.
        size: DataSize,
        /// Frames given up since the one rendered before.
        dropped: u16,
    },
    /// A frame was dropped at the sender: the pacer's queue was full.
    FrameRefused {
        /// When.
        at: Time,
        /// Which flow.
        flow: FlowId,
        /// Which of its streams.
        stream: StreamId,
    },
    /// A TCP receiver handed bytes to its application, in order.
    Read {
        /// When.
        at: Time,
        /// Which flow.
        flow: FlowId,
        /// How many.
        size: DataSize,
    },
    /// A controller emitted a signal, or a TCP sender did.
    Signal {
        /// When.
        at: Time,
        /// Which flow.
        flow: FlowId,
        /// From which half.
        half: HalfName,
        /// Index in that half's table of signals.
        signal: u8,
        /// In the unit that the table names.
        value: f64,
    },
    /// A hop was moved by hand.
    Moved {
        /// When.
        at: Time,
        /// Which hop: index in [`RunHeader::hops`].
        hop: u16,
        /// How it is from then on.
        to: Move,
    },
}

impl Row {
    /// When it happened.
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
            | Self::FrameRefused { at, .. }
            | Self::Read { at, .. }
            | Self::Signal { at, .. }
            | Self::Moved { at, .. } => at,
        }
    }
}

/// What does not change while rows come.
#[derive(Clone, Debug, PartialEq)]
pub struct RunHeader {
    /// Scenario id.
    pub scenario: String,
    /// World that made the rows.
    pub world: String,
    /// Seed of the run.
    pub seed: u64,
    /// Name of each hop, forward path first.
    pub hops: Vec<String>,
    /// Name of each flow.
    pub flows: Vec<String>,
    /// Controller of each flow, or TCP's congestion control; none for a flow without.
    pub controllers: Vec<Option<String>>,
    /// Signals (name, unit) of each flow's send half and receive half.
    pub signals: Vec<[Vec<(String, String)>; 2]>,
}

/// Where rows go. A world calls it in order of time, up to the skew between a hop's decision and its far end.
pub trait RowSink {
    /// Takes a row.
    fn row(&mut self, row: &Row);
    /// Takes a row as soon as it is told: in real time only, and before rows of other threads that happened before it.
    /// [`row`](Self::row) brings it in order, about a second later.
    fn early(&mut self, row: &Row) {
        let _ = row;
    }
    /// Whether [`Row::Signal`]s are wanted; asked once, before the run.
    fn wants_signals(&self) -> bool {
        false
    }
    /// Whether [`sight`](Self::sight) is wanted; asked once, before the run.
    fn wants_sights(&self) -> bool {
        false
    }
    /// Takes a packet at a place, in order of time; before the row of the same event, if there is one.
    fn sight(&mut self, sight: &Sight<'_>) {
        let _ = sight;
    }
    /// Whether [`artefact`](Self::artefact)s are wanted; asked once, before the run.
    fn wants_artefacts(&self) -> bool {
        false
    }
    /// Takes a file that the run left besides its rows, such as a log of a program that took part; after the last row.
    fn artefact(&mut self, name: &str, bytes: Vec<u8>) {
        let _ = (name, bytes);
    }
}

impl<S: RowSink + ?Sized> RowSink for &mut S {
    fn row(&mut self, row: &Row) {
        (**self).row(row);
    }
    fn early(&mut self, row: &Row) {
        (**self).early(row);
    }
    fn wants_signals(&self) -> bool {
        (**self).wants_signals()
    }
    fn wants_sights(&self) -> bool {
        (**self).wants_sights()
    }
    fn sight(&mut self, sight: &Sight<'_>) {
        (**self).sight(sight);
    }
    fn wants_artefacts(&self) -> bool {
        (**self).wants_artefacts()
    }
    fn artefact(&mut self, name: &str, bytes: Vec<u8>) {
        (**self).artefact(name, bytes);
    }
}

/// A sink that may be absent.
impl<S: RowSink> RowSink for Option<S> {
    fn row(&mut self, row: &Row) {
        if let Some(sink) = self {
            sink.row(row);
        }
    }
    fn early(&mut self, row: &Row) {
        if let Some(sink) = self {
            sink.early(row);
        }
    }
    fn wants_signals(&self) -> bool {
        self.as_ref().is_some_and(S::wants_signals)
    }
    fn wants_sights(&self) -> bool {
        self.as_ref().is_some_and(S::wants_sights)
    }
    fn sight(&mut self, sight: &Sight<'_>) {
        if let Some(sink) = self {
            sink.sight(sight);
        }
    }
    fn wants_artefacts(&self) -> bool {
        self.as_ref().is_some_and(S::wants_artefacts)
    }
    fn artefact(&mut self, name: &str, bytes: Vec<u8>) {
        if let Some(sink) = self {
            sink.artefact(name, bytes);
        }
    }
}

/// Two sinks in one.
impl<A: RowSink, B: RowSink> RowSink for (A, B) {
    fn row(&mut self, row: &Row) {
        self.0.row(row);
        self.1.row(row);
    }
    fn early(&mut self, row: &Row) {
        self.0.early(row);
        self.1.early(row);
    }
    fn wants_signals(&self) -> bool {
        self.0.wants_signals() || self.1.wants_signals()
    }
    fn wants_sights(&self) -> bool {
        self.0.wants_sights() || self.1.wants_sights()
    }
    fn sight(&mut self, sight: &Sight<'_>) {
        self.0.sight(sight);
        self.1.sight(sight);
    }
    fn wants_artefacts(&self) -> bool {
        self.0.wants_artefacts() || self.1.wants_artefacts()
    }
    fn artefact(&mut self, name: &str, bytes: Vec<u8>) {
        match self.0.wants_artefacts() {
            false => self.1.artefact(name, bytes),
            true => {
                self.1.artefact(name, bytes.clone());
                self.0.artefact(name, bytes);
            }
        }
    }
}
