//! Errors of runs as errors of the command, with their exit codes.

use crate::repeat::Repeat;
use miette::{Diagnostic, Report};
use paceline_lab::results::StoreError;
use paceline_lab::run_cache::RunCacheError;
use paceline_netsim::backend::BackendError;

/// A backend could not make a run.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("{error}")]
struct RunFailed {
    error: BackendError,
    #[help]
    hint: Option<String>,
}

/// Returns the exit code for an error: 3 if the world is not available, else 2.
pub fn exit_code(error: &Report) -> u8 {
    match error.downcast_ref() {
        Some(RunFailed { error: BackendError::Unavailable { .. }, .. }) => 3,
        _ => 2,
    }
}

/// Converts the error of a backend.
pub fn backend_error(error: BackendError) -> Report {
    let hint = match &error {
        BackendError::Unavailable { hint, .. } => Some(hint.clone()),
        _ => None,
    };
    RunFailed { error, hint }.into()
}

/// Adds the command that repeats the run, if the error is the failure of a controller.
pub fn with_repeat(error: Report, repeat: &Repeat<'_>) -> Report {
    let mut failed: RunFailed = match error.downcast() {
        Ok(failed) => failed,
        Err(other) => return other,
    };
    if let BackendError::ControllerFailed { failure, plan, case, seed } = &failed.error {
        let command = repeat.command(&failure.controller, plan, case, *seed);
        failed.hint = Some(format!("the same run again: {command}"));
    }
    failed.into()
}

/// Converts the error of a run that was to be stored.
pub fn cached_run_error(error: RunCacheError) -> Report {
    match error {
        RunCacheError::Backend(error) => backend_error(error),
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

impl From<BackendError> for StorageError {
    fn from(error: BackendError) -> Self {
        Self(backend_error(error))
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
