// SPDX-License-Identifier: MIT OR Apache-2.0
//! Calls with a real browser: the world `browser`.
//!
//! Each media flow is a WebRTC call over the testbed's link. The controller of the flow determines the endpoints
//! ([`CallRoles`]): Chromium at both sides, Chromium as sender with a local receiver, or a local sender with Chromium as
//! receiver. Session descriptions are exchanged outside the link; all packets cross the link.

mod browser_world;
mod browsers;
mod call_roles;
mod calls;
pub mod camera;
mod classify;
mod encoder_load;
pub mod endpoint;
mod local_endpoint;
mod signalling;
mod stats;

pub use browser_world::BrowserWorld;
pub use call_roles::{CallRoles, registry, roles_for};
