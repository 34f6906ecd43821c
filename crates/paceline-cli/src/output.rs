// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes results to stdout, with styles where a terminal shows them. A closed pipe is not an error.

use crate::environment::environment;
use miette::{IntoDiagnostic, Result};
use paceline_lab::report::check_text::CheckLine;
use paceline_lab::results::Verdict;
use paceline_netsim::records::Environment;
use serde::Serialize;
use std::borrow::Cow;
use std::io::{ErrorKind, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

/// The width of output that does not go to a terminal, and of terminals that do not tell it.
const WIDTH: usize = 80;

/// Returns the number of columns of the terminal.
pub fn width() -> usize {
    terminal_size::terminal_size().map_or(WIDTH, |(width, _)| usize::from(width.0))
}

/// Returns a text in lines of at most [`width`] columns, each indented by two blanks.
pub fn wrap(text: &str) -> String {
    hang("", text)
}

/// Returns a text in lines of at most [`width`] columns behind a mark, such as `· `; the other lines are indented as much.
pub fn hang(mark: &str, text: &str) -> String {
    let indent = " ".repeat(2 + textwrap::core::display_width(mark));
    let first = format!("  {mark}");
    let options = at_blanks(width()).initial_indent(&first).subsequent_indent(&indent);
    textwrap::fill(&with_units_kept(text), options).replace(KEPT, " ")
}

/// Returns the lines of a text of at most `width` columns, where its words allow it.
pub fn wrap_to(text: &str, width: usize) -> Vec<String> {
    let kept = with_units_kept(text);
    textwrap::wrap(&kept, at_blanks(width)).into_iter().map(|line| line.replace(KEPT, " ")).collect()
}

/// Returns the number of columns of the longest part of a text that [`wrap_to`] keeps in one line.
pub fn longest_part(text: &str) -> usize {
    let indent = text.len() - text.trim_start_matches(' ').len();
    indent + with_units_kept(text).split(' ').map(textwrap::core::display_width).max().unwrap_or(0)
}

/// A blank at which no line is broken.
const KEPT: char = '\u{a0}';

/// Returns a text in which lines are not broken between a number and its unit, nor beside `=`.
fn with_units_kept(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let (before, after) = (kept.chars().next_back(), rest.peek());
        let word = kept.rsplit([' ', KEPT]).next().unwrap_or_default();
        let follows_number = word.ends_with(|c: char| c.is_ascii_digit())
            && !word.starts_with(char::is_alphabetic)
            && after.is_some_and(|c| c.is_alphabetic() || *c == '%');
        let is_kept = follows_number || before == Some('±') || [before, after.copied()].contains(&Some('='));
        kept.push(if c == ' ' && is_kept { KEPT } else { c });
    }
    kept
}

/// Returns options that break lines at blanks only: names contain slashes and hyphens.
fn at_blanks<'a>(width: usize) -> textwrap::Options<'a> {
    let options = textwrap::Options::new(width).break_words(false);
    let options = options.word_separator(textwrap::WordSeparator::AsciiSpace);
    options.word_splitter(textwrap::WordSplitter::NoHyphenation)
}

/// Returns a text in green.
pub fn good(text: &str) -> String {
    in_colour(anstyle::AnsiColor::Green, text)
}

/// Returns a text in yellow.
pub fn middling(text: &str) -> String {
    in_colour(anstyle::AnsiColor::Yellow, text)
}

/// Returns a text in red.
pub fn bad(text: &str) -> String {
    in_colour(anstyle::AnsiColor::Red, text)
}

/// Returns the text of a judgement, or of a part of it, in the colour of its verdict.
pub fn in_colour_of(verdict: Verdict, text: impl ToString) -> String {
    let colour = match verdict {
        Verdict::Holds => good,
        Verdict::Undecided => middling,
        Verdict::Fails => bad,
    };
    colour(&text.to_string())
}

/// Returns a checked value in one line.
pub fn check_line(line: &CheckLine) -> String {
    format!("{}: {}", line.text, in_colour_of(line.judgement.verdict, line.judgement))
}

fn in_colour(colour: anstyle::AnsiColor, text: &str) -> String {
    let style = colour.on_default();
    format!("{style}{text}{style:#}")
}

