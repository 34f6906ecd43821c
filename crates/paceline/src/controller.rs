//! The interface between a controller and the flow that it controls.
//!
//! The send half decides the rate. The receive half, if there is one, measures packet arrivals and writes feedback
//! messages. Neither sees bytes: the flow parses RTCP, keeps the history of sent packets and runs the pacer. Every
//! method except the decision has an empty default, so a controller that only needs one call per feedback message
//! implements that alone.

use crate::blocks::GroupDelta;
use crate::{Setup, Signals};
use core::fmt::Debug;
use paceline_units::{DataSize, Ecn, Fraction, Rate, RemoteTime, StreamId, Time, TimeDelta};

/// A controller as a flow holds it. A clone has the same state, and the two do not affect each other.
#[derive(Clone, Debug)]
pub struct Controller {
    /// The half at the sender. Without one the flow sends at the rate of its sources.
    pub send: Option<Box<dyn SendHalf>>,
    /// The half at the receiver.
    pub receive: Option<Box<dyn ReceiveHalf>>,
    /// The per-packet feedback that the send half needs in addition to the messages of the receive half; `None` if it
    /// needs none.
    pub feedback: Option<FeedbackRequirement>,
}

impl Controller {
    /// Returns a controller with a send half alone, without per-packet feedback.
    pub fn from_sender(send: impl SendHalf + 'static) -> Self {
        Self { send: Some(Box::new(send)), receive: None, feedback: None }
    }
    /// Returns a controller whose receive half sends all the feedback that the send half needs.
    pub fn from_halves(send: impl SendHalf + 'static, receive: impl ReceiveHalf + 'static) -> Self {
        Self { receive: Some(Box::new(receive)), ..Self::from_sender(send) }
    }
    /// Puts the send half under the [`Guard`](crate::Guard), which lowers the rate when feedback stops, but not below `min`.
    pub fn guarded(self, min: Rate) -> Self {
        let guarded = |half| -> Box<dyn SendHalf> { Box::new(crate::Guard::new(half, min)) };
        Self { send: self.send.map(guarded), ..self }
    }
}

/// What a send half needs to know about each packet: whether and when it arrived, and perhaps its ECN field. The flow
/// chooses the wire format among those that both ends support.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedbackRequirement {
    /// Whether the half uses the ECN field of arriving packets. Not every format has it.
    pub ecn: bool,
    /// The time between two reports.
    pub interval: TimeDelta,
    /// The longest time between two reports. It applies when reports would take more than 5 % of the rate that they
    /// cover.
    pub longest: TimeDelta,
}

/// The media type of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediaKind {
    /// Frames of several packets, repaired by NACK and RTX; VP8 payload descriptors (RFC 7741).
    Video,
    /// Frames of one packet, never repaired.
    Audio,
}

impl MediaKind {
    /// Returns the name in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Video => "video",
            Self::Audio => "audio",
        }
    }
}

/// The purpose of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketKind {
    /// The first transmission of media.
    Media,
    /// A retransmission.
    Retransmission,
    /// Forward error correction of media, in the sequence number space of the media.
    Fec,
    /// Padding alone.
    Padding,
}

/// A packet that left the pacer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentPacket {
    /// The number within the flow, from 0, without wraparound.
    pub sequence: u64,
    /// The size on the network, IP and UDP headers included.
    pub size: DataSize,
    /// The stream.
    pub stream: StreamId,
    /// The purpose.
    pub kind: PacketKind,
    /// The probe cluster that the packet belongs to.
    pub probe: Option<ProbeId>,
    /// The bytes that were neither acknowledged nor lost just before this packet left; `None` without per-packet
    /// feedback.
    pub in_flight: Option<DataSize>,
}

impl SentPacket {
    /// Returns a media packet of the first stream, of no probe, with unknown bytes in flight.
    pub fn new(sequence: u64, size: DataSize) -> Self {
        Self { sequence, size, stream: StreamId(0), kind: PacketKind::Media, probe: None, in_flight: None }
    }
}

