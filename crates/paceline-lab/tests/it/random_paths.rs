// SPDX-License-Identifier: MIT OR Apache-2.0
//! Invariants of packets in random scenarios, from the events of their runs: hops, queues, losses, jitter, MTUs, shared media
//! and TCP mixes are drawn.

use crate::fixtures::{observe, run, scenario, within};
use paceline_netsim::link::queue::{DISCIPLINES, QueueLimit};
use paceline_netsim::link::{JitterOrder, MTU, Schedule};
use paceline_netsim::plan::{HopPlan, Plan};
use paceline_netsim::records::{DropReason, EventRecord, PacketRecord};
use paceline_units::{DataSize, RandomStream, RandomStreams, Time, TimeDelta};
use std::collections::BTreeMap;

const SCENARIOS: usize = 500;
/// In s.
const DURATION: u32 = 4;

fn pick<'a>(random: &mut RandomStream, of: &[&'a str]) -> &'a str {
    of[(random.bits() % of.len() as u64) as usize]
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sharing {
    Turns,
    Wifi,
}

/// Draws the text of a hop's keys. Hops of a shared medium have a constant rate. The first hop of a way is limited:
/// without any capacity TCP would grow without end.
fn hop(random: &mut RandomStream, is_first: bool, medium: Option<Sharing>) -> String {
    let mut keys: Vec<String> = Vec::new();
    let mut key = |name: &str, value: &str| {
        if !value.is_empty() {
            keys.push(format!("{name} = {value}"));
        }
    };
    let constant = ["\"300 kbps\"", "\"1 Mbps\"", "\"3 Mbps\""];
    let rates = [
        "[[\"0s\", \"1 Mbps\"], [\"1s\", \"400 kbps\"], [\"2s\", \"2 Mbps\"]]",
        "[[\"0s\", \"1 Mbps\"], [\"2s\", \"0 bps\"], [\"2.3s\", \"1 Mbps\"]]",
    ];
    let capacity = match medium {
        Some(Sharing::Turns) => pick(random, &constant),
        Some(Sharing::Wifi) => pick(random, &["\"3 Mbps\"", "\"20 Mbps\"", "\"52 Mbps\""]),
        None if is_first => pick(random, &[&constant[..], &rates].concat()),
        None => pick(random, &[&constant[..], &rates, &[""]].concat()),
    };
    key("capacity", capacity);
    if medium.is_some() {
        key("server.medium", "\"air\"");
    }
    if medium == Some(Sharing::Wifi) {
        key("server.kind", "\"wifi\"");
        key("server.station", pick(random, &["", "\"ap\""]));
        key("server.order", "\"arrival\"");
        key("server.frame_error", pick(random, &["", "\"5 %\"", "\"40 %\""]));
        key("server.ampdu_packets", pick(random, &["", "1", "4"]));
        key("server.attempts", "3");
    } else if medium.is_none() && !capacity.is_empty() && random.chance(0.3) {
        key("server.burst", "\"5 KB\"");
    }
    let limit = pick(random, &["30 ms", "300 ms", "20 KB", "3 packets", "40 packets"]);
    let disciplines: Vec<&str> = DISCIPLINES.iter().map(|entry| entry.name).collect();
    let discipline = pick(random, &disciplines);
    let more = match discipline {
        "fq-codel" => {
            pick(random, &["", ", ecn = false", ", queues = 2", ", ce_threshold = \"1 ms\"", ", quantum = \"300 B\""])
        }
        "pie" => pick(random, &["", ", ecn = true", ", derandomize = true", ", cap_step = true, target = \"30 ms\""]),
        "red" => {
            pick(random, &["", ", ecn = true", ", adaptive = true", ", gentle = false, wait = false, weight = 0.1"])
        }
        "dualpi2" => pick(random, &["", ", target = \"5 ms\"", ", ramp_range = \"0 ms\"", ", coupling = 1.0"]),
        "step" => pick(random, &["", ", threshold = \"10 ms\""]),
        "srtcm" => pick(random, &["", ", rate = \"500 kbps\"", ", excess_burst = \"9 KB\"", ", burst = \"3 KB\""]),
        "trtcm" => pick(random, &["", ", rate = \"500 kbps\", drop_yellow = true", ", ecn = true"]),
        "drr" => pick(random, &["", ", quantum = \"300 B\", voice_weight = 9"]),
        "priority" => "",
        "codel" => pick(random, &["", ", ecn = true", ", target = \"20 ms\"", ", interval = \"30 ms\""]),
        _ => pick(random, &["", ", mark = \"10 ms\"", ", mark = \"2 packets\""]),
    };
    let more = if more.contains("10 ms") && limit.contains("ms") && limit != "300 ms" { "" } else { more };
    key("queue", &format!("{{ discipline = \"{discipline}\", limit = \"{limit}\"{more} }}"));
    key("delay", pick(random, &["\"0 ms\"", "\"5 ms\"", "\"40 ms\"", "[[\"0s\", \"60 ms\"], [\"2s\", \"10 ms\"]]"]));
    key("jitter", pick(random, &["", "", "{ std = \"4 ms\" }", "{ std = \"4 ms\", order = \"reorder\" }"]));
    let bursts = "{ model = \"gilbert-elliott\", to_bad = \"1 %\", to_good = \"30 %\" }";
    key("loss", pick(random, &["", "", "\"2 %\"", bursts]));
    key("mtu", pick(random, &["", "", "", "[[\"0s\", \"1500 B\"], [\"1s\", \"800 B\"], [\"2s\", \"1300 B\"]]"]));
    keys.join("\n")
}

