//! A media flow as every world runs it: both ends made from the plan, and what they tell as rows.

pub use crate::clock::Clock;
use crate::plan::{FlowPlan, MediaPlan, SourcePlan};
use crate::rows::{HalfName, PacketClass, Row};
use crate::world::{EPOCH, WorldError};
use paceline::{Controller, PacketKind, Registry, Setup, Signals};
use paceline_flow::source::{Audio, Encoder, FrameTrace, Ideal, Source, SourceError};
use paceline_flow::{
    MediaReceiver, MediaSender, ReceiverConfig, ReceiverEvent, RtcpTiming, SenderConfig, SenderEvent, Sent,
    StreamConfig, StreamNames,
};
use paceline_units::{FlowId, RandomStream, StreamId, Streams, Time, TimeDelta};
use paceline_wire::ExtensionIds;
use std::time::Duration;

/// From 1900, where NTP begins, to 1970.
const NTP_TO_1970: Duration = Duration::from_secs(2_208_988_800);

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
    /// The RTP timestamp that a stream has at the world's time zero: for a receiver whose sender draws its own.
    pub fn set_timestamp_of_zero(&mut self, stream: StreamId, timestamp: u32) {
        if let Some((offset, _)) = self.timing.get_mut(stream.0 as usize) {
            *offset = timestamp;
        }
    }

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

/// The capture time that an RTP timestamp means: the one nearest `now`, and not after it.
fn capture_time(now: Time, timestamp: u32, clock_rate: u32) -> Time {
    let rate = clock_rate as i128;
    let now_units = now.as_nanos() as i128 * rate / 1_000_000_000;
    // What seems to come is what two clocks disagree by.
    let age = ((now_units as u32).wrapping_sub(timestamp) as i32).max(0);
    Time::from_nanos(((now_units - age as i128) * 1_000_000_000 / rate) as i64)
}

/// The flow of this number, which begins at `start`; without `signals` its controller keeps them to itself.
///
/// # Errors
/// No such controller, or one that cannot be built, or a source that cannot.
pub fn build(
    id: usize,
    plan: &FlowPlan,
    media: &MediaPlan,
    start: Time,
    registry: &Registry,
    streams: &Streams,
    signals: bool,
) -> Result<MediaFlow, WorldError> {
    let prepared = PreparedFlow::new(id, plan, media, registry, streams, signals)?;
    let streams = prepared.names.clone();
    let terms = Terms { extensions: Default::default(), streams, source: None, calendar: EPOCH };
    prepared.begin(start, terms)
}

/// A media flow before it begins: its names are drawn and its controller is made. What the ends of a call have to agree on
/// first, and when they have, is open.
pub struct PreparedFlow {
    id: usize,
    plan: FlowPlan,
    media: MediaPlan,
    streams: Streams,
    signals: bool,
    controller: Controller,
    names: Vec<StreamNames>,
    /// Sequence number and RTP timestamp that each stream begins with.
    firsts: Vec<(u16, u32)>,
    clock: Clock,
}

/// What the ends of a flow agree on before the first packet.
pub struct Terms {
    /// Header extension ids.
    pub extensions: ExtensionIds,
    /// The streams by their names on the wire.
    pub streams: Vec<StreamNames>,
    /// What the first stream sends, in place of the plan's source.
    pub source: Option<Box<dyn Source>>,
    /// What a calendar shows at the world's time zero, as time since 1970: sender reports say so.
    pub calendar: Duration,
}

