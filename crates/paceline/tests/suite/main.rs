// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the public interface: properties that hold for every registered controller, and published numbers.

mod allocations;
mod conformance;
mod constants;
mod failures;
mod network_changes;
mod over_use;
mod scream_libwebrtc;
mod scream_v2_cpp;
mod sender;
mod snapshots;
mod vectors;
