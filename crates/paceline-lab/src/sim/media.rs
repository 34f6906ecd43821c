//! The ends of a media flow in the simulator.

use super::Ends;
use super::clock::Clock;
use super::network::{End, Network};
use super::trace_hash::Kind;
use crate::plan::{FlowPlan, MediaPlan, SourcePlan};
use crate::rows::{HalfName, PacketClass, Row};
use crate::world::{EPOCH, WorldError};
use paceline::{PacketKind, Registry, Setup, Signals};
use paceline_flow::source::{Audio, Encoder, FrameTrace, Ideal, Source, SourceError};
use paceline_flow::{
    MediaReceiver, MediaSender, ReceiverConfig, ReceiverEvent, RtcpTiming, SenderConfig, SenderEvent, Sent,
    StreamConfig, StreamNames,
};
use paceline_units::{DataSize, FlowId, RandomStream, RemoteTime, StreamId, Streams, Time, TimeDelta};

/// [`EPOCH`] as NTP has it, in ns since 1900: sender reports say the time that a capture shows.
const NTP_ORIGIN: u64 = (EPOCH.as_secs() + 2_208_988_800) * 1_000_000_000;

/// A media sender and receiver, and the clock of the receiver.
pub(super) struct MediaEnds {
    id: usize,
    sender: MediaSender,
    receiver: MediaReceiver,
    clock: Clock,
    /// RTP timestamp of time zero and clock rate, by stream.
    timing: Vec<(u32, u32)>,
}

impl Ends for MediaEnds {
    fn begin(&mut self, start: Time, net: &mut Network<'_>) {
        net.wake(self.id, End::Sender, self.sender.poll_timeout().max(start));
        net.wake(self.id, End::Receiver, self.clock.when(self.receiver.poll_timeout(), start));
    }

    fn serve(&mut self, now: Time, end: End, net: &mut Network<'_>) {
        match end {
            End::Sender => {
                self.sender.handle_timeout(now);
                self.drain_sender(now, net);
            }
            End::Receiver => {
                let reading = self.clock.at(now);
                self.receiver.handle_timeout(reading);
                self.drain_receiver(now, reading, net);
            }
        }
    }

    fn handle(&mut self, now: Time, end: End, handle: u32, net: &mut Network<'_>) {
        match end {
            End::Sender => {
                self.sender.handle_packet(now, net.datagram_mut(handle).bytes());
                net.give_back(handle);
                self.drain_sender(now, net);
            }
            End::Receiver => {
                let reading = self.clock.at(now);
                let (size, ecn) = (net.packet(handle).row.size, net.packet(handle).ecn);
                self.receiver.handle_packet(reading, net.datagram_mut(handle).bytes(), size, ecn);
                net.give_back(handle);
                self.drain_receiver(now, reading, net);
            }
        }
    }
}

impl MediaEnds {
    fn drain_sender(&mut self, now: Time, net: &mut Network<'_>) {
        let flow = FlowId(self.id as u16);
        loop {
            let handle = net.blank();
            let datagram = net.datagram_mut(handle);
            let Some(sent) = self.sender.poll_transmit(now, datagram) else {
                net.give_back(handle);
                break;
            };
            let (size, ecn) = (datagram.size(), datagram.ecn);
            net.packet_mut(handle).ecn = ecn;
            let class = match sent {
                Sent::Control => PacketClass::SenderControl,
                Sent::Media { kind: PacketKind::Media, .. } => PacketClass::Media,
                Sent::Media { kind: PacketKind::Retransmission, .. } => PacketClass::Retransmission,
                Sent::Media { kind: PacketKind::Fec, .. } => PacketClass::Fec,
                Sent::Media { kind: PacketKind::Padding, .. } => PacketClass::Padding,
            };
            net.launch(now, self.id, End::Sender, class, size, handle);
        }
        while let Some(event) = self.sender.poll_event() {
            let row = match event {
                SenderEvent::Decision(d) => {
                    let target = DataSize::from_bytes(d.target.as_bps());
                    net.decided(now, self.id, End::Sender, Kind::Decision, d.pacing.as_bps(), target);
                    Row::Decision { at: now, flow, target: d.target, pacing: d.pacing }
                }
                SenderEvent::RoundTrip(rtt) => Row::RoundTrip { at: now, flow, rtt },
                SenderEvent::FractionLost(f) => Row::FractionLost { at: now, flow, fraction: f.get() },
                SenderEvent::FrameDropped(stream) => Row::FrameRefused { at: now, flow, stream },
                SenderEvent::Signal(signal, value) => {
                    Row::Signal { at: now, flow, half: HalfName::Send, signal, value }
                }
            };
            net.tell(&row);
        }
        net.wake(self.id, End::Sender, self.sender.poll_timeout().max(now));
    }

