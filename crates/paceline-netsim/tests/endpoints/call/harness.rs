// SPDX-License-Identifier: MIT OR Apache-2.0
//! A test call of two endpoints in virtual time, over a path with a delay, a rate, and impairments of single packets.
//! It drives the endpoints and records everything that happens.

use paceline::{
    Controller, Decision, Event, Message, PacketReport, ProbeCluster, Protection, QueuedFrame, Registry, RoundTrip,
    SendHalf, SentPacket, Setup, Signals, StreamState,
};
use paceline_netsim::flow::source::{Ideal, Source, VideoConfig};
use paceline_netsim::flow::{
    Datagram, DatagramKind, FeedbackFormats, MediaKind, MediaReceiver, MediaSender, PACKET_SIZE_DEFAULT,
    ReceiverConfig, ReceiverEvent, RtcpTiming, SenderConfig, SenderEvent, StreamConfig, StreamInfo,
};
use paceline_units::{DataSize, Ecn, RandomStreams, Rate, RemoteTime, StreamId, Time, TimeDelta};
use paceline_wire::CompoundWriter;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

pub const FPS: f64 = 30.0;

/// The fate of a packet on the path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fate {
    Deliver,
    Drop,
    Duplicate,
    Delay(TimeDelta),
    /// Delivered with a CE mark.
    Mark,
    /// Delivered with the ECN field cleared.
    Bleach,
    /// Dropped if it is ECN-capable.
    DropEcnCapable,
    /// Duplicated; the second copy has a CE mark.
    DuplicateMarked,
}

/// Returns the fate of the n-th datagram of one direction, sent at this time.
pub type Impairment = Box<dyn FnMut(u64, Time, &[u8]) -> Fate>;

/// The configuration of a test call.
pub struct CallConfig {
    pub controller: Controller,
    pub packet_size: DataSize,
    pub streams: Vec<StreamConfig>,
    pub retransmit: bool,
    pub protection: Protection,
    pub feedback_formats: FeedbackFormats,
    pub forward_delay: TimeDelta,
    pub back_delay: TimeDelta,
    pub capacity: Rate,
    pub clock_offset: TimeDelta,
    pub drift_ppm: i64,
    pub pacer_limit: TimeDelta,
    pub forward: Impairment,
    pub back: Impairment,
    /// Datagrams that the media sender receives in addition.
    pub injected: Vec<(Time, Vec<u8>)>,
}

impl CallConfig {
    /// One video stream with an ideal source of up to `most`, a path of 20 ms each way and more capacity than needed.
    pub fn new(controller: Controller, most: Rate) -> Self {
        Self {
            controller,
            packet_size: PACKET_SIZE_DEFAULT,
            streams: vec![video(0, most)],
            retransmit: true,
            protection: Protection::default(),
            feedback_formats: FeedbackFormats::default(),
            forward_delay: TimeDelta::from_millis(20),
            back_delay: TimeDelta::from_millis(20),
            capacity: Rate::from_kbps(100_000),
            clock_offset: TimeDelta::from_secs(12_345),
            drift_ppm: 0,
            pacer_limit: TimeDelta::from_secs(2),
            forward: Box::new(|_, _, _| Fate::Deliver),
            back: Box::new(|_, _, _| Fate::Deliver),
            injected: Vec::new(),
        }
    }

