// SPDX-License-Identifier: MIT OR Apache-2.0
//! `paceline calibrate`: the search for assumed constants, which the Python package contains.

use super::options::{Names, papers};
use super::python_module;
use clap::Args;
use miette::Result;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

/// Arguments of `calibrate`.
#[derive(Args)]
pub struct Arguments {
    /// Paper, such as `mmsys16`.
    #[arg(value_parser = Names(papers), hide_possible_values = true)]
    paper: String,
    /// Folder of the trials and the result; the same command continues an interrupted search.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Trials of each search, the assumed values included.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..))]
    trials: u32,
    /// Number of runs of each case in a trial, on seeds from 1; the verdicts take as many as they need.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    repeats: u32,
    /// The experiments that are searched: every other one by name, from the first or the second on.
    #[arg(long, default_value = "first", value_parser = ["first", "second"])]
    half: String,
    /// Wrong controllers that are searched with the same number of trials.
    #[arg(long, value_name = "NAME[,NAME…]", value_delimiter = ',', default_value = "fixed")]
    wrong: Vec<String>,
}

/// Starts the search in the interpreter that contains this program; `program` is how the program starts itself.
pub fn calibrate(arguments: &Arguments, program: Option<&[OsString]>) -> Result<ExitCode> {
    let mut words: Vec<OsString> = vec![arguments.paper.clone().into(), "--out".into(), arguments.out.clone().into()];
    let (trials, seeds) = (arguments.trials.to_string(), arguments.repeats.to_string());
    let wrong = arguments.wrong.join(",");
    let options = ["--trials", &trials, "--seeds", &seeds, "--half", &arguments.half, "--wrong", &wrong];
    words.extend(options.map(OsString::from));
    python_module::run(program, "calibrate", "calibration", &words)
}
