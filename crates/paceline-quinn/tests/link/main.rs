// SPDX-License-Identifier: MIT OR Apache-2.0
//! quinn's state machine under controllers of Paceline and under its own, over a simulated path.

#[allow(dead_code, reason = "the examples use the rest")]
mod world;

use paceline_netsim::link::queue::QueueLimit;
use paceline_netsim::link::{Jitter, JitterOrder};
use paceline_netsim::parameter::{Value, Values};
use paceline_netsim::path::{Direction, Path, PathBuilder};
use paceline_quinn::units::{Rate, Time, TimeDelta};
use paceline_quinn::{ConfigError, ControllerConfig, Encoder, PacelineController, Target, paceline::Setup};
use quinn_proto::congestion::{ControllerFactory, CubicConfig};
use std::sync::Arc;
use std::time::Duration;
use world::{MAX, Source, World};

const MS: fn(i64) -> TimeDelta = TimeDelta::from_millis;
const S: fn(i64) -> Time = Time::from_secs;
const KBPS: fn(u64) -> Rate = Rate::from_kbps;
const LINK: Rate = Rate::from_kbps(5000);

fn setup() -> Setup {
    Setup::new(KBPS(1000), KBPS(100), MAX)
}

fn factory(name: &str) -> Arc<dyn ControllerFactory + Send + Sync> {
    match name {
        "cubic" => Arc::new(CubicConfig::default()),
        _ => Arc::new(ControllerConfig::new(name, &setup()).unwrap()),
    }
}

/// 5 Mbit/s, a round-trip time of 50 ms, and a buffer of 500 ms.
fn link() -> PathBuilder {
    Path::builder().capacity(LINK).rtt(MS(50)).queue_limit(QueueLimit::DrainTime(MS(500)))
}

fn run(path: PathBuilder, name: &str, source: Source, seconds: i64) -> World {
    let mut world = World::new(path, source, world::origin(), factory(name));
    world.run(S(seconds));
    world
}

/// Returns the controller of the client as it is now.
fn controller(world: &mut World) -> Box<PacelineController> {
    world.client().congestion_state().clone_box().into_any().downcast().unwrap()
}

/// The share of the link that is used, and the 95th percentile of the queue in ms, from 5 s on.
fn judge(name: &str, source: Source) -> (f64, f64) {
    let world = run(link(), name, source, 25);
    let stats = world.path.stats(Direction::Forward);
    let (from, to) = (S(5), S(25) - MS(25));
    let used = stats.rate(from, to).as_bps_f64() / LINK.as_bps_f64();
    let queue = stats.queue_delay(from, to, 95).as_millis_f64();
    println!("{name} {source:?}: {used:.3} of the link, p95 of the queue {queue:.1} ms");
    (used, queue)
}

/// At the same use of the link, a tenth of the queue of quinn's CUBIC. A controller that ignores the path does not pass.
#[test]
fn queue_is_a_tenth_of_that_of_cubic() {
    for source in [Source::Encoder, Source::Bulk] {
        let passes = |name| {
            let (used, queue) = judge(name, source);
            (0.95..=1.001).contains(&used) && (5.0..=49.0).contains(&queue)
        };
        let (used, queue) = judge("cubic", source);
        assert!((0.99..=1.001).contains(&used) && (470.0..=501.0).contains(&queue), "{used} {queue}");
        assert!(passes("drc") && passes("scream-v2") && !passes("fixed"));
    }
}

/// quinn sends no padding, so there are no probes: they need some 20 s from 1 to 5 Mbit/s.
#[test]
fn gradient_controllers_rise_without_probes() {
    for name in ["googcc", "gcc-tfb", "nada-sender"] {
        let world = run(link(), name, Source::Encoder, 30);
        let target = |second: usize| world.seconds[second].target.as_bps_f64() / LINK.as_bps_f64();
        println!("{name}: {:.2} {:.2} {:.2}", target(4), target(14), target(29));
        assert!((0.2..0.6).contains(&target(4)) && (0.8..1.2).contains(&target(29)), "{name}");
        assert!(world.seconds.iter().all(|second| second.queue < MS(80)), "{name}");
    }
}

