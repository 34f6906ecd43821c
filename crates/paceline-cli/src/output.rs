//! Writes results to stdout, with styles where a terminal shows them. A closed pipe is not an error.

use miette::{IntoDiagnostic, Result};
use serde::Serialize;
use std::io::{ErrorKind, Write};
use std::process::ExitCode;

/// The width of output that does not go to a terminal, and of terminals that do not tell it.
const WIDTH: usize = 80;

/// Returns the number of columns of the terminal.
pub fn width() -> usize {
    terminal_size::terminal_size().map_or(WIDTH, |(width, _)| usize::from(width.0))
}

/// Returns a text in lines of at most [`width`] columns, each indented by two blanks.
pub fn wrap(text: &str) -> String {
    let options = textwrap::Options::new(width()).initial_indent("  ").subsequent_indent("  ");
    // Only at blanks: names contain slashes and hyphens.
    let options = options.word_separator(textwrap::WordSeparator::AsciiSpace);
    textwrap::fill(text, options.word_splitter(textwrap::WordSplitter::NoHyphenation))
}

/// Returns a text in bold type.
pub fn bold(text: &str) -> String {
    let bold = anstyle::Style::new().bold();
    format!("{bold}{text}{bold:#}")
}

/// Prints text and a newline.
pub fn print(text: &str) -> Result<()> {
    // Styles are removed where stdout is not a terminal, or NO_COLOR is set.
    let mut out = anstream::stdout().lock();
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
