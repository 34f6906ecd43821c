// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a packet costs: sent, feedback on it, and its share of the ticks, in this library and in the crate `goog_cc`, with the
//! same inputs.
//!
//! `packet_cost WHICH REPEATS` runs one of `subject`, `oracle`, `none` and the name of a controller (in a sender) in a loop, for a
//! counter of instructions: the difference to `none` is the controller. `packet_cost many` runs ten thousand instances, visited in shuffled order input by
//! input. Without arguments it prints times.

use goog_cc::transport::StreamsConfig;
use paceline::GoogCcConfig;
use paceline::internals::googcc::GoogCc;
use paceline::{
    Event, Feedback, Outgoing, PacketKind, PacketReport, ReceiverReport, Registry, RoundTrip, SendHalf, SentPacket,
    Setup, Signals,
};
use paceline_others::conformance::{Class, Input, MAX_BPS, MIN_BPS, Oracle, START_BPS, Script, Vintage, World, trials};
use paceline_units::{DataSize, Fraction, RandomStreams, Rate, RemoteTime, StreamId, Time, TimeDelta};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

/// An input in the types of this library.
enum Native {
    Sent(Time, SentPacket),
    Feedback(Time, Vec<PacketReport>, DataSize),
    Timeout(Time),
    Rtt(Time, RoundTrip),
    Report(Time, ReceiverReport),
}

/// The inputs of a closed loop over a link of 2 Mbit/s, and the number of its packets.
fn inputs() -> (Vec<Input>, usize) {
    let mut all = Vec::new();
    let mut oracle = Oracle::new(trials(Vintage::Y2026, true), StreamsConfig::default());
    let script = Script { class: Class::ClosedLoop, seed: 0 };
    World::steady(&script, 2000, 50).run(|input| {
        all.push(input.clone());
        oracle.handle(input).clone()
    });
    let packets = all.iter().filter(|input| matches!(input, Input::Sent(_))).count();
    (all, packets)
}

fn native(input: &Input) -> Option<Native> {
    let at = |us: i64| Time::from_nanos(us * 1000);
    Some(match input {
        Input::Sent(sent) => {
            let packet = SentPacket::new(sent.number, DataSize::from_bytes(sent.size))
                .with_probe(sent.probe.map(|probe| probe.id as u16))
                .with_in_flight(Some(DataSize::from_bytes(sent.in_flight)));
            Native::Sent(at(sent.at), packet)
        }
        Input::Feedback { at: us, packets, in_flight } => {
            let report = |packet: &paceline_others::conformance::Packet| {
                let arrival = packet.arrival.map(|us| RemoteTime::from_nanos(us * 1000));
                PacketReport::new(
                    packet.sent.number,
                    at(packet.sent.at),
                    DataSize::from_bytes(packet.sent.size),
                    arrival,
                )
            };
            Native::Feedback(at(*us), packets.iter().map(report).collect(), DataSize::from_bytes(*in_flight))
        }
        Input::Start(us) | Input::Tick(us) => Native::Timeout(at(*us)),
        Input::Rtt(us, ms) => Native::Rtt(at(*us), RoundTrip::after(None, TimeDelta::from_millis(*ms))),
        Input::Report(us, lost, all) => {
            let fraction_lost = Fraction::new(*lost as f64 / *all as f64).unwrap_or_default();
            Native::Report(at(*us), ReceiverReport::new(fraction_lost))
        }
        Input::Allocation(..) => return None,
    })
}

fn subject(inputs: &[Native]) -> u64 {
    let setup = Setup::new(Rate::from_bps(START_BPS), Rate::from_bps(MIN_BPS), Rate::from_bps(MAX_BPS));
    let mut half = GoogCc::new(&Arc::new(GoogCcConfig::default()), &setup);
    let mut signals = Signals::disabled();
    let mut sum = 0;
    for input in inputs {
        sum += step(&mut half, input, &mut signals);
    }
    sum
}

/// Passes an input to the controller and returns the target.
fn step(half: &mut GoogCc, input: &Native, signals: &mut Signals) -> u64 {
    match input {
        Native::Sent(now, packet) => half.handle_event(*now, &Event::Sent(packet), signals),
        Native::Feedback(now, packets, in_flight) => {
            half.handle_event(*now, &Event::Feedback(&Feedback::new(packets, *in_flight, *in_flight)), signals);
            while half.poll_probe(*now).is_some() {}
        }
        Native::Timeout(now) => {
            half.handle_event(*now, &Event::Timeout, signals);
            while half.poll_probe(*now).is_some() {}
        }
        Native::Rtt(now, rtt) => half.handle_event(*now, &Event::RoundTrip(rtt), signals),
        Native::Report(now, report) => half.handle_event(*now, &Event::Report(report), signals),
    }
    half.decision().target.as_bps()
}

/// The controllers whose cost within a [`Sender`] is printed.
const SENDERS: [&str; 5] = ["googcc", "scream-v2", "gcc-tfb", "drc", "nada-sender"];

