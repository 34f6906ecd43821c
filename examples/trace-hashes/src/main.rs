//! Prints the trace hash of `mmsys16/table1` and of one busy run per registered controller, as lines `name hash`.
//! `cargo xtask test architectures` builds this program for other architectures and compares the lines.

use paceline::Registry;
use paceline_netsim::backend::Backend;
use paceline_netsim::sim::Simulator;
use paceline_scenario::{Catalogue, Changes, Origin};
use std::error::Error;

/// A run that draws and rounds in every part: clock drift, audio, jitter, both loss models, TCP of each kind.
const BUSY: &str = include_str!("busy.toml");

fn main() -> Result<(), Box<dyn Error>> {
    let registry = Registry::standard();
    let print = |name: &str, origin: &Origin, controller: Option<&str>| -> Result<(), Box<dyn Error>> {
        let changes = Changes { controller: controller.map(str::to_owned), ..Changes::default() };
        let scenario = paceline_scenario::load(origin, &changes, &registry)?;
        let outcome = Simulator.run(&scenario.plan, &registry, 1, &mut ())?;
        println!("{name} {:016x}", outcome.trace_hash);
        Ok(())
    };
    print("mmsys16/table1", &Catalogue.find("mmsys16/table1")?, None)?;
    let busy = Origin::from_text("busy.toml", BUSY);
    for entry in registry.iter() {
        print(entry.name(), &busy, Some(entry.name()))?;
    }
    Ok(())
}
