// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests that every discipline must pass, inside a link: those of the registry, and disciplines for tests that hold packets,
//! drop several at departure, and draw random numbers.

use super::testing::packet;
use super::{
    CoDel, CoDelQueue, DISCIPLINES, Descriptor, Discipline, DropTail, Drops, LinkRate, QueueEntry, QueueLimit,
    QueuePlan, QueuedPacket, expiry,
};
use crate::link::server::{ServerPlan, Service};
use crate::link::{Capacity, CapacityEnd, HopPlan, Jitter, JitterOrder, Link, LossModel, MTU, Output, Schedule};
use crate::parameter::{ParameterKind, Value, Values};
use crate::records::DropReason;
use paceline_units::{DataSize, Dscp, Ecn, FlowId, Fraction, RandomStream, RandomStreams, Rate, Time, TimeDelta};
use std::collections::{BTreeMap, BTreeSet};

const PACKETS: u32 = 12;
/// Flows of a drawn case.
const FLOWS: usize = 5;
const LIMIT: QueueLimit = QueueLimit::Packets(PACKETS);

fn ms(t: i64) -> TimeDelta {
    TimeDelta::from_millis(t)
}

/// Releases one packet at each multiple of 7 ms, and none earlier.
struct Gate {
    queue: DropTail,
    last: Option<Time>,
}

impl Gate {
    const PERIOD: i64 = 7_000_000;

    fn gate(now: Time) -> Time {
        Time::from_nanos(now.as_nanos() / Self::PERIOD * Self::PERIOD)
    }
}

impl Discipline for Gate {
    fn enqueue(&mut self, now: Time, rate: LinkRate<'_>, packet: Descriptor, drops: &mut Drops) {
        self.queue.enqueue(now, rate, packet, drops);
    }
    fn dequeue(&mut self, now: Time, rate: LinkRate<'_>, drops: &mut Drops) -> Option<QueuedPacket> {
        let gate = Self::gate(now);
        if gate < now || self.last == Some(gate) {
            return None;
        }
        self.last = Some(gate);
        self.queue.dequeue(now, rate, drops)
    }
    fn next_time(&self, now: Time) -> Option<Time> {
        Some(Self::gate(now) + TimeDelta::from_nanos(Self::PERIOD))
    }
    fn set_limit(&mut self, limit: QueueLimit) {
        self.queue.set_limit(limit);
    }
    fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
    fn backlog(&self) -> DataSize {
        self.queue.backlog()
    }
}

/// Drops or marks packets at random, on arrival and at departure.
struct Coin {
    queue: DropTail,
    random: RandomStream,
}

impl Discipline for Coin {
    fn enqueue(&mut self, now: Time, rate: LinkRate<'_>, packet: Descriptor, drops: &mut Drops) {
        match self.random.chance(0.1) {
            true => drops.push(packet, DropReason::Aqm),
            false => self.queue.enqueue(now, rate, packet, drops),
        }
    }
    fn dequeue(&mut self, now: Time, rate: LinkRate<'_>, drops: &mut Drops) -> Option<QueuedPacket> {
        while let Some(mut head) = self.queue.dequeue(now, rate, drops) {
            match self.random.chance(0.3) {
                true if head.packet.ecn.is_capable() => head.packet.ecn = Ecn::Ce,
                true => {
                    drops.push(head.packet, DropReason::Aqm);
                    continue;
                }
                false => {}
            }
            return Some(head);
        }
        None
    }
    fn set_limit(&mut self, limit: QueueLimit) {
        self.queue.set_limit(limit);
    }
    fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
    fn backlog(&self) -> DataSize {
        self.queue.backlog()
    }
}

/// Wraps a discipline and checks the contract of [`Discipline`] at every call.
struct Checked {
    queue: Box<dyn Discipline>,
    last: Time,
    /// Size of each waiting packet.
    waiting: BTreeMap<u32, DataSize>,
    served: BTreeMap<FlowId, u32>,
    held_until: Option<Time>,
    /// Whether it may keep packets from an idle server.
    may_hold: bool,
}

