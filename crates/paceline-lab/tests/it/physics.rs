// SPDX-License-Identifier: MIT OR Apache-2.0
//! The simulator against arithmetic, with bounds on both sides.

use crate::fixtures::{load_from, metric, observe, registry, run, scenario, within};
use paceline_lab::metrics::FlowResult;
use paceline_lab::run::RunResult;
use paceline_netsim::records::{EventRecord, HalfName, PacketClass};
use paceline_scenario::{Catalogue, Origin, Scenario};
use paceline_units::Time;

/// One flow at a constant rate over 1 Mbit/s, 50 ms there and back.
const ONE: &str = r#"
id = "test/one"
title = "One flow"
duration = "60s"
[path]
rtt = "50ms"
[path.forward]
capacity = "1Mbps"
queue = { limit = "300ms" }
[[flow]]
id = "video"
controller = "fixed"
config = { rate_bps = 500000 }
encoder = { source = "ideal", max = "10Mbps" }
clock = { offset = "0s" }
"#;

/// Settings of a constant rate of twice the capacity.
const OVERLOAD: [&str; 2] = ["flow.video.config.rate_bps=2e6", "flow.video.retransmit=false"];

const SECOND: &str = "\n[[flow]]\nid = \"two\"\ncontroller = \"fixed\"\nconfig = { rate_bps = 500000 }\n\
                      encoder = { source = \"ideal\", max = \"10Mbps\" }\n";

fn under_gcc(text: &str, settings: &[&str]) -> Scenario {
    load_from(&Origin::from_text("gcc.toml", text), Some("gcc-2016"), settings, registry())
}

fn flow(result: &RunResult) -> &FlowResult {
    &result.whole.flows[0]
}

fn of_run(result: &RunResult, id: &str) -> Option<f64> {
    metric(&result.whole, id, None)
}

fn of_flow(result: &RunResult, id: &str, flow: usize) -> Option<f64> {
    metric(&result.whole, id, Some(flow))
}

#[test]
fn half_the_capacity_is_half_used_without_a_queue() {
    let mut longest = 0;
    let result = observe(&scenario(ONE, &[]), 1, |event| {
        if let EventRecord::Sent { packet, .. } = event
            && packet.class == PacketClass::Media
        {
            longest = longest.max(packet.size.as_bytes());
        }
    });
    let link = &result.whole.link;
    within("utilisation", link.utilization.unwrap(), 0.49, 0.51);
    assert_eq!((link.loss_ratio, flow(&result).lost_bytes), (0.0, 0));
    within("mean target", flow(&result).target_bps.unwrap(), 499e3, 501e3);
    // A frame of 500 kbit/s / 30 is two packets, paced at 1.5 times the target, below capacity: each travels alone, for
    // 25 ms and its own serialisation.
    let owd = flow(&result).owd_ms.unwrap();
    let slowest = 25.0 + longest as f64 * 8.0 / 1e3;
    // The largest may wait for one small RTCP packet besides.
    within("largest one-way delay", owd.max, slowest - 0.1, slowest + 1.0);
    within("smallest one-way delay", owd.p5, 25.0, slowest);
    within("waiting", link.queue_ms.unwrap().p95, 0.0, 0.5);
}

#[test]
fn one_packet_takes_propagation_and_serialisation_exactly() {
    observe(&scenario(ONE, &["duration=5s"]), 1, |event| {
        if let EventRecord::Crossed { at, hop: 0, packet, left, waited, .. } = *event {
            let serial = packet.size.as_bytes() as i64 * 8_000; // ns at 1 Mbit/s
            assert_eq!((at - left).as_nanos(), 25_000_000, "25 ms of propagation");
            assert!(waited.as_nanos() >= 0 && left.as_nanos() >= serial);
        }
        if let EventRecord::Arrived { packet, delay, .. } = *event
            && packet.class == PacketClass::Media
        {
            let serial = packet.size.as_bytes() as i64 * 8_000;
            let queued = delay.as_nanos() - 25_000_000 - serial;
            assert!((0..10_000_000).contains(&queued), "{queued} ns beyond propagation and serialisation");
        }
    });
}

