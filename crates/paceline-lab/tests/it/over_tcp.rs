// SPDX-License-Identifier: MIT OR Apache-2.0
//! Media over TCP in the simulator: packets come late, never lost.

use crate::fixtures::{metric, observe, run, scenario};
use paceline_netsim::records::{DropReason, EventRecord, PacketClass};

/// The case of OvenMediaEngine#287: a call through TURN over TCP.
const CALL: &str = r#"
id = "test/over-tcp"
title = "Media over TCP"
duration = "60 s"
[path]
rtt = "50 ms"
[path.forward]
capacity = "5 Mbps"
queue = { limit = "200 ms" }
[[flow]]
id = "video"
controller = "fixed"
config = { rate_bps = 1000000 }
encoder = { source = "ideal", max = "2.5 Mbps" }
"#;

/// Media at a constant rate below what TCP carries: none is missing, and each loss delays what comes after it by a round trip at least.
#[test]
fn losses_of_the_path_delay_media_and_remove_none() {
    let frames = |settings: &[&str]| {
        let (mut frames, mut skipped, mut late, mut lost, mut reported) = (0u32, 0u32, 0u32, 0u32, 0.0f64);
        observe(&scenario(CALL, settings), 1, |event| match *event {
            EventRecord::Frame { at, captured, dropped, .. } => {
                (frames, skipped) = (frames + 1, skipped + u32::from(dropped));
                late += u32::from((at - captured).as_secs_f64() > 0.075);
            }
            EventRecord::Dropped { packet, reason: DropReason::Loss, .. } if !packet.class.is_from_receiver() => {
                lost += 1
            }
            EventRecord::FractionLost { fraction, .. } => reported = reported.max(fraction),
            EventRecord::Sent { packet, .. } => {
                let is_tcp =
                    matches!(packet.class, PacketClass::TcpData | PacketClass::TcpRetransmission | PacketClass::TcpAck);
                assert_eq!(is_tcp, settings.contains(&"flow.video.transport=tcp"), "{packet:?}");
            }
            _ => {}
        });
        (frames, skipped, late, lost, reported)
    };
    let tcp = "flow.video.transport=tcp";
    let (count, skipped, late, lost, reported) = frames(&[tcp]);
    assert!(
        count >= 1795 && (skipped, lost, reported) == (0, 0, 0.0) && late <= 3,
        "{count} {skipped} {late} {lost} {reported}"
    );
    let (count, skipped, late, lost, reported) = frames(&[tcp, "path.forward.loss=1 %"]);
    assert!(count >= 1790 && skipped == 0 && reported == 0.0, "{count} {skipped} {reported}");
    assert!(lost > 20 && late > lost, "{lost} lost, {late} late");
    let (_, _, _, lost, reported) = frames(&["path.forward.loss=1 %"]);
    assert!(lost > 20 && reported > 0.0, "{lost} {reported}");
}

/// As much as a TCP flow with segments of the same size; for Reno without timeouts, Mathis gives 1.05 Mbit/s.
#[test]
fn a_lossy_path_carries_what_one_connection_carries() {
    let rate = |text: &str, settings: &[&str]| {
        let settings = [settings, &["path.forward.loss=5 %", "duration=300 s"]].concat();
        metric(&run(text, &settings).whole, "throughput_bps", Some(0)).unwrap()
    };
    let flow = CALL.find("[[flow]]").unwrap();
    let bulk = CALL[..flow].to_owned() + "[[flow]]\nid = \"tcp\"\nkind = \"tcp\"\nsegment = \"1202 B\"\n";
    let offered = "flow.video.config.rate_bps=2500000";
    let [over_tcp, over_udp] =
        ["tcp", "udp"].map(|name| rate(CALL, &[offered, &format!("flow.video.transport={name}")]));
    let bulk = rate(&bulk, &[]);
    let lossy = ["path.forward.loss=5 %", offered, "flow.video.transport=tcp"];
    let flow = run(CALL, &lossy).whole.flows.remove(0);
    assert!((0.85..1.0).contains(&(flow.goodput_bps / flow.throughput_bps)), "{flow:?}");
    assert!((0.85..1.15).contains(&(over_tcp / bulk)) && over_udp > 2e6, "{over_tcp} {over_udp} {bulk}");
}

#[test]
fn feedback_over_a_lossy_way_back_arrives_too() {
    let settings = ["flow.video.transport=tcp", "flow.video.controller=googcc", "path.reverse.loss=5 %"];
    let mut rounds = 0;
    let result = observe(&scenario(&CALL.replace("config = { rate_bps = 1000000 }\n", ""), &settings), 1, |event| {
        rounds += u32::from(matches!(event, EventRecord::RoundTrip { .. }));
    });
    let rate = metric(&result.whole, "throughput_bps", Some(0)).unwrap();
    assert!(rounds > 50 && rate > 1.5e6, "{rounds} {rate}");
}
