//! The testbed in real time. A test binary of its own, so that no simulation runs at the same time.
#![cfg(target_os = "linux")]

mod browser;
#[path = "../common/mod.rs"]
mod common;
mod controller_failures;
mod marks;
mod two_arms;