    /// Creates the two endpoints.
    pub fn endpoints(&mut self, signals: fn() -> Signals) -> (MediaSender, MediaReceiver) {
        let random = RandomStreams::new(7);
        let rtcp = RtcpTiming { min_interval: TimeDelta::from_secs(1), session: Rate::from_kbps(2000) };
        let streams: Vec<StreamConfig> = std::mem::take(&mut self.streams);
        let receiver = ReceiverConfig {
            extensions: Default::default(),
            streams: streams.iter().map(|s| s.info).collect(),
            start: remote_time(self, Time::ZERO),
            ssrc: 1,
            rtcp,
            nack: self.retransmit,
            feedback_formats: self.feedback_formats,
            feedback_interval: None,
        };
        let sender = SenderConfig {
            extensions: Default::default(),
            streams,
            start: Time::ZERO,
            packet_size: self.packet_size,
            packet_time: TimeDelta::ZERO,
            rtcp,
            pacer_limit: self.pacer_limit,
            retransmit: self.retransmit,
            protection: self.protection,
            feedback_formats: self.feedback_formats,
            ntp_origin: 3_900_000_000_000_000_000,
        };
        let c = &mut self.controller;
        let receiver = MediaReceiver::new(receiver, c, random.stream("receiver"), signals());
        (MediaSender::new(sender, c, random.stream("sender"), signals()), receiver)
    }
}

/// A controller of the registry that starts at 300 kbps, with a minimum of 50.
pub fn controller(name: &str, most: Rate, changes: &[(&str, f64)]) -> Controller {
    let setup = Setup::new(Rate::from_kbps(300), Rate::from_kbps(50), most);
    let changes: Vec<(String, f64)> = changes.iter().map(|(name, value)| (name.to_string(), *value)).collect();
    Registry::standard().get(name).unwrap().build(&setup, &changes).unwrap()
}

pub fn fixed(rate: Rate) -> Controller {
    controller("fixed", rate, &[("rate_bps", rate.as_bps_f64())])
}

/// The events of a [`RecordingHalf`].
#[derive(Debug, Default, PartialEq)]
pub struct Log {
    pub sent: Vec<(Time, SentPacket)>,
    pub frames: Vec<QueuedFrame>,
    pub streams: Vec<StreamState>,
    pub application_limits: Vec<(Time, bool)>,
    pub round_trips: Vec<RoundTrip>,
    pub receiver_reports: usize,
    pub messages: Vec<Message>,
    /// Of the feedback on packets.
    pub reports: Vec<(Time, PacketReport)>,
    pub outstanding: Vec<DataSize>,
    pub after_highest: DataSize,
    pub feedback_rtts: Vec<(Time, Option<RoundTrip>)>,
}

impl Log {
    pub fn take(log: &Mutex<Self>) -> Self {
        std::mem::take(&mut *log.lock().unwrap())
    }
}

/// A send half with a constant decision that records its events.
#[derive(Clone, Debug)]
pub struct RecordingHalf {
    decision: Decision,
    /// Requested after 2 s.
    pub probe: Option<ProbeCluster>,
    log: Arc<Mutex<Log>>,
}

impl RecordingHalf {
    pub fn new(decision: Decision) -> (Self, Arc<Mutex<Log>>) {
        let log: Arc<Mutex<Log>> = Arc::default();
        (Self { decision, probe: None, log: log.clone() }, log)
    }
}

impl SendHalf for RecordingHalf {
    fn handle_event(&mut self, now: Time, event: &Event<'_>, _: &mut Signals) {
        let mut log = self.log.lock().unwrap();
        match *event {
            Event::Sent(packet) => log.sent.push((now, *packet)),
            Event::Frame(frame) => log.frames.push(*frame),
            Event::Stream(stream) => log.streams.push(*stream),
            Event::ApplicationLimit(limited) => log.application_limits.push((now, limited)),
            Event::RoundTrip(rtt) => log.round_trips.push(*rtt),
            Event::Report(_) => log.receiver_reports += 1,
            Event::Message(message) => log.messages.push(*message),
            Event::Feedback(feedback) => {
                assert!(feedback.packets.is_sorted_by(|a, b| a.sequence < b.sequence), "in order of sequence");
                log.reports.extend(feedback.packets.iter().map(|p| (now, *p)));
                log.outstanding.push(feedback.outstanding);
                log.after_highest = feedback.after_highest;
                log.feedback_rtts.push((now, feedback.rtt));
            }
            _ => {}
        }
    }

