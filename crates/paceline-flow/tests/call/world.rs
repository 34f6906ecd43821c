//! A world of two endpoints: virtual time, a path with a delay, a rate and whatever a test does to single packets.
//! It drives the endpoints by their contract and writes down all that happens.

use paceline::{Controller, Protection, Registry, Setup, Signals};
use paceline_flow::source::{Ideal, IdealConfig, Source};
use paceline_flow::{
    Datagram, MediaKind, MediaReceiver, MediaSender, ReceiverConfig, ReceiverEvent, RtcpTiming, SenderConfig,
    SenderEvent, Sent, StreamConfig, StreamNames,
};
use paceline_units::{DataSize, Ecn, Rate, RemoteTime, StreamId, Streams, Time, TimeDelta};
use std::collections::BTreeMap;

pub const FPS: f64 = 30.0;

/// What becomes of a packet on the path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fate {
    Pass,
    Drop,
    Twice,
    Late(TimeDelta),
    /// Passes, marked on the way.
    Marked,
    /// Twice, the second of them marked.
    TwiceMarked,
}

/// What happens to the n-th datagram of one way, sent at that time.
pub type Impair = Box<dyn FnMut(u64, Time, &[u8]) -> Fate>;

/// A call before it begins.
pub struct Setting {
    pub controller: Controller,
    pub streams: Vec<StreamConfig>,
    pub retransmit: bool,
    pub protection: Protection,
    pub forward_delay: TimeDelta,
    pub back_delay: TimeDelta,
    pub capacity: Rate,
    pub clock_offset: TimeDelta,
    pub drift_ppm: i64,
    pub pacer_limit: TimeDelta,
    pub forward: Impair,
    pub back: Impair,
    /// Datagrams that somebody else sends to the media sender.
    pub forged: Vec<(Time, Vec<u8>)>,
}

impl Setting {
    /// One video stream, a perfect source of up to `most`, a path of 20 ms each way and more capacity than needed.
    pub fn new(controller: Controller, most: Rate) -> Self {
        Self {
            controller,
            streams: vec![video(0, most)],
            retransmit: true,
            protection: Protection::default(),
            forward_delay: TimeDelta::from_millis(20),
            back_delay: TimeDelta::from_millis(20),
            capacity: Rate::from_kbps(100_000),
            clock_offset: TimeDelta::from_secs(12_345),
            drift_ppm: 0,
            pacer_limit: TimeDelta::from_secs(2),
            forward: Box::new(|_, _, _| Fate::Pass),
            back: Box::new(|_, _, _| Fate::Pass),
            forged: Vec::new(),
        }
    }
}

/// A controller of the registry, from 300 kbps, at least 50.
pub fn controller(name: &str, most: Rate, changes: &[(&str, f64)]) -> Controller {
    let setup = Setup { start: Rate::from_kbps(300), min: Rate::from_kbps(50), max: most };
    let changes: Vec<(String, f64)> = changes.iter().map(|(name, value)| (name.to_string(), *value)).collect();
    Registry::standard().get(name).unwrap().build(&setup, &changes).unwrap()
}

pub fn fixed(rate: Rate) -> Controller {
    controller("fixed", rate, &[("rate_bps", rate.as_bps_f64())])
}

pub fn names(index: u8, kind: MediaKind, clock_rate: u32) -> StreamNames {
    let ssrc = 1000 + index as u32 * 2;
    StreamNames { id: StreamId(index), kind, ssrc, rtx_ssrc: ssrc + 1, clock_rate }
}

pub fn video(index: u8, most: Rate) -> StreamConfig {
    let config = IdealConfig { fps: FPS, min: Rate::from_kbps(30), max: most, start: Rate::from_kbps(300) };
    stream(index, MediaKind::Video, Box::new(Ideal::new(config, Time::ZERO).unwrap()))
}

pub fn stream(index: u8, kind: MediaKind, source: Box<dyn Source>) -> StreamConfig {
    let names = names(index, kind, source.clock_rate());
    StreamConfig { names, source, priority: 1.0, first_sequence: 100, timestamp_offset: 0 }
}

/// A rendered frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shown {
    pub at: Time,
    pub stream: StreamId,
    pub timestamp: u32,
    pub size: DataSize,
    pub dropped: u16,
}

