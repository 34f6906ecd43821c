// SPDX-License-Identifier: MIT OR Apache-2.0
//! A media flow as every world runs it: both endpoints, built from the plan, and the conversion of their events.

use crate::controller_failure::ControllerFailure;
use crate::flow::source::Source;
use crate::flow::{
    DatagramKind, FeedbackFormats, MediaReceiver, MediaSender, ReceiverConfig, ReceiverEvent, RtcpTiming, SenderConfig,
    SenderEvent, StreamConfig, StreamInfo,
};
use crate::flow_end::FlowEnd;
use crate::plan::{FlowChange, FlowPlan, MediaPlan};
pub use crate::receiver_clock::ReceiverClock;
use crate::records::{EventRecord, HalfName, PacketClass};
use crate::world::{EPOCH, WorldError};
use paceline::{Controller, Entry, Failure, PacketKind, Registry, Signals};
use paceline_units::{DataSize, Ecn, FlowId, RandomStreams, Rate, StreamId, Time, TimeDelta};
use paceline_wire::{CompoundWriter, ExtensionIds};
use std::time::Duration;

/// Time from the NTP epoch, 1900, to 1970.
const NTP_TO_1970: Duration = Duration::from_secs(2_208_988_800);

/// SSRC of a middlebox that sends REMBs.
const MIDDLEBOX_SSRC: u32 = 2;
/// The most streams that such a REMB names, and the size of its compound: a report without blocks (RFC 3550, section 6.4.2) and a
/// REMB (draft-alvestrand-rmcat-remb-03, section 2.2).
const REMB_STREAMS_MAX: usize = 64;
const REMB_LEN_MAX: usize = 8 + 20 + 4 * REMB_STREAMS_MAX;

/// A media sender, a media receiver, and the clock of the receiver.
pub struct MediaFlow {
    pub sender: MediaSender,
    /// The receiver; its times are readings of `clock`.
    pub receiver: MediaReceiver,
    /// The receiver's clock.
    pub clock: ReceiverClock,
    id: FlowId,
    /// The names of the flow and of its controller.
    name: String,
    controller: &'static str,
    /// RTP timestamp at time zero, and clock rate, of each stream.
    timing: Vec<(u32, u32)>,
    /// SSRC of each stream.
    ssrcs: Vec<u32>,
    /// The changes that each end has not handled yet, the next one last.
    changes: [Vec<(Time, FlowChange)>; 2],
    /// Those that the receiver notices, with the first packet that was sent afterwards.
    routes: Vec<(Time, FlowChange)>,
}

impl MediaFlow {
    /// Sets the RTP timestamp of a stream at time zero, for a remote sender that chooses its own.
    pub fn set_timestamp_of_zero(&mut self, stream: StreamId, timestamp: u32) {
        if let Some((offset, _)) = self.timing.get_mut(stream.0 as usize) {
            *offset = timestamp;
        }
    }

    /// Returns the time at which `end` has to handle its next timeout; `None` for never.
    #[inline]
    pub fn poll_timeout(&self, now: Time, end: FlowEnd) -> Option<Time> {
        let due = match end {
            FlowEnd::Sender => self.sender.poll_timeout(),
            FlowEnd::Receiver => self.receiver.poll_timeout().map(|due| self.clock.when(due, now)),
        };
        match self.changes[end as usize].last() {
            None => due,
            Some((at, _)) => Some(due.map_or(*at, |due| due.min(*at))),
        }
    }

    /// Handles a timeout of `end`.
    #[inline]
    pub fn handle_timeout(&mut self, now: Time, end: FlowEnd) {
        while let Some((_, change)) = self.changes[end as usize].pop_if(|(at, _)| *at <= now) {
            self.handle_change(now, end, change);
        }
        match end {
            FlowEnd::Sender => self.sender.handle_timeout(now),
            FlowEnd::Receiver => self.receiver.handle_timeout(self.clock.at(now)),
        }
    }

    /// Checks that the half of the controller at `end` has not failed. The world calls this after other calls for that end.
    ///
    /// # Errors
    /// It failed. The world ends the run.
    #[inline]
    pub fn check_controller(&mut self, now: Time, end: FlowEnd) -> Result<(), ControllerFailure> {
        let failure = match end {
            FlowEnd::Sender => self.sender.failure(),
            FlowEnd::Receiver => self.receiver.failure(),
        };
        failure.map_or(Ok(()), |failure| Err(self.controller_failure(now, failure.clone())))
    }

