//! A run in real time takes minutes, and its process may be killed in any of them. So what it has measured is closed in
//! parts, each of a span of the run and with tables of its own, and the next start makes a run of what it finds of them:
//!
//! ```text
//! runs/<run>.parts-<process>-<n>/about.json                     what is run
//! runs/<run>.parts-<process>-<n>/until-000010s/*.parquet        the rows of the first ten seconds, and so on
//! ```
//!
//! Whatever stands under such a name is whole and on the disk. A run that ends is put together under a temporary name beside
//! its parts, which go when the run is in its place: no kill in between loses them.

use super::files::{self, Temporary};
use super::manifest::{ABOUT_FILE, About, Manifest};
use super::tables::Tables;
use super::{StoreError, StoredRun};
use paceline_units::{Time, TimeDelta};
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
    folder: Option<Temporary>,
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
                let folder = Temporary::parts(runs, &about.run.directory)?;
                files::write_synced(&folder.path().join(ABOUT_FILE), &files::json(&about))?;
                files::sync_directory(folder.path())?;
                self.folder.insert(folder)
            }
        };
        let spans = at.as_nanos() / SPAN.as_nanos();
        files::sync_directory(part.path())?;
        part.replace(&folder.path().join(name(spans)))?;
        self.due = Time::ZERO + SPAN * (spans + 1);
        Ok(())
    }

    /// The folders of the parts, in order.
    pub(super) fn folders(&self) -> Result<Vec<PathBuf>, StoreError> {
        let found = self.folder.as_ref().map(|folder| parts_in(folder.path())).transpose()?.unwrap_or_default();
        Ok(found.into_iter().map(|(_, part)| part).collect())
    }

    /// Leaves them to the next start.
    pub(super) fn leave(self) {
        if let Some(folder) = self.folder {
            folder.leave();
        }
    }
}

/// Makes runs, listed as cut, of the parts that killed processes left.
pub(super) fn take_up(manifest: &mut Manifest, runs: &Path) -> Result<(), StoreError> {
    for (folder, name) in files::left_parts(runs)? {
        let (ends, parts): (Vec<u64>, Vec<PathBuf>) = parts_in(&folder)?.into_iter().unzip();
        if let Some(end) = ends.last() {
            let about = About::read(&folder)?;
            let cut_at_s = Some(*end as f64);
            let cut = StoredRun { directory: format!("{name}-cut"), cut_at_s, ..about.run.clone() };
            let whole = Temporary::directory(runs, &cut.directory)?;
            let mut run = StoredRun { files: Tables::join(&parts, whole.path())?, ..cut };
            run.directory = manifest.place(&run, runs);
            let place = runs.join(&run.directory);
            let about = About { run: run.clone(), ..about };
            files::write_synced(&whole.path().join(ABOUT_FILE), &files::json(&about))?;
            files::sync_directory(whole.path())?;
            whole.replace(&place)?;
            manifest.insert(run);
        }
        files::discard(&folder).map_err(files::io("remove", &folder))?;
    }
    Ok(())
}

/// What the part is called that ends after so many spans.
fn name(spans: i64) -> String {
    format!("until-{:06}s", (SPAN * spans).as_nanos() / TimeDelta::from_secs(1).as_nanos())
}

/// The parts in a folder, in order: when each ends, s, and where it is.
fn parts_in(folder: &Path) -> Result<Vec<(u64, PathBuf)>, StoreError> {
    let end = |name: &str| name.strip_prefix("until-")?.strip_suffix('s')?.parse().ok();
    let mut parts: Vec<(u64, PathBuf)> =
        files::names(folder)?.iter().filter_map(|name| Some((end(name)?, folder.join(name)))).collect();
    parts.sort();
    Ok(parts)
}
