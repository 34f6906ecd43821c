// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests with Chromium.

#[cfg(target_os = "linux")]
mod call;
mod chromium;
#[cfg(target_os = "linux")]
#[path = "../../../examples/endpoint/remb_steps.rs"]
mod remb_steps;
