//! Transport-wide feedback through both endpoints: what the send half is told of each packet that it sent.

use crate::world::{FPS, Fate, Impair, Setting, World, stream};
use crate::{any_media, ms, within};
use paceline::{Controller, Decision, Feedback, FeedbackKind, PacketReport, SendHalf, SentPacket, Signals, Window};
use paceline_flow::MediaKind;
use paceline_flow::source::{Frame, Ideal, IdealConfig, Source};
use paceline_units::{DataSize, Ecn, Rate, Streams, Time, TimeDelta};
use paceline_wire::is_rtcp;
use std::sync::{Arc, Mutex};

#[derive(Default)]
struct Log {
    sent: Vec<(Time, SentPacket)>,
    reports: Vec<(Time, PacketReport)>,
    outstanding: Vec<DataSize>,
    after_highest: DataSize,
}

/// A send half that writes down what it hears.
struct Recorder(Rate, Arc<Mutex<Log>>);

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

/// A call that sends at `rate` for `seconds`, and its log two seconds later.
fn call(rate: Rate, seconds: i64, forward: Impair, back: Impair) -> (World, Log) {
    let log = Arc::new(Mutex::new(Log::default()));
    let controller = Controller {
        send: Some(Box::new(Recorder(rate, log.clone()))),
        receive: None,
        feedback: FeedbackKind::TransportWide { interval: ms(50), longest: ms(50) },
        ecn: Ecn::NotEct,
    };
    let config = IdealConfig { fps: FPS, min: Rate::from_kbps(30), max: rate, start: Rate::from_kbps(300) };
    let source = Ends(Ideal::new(config, Time::ZERO).unwrap(), Time::from_secs(seconds));
    let mut setting = Setting::new(controller, rate);
    setting.streams = vec![stream(0, MediaKind::Video, Box::new(source))];
    (setting.forward, setting.back) = (forward, back);
    let mut world = World::new(setting);
    world.run_secs(seconds + 2);
    assert_eq!(world.sender_refused(), 0);
    let log = std::mem::take(&mut *log.lock().unwrap());
    assert_eq!(log.sent.len(), world.count(any_media));
    for (n, (_, packet)) in log.sent.iter().enumerate() {
        assert_eq!(packet.sequence, n as u64);
    }
    (world, log)
}

