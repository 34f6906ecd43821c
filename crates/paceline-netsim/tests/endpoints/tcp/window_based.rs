// SPDX-License-Identifier: MIT OR Apache-2.0
//! NewReno and CUBIC over a bottleneck: windows, shares and queues.

use crate::tcp::harness::{Bottleneck, MS, Net, S, config};
use paceline_netsim::flow::tcp::{Profile, TcpConfig};
use paceline_units::{DataSize, Rate, Time};

/// W(t) of RFC 8312, equations 1 and 2, for a window that was reduced from `w_max` to `start` at time zero; in
/// segments.
fn cubic(t: f64, w_max: f64, start: f64) -> f64 {
    let since = t - libm::cbrt((w_max - start) / 0.4);
    0.4 * since * since * since + w_max
}

#[test]
fn the_window_of_cubic_follows_the_cubic_function() {
    for profile in [Profile::RFC, Profile::LINUX] {
        // A path with no epoch in the TCP-friendly region: 50 Mbit/s, 200 ms, and a queue of a third of that.
        let link = Bottleneck::new(Rate::from_kbps(50_000), MS(100), DataSize::from_bytes(400_000));
        let net = Net::run_bulk(config("cubic", profile), &link, MS(100), S(200));
        let mss = 1448.0;
        let (mut start, mut w_max, mut last_max, mut state) = (None, 0.0, 0.0, 0);
        let (mut before, mut changed) = (0.0, Time::ZERO);
        let (mut cwnd, mut compared, mut epochs, mut worst) = (0.0_f64, 0, 0, 0.0_f64);
        for &(now, signal, value) in &net.flows[0].signals {
            match signal {
                0 => {
                    let was = cwnd;
                    if now > changed {
                        (before, changed) = (cwnd, now);
                    }
                    cwnd = value / mss;
                    if state != 0 || w_max == 0.0 {
                        continue;
                    }
                    let (began, from) = *start.get_or_insert((now, was));
                    let expected = cubic((now - began).as_secs_f64(), w_max, from);
                    worst = worst.max((cwnd / expected - 1.0).abs());
                    compared += 1;
                }
                3 => {
                    if value as u8 == 2 {
                        // The window before this time, with fast convergence (section 4.6).
                        w_max = if before < last_max { before * 0.85 } else { before };
                        last_max = before;
                        start = None;
                        epochs += 1;
                    }
                    assert!(value < 3.0, "no timeout");
                    state = value as u8;
                }
                _ => {}
            }
        }
        assert!((5..60).contains(&epochs), "{epochs} epochs");
        assert!(compared > 10_000);
        assert!((1e-9..0.02).contains(&worst), "{} is off by {worst}", profile.name);
    }
}

/// Jain's fairness index of two amounts.
fn jain(a: DataSize, b: DataSize) -> f64 {
    let (a, b) = (a.as_bytes() as f64, b.as_bytes() as f64);
    (a + b) * (a + b) / (2.0 * (a * a + b * b))
}

/// How equally two flows share depends on when the second one starts, so the index is the mean of three starts.
#[test]
fn equal_flows_share_equally_and_fill_the_link() {
    const STARTS: [i64; 3] = [10_300, 11_000, 11_700];
    for congestion in ["new-reno", "cubic"] {
        for profile in [Profile::RFC, Profile::LINUX] {
            let rate = Rate::from_kbps(10_000);
            let fairness = STARTS.map(|start| {
                let link = Bottleneck::new(rate, MS(25), rate * MS(60));
                let mut net = Net::new();
                for start in [Time::ZERO, Time::from_millis(start)] {
                    net.add_bulk(config(congestion, profile), start, &link, MS(25));
                }
                net.run_until(S(320));
                let [a, b] = [0, 1].map(|flow| net.read(flow, S(20), S(320)));
                let goodput = Rate::from_size_and_time(a + b, MS(300_000)).as_bps_f64() / rate.as_bps_f64();
                // The share of data is 1448 / 1500 = 0.9653; a gap that is filled at the beginning adds up to a window.
                assert!((0.94..0.966).contains(&goodput), "{congestion} {}: {goodput}", profile.name);
                jain(a, b)
            });
            let mean = fairness.iter().sum::<f64>() / 3.0;
            assert!((0.97..=1.0).contains(&mean), "{congestion} {}: {fairness:?}", profile.name);
        }
    }
}