#[test]
fn twice_the_capacity_fills_the_link_and_loses_half() {
    let result = run(ONE, &OVERLOAD);
    let link = &result.whole.link;
    within("utilisation", link.utilization.unwrap(), 0.99, 1.0001);
    within("loss", link.loss_ratio, 0.47, 0.53);
    within("loss that the flow sees", flow(&result).loss_ratio, 0.47, 0.53);
    within("p95 of waiting", link.queue_ms.unwrap().p95, 285.0, 301.0);
    // The queue counts what waits: a packet may find 300 ms of it, and the rest of the one in service.
    within("longest waiting", link.queue_ms.unwrap().max, 285.0, 300.0 + 10.0);
    within("throughput", flow(&result).throughput_bps, 0.985e6, 1.0e6);
}

#[test]
fn rtcp_round_trips_agree_with_packet_delays() {
    // At twice the capacity the queue is full all the time: each sampled round trip is 50 ms and a full queue.
    let result = run(ONE, &[&OVERLOAD[..], &["duration=120s"]].concat());
    let sampled = flow(&result).rtt_sampled_queue_ms.unwrap();
    let packets = result.whole.link.queue_ms.unwrap();
    assert!(sampled.samples > 50, "{} samples", sampled.samples);
    within("sampled median over that of packets", sampled.p50 / packets.p50, 0.95, 1.06);
    within("sampled p95 over that of packets", sampled.p95 / packets.p95, 0.97, 1.06);
    // And with nothing waiting, the base: 50 ms and the serialisation of small RTCP packets and of one in service.
    let empty = run(ONE, &["duration=120s"]);
    within("idle round trip", flow(&empty).rtt_ms.unwrap().p50, 50.0, 62.0);
}

#[test]
fn receiver_clock_does_not_affect_a_constant_rate() {
    let plain = run(ONE, &[]);
    for clock in ["{ offset = \"59 min\" }", "{ drift_ppm = 1000 }", "{ drift_ppm = -1000 }"] {
        let odd = run(ONE, &[&format!("flow.video.clock={clock}")]);
        let ratio = flow(&odd).throughput_bps / flow(&plain).throughput_bps;
        within(clock, ratio, 0.999, 1.001);
        within(clock, flow(&odd).owd_ms.unwrap().p50 / flow(&plain).owd_ms.unwrap().p50, 0.99, 1.01);
        within(clock, flow(&odd).rtt_ms.unwrap().p50 / flow(&plain).rtt_ms.unwrap().p50, 0.98, 1.02);
    }
}

#[test]
fn reverse_delay_raises_round_trips_but_not_one_way_delays() {
    let (near, far) = (run(ONE, &[]), run(ONE, &["path.reverse.delay=125 ms"]));
    let rtt = |r: &RunResult| flow(r).rtt_ms.unwrap().p50;
    within("added to round trips", rtt(&far) - rtt(&near), 98.0, 102.0);
    let owd = |r: &RunResult| flow(r).owd_ms.unwrap();
    assert!((owd(&far).p50 - owd(&near).p50).abs() < 0.2, "{} {}", owd(&far).p50, owd(&near).p50);
    assert!((owd(&far).max - owd(&near).max).abs() < 0.2);
}

#[test]
fn access_delay_is_added_in_each_direction() {
    let (near, far) = (run(ONE, &[]), run(ONE, &["flow.video.access_delay=40 ms"]));
    let owd = |r: &RunResult| flow(r).owd_ms.unwrap().p50;
    within("added one way", owd(&far) - owd(&near), 39.9, 40.1);
    within("added both ways", flow(&far).rtt_ms.unwrap().p5 - flow(&near).rtt_ms.unwrap().p5, 78.0, 82.0);
    // The base is known, so what is sampled as queuing does not grow.
    let queue = |r: &RunResult| flow(r).rtt_sampled_queue_ms.unwrap().p5;
    within("sampled queuing", queue(&far) - queue(&near), -2.0, 2.0);
}

