// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors of runs as errors of the command, with their exit codes.

use miette::{Diagnostic, Report};
use paceline_lab::results::StoreError;
use paceline_lab::run_cache::RunCacheError;
use paceline_netsim::world::WorldError;

/// A world could not make a run.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("{error}")]
pub(crate) struct RunFailed {
    pub error: WorldError,
    #[help]
    pub hint: Option<String>,
}

/// Returns the exit code for an error: 3 if the world is not available, else 2.
pub fn exit_code(error: &Report) -> u8 {
    match error.downcast_ref() {
        Some(RunFailed { error: WorldError::Unavailable { .. }, .. }) => 3,
        _ => 2,
    }
}

/// Converts the error of a world.
pub fn world_error(error: WorldError) -> Report {
    let hint = match &error {
        WorldError::Unavailable { hint, .. } => Some(hint.clone()),
        _ => None,
    };
    RunFailed { error, hint }.into()
}

/// Converts the error of a run that was to be stored.
pub fn cached_run_error(error: RunCacheError) -> Report {
    match error {
        RunCacheError::World(error) => world_error(error),
        other => Report::from_err(other),
    }
}

/// A run that could not be made or stored.
pub struct StorageError(Report);

impl StorageError {
    /// Wraps an error that has no exit code of its own.
    pub fn new(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self(Report::from_err(error))
    }
}

impl From<WorldError> for StorageError {
    fn from(error: WorldError) -> Self {
        Self(world_error(error))
    }
}

impl From<StoreError> for StorageError {
    fn from(error: StoreError) -> Self {
        Self::new(error)
    }
}

impl From<StorageError> for Report {
    fn from(error: StorageError) -> Self {
        error.0
    }
}
