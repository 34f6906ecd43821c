// SPDX-License-Identifier: MIT OR Apache-2.0
//! Saturated channels beside the formula of Bianchi, fairness, errors, and independence of polling.

use super::super::{Medium, build_media};
use super::bianchi::{Durations, Saturation};
use crate::link::queue::{CoDel, CoDelQueue, Descriptor, Discipline, DropTail, QueueLimit};
use crate::link::server::{SERVERS, ServerPlan, Service};
use crate::link::{Capacity, CapacityEnd, HopPlan, Link, LinkChange, MediumPlan, Output, Schedule};
use crate::parameter::{Value, Values};
use crate::records::DropReason;
use paceline_units::{DataSize, Ecn, FlowId, Fraction, RandomStreams, Rate, Time, TimeDelta};

fn us(t: i64) -> Value {
    Value::Time(TimeDelta::from_micros(t))
}

fn bytes(size: u64) -> Value {
    Value::Size(DataSize::from_bytes(size))
}

fn mbps(rate: f64) -> Rate {
    Rate::from_bps_f64(rate * 1e6)
}

/// A hop: its station, PHY rate in Mbit/s, and parameters that differ from the defaults.
#[derive(Clone)]
struct Hop {
    station: &'static str,
    rate: f64,
    given: Vec<(&'static str, Value)>,
    order: &'static str,
}

fn hop(station: &'static str, rate: f64, given: &[(&'static str, Value)]) -> Hop {
    Hop { station, rate, given: given.to_vec(), order: "round-robin" }
}

fn no_aggregation() -> (&'static str, Value) {
    ("ampdu_packets", Value::Count(1))
}

fn error(probability: f64) -> (&'static str, Value) {
    ("frame_error", Value::Fraction(Fraction::new(probability).unwrap()))
}

/// A channel with its links, driven without a network.
struct Channel {
    medium: Box<dyn Medium>,
    links: Vec<Link>,
    next_id: u32,
    /// Outputs of each link.
    outputs: Vec<Vec<Output>>,
}

fn plan(hop: &Hop) -> MediumPlan {
    let entry = SERVERS.iter().find(|entry| entry.name == "wifi").unwrap();
    let mut texts = vec![("medium", "air".to_owned()), ("order", hop.order.to_owned())];
    if !hop.station.is_empty() {
        texts.push(("station", hop.station.to_owned()));
    }
    let values = Values::new(entry.parameters, &hop.given).with_texts(texts);
    (entry.build)(&values).unwrap().medium.unwrap()
}

impl Channel {
    fn new(hops: &[Hop], seed: u64) -> Self {
        Self::with_queues(hops, seed, || Box::new(DropTail::new(QueueLimit::Packets(u32::MAX))))
    }

    fn with_queues(hops: &[Hop], seed: u64, queue: impl Fn() -> Box<dyn Discipline>) -> Self {
        let streams = RandomStreams::new(seed);
        let link = |(index, hop): (usize, &Hop)| {
            let service = Service { batch: Some(crate::link::Batch::SINGLE), ..Service::default() };
            let hop = HopPlan {
                capacity: Some(Capacity::constant(mbps(hop.rate))),
                server: ServerPlan { service, ..ServerPlan::default() },
                ..HopPlan::new(index.to_string(), QueueLimit::Packets(1))
            };
            Link::with_queue(hop, queue(), &streams)
        };
        let links: Vec<Link> = hops.iter().enumerate().map(link).collect();
        let plans: Vec<MediumPlan> = hops.iter().map(plan).collect();
        let names: Vec<String> = (0..hops.len()).map(|index| format!("hop-{index}")).collect();
        let parts = names.iter().map(String::as_str).zip(plans.iter().map(Some));
        let (mut media, _) = build_media(parts, &streams);
        let medium = media.remove(0);
        Self { medium, outputs: vec![Vec::new(); links.len()], links, next_id: 0 }
    }