fn draw(random: &mut RandomStream) -> String {
    let medium = match random.unit() {
        ..0.2 => Some(Sharing::Turns),
        ..0.4 => Some(Sharing::Wifi),
        _ => None,
    };
    let mut text = format!("id = \"test/random\"\ntitle = \"Random\"\nduration = \"{DURATION} s\"\n[path]\n");
    for way in ["forward", "reverse"] {
        for index in 0..1 + random.bits() % 3 {
            let is_wifi = medium == Some(Sharing::Wifi) && random.chance(0.3);
            text += &format!(
                "[[path.{way}.hops]]\n{}\n",
                hop(random, index == 0, medium.filter(|_| index == 0 || is_wifi))
            );
        }
    }
    for id in 0..1 + random.bits() % 3 {
        let direction = pick(random, &["forward", "forward", "reverse"]);
        text += &format!("[[flow]]\nid = \"flow{id}\"\ndirection = \"{direction}\"\n");
        text += pick(random, &["", "", "dscp = \"EF\"\n", "dscp = \"34\"\n", "dscp = \"LE\"\n"]);
        text += match random.bits() % 3 {
            0 => "controller = \"gcc-2016\"\n",
            1 => "controller = \"nada\"\n",
            _ => "kind = \"tcp\"\n",
        };
        if text.ends_with("kind = \"tcp\"\n") {
            text += &format!("congestion = \"{}\"\n", pick(random, &["cubic", "new-reno", "bbr"]));
        }
    }
    text
}

#[derive(Default)]
struct AtHop {
    /// Start and end of each service, with the size; in the order of the ends.
    served: Vec<(Time, DataSize)>,
    /// Arrival at the far end of the last packet.
    last_arrival: Option<Time>,
    /// Changes of the number of packets and bytes in the queue: at an arrival, a start of service, or a drop.
    queue: Vec<(Time, i64, i64)>,
}

/// Follows each packet from its sender to its end.
struct Checker<'a> {
    plan: &'a Plan,
    /// Where each packet in transit is: the next hop's position in its route, and its arrival there.
    transit: BTreeMap<u64, (usize, Time)>,
    /// When each packet was sent, and its size.
    packets: BTreeMap<u64, (Time, DataSize)>,
    hops: Vec<AtHop>,
    sent: u64,
    arrived: u64,
    dropped: u64,
    oversized: u64,
}

