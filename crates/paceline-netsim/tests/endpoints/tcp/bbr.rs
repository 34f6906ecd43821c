// SPDX-License-Identifier: MIT OR Apache-2.0
//! BBR over a bottleneck: its throughput and queues, and its known properties.

use crate::tcp::harness::{Bottleneck, Flow, Link, MS, Net, Path, S, config, delay};
use paceline_netsim::flow::tcp::{Profile, Workload};
use paceline_units::{DataSize, RandomStreams, Rate, Time, TimeDelta};

const MSS: f64 = 1448.0;
/// Share of data in a packet of 1500 bytes.
const DATA: f64 = MSS / 1500.0;

/// Data rate of a flow as a share of the link rate.
fn goodput(net: &Net, flow: usize, rate: Rate, from: Time, to: Time) -> f64 {
    Rate::from_size_and_time(net.read(flow, from, to), to - from).as_bps_f64() / rate.as_bps_f64()
}

/// Windows, in segments, with their times.
fn windows(flow: &Flow) -> impl Iterator<Item = (Time, f64)> {
    flow.signals.iter().filter(|(_, signal, _)| *signal == 0).map(|(at, _, bytes)| (*at, bytes / MSS))
}

/// The periods in which the window was four segments: start and duration.
fn dips(flow: &Flow) -> Vec<(Time, TimeDelta)> {
    let (mut dips, mut began) = (Vec::new(), None);
    for (at, window) in windows(flow) {
        if window <= 4.0 {
            began = began.or(Some(at));
        } else if let Some(began) = began.take() {
            dips.push((began, at - began));
        }
    }
    dips
}

#[test]
fn bbr_keeps_the_queue_short_and_cubic_fills_it() {
    let rate = Rate::from_kbps(10_000);
    for profile in [Profile::RFC, Profile::LINUX] {
        let run = |congestion| {
            let link = Bottleneck::new(rate, MS(20), rate * MS(500));
            let net = Net::run_bulk(config(congestion, profile), &link, MS(20), S(35));
            let waits = [50, 95].map(|percent| link.borrow().percentile(S(5), percent));
            (goodput(&net, 0, rate, S(5), S(35)) / DATA, waits)
        };
        let (used, [median, p95]) = run("bbr");
        // PROBE_RTT and the time after it cost 2 %.
        assert!((0.96..0.995).contains(&used), "{}: {used}", profile.name);
        // BBR probes for an eighth of the time with a quarter more in flight; delayed ACKs add one or two segments.
        assert!((2.0..10.0).contains(&median), "{}: {median}", profile.name);
        assert!((5.0..20.0).contains(&p95), "{}: {p95}", profile.name);
        let (used, [median, p95]) = run("cubic");
        assert!((0.97..1.02).contains(&used), "{}: {used}", profile.name);
        assert!((200.0..500.0).contains(&median) && (400.0..=500.0).contains(&p95), "{}: {median} {p95}", profile.name);
    }
}

#[test]
fn startup_doubles_the_rate_each_round_trip_until_the_pipe_is_full() {
    let rate = Rate::from_kbps(100_000);
    let link = Bottleneck::new(rate, MS(50), rate * MS(500));
    let mut net = Net::new();
    net.keep_segments = true;
    net.add_bulk(config("bbr", Profile::LINUX), Time::ZERO, &link, MS(50));
    net.run_until(S(4));
    let sent = |from, to| net.flows[0].sent.iter().filter(|(at, ..)| (from..to).contains(at)).count() as f64;
    let rounds: Vec<f64> = (1..9).map(|n| sent(Time::ZERO + MS(100 * n), Time::ZERO + MS(100 * (n + 1)))).collect();
    // The initial window is sent at once and limits the second round trip. Bursts may fall on either side of a
    // boundary.
    for pair in rounds[2..].windows(2) {
        assert!((1.6..2.3).contains(&(pair[1] / pair[0])), "{rounds:?}");
    }
    // The link carries 833 segments per round trip. STARTUP reaches up to 2.885 times that, then DRAIN follows.
    let most = windows(&net.flows[0]).map(|(_, window)| window).fold(0.0, f64::max);
    assert!((2.0 * 833.0..3.2 * 833.0).contains(&most), "{most}");
    let full = link.borrow().percentile(Time::ZERO, 100);
    assert!((50.0..250.0).contains(&full), "{full}");
    let later = link.borrow().percentile(S(2), 95);
    assert!((0.1..40.0).contains(&later), "{later}");
}

