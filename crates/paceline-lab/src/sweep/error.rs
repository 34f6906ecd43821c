// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors of sweeps.

use crate::results::StoreError;
use miette::Diagnostic;
use paceline_netsim::world::WorldError;
use paceline_scenario::ScenarioError;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error, Diagnostic)]
#[non_exhaustive]
pub enum SweepError {
    #[error(transparent)]
    #[diagnostic(transparent)]
    ScenarioError(#[from] ScenarioError),
    #[error(transparent)]
    World(#[from] WorldError),
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The folder contains jobs, and `resume` was not given.
    #[error("`{}` holds {done} of the {jobs} jobs of {id}", .path.display())]
    #[diagnostic(help("--resume continues with them; to start again, name a new folder"))]
    Taken { path: PathBuf, id: String, done: u64, jobs: u64 },
    /// The folder contains another sweep, so it cannot be resumed.
    #[error("`{}` cannot be resumed: {differs}", .path.display())]
    #[diagnostic(help("name a new folder, or use the sweep and version with which it was made"))]
    Foreign { path: PathBuf, differs: String },
    /// Another process uses the folder.
    #[error("another process uses `{}`", .path.display())]
    #[diagnostic(help("wait for it, or end it and continue with --resume"))]
    Busy { path: PathBuf },
    #[error("`{}` has {jobs} jobs, numbered from 0, and a row has job {job}", .path.display())]
    #[diagnostic(help(
        "workers read the same text, with the same seeds per point, as the process that holds the folder"
    ))]
    Beyond { path: PathBuf, job: u64, jobs: u64 },
    /// Rows were merged before all jobs were finished.
    #[error("`{}` lacks job {job}", .path.display())]
    #[diagnostic(help("--resume runs the missing jobs"))]
    Incomplete { path: PathBuf, job: u64 },
}
