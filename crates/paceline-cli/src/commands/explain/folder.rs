// SPDX-License-Identifier: MIT OR Apache-2.0
//! A folder of captures, dumps and logs: a row for each file, the worst call first, and how many calls each cause has.

use super::VERSION;
use crate::table::Table;
use crate::view::View;
use paceline_explain::document::explain;
use paceline_explain::readers;
use paceline_explain::summary::worst;
use paceline_lab::results::{Store, StoreError};
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The calls of a folder of files.
#[derive(JsonSchema, Serialize)]
pub(super) struct Calls {
    /// The version of the document: higher if a member went away or has another meaning.
    version: u32,
    /// The worst call first; files that cannot be read last.
    calls: Vec<CallRow>,
}

/// A file of the folder. If it cannot be read, all members but its name and `error` are `null`.
#[derive(JsonSchema, Serialize)]
struct CallRow {
    /// Its name, without the folder. It may name people.
    file: String,
    /// The format of the file.
    format: Option<String>,
    /// The duration of the flow that was poor for longest, s.
    duration_s: Option<f64>,
    /// The poor seconds of that flow.
    poor_s: Option<usize>,
    /// The cause that cost most of them: its id, or `unknown`. `null` if there is none.
    cause: Option<&'static str>,
    /// How strong the evidence of that cause is, in words.
    evidence: Option<String>,
    /// The answer in one sentence.
    verdict: Option<String>,
    /// Why it cannot be read; `null` if it can.
    error: Option<String>,
}

/// Returns the files of a folder without results, in order of their names; `None` for anything else.
pub(super) fn files_of(path: &Path) -> Option<Vec<PathBuf>> {
    let is_plain = || !Store::exists(path) && matches!(Store::read_run(path), Err(StoreError::NotAResult { .. }));
    if !path.is_dir() || !is_plain() {
        return None;
    }
    let is_hidden = |path: &Path| path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
    let entries = std::fs::read_dir(path).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    let mut files: Vec<PathBuf> = entries.filter(|path| path.is_file() && !is_hidden(path)).collect();
    files.sort();
    Some(files).filter(|files| !files.is_empty())
}

impl Calls {
    /// Explains each file on its own, several at the same time.
    pub(super) fn new(files: &[PathBuf]) -> Self {
        let mut calls: Vec<CallRow> = files.par_iter().map(|file| CallRow::new(file)).collect();
        calls.sort_by_key(|call| (call.error.is_some(), std::cmp::Reverse(call.poor_s)));
        Self { version: VERSION, calls }
    }

    /// Returns why no file can be read; `None` if one can.
    pub(super) fn failure(&self) -> Option<String> {
        let first = self.calls.first()?;
        let error = first.error.as_ref()?;
        Some(format!("none of its {} files can be read; {}: {error}", self.calls.len(), first.file))
    }

    pub(super) fn view(&self) -> View {
        let mut view = View::default();
        let read: Vec<&CallRow> = self.calls.iter().filter(|call| call.error.is_none()).collect();
        let failed = self.calls.len() - read.len();
        let poor = read.iter().filter(|call| call.poor_s > Some(0)).count();
        let unread = if failed > 0 { format!("; cannot be read: {failed}") } else { String::new() };
        view.sentences(format!("{poor} of {} calls were poor at some time{unread}.", read.len()));
        view.gap();
        let mut by_cause: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for call in &read {
            let sums = by_cause.entry(call.cause.unwrap_or("none")).or_default();
            *sums = (sums.0 + 1, sums.1 + call.poor_s.unwrap_or(0));
        }
        let mut by_cause: Vec<_> = by_cause.into_iter().collect();
        by_cause.sort_by_key(|(_, sums)| std::cmp::Reverse((sums.1, sums.0)));
        let mut table = Table::new(["first cause", "calls", "poor"], 1);
        for (cause, (calls, poor)) in by_cause {
            table.row(vec![cause.to_owned(), calls.to_string(), format!("{poor} s")]);
        }
        view.table(table);
        let mut table = Table::new(["file", "poor", "of", "first cause", "evidence"], 1);
        for call in &read {
            let seconds = |seconds: Option<f64>| seconds.map_or_else(String::new, |seconds| format!("{seconds:.0} s"));
            table.row(vec![
                call.file.clone(),
                seconds(call.poor_s.map(|poor| poor as f64)),
                seconds(call.duration_s),
                call.cause.unwrap_or_default().to_owned(),
                call.evidence.clone().unwrap_or_default(),
            ]);
        }
        view.table(table);
        for call in &self.calls {
            if let Some(error) = &call.error {
                view.line("· ", format!("{}: {error}", call.file));
            }
        }
        view
    }
}

impl CallRow {
    fn new(path: &Path) -> Self {
        let file = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let row = Self {
            file,
            format: None,
            duration_s: None,
            poor_s: None,
            cause: None,
            evidence: None,
            verdict: None,
            error: None,
        };
        let explanation = match readers::read(path, None) {
            Ok(call) => explain(&call),
            Err(error) => return Self { error: Some(error.to_string()), ..row },
        };
        let flow = worst(&explanation.flows).map(|index| &explanation.flows[index]);
        let cause = flow.and_then(|flow| flow.causes.first());
        Self {
            format: Some(explanation.format.clone()),
            duration_s: flow.map(|flow| flow.duration_s),
            poor_s: flow.map(|flow| flow.poor_s),
            cause: cause.map(|cause| cause.cause),
            evidence: cause.map(|cause| cause.confidence()),
            verdict: Some(explanation.verdict.clone()),
            ..row
        }
    }
}
