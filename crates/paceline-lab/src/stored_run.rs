// SPDX-License-Identifier: MIT OR Apache-2.0
//! The whole result of a run in a file of its folder, so that an interrupted `run` or `compare` can continue. The document of a run
//! has only what readers see.

use crate::metrics::{Pooled, WindowResult, find};
use crate::run_result::RunResult;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

pub(crate) const FILE: &str = "resume.json";

/// A run with what its document leaves out.
#[derive(Serialize, Deserialize)]
struct StoredRun {
    run: RunResult,
    windows: Vec<WindowResult>,
    /// Of the whole run, then of each window.
    hidden: Vec<Hidden>,
    seconds: Vec<Vec<u64>>,
    delivered: u64,
}

/// What the document of a window leaves out.
#[derive(Serialize, Deserialize)]
struct Hidden {
    pooled: Pooled,
    own: BTreeMap<String, Vec<Option<f64>>>,
}

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
    let hidden = |window: &WindowResult| Hidden {
        pooled: window.pooled.clone(),
        own: window.own.iter().map(|(id, values)| ((*id).to_owned(), values.clone())).collect(),
    };
    let run = StoredRun {
        run: run.clone(),
        windows: run.windows.clone(),
        hidden: std::iter::once(&run.whole).chain(&run.windows).map(hidden).collect(),
        seconds: run.seconds.clone(),
        delivered: run.delivered,
    };
    let checksum = Checked::checksum(&run);
    serde_json::to_vec(&Checked { checksum, run }).expect("names and numbers become JSON")
}

/// Reads the result in the folder of a run; `None` if there is none, or not the one that was written.
pub(crate) fn read(folder: &Path) -> Option<RunResult> {
    let checked: Checked = serde_json::from_slice(&std::fs::read(folder.join(FILE)).ok()?).ok()?;
    let stored = Some(checked.run).filter(|run| Checked::checksum(run) == checked.checksum)?;
    let StoredRun { run, windows, hidden, seconds, delivered } = stored;
    let mut run = RunResult { windows, seconds, delivered, ..run };
    for (window, hidden) in std::iter::once(&mut run.whole).chain(&mut run.windows).zip(hidden) {
        let own = hidden.own.into_iter().map(|(id, values)| Some((find(&id)?.id, values)));
        (window.pooled, window.own) = (hidden.pooled, own.collect::<Option<_>>()?);
    }
    Some(run)
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
