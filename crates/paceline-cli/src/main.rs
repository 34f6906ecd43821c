// SPDX-License-Identifier: MIT OR Apache-2.0
//! The `paceline` command.

use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    paceline_cli::run(&std::env::args_os().collect::<Vec<OsString>>())
}