    fn drain_receiver(&mut self, now: Time, reading: RemoteTime, net: &mut Network<'_>) {
        let flow = FlowId(self.id as u16);
        if self.receiver.poll_timeout() <= reading {
            loop {
                let handle = net.blank();
                let datagram = net.datagram_mut(handle);
                if !self.receiver.poll_transmit(reading, datagram) {
                    net.give_back(handle);
                    break;
                }
                let (size, ecn) = (datagram.size(), datagram.ecn);
                net.packet_mut(handle).ecn = ecn;
                net.launch(now, self.id, End::Receiver, PacketClass::ReceiverControl, size, handle);
            }
        }
        while let Some(event) = self.receiver.poll_event() {
            let row = match event {
                ReceiverEvent::Frame { stream, timestamp, size, dropped } => {
                    net.decided(now, self.id, End::Receiver, Kind::Frame, timestamp as u64, size);
                    let (offset, clock_rate) = self.timing[stream.0 as usize];
                    let captured = capture_time(now, timestamp.wrapping_sub(offset), clock_rate);
                    Row::Frame { at: now, flow, stream, captured, size, dropped }
                }
                ReceiverEvent::Remb(rate) => Row::Remb { at: now, flow, rate },
                ReceiverEvent::Signal(signal, value) => {
                    Row::Signal { at: now, flow, half: HalfName::Receive, signal, value }
                }
            };
            net.tell(&row);
        }
        net.wake(self.id, End::Receiver, self.clock.when(self.receiver.poll_timeout(), now));
    }
}

/// The capture time that an RTP timestamp means: the one nearest below `now`.
fn capture_time(now: Time, timestamp: u32, clock_rate: u32) -> Time {
    let rate = clock_rate as i128;
    let now_units = now.as_nanos() as i128 * rate / 1_000_000_000;
    let age = (now_units as u32).wrapping_sub(timestamp);
    Time::from_nanos(((now_units - age as i128) * 1_000_000_000 / rate) as i64)
}

/// The ends of the media flow of this number, which begins at `start`.
pub(super) fn build(
    id: usize,
    plan: &FlowPlan,
    media: &MediaPlan,
    start: Time,
    registry: &Registry,
    streams: &Streams,
    signals: bool,
) -> Result<MediaEnds, WorldError> {
    let path = |what: &str| format!("flow/{}/{what}", plan.id);
    let entry = registry
        .get(&media.controller.name)
        .ok_or_else(|| WorldError::UnknownController { flow: plan.id.clone(), name: media.controller.name.clone() })?;
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
    Ok(MediaEnds { id, sender, receiver, clock, timing })
}

fn build_source(plan: &SourcePlan, start: Time, random: RandomStream) -> Result<Box<dyn Source>, SourceError> {
    Ok(match plan {
        SourcePlan::Ideal(config) => Box::new(Ideal::new(config.clone(), start)?),
        SourcePlan::Encoder(config) => Box::new(Encoder::new(config.clone(), start, random)?),
        SourcePlan::Frames(config, ladder) => Box::new(FrameTrace::new(config.clone(), ladder.clone(), start)?),
        SourcePlan::Audio(config) => Box::new(Audio::new(config.clone(), start)?),
    })
}
