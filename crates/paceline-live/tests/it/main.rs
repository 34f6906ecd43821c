// SPDX-License-Identifier: MIT OR Apache-2.0
//! Controllers outside the program, and the fuzz targets.

#[cfg(unix)]
mod exec;
mod fuzz;
#[cfg(unix)]
mod library;

#[cfg(unix)]
mod runs {
    use paceline::Registry;
    use paceline_live::external::entry;
    use paceline_netsim::sim::Simulator;
    use paceline_netsim::world::{World, WorldError};
    use paceline_scenario::{Catalogue, Changes};
    use std::path::PathBuf;

    pub const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

    /// Returns the trace hash of `mmsys16/table1` under a controller, with settings.
    pub fn run_for(controller: &str, duration: &str, seed: u64, settings: &[&str]) -> Result<u64, WorldError> {
        let mut registry = Registry::standard();
        if registry.get(controller).is_none() {
            registry.add(entry(controller).unwrap_or_else(|error| panic!("{error}")));
        }
        let duration = format!("duration={duration}");
        let settings = settings.iter().chain([&&*duration]).map(|setting| setting.parse().unwrap()).collect();
        let changes = Changes { controller: Some(controller.to_owned()), settings, ..Changes::default() };
        let origin = Catalogue.find("mmsys16/table1").unwrap();
        let scenario = paceline_scenario::load(&origin, &changes, &registry).unwrap();
        Ok(Simulator.run(&scenario.plan, &registry, seed, &mut ())?.trace_hash)
    }

    /// Returns the path of an example of this crate, which `cargo test` has built.
    pub fn example(name: &str) -> PathBuf {
        let mut path = std::env::current_exe().unwrap();
        path.pop();
        path.set_file_name("examples");
        path.join(name)
    }

    /// Checks that a port of `gcc-2016` has its trace hashes. It has the defaults of the controller, which are without the start-up
    /// probe of mmsys16.
    pub fn check_port(port: &str) {
        let hash =
            |controller: &str, seed| run_for(controller, "200s", seed, &["media.config.start_probes=0"]).unwrap();
        let hashes = [1, 2].map(|seed| hash(port, seed));
        assert_eq!(hashes, [1, 2].map(|seed| hash("gcc-2016", seed)));
        assert_ne!(hashes[0], hashes[1]);
    }

    /// Returns why a name is refused.
    pub fn refusal(name: &str) -> String {
        entry(name).err().map(|error| error.to_string()).unwrap()
    }
}