impl<'a> Checker<'a> {
    fn new(plan: &'a Plan) -> Self {
        let hops = plan.hops.iter().map(|_| AtHop::default()).collect();
        Self {
            plan,
            transit: BTreeMap::new(),
            packets: BTreeMap::new(),
            hops,
            sent: 0,
            arrived: 0,
            dropped: 0,
            oversized: 0,
        }
    }

    fn route(&self, packet: &PacketRecord) -> &'a [usize] {
        let flow = &self.plan.flows[usize::from(packet.flow.0)];
        if packet.class.is_from_receiver() { &flow.return_route } else { &flow.route }
    }

    fn hop(&self, index: usize) -> &'a HopPlan {
        &self.plan.hops[index]
    }

    /// Returns the arrival of a packet at a hop, at which it must be.
    fn at_hop(&self, packet: &PacketRecord, hop: u16) -> (usize, Time) {
        let (position, arrival) = self.transit[&packet.packet];
        assert_eq!(self.route(packet)[position], usize::from(hop), "a packet crosses the hops of its route in order");
        (position, arrival)
    }

    fn serve(&mut self, hop: u16, packet: &PacketRecord, arrival: Time, start: Time, left: Time) {
        assert!(arrival <= start && start <= left, "arrival {arrival}, start {start}, departure {left}");
        let (at, bytes) = (&mut self.hops[usize::from(hop)], packet.size.as_bytes() as i64);
        at.served.push((left, packet.size));
        at.queue.extend([(arrival, 1, bytes), (start, -1, -bytes)]);
    }

    fn on_event(&mut self, event: &EventRecord) {
        match *event {
            EventRecord::Sent { at, packet } => {
                assert_eq!(packet.packet, self.sent, "packets are numbered in order of sending");
                self.sent += 1;
                self.packets.insert(packet.packet, (at, packet.size));
                let access = self.plan.flows[usize::from(packet.flow.0)].access_delay;
                assert!(self.transit.insert(packet.packet, (0, at + access)).is_none(), "each number is sent once");
            }
            EventRecord::Crossed { at, hop, packet, waited, left, .. } => {
                let (position, arrival) = self.at_hop(&packet, hop);
                self.serve(hop, &packet, arrival, arrival + waited, left);
                let plan = self.hop(usize::from(hop));
                assert!(packet.size <= *plan.mtu.at(arrival), "the MTU is kept");
                assert!(at >= left + *plan.delay.at(left), "the delay is at least the propagation");
                let most = plan.jitter.map_or(TimeDelta::ZERO, |jitter| jitter.limit);
                let of_wire = &mut self.hops[usize::from(hop)];
                if plan.jitter.is_none_or(|jitter| jitter.order == JitterOrder::Keep) {
                    assert!(of_wire.last_arrival.is_none_or(|last| last <= at), "the hop keeps the order");
                    let earliest = (left + *plan.delay.at(left) + most).max(of_wire.last_arrival.unwrap_or(Time::ZERO));
                    assert!(at <= earliest.max(left + highest(&plan.delay) + most), "no packet waits without reason");
                }
                of_wire.last_arrival = Some(at);
                self.transit.insert(packet.packet, (position + 1, at));
            }
            EventRecord::Dropped { at, hop, packet, reason, left } => {
                let (_, arrival) = self.at_hop(&packet, hop);
                self.transit.remove(&packet.packet);
                self.dropped += 1;
                assert_eq!(reason == DropReason::Loss, left.is_some(), "only losses on the wire were served");
                match (reason, left) {
                    // The start of its service is unknown: it leaves the queue no earlier than it arrived.
                    (_, Some(left)) => self.serve(hop, &packet, arrival, arrival, left),
                    (DropReason::Mtu, _) => {
                        assert_eq!(at, arrival, "dropped as it arrives");
                        assert!(packet.size > *self.hop(usize::from(hop)).mtu.at(at), "only larger packets");
                        self.oversized += 1;
                    }
                    (DropReason::Overflow, _) if !drops_waiting_packets(self.hop(usize::from(hop))) => {
                        assert_eq!(at, arrival, "most disciplines drop the arriving packet")
                    }
                    // A packet that is dropped as it arrives was never in the queue.
                    _ if at == arrival => {}
                    _ => {
                        let bytes = packet.size.as_bytes() as i64;
                        self.hops[usize::from(hop)].queue.extend([(arrival, 1, bytes), (at, -1, -bytes)]);
                    }
                }
            }
            EventRecord::Arrived { at, packet, delay, .. } => {
                let (position, last) = self.transit.remove(&packet.packet).expect("it is in transit");
                assert_eq!((position, last), (self.route(&packet).len(), at), "it crossed its whole route");
                assert_eq!(self.packets[&packet.packet], (at - delay, packet.size));
                assert!(delay >= TimeDelta::ZERO);
                self.arrived += 1;
            }
            _ => {}
        }
    }

    /// Checks what needs the whole run.
    fn finish(mut self) {
        assert_eq!(self.sent, self.arrived + self.dropped + self.transit.len() as u64, "every packet has one outcome");
        for (hop, at) in self.plan.hops.iter().zip(&mut self.hops) {
            at.served.sort_unstable();
            check_rate(hop, &at.served);
            // Departures first: the packet in service is not in the queue.
            at.queue.sort_unstable();
            check_limit(hop, &at.queue);
        }
        let mut media: BTreeMap<(&str, &str), Vec<(Time, TimeDelta)>> = BTreeMap::new();
        for (hop, at) in self.plan.hops.iter().zip(&self.hops) {
            let (Some(medium), Some(capacity)) = (&hop.server.service.medium, &hop.capacity) else { continue };
            let services = at.served.iter().map(|(left, size)| (*left, *size / capacity.rate_at(Time::ZERO)));
            media.entry((medium.kind.name(), &medium.name)).or_default().extend(services);
        }
        for ((kind, _), mut services) in media {
            services.sort_unstable();
            if kind == "wifi" {
                check_airtime(&services, self.plan.hops.iter().map(windows_airtime).sum());
                continue;
            }
            for pair in services.windows(2) {
                assert!(pair[1].0 - pair[1].1 >= pair[0].0, "one hop transmits at a time");
            }
        }
    }
}

