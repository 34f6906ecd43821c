// SPDX-License-Identifier: MIT OR Apache-2.0
//! Integration tests of scenarios and plans, in one binary.

mod conditions;
mod describe;
mod link_control;
