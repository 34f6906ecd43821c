//! The groups of a folder: one file each under `results`, and an entry in the manifest. An entry only repeats contents of
//! the file, so the list can be rebuilt from the files.

use super::Manifest;
use super::names::{free_name, plain_name};
use crate::files;
use crate::{Group, StoreError};
use paceline_netsim::records::Label;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// An entry of the list of groups.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredGroup {
    /// Name of its file under `results`.
    pub file: String,
    /// Scenario id.
    pub scenario: String,
    /// World of the runs.
    pub world: String,
    /// Controller of each flow; `None` for a flow without one.
    pub controllers: Vec<Option<String>>,
    /// Case of the scenario; empty for the scenario as written.
    pub case: Label,
    /// Changes by `--set`, as typed.
    pub changes: Vec<String>,
    /// Seeds of its runs, in order.
    pub seeds: Vec<u64>,
    /// Folders of its runs under `runs`.
    pub runs: Vec<String>,
}

impl StoredGroup {
    /// Returns the entry of a group, without the file name.
    pub(crate) fn of(group: &Group) -> Self {
        Self {
            file: String::new(),
            scenario: group.scenario.clone(),
            world: group.world.clone(),
            controllers: group.controllers.clone(),
            case: group.case.clone(),
            changes: group.changes.clone(),
            seeds: group.seeds.clone(),
            runs: group.runs.clone(),
        }
    }

    /// Returns the identity of the entry. A group with the same key replaces this one.
    fn key(&self) -> (&str, &str, &[Option<String>], &Label, &[String]) {
        (&self.scenario, &self.world, &self.controllers, &self.case, &self.changes)
    }
}

impl Manifest {
    /// Makes the list of groups agree with the files, as [`Manifest::reconcile`] does for runs.
    pub(crate) fn reconcile_groups(&mut self, results: &Path) -> Result<(), StoreError> {
        self.groups.retain(|group| results.join(&group.file).is_file());
        if !results.is_dir() {
            return Ok(());
        }
        for file in files::names(results)? {
            if files::is_transient(&file) || self.groups.iter().any(|group| group.file == file) {
                continue;
            }
            // Other files belong to the user and are ignored.
            let Ok(group) = files::read_json::<Group>(&results.join(&file)) else { continue };
            let listed = StoredGroup { file, ..StoredGroup::of(&group) };
            if self.groups.iter().all(|other| other.key() != listed.key()) {
                self.insert_group(listed);
            }
        }
        Ok(())
    }

    /// Returns the entry with a file name: that of the group it replaces, or a free one.
    pub(crate) fn place_group(&self, group: StoredGroup, results: &Path) -> StoredGroup {
        let same = self.groups.iter().find(|other| other.key() == group.key());
        let taken = |name: &str| self.groups.iter().any(|other| other.file.eq_ignore_ascii_case(name));
        let scenario = format!("{} {}", group.scenario, group.case);
        let name = plain_name(scenario.trim_end(), &group.controllers, &group.world);
        let file = same.map_or_else(|| free_name(results, &name, ".json", taken), |same| same.file.clone());
        StoredGroup { file, ..group }
    }

    /// Adds `group` or replaces the group with the same key. The order of the list does not depend on the order of calls.
    pub(crate) fn insert_group(&mut self, group: StoredGroup) {
        self.groups.retain(|other| other.key() != group.key());
        let at = self.groups.partition_point(|other| other.key() < group.key());
        self.groups.insert(at, group);
    }
}