fn pass() -> Impair {
    Box::new(|_, _, _| Fate::Pass)
}
/// What RTP meets by its number in the flow (reports of the sender do not count).
fn packets(mut fate: impl FnMut(u64, Time) -> Fate + 'static) -> Impair {
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
fn said(log: &Log) -> Vec<Vec<bool>> {
    let mut said = vec![Vec::new(); log.sent.len()];
    for (_, report) in &log.reports {
        let (at, sent) = log.sent[report.sequence as usize];
        assert_eq!((report.sent, report.size), (at, sent.size));
        said[report.sequence as usize].push(report.arrival.is_some());
    }
    said
}

/// Arrivals, as far as they are told, lie 20 ms of path and `late` after sending, to the tick.
fn arrivals_are_right(log: &Log, late: impl Fn(u64) -> TimeDelta) {
    let mut first = None;
    for (_, report) in &log.reports {
        let Some(arrival) = report.arrival else { continue };
        // What the path adds: serialisation at 100 Mbps, and the delay.
        let expected = report.sent + report.size / Rate::from_kbps(100_000) + late(report.sequence);
        let (arrival_0, expected_0) = *first.get_or_insert((arrival, expected));
        let error = (arrival - arrival_0) - (expected - expected_0);
        within(error.as_nanos() as f64, -250e3, 250e3, "arrival, ns");
    }
}

#[test]
fn every_packet_is_told_of_once() {
    let mut random = Streams::new(11).stream("loss");
    let mut lost = Vec::new();
    let lose: Vec<bool> = (0..20_000).map(|_| random.chance(0.05)).collect();
    let (_, log) = call(
        Rate::from_kbps(1500),
        60,
        packets({
            let lose = lose.clone();
            move |n, now| if now < Time::from_secs(59) && lose[n as usize] { Fate::Drop } else { Fate::Pass }
        }),
        pass(),
    );
    for (n, said) in said(&log).iter().enumerate() {
        let dropped = log.sent[n].0 < Time::from_secs(59) && lose[n];
        assert_eq!(said[..], [!dropped], "packet {n}");
        lost.push(dropped);
    }
    within(lost.iter().filter(|l| **l).count() as f64 / lost.len() as f64, 0.04, 0.06, "loss");
    arrivals_are_right(&log, |_| TimeDelta::ZERO);
    for (at, report) in &log.reports {
        // 20 ms there and back, at most an interval of waiting; a loss is known with the next arrival.
        within((*at - report.sent).as_millis_f64(), 40.0, 40.0 + 50.0 + 40.0, "told after, ms");
    }
    assert_eq!((*log.outstanding.last().unwrap(), log.after_highest), (DataSize::ZERO, DataSize::ZERO));
}

#[test]
fn the_sixteen_bits_wrap() {
    let (_, log) = call(Rate::from_kbps(30_000), 30, pass(), pass());
    within(log.sent.len() as f64, 90_000.0, 110_000.0, "packets");
    assert!(said(&log).iter().all(|said| said[..] == [true]));
    arrivals_are_right(&log, |_| TimeDelta::ZERO);
    assert_eq!(*log.outstanding.last().unwrap(), DataSize::ZERO);
    // 100 ms of 30 Mbps at most.
    assert!(log.outstanding.iter().all(|o| o.as_bytes() < 375_000));
}

#[test]
fn a_gap_wider_than_a_report_is_told_of() {
    for gap in [150, 200, 201, 300, 5000] {
        let (_, log) = call(
            Rate::from_kbps(5000),
            30,
            packets(move |n, _| if (1007..1007 + gap).contains(&n) { Fate::Drop } else { Fate::Pass }),
            pass(),
        );
        for (n, said) in said(&log).iter().enumerate() {
            assert_eq!(said[..], [!(1007..1007 + gap).contains(&(n as u64))], "packet {n}, gap {gap}");
        }
        assert_eq!(*log.outstanding.last().unwrap(), DataSize::ZERO);
    }
}

#[test]
fn lost_feedback_does_not_break_the_join() {
    let mut random = Streams::new(12).stream("loss");
    let (world, log) = call(
        Rate::from_kbps(1500),
        60,
        // The very first packets as well: of those nobody ever tells.
        packets(|n, _| if n < 3 { Fate::Drop } else { Fate::Pass }),
        Box::new(move |_, now, _| {
            if (Time::from_secs(1)..Time::from_secs(59)).contains(&now) && random.chance(0.2) {
                Fate::Drop
            } else {
                Fate::Pass
            }
        }),
    );
    let said = said(&log);
    let silent = said.iter().filter(|s| s.is_empty()).count();
    within(silent as f64 / said.len() as f64, 0.12, 0.28, "packets nobody told of");
    assert!(said.iter().enumerate().all(|(n, s)| s.is_empty() || s[..] == [n >= 3]));
    arrivals_are_right(&log, |_| TimeDelta::ZERO);
    assert_eq!((*log.outstanding.last().unwrap(), log.after_highest), (DataSize::ZERO, DataSize::ZERO));
    // A few reports' worth at 1.5 Mbps; never the tenth part of what was not told.
    assert!(log.outstanding.iter().all(|o| o.as_bytes() < 150_000));
    within(world.shown.len() as f64, 1795.0, 1799.0, "frames");
}

#[test]
fn duplicates_are_told_of_once_and_late_packets_again() {
    let late = |n: u64| if n % 50 == 7 { ms(150) } else { TimeDelta::ZERO };
    let (_, log) = call(
        Rate::from_kbps(1500),
        60,
        packets(move |n, _| match n {
            _ if n % 50 == 7 => Fate::Late(late(n)),
            _ if n % 9 == 0 => Fate::Twice,
            _ => Fate::Pass,
        }),
        pass(),
    );
    let said = said(&log);
    for (n, said) in said[..said.len() - 60].iter().enumerate() {
        let expected = if n % 50 == 7 { &[false, true][..] } else { &[true][..] };
        assert_eq!(said, expected, "packet {n}");
    }
    arrivals_are_right(&log, late);
    assert_eq!(*log.outstanding.last().unwrap(), DataSize::ZERO);
}

/// A send half that wants a lot and allows little in flight.
struct Windowed(Arc<Mutex<Log>>);

impl SendHalf for Windowed {
    fn handle_feedback(&mut self, _: Time, feedback: &Feedback<'_>, _: &mut Signals) {
        self.0.lock().unwrap().outstanding.push(feedback.outstanding);
    }
    fn decision(&self) -> Decision {
        let (target, window) = (Rate::from_kbps(2000), Window::Outstanding(DataSize::from_bytes(6000)));
        Decision { target, pacing: target.scale(1.5), window: Some(window), padding: target }
    }
}

/// 6000 bytes each round trip of 40 ms, and up to 50 ms until they are reported: 0.53 to 1.2 Mbit/s of the 2 wanted.
#[test]
fn a_window_bounds_what_is_in_flight() {
    let log = Arc::new(Mutex::new(Log::default()));
    let controller = Controller {
        send: Some(Box::new(Windowed(log.clone()))),
        receive: None,
        feedback: FeedbackKind::TransportWide { interval: ms(50), longest: ms(50) },
        ecn: Ecn::NotEct,
    };
    let most = Rate::from_kbps(2000);
    let config = IdealConfig { fps: FPS, min: Rate::from_kbps(30), max: most, start: most };
    let mut setting = Setting::new(controller, most);
    setting.streams = vec![stream(0, MediaKind::Video, Box::new(Ideal::new(config, Time::ZERO).unwrap()))];
    let mut world = World::new(setting);
    world.run_secs(20);
    let bytes: u64 = world.count(any_media) as u64 * 1228;
    within(bytes as f64 * 8.0 / 20.0, 0.5e6, 1.25e6, "bit/s");
    let log = log.lock().unwrap();
    let most = log.outstanding.iter().max().unwrap().as_bytes();
    within(most as f64, 1000.0, 6000.0 + 1228.0, "bytes in flight");
}
