// SPDX-License-Identifier: MIT OR Apache-2.0
//! `paceline schema`.

use super::explain;
use crate::external;
use crate::output;
use clap::ValueEnum;
use miette::Result;
use std::process::ExitCode;

/// Arguments of `schema`.
#[derive(clap::Args)]
pub struct Arguments {
    /// What the schema describes.
    #[arg(value_enum, default_value_t = Subject::Scenario)]
    of: Subject,
}

#[derive(Clone, Copy, ValueEnum)]
enum Subject {
    /// Scenario files.
    Scenario,
    /// The lines between the laboratory and an `exec:` controller.
    Controller,
    /// What `explain --json` prints.
    Explain,
}

/// Prints the schema.
pub fn schema(arguments: &Arguments) -> Result<ExitCode> {
    output::print_json(&match arguments.of {
        Subject::Scenario => paceline_scenario::schema(),
        Subject::Controller => external::schema()?,
        Subject::Explain => explain::schema(),
    })?;
    Ok(ExitCode::SUCCESS)
}
