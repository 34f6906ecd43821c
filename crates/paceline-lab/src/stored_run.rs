//! The whole result of a run in a file of its folder, so that an interrupted `run` or `compare` can continue. The document of a run
//! has only what readers see.

use crate::metrics::{Pooled, WindowResult, find};
use crate::run_result::RunResult;
use paceline_netsim::records::{HostStats, Program};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

pub(crate) const FILE: &str = "resume.json";

#[derive(Serialize, Deserialize)]
struct StoredRun {
    world: String,
    seed: u64,
    duration_s: f64,
    trace_hash: String,
    wall_s: f64,
    events: u64,
    delivered: u64,
    machine: Option<HostStats>,
    programs: Vec<Program>,
    /// The whole run, then each window.
    windows: Vec<StoredWindow>,
    seconds: Vec<Vec<u64>>,
}

#[derive(Serialize, Deserialize)]
struct StoredWindow {
    shown: WindowResult,
    pooled: Pooled,
    own: BTreeMap<String, Vec<Option<f64>>>,
}

impl StoredWindow {
    fn of(window: &WindowResult) -> Self {
        let own = window.own.iter().map(|(id, values)| ((*id).to_owned(), values.clone())).collect();
        Self { shown: window.clone(), pooled: window.pooled.clone(), own }
    }

    fn window(self) -> Option<WindowResult> {
        let Self { mut shown, pooled, own } = self;
        shown.pooled = pooled;
        shown.own = own.into_iter().map(|(id, values)| Some((find(&id)?.id, values))).collect::<Option<_>>()?;
        Some(shown)
    }
}

/// The contents of the file.
#[derive(Serialize, Deserialize)]
struct Checked {
    /// The BLAKE3 hash of the run as JSON, as hexadecimal digits.
    checksum: String,
    run: StoredRun,
}

impl Checked {
    fn checksum(run: &StoredRun) -> String {
        blake3::hash(&serde_json::to_vec(run).expect("names and numbers become JSON")).to_hex().to_string()
    }
}

pub(crate) fn text(run: &RunResult) -> Vec<u8> {
    let run = StoredRun {
        world: run.world.clone(),
        seed: run.seed,
        duration_s: run.duration_s,
        trace_hash: run.trace_hash.clone(),
        wall_s: run.wall_s,
        events: run.events,
        delivered: run.delivered,
        machine: run.machine.clone(),
        programs: run.programs.clone(),
        windows: std::iter::once(&run.whole).chain(&run.windows).map(StoredWindow::of).collect(),
        seconds: run.seconds.clone(),
    };
    let checksum = Checked::checksum(&run);
    serde_json::to_vec(&Checked { checksum, run }).expect("names and numbers become JSON")
}

/// Reads the result in the folder of a run; `None` if there is none, or not the one that was written.
pub(crate) fn read(folder: &Path) -> Option<RunResult> {
    let checked: Checked = serde_json::from_slice(&std::fs::read(folder.join(FILE)).ok()?).ok()?;
    let stored = Some(checked.run).filter(|run| Checked::checksum(run) == checked.checksum)?;
    let mut windows = stored.windows.into_iter().map(StoredWindow::window).collect::<Option<Vec<_>>>()?.into_iter();
    Some(RunResult {
        delivered: stored.delivered,
        world: stored.world,
        seed: stored.seed,
        duration_s: stored.duration_s,
        trace_hash: stored.trace_hash,
        wall_s: stored.wall_s,
        events: stored.events,
        machine: stored.machine,
        programs: stored.programs,
        whole: windows.next()?,
        windows: windows.collect(),
        seconds: stored.seconds,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Runner;
    use paceline::Registry;
    use paceline_scenario::{Catalogue, Changes};

    #[test]
    fn a_result_is_read_as_it_was_written() {
        let registry = Registry::standard();
        let changes = Changes { settings: vec!["duration=20s".parse().unwrap()], ..Changes::default() };
        for id in ["mmsys16/table1", "mmsys16/table5", "wifi/fq-codel"] {
            let Ok(origin) = Catalogue.find(id) else { continue };
            let scenario = crate::load(&origin, &changes, &registry).unwrap();
            let run = Runner::simulator(&registry).run(&scenario, 1, None).unwrap();
            let folder = tempfile::tempdir().unwrap();
            let folder = folder.path();
            std::fs::write(folder.join(FILE), text(&run)).unwrap();
            assert_eq!(read(folder).as_ref(), Some(&run), "{id}");
            let other = String::from_utf8(text(&run)).unwrap().replacen("\"seed\":1", "\"seed\":2", 1);
            for damaged in ["{}", &other] {
                std::fs::write(folder.join(FILE), damaged).unwrap();
                assert_eq!(read(folder), None);
            }
        }
    }
}
