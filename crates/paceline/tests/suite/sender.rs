// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sender and the receiver of every registered controller: limits, pauses, misuse, random calls.

use paceline::{
    Bounds, Entry, Message, MessageKind, NewFrame, Outgoing, PacketArrival, PacketHead, PacketKind, Receiver,
    Reception, Registry, Release, Report, Sender, SenderEvent, Setup, StreamConfig,
};
use paceline_units::{DataSize, Ecn, Fraction, Rate, RemoteTime, StreamId, Time, TimeDelta};
use std::collections::VecDeque;

const SETUP: Setup = Setup::new(Rate::from_kbps(300), Rate::from_kbps(50), Rate::from_kbps(8000));
const DELAY: TimeDelta = TimeDelta::from_millis(25);

fn bounds(min: u64, max: u64) -> Bounds {
    Bounds::new(Rate::from_bps(min), Rate::from_bps(max))
}

/// A call over a link with a queue of 300 ms.
struct Call {
    sender: Sender<u64>,
    receiver: Receiver,
    capacity: Rate,
    now: Time,
    next_frame: Time,
    free: Time,
    packets: VecDeque<(Time, PacketHead, DataSize, Ecn)>,
    reports: VecDeque<(Time, Report)>,
    /// When media packets left.
    left: Vec<Time>,
    highest_target: Rate,
    /// The packets that the queue dropped, and the sum of the waits of the others.
    dropped: usize,
    waits: TimeDelta,
    events: Vec<SenderEvent>,
    /// Whether the path clears the ECN field.
    clears_ecn: bool,
    /// Of so many reports one is lost; zero: none is.
    report_loss: u64,
    /// Whether the program has a format of its own for reports on packets.
    own_format: bool,
}

impl Call {
    fn new(entry: &Entry, setup: &Setup, capacity: Rate) -> Self {
        let (sender, receiver) = entry.build(setup, &[]).unwrap().endpoints(setup);
        let (packets, reports, left, events) = (VecDeque::new(), VecDeque::new(), Vec::new(), Vec::new());
        let (now, next_frame, free, highest_target) = (Time::ZERO, Time::ZERO, Time::ZERO, Rate::ZERO);
        Self {
            sender,
            receiver,
            capacity,
            now,
            next_frame,
            free,
            packets,
            reports,
            left,
            highest_target,
            dropped: 0,
            waits: TimeDelta::ZERO,
            events,
            clears_ecn: false,
            report_loss: 0,
            own_format: false,
        }
    }

    /// Runs until `end` in steps of 1 ms.
    fn run_until(&mut self, end: Time) {
        while self.now < end {
            let (now, remote) = (self.now, RemoteTime::from_nanos(self.now.as_nanos() + 77_000_000_000));
            self.sender.handle_timeout(now);
            if self.next_frame <= now {
                self.next_frame = now + TimeDelta::from_millis(33);
                let bytes = (self.sender.target() * TimeDelta::from_millis(33)).as_bytes().clamp(200, 200_000);
                let count = bytes.div_ceil(1200);
                let _ =
                    self.sender.push_video(now, false, (0..count).map(|n| (n, DataSize::from_bytes(bytes / count))));
            }
            if !self.sender.is_available() {
                self.packets.clear();
                self.reports.clear();
            }
            while let Some(packet) = self.sender.poll_transmit(now) {
                let ecn = if self.clears_ecn { Ecn::NotEct } else { packet.ecn };
                if packet.head.kind == PacketKind::Media {
                    self.left.push(now);
                }
                let wait = (self.free - now).max(TimeDelta::ZERO);
                self.dropped += usize::from(wait > TimeDelta::from_millis(300));
                if wait <= TimeDelta::from_millis(300) {
                    self.waits += wait;
                    self.free = now + wait + packet.size / self.capacity;
                    self.packets.push_back((self.free + DELAY, packet.head, packet.size, ecn));
                }
            }
            while self.packets.front().is_some_and(|(at, ..)| *at <= now) {
                let (_, head, size, ecn) = self.packets.pop_front().unwrap();
                self.receiver.handle_packet(remote, &head, size, ecn);
            }
            self.receiver.handle_timeout(remote);
            while let Some(report) = self.receiver.poll_report(remote) {
                if self.report_loss == 0 || !report.number.is_multiple_of(self.report_loss) {
                    self.reports.push_back((now + DELAY, report));
                }
            }
            while self.reports.front().is_some_and(|(at, _)| *at <= now) {
                let (_, report) = self.reports.pop_front().unwrap();
                if self.own_format {
                    let packets = report.packets.iter().map(|packet| (packet.number, packet.arrival, packet.ecn));
                    self.sender.handle_reports(now, packets);
                    self.sender.handle_rtt(now, DELAY + DELAY);
                } else {
                    self.sender.handle_report(now, &report);
                }
            }
            while let Some(event) = self.sender.poll_event() {
                self.events.push(event);
            }
            self.highest_target = self.highest_target.max(self.sender.target());
            self.now += TimeDelta::from_millis(1);
        }
    }

