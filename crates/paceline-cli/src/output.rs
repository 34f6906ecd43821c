//! Writing results to stdout. A reader that went away is no error.

use miette::{IntoDiagnostic, Result};
use std::io::{ErrorKind, Write};

/// Prints text and a newline.
pub fn print(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other.into_diagnostic(),
    }
}

/// Prints one JSON document.
pub fn print_json(value: &impl serde::Serialize) -> Result<()> {
    print(&serde_json::to_string_pretty(value).into_diagnostic()?)
}
