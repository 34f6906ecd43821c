//! The simulator: the world in virtual time.
//!
//! Components (senders, receivers, access lines, hops) are numbered; each has at most one pending event, at the time
//! its `poll_timeout` names. A woken component is served and drained; what it sends enters the next component at the
//! same instant. Packets live in one slab and are named by handle.

mod clock;
mod events;
mod packets;
mod trace_hash;

use crate::plan::{FlowPlan, HopPlan, Plan, QueuePlan, SourcePlan};
use crate::rows::{DropReason, HalfName, PacketClass, PacketRow, Row, RowSink};
use crate::world::{Outcome, World, WorldError};
use clock::Clock;
use events::Events;
use paceline::{PacketKind, Registry, Setup, Signals};
use paceline_flow::source::{Audio, Encoder, FrameTrace, Ideal, Source, SourceError};
use paceline_flow::{
    MediaReceiver, MediaSender, ReceiverConfig, ReceiverEvent, RtcpTiming, SenderConfig, SenderEvent, Sent,
    StreamConfig, StreamNames,
};
use paceline_link::queue::DropTail;
use paceline_link::{Descriptor, DropCause, Link, LinkConfig, Output};
use paceline_units::{DataSize, Ecn, FlowId, RemoteTime, StreamId, Streams, Time, TimeDelta};
use packets::Packets;
use std::collections::VecDeque;
use trace_hash::{Kind, TraceHash};

/// The simulator.
#[derive(Clone, Copy, Debug, Default)]
pub struct Simulator;

impl World for Simulator {
    fn name(&self) -> &'static str {
        "sim"
    }

    fn run(&self, plan: &Plan, registry: &Registry, seed: u64, rows: &mut dyn RowSink) -> Result<Outcome, WorldError> {
        let mut run = Run::new(plan, registry, seed, rows)?;
        run.go();
        Ok(Outcome {
            trace_hash: run.hash.finish(),
            events: run.events.handled(),
            pending_max: run.events.pending_max(),
            delivered: run.delivered,
        })
    }
}

struct Flow {
    sender: MediaSender,
    receiver: MediaReceiver,
    clock: Clock,
    /// Hops of media, and of reports.
    routes: [Vec<usize>; 2],
    access_delay: TimeDelta,
    /// Packets on the access line, each way.
    access: [VecDeque<(Time, u32)>; 2],
    start: Time,
    stop: Time,
    /// RTP timestamp of time zero and clock rate, by stream.
    timing: Vec<(u32, u32)>,
}

/// Which way through a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Media = 0,
    Reports = 1,
}

/// Components of a flow, in this order; hops come before all flows.
const PER_FLOW: usize = 4;
const SENDER: usize = 0;
const RECEIVER: usize = 1;
const ACCESS: usize = 2; // and 3, by way

struct Run<'a> {
    flows: Vec<Flow>,
    hops: Vec<Link>,
    packets: Packets,
    events: Events,
    hash: TraceHash,
    rows: &'a mut dyn RowSink,
    end: Time,
    sent: u64,
    delivered: u64,
}

impl<'a> Run<'a> {
    fn new(plan: &Plan, registry: &Registry, seed: u64, rows: &'a mut dyn RowSink) -> Result<Self, WorldError> {
        let streams = Streams::new(seed);
        let signals = rows.wants_signals();
        let flows: Vec<Flow> =
            plan.flows.iter().map(|f| build_flow(f, registry, &streams, signals)).collect::<Result<_, _>>()?;
        let hops: Vec<Link> = plan.hops.iter().map(|h| build_hop(h, &streams)).collect();
        let mut events = Events::new(hops.len() + flows.len() * PER_FLOW);
        for (index, flow) in flows.iter().enumerate() {
            let base = hops.len() + index * PER_FLOW;
            events.wake(base + SENDER, flow.sender.poll_timeout().max(flow.start));
            events.wake(base + RECEIVER, flow.clock.when(flow.receiver.poll_timeout(), flow.start));
        }
        let (packets, hash, end) = (Packets::default(), TraceHash::new(), Time::ZERO + plan.duration);
        Ok(Self { flows, hops, packets, events, hash, rows, end, sent: 0, delivered: 0 })
    }

