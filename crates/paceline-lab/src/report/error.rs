// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors of this crate.

use crate::results::StoreError;
use std::path::PathBuf;

/// Why results cannot be read or a page cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// The folder or one of its JSON files cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The folder contains no run.
    #[error("`{}` contains no run; create one with `paceline run SCENARIO --out DIR`", .path.display())]
    Empty { path: PathBuf },
    /// The template of the page failed, which is a defect of this crate.
    #[error("the page cannot be rendered")]
    Page(#[from] askama::Error),
}
