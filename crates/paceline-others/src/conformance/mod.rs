// SPDX-License-Identifier: MIT OR Apache-2.0
//! GoogCC against the crate `goog_cc`, a port of libwebrtc's send side of 2024-12: the same inputs go through both, and each
//! decision is compared.
//!
//! ```text
//! Script (seed) -> World -- inputs --> Oracle (goog_cc) --> targets, clusters
//!                    ^        '------> Subject (paceline) -> targets, clusters       compared after each input
//!                    '-- rate, clusters of the oracle
//! ```
//!
//! The oracle leads: its rates and probe clusters decide what is sent, so both see the same packets. A [`Script`] is a class of
//! conditions and a seed.

mod case;
mod compare;
mod input;
mod oracle;
mod script;
mod subject;
mod world;

pub use case::{Case, Rule};
pub use compare::{Divergence, Tally, compare, compare_pair};
pub use input::{Cluster, Input, MAX_BPS, MIN_BPS, Output, Packet, ProbeTag, START_BPS, Sent};
pub use oracle::{Oracle, Vintage, trials};
pub use script::{Class, Conditions, Script};
pub use subject::Subject;
pub use world::World;
