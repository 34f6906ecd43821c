// SPDX-License-Identifier: MIT OR Apache-2.0
//! The packet size of media flows and the MTU of hops, in whole runs.

use crate::fixtures::{load_from, observe, registry, run, scenario};
use paceline_netsim::plan::FlowKind;
use paceline_netsim::records::{DropReason, EventRecord, PacketClass};
use paceline_scenario::{Catalogue, Scenario};
use paceline_units::{DataSize, Time};

/// 1 Mbit/s of video in 30 frames per second, 4167 bytes each, over three hops. From 10 to 20 s the one in the middle has
/// an MTU of 1000 bytes.
const PATH: &str = r#"
id = "test/mtu"
title = "A small MTU in the middle of the path"
duration = "30 s"
[path]
rtt = "20 ms"
[path.forward]
hops = [
  { id = "in" },
  { id = "mid", capacity = "5 Mbps", mtu = [["0s", "1500 B"], ["10s", "1000 B"], ["20s", "1500 B"]] },
  { id = "out" },
]
[[flow]]
id = "video"
controller = "fixed"
config = { rate_bps = 1000000 }
encoder = { source = "ideal", max = "10 Mbps" }
"#;

/// A dropped packet: time, hop, reason and size in bytes.
type Drop = (Time, u16, DropReason, u64);

/// Returns the dropped packets, and the number of media packets that arrived in each third of the run.
fn outcomes(scenario: &Scenario) -> (Vec<Drop>, [usize; 3]) {
    let (mut drops, mut arrived) = (Vec::new(), [0; 3]);
    observe(scenario, 1, |event| match *event {
        EventRecord::Dropped { at, hop, packet, reason, .. } => drops.push((at, hop, reason, packet.size.as_bytes())),
        EventRecord::Arrived { at, packet, .. } if packet.class == PacketClass::Media => {
            arrived[((at - Time::ZERO).as_nanos() / 10_000_000_000) as usize] += 1;
        }
        _ => {}
    });
    (drops, arrived)
}

/// A frame of about 4.1 KB takes four packets of more than 1000 bytes, 1200 in ten seconds. All are dropped at the second
/// hop while its MTU is smaller, and nothing else is.
#[test]
fn a_hop_in_the_middle_drops_what_exceeds_its_mtu() {
    let scenario = scenario(PATH, &["flow.video.retransmit=false"]);
    assert!(scenario.notes.iter().any(|note| note.contains("exceed the MTU of the hop `mid`")), "{:?}", scenario.notes);
    let (drops, arrived) = outcomes(&scenario);
    let (from, to) = (Time::from_secs(10), Time::from_secs(20));
    for (at, hop, reason, size) in &drops {
        assert_eq!((*hop, *reason), (1, DropReason::Mtu));
        assert!((from..to).contains(at) && (1001..=1228).contains(size), "{size} bytes at {at}");
    }
    assert!((1190..=1210).contains(&drops.len()), "{} drops", drops.len());
    assert!((1180..=1210).contains(&arrived[0]) && (1180..=1210).contains(&arrived[2]), "{arrived:?}");
    assert!(arrived[1] <= 8, "{arrived:?}: only what was on its way");
}

/// 28 bytes of IP and UDP headers: packets of up to 972 bytes pass.
#[test]
fn a_packet_size_below_the_mtu_passes() {
    let scenario = scenario(PATH, &["flow.video.packet_size=972 B"]);
    assert!(!scenario.notes.iter().any(|note| note.contains("MTU")), "{:?}", scenario.notes);
    let (drops, arrived) = outcomes(&scenario);
    assert_eq!(drops, []);
    assert!(arrived.iter().all(|count| (1480..=1510).contains(count)), "{arrived:?}: five packets a frame");
}

/// Jumbo frames: an MTU of 9000 bytes has room for packets of 8972, so that each frame of 4.1 KB is one.
#[test]
fn packets_fill_jumbo_frames() {
    let path = PATH.replace(r#"mtu = [["0s", "1500 B"], ["10s", "1000 B"], ["20s", "1500 B"]]"#, r#"mtu = "9000 B""#);
    let path = path.replace("{ id = \"in\" }", "{ id = \"in\", mtu = \"9000 B\" }");
    let path = path.replace("{ id = \"out\" }", "{ id = \"out\", mtu = \"9000 B\" }");
    let (drops, arrived) = outcomes(&scenario(&path, &["flow.video.packet_size=8972 B"]));
    assert_eq!(drops, []);
    assert!(arrived.iter().all(|count| (295..=302).contains(count)), "{arrived:?}: one packet a frame");
}

/// Without a segment of its own, TCP takes the largest one that every hop of its route carries at all times: 52 bytes of
/// headers below 1000. A segment that a hop carries at times is allowed.
#[test]
fn tcp_segments_follow_the_mtu_of_the_route() {
    let segment = |settings: &[&str]| {
        let text = format!("{PATH}[[flow]]\nid = \"tcp\"\nkind = \"tcp\"\n");
        let scenario = scenario(&text, settings);
        let FlowKind::Tcp(tcp) = &scenario.plan.flows[1].kind else { panic!("a TCP flow") };
        (tcp.config.segment.as_bytes(), outcomes(&scenario).0.iter().filter(|drop| drop.2 == DropReason::Mtu).count())
    };
    let video = "flow.video.packet_size=900 B";
    assert_eq!(segment(&[video]), (948, 0));
    assert_eq!(segment(&[video, "flow.tcp.stop=9 s"]), (1448, 0), "it ends before the MTU falls");
    // Only a limited hop bounds the window of TCP.
    let around = ["path.forward.hops.0.capacity=5 Mbps", "flow.tcp.route=[\"in\", \"out\"]"];
    assert_eq!(segment(&[video, around[0], around[1]]), (1448, 0), "another route");
    let (bytes, drops) = segment(&[video, "flow.tcp.segment=1448 B"]);
    assert!(bytes == 1448 && (2..100).contains(&drops), "{drops} drops until the MTU rises again");
}

/// The defaults are what paths and flows had before they could be changed.
#[test]
fn defaults_change_nothing() {
    let origin = Catalogue.find("mmsys16/table1").unwrap();
    let plain = load_from(&origin, None, &[], registry());
    let settings = ["path.forward.mtu=1500 B", "path.reverse.mtu=1500 B", "flow.video.packet_size=1200 B"];
    let stated = load_from(&origin, None, &settings, registry());
    assert_eq!(plain.plan.flows[0].largest_packet(), DataSize::from_bytes(1228));
    assert_eq!(observe(&plain, 1, |_| ()).trace_hash, observe(&stated, 1, |_| ()).trace_hash);
    assert_ne!(run(PATH, &["flow.video.packet_size=600 B"]).trace_hash, run(PATH, &[]).trace_hash);
}