/// Passes the inputs to a sender of a program that paces: history, join of reports, checks and controller. Returns the sum of targets.
fn sender(name: &str, inputs: &[Native]) -> u64 {
    let setup = Setup::new(Rate::from_bps(START_BPS), Rate::from_bps(MIN_BPS), Rate::from_bps(MAX_BPS));
    let controller = Registry::standard().build(name, &setup).expect("a valid setup");
    let (mut sender, _) = controller.endpoints::<()>(&setup);
    sender.set_paces(false);
    let mut sum = 0;
    // The script's numbers of packets in flight begin here.
    let mut first = None;
    for input in inputs {
        match input {
            Native::Sent(now, packet) => {
                first.get_or_insert(packet.sequence);
                sender.handle_sent(*now, &Outgoing::new(packet.size, StreamId(0), PacketKind::Media));
            }
            Native::Feedback(now, packets, _) => {
                let number = |packet: &PacketReport| packet.sequence - first.unwrap_or(0);
                sender.handle_reports(*now, packets.iter().map(|packet| (number(packet), packet.arrival, None)));
            }
            Native::Timeout(now) => {
                sender.handle_timeout(*now);
            }
            Native::Rtt(now, rtt) => sender.handle_rtt(*now, rtt.last),
            Native::Report(now, report) => sender.handle_loss(*now, report.fraction_lost),
        }
        while sender.poll_event().is_some() {}
        while sender.poll_probe().is_some() {}
        sum += sender.target().as_bps();
    }
    sum
}

/// Runs instances side by side. Prints the share of a core and the memory of the process.
fn many(inputs: &[Native]) {
    const INSTANCES: usize = 10_000;
    /// Inputs of the start, which are not timed, and of all.
    const INPUTS: (usize, usize) = (1300, 2600);
    let setup = Setup::new(Rate::from_bps(START_BPS), Rate::from_bps(MIN_BPS), Rate::from_bps(MAX_BPS));
    let config = Arc::new(GoogCcConfig::default());
    let before = resident_mb();
    let mut halves: Vec<GoogCc> = (0..INSTANCES).map(|_| GoogCc::new(&config, &setup)).collect();
    let mut order: Vec<usize> = (0..INSTANCES).collect();
    let random = &mut RandomStreams::new(1).stream("order");
    for index in (1..INSTANCES).rev() {
        order.swap(index, (random.bits() % (index as u64 + 1)) as usize);
    }
    let (mut signals, mut start) = (Signals::disabled(), 0.0);
    for (number, input) in inputs[..INPUTS.1].iter().enumerate() {
        if number == INPUTS.0 {
            start = cpu_seconds();
        }
        for index in &order {
            step(&mut halves[*index], input, &mut signals);
        }
    }
    let seconds = cpu_seconds() - start;
    let at = |input: &Native| match input {
        Native::Sent(now, _) | Native::Timeout(now) | Native::Rtt(now, _) => now.as_secs_f64(),
        Native::Feedback(now, ..) | Native::Report(now, _) => now.as_secs_f64(),
    };
    let simulated = at(&inputs[INPUTS.1]) - at(&inputs[INPUTS.0]);
    println!("{INSTANCES} instances: {:.2} of a core, {:.0} MB", seconds / simulated, resident_mb() - before);
}

/// Returns the CPU time of this process (Linux; zero elsewhere): the machine may have other load.
fn cpu_seconds() -> f64 {
    let schedstat = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    schedstat.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or(0.0) / 1e9
}

/// Returns the resident memory of this process (Linux; zero elsewhere).
fn resident_mb() -> f64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: f64 = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0.0);
    pages * 4096.0 / 1e6
}

fn oracle(inputs: &[Input]) -> u64 {
    let mut oracle = Oracle::new(trials(Vintage::Y2026, true), StreamsConfig::default());
    inputs.iter().map(|input| oracle.handle(input).target).sum()
}

fn main() {
    let (inputs, packets) = inputs();
    let natives: Vec<Native> = inputs.iter().filter_map(native).collect();
    let mut arguments = std::env::args().skip(1);
    if let Some(which) = arguments.next() {
        if which == "many" {
            return many(&natives);
        }
        let repeats: usize = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(1);
        for _ in 0..repeats {
            match which.as_str() {
                "subject" => black_box(subject(black_box(&natives))),
                "oracle" => black_box(oracle(black_box(&inputs))),
                "none" => 0,
                name => black_box(sender(name, black_box(&natives))),
            };
        }
        println!("{}", packets * repeats);
        return;
    }
    let measure = |run: &dyn Fn() -> u64| {
        let mut best = f64::MAX;
        for _ in 0..20 {
            #[allow(clippy::disallowed_methods, reason = "this program measures time")]
            let start = Instant::now();
            black_box(run());
            best = best.min(start.elapsed().as_secs_f64());
        }
        best * 1e9 / packets as f64
    };
    println!("{packets} packets, {} inputs", inputs.len());
    println!("paceline {:.0} ns per packet", measure(&|| subject(black_box(&natives))));
    println!(
        "goog_cc  {:.0} ns per packet, the conversion of feedback included",
        measure(&|| oracle(black_box(&inputs)))
    );
    for name in SENDERS {
        println!("{name} in a sender {:.0} ns per packet", measure(&|| sender(name, black_box(&natives))));
    }
}