/// Returns the bytes that a Wi-Fi hop may deliver at once: a whole window of the block acknowledgement (IEEE 802.11-2020,
/// 9.3.1.8.2), in which packets wait for one that is repeated.
fn window(hop: &HopPlan) -> DataSize {
    let is_wifi = hop.server.service.medium.as_ref().is_some_and(|medium| medium.kind.name() == "wifi");
    if is_wifi { DataSize::from_bytes(64 * MTU.as_bytes()) } else { DataSize::ZERO }
}

fn windows_airtime(hop: &HopPlan) -> f64 {
    hop.capacity.as_ref().map_or(0.0, |capacity| (window(hop) / capacity.rate_at(Time::ZERO)).as_secs_f64())
}

/// Checks that packets which leave a medium, each with its least airtime, have time for it. Those of `windows`, in s, may
/// have been sent before.
fn check_airtime(services: &[(Time, TimeDelta)], windows: f64) {
    for length in [10, 100, 1000] {
        for of in services.windows(length + 1).step_by(length) {
            let airtime: f64 = of[1..].iter().map(|(_, airtime)| airtime.as_secs_f64()).sum();
            let time = (of[length].0 - of[0].0).as_secs_f64();
            assert!(airtime <= time + windows + 1e-6, "{airtime} s of airtime in {time} s");
        }
    }
}

fn drops_waiting_packets(hop: &HopPlan) -> bool {
    matches!(hop.queue.name(), "fq-codel" | "priority" | "drr")
}

