// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writing the events of one run.

use crate::results::StoreError;
use crate::results::database::QuantityKey;
use crate::results::files::{self, Temporary};
use crate::results::names::directory_name;
use crate::results::parts::Parts;
use crate::results::store_folder::{StoreFolder, measured};
use crate::results::stored::{About, RunInputs, StoredFile};
use crate::results::tables::EventTables;
use paceline_netsim::records::{EventObserver, EventRecord, RunDescription, RunHeader};
use paceline_units::Time;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Writes the events of one run. If it is dropped before [`finish`](Self::finish), it leaves no files.
#[derive(Debug)]
pub struct RunStore {
    // Before `temporary`: the files are closed before their folder is removed.
    tables: EventTables,
    failed: Option<StoreError>,
    temporary: Temporary,
    parts: Parts,
    attachments: Vec<(String, Vec<u8>)>,
    runs: PathBuf,
    folder: Arc<StoreFolder>,
    header: RunHeader,
    inputs: RunInputs,
    base: String,
}

impl EventObserver for RunStore {
    /// Keeps the first error for [`RunStore::finish`] and ignores the events after it.
    fn on_event(&mut self, event: &EventRecord) {
        if self.failed.is_none() {
            self.failed = self.write(event).err();
        }
    }
    fn wants_signals(&self) -> bool {
        true
    }
    fn wants_attachments(&self) -> bool {
        true
    }
    fn on_attachment(&mut self, name: &str, bytes: &[u8]) {
        self.attachments.push((name.to_owned(), bytes.to_vec()));
    }
}

impl RunStore {
    pub(super) fn create(folder: Arc<StoreFolder>, header: &RunHeader, inputs: RunInputs) -> Result<Self, StoreError> {
        let (runs, base) = (folder.runs(), directory_name(header));
        let temporary = Temporary::directory(&runs, &base)?;
        let tables = EventTables::create(temporary.path(), header, &inputs.environment.version)?;
        Ok(Self {
            tables,
            failed: None,
            temporary,
            parts: Parts::none(),
            attachments: Vec::new(),
            runs,
            folder,
            header: header.clone(),
            inputs,
            base,
        })
    }

    /// Sets whether the tables are closed every 10 s of the run, so that they can be read if the process is killed. For runs
    /// in real time; a simulated run is repeated instead.
    pub fn in_parts(self, wanted: bool) -> Self {
        let parts = if wanted { Parts::several() } else { Parts::none() };
        Self { parts, ..self }
    }

    /// Replaces the description of the run: its link was changed by hand.
    pub fn set(&mut self, description: RunDescription) {
        self.inputs.setting = Some(description);
    }

    /// Returns the first error so far, so that a long run can be ended early when the disk is full.
    pub fn failed(&self) -> Option<&StoreError> {
        self.failed.as_ref()
    }

    /// Leaves the files that a kill at this time would leave.
    #[cfg(test)]
    pub(super) fn abandon(self) {
        let Self { tables, temporary, parts, .. } = self;
        drop(tables);
        temporary.leave();
        parts.leave();
    }

    fn write(&mut self, event: &EventRecord) -> Result<(), StoreError> {
        if self.parts.is_due(event.at()) {
            self.close_part(event.at())?;
        }
        self.tables.push(event)
    }

    /// Closes the tables and begins new ones with an event at `at`.
    fn close_part(&mut self, at: Time) -> Result<(), StoreError> {
        let next = Temporary::directory(&self.runs, &self.base)?;
        let tables = EventTables::create(next.path(), &self.header, &self.inputs.environment.version)?;
        mem::replace(&mut self.tables, tables).finish()?;
        let part = mem::replace(&mut self.temporary, next);
        let (header, inputs, base) = (&self.header, &self.inputs, &self.base);
        self.parts.add(&self.runs, part, at, || About::new(header, inputs.clone(), base))
    }

    /// Writes the remaining rows, the result and its values, moves the run to its final place, and returns its folder. It replaces
    /// an earlier run of the same scenario, controllers, changes and seed. The trace hash is the result's `trace_hash`.
    ///
    /// # Errors
    /// The first error of this run. The earlier run is then still in place, and the next start recovers complete parts.
    pub fn finish(
        self,
        result: &serde_json::Value,
        values: Vec<(QuantityKey, Option<f64>)>,
    ) -> Result<PathBuf, StoreError> {
        // In this order: on an error the files are closed before their folder is removed.
        let Self { temporary, tables, failed, parts, attachments, runs, folder, header, inputs, base } = self;
        let mut about = About::new(&header, inputs, &base);
        let finish = || {
            let (data, files) = assemble(&runs, temporary, tables, &parts, &base)?;
            for (name, bytes) in &attachments {
                files::write_synced(&data.path().join(name), bytes)?;
            }
            files::sync_directory(data.path())?;
            about.run.files = files;
            about.run.trace_hash = result.get("trace_hash").and_then(|hash| hash.as_str()).map(str::to_owned);
            let run = measured(&about, about.run.trace_hash.as_deref().unwrap_or_default(), values);
            folder.add(about, (run, result.to_string()), &data)
        };
        let finished = match failed {
            Some(failed) => Err(failed),
            None => finish(),
        };
        if finished.is_err() {
            parts.leave();
        }
        finished
    }
}

/// Closes the tables and joins them with those of earlier parts. Returns the folder with all rows.
fn assemble(
    runs: &Path,
    last: Temporary,
    tables: EventTables,
    parts: &Parts,
    base: &str,
) -> Result<(Temporary, Vec<StoredFile>), StoreError> {
    let files = tables.finish()?;
    let mut folders = parts.folders()?;
    if folders.is_empty() {
        return Ok((last, files));
    }
    folders.push(last.path().to_path_buf());
    let whole = Temporary::directory(runs, base)?;
    let files = EventTables::join(&folders, whole.path())?;
    Ok((whole, files))
}
