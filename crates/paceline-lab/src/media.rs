//! A media flow as every world runs it: both ends made from the plan, and what they tell as rows.

pub use crate::clock::Clock;
use crate::plan::{FlowPlan, MediaPlan, SourcePlan};
use crate::rows::{HalfName, PacketClass, Row};
use crate::world::{EPOCH, WorldError};
use paceline::{Entry, PacketKind, Registry, Setup, Signals};
use paceline_flow::source::{Audio, Encoder, FrameTrace, Ideal, Source, SourceError};
use paceline_flow::{
    MediaReceiver, MediaSender, ReceiverConfig, ReceiverEvent, RtcpTiming, SenderConfig, SenderEvent, Sent,
    StreamConfig, StreamNames,
};
use paceline_units::{FlowId, RandomStream, StreamId, Streams, Time, TimeDelta};

/// [`EPOCH`] as NTP has it, in ns since 1900: sender reports say the time that a capture shows.
const NTP_ORIGIN: u64 = (EPOCH.as_secs() + 2_208_988_800) * 1_000_000_000;

/// A media sender and receiver, and the clock of the receiver.
pub struct MediaFlow {
    /// Where media comes from.
    pub sender: MediaSender,
    /// Where it goes; its times are those of `clock`.
    pub receiver: MediaReceiver,
    /// The receiver's clock.
    pub clock: Clock,
    id: FlowId,
    /// RTP timestamp of time zero and clock rate, by stream.
    timing: Vec<(u32, u32)>,
}

impl MediaFlow {
    /// What the sender said, as a row.
    pub fn sender_row(&self, at: Time, event: SenderEvent) -> Row {
        let flow = self.id;
        match event {
            SenderEvent::Decision(d) => Row::Decision { at, flow, target: d.target, pacing: d.pacing },
            SenderEvent::RoundTrip(rtt) => Row::RoundTrip { at, flow, rtt },
            SenderEvent::FractionLost(f) => Row::FractionLost { at, flow, fraction: f.get() },
            SenderEvent::FrameDropped(stream) => Row::FrameRefused { at, flow, stream },
            SenderEvent::Signal(signal, value) => Row::Signal { at, flow, half: HalfName::Send, signal, value },
        }
    }

    /// What the receiver said, as a row.
    pub fn receiver_row(&self, at: Time, event: ReceiverEvent) -> Row {
        let flow = self.id;
        match event {
            ReceiverEvent::Frame { stream, timestamp, size, dropped } => {
                let (offset, clock_rate) = self.timing[stream.0 as usize];
                let captured = capture_time(at, timestamp.wrapping_sub(offset), clock_rate);
                Row::Frame { at, flow, stream, captured, size, dropped }
            }
            ReceiverEvent::Remb(rate) => Row::Remb { at, flow, rate },
            ReceiverEvent::Signal(signal, value) => Row::Signal { at, flow, half: HalfName::Receive, signal, value },
        }
    }
}

/// What rows call a datagram of the sender.
pub fn class_of(sent: &Sent) -> PacketClass {
    match sent {
        Sent::Control => PacketClass::SenderControl,
        Sent::Media { kind: PacketKind::Media, .. } => PacketClass::Media,
        Sent::Media { kind: PacketKind::Retransmission, .. } => PacketClass::Retransmission,
        Sent::Media { kind: PacketKind::Fec, .. } => PacketClass::Fec,
        Sent::Media { kind: PacketKind::Padding, .. } => PacketClass::Padding,
    }
}

/// The capture time that an RTP timestamp means: the one nearest below `now`.
fn capture_time(now: Time, timestamp: u32, clock_rate: u32) -> Time {
    let rate = clock_rate as i128;
    let now_units = now.as_nanos() as i128 * rate / 1_000_000_000;
    let age = (now_units as u32).wrapping_sub(timestamp);
    Time::from_nanos(((now_units - age as i128) * 1_000_000_000 / rate) as i64)
}