    #[cold]
    fn controller_failure(&self, at: Time, failure: Failure) -> ControllerFailure {
        ControllerFailure { flow: self.name.clone(), controller: self.controller.to_owned(), at, failure }
    }

    /// Handles what is in force at the start, and keeps what changes later. A route that changed before is the first one of
    /// the flow.
    fn begin_changes(&mut self, start: Time, changes: &[(Time, FlowChange)]) {
        let (before, after) = changes.split_at(changes.partition_point(|(at, _)| *at <= start));
        let last = |is_kind: fn(&FlowChange) -> bool| before.iter().rfind(|(_, change)| is_kind(change));
        let bounds = last(|change| matches!(change, FlowChange::Bounds(_)));
        let availability = last(|change| matches!(change, FlowChange::Availability(_)));
        let remb = last(|change| matches!(change, FlowChange::Remb(_)));
        let is_of_stream = |change| {
            matches!(change, FlowChange::StreamMax(..) | FlowChange::StreamMuted(..) | FlowChange::StreamEnd(_))
        };
        let streams = before.iter().filter(|(_, change)| is_of_stream(*change));
        for (_, change) in [bounds, availability, remb].into_iter().flatten().chain(streams) {
            self.handle_change(start, FlowEnd::Sender, *change);
            self.handle_change(start, FlowEnd::Receiver, *change);
        }
        let (routes, others): (Vec<_>, Vec<_>) =
            after.iter().rev().partition(|(_, change)| matches!(change, FlowChange::Route(_)));
        self.changes = [after.iter().rev().copied().collect(), others];
        self.routes = routes;
    }

    fn handle_change(&mut self, now: Time, end: FlowEnd, change: FlowChange) {
        let remote_now = self.clock.at(now);
        match (end, change) {
            (FlowEnd::Sender, FlowChange::Bounds(bounds)) => self.sender.set_bounds(now, &bounds),
            (FlowEnd::Receiver, FlowChange::Bounds(bounds)) => self.receiver.set_bounds(remote_now, &bounds),
            (FlowEnd::Sender, FlowChange::Route(setup)) => self.sender.handle_route_change(now, &setup),
            (FlowEnd::Receiver, FlowChange::Route(setup)) => self.receiver.handle_route_change(remote_now, &setup),
            (FlowEnd::Sender, FlowChange::Availability(available)) => self.sender.set_available(now, available),
            (FlowEnd::Sender, FlowChange::Remb(rate)) => self.handle_remb(now, rate),
            (FlowEnd::Sender, FlowChange::StreamMax(id, max)) => drop(self.sender.set_stream_max(now, id, max)),
            (FlowEnd::Sender, FlowChange::StreamMuted(id, muted)) => drop(self.sender.set_stream_muted(now, id, muted)),
            (FlowEnd::Sender, FlowChange::StreamEnd(id)) => drop(self.sender.remove_stream(now, id)),
            // The sender alone knows its network and its streams.
            (FlowEnd::Receiver, _) => {}
        }
    }

    /// Handles a REMB that a middlebox beside the sender sends, for all streams of the flow.
    fn handle_remb(&mut self, now: Time, rate: Rate) {
        let mut bytes = [0; REMB_LEN_MAX];
        let mut writer = CompoundWriter::new(&mut bytes);
        let ssrcs = &self.ssrcs[..self.ssrcs.len().min(REMB_STREAMS_MAX)];
        // A compound begins with a report (RFC 3550, section 6.1). A middlebox that receives no media has no blocks.
        let report = writer.receiver_report(MIDDLEBOX_SSRC, &[]);
        let remb = writer.remb(MIDDLEBOX_SSRC, rate, ssrcs);
        debug_assert!(report.is_ok() && remb.is_ok(), "the compound fits");
        let len = writer.finish();
        self.sender.handle_packet(now, &bytes[..len]);
    }

