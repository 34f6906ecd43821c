// SPDX-License-Identifier: MIT OR Apache-2.0
//! Networks with loss, duplication and reordering: all data is delivered once and in order.

use crate::tcp::harness::{MS, Net, Path, delay};
use paceline_netsim::flow::tcp::{CONGESTION, Profile, TcpConfig, Workload};
use paceline_units::{DataSize, RandomStream, RandomStreams, Time, TimeDelta};
use proptest::prelude::*;

/// A path with random loss and duplication, and an independent delay of 20 ms plus up to `spread` for each packet.
fn bad_path(mut random: RandomStream, loss: f64, twice: f64, spread: TimeDelta) -> Path {
    Box::new(move |now, _| {
        let mut copy = |chance: f64| {
            let at = now + MS(20) + random.time_below(spread);
            random.chance(chance).then_some(at)
        };
        [copy(1.0 - loss), copy(twice)]
    })
}

fn profiles() -> impl Strategy<Value = Profile> {
    prop_oneof![Just(Profile::RFC), Just(Profile::LINUX)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// The test network compares the read data with the arrived data and checks the scoreboard after every segment.
    #[test]
    fn short_transfers_all_complete(
        seed: u64,
        algorithm in 0..CONGESTION.len(),
        profile in profiles(),
        loss in 0.0..0.08,
        twice in 0.0..0.1,
        spread in 0_i64..60,
        greatest in 1_u64..400_000,
        window in prop_oneof![Just(None), (2_000_u64..60_000).prop_map(Some)],
    ) {
        let streams = RandomStreams::new(seed);
        let path = |name: &str| bad_path(streams.stream(name), loss, twice, MS(spread));
        let mut net = Net::new();
        net.check_scoreboards = true;
        let size = (DataSize::from_bytes(1), DataSize::from_bytes(greatest));
        let config = TcpConfig {
            congestion: CONGESTION[algorithm].0,
            profile,
            receive_window: window.map(DataSize::from_bytes),
            ..TcpConfig::default()
        };
        net.add(config, Workload::Short { size, pause: MS(50), begins_off: false }, Time::ZERO, path("forward"), path("backward"));
        let mut end = Time::ZERO;
        // At these loss rates a transfer of 400 kB takes at most 40 s, or longer with several timeouts in a row.
        while net.flows[0].transfers.len() < 4 {
            end += TimeDelta::from_secs(10);
            prop_assert!(end <= Time::from_secs(1200), "stuck: {:?}", net.flows[0].sender);
            net.run_until(end);
        }
        let flow = &net.flows[0];
        let read: DataSize = flow.reads.iter().map(|(_, size)| *size).sum();
        let done: DataSize = flow.transfers.iter().map(|(_, size, _)| *size).sum();
        // What is read and not done belongs to the transfer that is under way. It may be read as a whole before the sender knows.
        prop_assert!(read >= done && (read - done).as_bytes() <= greatest, "read {}, done {}", read, done);
        let segments = done.as_bytes() / 1448;
        prop_assert!(flow.data >= segments);
        prop_assert!(flow.resent <= 4 * flow.data + 100, "{} resent, {} data", flow.resent, flow.data);
    }
}

/// 5 % random loss in both directions, with reordering and duplication, for a long time.
#[test]
fn bulk_flows_make_progress_under_loss() {
    for (congestion, ..) in CONGESTION {
        for profile in [Profile::RFC, Profile::LINUX] {
            let streams = RandomStreams::new(3);
            let path = |name: &str| bad_path(streams.stream(name), 0.05, 0.01, MS(5));
            let mut net = Net::new();
            net.check_scoreboards = true;
            // Neither loss nor the path limits BBR here, so the receive window of 20 segments does.
            let bbr = congestion.starts_with("bbr");
            let receive_window = bbr.then_some(DataSize::from_bytes(20 * 1448));
            let config = TcpConfig { congestion, profile, receive_window, ..TcpConfig::default() };
            net.add(config, Workload::Bulk, Time::ZERO, path("forward"), path("backward"));
            net.run_until(Time::from_secs(200));
            let packets = net.read(0, Time::ZERO, Time::from_secs(200)).as_bytes() / 1448;
            // The PFTK equation (RFC 5348, section 3.1, b = 2) gives 23 packets per second for 5 %, 45 ms and a timeout
            // of 1 s. SACK, independent losses and a shorter timeout allow more. 20 segments per 45 ms would be 88_000;
            // holes that wait for a retransmission, and lost retransmissions, reduce that.
            let expected = if bbr { 10_000..60_000 } else { 5_000..20_000 };
            assert!(expected.contains(&packets), "{congestion} {}: {packets}", profile.name);
        }
    }
}

/// A path from which nothing returns: only timers expire, with increasing intervals.
#[test]
fn timeouts_back_off_without_any_reply() {
    let mut net = Net::new();
    let forward: Path = Box::new(|now, _| [(now < Time::from_secs(2)).then_some(now + MS(20)), None]);
    let config = TcpConfig { receive_window: Some(DataSize::from_bytes(100_000)), ..TcpConfig::default() };
    net.add(config, Workload::Bulk, Time::ZERO, forward, delay(MS(20)));
    net.run_until(Time::from_secs(1000));
    let flow = &net.flows[0];
    assert!((8..20).contains(&flow.wakes[0]), "{}", flow.wakes[0]);
}