#[test]
fn host_jitter_and_stalls_apply_at_both_ends() {
    let near = run(ONE, &[]);
    let mean = |r: &RunResult| flow(r).owd_ms.unwrap().mean;
    let busy = run(ONE, &["flow.video.host.jitter=2 ms"]);
    // Two hosts with a mean of 2 ms each, and a little for waiting behind the previous packet.
    within("jitter, one way", mean(&busy) - mean(&near), 3.9, 5.5);
    within("jitter, both ways", flow(&busy).rtt_ms.unwrap().mean - flow(&near).rtt_ms.unwrap().mean, 6.0, 12.0);
    let stalled = run(ONE, &["flow.video.host={ stall_every = \"5 s\", stall = \"100 ms\" }"]);
    // The longest stall lasts 150 ms, and a packet may meet one at either end.
    within("largest one-way delay", flow(&stalled).owd_ms.unwrap().max - flow(&near).owd_ms.unwrap().max, 70.0, 301.0);
    // Nothing is lost, nothing is sent less.
    assert_eq!((flow(&stalled).lost_bytes, flow(&stalled).sent_bytes), (0, flow(&near).sent_bytes));
}

#[test]
fn bursts_last_as_long_as_the_host_takes_for_their_packets() {
    let text = ONE.replace("\"fixed\"", "\"googcc\"").replace("config = { rate_bps = 500000 }\n", "");
    let of = |settings: &[&str]| {
        let (mut last, mut gaps_us) = (None::<Time>, Vec::new());
        let result = observe(&scenario(&text, settings), 1, |event| {
            if let EventRecord::Sent { at, packet } = event
                && !packet.class.is_from_receiver()
            {
                gaps_us.extend(last.map(|last| (*at - last).as_nanos() / 1000));
                last = Some(*at);
            }
        });
        (gaps_us, flow(&result).sent_bytes as f64)
    };
    let share = |gaps: &[i64], range: std::ops::Range<i64>| {
        gaps.iter().filter(|gap| range.contains(*gap)).count() as f64 / gaps.len() as f64
    };
    let ((at_once, sent), (spread, spread_sent)) = (of(&["flow.video.host.packet_time=0s"]), of(&[]));
    within("packets with the send time of another", share(&at_once, 0..1), 0.4, 0.9);
    assert_eq!(share(&spread, 0..75), 0.0);
    within("packets one packet time after another", share(&spread, 75..76), 0.4, 0.9);
    within("bytes sent", spread_sent / sent, 0.8, 1.25);
}

/// The reference is counted from events of the detector's signal.
#[test]
fn overuse_is_counted_only_if_the_scenario_uses_it() {
    let text = ONE.replace("\"fixed\"", "\"gcc-2016\"").replace("config = { rate_bps = 500000 }\n", "");
    assert_eq!(of_run(&run(&text, &[]), "overuse_count"), None, "the scenario does not use it");
    let with_metric = text + "[[assert]]\nid = \"over\"\nmetric = \"overuse_count\"\nbounds = [1, 100]\n";
    let (mut edges, mut over) = (0, false);
    let result = observe(&scenario(&with_metric, &[]), 1, |event| {
        if let EventRecord::Signal { half: HalfName::Receive, signal: 3, value, .. } = event {
            edges += u32::from(*value == 2.0 && !over);
            over = *value == 2.0;
        }
    });
    assert!((2..100).contains(&edges), "{edges}");
    assert_eq!(of_run(&result, "overuse_count"), Some(f64::from(edges)));
    assert_eq!(of_flow(&result, "overuse_count", 0), Some(f64::from(edges)));
}

#[test]
fn packets_queue_at_the_slowest_hop_of_a_chain() {
    let chain = ONE
        .replace(
            "capacity = \"1Mbps\"",
            "hops = [{ id = \"fast\", capacity = \"5Mbps\" }, { id = \"slow\", capacity = \"1Mbps\" }]",
        )
        .replace("queue = { limit = \"300ms\" }\n", "");
    let result = run(&chain, &OVERLOAD);
    let (fast, slow) = (&result.whole.links[0], &result.whole.links[1]);
    assert_eq!((fast.id.as_str(), slow.id.as_str(), result.whole.link.id.as_str()), ("fast", "slow", "slow"));
    within("utilisation of the fast hop", fast.utilization.unwrap(), 0.38, 0.42);
    within("utilisation of the slow hop", slow.utilization.unwrap(), 0.99, 1.0001);
    assert_eq!(fast.loss_ratio, 0.0);
    within("loss at the slow hop", slow.loss_ratio, 0.47, 0.53);
    within("waiting at the fast hop", fast.queue_ms.unwrap().p95, 0.0, 5.0);
    within("waiting at the slow hop", slow.queue_ms.unwrap().p95, 285.0, 301.0);
}