/// The receiver's report on one packet, joined with the sender's record of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketReport {
    /// The number within the flow.
    pub sequence: u64,
    /// The time at which the packet left the pacer.
    pub sent: Time,
    /// The size on the network.
    pub size: DataSize,
    /// The stream.
    pub stream: StreamId,
    /// The purpose.
    pub kind: PacketKind,
    /// The probe cluster that the packet belongs to.
    pub probe: Option<ProbeId>,
    /// The bytes that were neither acknowledged nor lost just before this packet left.
    pub in_flight: DataSize,
    /// The time at which the packet arrived, on the receiver's clock; `None` if it is reported lost.
    pub arrival: Option<RemoteTime>,
    /// The ECN field on arrival; `None` if the feedback does not contain it, as transport-wide feedback.
    pub ecn: Option<Ecn>,
}

impl PacketReport {
    /// Returns the report on a media packet of the first stream, of no probe, sent with nothing else in flight, and
    /// without ECN.
    pub fn new(sequence: u64, sent: Time, size: DataSize, arrival: Option<RemoteTime>) -> Self {
        let (stream, kind, in_flight) = (StreamId(0), PacketKind::Media, DataSize::ZERO);
        Self { sequence, sent, size, stream, kind, probe: None, in_flight, arrival, ecn: None }
    }
}

/// One per-packet feedback message, joined with the history of sent packets.
#[derive(Clone, Copy, Debug)]
pub struct Feedback<'a> {
    /// The packets whose state this message changes, in the order of their sequence numbers: newly reported packets,
    /// and packets that arrived after all although they had been reported lost.
    pub packets: &'a [PacketReport],
    /// The bytes that are neither acknowledged nor lost after this message. Packets of a report that was lost do not
    /// count.
    pub outstanding: DataSize,
    /// The bytes sent after the highest acknowledged packet (bytes in flight of RFC 8298), after this message.
    pub after_highest: DataSize,
    /// The round-trip time of the highest packet that arrived, without the time for which the receiver held its report, to
    /// 1/1024 s. `None` if the message has no packet that arrived, or if its format does not contain that time,
    /// as transport-wide feedback.
    pub rtt: Option<RoundTrip>,
}

impl<'a> Feedback<'a> {
    /// Returns a message without a round-trip time.
    pub fn new(packets: &'a [PacketReport], outstanding: DataSize, after_highest: DataSize) -> Self {
        Self { packets, outstanding, after_highest, rtt: None }
    }
}

/// The loss in the RTCP sender or receiver reports on the flow, over at least 20 packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReceiverReport {
    /// The fraction of packets lost since the previous one (RFC 3550, section 6.4.1).
    pub fraction_lost: Fraction,
}

/// The round-trip time of the path, without the time for which the receiver held the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundTrip {
    /// The last sample.
    pub last: TimeDelta,
    /// The smoothed time: each sample has a weight of 1/8 (RFC 6298, section 2).
    pub smoothed: TimeDelta,
}

impl RoundTrip {
    /// The weight of a sample (alpha of RFC 6298, section 2, equation 2.3).
    const WEIGHT: f64 = 1.0 / 8.0;

    /// Returns the state after a sample; `before` is the state before it, if there was one (RFC 6298, equations 2.2 and
    /// 2.3).
    pub fn after(before: Option<Self>, sample: TimeDelta) -> Self {
        let smoothed = before.map_or(sample, |b| b.smoothed + (sample - b.smoothed).scale(Self::WEIGHT));
        Self { last: sample, smoothed }
    }
}

/// Limits of the target. If they contradict each other, the minimum takes precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The lowest target.
    pub min: Rate,
    /// The highest target.
    pub max: Rate,
}

impl Bounds {
    /// Returns the rate within the limits that is next to `rate`.
    pub fn clamp(&self, rate: Rate) -> Rate {
        rate.min(self.max).max(self.min)
    }
}

/// The state of a stream at the sender, and its limits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StreamState {
    /// The stream.
    pub stream: StreamId,
    /// The size of the stream's packets in the pacer's queue.
    pub queued: DataSize,
    /// The rate that was allocated to the stream and that its source did not use, IP and UDP headers included: allocated
    /// minus produced over the last window of at least 500 ms, or zero if the source produced more.
    pub unused: Rate,
    /// The weight when streams share the target; above zero.
    pub priority: f64,
    /// The lowest rate of the source, IP and UDP headers included.
    pub min: Rate,
    /// The highest rate of the source, IP and UDP headers included.
    pub max: Rate,
}

