// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares queue disciplines with those of ns-3 on the same arrivals, and prints a table in Markdown.
//!
//! ```text
//! c++ … benches/ns3/queues.cc -o queues        # its first lines have the command; Debian: libns3-dev
//! cargo run --release -p paceline-netsim --example ns3_queues -- ./queues
//! ```

use paceline_netsim::link::queue::{DISCIPLINES, QueueLimit, QueuePlan};
use paceline_netsim::link::{Capacity, Descriptor, HopPlan, Link, Output};
use paceline_netsim::parameter::{Value, Values};
use paceline_units::{DataSize, Dscp, Ecn, FlowId, RandomStreams, Rate, Time, TimeDelta};
use std::io::Write;
use std::process::{Command, Stdio};

const RATE: Rate = Rate::from_kbps(10_000);
const DURATION: TimeDelta = TimeDelta::from_secs(300);
/// Runs of a discipline that draws random numbers.
const RUNS: u64 = 10;

/// A configuration in both programs.
struct Case {
    title: &'static str,
    name: &'static str,
    values: &'static [(&'static str, Value)],
    limit: u32,
    is_random: bool,
    ns3: &'static str,
    attributes: &'static [&'static str],
}

const CASES: &[Case] = &[
    Case {
        title: "CoDel",
        name: "codel",
        values: &[],
        limit: 1000,
        is_random: false,
        ns3: "ns3::CoDelQueueDisc",
        attributes: &["MaxSize=1000p"],
    },
    Case {
        title: "CoDel, ECN",
        name: "codel",
        values: &[("ecn", Value::Flag(true))],
        limit: 1000,
        is_random: false,
        ns3: "ns3::CoDelQueueDisc",
        attributes: &["MaxSize=1000p", "UseEcn=true"],
    },
    Case {
        title: "FQ-CoDel",
        name: "fq-codel",
        values: &[("ecn", Value::Flag(false))],
        limit: 10_240,
        is_random: false,
        ns3: "ns3::FqCoDelQueueDisc",
        attributes: &["MaxSize=10240p", "UseEcn=false"],
    },
    Case {
        title: "FQ-CoDel, ECN",
        name: "fq-codel",
        values: &[],
        limit: 10_240,
        is_random: false,
        ns3: "ns3::FqCoDelQueueDisc",
        attributes: &["MaxSize=10240p", "UseEcn=true"],
    },
    Case {
        title: "FQ-CoDel, limit of 200 packets",
        name: "fq-codel",
        values: &[("ecn", Value::Flag(false))],
        limit: 200,
        is_random: false,
        ns3: "ns3::FqCoDelQueueDisc",
        attributes: &["MaxSize=200p", "UseEcn=false"],
    },
    Case {
        title: "PIE",
        name: "pie",
        values: &[],
        limit: 1000,
        is_random: true,
        ns3: "ns3::PieQueueDisc",
        attributes: &["MaxSize=1000p", "UseCapDropAdjustment=false"],
    },
    Case {
        title: "PIE, ECN",
        name: "pie",
        values: &[("ecn", Value::Flag(true))],
        limit: 1000,
        is_random: true,
        ns3: "ns3::PieQueueDisc",
        attributes: &["MaxSize=1000p", "UseCapDropAdjustment=false", "UseEcn=true"],
    },
    Case {
        title: "RED",
        name: "red",
        values: &[],
        limit: 1000,
        is_random: true,
        ns3: "ns3::RedQueueDisc",
        attributes: &["MaxSize=1000p", "LinkBandwidth=10Mbps"],
    },
    Case {
        title: "RED, ECN",
        name: "red",
        values: &[("ecn", Value::Flag(true))],
        limit: 1000,
        is_random: true,
        ns3: "ns3::RedQueueDisc",
        attributes: &["MaxSize=1000p", "LinkBandwidth=10Mbps", "UseEcn=true"],
    },
    Case {
        title: "RED, classic",
        name: "red",
        values: &[("gentle", Value::Flag(false)), ("wait", Value::Flag(false))],
        limit: 1000,
        is_random: true,
        ns3: "ns3::RedQueueDisc",
        attributes: &["MaxSize=1000p", "LinkBandwidth=10Mbps", "Gentle=false", "Wait=false"],
    },
];