/// More hops than a byte counts.
#[test]
fn each_of_300_hops_is_crossed_once() {
    let hops: String = (0..300).map(|n| format!("{{ id = \"h{n}\" }}, ")).collect();
    let long = ONE
        .replace("capacity = \"1Mbps\"", &format!("hops = [{hops}]"))
        .replace("queue = { limit = \"300ms\" }\n", "")
        .replace("60s", "2s");
    let mut crossed = [0u64; 300];
    let mut sent = 0u64;
    observe(&scenario(&long, &[]), 1, |event| match event {
        EventRecord::Sent { packet, .. } if packet.class == PacketClass::Media => sent += 1,
        EventRecord::Crossed { hop, packet, .. } if packet.class == PacketClass::Media => crossed[*hop as usize] += 1,
        _ => {}
    });
    // 500 kbps for 2 s are 125,000 bytes, in packets of at most 1250; the first hop has all of the delay, 25 ms, so that
    // the last two or three are still in it.
    assert!((100..300).contains(&sent), "{sent}");
    assert!((sent - 8..=sent).contains(&crossed[0]), "{} of {sent}", crossed[0]);
    assert!(crossed.iter().all(|n| *n == crossed[0]), "{crossed:?}");
}

#[test]
fn no_trace_carries_more_than_its_capacity() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/real");
    for trace in
        ["lte-like.mahimahi", "traces/alphartc.json", "traces/ghent4g.log", "traces/hsdpa.log", "traces/steps.csv"]
    {
        let capacity = format!("path.forward.capacity={{ trace = \"{folder}/{trace}\" }}");
        let full = run(
            ONE,
            &[
                &capacity,
                "flow.video.config.rate_bps=50e6",
                "flow.video.encoder.max=60Mbps",
                "flow.video.retransmit=false",
            ],
        );
        within(trace, full.whole.link.utilization.unwrap(), 0.9, 1.0001);
        let controlled = observe(&under_gcc(ONE, &[&capacity]), 1, |_| ());
        within(trace, controlled.whole.link.utilization.unwrap(), 0.01, 1.0001);
    }
}

#[test]
fn equal_flows_share_equally() {
    let settings = ["path.forward.capacity=3Mbps", "duration=200s"];
    let result = observe(&under_gcc(&(ONE.to_owned() + SECOND), &settings), 1, |_| ());
    within("Jain's index", result.whole.jain.unwrap(), 0.9, 1.0);
    within("share of the first", result.whole.flows[0].share.unwrap(), 0.35, 0.65);
    within("utilisation", result.whole.link.utilization.unwrap(), 0.5, 1.0001);
}

#[test]
fn no_window_uses_more_than_its_capacity() {
    let text = ONE.to_owned()
        + &(0..30).map(|i| format!("[[assert]]\nid = \"{i}\"\nmetric = \"utilization\"\nbounds = [0, 1.02]\nwindow = [\"{} s\", \"{} s\"]\n", 2 * i, 2 * i + 2)).collect::<String>();
    let changing = "path.forward.capacity=[[\"0s\",\"1Mbps\"],[\"21s\",\"300kbps\"],[\"33s\",\"3Mbps\"]]";
    let result = run(&text, &[changing, "flow.video.config.rate_bps=4e6", "flow.video.retransmit=false"]);
    assert_eq!(result.windows.len(), 30);
    for (index, window) in result.windows.iter().enumerate() {
        // A window's edge may cut the service of one packet: 1200 bytes over 2 s at 300 kbit/s are 1.6 %.
        within(&format!("utilisation of window {index}"), window.link.utilization.unwrap(), 0.9, 1.017);
    }
    within("utilisation of the run", result.whole.link.utilization.unwrap(), 0.98, 1.0001);
}

#[test]
fn gcc_matches_table_1_of_mmsys16() {
    let origin = Catalogue.find("mmsys16/table1").unwrap();
    let mut frames = 0u64;
    let scenario = load_from(&origin, Some("gcc-2016"), &[], registry());
    let result = observe(&scenario, 1, |event| frames += u64::from(matches!(event, EventRecord::Frame { .. })));
    within("utilisation", result.whole.link.utilization.unwrap(), 0.70, 0.90);
    within("frames rendered a second", frames as f64 / 200.0, 25.0, 31.0);
    let stream = &flow(&result).streams[0];
    assert_eq!(stream.frames, frames);
    within("goodput over throughput", flow(&result).goodput_bps / flow(&result).throughput_bps, 0.85, 0.99);
}