#[test]
fn probe_rtt_starts_every_ten_seconds() {
    let rate = Rate::from_kbps(10_000);
    let link = Bottleneck::new(rate, MS(20), rate * MS(500));
    let net = Net::run_bulk(config("bbr", Profile::LINUX), &link, MS(20), S(45));
    let dips = dips(&net.flows[0]);
    assert_eq!(dips.len(), 4, "{dips:?}");
    for (n, (at, stay)) in dips.iter().enumerate() {
        // 200 ms from when few bytes are in flight.
        assert!((MS(200)..MS(320)).contains(stay), "{dips:?}");
        let since = if n == 0 { *at - Time::ZERO } else { *at - dips[n - 1].0 };
        assert!((MS(10_000)..MS(10_600)).contains(&since), "{dips:?}");
    }
}

/// 200 ms with four segments are 20 round trips here, and a bandwidth maximum lasts ten.
#[test]
fn probe_rtt_does_not_lower_the_bandwidth_estimate() {
    let rate = Rate::from_kbps(50_000);
    let link = Bottleneck::new(rate, MS(5), rate * MS(200));
    let net = Net::run_bulk(config("bbr", Profile::LINUX), &link, MS(5), S(25));
    let dips = dips(&net.flows[0]);
    assert_eq!(dips.len(), 2, "{dips:?}");
    for (at, stay) in dips {
        let during = goodput(&net, 0, rate, at + MS(50), at + MS(200)) / DATA;
        assert!((0.05..0.15).contains(&during), "{during}");
        let end = at + stay + MS(20);
        let after = goodput(&net, 0, rate, end, end + MS(100)) / DATA;
        assert!((0.9..1.05).contains(&after), "{after}");
    }
}

#[test]
fn two_flows_share_and_keep_a_queue_of_a_round_trip_or_two() {
    let rate = Rate::from_kbps(10_000);
    for profile in [Profile::RFC, Profile::LINUX] {
        let link = Bottleneck::new(rate, MS(20), rate * MS(500));
        let mut net = Net::new();
        for start in [Time::ZERO, Time::from_millis(5_300)] {
            net.add_bulk(config("bbr", profile), start, &link, MS(20));
        }
        net.run_until(S(80));
        let [a, b] = [0, 1].map(|flow| goodput(&net, flow, rate, S(20), S(80)) / DATA);
        let jain = (a + b) * (a + b) / (2.0 * (a * a + b * b));
        assert!((0.95..=1.0).contains(&jain), "{}: {a} and {b}", profile.name);
        assert!((0.95..1.0).contains(&(a + b)), "{}: {a} and {b}", profile.name);
        // Each flow overestimates its bandwidth, so that only the windows of twice the bandwidth-delay product limit
        // the sum: the queue is 1 to 1.5 bandwidth-delay products (Hock, Bless and Zitterbart, 2017).
        let median = link.borrow().percentile(S(20), 50);
        assert!((40.0..80.0).contains(&median), "{}: {median}", profile.name);
    }
}

fn lossy(link: &Link, loss: f64) -> Path {
    let (mut path, mut random) = (Bottleneck::path(link), RandomStreams::new(5).stream("loss"));
    Box::new(move |now, segment| {
        let arrival = path(now, segment);
        if random.chance(loss) { [None, None] } else { arrival }
    })
}

