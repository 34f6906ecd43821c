// SPDX-License-Identifier: MIT OR Apache-2.0
//! Browsers in runs and in tests.
//!
//! * [`chromium`]: a headless Chromium, driven over the DevTools protocol (Unix);
//! * [`call`]: calls with a real browser, the world `browser` (Linux, feature `call`).

#[cfg(all(target_os = "linux", feature = "call"))]
pub mod call;
#[cfg(unix)]
pub mod chromium;