    fn decision(&self) -> Decision {
        self.decision
    }

    fn poll_probe(&mut self, now: Time) -> Option<ProbeCluster> {
        self.probe.take_if(|_| now >= Time::from_secs(2))
    }
}

pub fn stream_info(index: u8, kind: MediaKind, clock_rate: u32) -> StreamInfo {
    let ssrc = 1000 + index as u32 * 2;
    StreamInfo { id: StreamId(index), kind, ssrc, rtx_ssrc: ssrc + 1, clock_rate }
}

pub fn video(index: u8, most: Rate) -> StreamConfig {
    video_source(index, FPS, Rate::from_kbps(30), most, Rate::from_kbps(300))
}

/// A video stream with an ideal source.
pub fn video_source(index: u8, fps: f64, min: Rate, max: Rate, start: Rate) -> StreamConfig {
    let source = Ideal::new(VideoConfig { fps, min, max, start }, Time::ZERO).unwrap();
    stream(index, MediaKind::Video, Box::new(source))
}

pub fn stream(index: u8, kind: MediaKind, source: Box<dyn Source>) -> StreamConfig {
    let info = stream_info(index, kind, if kind == MediaKind::Video { 90_000 } else { 48_000 });
    StreamConfig { info, source, priority: 1.0, suspends: false, first_sequence: 100, timestamp_offset: 0 }
}

/// A rendered frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RenderedFrame {
    pub at: Time,
    pub stream: StreamId,
    pub timestamp: u32,
    pub size: DataSize,
    pub dropped: u16,
}

/// A datagram that an endpoint sent.
#[derive(Clone, Debug, PartialEq)]
pub struct SentDatagram {
    pub at: Time,
    pub sent: Option<DatagramKind>,
    pub size: DataSize,
    pub bytes: Vec<u8>,
}

struct InFlight {
    bytes: Vec<u8>,
    size: DataSize,
    ecn: Ecn,
}

pub struct TestCall {
    pub sender: MediaSender,
    pub receiver: MediaReceiver,
    pub now: Time,
    pub rendered: Vec<RenderedFrame>,
    pub rembs: Vec<(Time, Rate)>,
    pub events: Vec<(Time, SenderEvent)>,
    pub forward_log: Vec<SentDatagram>,
    pub back_log: Vec<SentDatagram>,
    config: CallConfig,
    free_at: Time,
    number: u64,
    forward: BTreeMap<(Time, u64), InFlight>,
    back: BTreeMap<(Time, u64), InFlight>,
}

impl TestCall {
    pub fn new(mut config: CallConfig) -> Self {
        config.injected.reverse();
        let (sender, receiver) = config.endpoints(Signals::disabled);
        Self {
            sender,
            receiver,
            now: Time::ZERO,
            rendered: Vec::new(),
            rembs: Vec::new(),
            events: Vec::new(),
            forward_log: Vec::new(),
            back_log: Vec::new(),
            config,
            free_at: Time::ZERO,
            number: 0,
            forward: BTreeMap::new(),
            back: BTreeMap::new(),
        }
    }

