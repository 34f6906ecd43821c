//! Link servers: how a link transmits the packets that its queue releases.
//!
//! To add one: a file here with a [`ServerEntry`], and a line in [`SERVERS`]. A server describes its service
//! ([`Service`]); [`Link`](super::Link) computes the times.

mod line;
mod registry;
mod shared;
mod token_bucket;
mod wifi;

pub use registry::{CapacityNeed, SERVERS, ServerEntry, ServerError, ServerPlan, Service};