#[test]
fn consecutive_flows_do_not_add_their_rates() {
    // 500 kbit/s for 30 s, then the same again: 30 Mbit in 60 s.
    let result = run(&(ONE.to_owned() + SECOND), &["flow.video.stop=30s", "flow.two.start=30s"]);
    within("throughput of the run", of_run(&result, "throughput_bps").unwrap(), 490e3, 505e3);
    within("target of the run", of_run(&result, "target_bps").unwrap(), 495e3, 501e3);
    within("target over capacity", of_run(&result, "target_utilization").unwrap(), 0.495, 0.501);
    let goodput = of_run(&result, "goodput_bps").unwrap();
    within("goodput of the run", goodput, 425e3, 499e3);
    // Nothing is lost, so all that arrived is media and sender reports, of some 100 bytes a second.
    let arrived = of_run(&result, "throughput_bps").unwrap();
    within("good utilisation", of_run(&result, "good_utilization").unwrap() * 1e6, arrived - 2e3, arrived - 100.0);
    for index in 0..2 {
        within("throughput of a flow", of_flow(&result, "throughput_bps", index).unwrap(), 490e3, 505e3);
        within("target of a flow", of_flow(&result, "target_bps", index).unwrap(), 499e3, 501e3);
        within("utilisation by a flow", of_flow(&result, "utilization", index).unwrap(), 0.49, 0.505);
        within("target of a flow over capacity", of_flow(&result, "target_utilization", index).unwrap(), 0.499, 0.501);
    }
}

#[test]
fn idle_flows_share_nothing() {
    // 0.5 Mbit/s of 1 Mbit/s for 60 s, beside TCP that has data for 20 s and then none.
    let tcp = "\n[[flow]]\nid = \"pauses\"\nkind = \"tcp\"\nworkload = { kind = \"on-off\", on = \"20 s\", off = \"100 s\" }\n";
    let result = run(&(ONE.to_owned() + tcp), &["flow.video.config.rate_bps=500000"]);
    // TCP takes the other half while it has data. If its pause counted, the index would be near (0.98 + 2 * 0.5) / 3 = 0.66.
    within("Jain's index", result.whole.jain.unwrap(), 0.9, 1.0);
    // Alone the flow has all of the link as its share, and half of it is not enough.
    assert_eq!(of_flow(&result, "convergence_time_s", 0), None);
    within("the rise, beside TCP", of_flow(&result, "rise_time_s", 0).unwrap(), 1.0, 5.0);
}

#[test]
fn reverse_flow_does_not_share_the_forward_link() {
    let text = ONE.to_owned() + SECOND;
    let reverse = ["flow.two.direction=\"reverse\"", "path.reverse.capacity=2Mbps", "flow.two.config.rate_bps=400000"];
    let result = run(&text, &reverse);
    let forward = result.whole.flows[0].good_bytes as f64 * 8.0 / 60e6;
    within("good utilisation", forward, 0.49, 0.505);
    within("good utilisation of the run", of_run(&result, "good_utilization").unwrap(), forward - 1e-6, forward + 1e-6);
    within("utilisation by the forward flow", of_flow(&result, "utilization", 0).unwrap(), 0.49, 0.51);
    within("utilisation by the reverse flow", of_flow(&result, "utilization", 1).unwrap(), 0.195, 0.205);
    assert_eq!(result.whole.jain, None, "one flow in this direction");
    // All of 1 Mbit/s is its fair share: half of it is not enough, 95 % is.
    assert_eq!(of_flow(&result, "convergence_time_s", 0), None);
    let faster = run(&text, &[&reverse[..], &["flow.video.config.rate_bps=950000"]].concat());
    within("convergence", of_flow(&faster, "convergence_time_s", 0).unwrap(), 1.0, 3.0);
    // Two flows in the same direction share equally: half is enough.
    within("convergence of two", of_flow(&run(&text, &[]), "convergence_time_s", 0).unwrap(), 1.0, 3.0);
}