impl Checked {
    fn new(queue: Box<dyn Discipline>) -> Self {
        let (waiting, served) = (BTreeMap::new(), BTreeMap::new());
        let may_hold = (&*queue as &dyn std::any::Any).is::<Gate>();
        Self { queue, last: Time::ZERO, waiting, served, held_until: None, may_hold }
    }

    fn check(&mut self, now: Time, dropped: &Drops, before: usize) {
        assert!(now >= self.last, "time goes back from {} to {now}", self.last);
        self.last = now;
        for (packet, reason) in dropped.as_slice() {
            assert!(self.waiting.remove(&packet.id).is_some(), "{} leaves exactly once", packet.id);
            assert_ne!(*reason, DropReason::Loss, "a queue loses nothing on the wire");
        }
        let bytes = self.waiting.values().fold(DataSize::ZERO, |sum, size| sum + *size);
        assert_eq!((self.queue.backlog(), self.queue.is_empty()), (bytes, self.waiting.is_empty()));
        assert!(self.waiting.len() <= (PACKETS as usize).max(before), "the limit is kept");
    }
}

impl Discipline for Checked {
    fn enqueue(&mut self, now: Time, rate: LinkRate<'_>, packet: Descriptor, drops: &mut Drops) {
        assert!(drops.is_empty(), "the link empties the drops after each call");
        let before = self.waiting.len();
        self.waiting.insert(packet.id, packet.size);
        self.queue.enqueue(now, rate, packet, drops);
        self.held_until = None;
        self.check(now, drops, before);
    }
    fn dequeue(&mut self, now: Time, rate: LinkRate<'_>, drops: &mut Drops) -> Option<QueuedPacket> {
        assert!(drops.is_empty(), "the link empties the drops after each call");
        assert!(!self.queue.is_empty(), "the link calls only a queue that is not empty");
        assert!(self.held_until.is_none_or(|at| now >= at), "the link calls no earlier than `next_time`");
        self.held_until = None;
        let before = self.waiting.len();
        let next = self.queue.dequeue(now, rate, drops);
        assert!(drops.is_empty() || self.queue.acts_at_departure());
        if let Some(QueuedPacket { packet, arrived }) = next {
            assert!(self.waiting.remove(&packet.id).is_some(), "{} leaves exactly once", packet.id);
            assert!(arrived <= now);
            let last = self.served.insert(packet.flow, packet.id);
            assert!(last.is_none_or(|last| last < packet.id), "each flow is served in order of arrival");
        }
        self.check(now, drops, before);
        if next.is_none() && !self.queue.is_empty() {
            assert!(self.queue.acts_at_departure());
            assert!(self.may_hold, "the server is never idle while packets wait");
            let at = self.queue.next_time(now).unwrap_or(Time::MAX);
            assert!(at > now, "a queue that holds packets names a later time");
            self.held_until = Some(at);
        }
        next
    }
    fn next_time(&self, now: Time) -> Option<Time> {
        self.queue.next_time(now)
    }
    fn acts_at_departure(&self) -> bool {
        self.queue.acts_at_departure()
    }
    fn set_limit(&mut self, limit: QueueLimit) {
        self.queue.set_limit(limit);
    }
    fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
    fn backlog(&self) -> DataSize {
        self.queue.backlog()
    }
}

type BuildFn = fn(&RandomStreams) -> Box<dyn Discipline>;
type Build<'a> = &'a dyn Fn(&RandomStreams) -> Box<dyn Discipline>;

/// The disciplines of this file, and two configurations of shipped ones.
const TEST_DISCIPLINES: [(&str, BuildFn); 5] = [
    ("drop-tail with a mark", |_| Box::new(DropTail::marking(LIMIT, Some(QueueLimit::Packets(6))))),
    ("codel that marks", |_| Box::new(CoDelQueue::with(LIMIT, CoDel::new(ms(5), ms(20), true)))),
    ("gate", |_| Box::new(Gate { queue: DropTail::new(LIMIT), last: None })),
    ("expiry", |streams| plan(&expiry::ENTRY).build(streams, "hop/test", MTU)),
    ("coin", |streams| Box::new(Coin { queue: DropTail::new(LIMIT), random: streams.stream("coin") })),
];

