//! The list of runs of a folder, and what each run's own folder says of it.

use super::files::{self, Prepared, Temporary};
use super::{RunManifest, StoreError, StoredGroup};
use crate::rows::RunHeader;
use crate::sim::Simulator;
use crate::world::World;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Component, Path};

/// Name of the manifest in its folder.
pub const MANIFEST_FILE: &str = "manifest.json";
/// Name of the file in a run's folder that says what the run is.
pub(super) const ABOUT_FILE: &str = "about.json";

/// Name of the file in a run's folder that says what it came to.
pub(super) const RESULT_FILE: &str = "run.json";

/// What the `format` of a manifest says.
const FORMAT: &str = "paceline-results";
/// The latest `format_version` that this code reads, and the one it writes.
const FORMAT_VERSION: u32 = 1;
/// Longest name of a run's folder, in bytes; file systems take 255, and temporary names need some.
const LONGEST_NAME: usize = 160;

/// The list of runs: `manifest.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    format: String,
    format_version: u32,
    /// The runs, by scenario, controllers and seed.
    pub runs: Vec<StoredRun>,
    /// What several runs of one plan came to, by scenario, controllers and case.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<StoredGroup>,
}

/// A run, as the manifest lists it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredRun {
    /// Name of its folder under `runs`.
    pub directory: String,
    /// Scenario id.
    pub scenario: String,
    /// World that made it.
    pub world: String,
    /// Controller of each flow; none for a flow without.
    pub controllers: Vec<Option<String>>,
    /// What `--set` changed, as it was typed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<String>,
    /// Its seed.
    pub seed: u64,
    /// Version of the program that ran.
    pub version: String,
    /// When, if the program said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<String>,
    /// The run's trace hash, if its result has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_hash: Option<String>,
    /// Where it ends, s, if its process was killed before its end: there are rows until then, and no result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_at_s: Option<f64>,
    /// Its tables.
    pub files: Vec<StoredFile>,
}

/// What distinguishes runs, but for whether they were cut: scenario, world, controllers, changes, seed.
type Asked<'a> = (&'a str, &'a str, &'a [Option<String>], &'a [String], u64);

/// A table of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredFile {
    /// File name in the run's folder.
    pub name: String,
    /// Rows in it.
    pub rows: u64,
}

/// What `about.json` in a run's folder says. The manifest can be made anew from these.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct About {
    /// The run, as the manifest lists it.
    pub run: StoredRun,
    /// What it was made from.
    pub inputs: RunManifest,
    /// Name of each flow.
    pub flows: Vec<String>,
    /// Name of each hop, forward path first.
    pub hops: Vec<String>,
}

impl About {
    /// Of a run of this header.
    pub(super) fn of(run: StoredRun, inputs: RunManifest, header: &RunHeader) -> Self {
        Self { run, inputs, flows: header.flows.clone(), hops: header.hops.clone() }
    }

    /// Reads it from a run's folder.
    ///
    /// # Errors
    /// There is none, or it is damaged.
    pub fn read(run: &Path) -> Result<Self, StoreError> {
        let path = run.join(ABOUT_FILE);
        let text = fs::read(&path).map_err(files::io("read", &path))?;
        serde_json::from_slice(&text).map_err(|error| StoreError::Damaged { path, cause: error.to_string() })
    }
}

impl Default for Manifest {
    fn default() -> Self {
        Self { format: FORMAT.to_owned(), format_version: FORMAT_VERSION, runs: Vec::new(), groups: Vec::new() }
    }
}

impl StoredRun {
    /// A run that has not ended: no tables, no trace hash.
    pub(super) fn begun(header: &RunHeader, inputs: &RunManifest, directory: &str) -> Self {
        Self {
            directory: directory.to_owned(),
            scenario: header.scenario.clone(),
            world: header.world.clone(),
            controllers: header.controllers.clone(),
            changes: inputs.changes.clone(),
            seed: header.seed,
            version: inputs.version.clone(),
            created: inputs.created.clone(),
            trace_hash: None,
            cut_at_s: None,
            files: Vec::new(),
        }
    }

    fn asked(&self) -> Asked<'_> {
        (&self.scenario, &self.world, &self.controllers, &self.changes, self.seed)
    }

    /// What distinguishes runs. A run with the same key replaces this one.
    fn key(&self) -> (Asked<'_>, bool) {
        (self.asked(), self.cut_at_s.is_some())
    }

    /// Whether a whole run of this header and these changes has the same key.
    pub(super) fn is_of(&self, header: &RunHeader, changes: &[String]) -> bool {
        let asked = (&*header.scenario, &*header.world, &*header.controllers, changes, header.seed);
        self.cut_at_s.is_none() && self.asked() == asked
    }

    /// Whether this is the whole of a run that was cut.
    fn is_whole_of(&self, cut: &Self) -> bool {
        self.cut_at_s.is_none() && cut.cut_at_s.is_some() && self.asked() == cut.asked()
    }
}

