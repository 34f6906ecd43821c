// SPDX-License-Identifier: MIT OR Apache-2.0
//! quinn's state machine under controllers of Paceline and under its own, over a simulated path.

mod world;

use paceline_netsim::link::queue::QueueLimit;
use paceline_netsim::path::{Direction, Path, PathBuilder};
use paceline_quinn::units::{Rate, Time, TimeDelta};
use paceline_quinn::{ControllerConfig, paceline::Setup};
use quinn_proto::congestion::{ControllerFactory, CubicConfig};
use std::sync::Arc;
use world::{MAX, Source, World};

const MS: fn(i64) -> TimeDelta = TimeDelta::from_millis;
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

/// The share of the link that is used, and the 95th percentile of the queue in ms, after 10 s of 40.
fn judge(name: &str, source: Source) -> (f64, f64) {
    let mut world = World::new(link(), source, world::origin(), factory(name));
    world.run(Time::from_secs(40));
    let stats = world.path.stats(Direction::Forward);
    let (from, to) = (Time::from_secs(10), Time::from_secs(40) - MS(25));
    let result =
        (stats.rate(from, to).as_bps_f64() / LINK.as_bps_f64(), stats.queue_delay(from, to, 95).as_millis_f64());
    println!("{name} {source:?}: {:.3} of the link, p95 of the queue {:.1} ms", result.0, result.1);
    for (n, second) in world.seconds.iter().enumerate().filter(|(n, _)| n % 5 == 4) {
        println!("  {n} {second:?}");
    }
    result
}

#[test]
fn show() {
    for name in ["cubic", "drc", "scream-v2", "googcc", "gcc-tfb", "nada-sender", "fixed"] {
        for source in [Source::Encoder, Source::Bulk] {
            judge(name, source);
        }
    }
}
