// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prints two hashes of `mmsys16/table1` and of one busy run per registered controller, as lines `name trace signals`.
//! `cargo xtask test architectures` builds this program for other architectures and compares the lines.

use paceline::Registry;
use paceline_netsim::records::{EventObserver, EventRecord};
use paceline_netsim::sim::Simulator;
use paceline_netsim::world::World;
use paceline_scenario::{Catalogue, Changes, Origin};
use std::error::Error;
use xxhash_rust::xxh3::Xxh3;

/// A run that draws and rounds in every part: clock drift, audio, jitter, both loss models, TCP of each kind.
const BUSY: &str = include_str!("busy.toml");

/// A hash over the bits of every signal. Decisions are rounded to nanoseconds and bits per second, so the trace hash alone would
/// rarely show a difference in the last bit of a floating-point result.
#[derive(Default)]
struct SignalHash(Xxh3);

impl EventObserver for SignalHash {
    fn on_event(&mut self, event: &EventRecord) {
        if let EventRecord::Signal { value, .. } = event {
            self.0.update(&value.to_bits().to_le_bytes());
        }
    }

    fn wants_signals(&self) -> bool {
        true
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let registry = Registry::standard();
    let print = |name: &str, origin: &Origin, controller: Option<&str>| -> Result<(), Box<dyn Error>> {
        let changes = Changes { controller: controller.map(str::to_owned), ..Changes::default() };
        let scenario = paceline_scenario::load(origin, &changes, &registry)?;
        let mut signals = SignalHash::default();
        let outcome = Simulator.run(&scenario.plan, &registry, 1, &mut signals)?;
        println!("{name} {:016x} {:016x}", outcome.trace_hash, signals.0.digest());
        Ok(())
    };
    print("mmsys16/table1", &Catalogue.find("mmsys16/table1")?, None)?;
    let busy = Origin::from_text("busy.toml", BUSY);
    for entry in registry.iter() {
        print(entry.name(), &busy, Some(entry.name()))?;
    }
    Ok(())
}