impl Manifest {
    /// Name of its file in its folder.
    pub const FILE: &'static str = MANIFEST_FILE;

    /// Reads the manifest of a folder of results.
    ///
    /// # Errors
    /// There is none, or it is not Paceline's, or a later version wrote it, or it is damaged.
    pub fn read(dir: &Path) -> Result<Self, StoreError> {
        let path = dir.join(MANIFEST_FILE);
        let text = fs::read(&path).map_err(files::io("read", &path))?;
        let damaged = |cause: String| StoreError::Damaged { path: path.clone(), cause };
        // The format first: what follows it may have changed.
        let value: serde_json::Value = serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))?;
        if value["format"] != FORMAT {
            return Err(StoreError::NotAResult { path: dir.to_path_buf() });
        }
        match value["format_version"].as_u64().and_then(|found| u32::try_from(found).ok()) {
            Some(1..=FORMAT_VERSION) => {}
            Some(found) if found > FORMAT_VERSION => {
                return Err(StoreError::TooNew { path, found, known: FORMAT_VERSION });
            }
            _ => return Err(damaged("`format_version` is not a number from 1".to_owned())),
        }
        let manifest: Self = serde_json::from_value(value).map_err(|error| damaged(error.to_string()))?;
        // Folders and files are renamed and removed by these names.
        if let Some(run) = manifest.runs.iter().find(|run| !is_plain_name(&run.directory)) {
            return Err(damaged(format!("`{}` is not the name of a folder", run.directory)));
        }
        match manifest.groups.iter().find(|group| !is_plain_name(&group.file)) {
            Some(group) => Err(damaged(format!("`{}` is not the name of a file", group.file))),
            None => Ok(manifest),
        }
    }

    /// Makes the list agree with the folders: a run without a folder leaves it, and a whole run that is not on it (its
    /// process was killed before it could write the list) joins it.
    pub(super) fn reconcile(&mut self, runs: &Path) -> Result<(), StoreError> {
        self.runs.retain(|run| runs.join(&run.directory).is_dir());
        for name in files::names(runs)? {
            if files::is_transient(&name) || self.runs.iter().any(|run| run.directory == name) {
                continue;
            }
            // A folder without a readable `about.json` is not of our making: left alone.
            let about = fs::read(runs.join(&name).join(ABOUT_FILE)).ok();
            if let Some(About { run, .. }) = about.and_then(|text| serde_json::from_slice(&text).ok())
                && self.runs.iter().all(|other| other.key() != run.key())
            {
                self.insert(StoredRun { directory: name, ..run });
            }
        }
        Ok(())
    }

    /// Name of the folder for `run`: that of the run it replaces, or one that nothing has.
    pub(super) fn place(&self, run: &StoredRun, runs: &Path) -> String {
        if let Some(same) = self.runs.iter().find(|other| other.key() == run.key()) {
            return same.directory.clone();
        }
        let taken = |name: &str| self.runs.iter().any(|other| other.directory.eq_ignore_ascii_case(name));
        free_name(runs, &run.directory, "", taken)
    }

    /// Puts `run` on the list, in the place of one with the same key. The order does not depend on which came first.
    pub(super) fn insert(&mut self, run: StoredRun) {
        self.runs.retain(|other| other.key() != run.key());
        let at = self.runs.partition_point(|other| other.key() < run.key());
        self.runs.insert(at, run);
    }

    /// Takes what there is of `run` from before it was whole off the list, and answers its folder.
    pub(super) fn without_cut(&mut self, run: &StoredRun) -> Option<String> {
        let at = self.runs.iter().position(|cut| run.is_whole_of(cut))?;
        Some(self.runs.remove(at).directory)
    }

    /// Removes cut runs of which there is the whole, made from the same.
    pub(super) fn remove_superseded(&mut self, runs: &Path) -> Result<(), StoreError> {
        let inputs = |run: &StoredRun| About::read(&runs.join(&run.directory)).map(|about| about.inputs);
        let is_there = |cut: &StoredRun| {
            let whole = self.runs.iter().filter(|run| run.is_whole_of(cut));
            whole.filter_map(|run| inputs(run).ok().zip(inputs(cut).ok())).any(|(a, b)| a.is_same(&b))
        };
        let cut: Vec<StoredRun> = self.runs.iter().filter(|run| is_there(run)).cloned().collect();
        for run in cut {
            let place = runs.join(&run.directory);
            files::discard(&place).map_err(files::io("remove", &place))?;
            self.runs.retain(|other| *other != run);
        }
        Ok(())
    }

    /// Writes the manifest under a temporary name.
    pub(super) fn prepare(&self, dir: &Path) -> Result<Prepared, StoreError> {
        let file = Temporary::file(dir, MANIFEST_FILE, &files::json(self))?;
        Ok(Prepared { file, place: dir.join(MANIFEST_FILE) })
    }
}