impl StreamState {
    /// Returns the state of a stream of weight 1 that can use any rate.
    pub fn new(stream: StreamId, queued: DataSize) -> Self {
        Self { stream, queued, unused: Rate::ZERO, priority: 1.0, min: Rate::ZERO, max: Rate::from_bps(u64::MAX) }
    }
}

/// A frame whose packets are in the pacer's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueuedFrame {
    /// The stream.
    pub stream: StreamId,
    /// The size of its packets on the network, FEC included.
    pub size: DataSize,
    /// The number of its packets, FEC included.
    pub packets: u32,
    /// Whether it can be decoded without earlier frames.
    pub key: bool,
}

/// The instructions for encoder and pacer until the next decision. [`Decision::new`] has the defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The sending rate of the flow, IP and UDP headers included.
    pub target: Rate,
    /// A rate up to the target that changes more slowly, for choices that are costly to revert, such as a resolution.
    pub stable_target: Rate,
    /// The rate at which the pacer empties its queue.
    pub pacing: Rate,
    /// If not zero, packets leave in bursts: at once until they take this time at the pacing rate, and then none for this time.
    /// The sender wakes up less often.
    pub burst: TimeDelta,
    /// If not zero, packets leave at multiples of this time only, one at each, as from a program that polls its pacer.
    pub tick: TimeDelta,
    /// The bound on bytes in flight, if the controller has one.
    pub window: Option<Window>,
    /// Padding fills what media leaves free up to this rate. Zero: no padding.
    pub padding: Rate,
    /// The ECN codepoint of RTP packets.
    pub ecn: Ecn,
    /// When the first frame in the pacer's queue has waited for this time, the frames of its stream in the queue are
    /// discarded, and a key frame follows. [`TimeDelta::MAX`]: the limit of the flow, which is also the longest.
    pub queue_max: TimeDelta,
}

impl Decision {
    /// Returns a decision whose packets leave at the target rate, without bursts, window, padding and ECN.
    pub fn new(target: Rate) -> Self {
        Self {
            target,
            stable_target: target,
            pacing: target,
            burst: TimeDelta::ZERO,
            tick: TimeDelta::ZERO,
            window: None,
            padding: Rate::ZERO,
            ecn: Ecn::NotEct,
            queue_max: TimeDelta::MAX,
        }
    }
}

/// The number of a probe cluster within its flow.
pub type ProbeId = u16;

/// Packets to send at a given rate, to find out whether the path has that capacity. The flow fills them with media that
/// waits in the pacer and with padding, and marks them in [`SentPacket::probe`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeCluster {
    /// The number, which the controller chooses.
    pub id: ProbeId,
    /// The rate of the packets.
    pub rate: Rate,
    /// The length of the cluster: it ends when this much time's worth of bytes at its rate has left.
    pub duration: TimeDelta,
    /// The least number of packets.
    pub packets: u16,
}

/// A bound on bytes in flight. The flow enforces it if it knows the bytes in flight, that is, with per-packet feedback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// A bound on the bytes that are neither acknowledged nor lost.
    Outstanding(DataSize),
    /// A bound on the bytes sent after the highest acknowledged packet (RFC 8298).
    AfterHighest(DataSize),
}

/// Copies the state of a send half, so that a call can be continued in several ways or restored. Every send half that is
/// [`Clone`] has it.
pub trait SendSnapshot {
    /// Returns a half in the same state. The same calls then cause the same decisions in both.
    fn snapshot(&self) -> Box<dyn SendHalf>;
}

impl<T: SendHalf + Clone + 'static> SendSnapshot for T {
    fn snapshot(&self) -> Box<dyn SendHalf> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn SendHalf> {
    fn clone(&self) -> Self {
        (**self).snapshot()
    }
}

