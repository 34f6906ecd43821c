// SPDX-License-Identifier: MIT OR Apache-2.0
//! Calls in real time, and control of the browser.
#![cfg(unix)]

mod browser;
#[cfg(target_os = "linux")]
mod loopback;