/// Short and long round-trip times, a slow link, and a call with audio alone, whose packets get delayed ACKs: the share of the link that is used
/// under `drc` and under `scream-v2`, and the longest queue. The window of SCReAM grows only while it is used, so with 10 % of headroom its
/// rate stays low on long and on slow paths. The bursts of quinn, ten packets, take 0.2 s at 400 kbit/s.
#[test]
fn paths_of_other_rates_and_times_are_used() {
    let audio = Source::Limited(KBPS(64));
    for (kbps, rtt, source, drc, scream, longest) in [
        (8000, 5, Source::Encoder, 0.95..=1.001, 0.95..=1.001, 70),
        (2000, 300, Source::Encoder, 0.8..=1.001, 0.2..=0.5, 90),
        (2000, 300, Source::Bulk, 0.95..=1.001, 0.95..=1.001, 60),
        (400, 50, Source::Encoder, 0.9..=1.001, 0.3..=0.8, 220),
        (400, 50, audio, 0.16..=0.2, 0.16..=0.2, 10),
    ] {
        for (name, expected) in [("drc", drc), ("scream-v2", scream)] {
            let path = Path::builder().capacity(KBPS(kbps)).rtt(MS(rtt)).queue_limit(QueueLimit::DrainTime(MS(500)));
            let mut world = run(path, name, source, 30);
            let stats = world.path.stats(Direction::Forward);
            let (from, to) = (S(15), S(30) - MS(rtt / 2));
            let (used, queue) = (stats.rate(from, to).as_bps_f64(), stats.queue_delay(from, to, 95));
            let used = used / KBPS(kbps).as_bps_f64();
            assert!(
                expected.contains(&used) && queue < MS(longest),
                "{name} {kbps} {rtt} {source:?}: {used} {queue:?}"
            );
            assert_eq!(world.client().stats().path.lost_packets, 0, "{name} {kbps} {rtt} {source:?}");
            assert!(source != audio || world.target().unwrap().application_limited, "{name}");
        }
    }
}

/// An encoder of 1 Mbit/s on 5 Mbit/s: the target stays near what the path has proved, and the handle reports the limit.
#[test]
fn application_limit_is_reported() {
    for name in ["drc", "scream-v2", "googcc"] {
        let mut world = run(link(), name, Source::Limited(KBPS(1000)), 15);
        let limited = world.target().unwrap();
        println!("{name}: {limited:?}");
        assert!(limited.application_limited, "{name}");
        world.source = Source::Encoder;
        world.run(S(30));
        let free = world.target().unwrap();
        assert!(!free.application_limited && free.rate > limited.rate.min(LINK).scale(0.9), "{name} {free:?}");
        assert!(free.updated > limited.updated && free.rtt < MS(200) && free.stable_rate <= free.rate, "{name}");
    }
}

/// quinn's counts of packets that were lost are those of the controller to within 1 %, and those that arrived but for ACKs.
#[test]
fn reports_name_the_packets_that_quinn_loses() {
    for source in [Source::Encoder, Source::Bulk] {
        let mut world = run(link().loss(0.03), "drc", source, 60);
        let (arrived, lost) = controller(&mut world).packets_reported();
        let path = world.client().stats().path;
        println!(
            "{source:?}: {arrived} arrived, {lost} lost; quinn: {} lost of {}",
            path.lost_packets, path.sent_packets
        );
        let hundredth = path.lost_packets / 100;
        assert!(lost.abs_diff(path.lost_packets) <= hundredth && path.lost_packets > 500);
        assert!((arrived + lost).abs_diff(path.sent_packets) <= path.sent_packets / 50);
        let used = world.path.stats(Direction::Forward).rate(S(5), S(60) - MS(25));
        assert!(used > LINK.scale(0.8) && used <= LINK.scale(1.001), "random losses do not stop it: {used}");
    }
}

/// Packets overtake each other, so that an ACK names packets that are older than those of the ACK before. quinn takes a packet for lost
/// after three newer ones.
#[test]
fn reordered_packets_are_reported_in_order() {
    for (order, losses) in [(JitterOrder::Reorder, 100..1000), (JitterOrder::Keep, 0..1)] {
        let mut path = link();
        path.hops[0].jitter = Some(Jitter { std: MS(3), limit: MS(9), order });
        let mut world = run(path, "drc", Source::Encoder, 30);
        // Debug builds check the order of each report.
        let (arrived, lost) = controller(&mut world).packets_reported();
        let path = world.client().stats().path;
        println!(
            "{order:?}: {arrived} arrived, {lost} lost; quinn: {} lost of {}",
            path.lost_packets, path.sent_packets
        );
        assert!(losses.contains(&path.lost_packets) && lost.abs_diff(path.lost_packets) <= path.lost_packets / 20);
        assert!((arrived + lost).abs_diff(path.sent_packets) <= path.sent_packets / 50);
    }
}