    fn go(&mut self) {
        while let Some((now, component)) = self.events.pop(self.end) {
            let Some(within) = component.checked_sub(self.hops.len()) else {
                self.serve_hop(now, component);
                continue;
            };
            let flow = within / PER_FLOW;
            match within % PER_FLOW {
                SENDER => self.serve_sender(now, flow),
                RECEIVER => self.serve_receiver(now, flow),
                ACCESS => self.serve_access(now, flow, Way::Media),
                _ => self.serve_access(now, flow, Way::Reports),
            }
        }
    }

    fn component(&self, flow: usize, part: usize) -> usize {
        self.hops.len() + flow * PER_FLOW + part
    }

    // ---- endpoints

    fn serve_sender(&mut self, now: Time, flow: usize) {
        if now < self.flows[flow].stop {
            self.flows[flow].sender.handle_timeout(now);
            self.drain_sender(now, flow);
        }
    }

    fn drain_sender(&mut self, now: Time, flow: usize) {
        let id = FlowId(flow as u16);
        loop {
            let row = PacketRow { packet: self.sent, flow: id, class: PacketClass::Media, size: DataSize::ZERO };
            let handle = self.packets.take(row);
            let packet = self.packets.get_mut(handle);
            let Some(sent) = self.flows[flow].sender.poll_transmit(now, &mut packet.datagram) else {
                self.packets.give_back(handle);
                break;
            };
            let class = match sent {
                Sent::Control => PacketClass::SenderControl,
                Sent::Media { kind: PacketKind::Media, .. } => PacketClass::Media,
                Sent::Media { kind: PacketKind::Retransmission, .. } => PacketClass::Retransmission,
                Sent::Media { kind: PacketKind::Padding, .. } => PacketClass::Padding,
            };
            self.launch(now, flow, Way::Media, class, handle);
        }
        let component = self.component(flow, SENDER);
        while let Some(event) = self.flows[flow].sender.poll_event() {
            let row = match event {
                SenderEvent::Decision(d) => {
                    let target = DataSize::from_bytes(d.target.as_bps());
                    self.hash.add(now, component, Kind::Decision, d.pacing.as_bps(), target, Ecn::NotEct);
                    Row::Decision { at: now, flow: id, target: d.target, pacing: d.pacing }
                }
                SenderEvent::RoundTrip(rtt) => Row::RoundTrip { at: now, flow: id, rtt },
                SenderEvent::FractionLost(f) => Row::FractionLost { at: now, flow: id, fraction: f.get() },
                SenderEvent::FrameDropped(stream) => Row::FrameRefused { at: now, flow: id, stream },
                SenderEvent::Signal(signal, value) => {
                    Row::Signal { at: now, flow: id, half: HalfName::Send, signal, value }
                }
            };
            self.rows.row(&row);
        }
        self.events.wake(component, self.flows[flow].sender.poll_timeout().max(now));
    }

    fn serve_receiver(&mut self, now: Time, flow: usize) {
        if now < self.flows[flow].stop {
            let reading = self.flows[flow].clock.at(now);
            self.flows[flow].receiver.handle_timeout(reading);
            self.drain_receiver(now, reading, flow);
        }
    }

    fn drain_receiver(&mut self, now: Time, reading: RemoteTime, flow: usize) {
        let id = FlowId(flow as u16);
        let component = self.component(flow, RECEIVER);
        if self.flows[flow].receiver.poll_timeout() <= reading {
            loop {
                let class = PacketClass::ReceiverControl;
                let handle = self.packets.take(PacketRow { packet: self.sent, flow: id, class, size: DataSize::ZERO });
                let packet = self.packets.get_mut(handle);
                if !self.flows[flow].receiver.poll_transmit(reading, &mut packet.datagram) {
                    self.packets.give_back(handle);
                    break;
                }
                self.launch(now, flow, Way::Reports, class, handle);
            }
        }
        while let Some(event) = self.flows[flow].receiver.poll_event() {
            let row = match event {
                ReceiverEvent::Frame { stream, timestamp, size, dropped } => {
                    self.hash.add(now, component, Kind::Frame, timestamp as u64, size, Ecn::NotEct);
                    let (offset, clock_rate) = self.flows[flow].timing[stream.0 as usize];
                    let captured = capture_time(now, timestamp.wrapping_sub(offset), clock_rate);
                    Row::Frame { at: now, flow: id, stream, captured, size, dropped }
                }
                ReceiverEvent::Remb(rate) => Row::Remb { at: now, flow: id, rate },
                ReceiverEvent::Signal(signal, value) => {
                    Row::Signal { at: now, flow: id, half: HalfName::Receive, signal, value }
                }
            };
            self.rows.row(&row);
        }
        let next = self.flows[flow].clock.when(self.flows[flow].receiver.poll_timeout(), now);
        self.events.wake(component, next);
    }

