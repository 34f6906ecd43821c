//! The test track: a scenario over network devices, kernel TCP and UDP sockets, in real time.
#![cfg(target_os = "linux")]

pub mod clock;
pub mod namespace;
pub mod tcp;

use std::io;

/// Why this machine has no test track.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unavailable {
    /// No network namespace.
    #[error("cannot make a network namespace: {0}")]
    Namespace(#[source] io::Error),
}
