// SPDX-License-Identifier: MIT OR Apache-2.0
//! Comparison with results of ns-3 3.37. `docs/explanation/tcp.md` explains the differences.

use crate::tcp::harness::{Bottleneck, Net, config};
use paceline_netsim::flow::tcp::Profile;
use paceline_units::{DataSize, Rate, Time, TimeDelta};

#[derive(Debug)]
struct Figures {
    /// Mbit/s.
    goodput: f64,
    drops: f64,
    /// Queueing times, ms.
    median: f64,
    p95: f64,
}

/// One bulk flow for 200 s: 2 Mbit/s, 100 ms each way, a drop-tail queue of 75000 bytes, PPP framing of 2 bytes.
fn run(congestion: &'static str, profile: Profile) -> Figures {
    let way = TimeDelta::from_millis(100);
    let link = Bottleneck::new(Rate::from_kbps(2_000), way, DataSize::from_bytes(75_000));
    link.borrow_mut().framing = DataSize::from_bytes(2);
    let end = Time::from_secs(200);
    let net = Net::run_bulk(config(congestion, profile), &link, way, end);
    assert_eq!(net.flows[0].wakes[0], 1, "no timeout");
    let link = link.borrow();
    let needless = net.flows[0].resent as i64 - link.drops as i64;
    assert!((-10..=10).contains(&needless), "only dropped packets are retransmitted: {needless}");
    Figures {
        goodput: Rate::from_size_and_time(net.read(0, Time::ZERO, end), end - Time::ZERO).as_bps_f64() / 1e6,
        drops: link.drops as f64,
        median: link.percentile(Time::ZERO, 50),
        p95: link.percentile(Time::ZERO, 95),
    }
}

#[test]
fn results_are_close_to_ns_3() {
    // ns-3 results of TcpCubic; TcpCubic with the HyStart threshold of Linux (16 ms instead of the round-trip time);
    // TcpNewReno, which grows per ACK instead of per byte and thus half as fast with fewer drops; TcpLinuxReno.
    let cases = [
        ("cubic", Profile::RFC, 1.9228, 278.0, 232.0, 292.0, 0.30),
        ("cubic", Profile::LINUX, 1.9196, 177.0, 232.0, 292.0, 0.30),
        ("new-reno", Profile::RFC, 1.9217, 48.0, 190.0, 286.0, 0.40),
        ("new-reno", Profile::LINUX, 1.9228, 97.0, 196.0, 286.0, 0.30),
    ];
    for (congestion, profile, goodput, drops, median, p95, tolerance) in cases {
        let ours = run(congestion, profile);
        for (name, ours, theirs, tolerance) in [
            ("goodput", ours.goodput, goodput, 0.01),
            ("drops", ours.drops, drops, tolerance),
            ("median", ours.median, median, 0.10),
            ("95 %", ours.p95, p95, 0.10),
        ] {
            assert!((ours / theirs - 1.0).abs() < tolerance, "{congestion} {}: {name} {ours}", profile.name);
        }
    }
}
