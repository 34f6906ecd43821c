// SPDX-License-Identifier: MIT OR Apache-2.0
//! Send halves of this library and GCC of rtc-interceptor with the same script: `senders gcc-tfb [packets]` (any controller),
//! `senders theirs [packets]`, and `senders script [packets]` for the script alone.
//! `cargo xtask callgrind` counts the instructions.

use paceline::Registry;
use paceline_benches::{PACKET, Scripted, SendLoop};
use paceline_units::TimeDelta;
use rtc_interceptor::{BandwidthEstimator, Gcc, PacketReport};
use std::hint::black_box;
use std::process::ExitCode;
use std::time::{Duration, Instant};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let packets = arguments.get(1).map_or(Some(1_000_000), |text| text.parse().ok());
    let registry = Registry::standard();
    match (arguments.first().map(String::as_str), packets) {
        (Some("theirs"), Some(packets)) => theirs(packets),
        (Some("script"), Some(packets)) => {
            for number in 0..packets {
                black_box(Scripted::new(number));
            }
        }
        (Some(name), Some(packets)) if registry.get(name).is_some() => {
            let mut half = SendLoop::new(&registry, name);
            (0..packets).for_each(|_| half.step());
        }
        _ => {
            eprintln!("usage: senders CONTROLLER|theirs|script [packets]");
            return ExitCode::from(2);
        }
    }
    println!("{}", arguments.get(1).map_or("1000000", |text| text));
    ExitCode::SUCCESS
}

fn theirs(packets: u64) {
    let origin = Instant::now();
    let at = |ns: i64| origin + Duration::from_nanos(ns as u64);
    let mut gcc = Gcc::new(300e3, 100e3, 2500e3);
    let mut reports: Vec<PacketReport> = Vec::with_capacity(16);
    for number in 0..packets {
        let packet = Scripted::new(number);
        let departure = at(packet.sent.as_nanos());
        while gcc.poll_timeout().is_some_and(|due| due <= departure) {
            gcc.handle_timeout(departure);
        }
        black_box(gcc.target_bitrate());
        reports.push(PacketReport {
            ssrc: 1,
            id: number,
            rtp_sequence_number: number as u16,
            is_twcc: true,
            twcc_sequence_number: number as u16,
            size: PACKET.as_bytes() as usize,
            arrived: packet.arrival.is_some(),
            departure,
            arrival: packet.arrival.map(|arrival| Duration::from_nanos(arrival.as_nanos() as u64)),
            ecn: Default::default(),
        });
        if packet.feedback_due {
            gcc.on_reports(departure + Duration::from_nanos(TimeDelta::from_millis(25).as_nanos() as u64), &reports);
            black_box(gcc.target_bitrate());
            reports.clear();
        }
    }
}