/// Returns a text in bold type.
pub fn bold(text: &str) -> String {
    let bold = anstyle::Style::new().bold();
    format!("{bold}{text}{bold:#}")
}

/// Returns a text in which only line breaks, tabs and colours control the terminal. Texts come from files of strangers, too: other
/// control characters are replaced.
pub fn printable(text: &str) -> Cow<'_, str> {
    let is_safe = |c: char| !c.is_control() || c == '\n' || c == '\t';
    if text.chars().all(is_safe) {
        return text.into();
    }
    let mut safe = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let len = style_len(rest).unwrap_or(c.len_utf8());
        if len > c.len_utf8() || is_safe(c) {
            safe.push_str(&rest[..len])
        } else {
            safe.push(char::REPLACEMENT_CHARACTER)
        }
        rest = &rest[len..];
    }
    safe.into()
}

/// Returns the length of the sequence that begins a text if it sets colours or fonts (SGR): ESC, `[`, numbers and `;`, `m`.
pub(crate) fn style_len(text: &str) -> Option<usize> {
    let numbers = text.strip_prefix("\u{1b}[")?;
    let end = numbers.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    numbers[end..].starts_with('m').then_some(text.len() - numbers.len() + end + 1)
}

/// Prints text and a newline.
pub fn print(text: &str) -> Result<()> {
    // Styles are removed where stdout is not a terminal, or NO_COLOR is set.
    let mut out = anstream::stdout().lock();
    match out.write_all(printable(text).as_bytes()).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other.into_diagnostic(),
    }
}

/// Prints one JSON document.
pub fn print_json(document: &impl Serialize) -> Result<()> {
    print(&serde_json::to_string_pretty(document).into_diagnostic()?)
}

/// Whether documents are printed with their text.
static ADDS_TEXTS: AtomicBool = AtomicBool::new(false);

/// Prints each document with the text of the result from now on: `{"document": …, "text": …}`.
#[cfg(feature = "mcp")]
pub fn add_texts() {
    ADDS_TEXTS.store(true, Ordering::Relaxed);
}

/// Prints a result as JSON, or as the text that `describe` returns.
pub fn print_result(json: bool, document: &impl Serialize, describe: impl FnOnce() -> String) -> Result<()> {
    #[derive(Serialize)]
    struct WithText<'a, T> {
        document: &'a T,
        text: String,
    }
    match json {
        true if ADDS_TEXTS.load(Ordering::Relaxed) => {
            let text = anstream::adapter::strip_str(&describe()).to_string();
            print_json(&WithText { document, text: printable(text.trim_end()).into_owned() })
        }
        true => print_json(document),
        false => print(describe().trim_end()),
    }
}

/// Results with the environment that they were made in.
#[derive(Serialize)]
pub struct Cited<'a, T> {
    made_with: &'a Environment,
    #[serde(flatten)]
    document: &'a T,
}

impl<'a, T> Cited<'a, T> {
    /// Adds the environment of this process to results that it made.
    pub fn new(document: &'a T) -> Self {
        Self { made_with: environment(), document }
    }
}

/// Prints results as JSON, with the environment that they were made in, or as the text that `describe` returns.
pub fn print_results(json: bool, document: &impl Serialize, describe: impl FnOnce() -> String) -> Result<()> {
    print_result(json, &Cited::new(document), describe)
}

/// Returns exit code 0 if every assertion passed, else 1.
pub fn exit_code(passed: bool) -> Result<ExitCode> {
    Ok(ExitCode::from(u8::from(!passed)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_styles_control_the_terminal() {
        assert_eq!(printable("a title\n\t± 1"), "a title\n\t± 1");
        assert_eq!(printable(&format!("{} x", bold("best"))), "\u{1b}[1mbest\u{1b}[0m x");
        // Setting the window title, clearing the screen, moving the cursor, and an eight-bit control sequence.
        for attack in ["\u{1b}]0;owned\u{7}", "\u{1b}[2J", "\u{1b}[1;1H", "\u{9b}2J", "\u{1b}", "\u{1b}[", "a\rb\u{8}"]
        {
            let safe = printable(attack);
            assert!(safe.contains('\u{fffd}') && !safe.chars().any(char::is_control), "{safe:?}");
        }
    }
}