/// A link, the packets that arrive at it, and how it is polled.
#[derive(Clone)]
struct Case {
    jitter: Option<Jitter>,
    loss: f64,
    burst: Option<DataSize>,
    capacity: Vec<(Time, Rate)>,
    arrivals: Vec<(Time, Descriptor)>,
}

impl Case {
    /// Draws a case: 300 packets in bursts, at a capacity that changes and pauses.
    fn draw(random: &mut RandomStream) -> Self {
        let std = ms(1 + (random.bits() % 5) as i64);
        let order = [JitterOrder::Keep, JitterOrder::Reorder][(random.bits() % 2) as usize];
        let jitter = random.chance(0.6).then_some(Jitter { std, limit: std * 3, order });
        let steps = (0..20).map(|n| (Time::from_millis(100 * n), Rate::from_kbps(random.bits() % 4 * 700)));
        let mut capacity: Vec<(Time, Rate)> = steps.collect();
        capacity.push((Time::from_secs(2), Rate::from_kbps(1000)));
        // All packets of a flow belong to one queue of each discipline.
        let headers = [(); FLOWS].map(|()| {
            let ecn = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1][(random.bits() % 3) as usize];
            (ecn, Dscp::from_bits([0, 46, 34, 8][(random.bits() % 4) as usize]))
        });
        let mut now = Time::ZERO;
        let mut arrivals = Vec::new();
        for id in 0..300 {
            // Whole milliseconds, so that many events coincide.
            now += ms(if random.chance(0.5) { 0 } else { (random.bits() % 14) as i64 });
            let size = DataSize::from_bytes([1250, 1250, 125, 40][(random.bits() % 4) as usize]);
            let flow = (random.bits() % FLOWS as u64) as u16;
            let (ecn, dscp) = headers[usize::from(flow)];
            arrivals.push((now, Descriptor { id, flow: FlowId(flow), size, ecn, dscp }));
        }
        let burst = random.chance(0.3).then_some(DataSize::from_bytes(4000));
        Self { jitter, loss: if random.chance(0.5) { 0.1 } else { 0.0 }, burst, capacity, arrivals }
    }

    fn link(&self, build: Build<'_>, seed: u64) -> Link {
        let streams = RandomStreams::new(seed);
        let schedule = Schedule::new(self.capacity.clone()).unwrap();
        let probability = Fraction::new(self.loss).unwrap();
        let service = Service { burst: self.burst, ..Service::default() };
        let hop = HopPlan {
            capacity: Some(Capacity::rates(schedule, CapacityEnd::Hold).unwrap()),
            server: ServerPlan { service, ..ServerPlan::default() },
            delay: Schedule::new(vec![(Time::ZERO, ms(20)), (Time::from_millis(700), ms(5))]).unwrap(),
            jitter: self.jitter,
            loss: Schedule::constant(LossModel::Bernoulli(probability)),
            ..HopPlan::new("test", QueueLimit::Packets(1))
        };
        Link::with_queue(hop, Box::new(Checked::new(build(&streams))), &streams)
    }
}

/// Takes every output that is due.
fn drain(link: &mut Link, now: Time, outputs: &mut Vec<Output>) {
    outputs.extend(core::iter::from_fn(|| link.poll_output(now)));
}

/// Polls at every timeout of the link, as an event loop does, before or after an arrival at the same time.
fn poll_promptly(mut link: Link, case: &Case, before_arrivals: bool) -> Vec<Output> {
    let mut outputs = Vec::new();
    let mut arrivals = case.arrivals.iter().peekable();
    loop {
        let (due, arrival) = (link.poll_timeout(), arrivals.peek().map(|(at, _)| *at));
        let is_due = |due: Time, at: Time| if before_arrivals { due <= at } else { due < at };
        let now = match (due, arrival) {
            (None, None) => return outputs,
            (Some(due), at) if at.is_none_or(|at| is_due(due, at)) => {
                let before = outputs.len();
                drain(&mut link, due, &mut outputs);
                assert!(outputs[before..].iter().all(|output| output.due() == due), "no output is late");
                due
            }
            (_, at) => {
                let (at, packet) = arrivals.next().unwrap_or_else(|| panic!("an arrival at {at:?}"));
                link.handle_packet(*at, *packet);
                continue;
            }
        };
        assert!(link.poll_timeout().is_none_or(|next| next > now), "the timeout advances");
    }
}