/// Name of the folder for a run: scenario, controllers, world, seed. Ends in the seed, so it is never a temporary name. Two
/// keys may have one name; [`Manifest::place`] tells them apart.
pub(super) fn directory_name(header: &RunHeader) -> String {
    format!("{}-seed{}", plain_name(&header.scenario, &header.controllers, &header.world), header.seed)
}

/// The first of `name`, `name-2`, `name-3`, each with `ending`, that nothing in the folder has and that is not `taken`.
pub(super) fn free_name(folder: &Path, name: &str, ending: &str, taken: impl Fn(&str) -> bool) -> String {
    // Some file systems do not tell upper from lower case: `taken` should not either.
    let numbered = (2_u64..).map(|n| format!("{name}-{n}{ending}"));
    let mut names = std::iter::once(format!("{name}{ending}")).chain(numbered);
    names.find(|name| !taken(name) && !folder.join(name).exists()).expect("there is no last number")
}

/// Scenario, controllers and, but for the simulator, world as the beginning of a file name.
pub(super) fn plain_name(scenario: &str, controllers: &[Option<String>], world: &str) -> String {
    let world = if world == Simulator.name() { String::new() } else { format!("-{world}") };
    let controllers: Vec<&str> = controllers.iter().flatten().map(String::as_str).collect();
    let controllers = if controllers.is_empty() { "none".to_owned() } else { controllers.join("+") };
    let mut name: String = format!("{scenario}-{controllers}{world}")
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || "-_.+".contains(c) { c } else { '_' })
        .collect();
    if name.starts_with(['.', '-']) {
        name.insert(0, '_');
    }
    if name.len() > LONGEST_NAME {
        let hash = blake3::hash(name.as_bytes()).to_hex();
        name.truncate(LONGEST_NAME - 9);
        name = format!("{name}-{}", &hash[..8]);
    }
    name
}

fn is_plain_name(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    matches!((parts.next(), parts.next()), (Some(Component::Normal(part)), None) if part == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(scenario: &str, controllers: &[Option<&str>], seed: u64) -> String {
        name_in("sim", scenario, controllers, seed)
    }

    fn name_in(world: &str, scenario: &str, controllers: &[Option<&str>], seed: u64) -> String {
        directory_name(&RunHeader {
            scenario: scenario.to_owned(),
            world: world.to_owned(),
            seed,
            hops: Vec::new(),
            flows: Vec::new(),
            controllers: controllers.iter().map(|c| c.map(str::to_owned)).collect(),
            signals: Vec::new(),
        })
    }

    #[test]
    fn folder_names() {
        assert_eq!(name("mmsys16/table1", &[Some("gcc-2016"), None], 7), "mmsys16_table1-gcc-2016-seed7");
        assert_eq!(name("x", &[Some("a"), Some("b")], 0), "x-a+b-seed0");
        assert_eq!(name_in("testbed", "x", &[Some("a"), Some("b")], 0), "x-a+b-testbed-seed0");
        assert_eq!(name("x", &[None], u64::MAX), format!("x-none-seed{}", u64::MAX));
        assert_eq!(name("../é\\ü: *", &[], 1), "_.._______-none-seed1");
        let long = name(&"long/".repeat(100), &[Some("gcc-2016")], 3);
        assert!(long.len() < 200 && long.ends_with("-seed3"), "{long}");
        assert_ne!(long, name(&"long/".repeat(101), &[Some("gcc-2016")], 3));
        assert!(!files::is_transient(&name("x.tmp-1-2", &[], 5)));
    }

    #[test]
    fn plain_names() {
        assert!(is_plain_name("a-b.c+d"));
        for bad in ["", ".", "..", "a/b", "../a", "/a", "a/"] {
            assert!(!is_plain_name(bad), "{bad}");
        }
    }
}
