//! Writes results to stdout. A closed pipe is not an error.

use miette::{IntoDiagnostic, Result};
use serde::Serialize;
use std::io::{ErrorKind, Write};
use std::process::ExitCode;

/// Prints text and a newline.
pub fn print(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other.into_diagnostic(),
    }
}

/// Prints one JSON document.
pub fn print_json(document: &impl Serialize) -> Result<()> {
    print(&serde_json::to_string_pretty(document).into_diagnostic()?)
}

/// Prints a result as JSON, or as the text that `describe` returns.
pub fn print_result(json: bool, document: &impl Serialize, describe: impl FnOnce() -> String) -> Result<()> {
    match json {
        true => print_json(document),
        false => print(describe().trim_end()),
    }
}

/// Returns exit code 0 if every assertion passed, else 1.
pub fn exit_code(passed: bool) -> Result<ExitCode> {
    Ok(ExitCode::from(u8::from(!passed)))
}