#[test]
fn random_loss_hardly_reduces_the_rate() {
    let rate = Rate::from_kbps(10_000);
    for profile in [Profile::RFC, Profile::LINUX] {
        let run = |congestion| {
            let link = Bottleneck::new(rate, MS(20), rate * MS(200));
            let mut net = Net::new();
            net.check_scoreboards = true;
            net.add(config(congestion, profile), Workload::Bulk, Time::ZERO, lossy(&link, 0.01), delay(MS(20)));
            net.run_until(S(35));
            goodput(&net, 0, rate, S(5), S(35)) / DATA
        };
        let bbr = run("bbr");
        assert!((0.85..0.99).contains(&bbr), "{}: {bbr}", profile.name);
        let cubic = run("cubic");
        assert!((0.2..0.5).contains(&cubic), "{}: {cubic}", profile.name);
    }
}

#[test]
fn bbr_draws_no_random_numbers_of_the_workload() {
    let transfers = |congestion| {
        let mut net = Net::new();
        let workload = Workload::Short {
            size: (DataSize::from_bytes(1_000), DataSize::from_bytes(90_000)),
            pause: MS(300),
            begins_off: false,
        };
        net.add(config(congestion, Profile::LINUX), workload, Time::ZERO, delay(MS(20)), delay(MS(20)));
        net.run_until(S(30));
        net.flows[0].transfers.iter().map(|(_, size, _)| *size).collect::<Vec<_>>()
    };
    let (bbr, cubic) = (transfers("bbr"), transfers("cubic"));
    assert!((20..100).contains(&bbr.len().min(cubic.len())));
    assert!(bbr.iter().zip(&cubic).all(|(a, b)| a == b));
}

/// Version 1 ignores losses, so that it leaves CUBIC little on a path with a short queue, and two of its flows lose a tenth there.
/// Version 3 bounds the bytes in flight by the losses of its probes.
#[test]
fn version_3_shares_short_queues() {
    let rate = Rate::from_kbps(10_000);
    for profile in [Profile::RFC, Profile::LINUX] {
        let run = |queue, flows: &[&'static str]| {
            let link = Bottleneck::new(rate, MS(20), rate * MS(queue));
            let mut net = Net::new();
            for (n, congestion) in flows.iter().enumerate() {
                net.add_bulk(config(congestion, profile), S(0) + MS(3000 * n as i64), &link, MS(20));
            }
            net.run_until(S(90));
            let used = goodput(&net, 0, rate, S(20), S(90)) / DATA;
            let lost = net.flows[0].resent as f64 / net.flows[0].data as f64;
            (used, lost, [50, 95].map(|percent| link.borrow().percentile(S(20), percent)))
        };
        for queue in [20, 60, 500] {
            let (used, lost, [median, p95]) = run(queue, &["bbr3"]);
            // PROBE_RTT halves the window for 200 ms of 5 s, and the pacing rate is 1 % below the bandwidth.
            assert!((0.95..0.98).contains(&used) && lost < 0.01, "{} {queue}: {used} {lost}", profile.name);
            assert!((0.5..5.0).contains(&median) && (10.0..40.0).contains(&p95), "{median} {p95}");
        }
        for queue in [20, 60] {
            let (one, three) = (run(queue, &["bbr", "cubic"]).0, run(queue, &["bbr3", "cubic"]).0);
            assert!(one > 0.75 && (0.4..0.6).contains(&three), "{} {queue}: {one} {three}", profile.name);
        }
        let (one, three) = (run(20, &["bbr", "bbr"]).1, run(20, &["bbr3", "bbr3"]).1);
        assert!(one > 0.08 && (0.005..0.03).contains(&three), "{}: {one} {three}", profile.name);
        // In a deep queue nothing is lost but by CUBIC, which fills it.
        let deep = run(500, &["bbr3", "cubic"]).0;
        assert!((0.3..0.5).contains(&deep), "{}: {deep}", profile.name);
    }
}