fn highest(delay: &Schedule<TimeDelta>) -> TimeDelta {
    delay.points().iter().map(|(_, delay)| *delay).max().unwrap_or(TimeDelta::ZERO)
}

/// Checks that between any two of some departures the capacity suffices for what left, besides a burst.
fn check_rate(hop: &HopPlan, served: &[(Time, DataSize)]) {
    let Some(capacity) = &hop.capacity else { return };
    let burst = hop.server.service.burst.unwrap_or(window(hop));
    for length in [1, 2, 10, 100] {
        for window in served.windows(length + 1).step_by(length) {
            let bytes = window[1..].iter().fold(DataSize::ZERO, |sum, (_, size)| sum + *size);
            // One byte of rounding per packet.
            let rounding = DataSize::from_bytes(length as u64);
            let most = capacity.volume(window[0].0, window[length].0) + burst + rounding;
            assert!(bytes <= most, "{}: {bytes} left in time for {most}", hop.id);
        }
    }
}

/// Checks that the queue never holds more than its limit. Changes are in order of time.
fn check_limit(hop: &HopPlan, changes: &[(Time, i64, i64)]) {
    let Some(capacity) = &hop.capacity else { return };
    let highest_rate = capacity.steps(Time::from_secs(i64::from(DURATION)), TimeDelta::from_secs(1));
    let highest_rate = highest_rate.iter().map(|(_, rate)| *rate).max().expect("a capacity has a rate");
    let (most_packets, most_bytes) = match hop.queue.limit {
        QueueLimit::Packets(packets) => (i64::from(packets), i64::MAX),
        QueueLimit::Bytes(bytes) => (i64::MAX, bytes.as_bytes() as i64),
        QueueLimit::DrainTime(time) => (i64::MAX, (highest_rate * time).as_bytes().max(1500) as i64),
    };
    // A Wi-Fi station takes one packet from the queue that may not fit into its frame.
    let taken = i64::from(window(hop) > DataSize::ZERO);
    let (most_packets, most_bytes) =
        (most_packets.saturating_add(taken), most_bytes.saturating_add(taken * MTU.as_bytes() as i64));
    let (mut packets, mut bytes, mut last) = (0, 0, None);
    for (index, (at, more, size)) in changes.iter().enumerate() {
        packets += more;
        bytes += size;
        last = last.max(Some(*at));
        // Several changes at one time are one: a packet may arrive at an idle server.
        if changes.get(index + 1).is_none_or(|(next, ..)| next != at) {
            assert!(packets <= most_packets && bytes <= most_bytes, "{}: {packets} packets, {bytes} B", hop.id);
            assert!(packets >= 0 && bytes >= 0, "{}: no packet leaves before it arrives", hop.id);
        }
    }
}

#[test]
fn packets_obey_the_plan_in_random_scenarios() {
    let mut random = RandomStreams::new(17).stream("random scenarios");
    let (mut sent, mut arrived, mut dropped, mut oversized, mut shared, mut wifi) = (0, 0, 0, 0, 0, 0);
    for number in 0..SCENARIOS {
        let text = draw(&mut random);
        let scenario = scenario(&text, &[]);
        let mut checker = Checker::new(&scenario.plan);
        let checked = std::panic::AssertUnwindSafe(|| {
            observe(&scenario, number as u64, |event| checker.on_event(event));
            sent += checker.sent;
            arrived += checker.arrived;
            dropped += checker.dropped;
            oversized += checker.oversized;
            checker.finish();
        });
        if let Err(cause) = std::panic::catch_unwind(checked) {
            eprintln!("scenario {number}, seed {number}:\n{text}");
            std::panic::resume_unwind(cause);
        }
        let has = |name| {
            let of_hop = |hop: &HopPlan| hop.server.service.medium.as_ref().is_some_and(|of| of.kind.name() == name);
            usize::from(scenario.plan.hops.iter().any(of_hop))
        };
        shared += has("half-duplex");
        wifi += has("wifi");
    }
    assert!(arrived > 200_000 && arrived < sent, "{arrived} of {sent} packets arrived");
    assert!(dropped > 10_000, "{dropped} packets were dropped");
    assert!(oversized > 500 && oversized < dropped, "{oversized} exceeded an MTU");
    assert!((60..140).contains(&shared), "{shared} scenarios share a medium in turns");
    assert!((60..140).contains(&wifi), "{wifi} scenarios have Wi-Fi");
}

