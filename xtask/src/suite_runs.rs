// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask others` and `cargo xtask mutations`: suites with controllers that the shipped command does not have.

use crate::steps::{Problem, command, run};

/// Runs suites under the controllers of other libraries.
pub fn others(arguments: &[String]) -> Result<(), Problem> {
    Ok(run(command("cargo run --quiet --release -p paceline-others --").args(arguments))?)
}

/// Runs suites under GoogCC with one fault each.
pub fn mutations(arguments: &[String]) -> Result<(), Problem> {
    Ok(run(command("cargo run --quiet --release -p paceline-lab --example mutations --").args(arguments))?)
}
