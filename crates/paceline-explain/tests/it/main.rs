// SPDX-License-Identifier: MIT OR Apache-2.0
//! Integration tests, in one binary.

mod confusion;
mod fit;
mod fuzz;
mod generator;
mod readers;
mod redaction;
mod samples;