    fn sent_since(&self, from: Time) -> usize {
        self.left.iter().filter(|at| **at >= from).count()
    }
}

/// All controllers whose rate follows feedback.
fn controllers() -> Registry {
    Registry::standard()
}

fn controlled(registry: &Registry) -> impl Iterator<Item = &Entry> {
    registry.iter().filter(|entry| entry.controls())
}

#[test]
fn every_controller_uses_a_link_from_reports_as_values() {
    for entry in controlled(&controllers()) {
        let mut call = Call::new(entry, &SETUP, Rate::from_kbps(1500));
        call.run_until(Time::from_secs(40));
        let (target, name) = (call.sender.target(), entry.name());
        assert!(target >= Rate::from_kbps(500) && target <= Rate::from_kbps(8000), "{name}: {target}");
        let sent = call.sent_since(Time::from_secs(20));
        assert!((1000..5000).contains(&sent), "{name}: {sent} packets in 20 s");
    }
}

/// The start probes of `googcc`, at three and six times 300 kbit/s, of which the link of 1.5 Mbit/s lets the second one through in part.
#[test]
fn results_of_probes_are_events() {
    let registry = controllers();
    let mut call = Call::new(registry.get("googcc").unwrap(), &SETUP, Rate::from_kbps(1500));
    call.run_until(Time::from_secs(5));
    let result = |event: &SenderEvent| match event {
        SenderEvent::ProbeResult { id, rate } => Some((*id, rate.as_bps() / 1000)),
        _ => None,
    };
    let results: Vec<_> = call.events.iter().filter_map(result).collect();
    let of = |cluster| results.iter().rev().find(|(id, _)| *id == cluster).unwrap_or_else(|| panic!("{results:?}")).1;
    assert!((800..=1000).contains(&of(1)), "{results:?}");
    assert!((1200..=1600).contains(&of(2)), "{results:?}");
}

/// The table of the guide.
#[test]
fn controllers_need_what_the_guide_says() {
    let registry = controllers();
    let kinds = registry.iter().map(|entry| {
        let needs = entry.build(&SETUP, &[]).unwrap().needs();
        (entry.name(), (needs.feedback, needs.ecn, needs.messages))
    });
    let kinds: std::collections::BTreeMap<_, _> = kinds.collect();
    for name in ["googcc", "googcc-2024", "gcc-tfb"] {
        assert_eq!(kinds[name], (true, false, None), "{name}");
    }
    for name in ["drc", "nada-sender", "scream", "scream-cpp", "scream-v2", "scream-v2-cpp", "scream-libwebrtc"] {
        assert_eq!(kinds[name], (true, true, None), "{name}");
    }
    for name in ["gcc-2013", "gcc-2015", "gcc-dynamic-alpha", "gcc-draft-2015", "gcc-2016", "gcc-remb-2018"] {
        assert_eq!(kinds[name], (false, false, Some(MessageKind::Remb)), "{name}");
    }
    for (name, kind) in [("nada", MessageKind::Nada), ("nada-2015", MessageKind::Nada), ("gcc-med16", MessageKind::App)]
    {
        assert_eq!(kinds[name], (false, false, Some(kind)), "{name}");
    }
}

