// SPDX-License-Identifier: MIT OR Apache-2.0
//! Commands that a module of the Python package contains.

use miette::{IntoDiagnostic, Result, miette};
use std::ffi::OsString;
use std::process::{Command, ExitCode};

/// Starts `paceline.MODULE` with these arguments in the interpreter that contains this program; `program` is how the program starts
/// itself. `command` is the name of the command in messages.
pub fn run(program: Option<&[OsString]>, command: &str, module: &str, arguments: &[OsString]) -> Result<ExitCode> {
    let Some([python, ..]) = program else {
        let help = "install it with `pip install 'paceline[calibrate]'`, which also provides this command";
        return Err(miette!(help = help, "`paceline {command}` is part of the Python package"));
    };
    let mut process = Command::new(python);
    process.args(["-m", &format!("paceline.{module}")]).args(arguments);
    let status = process.status().into_diagnostic()?;
    Ok(ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)))
}
