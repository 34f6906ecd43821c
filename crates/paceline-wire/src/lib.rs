//! RTP and RTCP: bytes to typed reports and back.
//!
//! This crate knows layouts and nothing of algorithms; it reads no clock, allocates nothing while it reads or writes,
//! and never panics on bytes from the network: whatever is malformed is a [`WireError`], one name per kind.

mod bytes;
mod error;
pub mod rtp;
pub mod rtx;
pub mod vp8;

pub use error::{WireError, WriteError};
pub use rtp::{AbsSendTime, ExtensionIds, RtpHeader};
pub use vp8::Vp8Descriptor;