    /// Handles a datagram that reached `end`: the time at which it was sent, or `now` if that is unknown, its bytes, its size
    /// on the network and its ECN field.
    #[inline]
    pub fn handle_packet(&mut self, now: Time, end: FlowEnd, sent: Time, bytes: &[u8], size: DataSize, ecn: Ecn) {
        if end == FlowEnd::Receiver {
            while let Some((_, change)) = self.routes.pop_if(|(at, _)| *at <= sent) {
                self.handle_change(now, end, change);
            }
        }
        match end {
            FlowEnd::Sender => self.sender.handle_packet(now, bytes),
            FlowEnd::Receiver => self.receiver.handle_packet(self.clock.at(now), bytes, size, ecn),
        }
    }

    /// Converts an event of the sender; `None` if it is not recorded.
    pub fn sender_event(&self, at: Time, event: SenderEvent) -> Option<EventRecord> {
        let flow = self.id;
        Some(match event {
            SenderEvent::Decision(d) => EventRecord::Decision { at, flow, target: d.target, pacing: d.pacing },
            SenderEvent::RoundTrip(rtt) => EventRecord::RoundTrip { at, flow, rtt },
            SenderEvent::FractionLost(f) => EventRecord::FractionLost { at, flow, fraction: f.get() },
            SenderEvent::FrameDropped(stream) => EventRecord::FrameDropped { at, flow, stream },
            SenderEvent::Signal(signal, value) => EventRecord::Signal { at, flow, half: HalfName::Send, signal, value },
            _ => return None,
        })
    }

    /// Converts an event of the receiver.
    pub fn receiver_event(&self, at: Time, event: ReceiverEvent) -> EventRecord {
        let flow = self.id;
        match event {
            ReceiverEvent::Frame { stream, timestamp, size, dropped } => {
                let (offset, clock_rate) = self.timing[stream.0 as usize];
                let captured = capture_time(at, timestamp.wrapping_sub(offset), clock_rate);
                EventRecord::Frame { at, flow, stream, captured, size, dropped }
            }
            ReceiverEvent::Remb(rate) => EventRecord::Remb { at, flow, rate },
            ReceiverEvent::Signal(signal, value) => {
                EventRecord::Signal { at, flow, half: HalfName::Receive, signal, value }
            }
        }
    }
}

/// Returns what the ends of a flow learn during the run, in order of time: of its limits and its network, and of its streams,
/// as far as they differ from their sources.
fn all_changes(media: &MediaPlan) -> Vec<(Time, FlowChange)> {
    let mut changes = media.changes.clone();
    let limits = &media.controller.limits;
    if !limits.is_empty() {
        changes.retain(|(_, change)| !matches!(change, FlowChange::Bounds(_)));
        changes.extend(limits.iter().map(|(at, bounds)| (*at, FlowChange::Bounds(*bounds))));
    }
    for (index, stream) in media.streams.iter().enumerate() {
        let id = StreamId(index as u8);
        let limits = stream.max.points().iter().map(|(at, max)| (*at, FlowChange::StreamMax(id, *max)));
        changes.extend(limits.filter(|(_, change)| *change != FlowChange::StreamMax(id, Rate::MAX)));
        let muted = stream.muted.points().iter().filter(|point| **point != (Time::ZERO, false));
        changes.extend(muted.map(|(at, muted)| (*at, FlowChange::StreamMuted(id, *muted))));
        changes.extend((stream.stop != Time::MAX).then_some((stream.stop, FlowChange::StreamEnd(id))));
    }
    changes.sort_by_key(|(at, _)| *at);
    changes
}

/// Returns the class of a datagram of the sender.
pub fn packet_class(sent: &DatagramKind) -> PacketClass {
    match sent {
        DatagramKind::Rtcp => PacketClass::SenderControl,
        DatagramKind::Rtp { kind: PacketKind::Media, .. } => PacketClass::Media,
        DatagramKind::Rtp { kind: PacketKind::Retransmission, .. } => PacketClass::Retransmission,
        DatagramKind::Rtp { kind: PacketKind::Fec, .. } => PacketClass::Fec,
        DatagramKind::Rtp { kind: PacketKind::Padding, .. } => PacketClass::Padding,
    }
}

