//! Why a call cannot be.

use paceline_lab::world::WorldError;

/// Why a call cannot be.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EndpointError {
    /// The flow cannot be made.
    #[error(transparent)]
    World(#[from] WorldError),
    /// What the other end sent is no session description.
    #[error("no session description: {0}")]
    NotSdp(String),
    /// The other end does not offer or answer what a call of ours needs.
    #[error("the other end's session description has {0}")]
    Disagreement(String),
    /// The WebRTC library refuses.
    #[error("WebRTC: {0}")]
    Library(#[from] rtc::shared::error::Error),
    /// The system has no socket for it.
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
