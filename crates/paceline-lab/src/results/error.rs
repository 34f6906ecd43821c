// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors of reading and writing results.

use std::io;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The folder is not empty and contains no results.
    #[error("`{}` is not empty and holds no Paceline result; name a new folder or one of earlier results", .path.display())]
    NotAResult { path: PathBuf },
    #[error("`{}` is damaged: {cause}", .path.display())]
    Damaged { path: PathBuf, cause: String },
    /// A later version wrote the folder.
    #[error("`{}` has format {found}, and this version knows up to {known}", .path.display())]
    TooNew {
        path: PathBuf,
        found: u32,
        /// The latest format that this version reads.
        known: u32,
    },
    /// An operation of the file system failed.
    #[error("cannot {action} `{}`{}", .path.display(), remedy(.action, .source))]
    Io {
        action: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[cfg(feature = "storage")]
    #[error("cannot use the database `{}`", .path.display())]
    Database {
        path: PathBuf,
        #[source]
        source: rusqlite::Error,
    },
    #[cfg(feature = "storage")]
    #[error("cannot write the table `{}`", .path.display())]
    WriteTable {
        path: PathBuf,
        #[source]
        source: parquet::errors::ParquetError,
    },
    #[cfg(feature = "storage")]
    #[error("`{}` cannot be read as a table", .path.display())]
    ReadTable {
        path: PathBuf,
        #[source]
        source: parquet::errors::ParquetError,
    },
    #[error("`{}`: column `{column}` {cause}", .path.display())]
    Column { path: PathBuf, column: &'static str, cause: String },
    /// An event refers to a flow, hop or signal that the run's header does not declare: a defect of the world.
    #[error("an event refers to {what} {index}, which the run's header does not declare")]
    Undeclared {
        /// `flow`, `hop` or `signal`.
        what: &'static str,
        /// The index in the event.
        index: usize,
    },
}

/// Returns what to do if a file or a folder cannot be created.
fn remedy(action: &str, source: &io::Error) -> &'static str {
    match source.kind() {
        _ if !action.starts_with("create") => "",
        io::ErrorKind::NotFound => "; make its folder first, or name another",
        io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory => "; a file has this name: name another folder",
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => "; name a place where you may write",
        _ => "",
    }
}
