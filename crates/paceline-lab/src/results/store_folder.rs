// SPDX-License-Identifier: MIT OR Apache-2.0
//! The runs of a folder of results: their rows and their folders, which change together.

use crate::results::database::{Database, MeasuredRun, QuantityKey, RunFolder, RunRow, code, json, run_inputs};
use crate::results::files::{self, Left, Temporary};
use crate::results::names::{free_name, is_plain_name};
use crate::results::stored::{About, RUNS, StoredRun};
use crate::results::{StoreError, parts};
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub(crate) struct StoreFolder {
    pub(crate) dir: PathBuf,
    pub(crate) database: Database,
}

impl StoreFolder {
    pub(crate) fn runs(&self) -> PathBuf {
        self.dir.join(RUNS)
    }

    /// Lists a run and moves its folder to its final place. It replaces an earlier run with the same key; a complete run removes
    /// a cut one. Returns the final folder.
    pub(crate) fn add(
        &self,
        mut about: About,
        (run, document): (MeasuredRun, String),
        folder: &Temporary,
    ) -> Result<PathBuf, StoreError> {
        let runs = self.runs();
        let (mut moved, mut aside) = (None, None);
        let listed = self.database.write(|transaction| {
            let rows = self.database.run_folders(transaction)?;
            let replaced: Vec<&RunRow> = rows.iter().filter(|row| row.is_replaced_by(&about)).collect();
            let is_cut = about.run.cut_at_s.is_some();
            let of_kind = |row: &&&RunRow| row.key().1 == is_cut;
            let replaces = replaced.iter().find(of_kind).and_then(|row| row.folder.as_ref());
            let name = replaces.map(|old| old.directory.clone()).unwrap_or_else(|| {
                let directories = || rows.iter().filter_map(|row| row.folder.as_ref()).map(|old| &old.directory);
                free_name(&runs, &about.run.directory, |name| directories().any(|old| old.eq_ignore_ascii_case(name)))
            });
            about.run.directory.clone_from(&name);
            let mut removed = Vec::new();
            for row in &replaced {
                // A row of the same run is updated, so that documents that cite it stay.
                let same = (&row.run.inputs, &row.run.trace_hash) == (&run.inputs, &run.trace_hash);
                if !same || is_cut || row.key().1 {
                    self.database.remove_run(transaction, row.id)?;
                }
                removed.extend(row.folder.as_ref().map(|old| old.directory.clone()).filter(|old| *old != name));
            }
            let row = RunFolder {
                directory: name.clone(),
                cut_at_s: about.run.cut_at_s,
                about: json(&about),
                document: document.clone(),
            };
            self.database.insert_run(transaction, &run, Some(row))?;
            let place = runs.join(&name);
            if place.is_dir() {
                aside = Some(Temporary::aside(&place)?);
            }
            folder.rename(&place)?;
            moved = Some(place.clone());
            Ok((place, removed))
        });
        match listed {
            Ok((place, removed)) => {
                for old in removed {
                    // If this fails, an unlisted folder is left.
                    let _ = files::discard(&runs.join(old));
                }
                Ok(place)
            }
            Err(error) => {
                // If this fails, the next start does it.
                match (aside, moved) {
                    (Some(aside), _) => {
                        if aside.restore(&runs.join(&about.run.directory)).is_err() {
                            aside.leave();
                        }
                    }
                    (None, Some(place)) => drop(files::discard(&place)),
                    (None, None) => {}
                }
                Err(error)
            }
        }
    }

    /// Lists the runs of killed processes up to their last complete part. A complete run with the same inputs makes them
    /// superfluous.
    pub(crate) fn recover(&self) -> Result<(), StoreError> {
        parts::recover(&self.runs(), |about, folder| {
            let rows = self.database.read(|transaction| self.database.run_folders(transaction))?;
            let is_complete = |row: &RunRow| {
                let StoredRun { scenario, world, controllers, changes, seed, .. } = &about.run;
                let same = |other: About| other.inputs.is_same(&about.inputs);
                row.key() == ((&**scenario, &**world, &**controllers, &**changes, *seed), false)
                    && row.folder.as_ref().is_some_and(|old| serde_json::from_str(&old.about).is_ok_and(same))
            };
            if rows.iter().any(is_complete) {
                return Ok(());
            }
            let run = measured(&about, "", Vec::new());
            self.add(about, (run, String::new()), &folder).map(drop)
        })
    }

    /// Ends the replacements of folders that killed processes began: the listed one of the old and the new folder stays.
    pub(crate) fn finish_replacements(&self) -> Result<(), StoreError> {
        let runs = self.runs();
        for (holder, name) in files::aside_in(&runs)? {
            let Some(_left) = Left::take(&holder) else { continue };
            let (old, place) = (Left::data(&holder), runs.join(&name));
            // Within a transaction, so that no other process replaces the folder meanwhile.
            self.database.write(|transaction| {
                let rows = self.database.run_folders(transaction)?;
                let listed = rows.iter().filter_map(|row| row.folder.as_ref()).find(|folder| folder.directory == name);
                let about = listed.and_then(|folder| serde_json::from_str::<About>(&folder.about).ok());
                let is_listed = |dir: &Path| {
                    let files = about.as_ref().map(|about| &about.run.files);
                    files.is_some_and(|files| files.iter().all(|file| file.open(&dir.join(&file.name)).is_ok()))
                };
                if old.is_dir() && is_listed(&old) && !is_listed(&place) {
                    files::restore(&old, &place)?;
                }
                Ok(())
            })?;
            files::remove_holder(&holder).map_err(files::io("remove", &holder))?;
        }
        Ok(())
    }

    /// Removes runs whose folder was removed by hand.
    pub(crate) fn forget_missing(&self) -> Result<(), StoreError> {
        let runs = self.runs();
        let is_missing = |row: &&RunRow| {
            row.folder.as_ref().is_some_and(|f| is_plain_name(&f.directory) && !runs.join(&f.directory).is_dir())
        };
        self.database.write(|transaction| {
            let rows = self.database.run_folders(transaction)?;
            rows.iter().filter(is_missing).try_for_each(|row| self.database.remove_run(transaction, row.id))
        })
    }
}

impl RunRow {
    /// Returns whether this is the same run, except for the inputs that have changed since: a complete run replaces it, and a cut
    /// run replaces it if it is cut, too.
    fn is_replaced_by(&self, about: &About) -> bool {
        let StoredRun { scenario, world, controllers, changes, seed, cut_at_s, .. } = &about.run;
        let (own, is_cut) = self.key();
        own == (&**scenario, &**world, &**controllers, &**changes, *seed) && (is_cut || cut_at_s.is_none())
    }
}

/// Returns the columns of a run with a folder.
pub(crate) fn measured(about: &About, trace_hash: &str, values: Vec<(QuantityKey, Option<f64>)>) -> MeasuredRun {
    let (run, inputs) = (&about.run, &about.inputs);
    MeasuredRun {
        inputs: run_inputs(&inputs.plan_hash, &run.world, run.seed, &inputs.environment.version),
        scenario: run.scenario.clone(),
        scenario_hash: inputs.scenario_hash.clone(),
        controllers: run.controllers.clone(),
        changes: run.changes.clone(),
        world: run.world.clone(),
        seed: run.seed,
        code: code(&inputs.environment.version, inputs.environment.commit.as_deref()),
        trace_hash: trace_hash.to_owned(),
        duration_s: inputs.setting.as_ref().map_or(0.0, |setting| setting.duration_s),
        values,
    }
}
