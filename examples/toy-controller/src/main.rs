// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs an example controller and a registered one on the same scenario: `cargo run --release -p toy-controller`.

mod toy;

use paceline::Registry;
use paceline_lab::run::{Runner, RunsResult};
use paceline_scenario::{self, Catalogue, Changes};
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    for name in ["toy", "gcc-2016"] {
        let result = run(name, &[1, 2, 3])?;
        let (used, queue) = (result.summary["utilization"], result.summary["queue_p95_ms"]);
        println!("{name:10} utilisation {:5.1} %   queue p95 {:6.1} ms", used.mean * 100.0, queue.mean);
    }
    Ok(())
}

/// Runs the scenario `mmsys16/table1` under a controller.
fn run(controller: &str, seeds: &[u64]) -> Result<RunsResult, Box<dyn Error>> {
    let mut registry = Registry::standard();
    registry.add(toy::entry());
    let changes = Changes { controller: Some(controller.to_owned()), ..Changes::default() };
    let scenario = paceline_scenario::load(&Catalogue.find("mmsys16/table1")?, &changes, &registry)?;
    Ok(Runner::simulator(&registry).run_all(&scenario, seeds)?)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_toy_controller_uses_most_of_the_link() {
        let used = super::run("toy", &[1]).unwrap().summary["utilization"].mean;
        assert!((0.7..0.95).contains(&used), "{used}");
    }
}
