// SPDX-License-Identifier: MIT OR Apache-2.0
//! `paceline search`: the search for paths on which a controller fails, which the Python package contains.

use super::python_module;
use clap::Args;
use miette::Result;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

/// Arguments of `search`.
#[derive(Args)]
pub struct Arguments {
    /// The controllers, one after the other.
    #[arg(required = true, value_name = "NAME[,NAME…]", value_delimiter = ',')]
    controllers: Vec<String>,
    /// Folder of the trials and the scenarios; the same command continues an interrupted search.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Paths that each search tries.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    trials: u32,
    /// Searches for each controller. They take turns at the bounds, and each turn has the next seed.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    searches: u32,
    /// Seed of the first turn.
    #[arg(long, default_value_t = 1)]
    seed: u32,
    /// The bounds that are attacked: `use`: half of what source and link allow; `queue`: a 95th percentile of the queuing delay of 100
    /// ms; `freeze`: frozen video for a twentieth of the time.
    #[arg(long, value_name = "BOUND[,BOUND…]", value_delimiter = ',', default_value = "use,queue,freeze", value_parser = ["use", "queue", "freeze"])]
    bounds: Vec<String>,
}

/// Starts the searches in the interpreter that contains this program; `program` is how the program starts itself.
pub fn search(arguments: &Arguments, program: Option<&[OsString]>) -> Result<ExitCode> {
    let numbers = [("--trials", arguments.trials), ("--searches", arguments.searches), ("--seed", arguments.seed)];
    let mut words: Vec<OsString> = vec![arguments.controllers.join(",").into()];
    words.extend(["--bounds".into(), arguments.bounds.join(",").into()]);
    words.extend(numbers.iter().flat_map(|(name, number)| [OsString::from(name), number.to_string().into()]));
    words.extend(["--out".into(), arguments.out.clone().into()]);
    python_module::run(program, "search", "search", &words)
}
