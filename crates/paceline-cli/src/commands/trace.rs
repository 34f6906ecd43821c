// SPDX-License-Identifier: MIT OR Apache-2.0
//! `paceline trace`: a capacity trace of a model of a cellular link.

use crate::output;
use clap::builder::PossibleValuesParser;
use miette::{IntoDiagnostic, Result};
use paceline_scenario::cellular::{CELLULAR_LINKS, CellularLink, SECONDS_MAX};
use std::io::Write;
use std::process::ExitCode;

/// Arguments of `trace`.
#[derive(clap::Args)]
pub struct Arguments {
    /// The model: lte-drive, lte-stand, 3g-drive or 3g-stand; without it, they are listed.
    #[arg(value_parser = PossibleValuesParser::new(CELLULAR_LINKS.map(|link| link.name)), hide_possible_values = true)]
    model: Option<String>,
    /// Seed of the trace.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Length of the trace in seconds.
    #[arg(long, value_name = "S", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=i64::from(SECONDS_MAX)))]
    seconds: u32,
}

/// Prints the trace, for the key `trace` of a capacity.
pub fn trace(arguments: &Arguments) -> Result<ExitCode> {
    let link = arguments.model.as_deref().and_then(CellularLink::find);
    let text = match link {
        Some(link) => link.csv(arguments.seed, arguments.seconds),
        None => {
            let line = |link: &CellularLink| output::wrap(&format!("{:<10} {}", link.name, link.summary)) + "\n";
            CELLULAR_LINKS.iter().map(line).collect()
        }
    };
    std::io::stdout().lock().write_all(text.as_bytes()).into_diagnostic()?;
    Ok(ExitCode::SUCCESS)
}