#[test]
fn cubic_and_new_reno_share_a_short_path() {
    // 10 Mbit/s and 40 ms: CUBIC is in the TCP-friendly region (RFC 8312, section 4.2).
    let rate = Rate::from_kbps(10_000);
    let link = Bottleneck::new(rate, MS(20), rate * MS(40));
    let mut net = Net::new();
    for congestion in ["cubic", "new-reno"] {
        let config = config(congestion, Profile::RFC);
        net.add_bulk(config, Time::ZERO, &link, MS(20));
    }
    net.run_until(S(320));
    let [a, b] = [0, 1].map(|flow| net.read(flow, S(20), S(320)).as_bytes() as f64);
    assert!((0.8..2.0).contains(&(a / b)), "{}", a / b);
}

#[test]
fn hystart_ends_slow_start_before_the_queue_overflows() {
    let run = |profile: Profile| {
        let rate = Rate::from_kbps(20_000);
        let link = Bottleneck::new(rate, MS(50), rate * MS(100));
        let net = Net::run_bulk(config("cubic", profile), &link, MS(50), S(10));
        let drops = link.borrow().drops;
        (drops, net.read(0, Time::ZERO, S(10)).as_bytes())
    };
    let (rfc, linux) = (run(Profile::RFC), run(Profile::LINUX));
    let without = run(Profile { hystart: false, ..Profile::LINUX });
    assert!((100..500).contains(&rfc.0), "{}", rfc.0);
    // The growth per ACK is twice as large, so far more packets are dropped.
    assert!((400..900).contains(&without.0), "{}", without.0);
    assert!((1..40).contains(&linux.0), "{}", linux.0);
    assert!((15_000_000..25_000_000).contains(&linux.1), "{}", linux.1);
}

#[test]
fn the_receive_window_limits_the_flight_and_the_congestion_window() {
    let link = Bottleneck::new(Rate::from_kbps(50_000), MS(50), DataSize::from_bytes(1_000_000));
    let window = DataSize::from_bytes(131_072);
    let config = TcpConfig { receive_window: Some(window), ..config("cubic", Profile::RFC) };
    let net = Net::run_bulk(config, &link, MS(50), S(10));
    let flight = net.flows[0].sender.flight();
    assert!((window.saturating_sub(DataSize::from_bytes(1448 * 3))..=window).contains(&flight), "{flight}");
    let rate = net.read(0, S(5), S(10)).as_bytes() as f64 / 5.0;
    assert!((0.9..1.0).contains(&(rate / (131_072.0 / 0.1))), "one window per round trip: {rate}");
    let cwnd = net.flows[0].sender.window().cwnd.as_bytes();
    assert!((131_072..300_000).contains(&cwnd), "{cwnd}");
}

#[test]
fn timers_do_not_expire_needlessly() {
    let rate = Rate::from_kbps(10_000);
    let link = Bottleneck::new(rate, MS(25), rate * MS(60));
    let net = Net::run_bulk(config("cubic", Profile::LINUX), &link, MS(25), S(60));
    let flow = &net.flows[0];
    assert_eq!(flow.wakes[0], 1, "only the start, no timeout");
    assert!(flow.wakes[1] < 20, "delayed ACKs: {}", flow.wakes[1]);
    let ratio = flow.data as f64 / flow.acks as f64;
    assert!((1.8..=2.0).contains(&ratio), "data per ACK: {ratio}");
}

/// A path without a capacity is limited by the receive window: 3 MiB in each round trip of 100 ms are 252 Mbit/s.
#[test]
fn a_path_without_capacity_is_limited_by_the_default_receive_window() {
    use paceline_netsim::flow::tcp::RECEIVE_WINDOW_DEFAULT;
    assert_eq!(TcpConfig::default().window(), RECEIVE_WINDOW_DEFAULT);
    assert_eq!(RECEIVE_WINDOW_DEFAULT.as_bytes(), 3 * 1024 * 1024);
    let window = DataSize::from_bytes(10_000);
    assert_eq!(TcpConfig { receive_window: Some(window), ..TcpConfig::default() }.window(), window);
}
