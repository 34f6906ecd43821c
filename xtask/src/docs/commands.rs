// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks that the commands in the pages exist.

use super::pages::Page;
use crate::TASKS;
use std::path::Path;
use std::process::{Command, Stdio};

/// Returns all errors. `paceline` is in `folder`.
pub fn find_errors(pages: &[Page], folder: &Path) -> Vec<String> {
    let mut wrong = Vec::new();
    for page in pages {
        let shown = page.blocks.iter().filter(|b| b.language == "sh" || b.language == "console");
        for (block, line) in shown.flat_map(|block| block.text.lines().map(move |line| (block, line))) {
            if let Some(why) = DocumentedCommand::of(line).and_then(|command| command.error(folder)) {
                wrong.push(format!("{}: `{}`: {why}", page.place(block.line), line.trim()));
            }
        }
    }
    wrong
}

/// A command of this project in a line of a block.
#[derive(Debug, PartialEq)]
enum DocumentedCommand<'a> {
    /// `paceline` with these arguments.
    Paceline(&'a str),
    /// A task.
    Xtask(&'a str),
}

impl<'a> DocumentedCommand<'a> {
    fn of(line: &'a str) -> Option<Self> {
        let line = line.trim().strip_prefix("$ ").unwrap_or(line.trim());
        // A comment follows after two blanks.
        let ends = ["  ", " | ", " || ", " > ", " && ", " #"];
        let end = ends.iter().filter_map(|mark| line.find(mark)).min().unwrap_or(line.len());
        let command = &line[..end];
        let after = |start: &str| {
            let rest = command.strip_prefix(start)?;
            (rest.is_empty() || rest.starts_with(' ')).then_some(rest.trim())
        };
        let ours = after("paceline").or_else(|| after("cargo run --release --")).map(Self::Paceline);
        ours.or_else(|| after("cargo xtask")?.split(' ').next().map(Self::Xtask))
    }

    /// Returns why the command is invalid.
    fn error(&self, folder: &Path) -> Option<String> {
        match self {
            Self::Xtask("help") => None,
            Self::Xtask(name) => {
                let known = TASKS.iter().any(|task| task.name == *name);
                (!known).then(|| "`cargo xtask help` does not list it".to_owned())
            }
            // `--help` parses the arguments before it and runs nothing.
            Self::Paceline(arguments) => {
                // The arguments after ` -- ` are another program.
                let arguments = arguments.split_once(" -- ").map_or(*arguments, |(ours, _)| ours);
                let mut shell = Command::new("sh");
                let line = format!("exec '{}' {arguments} --help", folder.join("paceline").display());
                let output = shell.args(["-c", &line]).stdin(Stdio::null()).output();
                match output {
                    Ok(output) if output.status.success() => None,
                    Ok(output) => Some(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
                    Err(error) => Some(format!("`sh` did not start: {error}")),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_separated_from_comments() {
        for (line, command) in [
            ("paceline", Some(DocumentedCommand::Paceline(""))),
            ("paceline run a --seed 2   what it does", Some(DocumentedCommand::Paceline("run a --seed 2"))),
            ("$ paceline run a --json > a.json", Some(DocumentedCommand::Paceline("run a --json"))),
            ("cargo run --release -- list", Some(DocumentedCommand::Paceline("list"))),
            ("cargo xtask test # all", Some(DocumentedCommand::Xtask("test"))),
            ("cargo build --release", None),
            ("paceline-cli run", None),
        ] {
            assert_eq!(DocumentedCommand::of(line), command, "{line}");
        }
    }

    #[test]
    fn unknown_task_is_an_error() {
        let error = |name| DocumentedCommand::Xtask(name).error(Path::new("")).is_some();
        assert!(error("tset") && !error("test") && !error("help"));
    }
}
