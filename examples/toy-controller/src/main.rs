//! Runs a controller of one's own beside a registered one: `cargo run --release -p toy-controller`.

mod toy;

use paceline::Registry;
use paceline_lab::run::Runner;
use paceline_lab::scenario::{self, Catalogue, Changes};
use paceline_lab::sim::Simulator;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut registry = Registry::standard();
    registry.add(toy::entry());

    let runner = Runner { world: &Simulator, registry: &registry, clock: &|| 0.0, ticked: &|| () };
    let origin = Catalogue.find("mmsys16/table1")?;
    for name in ["toy", "gcc-2016"] {
        let changes = Changes { controller: Some(name.to_owned()), ..Changes::default() };
        let plan = scenario::load(&origin, &changes, &registry)?;
        let result = runner.run_all(&plan, &[1, 2, 3])?;
        let (used, queue) = (result.summary["utilization"], result.summary["queue_p95_ms"]);
        println!("{name:10} utilisation {:5.1} %   queue p95 {:6.1} ms", used.mean * 100.0, queue.mean);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_controller_of_ones_own_fills_the_link() {
        let mut registry = Registry::standard();
        registry.add(toy::entry());
        let runner = Runner { world: &Simulator, registry: &registry, clock: &|| 0.0, ticked: &|| () };
        let changes = Changes { controller: Some("toy".to_owned()), ..Changes::default() };
        let plan = scenario::load(&Catalogue.find("mmsys16/table1").unwrap(), &changes, &registry).unwrap();
        let result = runner.run(&plan, 1, None).unwrap();
        let used = result.whole.link.utilization.unwrap();
        assert!((0.7..0.95).contains(&used), "{used}");
    }
}