/// The registry's controller of a flow.
///
/// # Errors
/// There is none of that name.
pub fn controller<'a>(plan: &FlowPlan, media: &MediaPlan, registry: &'a Registry) -> Result<&'a Entry, WorldError> {
    let name = &media.controller.name;
    registry.get(name).ok_or_else(|| WorldError::UnknownController { flow: plan.id.clone(), name: name.clone() })
}

/// The flow of this number, which begins at `start`; without `signals` its controller keeps them to itself.
///
/// # Errors
/// A controller that cannot be built, or a source that cannot.
pub fn build(
    id: usize,
    plan: &FlowPlan,
    media: &MediaPlan,
    start: Time,
    entry: &Entry,
    streams: &Streams,
    signals: bool,
) -> Result<MediaFlow, WorldError> {
    let path = |what: &str| format!("flow/{}/{what}", plan.id);
    let most = media.most();
    let setup = Setup { start: media.start_rate, min: media.min_rate, max: most };
    let mut controller = entry
        .build(&setup, &media.controller.config)
        .map_err(|error| WorldError::Controller { flow: plan.id.clone(), error })?;

    let mut identity = streams.stream(&path("identity"));
    let mut configs = Vec::new();
    for (index, stream) in media.streams.iter().enumerate() {
        let random = streams.stream(&path(&format!("stream/{}", stream.id)));
        let source = build_source(&stream.source, start, random)
            .map_err(|error| WorldError::Source { flow: plan.id.clone(), error })?;
        let names = StreamNames {
            id: StreamId(index as u8),
            kind: stream.kind,
            // The top bits keep a flow's SSRCs apart, the rest is random as RFC 3550 asks.
            ssrc: (index as u32 * 2) << 24 | identity.bits() as u32 & 0x00FF_FFFF,
            rtx_ssrc: (index as u32 * 2 + 1) << 24 | identity.bits() as u32 & 0x00FF_FFFF,
            clock_rate: source.clock_rate(),
        };
        let (first_sequence, timestamp_offset) = (identity.bits() as u16, identity.bits() as u32);
        configs.push(StreamConfig { names, source, priority: stream.priority, first_sequence, timestamp_offset });
    }
    let names: Vec<StreamNames> = configs.iter().map(|c| c.names).collect();
    let timing = configs.iter().map(|c| (c.timestamp_offset, c.names.clock_rate)).collect();
    let offset = media.clock.offset.unwrap_or_else(|| identity.time_below(TimeDelta::from_secs(3600)));
    let clock = Clock { offset, drift_ppb: media.clock.drift_ppb };
    let rtcp = RtcpTiming { min_interval: media.rtcp_interval, session: most };
    let hear = || if signals { Signals::heard() } else { Signals::unheard() };

    let sender = SenderConfig {
        extensions: Default::default(),
        streams: configs,
        start,
        rtcp,
        pacer_limit: media.pacer_limit,
        retransmit: media.retransmit,
        protection: media.protection,
        ntp_origin: NTP_ORIGIN,
    };
    let receiver = ReceiverConfig {
        extensions: Default::default(),
        streams: names,
        start: clock.at(start),
        ssrc: 1,
        rtcp,
        nack: media.retransmit,
    };
    let receiver = MediaReceiver::new(receiver, &mut controller, streams.stream(&path("receiver/rtcp")), hear());
    let sender = MediaSender::new(sender, &mut controller, streams.stream(&path("sender/rtcp")), hear());
    Ok(MediaFlow { sender, receiver, clock, id: FlowId(id as u16), timing })
}

fn build_source(plan: &SourcePlan, start: Time, random: RandomStream) -> Result<Box<dyn Source>, SourceError> {
    Ok(match plan {
        SourcePlan::Ideal(config) => Box::new(Ideal::new(config.clone(), start)?),
        SourcePlan::Encoder(config) => Box::new(Encoder::new(config.clone(), start, random)?),
        SourcePlan::Frames(config, ladder) => Box::new(FrameTrace::new(config.clone(), ladder.clone(), start)?),
        SourcePlan::Audio(config) => Box::new(Audio::new(config.clone(), start)?),
    })
}
