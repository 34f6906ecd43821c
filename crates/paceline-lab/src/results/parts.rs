// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parts of a run in real time. Such a run takes minutes, and its process may be killed. Its events are therefore closed in
//! parts of 10 s with tables of their own, from which the next start assembles a cut run:
//!
//! ```text
//! runs/<run>.parts-<process>-<n>/lock                                locked while the run lasts
//! runs/<run>.parts-<process>-<n>/data/about.json                     the description of the run
//! runs/<run>.parts-<process>-<n>/data/until-000010s/*.parquet        the rows of the first ten seconds, and so on
//! ```
//!
//! Every part is complete and flushed to the disk. A run that ends is assembled under a temporary name next to its parts. The
//! parts are removed after the run is listed, so a kill at any time loses nothing.

use crate::results::StoreError;
use crate::results::files::{self, Left, Temporary};
use crate::results::stored::About;
use crate::results::tables::EventTables;
use paceline_units::{Time, TimeDelta};
use std::path::{Path, PathBuf};

/// Length of a part, and so the most that a kill can lose. Shorter parts make more row groups with dictionaries of their own.
const SPAN: TimeDelta = TimeDelta::from_secs(10);

const ABOUT_FILE: &str = "about.json";

#[derive(Debug)]
pub(super) struct Parts {
    due: Time,
    folder: Option<Temporary>,
}

impl Parts {
    pub(super) fn none() -> Self {
        Self { due: Time::MAX, folder: None }
    }

    pub(super) fn several() -> Self {
        Self { due: Time::ZERO + SPAN, folder: None }
    }

    /// Returns whether an event at this time begins a new part.
    #[inline]
    pub(super) fn is_due(&self, at: Time) -> bool {
        at >= self.due
    }

    /// Adds the folder of a closed part of a run in `runs`; an event at `at` begins the next one.
    pub(super) fn add(
        &mut self,
        runs: &Path,
        part: Temporary,
        at: Time,
        about: impl FnOnce() -> About,
    ) -> Result<(), StoreError> {
        let folder = match &mut self.folder {
            Some(folder) => folder,
            None => {
                let about = about();
                let name = &about.run.directory;
                let folder = Temporary::directory(runs, name)?;
                files::write_synced(&folder.path().join(ABOUT_FILE), &files::json(&about))?;
                files::sync_directory(folder.path())?;
                self.folder.insert(folder.into_parts(name)?)
            }
        };
        let spans = at.as_nanos() / SPAN.as_nanos();
        files::sync_directory(part.path())?;
        part.replace(&folder.path().join(name(spans)))?;
        self.due = Time::ZERO + SPAN * (spans + 1);
        Ok(())
    }

    pub(super) fn folders(&self) -> Result<Vec<PathBuf>, StoreError> {
        let found = self.folder.as_ref().map(|folder| parts_of(folder.path())).transpose()?;
        Ok(found.unwrap_or_default().into_iter().map(|(_, part)| part).collect())
    }

    /// Keeps the parts for the next start.
    pub(super) fn leave(self) {
        if let Some(folder) = self.folder {
            folder.leave();
        }
    }
}

/// Assembles the runs of killed processes from their parts. `list` lists a cut run: its description, and the folder of its tables.
/// Parts that cannot be assembled (damaged, or the disk is full) stay for inspection.
pub(super) fn recover(
    runs: &Path,
    mut list: impl FnMut(About, Temporary) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    for (holder, name) in files::parts_in(runs)? {
        // Held until the parts are gone.
        let Some(_left) = Left::take(&holder) else { continue };
        let data = Left::data(&holder);
        let Ok(parts) = parts_of(&data) else { continue };
        if let Some((end_s, _)) = parts.last() {
            let mut assemble = || -> Result<(), StoreError> {
                let mut about: About = files::read_json(&data.join(ABOUT_FILE))?;
                let name = format!("{name}-cut");
                let whole = Temporary::directory(runs, &name)?;
                let folders: Vec<PathBuf> = parts.iter().map(|(_, part)| part.clone()).collect();
                about.run.files = EventTables::join(&folders, whole.path())?;
                about.run.cut_at_s = Some(*end_s as f64);
                about.run.directory = name;
                files::sync_directory(whole.path())?;
                list(about, whole)
            };
            if assemble().is_err() {
                continue;
            }
        }
        files::remove_holder(&holder).map_err(files::io("remove", &holder))?;
    }
    Ok(())
}

/// Returns the name of the part that ends after this many spans.
fn name(spans: i64) -> String {
    format!("until-{:06}s", (SPAN * spans).as_nanos() / TimeDelta::from_secs(1).as_nanos())
}

/// Returns the parts in a folder, in order: end of each, s, and its path.
fn parts_of(folder: &Path) -> Result<Vec<(u64, PathBuf)>, StoreError> {
    let end = |name: &str| name.strip_prefix("until-")?.strip_suffix('s')?.parse().ok();
    let mut parts: Vec<(u64, PathBuf)> =
        files::names(folder)?.iter().filter_map(|name| Some((end(name)?, folder.join(name)))).collect();
    parts.sort();
    Ok(parts)
}
