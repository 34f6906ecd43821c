// SPDX-License-Identifier: MIT OR Apache-2.0
//! Paceline as WebAssembly. Each module is a feature, and `cargo xtask` builds one at a time:
//!
//! * `npm`: controllers for JavaScript, which `js/paceline.mjs` wraps (`cargo xtask javascript`);
//! * `playground`: the simulator in one HTML page (`cargo xtask playground`).

#[cfg(feature = "npm")]
pub mod npm;
#[cfg(feature = "playground")]
pub mod playground;