/// A datagram that left an endpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct Left {
    pub at: Time,
    pub sent: Option<Sent>,
    pub size: DataSize,
    pub bytes: Vec<u8>,
}

struct UnderWay {
    bytes: Vec<u8>,
    size: DataSize,
    ecn: Ecn,
}

pub struct World {
    pub sender: MediaSender,
    pub receiver: MediaReceiver,
    pub now: Time,
    pub shown: Vec<Shown>,
    pub rembs: Vec<(Time, Rate)>,
    pub events: Vec<(Time, SenderEvent)>,
    pub forward_log: Vec<Left>,
    pub back_log: Vec<Left>,
    setting: Setting,
    free_at: Time,
    number: u64,
    forward: BTreeMap<(Time, u64), UnderWay>,
    back: BTreeMap<(Time, u64), UnderWay>,
}

impl World {
    pub fn new(mut setting: Setting) -> Self {
        let random = Streams::new(7);
        let rtcp = RtcpTiming { min_interval: TimeDelta::from_secs(1), session: Rate::from_kbps(2000) };
        let streams: Vec<StreamConfig> = std::mem::take(&mut setting.streams);
        setting.forged.reverse();
        let receiver = ReceiverConfig {
            extensions: Default::default(),
            streams: streams.iter().map(|s| s.names).collect(),
            start: reading(&setting, Time::ZERO),
            ssrc: 1,
            rtcp,
            nack: setting.retransmit,
        };
        let sender = SenderConfig {
            extensions: Default::default(),
            streams,
            start: Time::ZERO,
            rtcp,
            pacer_limit: setting.pacer_limit,
            retransmit: setting.retransmit,
            protection: setting.protection,
            ntp_origin: 3_900_000_000_000_000_000,
        };
        let c = &mut setting.controller;
        Self {
            receiver: MediaReceiver::new(receiver, c, random.stream("receiver"), Signals::unheard()),
            sender: MediaSender::new(sender, c, random.stream("sender"), Signals::unheard()),
            now: Time::ZERO,
            shown: Vec::new(),
            rembs: Vec::new(),
            events: Vec::new(),
            forward_log: Vec::new(),
            back_log: Vec::new(),
            setting,
            free_at: Time::ZERO,
            number: 0,
            forward: BTreeMap::new(),
            back: BTreeMap::new(),
        }
    }

    /// Goes on until nothing is due before `end`.
    pub fn run_until(&mut self, end: Time) {
        let (mut before, mut spins) = (self.now, 0);
        loop {
            let forged = self.setting.forged.last().map_or(Time::MAX, |(at, _)| *at);
            let head = |queue: &BTreeMap<(Time, u64), UnderWay>| queue.keys().next().map_or(Time::MAX, |(at, _)| *at);
            let (forward, back) = (head(&self.forward), head(&self.back));
            let (sender, receiver) = (self.sender.poll_timeout(), self.when(self.receiver.poll_timeout()));
            let next = forged.min(forward).min(back).min(sender).min(receiver).max(self.now);
            if next >= end {
                self.now = end;
                return;
            }
            self.now = next;
            spins = if next == before { spins + 1 } else { 0 };
            before = next;
            assert!(spins < 10_000, "time stands still at {next:?}");

            if forged <= next {
                let (_, bytes) = self.setting.forged.pop().unwrap();
                self.sender.handle_packet(next, &bytes);
                self.drain_sender();
            } else if forward <= next {
                let (_, packet) = self.forward.pop_first().unwrap();
                let reading = reading(&self.setting, next);
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
                self.receiver.handle_timeout(reading(&self.setting, next));
                self.drain_receiver();
            }
        }
    }

    pub fn run_secs(&mut self, seconds: i64) {
        self.run_until(Time::from_secs(seconds));
    }

