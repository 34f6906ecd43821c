//! What a link must do whatever the controller: two-sided checks of the simulator against arithmetic.

use paceline::Registry;
use paceline_lab::metrics::FlowResult;
use paceline_lab::rows::{PacketClass, Row, RowSink};
use paceline_lab::run::{RunResult, Runner};
use paceline_lab::scenario::{Catalogue, Changes, Origin, load};
use paceline_lab::sim::Simulator;

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

fn origin(text: &str) -> Origin {
    Origin::from_text("physics.toml", text)
}

/// Runs with seed 1 and lets `hear` listen.
fn run_and_hear(origin: &Origin, settings: &[&str], controller: Option<&str>, hear: impl FnMut(&Row)) -> RunResult {
    struct Listener<F>(F);
    impl<F: FnMut(&Row)> RowSink for Listener<F> {
        fn row(&mut self, row: &Row) {
            (self.0)(row);
        }
    }
    let settings = settings.iter().map(|s| s.parse().expect("KEY=VALUE")).collect();
    let changes = Changes { controller: controller.map(str::to_owned), settings };
    let registry = Registry::standard();
    let plan = match load(origin, &changes, &registry) {
        Ok(plan) => plan,
        Err(problem) => panic!("{problem} {:?} {:?}", problem.offending(), problem.hint()),
    };
    let runner = Runner { world: &Simulator, registry: &registry, clock: &|| 0.0, ticked: &|| () };
    runner.run(&plan, 1, Some(&mut Listener(hear))).unwrap()
}

fn run(text: &str, settings: &[&str]) -> RunResult {
    run_and_hear(&origin(text), settings, None, |_| ())
}

fn flow(result: &RunResult) -> &FlowResult {
    &result.whole.flows[0]
}

#[track_caller]
fn within(what: &str, got: f64, low: f64, high: f64) {
    assert!((low..=high).contains(&got), "{what} is {got}, expected {low} to {high}");
}

