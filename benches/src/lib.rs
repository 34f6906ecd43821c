// SPDX-License-Identifier: MIT OR Apache-2.0
//! The work that `speed` measures.

mod gym_loop;
mod send_loop;

pub use gym_loop::GymLoop;
pub use send_loop::{PACKET, Scripted, SendLoop};

use paceline::{Arrival, ReceiveHalf, Registry, Setup, Signals};
use paceline_lab::run::{RunResult, Runner};
use paceline_scenario::Scenario;
use paceline_scenario::{self, Catalogue, Changes, Origin};
use paceline_units::{DataSize, Rate, RemoteTime, Time, TimeDelta};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;

/// A scenario, ready to run.
pub struct Simulation {
    registry: Registry,
    scenario: Scenario,
}

/// One bulk CUBIC flow over 2 Mbit/s, 100 ms each way, a queue of 300 ms.
const ONE_CUBIC: &str = r#"
id = "bench/cubic"
title = "One CUBIC flow"
duration = "200s"
[path]
rtt = "200ms"
[path.forward]
capacity = "2Mbps"
queue = { limit = "300ms" }
[[flow]]
id = "tcp"
kind = "tcp"
congestion = "cubic"
"#;

/// One video flow of a controller over 2 Mbit/s, with feedback as the controller asks for it.
const ONE_VIDEO: &str = r#"
id = "bench/video"
title = "One video flow"
duration = "200s"
[path]
rtt = "50ms"
[path.forward]
capacity = "2Mbps"
queue = { limit = "300ms" }
[[flow]]
id = "video"
controller = "gcc-2016"
encoder = { max = "2500kbps" }
"#;

impl Simulation {
    /// One GCC flow: `mmsys16/table1`.
    pub fn one_gcc() -> Self {
        Self::of(&Catalogue.find("mmsys16/table1").expect("it is shipped"), &[])
    }

    /// One video flow over 2 Mbit/s under this controller.
    pub fn one_video(controller: &str) -> Self {
        Self::of(&Origin::from_text("video.toml", ONE_VIDEO), &[&format!("flow.video.controller={controller}")])
    }

    /// One CUBIC flow.
    pub fn one_cubic() -> Self {
        Self::of(&Origin::from_text("cubic.toml", ONE_CUBIC), &[])
    }

    /// A hundred flows: the part of `mmsys16/table4` in which 99 CUBIC flows are there beside a GCC flow, 200 s in the paper.
    pub fn a_hundred(seconds: u64) -> Self {
        let origin = Catalogue.find("mmsys16/table4").expect("it is shipped");
        let [duration, stop] = ["duration", "flow.tcp.stop"].map(|key| format!("{key}={seconds}s"));
        Self::of(&origin, &[&duration, "flow.tcp.start=0s", &stop])
    }

    fn of(origin: &Origin, settings: &[&str]) -> Self {
        let settings = settings.iter().map(|s| s.parse().expect("KEY=VALUE")).collect();
        let registry = Registry::standard();
        let changes = Changes { settings, ..Changes::default() };
        let scenario = paceline_scenario::load(origin, &changes, &registry).expect("it is sound");
        Self { registry, scenario }
    }

    /// How long a run lasts, in its own time.
    pub fn duration(&self) -> TimeDelta {
        self.scenario.plan.duration
    }

    /// One run: metrics and trace hash on, nothing written.
    pub fn run(&self, seed: u64) -> RunResult {
        black_box(Runner::simulator(&self.registry).run(&self.scenario, seed, None).expect("the scenario is sound"))
    }
}

/// The receive half of `gcc-2016` under a steady arrival of 1.2 Mbit/s in frames of four packets.
pub struct ReceiveLoop {
    half: Box<dyn ReceiveHalf>,
    signals: Signals,
    packets: u64,
}

impl ReceiveLoop {
    const PER_FRAME: u64 = 4;

    /// A fresh half.
    pub fn new(registry: &Registry) -> Self {
        let setup = Setup::new(Rate::from_kbps(300), Rate::from_kbps(30), Rate::from_kbps(2000));
        let entry = registry.get("gcc-2016").expect("it is standard");
        let controller = entry.build(&setup, &[]).expect("its defaults are sound");
        Self { half: controller.receive.expect("it has one"), signals: Signals::disabled(), packets: 0 }
    }

    /// The next packet arrives; what the half has to say is taken.
    pub fn step(&mut self) {
        let (frame, part) = (self.packets / Self::PER_FRAME, self.packets % Self::PER_FRAME);
        let sent = Time::from_nanos(frame as i64 * 33_333_333 + part as i64 * 5_000_000);
        // Up to 2 ms of queue that comes and goes, so that filter and threshold have something to follow.
        let waited = TimeDelta::from_nanos((frame % 41) as i64 * 50_000);
        let now = RemoteTime::from_nanos(sent.as_nanos()) + TimeDelta::from_millis(50) + waited;
        let arrival = Arrival::new((frame * 3000) as u32, self.packets as u16, DataSize::from_bytes(1250))
            .with_sent(Some(sent))
            .with_media(paceline::MediaKind::Video);
        self.packets += 1;
        self.half.handle_arrival(now, &arrival, &mut self.signals);
        while let Some(message) = self.half.poll_message(now) {
            black_box(message);
        }
    }
}

/// A heap of event keys, with which to compare the event queue of the simulator.
pub struct BareHeap {
    heap: BinaryHeap<Reverse<u128>>,
    random: u64,
}

impl BareHeap {
    /// With this many keys pending.
    pub fn new(pending: usize) -> Self {
        let mut bare = Self { heap: BinaryHeap::new(), random: 1 };
        for _ in 0..pending {
            let key = bare.later(0);
            bare.heap.push(Reverse(key));
        }
        bare
    }

    /// Takes the earliest and puts in another, some time after it.
    pub fn step(&mut self) {
        let Reverse(key) = self.heap.pop().expect("as many come as go");
        let next = self.later(key);
        self.heap.push(Reverse(black_box(next)));
    }

    fn later(&mut self, key: u128) -> u128 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        key + (u128::from(self.random % 20_000_000) << 64)
    }
}