    /// Runs until nothing is due before `end`.
    pub fn run_until(&mut self, end: Time) {
        let (mut before, mut spins) = (self.now, 0);
        loop {
            let injected = self.config.injected.last().map_or(Time::MAX, |(at, _)| *at);
            let head = |queue: &BTreeMap<(Time, u64), InFlight>| queue.keys().next().map_or(Time::MAX, |(at, _)| *at);
            let (forward, back) = (head(&self.forward), head(&self.back));
            let sender = self.sender.poll_timeout().unwrap_or(Time::MAX);
            let receiver = self.receiver.poll_timeout().map_or(Time::MAX, |due| self.local_time(due));
            let next = injected.min(forward).min(back).min(sender).min(receiver).max(self.now);
            if next >= end {
                self.now = end;
                return;
            }
            self.now = next;
            spins = if next == before { spins + 1 } else { 0 };
            before = next;
            assert!(spins < 10_000, "time stands still at {next:?}");

            if injected <= next {
                let (_, bytes) = self.config.injected.pop().unwrap();
                self.sender.handle_packet(next, &bytes);
                self.drain_sender();
            } else if forward <= next {
                let (_, packet) = self.forward.pop_first().unwrap();
                let reading = remote_time(&self.config, next);
                self.receiver.handle_packet(reading, &packet.bytes, packet.size, packet.ecn);
                self.drain_receiver();
            } else if back <= next {
                let (_, packet) = self.back.pop_first().unwrap();
                self.sender.handle_packet(next, &packet.bytes);
                self.drain_sender();
            } else if sender <= next {
                self.sender.handle_timeout(next);
                self.drain_sender();
            } else {
                self.receiver.handle_timeout(remote_time(&self.config, next));
                self.drain_receiver();
            }
        }
    }

    /// Returns the time on the receiver's clock.
    pub fn remote_now(&self) -> RemoteTime {
        remote_time(&self.config, self.now)
    }

    /// Creates a call and runs it for this time.
    pub fn run(config: CallConfig, seconds: i64) -> Self {
        let mut call = Self::new(config);
        call.run_secs(seconds);
        call
    }

    pub fn run_secs(&mut self, seconds: i64) {
        self.run_until(Time::from_secs(seconds));
    }

    fn drain_sender(&mut self) {
        let now = self.now;
        let mut out = Datagram::new();
        while let Some(sent) = self.sender.poll_transmit(now, &mut out) {
            let left = SentDatagram { at: now, sent: Some(sent), size: out.size(), bytes: out.bytes().to_vec() };
            let fate = (self.config.forward)(self.forward_log.len() as u64, now, out.bytes());
            self.free_at = self.free_at.max(now) + out.size() / self.config.capacity;
            let due = self.free_at + self.config.forward_delay;
            send(&mut self.forward, &mut self.number, due, fate, &out);
            self.forward_log.push(left);
        }
        while let Some(event) = self.sender.poll_event() {
            self.events.push((now, event));
        }
    }

    fn drain_receiver(&mut self) {
        let (now, reading) = (self.now, remote_time(&self.config, self.now));
        let mut out = Datagram::new();
        while self.receiver.poll_transmit(reading, &mut out) {
            self.back_log.push(SentDatagram { at: now, sent: None, size: out.size(), bytes: out.bytes().to_vec() });
            let fate = (self.config.back)(self.back_log.len() as u64 - 1, now, out.bytes());
            send(&mut self.back, &mut self.number, now + self.config.back_delay, fate, &out);
        }
        while let Some(event) = self.receiver.poll_event() {
            match event {
                ReceiverEvent::Frame { stream, timestamp, size, dropped } => {
                    self.rendered.push(RenderedFrame { at: now, stream, timestamp, size, dropped });
                }
                ReceiverEvent::Remb(rate) => self.rembs.push((now, rate)),
                ReceiverEvent::Signal(..) => {}
            }
        }
    }

    /// The first time at which the receiver's clock shows `at`.
    fn local_time(&self, at: RemoteTime) -> Time {
        let since = (at - RemoteTime::ZERO - self.config.clock_offset).as_nanos() as i128;
        let guess = since * 1_000_000 / (1_000_000 + self.config.drift_ppm as i128);
        let mut time = Time::from_nanos((guess - 2).max(self.now.as_nanos() as i128) as i64);
        while remote_time(&self.config, time) < at {
            time += TimeDelta::from_nanos(1);
        }
        time
    }

