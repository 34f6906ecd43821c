// SPDX-License-Identifier: MIT OR Apache-2.0
//! The time of a controller for each packet: `cargo run --release -p paceline-quinn --example cost`.
//!
//! The calls that quinn makes in a call of 60 s are recorded, and replayed with each controller in turn.

#[allow(dead_code, reason = "the tests use the rest")]
#[path = "../tests/link/world.rs"]
mod world;

use paceline_netsim::path::Path;
use paceline_quinn::units::{Rate, Time, TimeDelta};
use paceline_quinn::{ControllerConfig, paceline::Setup};
use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerFactory, CubicConfig, NewRenoConfig};
use std::any::Any;
use std::error::Error;
use std::hint::black_box;
use std::sync::{Arc, Mutex};
use std::time::Instant;
use world::{MAX, Source, World};

/// The rounds. Of each part of the calls the fastest round counts, because other programs disturbed the others.
const ROUNDS: usize = 15;
/// The calls of a part, which takes about 0.1 ms: less than the time that a scheduler gives to a process.
const PART: usize = 2000;

enum Call {
    Sent(Instant, u64, u64),
    Ack(Instant, Instant, u64, bool, RttEstimator),
    EndAcks(Instant, u64, bool, Option<u64>),
    Congestion(Instant, Instant, bool, u64),
    Mtu(u16),
}

/// Records the calls.
struct Recorder {
    inner: Box<dyn Controller>,
    calls: Arc<Mutex<Vec<Call>>>,
}

impl Recorder {
    fn record(&self, call: Call) {
        self.calls.lock().expect("no panic").push(call);
    }
}

impl Controller for Recorder {
    fn on_sent(&mut self, now: Instant, bytes: u64, number: u64) {
        self.record(Call::Sent(now, bytes, number));
        self.inner.on_sent(now, bytes, number);
    }
    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, limited: bool, rtt: &RttEstimator) {
        self.record(Call::Ack(now, sent, bytes, limited, *rtt));
        self.inner.on_ack(now, sent, bytes, limited, rtt);
    }
    fn on_end_acks(&mut self, now: Instant, in_flight: u64, limited: bool, largest: Option<u64>) {
        self.record(Call::EndAcks(now, in_flight, limited, largest));
        self.inner.on_end_acks(now, in_flight, limited, largest);
    }
    fn on_congestion_event(&mut self, now: Instant, sent: Instant, persistent: bool, lost: u64) {
        self.record(Call::Congestion(now, sent, persistent, lost));
        self.inner.on_congestion_event(now, sent, persistent, lost);
    }
    fn on_mtu_update(&mut self, mtu: u16) {
        self.record(Call::Mtu(mtu));
        self.inner.on_mtu_update(mtu);
    }
    fn window(&self) -> u64 {
        self.inner.window()
    }
    fn clone_box(&self) -> Box<dyn Controller> {
        self.inner.clone_box()
    }
    fn initial_window(&self) -> u64 {
        self.inner.initial_window()
    }
    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

struct RecorderConfig(Arc<ControllerConfig>, Arc<Mutex<Vec<Call>>>);

impl ControllerFactory for RecorderConfig {
    fn build(self: Arc<Self>, now: Instant, mtu: u16) -> Box<dyn Controller> {
        Box::new(Recorder { inner: self.0.clone().build(now, mtu), calls: self.1.clone() })
    }
}

fn replay(calls: &[Call], controller: &mut dyn Controller) {
    for call in calls {
        match *call {
            // quinn reads the window for the limit and for the pacer.
            Call::Sent(now, bytes, number) => {
                black_box(controller.window() + controller.window());
                controller.on_sent(now, bytes, number);
            }
            Call::Ack(now, sent, bytes, limited, ref rtt) => controller.on_ack(now, sent, bytes, limited, rtt),
            Call::EndAcks(now, in_flight, limited, largest) => controller.on_end_acks(now, in_flight, limited, largest),
            Call::Congestion(now, sent, persistent, lost) => {
                controller.on_congestion_event(now, sent, persistent, lost)
            }
            Call::Mtu(mtu) => controller.on_mtu_update(mtu),
        }
    }
    black_box(controller.window());
}

fn config(name: &str) -> Result<Arc<ControllerConfig>, Box<dyn Error>> {
    Ok(Arc::new(ControllerConfig::new(name, &Setup::new(Rate::from_kbps(1000), Rate::from_kbps(100), MAX))?))
}

fn main() -> Result<(), Box<dyn Error>> {
    let calls = Arc::new(Mutex::new(Vec::new()));
    let base = world::origin();
    let path = Path::builder().capacity(Rate::from_kbps(5000)).rtt(TimeDelta::from_millis(50)).loss(0.002);
    let recorder = Arc::new(RecorderConfig(config("drc")?, calls.clone()));
    let mut world = World::new(path, Source::Encoder, base, recorder);
    world.run(Time::from_secs(60));
    drop(world);
    let calls = std::mem::take(&mut *calls.lock().expect("no panic"));
    let packets = calls.iter().filter(|call| matches!(call, Call::Ack(..))).count();
    let names = ["drc", "scream-v2", "nada-sender", "gcc-tfb", "googcc"];
    let mut factories: Vec<(&str, Arc<dyn ControllerFactory>)> = vec![
        ("quinn's CUBIC", Arc::new(CubicConfig::default())),
        ("quinn's NewReno", Arc::new(NewRenoConfig::default())),
    ];
    for name in names {
        factories.push((name, config(name)?));
    }
    let mut best = vec![vec![f64::MAX; calls.len().div_ceil(PART)]; factories.len()];
    for _ in 0..ROUNDS {
        for ((_, factory), best) in factories.iter().zip(&mut best) {
            let mut controller = factory.clone().build(base, 1200);
            for (part, best) in calls.chunks(PART).zip(best) {
                let began = world::origin();
                replay(part, &mut *controller);
                *best = best.min(began.elapsed().as_nanos() as f64);
            }
        }
    }
    let best: Vec<f64> = best.iter().map(|parts| parts.iter().sum::<f64>() / packets as f64).collect();
    println!("{packets} packets, {} calls; ns per packet, and more than CUBIC", calls.len());
    for ((name, _), ns) in factories.iter().zip(&best) {
        println!("{name:16} {ns:6.1}  {:+6.1}", ns - best[0]);
    }
    Ok(())
}
