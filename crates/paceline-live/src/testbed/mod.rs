//! The testbed: scenarios over network devices, kernel TCP and UDP sockets, in real time.
//!
//! [`testbed_network::TestbedNetwork`] creates two network namespaces and runs a plan between them: [`link::Link`] carries
//! packets between two [`link_port::LinkPort`]s and uses the simulator's network model for every decision.

mod backend;
pub mod child_guard;
pub mod classify;
pub mod clock;
pub mod command_user;
pub mod device;
mod event_merge;
pub mod five_tuple;
pub mod host_monitor;
pub mod ip;
pub mod lateness;
pub mod link;
pub mod link_emulator;
pub mod link_port;
pub mod media_endpoint;
pub mod namespace;
mod nat;
pub mod relay;
pub mod socket;
pub mod tcp;
pub mod testbed_network;
pub mod testbed_run;
pub mod timing;

pub use backend::Testbed;
use paceline_netsim::backend::BackendError;
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

impl From<Unavailable> for BackendError {
    fn from(error: Unavailable) -> Self {
        Self::Unavailable { cause: error.to_string(), hint: error.hint().to_owned() }
    }
}

/// Converts an error of the system that aborted a run.
fn broken(error: io::Error) -> BackendError {
    BackendError::Broken { cause: error.to_string() }
}