/// Nothing arrives for 8 s, in which quinn sends probes at growing intervals: the target falls, and is back within 15 s.
#[test]
fn outage_lowers_the_target() {
    for name in ["drc", "googcc"] {
        let mut world = run(link(), name, Source::Encoder, 20);
        let before = world.target().unwrap();
        world.change_loss(1.0);
        world.run(S(28));
        let during = world.target().unwrap();
        world.change_loss(0.0);
        world.run(S(45));
        let after = world.target().unwrap();
        println!("{name}: {} {} {}", before.rate, during.rate, after.rate);
        assert!(during.rate <= before.rate.scale(0.5) && during.rate >= setup().min, "{name}: {}", during.rate);
        assert!(during.updated - before.updated < Duration::from_secs(1), "{name}: the age shows the outage");
        assert!(after.rate > before.rate.scale(0.6), "{name}: {}", after.rate);
    }
}

/// An end that receives sends ACKs, which get none. That is no congestion.
#[test]
fn acks_without_data_do_not_change_the_target() {
    let mut world = run(link().reverse_capacity(LINK), "drc", Source::Download, 10);
    let target = world.target().unwrap();
    assert_eq!((target.rate, world.client().stats().path.lost_packets), (setup().start, 0));
    assert!(world.client().stats().path.sent_packets > 500);
}

/// A queue that marks ECT(0) and drops nothing: the delay is less than half of that in a FIFO queue, with the same controller.
#[test]
fn marks_reach_the_controller() {
    let judge = |name, source, has_marks| {
        let mut path = link();
        if has_marks {
            path = path.queue("codel");
            let queue = &mut path.hops[0].queue;
            queue.values = Values::new(queue.discipline.parameters, &[("ecn", Value::Flag(true))]);
        }
        let mut world = run(path, name, source, 20);
        let path = world.client().stats().path;
        let stats = world.path.stats(Direction::Forward);
        let (used, queue) = (stats.rate(S(5), S(19)), stats.queue_delay(S(5), S(19), 95));
        println!("{name}: {used} {queue:?}, {} marks, {} lost", path.congestion_events, path.lost_packets);
        (used.as_bps_f64() / LINK.as_bps_f64(), queue, path.congestion_events, path.lost_packets)
    };
    let (used, queue, marks, lost) = judge("scream-v2", Source::Bulk, true);
    assert!(used > 0.85 && marks > 3 && lost == 0);
    let (fifo_used, fifo_queue, fifo_marks, fifo_lost) = judge("scream-v2", Source::Bulk, false);
    assert!(fifo_used > 0.95 && (fifo_marks, fifo_lost) == (0, 0));
    assert!(queue < fifo_queue / 2, "{queue:?} {fifo_queue:?}");
    let (_, queue, marks, _) = judge("fixed", Source::Encoder, true);
    assert!(queue > MS(100) && marks > 100, "it ignores marks: {queue:?}");
}

#[test]
fn handle_follows_a_change_of_the_path() {
    let base = world::origin();
    let (config, encoder) = ControllerConfig::new("drc", &setup()).unwrap().for_connection(base);
    let mut world = World::new(link(), Source::Encoder, base, config);
    world.run(S(10));
    let before = encoder.target();
    assert_eq!(Some(before), world.target());
    assert!(before.rate > KBPS(3000));
    let now = before.updated;
    world.client().path_changed(now);
    assert_eq!(encoder.target().rate, setup().start);
    world.run(S(20));
    assert!(encoder.target().rate > KBPS(3000) && encoder.target().updated > now);
}

#[test]
fn handles_of_connections_are_separate_and_shared_by_threads() {
    fn is_shared<T: Clone + Send + Sync>() {}
    is_shared::<Encoder>();
    is_shared::<Target>();
    let now = world::origin();
    let cubic = Arc::new(CubicConfig::default()).build(now, 1200);
    assert!(Encoder::of(cubic).is_none());
    let config = Arc::new(ControllerConfig::new("drc", &setup()).unwrap());
    let [first, second] = [(); 2].map(|()| config.clone().build(now, 1200));
    assert_eq!(Encoder::of(first.clone_box()).unwrap().target(), Encoder::of(second).unwrap().target());
    // 10 packets at most before the first round-trip time, although 1 Mbit/s would be more.
    assert_eq!((first.window(), first.initial_window()), (14_720, 14_720));
}

#[test]
fn controllers_without_packet_reports_are_refused() {
    let error = |name| ControllerConfig::new(name, &setup()).unwrap_err();
    assert!(matches!(error("gcc-2016"), ConfigError::NeedsReceiver(_)));
    assert!(error("nada").to_string().starts_with("`nada` needs a receive half; in QUIC use one"));
    assert!(error("bbr").to_string().starts_with("there is no controller `bbr`; known: "));
}
