//! Parts of a run in real time. Such a run takes minutes, and its process may be killed. Its events are therefore closed in
//! parts of 10 s with tables of their own, from which the next start assembles a cut run:
//!
//! ```text
//! runs/<run>.parts-<process>-<n>/about.json                     the inputs of the run
//! runs/<run>.parts-<process>-<n>/until-000010s/*.parquet        the rows of the first ten seconds, and so on
//! ```
//!
//! Every part is complete and flushed to the disk. The writer locks `about.json`; an unlocked folder was left by a killed
//! process, on this machine or another. A run that ends is assembled under a temporary name beside its parts. The parts are
//! removed after the final rename, so a kill at any time loses nothing.

use crate::StoreError;
use crate::files::{self, Temporary};
use crate::manifest::{ABOUT_FILE, About, Manifest};
use crate::tables::EventTables;
use paceline_units::{Time, TimeDelta};
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

/// Length of a part, and so the most that a kill can lose. Shorter parts make more row groups with dictionaries of their own.
const SPAN: TimeDelta = TimeDelta::from_secs(10);

#[derive(Debug)]
pub(super) struct Parts {
    due: Time,
    folder: Option<Folder>,
}

#[derive(Debug)]
struct Folder {
    place: Temporary,
    _lock: File,
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

    /// Adds the folder of a closed part; an event at `at` begins the next one.
    pub(super) fn add(&mut self, part: Temporary, at: Time, about: impl FnOnce() -> About) -> Result<(), StoreError> {
        let folder = match &mut self.folder {
            Some(folder) => folder,
            None => {
                let about = about();
                let runs = part.path().parent().expect("a part is made in the folder of runs");
                self.folder.insert(Folder::new(runs, &about)?)
            }
        };
        let spans = at.as_nanos() / SPAN.as_nanos();
        files::sync_directory(part.path())?;
        part.replace(&folder.place.path().join(name(spans)))?;
        self.due = Time::ZERO + SPAN * (spans + 1);
        Ok(())
    }

    /// Returns the folders of the closed parts, in order.
    pub(super) fn folders(&self) -> Result<Vec<PathBuf>, StoreError> {
        let found = self.folder.as_ref().map(|folder| parts_of(folder.place.path())).transpose()?;
        Ok(found.unwrap_or_default().into_iter().map(|(_, part)| part).collect())
    }

    /// Keeps the parts for the next start.
    pub(super) fn leave(self) {
        if let Some(folder) = self.folder {
            folder.place.leave();
        }
    }
}

impl Folder {
    fn new(runs: &Path, about: &About) -> Result<Self, StoreError> {
        let name = &about.run.directory;
        let place = Temporary::directory(runs, name)?;
        let path = place.path().join(ABOUT_FILE);
        files::write_synced(&path, &files::json(about))?;
        files::sync_directory(place.path())?;
        let lock = File::open(&path).map_err(files::io("open", &path))?;
        lock.lock().map_err(files::io("lock", &path))?;
        Ok(Self { place: place.into_parts(name)?, _lock: lock })
    }
}

impl Manifest {
    /// Assembles cut runs from the parts that killed processes left, and removes those that have a complete run.
    pub(super) fn recover(&mut self, runs: &Path) -> Result<(), StoreError> {
        for (folder, name) in files::parts_in(runs)? {
            let about = folder.join(ABOUT_FILE);
            // Held until the parts are gone.
            let Ok(lock) = File::open(&about) else { continue };
            match lock.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => continue,
                Err(TryLockError::Error(error)) => return Err(files::io("lock", &about)(error)),
            }
            // Parts that cannot be assembled (damaged, or the disk is full) stay for inspection.
            let Ok(parts) = parts_of(&folder) else { continue };
            if let Some((end_s, _)) = parts.last()
                && self.assemble_cut(&folder, &format!("{name}-cut"), *end_s, runs).is_err()
            {
                continue;
            }
            files::discard(&folder).map_err(files::io("remove", &folder))?;
        }
        self.remove_superseded(runs)
    }

    /// Assembles the cut run `name` from the parts in a folder.
    fn assemble_cut(&mut self, folder: &Path, name: &str, end_s: u64, runs: &Path) -> Result<(), StoreError> {
        let mut about = About::read(folder)?;
        let whole = Temporary::directory(runs, name)?;
        let parts: Vec<PathBuf> = parts_of(folder)?.into_iter().map(|(_, part)| part).collect();
        about.run.files = EventTables::join(&parts, whole.path())?;
        about.run.cut_at_s = Some(end_s as f64);
        about.run.directory = name.to_owned();
        about.run.directory = self.place(&about.run, runs);
        files::write_synced(&whole.path().join(ABOUT_FILE), &files::json(&about))?;
        files::sync_directory(whole.path())?;
        whole.replace(&runs.join(&about.run.directory))?;
        self.insert(about.run);
        Ok(())
    }
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