/// The half at the sender. Times never decrease from call to call. `Debug` shows the state; derive it and [`Clone`].
pub trait SendHalf: Send + Debug + SendSnapshot {
    /// Handles a packet that left the pacer.
    fn handle_sent(&mut self, now: Time, packet: &SentPacket) {
        let _ = (now, packet);
    }
    /// Returns whether [`handle_sent`](Self::handle_sent) may change the decision; the same for the life of the half. If not,
    /// the flow does not read the decision after each packet, which saves time.
    fn decides_on_sent(&self) -> bool {
        true
    }
    /// Handles a per-packet feedback message.
    fn handle_feedback(&mut self, now: Time, feedback: &Feedback<'_>, signals: &mut Signals) {
        let _ = (now, feedback, signals);
    }
    /// Handles a sample of the round-trip time: one for each report from which it can be computed, also if the report
    /// covers too few packets for [`handle_report`](Self::handle_report).
    fn handle_rtt(&mut self, now: Time, rtt: &RoundTrip, signals: &mut Signals) {
        let _ = (now, rtt, signals);
    }
    /// Handles the loss of sender or receiver reports on this flow, once they cover at least 20 packets.
    fn handle_report(&mut self, now: Time, report: &ReceiverReport, signals: &mut Signals) {
        let _ = (now, report, signals);
    }
    /// Handles a message of the receive half. It arrives in a compound with a report, which alone counts as proof that
    /// packets arrive.
    fn handle_message(&mut self, now: Time, message: &Message, signals: &mut Signals) {
        let _ = (now, message, signals);
    }
    /// Handles proof that packets arrive, in a report that covers too few packets to be passed on. The guard around
    /// every registered half needs it; a driver that withholds such reports calls this instead.
    fn on_liveness(&mut self, now: Time) {
        let _ = now;
    }
    /// Handles the state of a stream, which may be new or have other limits than before. The flow calls this before each
    /// of the stream's frames.
    fn handle_stream(&mut self, now: Time, stream: &StreamState) {
        let _ = (now, stream);
    }
    /// Handles a frame that was queued in the pacer. The flow calls this after [`handle_stream`](Self::handle_stream),
    /// but not for a frame that it drops. A change of the decision takes effect after the next call.
    fn handle_frame(&mut self, now: Time, frame: &QueuedFrame) {
        let _ = (now, frame);
    }
    /// Handles a change of whether the application limits the flow: it has no backlog and sends less than the target allows
    /// ([`ApplicationLimit`](crate::blocks::ApplicationLimit)). A flow begins without this limitation.
    /// The check happens when a frame is due, so a source without frames causes no call.
    fn handle_application_limit(&mut self, now: Time, limited: bool) {
        let _ = (now, limited);
    }
    /// Handles the end of a stream. Its queue counts no longer.
    fn handle_stream_removed(&mut self, now: Time, stream: StreamId) {
        let _ = (now, stream);
    }
    /// Handles new limits of the target, which apply at once. The half keeps what it has measured.
    fn handle_bounds(&mut self, now: Time, bounds: &Bounds, signals: &mut Signals) {
        let _ = (now, bounds, signals);
    }
    /// Handles a change of the network route: what was measured says nothing about the new path. Afterwards the half
    /// behaves like one that was built with the same config and this setup. The flow passes on no reports on packets
    /// that were sent before.
    fn handle_route_change(&mut self, now: Time, setup: &Setup, signals: &mut Signals) {
        let _ = (now, setup, signals);
    }
    /// Handles the loss and the return of the network. While it is unavailable, the flow sends nothing.
    fn handle_availability(&mut self, now: Time, available: bool) {
        let _ = (now, available);
    }
    /// Handles the time returned by [`poll_timeout`](Self::poll_timeout).
    fn handle_timeout(&mut self, now: Time, signals: &mut Signals) {
        let _ = (now, signals);
    }
    /// Returns the time at which to call [`handle_timeout`](Self::handle_timeout), if at all.
    fn poll_timeout(&self) -> Option<Time> {
        None
    }
    /// Returns the current decision. The flow reads it after every `handle_*` call but [`handle_frame`](Self::handle_frame),
    /// and after [`handle_sent`](Self::handle_sent) only if the half [decides then](Self::decides_on_sent).
    fn decision(&self) -> Decision;
    /// Returns the next probe cluster to send. The flow calls this until it returns `None`, after feedback, reports,
    /// messages and timeouts, and sends the clusters one after the other. A flow without video sends none.
    fn poll_probe(&mut self, now: Time) -> Option<ProbeCluster> {
        let _ = now;
        None
    }
    /// Returns the rate that the half last calculated, if it can be replaced by a share of the rate of several flows (RFC 8699); see
    /// [`FlowStateExchange`](crate::FlowStateExchange). It is `None` for a half whose target is not its own rate: one with a
    /// window, or one whose rate is calculated at the receiver.
    fn calculated_rate(&self) -> Option<Rate> {
        None
    }
    /// Replaces the calculated rate by the flow's share (RFC 8699, section 5.3.1, step 3d), within the limits of the target. What
    /// was measured stays. The flow calls this only if there is a [`calculated_rate`](Self::calculated_rate).
    fn set_coupled_rate(&mut self, now: Time, share: Rate, signals: &mut Signals) {
        let _ = (now, share, signals);
    }
    /// Returns the rate of one stream, if the controller divides the target itself. The flow reads it with each frame
    /// and each new decision. If it is `None`, the flow divides the target: first the minima, then the rest by priority
    /// up to the maxima.
    fn stream_rate(&self, stream: StreamId) -> Option<Rate> {
        let _ = stream;
        None
    }
}