impl PreparedFlow {
    /// Draws what the seed decides and makes the controller.
    ///
    /// # Errors
    /// No such controller, or one that cannot be built.
    pub fn new(
        id: usize,
        plan: &FlowPlan,
        media: &MediaPlan,
        registry: &Registry,
        streams: &Streams,
        signals: bool,
    ) -> Result<Self, WorldError> {
        let name = &media.controller.name;
        let unknown = || WorldError::UnknownController { flow: plan.id.clone(), name: name.clone() };
        let setup = Setup { start: media.start_rate, min: media.min_rate, max: media.most() };
        let controller = registry
            .get(name)
            .ok_or_else(unknown)?
            .build(&setup, &media.controller.config)
            .map_err(|error| WorldError::Controller { flow: plan.id.clone(), error })?;

        let mut identity = streams.stream(&format!("flow/{}/identity", plan.id));
        let (mut names, mut firsts) = (Vec::new(), Vec::new());
        for (index, stream) in media.streams.iter().enumerate() {
            names.push(StreamNames {
                id: StreamId(index as u8),
                kind: stream.kind,
                // The top bits keep a flow's SSRCs apart, the rest is random as RFC 3550 asks.
                ssrc: (index as u32 * 2) << 24 | identity.bits() as u32 & 0x00FF_FFFF,
                rtx_ssrc: (index as u32 * 2 + 1) << 24 | identity.bits() as u32 & 0x00FF_FFFF,
                clock_rate: stream.source.clock_rate(),
            });
            firsts.push((identity.bits() as u16, identity.bits() as u32));
        }
        let offset = media.clock.offset.unwrap_or_else(|| identity.time_below(TimeDelta::from_secs(3600)));
        let clock = Clock { offset, drift_ppb: media.clock.drift_ppb };
        let (plan, media, streams) = (plan.clone(), media.clone(), *streams);
        Ok(Self { id, plan, media, streams, signals, controller, names, firsts, clock })
    }

    /// The streams by the names that were drawn for them.
    pub fn names(&self) -> &[StreamNames] {
        &self.names
    }

    /// RTP timestamp that each stream begins with.
    pub fn first_timestamps(&self) -> impl Iterator<Item = u32> {
        self.firsts.iter().map(|(_, timestamp)| *timestamp)
    }

    /// The controller, halves and all.
    pub fn controller(&self) -> &Controller {
        &self.controller
    }

    /// Both ends, on these terms, from `start` on.
    ///
    /// # Errors
    /// A source that cannot be built.
    pub fn begin(self, start: Time, terms: Terms) -> Result<MediaFlow, WorldError> {
        let Self { id, plan, media, streams, signals, mut controller, firsts, clock, .. } = self;
        let path = |what: &str| format!("flow/{}/{what}", plan.id);
        let Terms { extensions, streams: names, mut source, calendar } = terms;
        let mut configs = Vec::new();
        for ((stream, names), first) in media.streams.iter().zip(&names).zip(&firsts) {
            let random = streams.stream(&path(&format!("stream/{}", stream.id)));
            let planned = || build_source(&stream.source, start, random);
            let source = source
                .take()
                .map_or_else(planned, Ok)
                .map_err(|error| WorldError::Source { flow: plan.id.clone(), error })?;
            let (first_sequence, timestamp_offset) = *first;
            let (names, priority) = (*names, stream.priority);
            configs.push(StreamConfig { names, source, priority, first_sequence, timestamp_offset });
        }
        let timing = configs.iter().map(|c| (c.timestamp_offset, c.names.clock_rate)).collect();
        let rtcp = RtcpTiming { min_interval: media.rtcp_interval, session: media.most() };
        let hear = || if signals { Signals::heard() } else { Signals::unheard() };

        let sender = SenderConfig {
            extensions,
            streams: configs,
            start,
            rtcp,
            pacer_limit: media.pacer_limit,
            retransmit: media.retransmit,
            protection: media.protection,
            ntp_origin: (calendar + NTP_TO_1970).as_nanos() as u64,
        };
        let receiver = ReceiverConfig {
            extensions,
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
}

fn build_source(plan: &SourcePlan, start: Time, random: RandomStream) -> Result<Box<dyn Source>, SourceError> {
    Ok(match plan {
        SourcePlan::Ideal(config) => Box::new(Ideal::new(config.clone(), start)?),
        SourcePlan::Encoder(config) => Box::new(Encoder::new(config.clone(), start, random)?),
        SourcePlan::Frames(config, ladder) => Box::new(FrameTrace::new(config.clone(), ladder.clone(), start)?),
        SourcePlan::Audio(config) => Box::new(Audio::new(config.clone(), start)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_was_captured_before_it_came() {
        let at = |now: Time, timestamp| capture_time(now, timestamp, 90_000);
        let now = Time::from_secs(100_000); // the timestamp wrapped twice
        let units = (100_000u64 * 90_000) as u32;
        assert_eq!(at(now, units.wrapping_sub(9_000)), now - TimeDelta::from_millis(100));
        assert_eq!(at(now, units.wrapping_sub(90_000 * 3600)), now - TimeDelta::from_secs(3600));
        assert_eq!(at(now, units), now);
        assert_eq!(at(now, units.wrapping_add(45)), now, "half a millisecond ahead");
    }
}