    /// Rate of the datagrams of these kinds that the sender sent between two times.
    pub fn sent_bps(&self, kinds: impl Fn(&DatagramKind) -> bool, from: Time, to: Time) -> f64 {
        let during = |l: &&SentDatagram| l.at >= from && l.at < to && l.sent.as_ref().is_some_and(&kinds);
        let bytes: u64 = self.forward_log.iter().filter(during).map(|l| l.size.as_bytes()).sum();
        bytes as f64 * 8.0 / (to - from).as_secs_f64()
    }

    /// Number of datagrams of these kinds that the sender sent.
    pub fn count(&self, kinds: impl Fn(&DatagramKind) -> bool) -> usize {
        self.forward_log.iter().filter(|l| l.sent.as_ref().is_some_and(&kinds)).count()
    }

    /// Fractions lost that reports gave, with their times.
    pub fn fractions_lost(&self) -> impl Iterator<Item = (Time, f64)> {
        self.events.iter().filter_map(|(at, event)| match event {
            SenderEvent::FractionLost(fraction) => Some((*at, fraction.get())),
            _ => None,
        })
    }

    /// Number of malformed and ignored packets at the sender.
    pub fn sender_rejected(&self) -> u32 {
        let (malformed, ignored) = self.sender.rejected_packets();
        malformed.iter().sum::<u32>() + ignored
    }
}

fn send(queue: &mut BTreeMap<(Time, u64), InFlight>, number: &mut u64, due: Time, fate: Fate, datagram: &Datagram) {
    let (late, copies, marked) = match fate {
        Fate::Drop => return,
        Fate::Deliver => (TimeDelta::ZERO, 1, None),
        Fate::DropEcnCapable if datagram.ecn != Ecn::NotEct => return,
        Fate::Bleach | Fate::DropEcnCapable => (TimeDelta::ZERO, 1, None),
        Fate::Duplicate => (TimeDelta::ZERO, 2, None),
        Fate::Delay(by) => (by, 1, None),
        Fate::Mark => (TimeDelta::ZERO, 1, Some(0)),
        Fate::DuplicateMarked => (TimeDelta::ZERO, 2, Some(1)),
    };
    for copy in 0..copies {
        let ecn = match fate {
            Fate::Bleach => Ecn::NotEct,
            _ if marked == Some(copy) => Ecn::Ce,
            _ => datagram.ecn,
        };
        let packet = InFlight { bytes: datagram.bytes().to_vec(), size: datagram.size(), ecn };
        *number += 1;
        queue.insert((due + late, *number), packet);
    }
}

/// The time that the receiver's clock shows.
fn remote_time(config: &CallConfig, now: Time) -> RemoteTime {
    let drift = (now.as_nanos() as i128 * config.drift_ppm as i128 / 1_000_000) as i64;
    RemoteTime::ZERO + config.clock_offset + (now - Time::ZERO) + TimeDelta::from_nanos(drift)
}

/// Delivers every packet.
pub fn pass() -> Impairment {
    Box::new(|_, _, _| Fate::Deliver)
}

/// Drops the datagrams for which this is true.
pub fn drop_if(mut drop: impl FnMut(u64, Time, &[u8]) -> bool + 'static) -> Impairment {
    Box::new(move |index, now, bytes| if drop(index, now, bytes) { Fate::Drop } else { Fate::Deliver })
}

/// Drops datagrams at random, with the random stream of this seed.
pub fn random_loss(seed: u64, chance: f64) -> Impairment {
    let mut random = RandomStreams::new(seed).stream("loss");
    drop_if(move |_, _, _| random.chance(chance))
}

/// Drops everything in this time.
pub fn outage(time: std::ops::Range<Time>) -> Impairment {
    drop_if(move |_, now, _| time.contains(&now))
}

/// An RTCP compound with these packets.
pub fn compound(write: impl Fn(&mut CompoundWriter<'_>)) -> Vec<u8> {
    let mut buffer = [0; 1024];
    let mut writer = CompoundWriter::new(&mut buffer);
    write(&mut writer);
    let len = writer.finish();
    buffer[..len].to_vec()
}