    fn arrive(&mut self, at: Time, to: usize, count: usize, size: u64) {
        for _ in 0..count {
            self.medium.advance(at, to, &mut self.links);
            let size = DataSize::from_bytes(size);
            let packet = Descriptor {
                id: self.next_id,
                flow: FlowId(to as u16),
                size,
                ecn: Ecn::NotEct,
                dscp: paceline_units::Dscp::DEFAULT,
            };
            self.links[to].handle_packet(at, packet);
            self.medium.advance(at, to, &mut self.links);
            self.next_id += 1;
        }
    }

    fn poll(&mut self, until: Time) {
        self.medium.advance(until, 0, &mut self.links);
        for (link, outputs) in self.links.iter_mut().zip(&mut self.outputs) {
            outputs.extend(core::iter::from_fn(|| link.poll_output(until)));
        }
    }

    /// Fills all queues, runs for `seconds`, and returns the delivered rate of each link in Mbit/s.
    fn saturate(&mut self, seconds: i64, size: u64) -> Vec<f64> {
        for to in 0..self.links.len() {
            // Twice its share at 50 Mbit/s.
            let share = (seconds as usize) * 12_500_000 / size as usize / self.links.len();
            self.arrive(Time::ZERO, to, share + 2000, size);
        }
        self.poll(Time::from_secs(seconds));
        let rate = |outputs: &Vec<Output>| {
            let delivered = outputs.iter().filter(|output| matches!(output, Output::Delivered { .. }));
            delivered.map(|output| output.packet().size.as_bits() as f64).sum::<f64>() / seconds as f64 / 1e6
        };
        assert!(self.links.iter().all(|link| link.backlog() > DataSize::ZERO), "the queues stay full");
        self.outputs.iter().map(rate).collect()
    }

    fn lost(&self) -> usize {
        let lost = |output: &&Output| matches!(output, Output::Dropped { reason: DropReason::Loss, .. });
        self.outputs.iter().flatten().filter(lost).count()
    }
}