    // ---- under way

    /// An endpoint wrote a datagram into `handle`: number it and put it on its way.
    #[inline]
    fn launch(&mut self, now: Time, flow: usize, way: Way, class: PacketClass, handle: u32) {
        let packet = self.packets.get_mut(handle);
        let size = packet.datagram.size();
        packet.row = PacketRow { packet: self.sent, flow: FlowId(flow as u16), class, size };
        packet.sent = now;
        packet.hop = 0;
        let (row, ecn) = (packet.row, packet.datagram.ecn);
        self.sent += 1;
        let component = self.component(flow, if way == Way::Media { SENDER } else { RECEIVER });
        self.hash.add(now, component, Kind::Sent, row.packet, size, ecn);
        self.rows.row(&Row::Sent { at: now, packet: row });

        let access_delay = self.flows[flow].access_delay;
        if access_delay == TimeDelta::ZERO {
            return self.forward(now, flow, way, handle);
        }
        let due = now + access_delay;
        self.flows[flow].access[way as usize].push_back((due, handle));
        self.events.wake(self.component(flow, ACCESS + way as usize), due);
    }

    fn serve_access(&mut self, now: Time, flow: usize, way: Way) {
        while let Some(&(due, handle)) = self.flows[flow].access[way as usize].front() {
            if due > now {
                self.events.wake(self.component(flow, ACCESS + way as usize), due);
                break;
            }
            self.flows[flow].access[way as usize].pop_front();
            self.forward(now, flow, way, handle);
        }
    }

    /// To the next hop of its route, or to the endpoint.
    #[inline]
    fn forward(&mut self, now: Time, flow: usize, way: Way, handle: u32) {
        let packet = self.packets.get(handle);
        let Some(&hop) = self.flows[flow].routes[way as usize].get(packet.hop as usize) else {
            return self.deliver(now, flow, way, handle);
        };
        let descriptor =
            Descriptor { id: handle, flow: packet.row.flow, size: packet.row.size, ecn: packet.datagram.ecn };
        self.hops[hop].handle_packet(now, descriptor);
        self.events.wake(hop, self.hops[hop].poll_timeout());
    }

    fn serve_hop(&mut self, now: Time, hop: usize) {
        while let Some(output) = self.hops[hop].poll_output(now) {
            match output {
                Output::Delivered { packet: descriptor, waited, left, due } => {
                    let packet = self.packets.get_mut(descriptor.id);
                    packet.hop += 1;
                    packet.datagram.ecn = descriptor.ecn;
                    let row = packet.row;
                    self.hash.add(due, hop, Kind::Crossed, row.packet, row.size, descriptor.ecn);
                    self.rows.row(&Row::Crossed { at: due, hop: hop as u16, packet: row, waited, left });
                    let way = if row.class == PacketClass::ReceiverControl { Way::Reports } else { Way::Media };
                    self.forward(now, row.flow.0 as usize, way, descriptor.id);
                }
                Output::Dropped { packet: descriptor, cause, due, left } => {
                    let (kind, reason) = match cause {
                        DropCause::Overflow => (Kind::Overflow, DropReason::Overflow),
                        DropCause::Loss => (Kind::Loss, DropReason::Loss),
                        DropCause::Early => (Kind::Early, DropReason::Early),
                    };
                    let row = self.packets.get(descriptor.id).row;
                    self.hash.add(due, hop, kind, row.packet, row.size, descriptor.ecn);
                    self.rows.row(&Row::Dropped { at: due, hop: hop as u16, packet: row, reason, left });
                    self.packets.give_back(descriptor.id);
                }
            }
        }
        self.events.wake(hop, self.hops[hop].poll_timeout());
    }

    fn deliver(&mut self, now: Time, flow: usize, way: Way, handle: u32) {
        let packet = self.packets.get(handle);
        let (row, delay, ecn) = (packet.row, now - packet.sent, packet.datagram.ecn);
        self.delivered += 1;
        let component = self.component(flow, if way == Way::Media { RECEIVER } else { SENDER });
        self.hash.add(now, component, Kind::Arrived, row.packet, row.size, ecn);
        self.rows.row(&Row::Arrived { at: now, packet: row, delay });
        let alive = now < self.flows[flow].stop;
        match way {
            Way::Media if alive => {
                let reading = self.flows[flow].clock.at(now);
                self.flows[flow].receiver.handle_packet(reading, packet.datagram.bytes(), row.size, ecn);
                self.packets.give_back(handle);
                self.drain_receiver(now, reading, flow);
            }
            Way::Reports if alive => {
                self.flows[flow].sender.handle_packet(now, packet.datagram.bytes());
                self.packets.give_back(handle);
                self.drain_sender(now, flow);
            }
            _ => self.packets.give_back(handle),
        }
    }
}

