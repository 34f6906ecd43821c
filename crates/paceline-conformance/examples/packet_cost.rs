//! What a packet costs: sent, feedback on it, and its share of the ticks, in this library and in the crate `goog_cc`, with the
//! same inputs.
//!
//! `packet_cost WHICH REPEATS` runs one of `subject`, `oracle` and `none` in a loop, for a counter of instructions: the
//! difference to `none` is the controller. Without arguments it prints times.

use goog_cc::transport::StreamsConfig;
use paceline::googcc::{GoogCc, GoogCcConfig};
use paceline::{Feedback, PacketReport, ReceiverReport, RoundTrip, SendHalf, SentPacket, Setup, Signals};
use paceline_conformance::{Class, Input, MAX_BPS, MIN_BPS, Oracle, START_BPS, Script, Vintage, World, trials};
use paceline_units::{DataSize, Fraction, Rate, RemoteTime, Time, TimeDelta};
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
            let packet = SentPacket {
                probe: sent.probe.map(|probe| probe.id as u16),
                in_flight: Some(DataSize::from_bytes(sent.in_flight)),
                ..SentPacket::new(sent.number, DataSize::from_bytes(sent.size))
            };
            Native::Sent(at(sent.at), packet)
        }
        Input::Feedback { at: us, packets, in_flight } => {
            let report = |packet: &paceline_conformance::Packet| {
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
            Native::Report(at(*us), ReceiverReport { fraction_lost })
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
        match input {
            Native::Sent(now, packet) => half.handle_sent(*now, packet),
            Native::Feedback(now, packets, in_flight) => {
                half.handle_feedback(*now, &Feedback::new(packets, *in_flight, *in_flight), &mut signals);
                while half.poll_probe(*now).is_some() {}
            }
            Native::Timeout(now) => {
                half.handle_timeout(*now, &mut signals);
                while half.poll_probe(*now).is_some() {}
            }
            Native::Rtt(now, rtt) => half.handle_rtt(*now, rtt, &mut signals),
            Native::Report(now, report) => half.handle_report(*now, report, &mut signals),
        }
        sum += half.decision().target.as_bps();
    }
    sum
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
        let repeats: usize = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(1);
        for _ in 0..repeats {
            match which.as_str() {
                "subject" => black_box(subject(black_box(&natives))),
                "oracle" => black_box(oracle(black_box(&inputs))),
                _ => 0,
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
}