/// A half-duplex pair of 2 Mbit/s.
const PAIR: &str = r#"
id = "test/pair"
title = "A half-duplex pair"
duration = "60 s"
[path]
rtt = "20 ms"
[path.forward]
capacity = "2 Mbps"
server = { medium = "air" }
queue = { limit = "100 ms" }
[path.reverse]
capacity = "2 Mbps"
server = { medium = "air" }
queue = { limit = "100 ms" }
[[flow]]
id = "up"
kind = "tcp"
"#;

const DOWN: &str = "[[flow]]\nid = \"down\"\nkind = \"tcp\"\ndirection = \"reverse\"\n";

#[test]
fn tcp_shares_a_half_duplex_pair_with_its_acknowledgements_and_the_other_direction() {
    let rate = |result: &paceline_lab::run::RunResult, flow: usize| {
        crate::fixtures::metric(&result.whole, "throughput_bps", Some(flow)).unwrap() / 1e6
    };
    // Two segments of 1500 bytes and their acknowledgement of 52 bytes: 3000 of 3052 bytes are data, 1.966 Mbit/s.
    let alone = run(PAIR, &[]);
    within("one direction", rate(&alone, 0), 1.90, 1.966);
    // Without the medium each direction has 2 Mbit/s; with it both together have what one had.
    let both = run(&format!("{PAIR}{DOWN}"), &[]);
    let (up, down) = (rate(&both, 0), rate(&both, 1));
    within("both directions", up + down, 1.85, 1.966);
    within("the share of one", up / (up + down), 0.35, 0.65);
    assert_eq!(run(&format!("{PAIR}{DOWN}"), &[]).trace_hash, both.trace_hash);
}

/// A station that uploads over an access point, without aggregation.
const WIFI: &str = r#"
id = "test/wifi"
title = "An upload on Wi-Fi"
duration = "30 s"
[path]
rtt = "20 ms"
[path.forward]
server = { kind = "wifi", medium = "air", ampdu_packets = 1 }
capacity = "52 Mbps"
queue = { limit = "100 packets" }
[path.reverse]
server = { kind = "wifi", medium = "air", ampdu_packets = 1 }
capacity = "52 Mbps"
queue = { limit = "100 packets" }
[[flow]]
id = "up"
kind = "tcp"
"#;

/// A segment occupies the channel for 367 us, an acknowledgement (90 bytes, 4 symbols) for 143 us. Without the acknowledgements
/// there are 67.5 us of backoff between two segments: 27.6 Mbit/s. With one of them for two segments two stations contend.
#[test]
fn acknowledgements_take_airtime_from_data() {
    let rate = |text: &str| {
        let result = run(text, &[]);
        let events = result.events as f64 / 30.0;
        (crate::fixtures::metric(&result.whole, "throughput_bps", Some(0)).unwrap() / 1e6, events, result.trace_hash)
    };
    let (with, events, hash) = rate(WIFI);
    within("acknowledgements on the channel", with, 21.0, 25.0);
    let wire = WIFI.split("[path.reverse]").next().unwrap().to_owned() + "[[flow]]\nid = \"up\"\nkind = \"tcp\"\n";
    let (without, ..) = rate(&wire);
    within("acknowledgements on a wire", without, 26.5, 27.7);
    // 2000 segments and 1000 acknowledgements in a second: a few events for each.
    within("events per second", events, 3000.0, 30_000.0);
    assert_eq!(rate(WIFI).2, hash);
}
