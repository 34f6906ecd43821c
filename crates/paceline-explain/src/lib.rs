// SPDX-License-Identifier: MIT OR Apache-2.0
//! `paceline explain`: why the rate of a call fell.
//!
//! ```text
//! bytes --readers--> Call --episodes--> drops, plateaus --causes--> findings
//! ```
//!
//! Pure: bytes in, typed model out. No clock, no network. A reader fills the [model](model::Call); [`diagnosis`] finds each drop and
//! each plateau of the rate, and asks every [cause](causes::CAUSES) for evidence.

// Other programs embed `paceline`, not this crate: what a name says needs no comment.
#![allow(missing_docs)]

mod carried;
pub mod causes;
pub mod diagnosis;
pub mod document;
pub mod ecn;
pub mod episodes;
pub mod error;
mod explanation;
pub mod facts;
pub mod fit;
mod frames;
pub mod model;
pub mod packets;
pub mod path;
pub mod readers;
pub mod redact;
pub mod statistics;
pub mod summary;
#[cfg(test)]
mod test_flow;
pub mod transport;

pub use error::ReadError;