/// Equal stations, each with one hop.
fn equal(stations: usize, rate: f64, given: &[(&'static str, Value)]) -> Vec<Hop> {
    (0..stations).map(|_| hop("", rate, given)).collect()
}

fn near(what: &str, actual: f64, expected: f64, relative: f64) {
    let difference = actual / expected - 1.0;
    assert!(difference.abs() <= relative, "{what}: {actual:.3}, expected {expected:.3} ({:+.1} %)", 100.0 * difference);
}

/// A row of the comparison with Bianchi's formula.
struct Row {
    name: &'static str,
    rate: f64,
    given: Vec<(&'static str, Value)>,
    /// Size of packets, and packets of a frame.
    size: u64,
    packets: f64,
    window: f64,
    doublings: u32,
    times: Durations,
    seconds: i64,
}

/// The parameters of table II of the paper with its window of 32 and three doublings, and two of 802.11n at 52 Mbit/s, without
/// aggregation and with 16 packets in a frame.
fn rows() -> [Row; 3] {
    // Failures do not reduce the rate in the formula, and it has no last attempt.
    let always = [("full_rate_attempts", Value::Count(255)), ("attempts", Value::Count(255))];
    let paper = [
        ("slot", us(50)),
        ("sifs", us(28)),
        ("aifsn", Value::Count(2)),
        ("cw_min", Value::Count(31)),
        ("cw_max", Value::Count(255)),
        ("preamble", us(128)),
        ("symbol", us(0)),
        ("header", bytes(34)),
        ("ack_preamble", us(128)),
        ("ack_rate", Value::Rate(mbps(1.0))),
        ("lowest_rate", Value::Rate(mbps(1.0))),
        no_aggregation(),
    ];
    let aggregated = [("ampdu_packets", Value::Count(16))];
    let row = |name, rate, given: &[(&'static str, Value)], size, packets, window, doublings, times, seconds| Row {
        name,
        rate,
        given: given.iter().chain(&always).copied().collect(),
        size,
        packets,
        window,
        doublings,
        times,
        seconds,
    };
    let fhss = Durations::basic_access(50.0, 8584.0, 28.0, 240.0, 128.0, 1.0);
    let single = Durations::basic_access(9.0, 280.0, 16.0, 28.0, 43.0, 0.0);
    let many = Durations::basic_access(9.0, 3844.0, 16.0, 32.0, 43.0, 0.0);
    [
        row("Bianchi, FHSS 1 Mbit/s", 1.0, &paper, 1023, 1.0, 32.0, 3, fhss, 100),
        row("802.11n 52 Mbit/s", 52.0, &[no_aggregation()], 1500, 1.0, 16.0, 6, single, 6),
        row("802.11n 52 Mbit/s, 16 packets", 52.0, &aggregated, 1500, 16.0, 16.0, 6, many, 20),
    ]
}

/// The table of `docs/explanation/wifi.md`; `--nocapture` prints it. The formula assumes that the collision probability does
/// not depend on the past, so a few per cent remain.
#[test]
fn saturation_throughput_is_that_of_bianchi() {
    for row in rows() {
        for stations in 1..=20 {
            let measured: f64 = {
                let mut channel = Channel::new(&equal(stations, row.rate, &row.given), 1);
                channel.saturate(row.seconds, row.size).iter().sum()
            };
            let saturation = Saturation { stations: stations as u32, window: row.window, doublings: row.doublings };
            let payload = row.packets * row.size as f64 * 8.0;
            let formula = saturation.throughput(payload, &row.times) / 1e6;
            let difference = 100.0 * (measured / formula - 1.0);
            println!("{} | {stations} | {formula:.3} | {measured:.3} | {difference:+.1} %", row.name);
            near(&format!("{}, {stations} stations", row.name), measured, formula, 0.05);
        }
    }
}

/// Shares differ more the fewer frames there are: about 12 000 of each station, then 3800 of 22 packets, which take 5268 us.
#[test]
fn equal_stations_have_equal_shares() {
    let full_rate = ("full_rate_attempts", Value::Count(255));
    let cases = [(vec![no_aggregation(), full_rate], 30, 0.06, 26.866), (vec![full_rate], 120, 0.12, 41.7)];
    for (given, seconds, tolerance, total) in cases {
        let rates = Channel::new(&equal(5, 52.0, &given), 2).saturate(seconds, 1500);
        let sum = rates.iter().sum::<f64>();
        rates.iter().for_each(|rate| near("a station", *rate, sum / 5.0, tolerance));
        near("all, by the formula", sum, total, 0.03);
    }
}

/// Heusse et al. (2003): stations win the channel equally often, so all send as many packets as the slowest. A frame of 1500
/// bytes without aggregation takes 280 us at 52 Mbit/s and 1940 us at 6.5 Mbit/s, and 87 us more with SIFS, acknowledgement and
/// AIFS. In the mean each of the two stations sends one of two frames.
#[test]
fn one_slow_station_slows_all() {
    let hops = [hop("", 52.0, &[no_aggregation()]), hop("", 6.5, &[no_aggregation()])];
    let rates = Channel::new(&hops, 1).saturate(60, 1500);
    near("both have the same", rates[0], rates[1], 0.05);
    let (tau, _) = Saturation { stations: 2, window: 16.0, doublings: 6 }.fixed_point();
    let (idle, success) = ((1.0 - tau) * (1.0 - tau), 2.0 * tau * (1.0 - tau));
    let collision = tau * tau;
    let mean_slot = 9.0 * idle + (280.0 + 1940.0 + 2.0 * 87.0) / 2.0 * success + (1940.0 + 43.0) * collision;
    near("the fast one", rates[0], success / 2.0 * 12_000.0 / mean_slot, 0.04);
    let fast = Channel::new(&equal(2, 52.0, &[no_aggregation()]), 1).saturate(60, 1500);
    assert!((2.8..3.5).contains(&(fast[0] / rates[0])), "without the slow one: {fast:?}");
}

/// The share of packets that are lost in seven collisions, and throughput, of a program that simulates the counters slot by slot.
/// The collision probability of 20 stations is 0.477: 0.6 % would be lost if collisions did not depend on each other.
#[test]
fn saturated_stations_lose_few_packets() {
    let given = [("ampdu_packets", Value::Count(16)), ("full_rate_attempts", Value::Count(255))];
    let mut channel = Channel::new(&equal(20, 52.0, &given), 1);
    let total: f64 = channel.saturate(60, 1500).iter().sum();
    near("throughput", total, 34.66, 0.015);
    let share = channel.lost() as f64 / channel.outputs.iter().map(Vec::len).sum::<usize>() as f64;
    assert!((0.0055..0.0095).contains(&share), "{share}");
}

#[test]
fn an_access_point_contends_as_one_station_and_serves_its_hops_in_turn() {
    let hops = [hop("ap", 52.0, &[]), hop("ap", 52.0, &[]), hop("ap", 52.0, &[]), hop("phone", 52.0, &[])];
    let rates = Channel::new(&hops, 1).saturate(30, 1500);
    let down: f64 = rates[..3].iter().sum();
    near("downlink and uplink", down, rates[3], 0.06);
    rates[..3].iter().for_each(|rate| near("a receiver", *rate, down / 3.0, 0.03));
}

/// 10 packets for one receiver, then 10 for another.
#[test]
fn order_of_arrival_is_that_of_one_queue() {
    let starts = |order| {
        let of_ap = Hop { order, ..hop("ap", 52.0, &[no_aggregation()]) };
        let mut channel = Channel::new(&[of_ap.clone(), of_ap], 1);
        channel.arrive(Time::ZERO, 0, 10, 1500);
        channel.arrive(Time::from_nanos(1), 1, 10, 1500);
        channel.poll(Time::from_secs(1));
        let mut all: Vec<(Time, usize)> = Vec::new();
        for (to, outputs) in channel.outputs.iter().enumerate() {
            all.extend(outputs.iter().map(|output| (output.due(), to)));
        }
        all.sort_unstable();
        all.into_iter().map(|(_, to)| to).collect::<Vec<_>>()
    };
    assert_eq!(starts("arrival"), [vec![0; 10], vec![1; 10]].concat());
    assert_eq!(starts("round-robin"), [0, 1].repeat(10));
}

/// Errors of half of the transmissions and two attempts lose a quarter of the packets, alone or in frames of many.
#[test]
fn packets_are_lost_after_the_last_attempt() {
    for packets in [1, 16] {
        let given = [("ampdu_packets", Value::Count(packets)), ("attempts", Value::Count(2)), error(0.5)];
        let mut channel = Channel::new(&[hop("", 52.0, &given)], 1);
        channel.saturate(10, 1500);
        let share = channel.lost() as f64 / channel.outputs[0].len() as f64;
        assert!((0.24..0.26).contains(&share), "{packets} packets in a frame: {share}");
    }
}

/// Every transmission at 52 Mbit/s fails. The third of each packet is at 26 Mbit/s and succeeds: 2 x 367 us, 240 us more for
/// half of the rate, and backoffs of 7.5, 15.5 and 31.5 slots in the mean.
#[test]
fn rate_falls_after_failures() {
    let given = [no_aggregation(), error(1.0)];
    let mut channel = Channel::new(&[hop("", 52.0, &given)], 1);
    let rate = channel.saturate(10, 1500)[0];
    near("third attempts", rate, 12_000.0 / (3.0 * 367.0 + 240.0 + 54.5 * 9.0), 0.02);
    assert_eq!(channel.lost(), 0);
}

/// Half of the window at each stage. The ratio is that of a chain of the two counters, simulated slot by slot with another
/// program. Equations (7) and (9) of Bianchi, which neglect that a frozen counter is never 0, give 2.6.
#[test]
fn a_smaller_window_has_priority() {
    let full_rate = ("full_rate_attempts", Value::Count(255));
    let small = [("cw_min", Value::Count(7)), ("cw_max", Value::Count(511)), no_aggregation(), full_rate];
    let hops = [hop("", 52.0, &small), hop("", 52.0, &[no_aggregation(), full_rate])];
    let rates = Channel::new(&hops, 1).saturate(20, 1500);
    near("the ratio of successful frames", rates[0] / rates[1], 3.31, 0.05);
}

/// A packet on an idle channel begins in the next slot; one that arrives during another frame waits for its end, SIFS, AIFS and
/// at most 15 slots.
#[test]
fn an_idle_channel_needs_no_backoff() {
    let at = Time::from_millis(10);
    let mut channel = Channel::new(&equal(2, 52.0, &[no_aggregation()]), 1);
    channel.arrive(at, 0, 1, 1500);
    channel.arrive(at + TimeDelta::from_micros(100), 1, 1, 1500);
    channel.poll(Time::from_secs(1));
    let waited = |link: usize| match channel.outputs[link][..] {
        [Output::Delivered { waited, .. }] => waited.as_nanos() / 1000,
        _ => panic!("one packet each"),
    };
    assert!((0..=9).contains(&waited(0)), "{}", waited(0));
    let busy = 280 + 16 + 28 - 100;
    assert!((busy + 43..=busy + 43 + 16 * 9).contains(&waited(1)), "{}", waited(1));
}

#[test]
fn a_station_in_an_outage_leaves_the_channel_to_the_others() {
    let mut channel = Channel::new(&equal(2, 52.0, &[no_aggregation()]), 1);
    let steps = vec![(Time::ZERO, mbps(0.0)), (Time::from_millis(500), mbps(52.0))];
    let capacity = Capacity::rates(Schedule::new(steps).unwrap(), CapacityEnd::Hold).unwrap();
    channel.links[0].change(Time::ZERO, LinkChange::Capacity(Some(capacity)));
    let rates = channel.saturate(1, 1500);
    near("the station in the outage", rates[0], 0.5 * 28.0 / 2.0, 0.1);
    near("the other", rates[1], 0.5 * 27.6 + 0.5 * 28.0 / 2.0, 0.1);
}

/// Arrivals at random hops with queue management, errors, two orders and a change: every packet has one outcome, hops keep the
/// order, and polling changes nothing.
#[test]
fn decisions_do_not_depend_on_polling() {
    let run = |prompt: bool| {
        let in_order = |order| Hop { order, ..hop("ap", 26.0, &[error(0.2)]) };
        let hops = [
            in_order("arrival"),
            in_order("arrival"),
            hop("a", 52.0, &[error(0.1)]),
            hop("b", 6.5, &[no_aggregation()]),
        ];
        let law = || CoDel::new(TimeDelta::from_millis(5), TimeDelta::from_millis(100), false);
        let queue = || -> Box<dyn Discipline> { Box::new(CoDelQueue::with(QueueLimit::Packets(100), law())) };
        let mut channel = Channel::with_queues(&hops, 3, queue);
        let mut random = RandomStreams::new(4).stream("arrivals");
        let mut now = Time::ZERO;
        for burst in 0..2000 {
            let next = now + random.time_below(TimeDelta::from_millis(3));
            while prompt && now < next {
                channel.poll(now);
                now += TimeDelta::from_micros(50);
            }
            now = next;
            if burst == 1000 || burst == 1100 {
                let rate = if burst == 1000 { 0.0 } else { 13.0 };
                channel.medium.advance(now, 2, &mut channel.links);
                let change = LinkChange::Capacity(Some(Capacity::constant(mbps(rate))));
                channel.links[2].change(now, change);
                channel.medium.advance(now, 2, &mut channel.links);
            }
            let to = (random.bits() % 4) as usize;
            channel.arrive(now, to, 1 + (random.bits() % 10) as usize, 100 + random.bits() % 1400);
        }
        channel.poll(Time::from_secs(60));
        assert_eq!(channel.medium.next_start(&channel.links), None, "nothing is left to send");
        assert_eq!(channel.outputs.iter().map(Vec::len).sum::<usize>(), channel.next_id as usize);
        channel.outputs
    };
    let outputs = run(true);
    for of_hop in &outputs {
        assert!(of_hop.windows(2).all(|pair| pair[0].due() <= pair[1].due()));
        let delivered = of_hop.iter().filter(|output| matches!(output, Output::Delivered { .. }));
        let ids: Vec<u32> = delivered.map(|output| output.packet().id).collect();
        assert!(ids.is_sorted(), "a hop keeps the order");
    }
    let dropped = outputs.iter().flatten().filter(|output| matches!(output, Output::Dropped { .. })).count();
    assert!((500..8000).contains(&dropped), "the queues act: {dropped}");
    assert_eq!(run(false), outputs);
}