    fn drain_sender(&mut self) {
        let now = self.now;
        let mut out = Datagram::new();
        while let Some(sent) = self.sender.poll_transmit(now, &mut out) {
            let left = Left { at: now, sent: Some(sent), size: out.size(), bytes: out.bytes().to_vec() };
            let fate = (self.setting.forward)(self.forward_log.len() as u64, now, out.bytes());
            self.free_at = self.free_at.max(now) + out.size() / self.setting.capacity;
            let due = self.free_at + self.setting.forward_delay;
            launch(&mut self.forward, &mut self.number, due, fate, &out);
            self.forward_log.push(left);
        }
        while let Some(event) = self.sender.poll_event() {
            self.events.push((now, event));
        }
    }

    fn drain_receiver(&mut self) {
        let (now, reading) = (self.now, reading(&self.setting, self.now));
        let mut out = Datagram::new();
        while self.receiver.poll_transmit(reading, &mut out) {
            self.back_log.push(Left { at: now, sent: None, size: out.size(), bytes: out.bytes().to_vec() });
            let fate = (self.setting.back)(self.back_log.len() as u64 - 1, now, out.bytes());
            launch(&mut self.back, &mut self.number, now + self.setting.back_delay, fate, &out);
        }
        while let Some(event) = self.receiver.poll_event() {
            match event {
                ReceiverEvent::Frame { stream, timestamp, size, dropped } => {
                    self.shown.push(Shown { at: now, stream, timestamp, size, dropped });
                }
                ReceiverEvent::Remb(rate) => self.rembs.push((now, rate)),
                ReceiverEvent::Signal(..) => {}
            }
        }
    }

    /// When the receiver's clock will show this.
    fn when(&self, at: RemoteTime) -> Time {
        if at == RemoteTime::MAX {
            return Time::MAX;
        }
        let since = (at - RemoteTime::ZERO - self.setting.clock_offset).as_nanos() as i128;
        let guess = since * 1_000_000 / (1_000_000 + self.setting.drift_ppm as i128);
        let mut time = Time::from_nanos((guess - 2).max(self.now.as_nanos() as i128) as i64);
        while reading(&self.setting, time) < at {
            time += TimeDelta::from_nanos(1);
        }
        time
    }

    // ---- what came of it

    /// Rate of what the sender sent between two times, reports left out.
    pub fn sent_bps(&self, kinds: impl Fn(&Sent) -> bool, from: Time, to: Time) -> f64 {
        let within = |l: &&Left| l.at >= from && l.at < to && l.sent.as_ref().is_some_and(&kinds);
        let bytes: u64 = self.forward_log.iter().filter(within).map(|l| l.size.as_bytes()).sum();
        bytes as f64 * 8.0 / (to - from).as_secs_f64()
    }

    /// How many datagrams of this kind left the sender.
    pub fn count(&self, kinds: impl Fn(&Sent) -> bool) -> usize {
        self.forward_log.iter().filter(|l| l.sent.as_ref().is_some_and(&kinds)).count()
    }

    /// Malformed and foreign packets that the sender counted.
    pub fn sender_refused(&self) -> u32 {
        let (malformed, ignored) = self.sender.refused();
        malformed.iter().sum::<u32>() + ignored
    }
}

fn launch(queue: &mut BTreeMap<(Time, u64), UnderWay>, number: &mut u64, due: Time, fate: Fate, datagram: &Datagram) {
    let (late, copies, marked) = match fate {
        Fate::Drop => return,
        Fate::Pass => (TimeDelta::ZERO, 1, None),
        Fate::Twice => (TimeDelta::ZERO, 2, None),
        Fate::Late(by) => (by, 1, None),
        Fate::Marked => (TimeDelta::ZERO, 1, Some(0)),
        Fate::TwiceMarked => (TimeDelta::ZERO, 2, Some(1)),
    };
    for copy in 0..copies {
        let ecn = if marked == Some(copy) { Ecn::Ce } else { datagram.ecn };
        let packet = UnderWay { bytes: datagram.bytes().to_vec(), size: datagram.size(), ecn };
        *number += 1;
        queue.insert((due + late, *number), packet);
    }
}

/// What the receiver's clock shows.
fn reading(setting: &Setting, now: Time) -> RemoteTime {
    let drift = (now.as_nanos() as i128 * setting.drift_ppm as i128 / 1_000_000) as i64;
    RemoteTime::ZERO + setting.clock_offset + (now - Time::ZERO) + TimeDelta::from_nanos(drift)
}
