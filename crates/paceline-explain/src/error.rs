// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can be wrong with an input or its copy.

use crate::model::NEWEST_FIRST;
use paceline_lab::results::StoreError;
use std::path::PathBuf;

/// The formats that can be read, for messages.
pub const FORMATS: &str = "a folder that --out wrote, a pcapng or pcap capture, a dump of chrome://webrtc-internals (text or .gz), \
     getStats samples as JSON, rtcstats_dump, or an RTC event log";

/// An error of reading an input, or of writing a copy of it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// A file operation failed.
    #[error("cannot be read: {source}")]
    Io { source: std::io::Error },
    /// A copy cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        source: std::io::Error,
    },
    /// The format is none of those that can be read.
    #[error("unknown format: {begins}")]
    UnknownFormat {
        /// With what it begins.
        begins: String,
    },
    /// The input is damaged.
    #[error("{format}: {place}: {problem}")]
    Damaged {
        /// The format that it was taken for.
        format: &'static str,
        /// Where: a line, a byte, a record.
        place: String,
        /// What is wrong there.
        problem: String,
    },
    /// The input is whole, and has nothing to explain.
    #[error("{format}: {problem}")]
    Empty {
        format: &'static str,
        /// What is missing.
        problem: String,
    },
    /// A redacted copy would replace its input.
    #[error("the copy needs another name than the input")]
    SameFile,
    /// A folder of results has nothing to redact.
    #[error("folders of results contain nothing to redact")]
    NothingToRedact,
    /// A folder of results has no run of this name, or several.
    #[error("{}", which_run(wanted.as_deref(), *count))]
    WhichRun {
        /// The name that was given.
        wanted: Option<String>,
        /// The names of the runs.
        runs: String,
        /// How many there are.
        count: usize,
    },
    /// A folder has no results.
    #[error("the folder has no results")]
    NoResults,
    /// A folder of results cannot be read.
    #[error(transparent)]
    Store(StoreError),
}

impl From<StoreError> for ReadError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NotAResult { .. } => Self::NoResults,
            error => Self::Store(error),
        }
    }
}

fn which_run(wanted: Option<&str>, count: usize) -> String {
    match wanted {
        Some(name) => format!("the folder has no run `{name}`"),
        None => format!("the folder has {count} runs"),
    }
}

impl ReadError {
    /// Returns how to mend it.
    pub fn help(&self) -> String {
        match self {
            Self::UnknownFormat { .. } => format!("readable are {FORMATS}"),
            Self::WhichRun { runs, .. } => format!("name one with --run: {runs}"),
            Self::Damaged { .. } => {
                "save or copy the file again; a cut file is read up to its last whole record".to_owned()
            }
            Self::Empty { problem, .. } if problem == NEWEST_FIRST => {
                "put the oldest first: `tac FILE > NEW` if each line has a report".to_owned()
            }
            Self::Empty { .. } => "the input must contain RTP that is sent or received for some seconds".to_owned(),
            Self::SameFile => "name another file after --redact".to_owned(),
            Self::NothingToRedact => "share the folder as it is".to_owned(),
            Self::NoResults => format!("readable are {FORMATS}"),
            Self::Io { .. } | Self::Write { .. } | Self::Store(_) => "check the path and the permissions".to_owned(),
        }
    }
}