/// Returns the capture time of an RTP timestamp: the nearest one that is not after `now`.
fn capture_time(now: Time, timestamp: u32, clock_rate: u32) -> Time {
    const SECOND: i64 = 1_000_000_000;
    let rate = i64::from(clock_rate);
    let now_units = now.as_nanos() / SECOND * rate + now.as_nanos() % SECOND * rate / SECOND;
    // A timestamp in the future is an error of the clocks.
    let age = ((now_units as u32).wrapping_sub(timestamp) as i32).max(0);
    let units = now_units - i64::from(age);
    Time::from_nanos(units / rate * SECOND + units % rate * SECOND / rate)
}

/// Returns the registry entry of a flow's controller.
///
/// # Errors
/// The registry has no controller of that name.
pub fn controller<'a>(plan: &FlowPlan, media: &MediaPlan, registry: &'a Registry) -> Result<&'a Entry, WorldError> {
    let name = &media.controller.name;
    registry.get(name).ok_or_else(|| WorldError::UnknownController { flow: plan.id.clone(), name: name.clone() })
}

/// Builds flow number `id`, which starts at `start`. Its controller emits signals only if `signals` is set.
///
/// # Errors
/// The controller or a source cannot be built.
pub fn build(
    id: usize,
    plan: &FlowPlan,
    media: &MediaPlan,
    start: Time,
    entry: &Entry,
    streams: &RandomStreams,
    signals: bool,
) -> Result<MediaFlow, WorldError> {
    let prepared = PreparedFlow::new(id, plan, media, entry, streams, signals)?;
    let streams = prepared.stream_infos.clone();
    let terms = Terms {
        extensions: Default::default(),
        streams,
        source: None,
        wall_clock: EPOCH,
        receiver_ssrc: RECEIVER_SSRC,
    };
    prepared.begin(start, terms)
}

/// A media flow before it starts: stream identifiers are drawn and the controller is built. The endpoints of a call
/// negotiate [`Terms`] before the flow starts.
pub struct PreparedFlow {
    id: usize,
    plan: FlowPlan,
    media: MediaPlan,
    streams: RandomStreams,
    signals: bool,
    controller_name: &'static str,
    controller: Controller,
    stream_infos: Vec<StreamInfo>,
    /// First sequence number and first RTP timestamp of each stream.
    initial_rtp_values: Vec<(u16, u32)>,
    clock: ReceiverClock,
}

/// Session parameters that both endpoints share before the first packet.
pub struct Terms {
    /// Header extension ids.
    pub extensions: ExtensionIds,
    /// SSRCs, kind and clock rate of each stream.
    pub streams: Vec<StreamInfo>,
    /// A source that replaces the plan's source of the first stream.
    pub source: Option<Box<dyn Source>>,
    /// Wall-clock time at time zero, since 1970; sender reports carry it.
    pub wall_clock: Duration,
    pub receiver_ssrc: u32,
}

/// SSRC of receivers, if no other is given.
pub const RECEIVER_SSRC: u32 = 1;

impl PreparedFlow {
    /// Draws the values that depend on the seed, and builds the controller.
    ///
    /// # Errors
    /// The controller cannot be built.
    pub fn new(
        id: usize,
        plan: &FlowPlan,
        media: &MediaPlan,
        entry: &Entry,
        streams: &RandomStreams,
        signals: bool,
    ) -> Result<Self, WorldError> {
        let setup = media.setup();
        let controller = entry
            .build(&setup, &media.controller.config)
            .map_err(|error| WorldError::Controller { flow: plan.id.clone(), error })?;

        let mut identity = streams.stream(&format!("flow/{}/identity", plan.id));
        let (mut stream_infos, mut initial_rtp_values) = (Vec::new(), Vec::new());
        for (index, stream) in media.streams.iter().enumerate() {
            stream_infos.push(StreamInfo {
                id: StreamId(index as u8),
                kind: stream.kind,
                // The top bits make the SSRCs of a flow distinct; the rest is random, as RFC 3550 requires.
                ssrc: (index as u32 * 2) << 24 | identity.bits() as u32 & 0x00FF_FFFF,
                rtx_ssrc: (index as u32 * 2 + 1) << 24 | identity.bits() as u32 & 0x00FF_FFFF,
                clock_rate: stream.source.clock_rate(),
            });
            initial_rtp_values.push((identity.bits() as u16, identity.bits() as u32));
        }
        let offset = media.clock.offset.unwrap_or_else(|| identity.time_below(TimeDelta::from_secs(3600)));
        let clock = ReceiverClock { offset, drift_ppb: media.clock.drift_ppb };
        let (plan, media, streams, controller_name) = (plan.clone(), media.clone(), *streams, entry.name());
        Ok(Self {
            id,
            plan,
            media,
            streams,
            signals,
            controller_name,
            controller,
            stream_infos,
            initial_rtp_values,
            clock,
        })
    }

