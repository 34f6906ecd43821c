// SPDX-License-Identifier: MIT OR Apache-2.0
//! Folders of results: the input replaces the database or a table of a run. What is read is as it was written, or an error says why not.
//! A table that is listed as it is, as by a hostile writer, gives events that refer to flows and hops of the run, or an error.

use crate::fixtures::{Listener, load_from, registry, simulator};
use paceline_lab::results::database::DATABASE_FILE;
use paceline_lab::results::tables::RunTables;
use paceline_lab::results::{About, Store, StoreError, StoredFile};
use paceline_lab::storage::Inputs;
use paceline_netsim::records::{EventRecord, RunHeader};
use paceline_scenario::Catalogue;
use paceline_units::{FlowId, Time};
use std::cell::Cell;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind, set_hook, take_hook};
use std::path::{Path, PathBuf};
use std::sync::Once;

/// A folder with one run.
pub struct Folder {
    path: PathBuf,
    /// The database, then the tables.
    files: Vec<(PathBuf, Vec<u8>)>,
    about: About,
    run: PathBuf,
    events: Vec<EventRecord>,
}

impl Folder {
    /// Makes the folder.
    pub fn create(path: &Path) -> Self {
        let _ = fs::remove_dir_all(path);
        let origin = Catalogue.find("mmsys16/table1").unwrap();
        let scenario = load_from(&origin, None, &["duration=1s"], registry());
        let store = Store::create(path).unwrap();
        let header = scenario.plan.header(registry(), "sim", 1);
        let mut run = store.run(&header, Inputs::default().manifest(&scenario, registry())).unwrap();
        let result = simulator().run(&scenario, 1, Some(&mut run)).unwrap();
        let run = run.finish(&serde_json::to_value(&result).unwrap(), Vec::new()).unwrap();
        drop(store);
        let about = Store::read_run(&run).unwrap().about;
        let paths = about.run.files.iter().map(|file| run.join(&file.name));
        let files = [path.join(DATABASE_FILE)].into_iter().chain(paths).map(|path| {
            let bytes = fs::read(&path).unwrap();
            (path, bytes)
        });
        let (files, events) = (files.collect(), events(&run, &about).unwrap());
        Self { path: path.to_path_buf(), files, about, run, events }
    }

    /// Returns an input for each file, which changes nothing.
    pub fn samples(&self) -> Vec<Vec<u8>> {
        let files = self.files.iter().enumerate();
        files.map(|(index, (_, bytes))| [&[index as u8], &bytes[..]].concat()).collect()
    }

    /// Checks one input: a byte for the file, and its bytes. Returns whether it is read.
    pub fn check(&self, bytes: &[u8]) -> bool {
        let Some((index, bytes)) = bytes.split_first() else { return false };
        let index = usize::from(*index) % self.files.len();
        let (path, original) = &self.files[index];
        fs::write(path, bytes).unwrap();
        let is_read = if index == 0 { self.check_database() } else { self.check_table(index - 1, bytes == original) };
        fs::write(path, original).unwrap();
        is_read
    }

    fn check_database(&self) -> bool {
        let is_read = match Store::read(&self.path) {
            Ok(contents) => {
                for run in &contents.runs {
                    assert_eq!((&run.about, &run.dir), (&self.about, &self.run));
                    assert_eq!(events(&run.dir, &run.about).unwrap(), self.events);
                }
                contents.runs.len() == 1
            }
            Err(error) => {
                assert!(!error.to_string().is_empty());
                false
            }
        };
        // Otherwise a log beside the file completes the next one.
        for name in ["-wal", "-shm", "-journal"] {
            let _ = fs::remove_file(self.path.join(format!("{DATABASE_FILE}{name}")));
        }
        is_read
    }

    fn check_table(&self, index: usize, is_original: bool) -> bool {
        match events(&self.run, &self.about) {
            Ok(events) => assert!(is_original && events == self.events, "a change was not detected"),
            Err(error) => assert!(!is_original && matches!(error, StoreError::Damaged { .. }), "{error}"),
        }
        let mut about = self.about.clone();
        let file = &mut about.run.files[index];
        *file = StoredFile::of(&self.run.join(&file.name), file.rows).unwrap();
        match caught(|| events(&self.run, &about)) {
            Some(Ok(events)) => {
                events.iter().for_each(|event| check_event(event, &about.header()));
                true
            }
            Some(Err(error)) => {
                assert!(!error.to_string().is_empty());
                false
            }
            None => false,
        }
    }
}

/// Returns the events of a run.
fn events(run: &Path, about: &About) -> Result<Vec<EventRecord>, StoreError> {
    let mut events = Vec::new();
    let mut listener = Listener { signals: true, on_event: |event: &EventRecord| events.push(*event) };
    RunTables::new(run, about).replay(&about.header(), &mut listener)?;
    Ok(events)
}

fn check_event(event: &EventRecord, header: &RunHeader) {
    let latest = Time::from_secs(30 * 86_400);
    assert!(event.at() <= latest, "{event:?}");
    let (flow, hop) = match *event {
        EventRecord::Sent { packet, .. } | EventRecord::Arrived { packet, .. } => (packet.flow, None),
        EventRecord::Crossed { packet, hop, .. } | EventRecord::Dropped { packet, hop, .. } => (packet.flow, Some(hop)),
        EventRecord::Signal { flow, .. } | EventRecord::Decision { flow, .. } | EventRecord::Frame { flow, .. } => {
            (flow, None)
        }
        _ => (FlowId(0), None),
    };
    assert!(usize::from(flow.0) < header.flows.len(), "{event:?}");
    assert!(hop.is_none_or(|hop| usize::from(hop) < header.hops.len()), "{event:?}");
}

thread_local! {
    static IS_OF_LIBRARY: Cell<bool> = const { Cell::new(false) };
}

/// Calls `read`; `None` if the Parquet library panics, as it does on some damage that checksums do not cover.
fn caught<T>(read: impl FnOnce() -> T) -> Option<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let other = take_hook();
        set_hook(Box::new(move |panic| {
            let is_of_library = panic.location().is_some_and(|at| at.file().contains("/parquet-"));
            IS_OF_LIBRARY.set(is_of_library);
            if !is_of_library {
                other(panic);
            }
        }));
    });
    match catch_unwind(AssertUnwindSafe(read)) {
        Ok(value) => Some(value),
        Err(_) if IS_OF_LIBRARY.get() => None,
        Err(panic) => resume_unwind(panic),
    }
}