/// What changes in a call, and what takes it back.
type Change = (&'static str, fn(&mut Call), fn(&mut Call));

fn set_bounds(call: &mut Call, bps: u64) {
    call.sender.set_bounds(call.now, &bounds(bps, bps));
}

fn set_route(call: &mut Call, bps: u64) {
    let [start, min, max] = [Rate::from_bps(bps); 3];
    call.sender.handle_route_change(call.now, &Setup::new(start, min, max));
}

/// Changes that stop a flow or nearly so, and some of another size. Without a network all that is under way is lost.
const CHANGES: [Change; 7] = [
    ("bounds of zero", |c| set_bounds(c, 0), restore),
    ("bounds of 1 bit/s", |c| set_bounds(c, 1), restore),
    ("bounds of 1 kbit/s", |c| set_bounds(c, 1000), restore),
    ("no network", |c| c.sender.set_available(c.now, false), |c| c.sender.set_available(c.now, true)),
    ("a route without a rate", |c| set_route(c, 1), |c| c.sender.handle_route_change(c.now, &SETUP)),
    ("a slow link", |c| c.capacity = Rate::from_kbps(100), |c| c.capacity = Rate::from_kbps(2000)),
    ("a fast route", |c| set_route(c, 20_000_000), |c| c.sender.handle_route_change(c.now, &SETUP)),
];

fn restore(call: &mut Call) {
    call.sender.set_bounds(call.now, &SETUP.bounds());
}

/// Nothing that stops a flow stops it for good: after bounds near zero, an outage and new routes, packets leave within 3 s.
#[test]
fn every_controller_sends_again_within_three_seconds_of_a_pause() {
    for entry in controllers().iter() {
        for (what, pause, resume) in &CHANGES[..5] {
            let mut call = Call::new(entry, &SETUP, Rate::from_kbps(2000));
            call.run_until(Time::from_secs(5));
            pause(&mut call);
            call.run_until(Time::from_secs(10));
            resume(&mut call);
            call.run_until(Time::from_secs(13));
            let sent = call.sent_since(Time::from_secs(10));
            assert!((3..3000).contains(&sent), "{}, {what}: {sent} packets within 3 s", entry.name());
            call.run_until(Time::from_secs(16));
            let sent = call.sent_since(Time::from_secs(13));
            assert!((60..3000).contains(&sent), "{}, {what}: {sent} packets in the next 3 s", entry.name());
        }
    }
}

/// The same after any sequence of these changes, of which some last beside others.
#[test]
fn every_controller_sends_again_after_any_sequence_of_changes() {
    for entry in controllers().iter() {
        for seed in 0..4 {
            let (mut random, mut changes) = (Random(seed), Vec::new());
            let mut call = Call::new(entry, &SETUP, Rate::from_kbps(2000));
            for _ in 0..8 {
                let (what, change, back) = CHANGES[random.below(CHANGES.len() as u64) as usize];
                let is_back = random.below(2) == 0;
                changes.push((what, is_back, call.now));
                if is_back {
                    back(&mut call)
                } else {
                    change(&mut call)
                }
                call.run_until(call.now + TimeDelta::from_millis(10 + random.below(3000) as i64));
            }
            CHANGES.iter().for_each(|(_, _, back)| back(&mut call));
            let from = call.now;
            call.run_until(from + TimeDelta::from_secs(3));
            let sent = call.sent_since(from);
            assert!((3..3000).contains(&sent), "{}, {changes:?}: {sent} packets within 3 s", entry.name());
        }
    }
}

/// The one stream of [`Controller::endpoints`](paceline::Controller::endpoints) follows a maximum that is raised during the call.
#[test]
fn a_raised_maximum_is_that_of_the_stream() {
    let setup = Setup::new(Rate::from_kbps(300), Rate::from_kbps(50), Rate::from_kbps(800));
    for entry in controllers().iter() {
        let mut call = Call::new(entry, &setup, Rate::from_kbps(3000));
        call.run_until(Time::from_secs(20));
        assert_eq!(call.sender.stream_rate(StreamId(0)), Some(call.sender.target()), "{}", entry.name());
        assert!(call.sender.target() <= setup.max, "{}", entry.name());
        call.events.clear();
        call.sender.set_bounds(call.now, &bounds(50_000, 2_000_000));
        call.run_until(Time::from_secs(60));
        let (target, name) = (call.sender.target(), entry.name());
        assert_eq!(call.sender.stream_rate(StreamId(0)), Some(target), "{name}");
        assert!(target > setup.max && target <= Rate::from_kbps(2000), "{name}: {target}");
        assert!(call.events.iter().any(|event| matches!(event, SenderEvent::StreamRates)), "{name}");
    }
}

/// A path that clears the ECN field ends ECN for every controller that asks for it, and so does a new route to such a path.
#[test]
fn ecn_ends_where_the_path_clears_it() {
    let registry = controllers();
    let entries: Vec<&Entry> = registry.iter().filter(|entry| entry.build(&SETUP, &[]).unwrap().needs().ecn).collect();
    assert!(entries.len() >= 7, "{}", entries.len());
    for entry in entries {
        let mut call = Call::new(entry, &SETUP, Rate::from_kbps(2000));
        let (wanted, name) = (call.sender.decision().ecn, entry.name());
        call.run_until(Time::from_secs(5));
        assert_eq!(call.sender.decision().ecn, wanted, "{name}");
        call.clears_ecn = true;
        call.sender.handle_route_change(call.now, &SETUP);
        call.run_until(Time::from_secs(6));
        assert_eq!(call.sender.decision().ecn, Ecn::NotEct, "{name}");
        call.clears_ecn = false;
        call.sender.handle_route_change(call.now, &SETUP);
        call.run_until(Time::from_secs(7));
        assert_eq!(call.sender.decision().ecn, wanted, "{name}");
    }
}

#[test]
fn the_maximum_is_a_hard_limit_for_every_controller() {
    let setup = Setup::new(Rate::from_kbps(300), Rate::from_kbps(50), Rate::from_kbps(1000));
    for entry in controllers().iter() {
        let mut call = Call::new(entry, &setup, Rate::from_kbps(5000));
        call.run_until(Time::from_secs(30));
        assert!(call.highest_target <= setup.max, "{}: {}", entry.name(), call.highest_target);
        assert!(call.highest_target >= setup.start, "{}: {}", entry.name(), call.highest_target);
        call.sender.set_bounds(call.now, &bounds(50_000, 400_000));
        call.highest_target = Rate::ZERO;
        call.run_until(Time::from_secs(40));
        assert!(call.highest_target <= Rate::from_kbps(400), "{}: {}", entry.name(), call.highest_target);
    }
}

/// A maximum of 1 Gbit/s on a link of 2 Mbit/s causes neither loss nor a long queue. `nada-2015` is med16's: while losses are in its
/// window, warping reduces a long queue to nothing, at any maximum.
#[test]
fn a_maximum_far_above_the_link_does_no_harm() {
    let setup = Setup::new(Rate::from_kbps(300), Rate::from_kbps(50), Rate::from_kbps(1_000_000));
    for entry in controlled(&controllers()) {
        let mut call = Call::new(entry, &setup, Rate::from_kbps(2000));
        call.run_until(Time::from_secs(20));
        (call.dropped, call.waits, call.left) = (0, TimeDelta::ZERO, Vec::new());
        call.run_until(Time::from_secs(50));
        let (name, sent) = (entry.name(), call.left.len());
        let mean = call.waits / sent as i64;
        assert!(sent > 1000, "{name}: {sent} packets");
        if name == "nada-2015" {
            assert!(call.dropped * 5 < sent, "{name}: {} of {sent} packets dropped", call.dropped);
            continue;
        }
        assert!(call.dropped * 50 < sent, "{name}: {} of {sent} packets dropped", call.dropped);
        assert!(mean < TimeDelta::from_millis(150), "{name}: {mean}");
    }
}

/// A packet of a number that is far from the others changes neither reports nor statistics. Two in sequence do, as after an outage; then the
/// two next packets of the flow repair it.
#[test]
fn forged_numbers_change_nothing_at_the_receiver() {
    let (_, mut receiver) = controllers().build("googcc", &SETUP).unwrap().endpoints::<u64>(&SETUP);
    let mut pass = |ms: i64, number: u64| {
        let now = RemoteTime::from_millis(ms);
        let head = PacketHead::new(number, Time::from_millis(ms), 0);
        receiver.handle_packet(now, &head, DataSize::from_bytes(1000), Ecn::NotEct);
        receiver.handle_timeout(now);
        receiver.poll_report(now)
    };
    let last = |reports: &[Report]| reports.iter().rev().find_map(|report| report.reception).unwrap();
    let mut reports = Vec::new();
    for n in 0..300 {
        reports.extend(pass(10 * n, n as u64));
        for forged in [u64::MAX, u64::MAX - 1, 1 << 60, 1_000_000 + 7 * n as u64, n as u64 + 4000] {
            reports.extend(pass(10 * n, forged));
        }
    }
    let covered: usize = reports.iter().map(|report| report.packets.len()).sum();
    assert!((280..=300).contains(&covered), "{covered} packets reported");
    assert!((180..=300).contains(&last(&reports).end), "{:?}", last(&reports));
    assert_eq!(last(&reports).arrived, last(&reports).end);
    let mut after: Vec<_> = [1 << 40, (1 << 40) + 1].into_iter().filter_map(|number| pass(3000, number)).collect();
    after.extend((300..600).filter_map(|n| pass(10 * n, n as u64)));
    assert!((480..=600).contains(&last(&after).end), "{:?}", last(&after));
    let arrived = after.iter().flat_map(|report| &report.packets).filter(|packet| packet.arrival.is_some());
    let real = arrived.filter(|packet| (300..600).contains(&packet.number)).count();
    assert!((280..=300).contains(&real), "{real} packets reported");
}

/// A single call an hour ahead, as from a wrong clock, and times that go back: the flow goes on as before.
#[test]
fn wrong_times_do_not_stop_a_flow() {
    for entry in controlled(&controllers()) {
        let mut call = Call::new(entry, &SETUP, Rate::from_kbps(2000));
        call.run_until(Time::from_secs(20));
        let before = call.sender.target();
        call.sender.handle_timeout(call.now + TimeDelta::from_secs(3600));
        call.run_until(Time::from_secs(30));
        let (name, steps) = (entry.name(), |event: &&SenderEvent| matches!(event, SenderEvent::ClockSteppedBack(_)));
        assert_eq!(call.events.iter().filter(steps).count(), 1, "{name}");
        let sent = call.sent_since(Time::from_secs(23));
        assert!((200..4000).contains(&sent), "{name}: {sent} packets");
        assert!(call.sender.target() >= before.scale(0.3), "{name}: {before} to {}", call.sender.target());
        assert!(call.sender.poll_timeout().is_none_or(|due| due < Time::from_secs(40)), "{name}");
    }
}

#[test]
fn times_before_zero_are_usable() {
    for entry in controlled(&controllers()) {
        let mut call = Call::new(entry, &SETUP, Rate::from_kbps(2000));
        (call.now, call.next_frame, call.free) =
            (Time::from_millis(-9000), Time::from_millis(-9000), Time::from_millis(-9000));
        call.run_until(Time::from_millis(-4000));
        let sent = call.sent_since(Time::from_millis(-9000));
        assert!((100..3000).contains(&sent), "{}: {sent}", entry.name());
    }
}

/// Reports in reverse order and twice: what they say counts once, and the rate stays useful.
#[test]
fn reordered_and_duplicate_reports_do_no_harm() {
    for entry in controlled(&controllers()) {
        let mut call = Call::new(entry, &SETUP, Rate::from_kbps(2000));
        for second in 0..30 {
            call.run_until(Time::from_secs(second) + TimeDelta::from_millis(900));
            // The reports of 100 ms arrive at once, in reverse order, and then again.
            let mut held = Vec::new();
            while call.now < Time::from_secs(second + 1) {
                call.run_until(call.now + TimeDelta::from_millis(1));
                held.extend(call.reports.drain(..).map(|(_, report)| report));
            }
            let outstanding = call.sender.flight().outstanding;
            held.iter().rev().chain(&held).for_each(|report| call.sender.handle_report(call.now, report));
            assert!(call.sender.flight().outstanding <= outstanding, "{}", entry.name());
        }
        let sent = call.sent_since(Time::from_secs(15));
        assert!((500..5000).contains(&sent), "{}: {sent} packets in 15 s", entry.name());
    }
}

/// A report on packets that were never sent changes nothing.
#[test]
fn forged_reports_change_nothing_at_the_sender() {
    for entry in controlled(&controllers()) {
        let mut call = Call::new(entry, &SETUP, Rate::from_kbps(500));
        call.run_until(Time::from_secs(5));
        let (before, target) = (call.sender.flight(), call.sender.target());
        for number in [call.sender.packets_sent(), call.sender.packets_sent() + 5, u64::MAX] {
            let mut report = Report::default();
            (report.number, report.packets) = (1 << 40, vec![PacketArrival::new(number, Some(RemoteTime::ZERO))]);
            call.sender.handle_report(call.now, &report);
        }
        assert_eq!((call.sender.flight(), call.sender.target()), (before, target), "{}", entry.name());
        let needs = entry.build(&SETUP, &[]).unwrap().needs();
        assert!(!needs.feedback || before.outstanding > DataSize::ZERO, "{}", entry.name());
    }
}

/// The packets of a lost report are not in flight for ever: one lost report of ten costs no controller more than a third of its rate.
/// The part with the statistics may come first or last.
#[test]
fn a_report_in_parts_counts_in_any_order() {
    let entry = Registry::standard();
    let entry = entry.get("googcc").unwrap();
    for reversed in [false, true] {
        let mut sender = entry.build(&SETUP, &[]).unwrap().endpoints::<u64>(&SETUP).0;
        sender.set_paces(false);
        let at = Time::from_millis;
        for ms in 0..4 {
            sender.handle_sent(at(ms), &Outgoing::new(DataSize::from_bytes(1200), StreamId(0), PacketKind::Media));
        }
        let mut parts = [[0, 1], [2, 3]].map(|numbers| {
            let mut part = Report::default();
            part.packets = numbers.map(|n| PacketArrival::new(n, Some(RemoteTime::from_millis(n as i64)))).into();
            part
        });
        parts[1].reception = Some(Reception::new(4, 4, at(3), TimeDelta::ZERO));
        if reversed {
            parts.reverse();
        }
        for (ms, part) in parts.iter().enumerate() {
            sender.handle_report(at(53 + ms as i64), part);
        }
        assert_eq!(sender.packets_reported(), (4, 0));
        let rtt = sender.rtt().expect("the report has statistics").last;
        assert!((TimeDelta::from_millis(50)..=TimeDelta::from_millis(51)).contains(&rtt), "{rtt:?}");
    }
}

#[test]
fn lost_reports_do_not_shut_the_window() {
    let needs_reports = |entry: &Entry| entry.build(&SETUP, &[]).unwrap().needs().feedback;
    for (entry, own_format) in controlled(&controllers()).flat_map(|entry| [(entry, false), (entry, true)]) {
        if own_format && !needs_reports(entry) {
            continue;
        }
        let [without, with] = [0, 10].map(|report_loss| {
            let mut call = Call { report_loss, own_format, ..Call::new(entry, &SETUP, Rate::from_kbps(2000)) };
            call.run_until(Time::from_secs(60));
            (call.sent_since(Time::from_secs(30)) as f64, call.sender.flight().outstanding)
        });
        let name = format!("{}, own format: {own_format}", entry.name());
        assert!((0.66..1.5).contains(&(with.0 / without.0)), "{name}: {with:?}, without lost reports {without:?}");
        assert!(with.1 < DataSize::from_bytes(100_000), "{name}: {with:?}");
    }
}

/// A small generator of random numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end.max(1)
    }

    fn rate(&mut self) -> Rate {
        Rate::from_bps(1 + self.below(1 << 24))
    }

    fn setup(&mut self) -> Setup {
        let min = 1 + self.below(1_000_000);
        let (start, max) = (min + self.below(1_000_000), min + 1_000_000 + self.below(9_000_000));
        Setup::new(Rate::from_bps(start), Rate::from_bps(min), Rate::from_bps(max))
    }
}