    /// Returns the identifiers of each stream.
    pub fn stream_infos(&self) -> &[StreamInfo] {
        &self.stream_infos
    }

    /// Returns the first RTP timestamp of each stream.
    pub fn first_timestamps(&self) -> impl Iterator<Item = u32> {
        self.initial_rtp_values.iter().map(|(_, timestamp)| *timestamp)
    }

    pub fn controller(&self) -> &Controller {
        &self.controller
    }

    /// Builds both endpoints with these session parameters; the flow starts at `start`.
    ///
    /// # Errors
    /// A source cannot be built.
    pub fn begin(self, start: Time, terms: Terms) -> Result<MediaFlow, WorldError> {
        let Self {
            id, plan, media, streams, signals, controller_name, mut controller, initial_rtp_values, clock, ..
        } = self;
        let path = |what: &str| format!("flow/{}/{what}", plan.id);
        let Terms { extensions, streams: stream_infos, mut source, wall_clock, receiver_ssrc } = terms;
        let mut configs = Vec::new();
        for ((stream, info), first) in media.streams.iter().zip(&stream_infos).zip(&initial_rtp_values) {
            let random = streams.stream(&path(&format!("stream/{}", stream.id)));
            let planned = || stream.source.config.build(start, random);
            let source = source
                .take()
                .map_or_else(planned, Ok)
                .map_err(|error| WorldError::Source { flow: plan.id.clone(), error })?;
            let (first_sequence, timestamp_offset) = *first;
            let (info, priority, suspends) = (*info, stream.priority, stream.suspends);
            configs.push(StreamConfig { info, source, priority, suspends, first_sequence, timestamp_offset });
        }
        let timing = configs.iter().map(|c| (c.timestamp_offset, c.info.clock_rate)).collect();
        let ssrcs = configs.iter().map(|c| c.info.ssrc).collect();
        let rtcp = RtcpTiming { min_interval: media.rtcp_interval, session: media.max_rate() };
        let emitted = || if signals { Signals::enabled() } else { Signals::disabled() };

        let sender = SenderConfig {
            extensions,
            streams: configs,
            start,
            packet_size: media.packet_size,
            packet_time: plan.host.unwrap_or_default().packet_time,
            rtcp,
            pacer_limit: media.pacer_limit,
            retransmit: media.retransmit,
            protection: media.protection,
            feedback_formats: FeedbackFormats::default(),
            ntp_origin: (wall_clock + NTP_TO_1970).as_nanos() as u64,
        };
        let receiver = ReceiverConfig {
            extensions,
            streams: stream_infos,
            start: clock.at(start),
            ssrc: receiver_ssrc,
            rtcp,
            nack: media.retransmit,
            feedback_formats: FeedbackFormats::default(),
            feedback_interval: media.feedback_interval,
        };
        let receiver = MediaReceiver::new(receiver, &mut controller, streams.stream(&path("receiver/rtcp")), emitted());
        let sender = MediaSender::new(sender, &mut controller, streams.stream(&path("sender/rtcp")), emitted());
        let (name, controller) = (plan.id, controller_name);
        let (changes, routes) = Default::default();
        let id = FlowId(id as u16);
        let mut flow = MediaFlow { sender, receiver, clock, id, name, controller, timing, ssrcs, changes, routes };
        flow.begin_changes(start, &all_changes(&media));
        Ok(flow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capture_time_is_never_after_arrival() {
        let at = |now: Time, timestamp| capture_time(now, timestamp, 90_000);
        let now = Time::from_secs(100_000); // the timestamp wrapped twice
        let units = (100_000u64 * 90_000) as u32;
        assert_eq!(at(now, units.wrapping_sub(9_000)), now - TimeDelta::from_millis(100));
        assert_eq!(at(now, units.wrapping_sub(90_000 * 3600)), now - TimeDelta::from_secs(3600));
        assert_eq!(at(now, units), now);
        assert_eq!(at(now, units.wrapping_add(45)), now, "half a millisecond ahead");
    }
}
