// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask scoreboard`: verdicts and trace hashes of every paper and every suite. They are committed as tables below
//! `scoreboard/`, with a line for each cell or test, so that the diff of a change shows its effect on them.
//!
//! The complete results, with measured values and pages, are written to `target/scoreboard`. `cargo xtask book --results` and
//! `cargo xtask release --results` publish them.

mod board;
mod expected;
mod pages;
mod papers;
mod row;
mod suites;

use crate::steps::{Problem, files_in, read, root, target, write};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub use board::leaderboard;
pub use pages::verdicts;

/// The folders of the tables.
const PAPERS: &str = "scoreboard/papers";
const SUITES: &str = "scoreboard/suites";

/// Differences that are printed.
const SHOWN: usize = 20;

/// Writes the tables. With `--check`, compares new ones with the committed ones.
pub fn scoreboard(arguments: &[String]) -> Result<(), Problem> {
    let check = arguments.iter().any(|word| word == "--check");
    let parts: Vec<&str> = arguments.iter().map(String::as_str).filter(|word| *word != "--check").collect();
    match parts[..] {
        [] => {
            papers::write(check)?;
            suites::write(check, &[])?;
        }
        ["papers"] => papers::write(check)?,
        ["suites", ref names @ ..] => suites::write(check, names)?,
        ["expected"] => expected::write(check)?,
        _ => {
            let takes = "takes `papers`, `suites [NAME… | --from DIR]` or `expected`, and `--check`";
            return Err(Problem::Usage(takes.to_owned()));
        }
    }
    Ok(())
}

/// Returns the folders of the complete results: of papers, and of suites.
pub fn results() -> [PathBuf; 2] {
    ["papers", "suites"].map(|part| target().join("scoreboard").join(part))
}

/// Returns the folders of the complete results, or why there are none of all papers and suites.
pub fn all_results() -> Result<[PathBuf; 2], Problem> {
    let [papers, suites] = results();
    let advice = "`cargo xtask scoreboard` makes the results of all papers and suites, in about an hour";
    let missing = |path: &Path| Problem::Missing(format!("{}: {advice}", path.display()));
    let page = papers.join("scoreboard.html");
    if !page.is_file() {
        return Err(missing(&page));
    }
    let board = suites.join("suites.json");
    let text = fs::read_to_string(&board).map_err(|_| missing(&board))?;
    let names = suites::found_in(&text)?;
    match tables(SUITES)?.iter().all(|(name, _)| names.contains(name)) {
        true => Ok([papers, suites]),
        false => Err(missing(&board)),
    }
}

/// Writes a committed file, or compares it with this text.
fn keep(check: bool, path: &Path, text: &str) -> Result<(), String> {
    if check { compare(path, &read(path)?, text) } else { write(path, text) }
}

/// Compares the lines of two versions of a file.
fn compare(path: &Path, kept: &str, made: &str) -> Result<(), String> {
    if kept == made {
        return Ok(());
    }
    let [old, new] = [kept, made].map(|text| text.lines().collect::<BTreeSet<_>>());
    let lines = |sign: &str, lines: Vec<&&str>| -> Vec<String> {
        lines.into_iter().map(|line| format!("{sign} {line}")).take(SHOWN).collect()
    };
    let (gone, added) = (old.difference(&new).collect::<Vec<_>>(), new.difference(&old).collect::<Vec<_>>());
    let count = gone.len().max(added.len());
    let shown = [lines("-", gone), lines("+", added)].concat().join("\n");
    let here = path.strip_prefix(root()).unwrap_or(path).display();
    Err(format!(
        "{here}: {count} lines differ in this version\n{shown}\nif this is intended, run `cargo xtask scoreboard` and explain it in the commit"
    ))
}

/// Returns each table of a folder: its name and its text, sorted by name.
fn tables(folder: &str) -> Result<Vec<(String, String)>, String> {
    let one = |path: PathBuf| {
        let text = read(&path)?;
        Ok((path.file_stem().unwrap_or_default().to_string_lossy().into_owned(), text))
    };
    files_in(&root().join(folder))?.into_iter().map(one).collect()
}

/// Runs the command and returns its output. Exit code 1 means that a claim fails or a verdict changed, which the tables show.
fn judged(command: &mut Command) -> Result<Vec<u8>, String> {
    let shown = crate::steps::shown(command);
    eprintln!("\n==> {shown}");
    let done =
        command.stderr(Stdio::inherit()).output().map_err(|error| format!("`{shown}` did not start: {error}"))?;
    match done.status.code() {
        Some(0 | 1) => Ok(done.stdout),
        _ => Err(format!("`{shown}` failed: {}", done.status)),
    }
}

/// Returns the labels of a case, such as `queue=codel`, after the id of its scenario.
fn with_case(id: &str, case: &serde_json::Value) -> String {
    let labels = case.as_object().into_iter().flatten();
    let labels = labels.map(|(key, value)| format!(" {key}={}", value.as_str().unwrap_or_default()));
    format!("{id}{}", labels.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_differ_are_named() {
        let path = Path::new("own.txt");
        assert_eq!(compare(path, "a\nb\n", "a\nb\n"), Ok(()));
        let error = compare(path, "a\nb\n", "a\nc\nd\n").unwrap_err();
        assert!(error.starts_with("own.txt: 2 lines differ in this version\n- b\n+ c\n+ d\n"), "{error}");
    }
}