/// Polls before arrivals that the coin chooses, and to the end after the last one.
fn poll_at_random(mut link: Link, case: &Case, probability: f64, random: &mut RandomStream) -> Vec<Output> {
    let mut outputs = Vec::new();
    for (now, packet) in &case.arrivals {
        if random.chance(probability) {
            drain(&mut link, *now, &mut outputs);
        }
        link.handle_packet(*now, *packet);
        if random.chance(probability) {
            drain(&mut link, *now, &mut outputs);
        }
    }
    drain(&mut link, Time::from_secs(3600), &mut outputs);
    outputs
}

/// Returns a discipline with its defaults.
fn plan(discipline: &'static QueueEntry) -> QueuePlan {
    QueuePlan { discipline, limit: LIMIT, values: Values::new(discipline.parameters, &[]) }
}

/// Returns a discipline with drawn values for about half of its parameters.
fn draw_plan(discipline: &'static QueueEntry, random: &mut RandomStream) -> QueuePlan {
    let mut given = Vec::new();
    for parameter in discipline.parameters {
        let (is_given, unit) = (random.chance(0.5), random.unit());
        let between = |least: f64, most: f64| least + (most - least) * unit * unit;
        let value = match parameter.kind {
            ParameterKind::Time(least, most) => {
                let most = most.min(ms(200)).as_nanos() as f64;
                Value::Time(TimeDelta::from_nanos(between(least.as_nanos() as f64, most) as i64))
            }
            ParameterKind::Number(least, most) => Value::Number(between(least, most.min(20.0))),
            ParameterKind::Count(least, most) => {
                Value::Count(between(f64::from(least), f64::from(most.min(least + 20))) as u32)
            }
            ParameterKind::Size(least, most) => {
                let most = most.as_bytes().min(5000) as f64;
                Value::Size(DataSize::from_bytes(between(least.as_bytes() as f64, most) as u64))
            }
            ParameterKind::Fraction => Value::Fraction(Fraction::new(unit).unwrap()),
            ParameterKind::Rate => Value::Rate(Rate::from_kbps(between(50.0, 3000.0) as u64)),
            ParameterKind::Flag => Value::Flag(unit < 0.5),
            ParameterKind::Level => Value::Level(QueueLimit::Packets(1 + (unit * 10.0) as u32)),
            ParameterKind::Text => continue,
        };
        assert!(parameter.allows(value), "{}: {value:?}", parameter.name);
        if is_given {
            given.push((parameter.name, value));
        }
    }
    QueuePlan { values: Values::new(discipline.parameters, &given), ..plan(discipline) }
}

/// Runs `check` with 40 drawn cases on each discipline: every one of the registry, with its defaults and with drawn parameters,
/// and those of this file.
fn for_each(check: impl Fn(&str, Build<'_>, &Case, &mut RandomStream)) {
    let on = |name: &str, build: Build<'_>| {
        let mut random = RandomStreams::new(17).stream(name);
        for _ in 0..40 {
            let case = Case::draw(&mut random);
            check(name, build, &case, &mut random);
        }
    };
    for discipline in DISCIPLINES {
        on(discipline.name, &|streams| plan(discipline).build(streams, "hop/test", MTU));
        let mut random = RandomStreams::new(17).stream(&format!("{} parameters", discipline.name));
        for _ in 0..40 {
            let plan = draw_plan(discipline, &mut random);
            let case = Case::draw(&mut random);
            check(&format!("{plan:?}"), &|streams| plan.build(streams, "hop/test", MTU), &case, &mut random);
        }
    }
    TEST_DISCIPLINES.iter().for_each(|(name, build)| on(name, build));
}

