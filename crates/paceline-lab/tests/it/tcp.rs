// SPDX-License-Identifier: MIT OR Apache-2.0
//! TCP flows in the simulator: two-sided checks against arithmetic.

use crate::fixtures::{metric, observe, run, scenario, within};
use paceline_lab::run::RunResult;
use paceline_netsim::records::{EventRecord, PacketClass};
use paceline_units::{Time, TimeDelta};
use std::collections::{BTreeMap, BTreeSet};

/// One bulk flow over 2 Mbit/s, 100 ms each way.
const ONE: &str = r#"
id = "test/tcp"
title = "One TCP flow"
duration = "100s"
[path]
rtt = "200ms"
[path.forward]
capacity = "2Mbps"
queue = { limit = "300ms" }
[[flow]]
id = "tcp"
kind = "tcp"
"#;

/// A media flow at a constant rate, with a source and a clock that draw.
const MEDIA: &str = "[[flow]]\nid = \"video\"\ncontroller = \"fixed\"\nconfig = { rate_bps = 400000 }\n";

/// A packet of 1448 bytes of data, on the network; an ACK with timestamps.
const FULL: f64 = 1500.0;
const DATA: f64 = 1448.0;
const ACK: f64 = 52.0;

fn of_run(result: &RunResult, id: &str) -> f64 {
    metric(&result.whole, id, None).expect("a value")
}

#[test]
fn every_byte_arrives_or_is_dropped_or_is_in_flight() {
    let text = ONE.to_owned() + "count = 3\n" + MEDIA;
    let lossy = ["path.forward.loss=1 %", "path.reverse.loss=2 %", "duration=60s"];
    let scenario = scenario(&text, &lossy);
    let mut in_flight = BTreeMap::new();
    let (mut read, mut arrived, mut last) = (BTreeMap::<u16, u64>::new(), BTreeMap::<u16, u64>::new(), 0);
    // Of each hop: what came, crossed, was dropped.
    let mut hops = vec![[0u64; 3]; scenario.plan.hops.len()];
    let hop_of = |class: PacketClass| usize::from(class.is_from_receiver());
    let result = observe(&scenario, 1, |event| match *event {
        EventRecord::Sent { at, packet } => {
            hops[hop_of(packet.class)][0] += packet.size.as_bytes();
            assert!(in_flight.insert(packet.packet, (packet, at)).is_none(), "sent once");
            last = at.as_nanos();
        }
        EventRecord::Crossed { hop, packet, .. } => hops[usize::from(hop)][1] += packet.size.as_bytes(),
        EventRecord::Arrived { packet, .. } => {
            assert_eq!(in_flight.remove(&packet.packet).expect("it was sent, and arrives once").0, packet);
            if matches!(packet.class, PacketClass::TcpData | PacketClass::TcpRetransmission) {
                *arrived.entry(packet.flow.0).or_default() += packet.size.as_bytes();
            }
        }
        EventRecord::Dropped { hop, packet, .. } => {
            hops[usize::from(hop)][2] += packet.size.as_bytes();
            in_flight.remove(&packet.packet).expect("it was sent, and is dropped once");
        }
        EventRecord::Read { flow, size, .. } => *read.entry(flow.0).or_default() += size.as_bytes(),
        _ => {}
    });
    assert!(last > 59_000_000_000, "the run goes on to its end");
    for (index, [came, crossed, dropped]) in hops.into_iter().enumerate() {
        let left = in_flight.values().filter(|(p, _)| hop_of(p.class) == index).map(|(p, _)| p.size.as_bytes());
        assert_eq!(came, crossed + dropped + left.sum::<u64>(), "hop {index}");
        assert!(dropped > 0, "hop {index} drops");
    }
    let oldest = in_flight.values().map(|(_, at)| at.as_nanos()).min().expect("some are in flight");
    within("age of the oldest, s", 60.0 - oldest as f64 / 1e9, 0.0, 0.45);
    assert_eq!((read.len(), arrived.len()), (3, 3));
    for (flow, read) in &read {
        let ratio = *read as f64 / arrived[flow] as f64;
        within("data read over what arrived, headers and repeats included", ratio, 0.90, DATA / FULL);
        let theirs = &result.whole.flows[usize::from(*flow)];
        assert_eq!((theirs.useful_bytes, theirs.received_bytes), (*read, arrived[flow]));
    }
}

#[test]
fn a_bulk_flow_fills_the_link_except_for_headers() {
    for congestion in ["cubic", "new-reno"] {
        for profile in ["rfc", "linux"] {
            let which = format!("{congestion} {profile}");
            let set = [format!("flow.tcp.congestion={congestion}"), format!("flow.tcp.profile={profile}")];
            let result = run(ONE, &[&set[0], &set[1]]);
            within(&which, of_run(&result, "utilization"), 0.98, 1.0001);
            within(&which, of_run(&result, "goodput_bps") / 2e6, 0.94, DATA / FULL);
            within(&which, of_run(&result, "bottleneck_drops"), 10.0, 400.0);
            let link = &result.whole.link;
            within(&which, link.queue_ms.unwrap().max, 290.0, 300.0 + FULL * 8.0 / 2e3);
        }
    }
}

