// SPDX-License-Identifier: MIT OR Apache-2.0
//! A world in real time for tests: the simulator, with a longer queuing delay at the first hop and a load of the host.

use paceline::Registry;
use paceline_netsim::plan::Plan;
use paceline_netsim::records::{EventObserver, EventRecord, HostStats, TappedPacket};
use paceline_netsim::sim::Simulator;
use paceline_netsim::world::{Outcome, World, WorldError};
use paceline_units::TimeDelta;
use std::sync::Mutex;

pub struct AlteredSimulator {
    pub name: &'static str,
    pub longer: TimeDelta,
    /// Load of the host in the run of a seed.
    pub machine: fn(u64) -> Option<HostStats>,
    /// Seed at the begin and at the end of each run.
    pub seeds: Mutex<Vec<u64>>,
}

impl AlteredSimulator {
    /// Creates a world that differs from the simulator only in its name and in real time.
    pub fn named(name: &'static str) -> Self {
        Self { name, longer: TimeDelta::ZERO, machine: |_| None, seeds: Mutex::default() }
    }

    pub fn run_count(&self) -> usize {
        self.seeds.lock().unwrap().len() / 2
    }
}

struct Longer<'a>(&'a mut dyn EventObserver, TimeDelta);

impl EventObserver for Longer<'_> {
    fn on_event(&mut self, event: &EventRecord) {
        let mut event = *event;
        if let EventRecord::Crossed { hop: 0, waited, .. } = &mut event {
            *waited += self.1;
        }
        self.0.on_event(&event);
    }
    fn wants_signals(&self) -> bool {
        self.0.wants_signals()
    }
    fn wants_taps(&self) -> bool {
        self.0.wants_taps()
    }
    fn on_tap(&mut self, packet: &TappedPacket<'_>) {
        self.0.on_tap(packet);
    }
}

impl World for AlteredSimulator {
    fn name(&self) -> &'static str {
        self.name
    }
    fn real_time(&self) -> bool {
        true
    }
    fn run(
        &self,
        plan: &Plan,
        registry: &Registry,
        seed: u64,
        observer: &mut dyn EventObserver,
    ) -> Result<Outcome, WorldError> {
        self.seeds.lock().unwrap().push(seed);
        let outcome = Simulator.run(plan, registry, seed, &mut Longer(observer, self.longer))?;
        self.seeds.lock().unwrap().push(seed);
        Ok(Outcome { machine: (self.machine)(seed), ..outcome })
    }
}
