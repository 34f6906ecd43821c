// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rate for an encoder over time, and what the link had: `cargo run --release -p paceline-quinn --example encoder_rate`.
//!
//! Under quinn's CUBIC the encoder follows window / round-trip time, as programs for Media over QUIC do (moq-dev/moq, issue 2847). Under
//! a controller of Paceline it follows the target. Arguments name other controllers.

#[allow(dead_code, reason = "the tests use the rest")]
#[path = "../tests/link/world.rs"]
mod world;

use paceline_netsim::link::queue::QueueLimit;
use paceline_netsim::path::Path;
use paceline_quinn::units::{Rate, Time, TimeDelta};
use paceline_quinn::{ControllerConfig, paceline::Setup};
use quinn_proto::congestion::{BbrConfig, ControllerFactory, CubicConfig};
use std::error::Error;
use std::sync::Arc;
use world::{MAX, Second, Source, World};

/// From this second on: the link, the encoder, and what happens.
const STEPS: [(i64, u64, Source, &str); 4] = [
    (0, 5000, Source::Encoder, "5 Mbit/s"),
    (20, 5000, Source::Limited(Rate::from_kbps(1000)), "a still picture needs 1 Mbit/s"),
    (40, 2000, Source::Encoder, "2 Mbit/s"),
    (60, 5000, Source::Encoder, "5 Mbit/s"),
];
const END: i64 = 80;
/// The table has a row for each of these times.
const ROW: usize = 4;

fn factory(name: &str) -> Result<Arc<dyn ControllerFactory + Send + Sync>, Box<dyn Error>> {
    let setup = Setup::new(Rate::from_kbps(1000), Rate::from_kbps(100), MAX);
    Ok(match name {
        "cubic" => Arc::new(CubicConfig::default()),
        "bbr" => Arc::new(BbrConfig::default()),
        _ => Arc::new(ControllerConfig::new(name, &setup)?),
    })
}

/// Returns what was seen in each second.
fn call(name: &str) -> Result<Vec<Second>, Box<dyn Error>> {
    let ms = TimeDelta::from_millis;
    let path = Path::builder().capacity(MAX).rtt(ms(50)).queue_limit(QueueLimit::DrainTime(ms(500)));
    let mut world = World::new(path, Source::Encoder, world::origin(), factory(name)?);
    let ends = STEPS.iter().skip(1).map(|step| step.0).chain([END]);
    for (&(_, link, source, _), end) in STEPS.iter().zip(ends) {
        world.change_capacity(Rate::from_kbps(link));
        world.source = source;
        world.run(Time::from_secs(end));
    }
    Ok(world.seconds)
}

fn main() -> Result<(), Box<dyn Error>> {
    let names: Vec<String> = std::env::args().skip(1).collect();
    let names = if names.is_empty() { vec!["cubic".to_owned(), "drc".to_owned()] } else { names };
    let calls = names.iter().map(|name| call(name)).collect::<Result<Vec<_>, _>>()?;
    print!("             ");
    names.iter().for_each(|name| print!("  | {name:<27}"));
    print!("\n   time  link");
    names.iter().for_each(|_| print!("  | rate   used  queue        "));
    println!("   Mbit/s; ms, 95th percentile");
    for second in (ROW - 1..END as usize).step_by(ROW) {
        let step = STEPS.iter().rev().find(|step| step.0 as usize <= second).unwrap_or(&STEPS[0]);
        if step.0 as usize + ROW > second {
            println!("  {}", step.3);
        }
        print!("  {:3} s  {:4.1}", second + 1, step.1 as f64 / 1e3);
        for seconds in &calls {
            let Second { target, used, queue, limited } = seconds[second];
            let [target, used] = [target, used].map(|rate| rate.as_bps_f64() / 1e6);
            print!(
                "  | {target:4.1}  {used:5.1}  {:5.0}  {}",
                queue.as_millis_f64(),
                if limited { "limited" } else { "       " }
            );
        }
        println!();
    }
    Ok(())
}
