//! A run in real time takes minutes, and its process may be killed in any of them. So what it has measured is closed in
//! parts, each of a span of the run and with tables of its own, and the next start makes a run of what it finds of them:
//!
//! ```text
//! runs/<run>.parts-<process>-<n>/about.json                     what is run
//! runs/<run>.parts-<process>-<n>/until-000010s/*.parquet        the rows of the first ten seconds, and so on
//! ```
//!
//! Whatever stands under such a name is whole and on the disk. Who writes it holds a lock on its `about.json`, so what nobody
//! holds is what a killed process left, wherever that ran. A run that ends is put together under a temporary name beside
//! its parts, which go when the run is in its place: no kill in between loses them.

use super::StoreError;
use super::files::{self, Temporary};
use super::manifest::{ABOUT_FILE, About, Manifest};
use super::tables::Tables;
use paceline_units::{Time, TimeDelta};
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

/// How much of a run a part holds, and so how much a kill may take. Smaller parts make more groups of rows, each with
/// dictionaries of its own.
const SPAN: TimeDelta = TimeDelta::from_secs(10);

/// The parts of a run that goes on.
#[derive(Debug)]
pub(super) struct Parts {
    /// When the part that is being written is over.
    due: Time,
    /// Where the others are, if there are any.
    folder: Option<Folder>,
}

/// A folder of parts, and the lock on it.
#[derive(Debug)]
struct Folder {
    place: Temporary,
    _lock: File,
}

impl Parts {
    /// A run that is one part.
    pub(super) fn none() -> Self {
        Self { due: Time::MAX, folder: None }
    }

    /// A run of several parts, if it lasts.
    pub(super) fn several() -> Self {
        Self { due: Time::ZERO + SPAN, folder: None }
    }

    /// Whether a row of this time begins a new part.
    #[inline]
    pub(super) fn is_due(&self, at: Time) -> bool {
        at >= self.due
    }

    /// Adds the folder of a part that is closed, for a row of the time `at` begins the next one.
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

    /// The folders of the parts, in order.
    pub(super) fn folders(&self) -> Result<Vec<PathBuf>, StoreError> {
        let found = self.folder.as_ref().map(|folder| parts_of(folder.place.path())).transpose()?;
        Ok(found.unwrap_or_default().into_iter().map(|(_, part)| part).collect())
    }

    /// Leaves them to the next start.
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
    /// Makes runs, listed as cut, of the parts that killed processes left; those of which there is the whole go.
    pub(super) fn take_up(&mut self, runs: &Path) -> Result<(), StoreError> {
        for (folder, name) in files::parts_in(runs)? {
            let about = folder.join(ABOUT_FILE);
            // Held until the parts are gone.
            let Ok(lock) = File::open(&about) else { continue };
            match lock.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => continue,
                Err(TryLockError::Error(error)) => return Err(files::io("lock", &about)(error)),
            }
            // What cannot be taken up (damaged, or the disk is full) stays where it is, for people to look at.
            let Ok(parts) = parts_of(&folder) else { continue };
            if let Some((end_s, _)) = parts.last()
                && self.take_up_parts(&folder, &format!("{name}-cut"), *end_s, runs).is_err()
            {
                continue;
            }
            files::discard(&folder).map_err(files::io("remove", &folder))?;
        }
        self.remove_superseded(runs)
    }

    /// Makes a run of this name of the parts in a folder.
    fn take_up_parts(&mut self, folder: &Path, name: &str, end_s: u64, runs: &Path) -> Result<(), StoreError> {
        let mut about = About::read(folder)?;
        let whole = Temporary::directory(runs, name)?;
        let parts: Vec<PathBuf> = parts_of(folder)?.into_iter().map(|(_, part)| part).collect();
        about.run.files = Tables::join(&parts, whole.path())?;
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

/// What the part is called that ends after so many spans.
fn name(spans: i64) -> String {
    format!("until-{:06}s", (SPAN * spans).as_nanos() / TimeDelta::from_secs(1).as_nanos())
}

/// The parts in a folder, in order: when each ends, s, and where it is.
fn parts_of(folder: &Path) -> Result<Vec<(u64, PathBuf)>, StoreError> {
    let end = |name: &str| name.strip_prefix("until-")?.strip_suffix('s')?.parse().ok();
    let mut parts: Vec<(u64, PathBuf)> =
        files::names(folder)?.iter().filter_map(|name| Some((end(name)?, folder.join(name)))).collect();
    parts.sort();
    Ok(parts)
}
