//! What the send half is told of each packet that it sent, by either kind of per-packet feedback.

use crate::within;
use crate::world::{FPS, Fate, Impair, Setting, World, stream};
use paceline::{Controller, Decision, Feedback, FeedbackKind, PacketReport, SendHalf, SentPacket, Signals, Window};
use paceline_flow::MediaKind;
use paceline_flow::source::{Frame, Ideal, IdealConfig, Source};
use paceline_units::{DataSize, Ecn, Rate, Time, TimeDelta};
use paceline_wire::is_rtcp;
use std::sync::{Arc, Mutex};

#[derive(Default, PartialEq)]
pub struct Log {
    pub sent: Vec<(Time, SentPacket)>,
    pub reports: Vec<(Time, PacketReport)>,
    pub outstanding: Vec<DataSize>,
    pub after_highest: DataSize,
}

/// A send half that writes down what it hears.
pub struct Recorder(pub Rate, pub Arc<Mutex<Log>>);

impl SendHalf for Recorder {
    fn handle_sent(&mut self, now: Time, packet: &SentPacket) {
        self.1.lock().unwrap().sent.push((now, *packet));
    }
    fn handle_feedback(&mut self, now: Time, feedback: &Feedback<'_>, _: &mut Signals) {
        let mut log = self.1.lock().unwrap();
        assert!(feedback.packets.is_sorted_by(|a, b| a.sequence < b.sequence), "in order of sequence");
        log.reports.extend(feedback.packets.iter().map(|p| (now, *p)));
        log.outstanding.push(feedback.outstanding);
        log.after_highest = feedback.after_highest;
    }
    fn decision(&self) -> Decision {
        Decision { target: self.0, pacing: self.0.scale(1.5), window: None, padding: Rate::ZERO }
    }
}

/// A source that ends.
struct Ends(Ideal, Time);

impl Source for Ends {
    fn set_target(&mut self, now: Time, target: Rate) {
        self.0.set_target(now, target);
    }
    fn request_key_frame(&mut self, now: Time) {
        self.0.request_key_frame(now);
    }
    fn poll_frame(&mut self, now: Time) -> Option<Frame> {
        self.0.poll_frame(now)
    }
    fn poll_timeout(&self) -> Time {
        if self.0.poll_timeout() < self.1 { self.0.poll_timeout() } else { Time::MAX }
    }
    fn range(&self) -> (Rate, Rate) {
        self.0.range()
    }
    fn clock_rate(&self) -> u32 {
        self.0.clock_rate()
    }
}

/// A call with per-packet feedback.
pub struct Call {
    pub feedback: FeedbackKind,
    pub ecn: Ecn,
    pub rate: Rate,
    /// How long media is sent; the log ends two seconds later.
    pub seconds: i64,
}

impl Call {
    pub fn setting(&self, log: &Arc<Mutex<Log>>, forward: Impair, back: Impair) -> Setting {
        let &Self { feedback, ecn, rate, seconds } = self;
        let controller = Controller { send: Some(Box::new(Recorder(rate, log.clone()))), receive: None, feedback, ecn };
        let config = IdealConfig { fps: FPS, min: Rate::from_kbps(30), max: rate, start: Rate::from_kbps(300) };
        let source = Ends(Ideal::new(config, Time::ZERO).unwrap(), Time::from_secs(seconds));
        let mut setting = Setting::new(controller, rate);
        setting.streams = vec![stream(0, MediaKind::Video, Box::new(source))];
        (setting.forward, setting.back) = (forward, back);
        setting
    }

    pub fn run(&self, forward: Impair, back: Impair) -> (World, Log) {
        let (world, log) = self.run_with(forward, back, |_| {});
        assert_eq!(world.sender_refused(), 0);
        (world, log)
    }

    pub fn run_with(&self, forward: Impair, back: Impair, change: impl FnOnce(&mut Setting)) -> (World, Log) {
        let log = Arc::new(Mutex::new(Log::default()));
        let mut setting = self.setting(&log, forward, back);
        change(&mut setting);
        let mut world = World::new(setting);
        world.run_secs(self.seconds + 2);
        let log = std::mem::take(&mut *log.lock().unwrap());
        assert_eq!(log.sent.len(), world.count(crate::any_media));
        for (n, (_, packet)) in log.sent.iter().enumerate() {
            assert_eq!(packet.sequence, n as u64);
        }
        (world, log)
    }
}

pub fn pass() -> Impair {
    Box::new(|_, _, _| Fate::Pass)
}
/// What RTP meets by its number in the flow (reports of the sender do not count).
pub fn packets(mut fate: impl FnMut(u64, Time) -> Fate + 'static) -> Impair {
    let mut number = 0;
    Box::new(move |_, now, bytes| {
        if is_rtcp(bytes) {
            return Fate::Pass;
        }
        number += 1;
        fate(number - 1, now)
    })
}

/// For each packet what was said of it, in order: arrived or lost.
pub fn said(log: &Log) -> Vec<Vec<bool>> {
    let mut said = vec![Vec::new(); log.sent.len()];
    for (_, report) in &log.reports {
        let (at, sent) = log.sent[report.sequence as usize];
        assert_eq!((report.sent, report.size), (at, sent.size));
        said[report.sequence as usize].push(report.arrival.is_some());
    }
    said
}

/// Arrivals, as far as they are told, lie 20 ms of path and `late` after sending, within `error`.
pub fn arrivals_are_right(log: &Log, error: TimeDelta, late: impl Fn(u64) -> TimeDelta) {
    let (mut first, most) = (None, error.as_nanos() as f64);
    for (_, report) in &log.reports {
        let Some(arrival) = report.arrival else { continue };
        // What the path adds: serialisation at 100 Mbps, and the delay.
        let expected = report.sent + report.size / Rate::from_kbps(100_000) + late(report.sequence);
        let (arrival_0, expected_0) = *first.get_or_insert((arrival, expected));
        let error = (arrival - arrival_0) - (expected - expected_0);
        within(error.as_nanos() as f64, -most, most, "arrival, ns");
    }
}

/// A send half that wants 2 Mbit/s and allows 6000 bytes in flight.
struct Windowed(Arc<Mutex<Vec<DataSize>>>);

impl SendHalf for Windowed {
    fn handle_feedback(&mut self, _: Time, feedback: &Feedback<'_>, _: &mut Signals) {
        self.0.lock().unwrap().push(feedback.outstanding);
    }
    fn decision(&self) -> Decision {
        let (target, window) = (Rate::from_kbps(2000), Window::Outstanding(DataSize::from_bytes(6000)));
        Decision { target, pacing: target.scale(1.5), window: Some(window), padding: target }
    }
}

/// A call of 20 s under such a window: packets sent, and the most bytes in flight.
pub fn windowed(feedback: FeedbackKind, back: Impair) -> (usize, u64) {
    let outstanding = Arc::default();
    let half = Box::new(Windowed(Arc::clone(&outstanding)));
    let controller = Controller { send: Some(half), receive: None, feedback, ecn: Ecn::NotEct };
    let most = Rate::from_kbps(2000);
    let config = IdealConfig { fps: FPS, min: Rate::from_kbps(30), max: most, start: most };
    let mut setting = Setting::new(controller, most);
    setting.streams = vec![stream(0, MediaKind::Video, Box::new(Ideal::new(config, Time::ZERO).unwrap()))];
    setting.back = back;
    let mut world = World::new(setting);
    world.run_secs(20);
    let most = outstanding.lock().unwrap().iter().max().unwrap().as_bytes();
    (world.count(crate::any_media), most)
}
