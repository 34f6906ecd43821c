//! Errors of runs as errors of the command, with their exit codes.

use miette::{Diagnostic, Report};
use paceline_lab::run_cache::RunCacheError;
use paceline_netsim::backend::BackendError;
use paceline_results::StoreError;
use std::fmt::{Display, Formatter, Result};

/// A backend could not make a run.
#[derive(Debug)]
struct RunFailed(BackendError);

impl Display for RunFailed {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for RunFailed {}

impl Diagnostic for RunFailed {
    fn help(&self) -> Option<Box<dyn Display + '_>> {
        match &self.0 {
            BackendError::Unavailable { hint, .. } => Some(Box::new(hint)),
            _ => None,
        }
    }
}

/// Returns the exit code for an error: 3 if the world is not available, else 2.
pub fn exit_code(error: &Report) -> u8 {
    match error.downcast_ref() {
        Some(RunFailed(BackendError::Unavailable { .. })) => 3,
        _ => 2,
    }
}

/// Converts the error of a backend.
pub fn backend_error(error: BackendError) -> Report {
    RunFailed(error).into()
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