#[test]
fn a_rate_that_halves_has_a_variation_of_a_third() {
    within("steady", of_flow(&run(ONE, &[]), "rate_cv", 0).unwrap(), 0.0, 0.03);
    // 30 s of 500 kbit/s and 30 of 250: 125 over 375.
    let halved = run(ONE, &["path.forward.capacity=[[\"0s\",\"1Mbps\"],[\"30s\",\"250kbps\"]]"]);
    within("halved", of_flow(&halved, "rate_cv", 0).unwrap(), 0.32, 0.36);
}

#[test]
fn packets_lost_on_the_wire_use_capacity() {
    let result = run(ONE, &[&OVERLOAD[..], &["path.forward.loss=10 %"]].concat());
    within("utilisation", result.whole.link.utilization.unwrap(), 0.99, 1.0001);
    within("throughput", flow(&result).throughput_bps, 0.88e6, 0.92e6);
    // Half overflows; of the other half, a tenth is lost.
    within("loss", result.whole.link.loss_ratio, 0.53, 0.57);
}

#[test]
fn link_share_follows_the_slowest_hop_at_each_time() {
    let hops = "hops = [{ id = \"a\", capacity = [[\"0s\",\"1Mbps\"],[\"30s\",\"4Mbps\"]] }, \
                { id = \"b\", capacity = [[\"0s\",\"4Mbps\"],[\"30s\",\"1Mbps\"]] }]";
    let text = ONE.replace("capacity = \"1Mbps\"", hops).replace("queue = { limit = \"300ms\" }\n", "");
    let result = run(&text, &[]);
    // 1 Mbit/s all the time, though either hop passes 2.5 on average.
    within("link_share", of_run(&result, "link_share").unwrap(), 0.49, 0.51);
    within("utilisation by the flow", of_flow(&result, "utilization", 0).unwrap(), 0.195, 0.205);
    within("utilisation", of_run(&result, "utilization").unwrap(), 0.195, 0.205);
}

#[test]
fn the_bottleneck_is_the_slowest_hop_that_media_crosses() {
    let hops = "hops = [{ id = \"fast\", capacity = \"5Mbps\" }, { id = \"slow\", capacity = \"100kbps\" }]";
    let text = ONE.replace("capacity = \"1Mbps\"", hops).replace("queue = { limit = \"300ms\" }\n", "");
    let aside = run(&text, &["flow.video.route=[\"fast\"]"]);
    assert_eq!(aside.whole.link.id, "fast");
    within("utilisation", aside.whole.link.utilization.unwrap(), 0.098, 0.102);
    assert_eq!(run(&text, &[]).whole.link.id, "slow");
    let back = run(ONE, &["flow.video.direction=\"reverse\"", "path.reverse.capacity=2Mbps"]);
    assert_eq!(back.whole.link.id, back.whole.links[1].id, "no flow goes forward");
    within("utilisation", back.whole.link.utilization.unwrap(), 0.245, 0.255);
}

#[test]
fn a_freeze_lasts_until_the_end_if_nothing_more_is_rendered() {
    let stops = run(ONE, &["path.forward.capacity=[[\"0s\",\"1Mbps\"],[\"30s\",\"100bps\"]]", "flow.video.stop=50s"]);
    let stream = &flow(&stops).streams[0];
    assert_eq!(stream.freezes, 1);
    within("frozen", stream.freeze_s, 19.9, 20.1);
    let never = run(ONE, &["path.forward.capacity=100bps", "flow.video.start=10s", "flow.video.stop=50s"]);
    let stream = &flow(&never).streams[0];
    assert_eq!((stream.frames, stream.freezes, stream.freeze_s), (0, 1, 40.0));
    let fine = run(ONE, &[]);
    assert_eq!((flow(&fine).streams[0].freezes, of_run(&fine, "freeze_duration_s")), (0, Some(0.0)));
}

#[test]
fn longer_propagation_is_not_counted_as_queuing() {
    // Half a link in use, and 100 ms more of propagation from 30 s on: round trips grow, waiting does not.
    let result = run(ONE, &["path.forward.delay=[[\"0s\",\"25ms\"],[\"30s\",\"125ms\"]]"]);
    within("p95 of round trips", flow(&result).rtt_ms.unwrap().p95, 150.0, 165.0);
    within("p95 of sampled queuing", flow(&result).rtt_sampled_queue_ms.unwrap().p95, 0.0, 15.0);
}