/// Draws the arrivals of four flows, in order: a constant rate of 3 Mbit/s, 9 Mbit/s at random intervals for 2 s of each 5,
/// bursts of 20 packets five times a second, and a voice call. In the busy phases they are 1.3 times the rate of the link.
fn arrivals() -> Vec<(Time, Descriptor)> {
    let mut random = RandomStreams::new(1).stream("arrivals");
    let mut all = Vec::new();
    let end = Time::ZERO + DURATION;
    let packet = |flow: u16, bytes: u64| {
        let ecn = if flow == 3 { Ecn::NotEct } else { Ecn::Ect0 };
        Descriptor { id: 0, flow: FlowId(flow), size: DataSize::from_bytes(bytes), ecn, dscp: Dscp::DEFAULT }
    };
    let mut now = Time::ZERO;
    while now < end {
        all.push((now, packet(0, 1250)));
        now += DataSize::from_bytes(1250) / Rate::from_kbps(3000);
    }
    let mut now = Time::ZERO;
    while now < end {
        all.push((now, packet(1, 1500)));
        // Each interval is the sum of two uniform draws, with the mean of 1500 bytes at 9 Mbit/s.
        let mean = DataSize::from_bytes(1500) / Rate::from_kbps(9000);
        now += random.time_below(mean) + random.time_below(mean);
        let phase = now.as_nanos() % 5_000_000_000;
        if phase > 2_000_000_000 {
            now = Time::from_nanos(now.as_nanos() - phase + 5_000_000_000);
        }
    }
    for burst in 0..DURATION.as_nanos() / 200_000_000 {
        let at = Time::from_millis(200 * burst) + random.time_below(TimeDelta::from_millis(100));
        all.extend((0..20).map(|n| (at + TimeDelta::from_micros(120) * n, packet(2, 1500))));
    }
    all.extend((0..DURATION.as_nanos() / 20_000_000).map(|n| (Time::from_nanos(n * 20_000_000 + 7), packet(3, 200))));
    all.sort_by_key(|(at, _)| *at);
    (0..).zip(all).map(|(id, (at, packet))| (at, Descriptor { id, ..packet })).collect()
}

/// Drops, marks, and mean and 95th percentile of the delay, ms.
type Figures = [f64; 4];

fn ours(case: &Case, arrivals: &[(Time, Descriptor)], seed: u64) -> Figures {
    let discipline = DISCIPLINES.iter().find(|entry| entry.name == case.name).expect("it is registered");
    let values = Values::new(discipline.parameters, case.values);
    let streams = RandomStreams::new(seed);
    let limit = QueueLimit::Packets(case.limit);
    let queue = QueuePlan { discipline, limit, values };
    let hop = HopPlan { capacity: Some(Capacity::constant(RATE)), queue, ..HopPlan::new("compared", limit) };
    let mut link = Link::new(hop, &streams);
    let (mut dropped, mut marked, mut delays) = (0.0, 0.0, Vec::new());
    let mut drain = |link: &mut Link, now: Time| {
        while let Some(output) = link.poll_output(now) {
            match output {
                Output::Dropped { .. } => dropped += 1.0,
                Output::Delivered { packet, waited, .. } => {
                    marked += f64::from(u8::from(packet.ecn == Ecn::Ce));
                    delays.push(waited.as_millis_f64());
                }
            }
        }
    };
    for (at, packet) in arrivals {
        drain(&mut link, *at);
        link.handle_packet(*at, *packet);
    }
    drain(&mut link, Time::ZERO + DURATION + TimeDelta::from_secs(5));
    delays.sort_by(f64::total_cmp);
    [dropped, marked, delays.iter().sum::<f64>() / delays.len() as f64, delays[delays.len() * 95 / 100]]
}

fn theirs(program: &str, case: &Case, arrivals: &[(Time, Descriptor)], run: u64) -> Figures {
    let mut command = Command::new(program);
    command.args([case.ns3, &RATE.as_bps().to_string(), &run.to_string()]).args(case.attributes);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program of ns-3 starts");
    let mut input = child.stdin.take().expect("it is piped");
    let lines: Vec<String> = arrivals
        .iter()
        .map(|(at, packet)| {
            let capable = u8::from(packet.ecn.is_capable());
            format!("{} {} {} {capable}\n", at.as_nanos(), packet.flow.0, packet.size.as_bytes())
        })
        .collect();
    input.write_all(lines.concat().as_bytes()).expect("it reads");
    drop(input);
    let output = child.wait_with_output().expect("it ends");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let numbers: Vec<f64> = text.split_whitespace().map(|word| word.parse().expect("a number")).collect();
    [numbers[1], numbers[2], numbers[3], numbers[4]]
}

fn mean(runs: Vec<Figures>) -> Figures {
    let count = runs.len() as f64;
    std::array::from_fn(|index| runs.iter().map(|figures| figures[index]).sum::<f64>() / count)
}

fn main() {
    let program = std::env::args().nth(1).expect("usage: ns3_queues PROGRAM, which benches/ns3/queues.cc builds");
    let arrivals = arrivals();
    println!("{} packets in {DURATION} at {RATE}\n", arrivals.len());
    println!("| discipline | drops | ns-3 | marks | ns-3 | mean, ms | ns-3 | p95, ms | ns-3 | largest difference |");
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for case in CASES {
        let runs = 1..=if case.is_random { RUNS } else { 1 };
        let ours = mean(runs.clone().map(|seed| ours(case, &arrivals, seed)).collect());
        let theirs = mean(runs.map(|run| theirs(&program, case, &arrivals, run)).collect());
        let difference = ours.iter().zip(theirs).map(|(a, b)| if *a == b { 0.0 } else { (a / b - 1.0).abs() });
        let cells: Vec<String> = (0..4)
            .map(|index| {
                let digits = if index < 2 { 0 } else { 2 };
                format!("{:.digits$} | {:.digits$}", ours[index], theirs[index])
            })
            .collect();
        let largest = difference.fold(0.0, f64::max) * 100.0;
        println!("| {} | {} | {largest:.1} % |", case.title, cells.join(" | "));
    }
}