#[test]
fn half_a_link_is_half_used_and_nothing_waits() {
    let mut longest = 0;
    let result = run_and_hear(&origin(ONE), &[], None, |row| {
        if let Row::Sent { packet, .. } = row
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
    run_and_hear(&origin(ONE), &["duration=5s"], None, |row| {
        if let Row::Crossed { at, hop: 0, packet, left, waited } = *row {
            let serial = packet.size.as_bytes() as i64 * 8_000; // ns at 1 Mbit/s
            assert_eq!((at - left).as_nanos(), 25_000_000, "25 ms of propagation");
            assert!(waited.as_nanos() >= 0 && left.as_nanos() >= serial);
        }
        if let Row::Arrived { packet, delay, .. } = *row
            && packet.class == PacketClass::Media
        {
            let serial = packet.size.as_bytes() as i64 * 8_000;
            let queued = delay.as_nanos() - 25_000_000 - serial;
            assert!((0..10_000_000).contains(&queued), "{queued} ns beyond propagation and serialisation");
        }
    });
}

#[test]
fn twice_a_link_fills_it_and_loses_half() {
    let result = run(ONE, &["flow.video.config.rate_bps=2e6", "flow.video.retransmit=false"]);
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
fn round_trips_by_rtcp_agree_with_packets() {
    // At twice the capacity the queue is full all the time: each sampled round trip is 50 ms and a full queue.
    let result = run(ONE, &["flow.video.config.rate_bps=2e6", "flow.video.retransmit=false", "duration=120s"]);
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
fn the_receivers_clock_does_not_matter_to_a_constant_rate() {
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
fn delay_on_the_way_back_raises_round_trips_and_not_one_way_delays() {
    let (near, far) = (run(ONE, &[]), run(ONE, &["path.reverse.delay=125 ms"]));
    let rtt = |r: &RunResult| flow(r).rtt_ms.unwrap().p50;
    within("added to round trips", rtt(&far) - rtt(&near), 98.0, 102.0);
    let owd = |r: &RunResult| flow(r).owd_ms.unwrap();
    assert!((owd(&far).p50 - owd(&near).p50).abs() < 0.2, "{} {}", owd(&far).p50, owd(&near).p50);
    assert!((owd(&far).max - owd(&near).max).abs() < 0.2);
}

#[test]
fn an_access_line_adds_its_delay_each_way() {
    let (near, far) = (run(ONE, &[]), run(ONE, &["flow.video.access_delay=40 ms"]));
    let owd = |r: &RunResult| flow(r).owd_ms.unwrap().p50;
    within("added one way", owd(&far) - owd(&near), 39.9, 40.1);
    within("added both ways", flow(&far).rtt_ms.unwrap().p5 - flow(&near).rtt_ms.unwrap().p5, 78.0, 82.0);
    // The base is known, so what is sampled as queuing does not grow.
    let queue = |r: &RunResult| flow(r).rtt_sampled_queue_ms.unwrap().p5;
    within("sampled queuing", queue(&far) - queue(&near), -2.0, 2.0);
}

#[test]
fn in_a_chain_packets_wait_at_the_slowest_hop() {
    let chain = ONE
        .replace(
            "capacity = \"1Mbps\"",
            "hops = [{ id = \"fast\", capacity = \"5Mbps\" }, { id = \"slow\", capacity = \"1Mbps\" }]",
        )
        .replace("queue = { limit = \"300ms\" }\n", "");
    let result = run(&chain, &["flow.video.config.rate_bps=2e6", "flow.video.retransmit=false"]);
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
fn a_route_of_300_hops_is_crossed_once_each() {
    let hops: String = (0..300).map(|n| format!("{{ id = \"h{n}\" }}, ")).collect();
    let long = ONE
        .replace("capacity = \"1Mbps\"", &format!("hops = [{hops}]"))
        .replace("queue = { limit = \"300ms\" }\n", "")
        .replace("60s", "2s");
    let mut crossed = [0u64; 300];
    let mut sent = 0u64;
    run_and_hear(&origin(&long), &[], None, |row| match row {
        Row::Sent { packet, .. } if packet.class == PacketClass::Media => sent += 1,
        Row::Crossed { hop, packet, .. } if packet.class == PacketClass::Media => crossed[*hop as usize] += 1,
        _ => {}
    });
    // 500 kbps for 2 s are 125,000 bytes, in packets of at most 1250; the first hop has all of the delay, 25 ms, so that
    // the last two or three are still in it.
    assert!((100..300).contains(&sent), "{sent}");
    assert!((sent - 8..=sent).contains(&crossed[0]), "{} of {sent}", crossed[0]);
    assert!(crossed.iter().all(|n| *n == crossed[0]), "{crossed:?}");
}

#[test]
fn no_trace_carries_more_than_it_holds() {
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
        let controlled = run_and_hear(&origin(ONE), &[&capacity], Some("gcc-2016"), |_| ());
        within(trace, controlled.whole.link.utilization.unwrap(), 0.01, 1.0001);
    }
}

#[test]
fn two_flows_alike_share_alike() {
    let second =
        "\n[[flow]]\nid = \"two\"\ncontroller = \"fixed\"\nencoder = { source = \"ideal\", max = \"10Mbps\" }\n";
    let origin = origin(&(ONE.to_owned() + second));
    let settings = ["path.forward.capacity=3Mbps", "duration=200s"];
    let result = run_and_hear(&origin, &settings, Some("gcc-2016"), |_| ());
    within("Jain's index", result.whole.jain.unwrap(), 0.9, 1.0);
    within("share of the first", result.whole.flows[0].share.unwrap(), 0.35, 0.65);
    within("utilisation", result.whole.link.utilization.unwrap(), 0.5, 1.0001);
}

#[test]
fn every_packet_sent_arrives_or_is_dropped_or_is_under_way() {
    let lossy = ["path.forward.loss=2 %", "path.reverse.loss=3 %", "path.forward.jitter.std=4 ms"];
    for rate in ["300e3", "1.6e6"] {
        let rate = format!("flow.video.config.rate_bps={rate}");
        let settings = [&lossy[..], &[&rate]].concat();
        let (mut under_way, mut sent, mut last) = (std::collections::BTreeMap::new(), 0u64, 0);
        let result = run_and_hear(&origin(ONE), &settings, None, |row| match *row {
            Row::Sent { at, packet } => {
                assert_eq!(packet.packet, sent, "packets are numbered in order of sending");
                sent += 1;
                last = at.as_nanos();
                under_way.insert(packet.packet, (packet.size, at));
            }
            Row::Arrived { at, packet, delay } => {
                let (size, left) = under_way.remove(&packet.packet).expect("it was sent, and arrives once");
                assert_eq!((size, at - left), (packet.size, delay));
            }
            Row::Dropped { packet, .. } => {
                under_way.remove(&packet.packet).expect("it was sent, and is dropped once");
            }
            _ => {}
        });
        assert!(sent > 1000 && last > 59_000_000_000);
        // At most a full queue, 300 ms, and propagation are under way at the end.
        let oldest = under_way.values().map(|(_, at)| at.as_nanos()).min().unwrap_or(last);
        assert!(60_000_000_000 - oldest < 400_000_000, "one has been under way since {oldest} ns");
        assert!(result.whole.link.utilization.unwrap() < 1.0001);
    }
}

#[test]
fn no_window_uses_more_than_there_is() {
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
fn gcc_on_the_papers_changing_link() {
    let origin = Catalogue.find("mmsys16/table1").unwrap();
    let mut frames = 0u64;
    let result =
        run_and_hear(&origin, &[], Some("gcc-2016"), |row| frames += u64::from(matches!(row, Row::Frame { .. })));
    within("utilisation", result.whole.link.utilization.unwrap(), 0.70, 0.90);
    within("frames rendered a second", frames as f64 / 200.0, 25.0, 31.0);
    let stream = &flow(&result).streams[0];
    assert_eq!(stream.frames, frames);
    within("goodput over throughput", flow(&result).goodput_bps / flow(&result).throughput_bps, 0.85, 0.99);
}
