// SPDX-License-Identifier: MIT OR Apache-2.0
//! The testbed: scenarios over network devices, kernel TCP and UDP sockets, in real time.
//!
//! [`testbed_network::TestbedNetwork`] creates two network namespaces and runs a plan between them: [`link::Link`] carries
//! packets between two [`link_port::LinkPort`]s and uses the simulator's network model for every decision.

pub mod child_guard;
pub mod classify;
pub mod clock;
pub mod command_user;
pub mod device;
mod error;
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
mod world;

pub use error::Unavailable;
pub use world::Testbed;