/// A packet as it arrives at the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The send time in the abs-send-time extension: the sender's clock in steps of 2^-18 s, unwrapped by the endpoint.
    /// Its origin is unknown, so only differences are meaningful. `None` if the packet has no such extension.
    pub sent: Option<Time>,
    /// The RTP timestamp, which the packets of a frame share.
    pub timestamp: u32,
    /// The RTP sequence number.
    pub sequence: u16,
    /// The stream.
    pub stream: StreamId,
    /// The media type of the stream.
    pub media: MediaKind,
    /// The purpose.
    pub kind: PacketKind,
    /// The size on the network, IP and UDP headers included.
    pub size: DataSize,
    /// The ECN field.
    pub ecn: Ecn,
}

/// A message from a receive half to its send half. A half ignores the messages that it does not use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Message {
    /// The receiver estimated maximum bitrate (REMB).
    Remb(Rate),
    /// A measured gradient, from which the sender estimates the rate.
    Gradient(GradientReport),
    /// NADA's feedback.
    Nada(NadaReport),
    /// A message of a controller that is not part of this library.
    App(AppMessage),
}

impl Message {
    /// Returns whether this message makes an older one superfluous: it states a rate anew. The others are parts of a
    /// measurement.
    pub fn replaces(&self, older: &Self) -> bool {
        matches!((self, older), (Self::Remb(_), Self::Remb(_)) | (Self::Nada(_), Self::Nada(_)))
    }
}

/// An application-defined message (APP of RFC 3550, section 6.7). It reaches the send half as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppMessage {
    name: [u8; 4],
    subtype: u8,
    len: u8,
    words: [u32; Self::WORDS_MAX],
}

impl AppMessage {
    /// The most words of data.
    pub const WORDS_MAX: usize = 16;
    /// Names, with subtype 0, that [`Message::Nada`] and [`Message::Gradient`] use.
    pub const RESERVED: [[u8; 4]; 2] = [*b"NADA", *b"GCCM"];

    /// Returns a message with this name of four ASCII characters, a subtype below 32, and up to 16 words of data; `None` if a
    /// part is out of range or the name is reserved.
    pub fn new(name: [u8; 4], subtype: u8, data: &[u32]) -> Option<Self> {
        let is_reserved = subtype == 0 && Self::RESERVED.contains(&name);
        if !name.is_ascii() || subtype >= 32 || data.len() > Self::WORDS_MAX || is_reserved {
            return None;
        }
        let mut words = [0; Self::WORDS_MAX];
        words[..data.len()].copy_from_slice(data);
        Some(Self { name, subtype, len: data.len() as u8, words })
    }
    /// Returns the name.
    pub fn name(&self) -> [u8; 4] {
        self.name
    }
    /// Returns the subtype.
    pub fn subtype(&self) -> u8 {
        self.subtype
    }
    /// Returns the data.
    pub fn data(&self) -> &[u32] {
        &self.words[..self.len as usize]
    }
}