/// Calls in any order with any values: no panic, and target and shares stay within the limits. `PACELINE_RANDOM_CALLS` sets their number.
#[test]
fn random_calls_keep_the_invariants() {
    const SEEDS: u64 = 4;
    let calls: u64 = std::env::var("PACELINE_RANDOM_CALLS").ok().and_then(|text| text.parse().ok()).unwrap_or(8000);
    for entry in controllers().iter() {
        (0..SEEDS).for_each(|seed| random_calls(entry, seed, calls / SEEDS));
    }
}

fn random_calls(entry: &Entry, seed: u64, calls: u64) {
    let (mut random, mut limits, mut now) = (Random(seed), SETUP.bounds(), 0i64);
    let (mut sender, mut receiver): (Sender<u64>, _) = entry.build(&SETUP, &[]).unwrap().endpoints(&SETUP);
    let mut reports: Vec<Report> = Vec::new();
    for call in 0..calls {
        let extreme = match random.below(1000) {
            0 => Some(i64::MAX - random.below(1000) as i64),
            1 => Some(i64::MIN + random.below(1000) as i64),
            _ => None,
        };
        now = match random.below(1000) {
            2 => now.saturating_sub(random.below(3_600_000_000_000) as i64),
            3 => now.saturating_add(random.below(3_600_000_000_000) as i64),
            _ => now.saturating_add(random.below(20_000_000) as i64),
        };
        let at = extreme.unwrap_or(now);
        let (time, remote) = (Time::from_nanos(at), RemoteTime::from_nanos(at.wrapping_mul(3)));
        let stream = StreamId([0, 0, 0, 1, 2][random.below(5) as usize]);
        match random.below(32) {
            0 => {
                let min = random.below(2_000_000);
                limits = bounds(min, min + random.below(8_000_000));
                sender.set_bounds(time, &limits);
            }
            1 => {
                let setup = random.setup();
                sender.handle_route_change(time, &setup);
                limits = setup.bounds();
            }
            2 => sender.set_available(time, random.below(3) > 0),
            3 => sender.handle_rtt(time, TimeDelta::from_nanos(random.below(1 << 40) as i64 - (1 << 20))),
            4 => sender.handle_loss(time, Fraction::new(random.below(1001) as f64 / 1000.0).unwrap()),
            5 => {
                let any = |random: &mut Random| {
                    let arrival = (random.below(3) > 0).then(|| RemoteTime::from_nanos(random.below(1 << 44) as i64));
                    let ecn = (random.below(3) > 0).then(|| Ecn::from_bits(random.below(4) as u8));
                    (random.below(sender.packets_sent() + 9), arrival, ecn)
                };
                let packets: Vec<_> = (0..random.below(9)).map(|_| any(&mut random)).collect();
                sender.handle_reports(time, packets);
            }
            6 => sender.set_paces(random.below(4) > 0),
            7 => {
                let size = DataSize::from_bytes(random.below(65_536));
                let probe = (random.below(3) == 0).then_some(random.below(9) as u16);
                sender.handle_sent(time, &Outgoing::new(size, stream, PacketKind::Padding).with_probe(probe));
            }
            8 => _ = sender.remove_stream(time, StreamId(1 + random.below(2) as u8)),
            9 => _ = sender.add_stream(&StreamConfig::video(stream, Rate::ZERO, random.rate())),
            10 => _ = sender.set_stream_limits(time, stream, Rate::ZERO, random.rate()),
            11 => _ = sender.set_priority(stream, 0.1 + random.below(100) as f64),
            12 => _ = sender.poll_probe(),
            13 => sender.handle_message(time, &Message::Remb(random.rate())),
            14 => match sender.poll_release(time) {
                Some(Release::Packet(_) | Release::Padding | Release::Probe { .. }) => {
                    let size = DataSize::from_bytes(1 + random.below(1500));
                    sender.handle_sent(time, &Outgoing::new(size, StreamId(0), PacketKind::Media));
                }
                None => {}
            },
            15 => sender.handle_liveness(time),
            16 => sender.handle_arrival_without_time(random.below(sender.packets_sent() + 9)),
            17 if random.below(2) == 0 => _ = sender.couple(),
            17 => sender.uncouple(time),
            18 => receiver.set_bounds(remote, &limits),
            19 => receiver.handle_route_change(remote, &random.setup()),
            20 => receiver.handle_timeout(remote),
            #[cfg(feature = "rtp")]
            21 => sender.handle_rtp_sent(random.below(1 << 20), random.below(3) as u32, random.below(1 << 16) as u16),
            #[cfg(feature = "rtp")]
            22 => {
                // A header of any type, and any bytes.
                let mut bytes: Vec<u8> = (0..4 * (1 + random.below(20))).map(|_| random.below(256) as u8).collect();
                let words = bytes.len() as u16 / 4 - 1;
                bytes[..2].copy_from_slice(&[0x80 | random.below(32) as u8, 200 + random.below(8) as u8]);
                bytes[2..4].copy_from_slice(&words.to_be_bytes());
                _ = sender.handle_rtcp(time, &bytes);
            }
            23 => _ = sender.handle_timeout(time),
            24 | 25 => {
                let captured = Time::from_nanos(now.saturating_sub(random.below(5_000_000_000) as i64));
                let sizes: Vec<_> =
                    (0..random.below(9)).map(|n| (n, DataSize::from_bytes(1 + random.below(1500)))).collect();
                let _ = sender.push_frame(time, &NewFrame::new(stream, captured, false), sizes);
            }
            26 => reports.extend(receiver.poll_report(remote)),
            27 => {
                let index = random.below(reports.len() as u64) as usize;
                if let Some(report) = reports.get(index) {
                    sender.handle_report(time, report);
                }
                reports.truncate(50);
            }
            _ => {
                for _ in 0..random.below(30) {
                    let Some(packet) = sender.poll_transmit(time) else { break };
                    if random.below(10) > 0 {
                        receiver.handle_packet(remote, &packet.head, packet.size, packet.ecn);
                    }
                }
            }
        }
        if sender.calculated_rate().is_some() {
            sender.set_coupled_rate(time, random.rate());
        }
        let (target, name) = (sender.target(), entry.name());
        let place = format!("{name}, seed {seed}, call {call}");
        assert_eq!(limits.clamp(target), target, "{place}: {limits:?}");
        assert!(sender.failure().is_none() && receiver.failure().is_none(), "{place}");
        let shares: Rate = [0, 1, 2].into_iter().filter_map(|id| sender.stream_rate(StreamId(id))).sum();
        // SCReAM v2 divides the target itself, and knows a stream from its first frame on.
        let divides = name.starts_with("scream-");
        assert!(divides || shares <= target + Rate::from_bps(3), "{place}: {shares} of {target}");
        assert!(sender.decision().pacing > Rate::ZERO || target.is_zero(), "{place}");
        while sender.poll_event().is_some() {}
    }
}