#[test]
fn acks_load_the_reverse_path() {
    // A window of 100 KB, less than path and queue hold, loses nothing. 2 Mbit/s are 166.7 packets a second and half as
    // many ACKs of 52 bytes: 34.7 kbit/s. `linux` acknowledges each of the first segments.
    let slow = ["path.reverse.capacity=100kbps", "path.reverse.queue.limit=300ms", "flow.tcp.receive_window=100 KB"];
    let slow = run(ONE, &[&slow[..], &["flow.tcp.profile=rfc"]].concat());
    let acks = 2e6 / (FULL * 8.0) / 2.0 * ACK * 8.0;
    within(
        "utilisation of the reverse path",
        slow.whole.links[1].utilization.unwrap(),
        0.97 * acks / 100e3,
        1.02 * acks / 100e3,
    );
    within("utilisation of the forward path", slow.whole.link.utilization.unwrap(), 0.97, 1.0001);
    assert_eq!(of_run(&slow, "bottleneck_drops"), 0.0);
    // A reverse path that carries half of the ACKs: those that arrive acknowledge more, but they are late.
    let congested = run(ONE, &["path.reverse.capacity=8kbps", "path.reverse.queue.limit=2s"]);
    within("utilisation of the congested reverse path", congested.whole.links[1].utilization.unwrap(), 0.85, 1.0001);
    within("utilisation of the forward path behind it", congested.whole.link.utilization.unwrap(), 0.2, 0.93);
}

#[test]
fn an_on_off_flow_sends_only_when_on() {
    let set = ["flow.tcp.workload={ kind = \"on-off\", on = \"5 s\", off = \"10 s\" }", "duration=60s"];
    let mut seconds = [0u64; 60];
    let mut opened = 0;
    let result = observe(&scenario(ONE, &set), 1, |event| {
        if let EventRecord::Sent { at, packet } = *event
            && packet.class == PacketClass::TcpData
        {
            // A SYN, or the ACK that ends a handshake: no data in it.
            opened += u64::from(packet.size.as_bytes() < 80);
            seconds[(at.as_nanos() / 1_000_000_000) as usize] += packet.size.as_bytes();
        }
    });
    for (second, bytes) in seconds.iter().enumerate() {
        let on = second % 15 < 5;
        // The first second of a period is handshake and slow start.
        let (low, high) = if on && second % 15 > 0 {
            (40_000, 1_000_000)
        } else if on {
            (1_000, 300_000)
        } else {
            (0, 0)
        };
        within(&format!("bytes sent in second {second}"), *bytes as f64, f64::from(low), f64::from(high));
    }
    assert!((4..=8).contains(&opened), "four periods, a connection each: {opened}");
    within("used", of_run(&result, "utilization"), 0.2, 5.5 / 15.0);
}

#[test]
fn short_transfers_carry_their_bytes_and_pause() {
    let set = ["flow.tcp.workload={ kind = \"short\", size = [\"50 KB\", \"50 KB\"], pause = \"1 s\" }"];
    let mut opened = 0u64;
    let result = observe(&scenario(ONE, &set), 1, |event| {
        if let EventRecord::Sent { packet, .. } = *event {
            opened += u64::from(packet.class == PacketClass::TcpData && packet.size.as_bytes() < 80);
        }
    });
    // 50 KB in windows of 10, 20 and 40 segments take four round trips of 200 ms and 200 ms at 2 Mbit/s, then 1 s.
    let transfers = of_run(&result, "goodput_bps") * 100.0 / 8.0 / 50e3;
    within("transfers", transfers, 35.0, 70.0);
    assert!(opened as f64 >= transfers && opened as f64 <= 2.0 * transfers + 2.0, "{opened} of {transfers}");
    assert_eq!(of_run(&result, "bottleneck_drops"), 0.0);
}

#[test]
fn flows_of_one_table_have_their_own_names_and_starts() {
    let text = ONE.to_owned() + "count = 20\nstart = \"5 s\"\nstart_spread = \"10 s\"\n";
    let starts = |seed: u64| {
        let mut first = BTreeMap::new();
        observe(&scenario(&text, &["duration=20s"]), seed, |event| {
            if let EventRecord::Sent { at, packet } = *event {
                first.entry(packet.flow.0).or_insert(at.as_nanos());
            }
        });
        first.into_values().collect::<Vec<i64>>()
    };
    let (one, two) = (starts(1), starts(2));
    assert_eq!((one.len(), two.len(), starts(1) == one), (20, 20, true));
    for (n, (a, b)) in one.iter().zip(&two).enumerate() {
        assert!((5_000_000_000..15_000_000_000).contains(a), "flow {n} starts at {a}");
        assert!(a != b && !one[..n].contains(a), "flow {n}");
    }
    // Uniform over 5 to 15 s: the mean of 20 has a deviation of 0.65 s.
    within("mean start", one.iter().sum::<i64>() as f64 / 20e9, 7.5, 12.5);
    let scenario = scenario(&text, &["duration=20s"]);
    assert_eq!((scenario.plan.flows[0].id.as_str(), scenario.plan.flows[19].id.as_str()), ("tcp-1", "tcp-20"));
    assert!(scenario.plan.flows.iter().all(|f| f.group.as_deref() == Some("tcp")));
}

