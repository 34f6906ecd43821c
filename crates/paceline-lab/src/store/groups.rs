//! The groups of a folder: one file each under `results`, and a line in the manifest. A group's file says all that its
//! line says, so the list can be made anew from the files.

use super::StoreError;
use super::files;
use super::manifest::{Manifest, free_name, plain_name};
use crate::group::Group;
use crate::label::Label;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;

/// A group, as the manifest lists it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredGroup {
    /// Name of its file under `results`.
    pub file: String,
    /// Scenario id.
    pub scenario: String,
    /// World that made the runs.
    pub world: String,
    /// Controller of each flow; none for a flow without.
    pub controllers: Vec<Option<String>>,
    /// Which case of the scenario; empty: none, or the scenario as written.
    pub case: Label,
    /// What `--set` changed, as it was typed.
    pub changes: Vec<String>,
    /// Seeds of its runs, in order.
    pub seeds: Vec<u64>,
    /// Folders of its runs under `runs`.
    pub runs: Vec<String>,
}

impl StoredGroup {
    /// A group's line; its file has no name yet.
    pub(super) fn of(group: &Group) -> Self {
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

    /// What distinguishes groups. A group with the same key replaces this one.
    fn key(&self) -> (&str, &str, &[Option<String>], &Label, &[String]) {
        (&self.scenario, &self.world, &self.controllers, &self.case, &self.changes)
    }
}

impl Manifest {
    /// Makes the list of groups agree with the files, as [`Manifest::reconcile`] does for runs.
    pub(super) fn reconcile_groups(&mut self, results: &Path) -> Result<(), StoreError> {
        self.groups.retain(|group| results.join(&group.file).is_file());
        if !results.is_dir() {
            return Ok(());
        }
        for file in files::names(results)? {
            if files::is_transient(&file) || self.groups.iter().any(|group| group.file == file) {
                continue;
            }
            // What is no group is not of our making: left alone.
            let Ok(group) = read(&results.join(&file)) else { continue };
            let listed = StoredGroup { file, ..StoredGroup::of(&group) };
            if self.groups.iter().all(|other| other.key() != listed.key()) {
                self.insert_group(listed);
            }
        }
        Ok(())
    }

    /// The line with a file: that of the group it replaces, or one that nothing has.
    pub(super) fn place_group(&self, group: StoredGroup, results: &Path) -> StoredGroup {
        let same = self.groups.iter().find(|other| other.key() == group.key());
        let taken = |name: &str| self.groups.iter().any(|other| other.file.eq_ignore_ascii_case(name));
        let scenario = format!("{} {}", group.scenario, group.case);
        let name = plain_name(scenario.trim_end(), &group.controllers, &group.world);
        let file = same.map_or_else(|| free_name(results, &name, ".json", taken), |same| same.file.clone());
        StoredGroup { file, ..group }
    }

    /// Puts `group` on the list, in the place of one with the same key. The order does not depend on which came first.
    pub(super) fn insert_group(&mut self, group: StoredGroup) {
        self.groups.retain(|other| other.key() != group.key());
        let at = self.groups.partition_point(|other| other.key() < group.key());
        self.groups.insert(at, group);
    }
}

/// Reads a group's file.
pub(super) fn read(path: &Path) -> Result<Group, StoreError> {
    let text = fs::read(path).map_err(files::io("read", path))?;
    let damaged = |error: serde_json::Error| StoreError::Damaged { path: path.to_path_buf(), cause: error.to_string() };
    serde_json::from_slice(&text).map_err(damaged)
}
