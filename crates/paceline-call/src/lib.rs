//! Calls with a real browser: the world `browser`.
//!
//! A flow is a call over the test track's link, and its controller says who is at its ends ([`Mode`]): Chromium at both,
//! Chromium that sends to our end, or our end that sends to Chromium. What the ends tell each other of themselves goes past
//! the link; what they send each other over it.
#![cfg(target_os = "linux")]

mod browsers;
mod calls;
pub mod camera;
mod classify;
pub mod endpoint;
mod mode;
mod ours;
mod signalling;
mod stats;
mod strain;
mod world;

pub use mode::{Mode, mode, registry};
pub use world::BrowserWorld;
