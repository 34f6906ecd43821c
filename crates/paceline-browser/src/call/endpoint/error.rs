// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors of a local endpoint.

use paceline_netsim::world::WorldError;

/// An error of a local endpoint.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EndpointError {
    /// The media flow cannot be created.
    #[error(transparent)]
    World(#[from] WorldError),
    /// The remote text is not a session description.
    #[error("not a session description: {0}")]
    NotSdp(String),
    /// The remote session description lacks something that the endpoint needs.
    #[error("the remote session description has {0}")]
    Disagreement(String),
    /// The WebRTC library failed.
    #[error("WebRTC: {0}")]
    Library(#[from] rtc::shared::error::Error),
    /// The socket cannot be opened.
    #[error("no socket: {0}")]
    Socket(#[from] std::io::Error),
}

impl From<EndpointError> for WorldError {
    fn from(error: EndpointError) -> Self {
        match error {
            EndpointError::World(error) => error,
            error => Self::Broken { cause: error.to_string() },
        }
    }
}