/// Returns arrival time, size and delay of every packet of the media flow.
fn media_packets(text: &str, settings: &[&str]) -> Vec<(i64, u64, i64)> {
    let scenario = scenario(text, settings);
    let video = scenario.plan.flows.iter().position(|f| f.id == "video").unwrap() as u16;
    let mut packets = Vec::new();
    observe(&scenario, 3, |event| {
        if let EventRecord::Arrived { at, packet, delay, .. } = *event
            && packet.flow.0 == video
        {
            packets.push((at.as_nanos(), packet.size.as_bytes(), delay.as_nanos()));
        }
    });
    packets
}

#[test]
fn tcp_on_other_hops_does_not_affect_media() {
    let hops = "hops = [{ id = \"a\", capacity = \"2Mbps\" }, { id = \"b\", capacity = \"2Mbps\" }]";
    let back = "[path.reverse]\nhops = [{ id = \"c\" }, { id = \"d\" }]\n[[flow]]\nid = \"tcp\"";
    let text = ONE.replace("capacity = \"2Mbps\"\nqueue = { limit = \"300ms\" }", hops);
    let text = text.replace("[[flow]]\nid = \"tcp\"", back);
    let workload = "count = 5\nworkload = { kind = \"short\", size = [\"10 KB\", \"1 MB\"], pause = \"1 s\" }\n";
    let media = MEDIA.to_owned() + "route = [\"b\"]\nreport_route = [\"d\"]\n";
    let with = |tcp: &str| text.clone() + workload + tcp + &media;
    let apart = with("route = [\"a\"]\nreport_route = [\"c\"]\n");
    let short = ["duration=30s", "path.forward.hops.1.loss=1 %", "path.forward.hops.1.jitter.std=2 ms"];
    let beside = media_packets(&apart, &short);
    let more = media_packets(&apart, &[&short[..], &["flow.tcp.count=1"]].concat());
    assert!(beside.len() > 1000, "{}", beside.len());
    assert_eq!(beside, more);
    let shared = media_packets(&with("route = [\"a\", \"b\"]\nreport_route = [\"c\"]\n"), &short);
    assert_ne!(beside, shared, "on the same hop they meet");
}

#[test]
fn equal_tcp_flows_share_equally() {
    let result = run(&(ONE.to_owned() + "count = 2\nstart_spread = \"1 s\"\n"), &["duration=300s"]);
    within("share of the first", result.whole.flows[0].share.unwrap(), 0.35, 0.65);
    within("Jain's index", result.whole.jain.unwrap(), 0.80, 1.0);
    within("utilisation", of_run(&result, "utilization"), 0.98, 1.0001);
}

/// On a fast link a transfer takes less than 0.2 s. So after 0.3 s without a packet a flow begins another one: of `bursts` all flows at
/// the same time, with the mean of the file between bursts, and of `short` each at a time of its own.
#[test]
fn bursts_start_in_all_flows_together() {
    let starts = |kind: &str| {
        let text = format!(
            "id = \"test/bursts\"\ntitle = \"Bursts\"\nduration = \"1000 s\"\n[path]\nrtt = \"20 ms\"\n[path.forward]\n\
             capacity = \"100 Mbps\"\n[[flow]]\nid = \"page\"\nkind = \"tcp\"\ncount = 5\n\
             workload = {{ kind = \"{kind}\", size = [\"30 KB\", \"50 KB\"], pause = \"2 s\" }}\n"
        );
        let (mut starts, mut last) = (BTreeMap::<Time, BTreeSet<u16>>::new(), [None; 5]);
        observe(&scenario(&text, &[]), 1, |event| {
            let EventRecord::Sent { at, packet } = *event else { return };
            if packet.class == PacketClass::TcpData {
                let before = last[packet.flow.0 as usize].replace(at);
                if before.is_none_or(|before| at - before > TimeDelta::from_millis(300)) {
                    starts.entry(at).or_default().insert(packet.flow.0);
                }
            }
        });
        starts
    };
    let bursts = starts("bursts");
    let together = bursts.values().filter(|flows| flows.len() == 5).count();
    // 500 bursts in 1000 s, of which 86 % begin 0.3 s after the last one: 430, and 5 standard deviations.
    assert!((330..=530).contains(&together), "{together} bursts");
    // The transfers of a burst end within 0.05 s, so for one in 40 the 0.3 s may be over in some flows alone.
    assert!(bursts.len() - together <= together / 40, "{} of {}", together, bursts.len());
    assert!(starts("short").values().skip(1).all(|flows| flows.len() == 1));
}
