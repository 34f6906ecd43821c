//! `paceline calibrate`: the search for assumed constants, which the Python package contains.

use clap::Args;
use miette::{IntoDiagnostic, Result, miette};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// Arguments of `calibrate`.
#[derive(Args)]
pub struct Arguments {
    /// Paper, such as `mmsys16`.
    paper: String,
    /// Folder of the trials and the result; the same command continues an interrupted search.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Trials of each search, the assumed values included.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..))]
    trials: u32,
    /// Runs of each case in a trial; the verdicts take as many as they need.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    seeds: u32,
    /// The experiments that are searched: every other one by name, from the first or the second on.
    #[arg(long, default_value = "first", value_parser = ["first", "second"])]
    half: String,
    /// Wrong controllers that are searched with the same number of trials.
    #[arg(long, value_name = "NAME[,NAME…]", value_delimiter = ',', default_value = "fixed")]
    wrong: Vec<String>,
}

/// Starts the search in the interpreter that contains this program; `program` is how the program starts itself.
pub fn calibrate(arguments: &Arguments, program: Option<&[OsString]>) -> Result<ExitCode> {
    let Some([python, ..]) = program else {
        let help = "install it with `pip install 'paceline[calibrate]'`, which also provides this command";
        return Err(miette!(help = help, "`paceline calibrate` is part of the Python package"));
    };
    let mut command = Command::new(python);
    command.args(["-m", "paceline.calibration", &arguments.paper, "--out"]).arg(&arguments.out);
    let (trials, seeds) = (arguments.trials.to_string(), arguments.seeds.to_string());
    command.args(["--trials", &trials, "--seeds", &seeds, "--half", &arguments.half]);
    command.args(["--wrong", &arguments.wrong.join(",")]);
    let status = command.status().into_diagnostic()?;
    Ok(ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)))
}
