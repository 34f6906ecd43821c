//! The test track: a scenario over network devices, kernel TCP and UDP sockets, in real time.
#![cfg(target_os = "linux")]

pub mod classify;
pub mod clock;
pub mod device;
pub mod emulate;
pub mod hold;
pub mod ipv4;
pub mod link;
pub mod media;
pub mod namespace;
pub mod port;
pub mod relay;
mod rows;
pub mod socket;
pub mod tcp;
mod testbed;
pub mod track;
pub mod wait;
pub mod watch;

use paceline_lab::world::WorldError;
use std::io;
pub use testbed::Testbed;

/// Why this machine has no test track.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unavailable {
    /// No network namespace.
    #[error("cannot make a network namespace: {0}")]
    Namespace(#[source] io::Error),
    /// The settings of a namespace cannot be written, as in most containers.
    #[error("cannot write a network namespace's settings below /proc/sys/net: {0}")]
    Settings(#[source] io::Error),
    /// No network device.
    #[error("cannot make a network device: {0}")]
    Device(#[source] io::Error),
}

impl Unavailable {
    /// How to get it.
    pub fn hint(&self) -> &'static str {
        "network namespaces and TUN devices need root, or CAP_SYS_ADMIN and CAP_NET_ADMIN; where the kernel lets \
                    everybody have namespaces, `unshare --user --map-root-user --net paceline …` is enough"
    }
}

impl From<Unavailable> for WorldError {
    fn from(error: Unavailable) -> Self {
        Self::Unavailable { cause: error.to_string(), hint: error.hint().to_owned() }
    }
}

/// The system broke a run off.
fn broken(error: io::Error) -> WorldError {
    WorldError::Broken { cause: error.to_string() }
}
