// SPDX-License-Identifier: MIT OR Apache-2.0
//! The testbed in real time. A test binary of its own, so that no simulation runs at the same time.
#![cfg(target_os = "linux")]

mod browser;
#[path = "../common/mod.rs"]
mod common;
mod controller_failures;
#[path = "../../../paceline-lab/tests/it/failing_halves.rs"]
mod failing_halves;
mod marks;
mod two_arms;