/// A gradient and the incoming rate (med16, section II-B).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GradientReport {
    /// The step between two groups, which contains the gradient `d_m`.
    pub step: GroupDelta,
    /// `R`; zero while it is unknown.
    pub incoming: Rate,
}

/// The report of a NADA receiver (RFC 8698, section 5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NadaReport {
    /// `rmode`.
    pub mode: NadaMode,
    /// `x_curr`, the composite congestion signal, in steps of 0.1 ms.
    pub signal: TimeDelta,
    /// `r_recv`.
    pub incoming: Rate,
}

/// The rate adaptation mode of a NADA sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NadaMode {
    /// Accelerated ramp-up: the path has spare capacity.
    RampUp,
    /// Gradual update, by the congestion signal and its change.
    Gradual,
}

impl NadaMode {
    /// Names, in order of [`index`](Self::index).
    pub const NAMES: &'static [&'static str] = &["ramp-up", "gradual"];
    /// Returns the mode as a signal value.
    pub fn index(self) -> f64 {
        self as u8 as f64
    }
}

/// Copies the state of a receive half, as [`SendSnapshot`] that of a send half.
pub trait ReceiveSnapshot {
    /// Returns a half in the same state. The same calls then cause the same messages from both.
    fn snapshot(&self) -> Box<dyn ReceiveHalf>;
}

impl<T: ReceiveHalf + Clone + 'static> ReceiveSnapshot for T {
    fn snapshot(&self) -> Box<dyn ReceiveHalf> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn ReceiveHalf> {
    fn clone(&self) -> Self {
        (**self).snapshot()
    }
}

/// The half at the receiver, on the receiver's clock. Times never decrease from call to call. `Debug` shows the state;
/// derive it and [`Clone`].
pub trait ReceiveHalf: Send + Debug + ReceiveSnapshot {
    /// Handles an arriving packet.
    fn handle_arrival(&mut self, now: RemoteTime, arrival: &Arrival, signals: &mut Signals);
    /// Handles new limits of the sender's target.
    fn handle_bounds(&mut self, now: RemoteTime, bounds: &Bounds) {
        let _ = (now, bounds);
    }
    /// Handles a change of the network route. Afterwards the half behaves like one that was built with the same config
    /// and this setup.
    fn handle_route_change(&mut self, now: RemoteTime, setup: &Setup) {
        let _ = (now, setup);
    }
    /// Handles the time returned by [`poll_timeout`](Self::poll_timeout).
    fn handle_timeout(&mut self, now: RemoteTime, signals: &mut Signals) {
        let _ = (now, signals);
    }
    /// Returns the time at which to call [`handle_timeout`](Self::handle_timeout), if at all.
    fn poll_timeout(&self) -> Option<RemoteTime> {
        None
    }
    /// Returns the next message to send. The flow calls this after every `handle_*` call until it returns `None`.
    fn poll_message(&mut self, now: RemoteTime) -> Option<Message>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn app_message_has_bounds_and_reserved_names() {
        let message = AppMessage::new(*b"MINE", 31, &[7; 16]).unwrap();
        assert_eq!((message.name(), message.subtype(), message.data()), (*b"MINE", 31, &[7; 16][..]));
        assert_eq!(AppMessage::new(*b"MINE", 32, &[]), None);
        assert_eq!(AppMessage::new(*b"MINE", 0, &[0; 17]), None);
        assert_eq!(AppMessage::new([200; 4], 0, &[]), None);
        assert_eq!(AppMessage::new(*b"NADA", 0, &[]), None);
        assert!(AppMessage::new(*b"NADA", 1, &[]).is_some());
    }

    #[test]
    fn round_trip_time_is_smoothed_by_an_eighth() {
        // By hand: 100; 100 + (180 - 100) / 8 = 110; 110 + (30 - 110) / 8 = 100 ms.
        let mut rtt = None;
        for (sample, smoothed) in [(100, 100), (180, 110), (30, 100)] {
            let after = RoundTrip::after(rtt, TimeDelta::from_millis(sample));
            let expected =
                RoundTrip { last: TimeDelta::from_millis(sample), smoothed: TimeDelta::from_millis(smoothed) };
            assert_eq!(after, expected);
            rtt = Some(after);
        }
    }
}