#[test]
fn every_packet_has_exactly_one_outcome() {
    for_each(|name, build, case, _| {
        let outputs = poll_promptly(case.link(build, 1), case, true);
        let ids: BTreeSet<u32> = outputs.iter().map(|output| output.packet().id).collect();
        assert_eq!((outputs.len(), ids.len()), (case.arrivals.len(), case.arrivals.len()), "{name}");
        let sent: BTreeMap<u32, Descriptor> = case.arrivals.iter().map(|(_, packet)| (packet.id, *packet)).collect();
        for output in &outputs {
            let (packet, sent) = (output.packet(), sent[&output.packet().id]);
            assert_eq!((packet.flow, packet.size), (sent.flow, sent.size));
            let is_marked = packet.ecn == Ecn::Ce && sent.ecn.is_capable();
            assert!(packet.ecn == sent.ecn || is_marked, "{name}: {:?} became {:?}", sent.ecn, packet.ecn);
        }
    });
}

#[test]
fn outputs_are_equal_and_in_order_of_due_time_for_every_polling_pattern() {
    for_each(|name, build, case, random| {
        let prompt = poll_promptly(case.link(build, 1), case, true);
        assert!(prompt.windows(2).all(|pair| pair[0].due() <= pair[1].due()), "{name}");
        assert_eq!(poll_promptly(case.link(build, 1), case, false), prompt, "{name}");
        for probability in [0.0, 0.1, 0.5, 1.0] {
            assert_eq!(poll_at_random(case.link(build, 1), case, probability, random), prompt, "{name} {probability}");
        }
    });
}

#[test]
fn each_flow_keeps_its_order_while_the_link_does() {
    for_each(|name, build, case, _| {
        let case =
            Case { jitter: case.jitter.map(|jitter| Jitter { order: JitterOrder::Keep, ..jitter }), ..case.clone() };
        let mut last = BTreeMap::new();
        for output in poll_promptly(case.link(build, 1), &case, true) {
            if let Output::Delivered { packet, .. } = output {
                let last = last.insert(packet.flow, packet.id);
                assert!(last.is_none_or(|last| last < packet.id), "{name}");
            }
        }
    });
}

#[test]
fn equal_seeds_give_equal_outputs() {
    for_each(|name, build, case, _| {
        let run = |seed| poll_promptly(case.link(build, seed), case, true);
        assert_eq!(run(1), run(1), "{name}");
        if name == "coin" {
            assert_ne!(run(1), run(2), "the discipline draws from its stream");
        }
    });
}

#[test]
fn the_test_disciplines_do_what_they_are_for() {
    // 1 Mbit/s (10 ms a packet), offered twice as much for 500 ms.
    let packet = |id| packet(id, Ecn::NotEct);
    let case = Case {
        jitter: None,
        loss: 0.0,
        burst: None,
        capacity: vec![(Time::ZERO, Rate::from_kbps(1000))],
        arrivals: (0..100).map(|id| (Time::from_millis(5 * i64::from(id)), packet(id))).collect(),
    };
    let run = |name| {
        let (_, build) = TEST_DISCIPLINES.iter().find(|(of, _)| *of == name).unwrap();
        poll_promptly(case.link(build, 1), &case, true)
    };
    let aqm = |name| run(name).iter().filter(|o| matches!(o, Output::Dropped { reason: DropReason::Aqm, .. })).count();
    // One of two packets leaves, and those that wait at the end leave within another 40 ms.
    assert!((44..=48).contains(&aqm("expiry")), "{}", aqm("expiry"));
    // 10 of 100 on arrival, and 3 of 10 that would leave.
    assert!((15..=40).contains(&aqm("coin")), "{}", aqm("coin"));
    let gate = run("gate");
    let starts = gate.iter().filter_map(|o| match o {
        Output::Delivered { packet, waited, .. } => {
            let (arrived, _) = case.arrivals.iter().find(|(_, sent)| sent.id == packet.id).unwrap();
            Some((*arrived + *waited).as_nanos())
        }
        Output::Dropped { .. } => None,
    });
    let starts: Vec<i64> = starts.collect();
    // One packet in 14 ms, the second multiple of 7 ms after the one before, and 12 wait at the end.
    assert!((46..=50).contains(&starts.len()), "{}", starts.len());
    assert!(starts.iter().all(|start| start % Gate::PERIOD == 0));
}
