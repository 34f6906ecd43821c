// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors of the testbed.

use paceline_netsim::world::WorldError;
use std::io;

/// The reason why the testbed is not available on this host.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unavailable {
    /// A network namespace cannot be created.
    #[error("cannot create a network namespace: {0}")]
    Namespace(#[source] io::Error),
    /// The settings of a namespace cannot be written, as in most containers.
    #[error("cannot write a network namespace's settings below /proc/sys/net: {0}")]
    Settings(#[source] io::Error),
    /// A network device cannot be created.
    #[error("cannot create a network device: {0}")]
    Device(#[source] io::Error),
    /// Packets of a link cannot be forwarded to other networks.
    #[error("cannot give the command access to other networks: {0}")]
    Nat(#[source] io::Error),
}

impl Unavailable {
    /// Returns a hint to make the testbed available.
    pub fn hint(&self) -> &'static str {
        "network namespaces and TUN devices need root, or CAP_SYS_ADMIN and CAP_NET_ADMIN; if the kernel allows \
         unprivileged namespaces, run `unshare --user --map-root-user --net paceline …`"
    }
}

impl From<Unavailable> for WorldError {
    fn from(error: Unavailable) -> Self {
        Self::Unavailable { cause: error.to_string(), hint: error.hint().to_owned() }
    }
}

/// Converts an error of the system that aborted a run.
pub(crate) fn broken(error: io::Error) -> WorldError {
    WorldError::Broken { cause: error.to_string() }
}