/// The capture time that an RTP timestamp means: the one nearest below `now`.
fn capture_time(now: Time, timestamp: u32, clock_rate: u32) -> Time {
    let rate = clock_rate as i128;
    let now_units = now.as_nanos() as i128 * rate / 1_000_000_000;
    let age = (now_units as u32).wrapping_sub(timestamp);
    Time::from_nanos(((now_units - age as i128) * 1_000_000_000 / rate) as i64)
}

fn build_hop(hop: &HopPlan, streams: &Streams) -> Link {
    let QueuePlan::DropTail(limit) = hop.queue;
    let config = LinkConfig {
        capacity: hop.capacity.clone(),
        queue: Box::new(DropTail::new(limit)),
        delay: hop.delay.clone(),
        jitter: hop.jitter,
        loss: hop.loss.clone(),
    };
    Link::new(config, streams, &format!("hop/{}", hop.id))
}

fn build_flow(plan: &FlowPlan, registry: &Registry, streams: &Streams, signals: bool) -> Result<Flow, WorldError> {
    let path = |what: &str| format!("flow/{}/{what}", plan.id);
    let entry = registry
        .get(&plan.controller.name)
        .ok_or_else(|| WorldError::UnknownController { flow: plan.id.clone(), name: plan.controller.name.clone() })?;
    let most = plan.most();
    let setup = Setup { start: plan.start_rate, min: plan.min_rate, max: most };
    let mut controller = entry
        .build(&setup, &plan.controller.config)
        .map_err(|error| WorldError::Controller { flow: plan.id.clone(), error })?;

    let mut identity = streams.stream(&path("identity"));
    let mut configs = Vec::new();
    for (index, stream) in plan.streams.iter().enumerate() {
        let random = streams.stream(&path(&format!("stream/{}", stream.id)));
        let source = build_source(&stream.source, plan.start, random)
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
    let offset = plan.clock.offset.unwrap_or_else(|| identity.time_below(TimeDelta::from_secs(3600)));
    let clock = Clock { offset, drift_ppb: plan.clock.drift_ppb };
    let rtcp = RtcpTiming { min_interval: plan.rtcp_interval, session: most };
    let hear = || if signals { Signals::heard() } else { Signals::unheard() };

    let sender = SenderConfig {
        extensions: Default::default(),
        streams: configs,
        start: plan.start,
        rtcp,
        pacer_limit: plan.pacer_limit,
        retransmit: plan.retransmit,
        ntp_origin: 3_900_000_000_000_000_000, // 2023, any day will do
    };
    let receiver = ReceiverConfig {
        extensions: Default::default(),
        streams: names,
        start: clock.at(plan.start),
        ssrc: 1,
        rtcp,
        nack: plan.retransmit,
    };
    let receiver = MediaReceiver::new(receiver, &mut controller, streams.stream(&path("receiver/rtcp")), hear());
    let sender = MediaSender::new(sender, &mut controller, streams.stream(&path("sender/rtcp")), hear());
    Ok(Flow {
        sender,
        receiver,
        clock,
        routes: [plan.media_route.clone(), plan.report_route.clone()],
        access_delay: plan.access_delay,
        access: [VecDeque::new(), VecDeque::new()],
        start: plan.start,
        stop: plan.stop,
        timing,
    })
}

fn build_source(
    plan: &SourcePlan,
    start: Time,
    random: paceline_units::RandomStream,
) -> Result<Box<dyn Source>, SourceError> {
    Ok(match plan {
        SourcePlan::Ideal(config) => Box::new(Ideal::new(config.clone(), start)?),
        SourcePlan::Encoder(config) => Box::new(Encoder::new(config.clone(), start, random)?),
        SourcePlan::Frames(config, ladder) => Box::new(FrameTrace::new(config.clone(), ladder.clone(), start)?),
        SourcePlan::Audio(config) => Box::new(Audio::new(config.clone(), start)?),
    })
}
