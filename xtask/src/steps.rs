// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs other programs. Prints each command, and names it in errors.

use serde_json::{Value, from_str};
use std::borrow::BorrowMut;
use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Why a task stopped.
#[derive(Debug)]
pub enum Problem {
    /// A check failed.
    Failed(String),
    /// A program is missing; the text explains how to install it.
    Missing(String),
    /// The arguments are invalid.
    Usage(String),
}

impl From<String> for Problem {
    fn from(text: String) -> Self {
        Self::Failed(text)
    }
}

/// Returns the root of the workspace.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is a folder of the workspace")
}

/// Returns the target folder.
pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |dir| root().join(dir))
}

/// Returns a command line, separated by spaces, to run at the root of the workspace.
pub fn command(line: &str) -> Command {
    let mut words = line.split(' ');
    let mut command = Command::new(words.next().expect("a command line is not empty"));
    command.args(words).current_dir(root());
    command
}

/// Returns a program with arguments, separated by spaces, to run at the root of the workspace.
pub fn program(path: impl AsRef<OsStr>, arguments: &str) -> Command {
    let mut command = Command::new(path);
    command.args(arguments.split_whitespace()).current_dir(root());
    command
}

/// Returns the command as text.
pub fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(|w| w.to_string_lossy()).collect();
    words.join(" ").replace(&format!("{}/", root().display()), "")
}

/// Runs the command with inherited output.
pub fn run(command: impl BorrowMut<Command>) -> Result<(), String> {
    run_to(command, &[0])
}

/// Runs the command with inherited output, and allows these exit codes.
pub fn run_to(mut command: impl BorrowMut<Command>, codes: &[i32]) -> Result<(), String> {
    let shown = shown(command.borrow());
    eprintln!("\n==> {shown}");
    match command.borrow_mut().status() {
        Ok(status) if status.code().is_some_and(|code| codes.contains(&code)) => Ok(()),
        Ok(status) => Err(format!("`{shown}` failed: {status}")),
        Err(error) => Err(format!("`{shown}` did not start: {error}")),
    }
}

/// Runs the command and returns its stdout and stderr.
pub fn output(mut command: impl BorrowMut<Command>) -> Result<(String, String), String> {
    let shown = shown(command.borrow());
    eprintln!("\n==> {shown}");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match command.borrow_mut().output() {
        Ok(Output { status, stdout, stderr }) if status.success() => Ok((text(&stdout), text(&stderr))),
        Ok(Output { status, stderr, .. }) => Err(format!("`{shown}` failed: {status}\n{}", text(&stderr))),
        Err(error) => Err(format!("`{shown}` did not start: {error}")),
    }
}

/// Returns the packages of `cargo metadata` with these options.
pub fn packages(options: &str) -> Result<Vec<Value>, String> {
    let (json, _) = output(command(&format!("cargo metadata --format-version 1 {options}")))?;
    let metadata: Value = from_str(&json).map_err(|error| format!("`cargo metadata`: {error}"))?;
    metadata["packages"].as_array().cloned().ok_or_else(|| "`cargo metadata` lists no packages".to_owned())
}

/// Checks that `line` runs successfully. Otherwise the program is missing, and `advice` explains how to install it.
pub fn need(line: &str, advice: &str) -> Result<(), Problem> {
    let status = command(line).stdout(Stdio::null()).stderr(Stdio::null()).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(Problem::Failed(format!("`{line}` did not start: {error}")))
        }
        _ => Err(Problem::Missing(format!("`{line}` does not run here. {advice}"))),
    }
}

/// Checks that a task has no arguments.
pub fn no_arguments(arguments: &[String]) -> Result<(), Problem> {
    if arguments.is_empty() { Ok(()) } else { Err(Problem::Usage("takes no arguments".into())) }
}

/// Returns whether the only argument is this flag; false without arguments.
pub fn has_flag(arguments: &[String], flag: &str) -> Result<bool, Problem> {
    match arguments {
        [] => Ok(false),
        [only] if only == flag => Ok(true),
        _ => Err(Problem::Usage(format!("takes `{flag}` or nothing"))),
    }
}

/// Returns what names this path in an error.
pub fn failed(path: &Path) -> impl Fn(std::io::Error) -> String + use<> {
    let path = path.display().to_string();
    move |error| format!("{path}: {error}")
}

/// Reads a text.
pub fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(failed(path))
}

/// Creates a folder.
pub fn create(folder: &Path) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(failed(folder))
}

/// Checks that a file is not larger than this.
pub fn check_size(path: &Path, most: u64) -> Result<(), String> {
    let size = fs::metadata(path).map_err(failed(path))?.len();
    if size > most { Err(format!("{} has {size} bytes, more than {most}", path.display())) } else { Ok(()) }
}

/// Writes a file and creates its folder.
pub fn write(path: &Path, text: impl AsRef<[u8]>) -> Result<(), String> {
    let done = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(path, text));
    done.map_err(failed(path))
}

/// Copies a file, or a folder with everything in it, and creates the folder of the copy.
pub fn copy(from: &Path, to: &Path) -> Result<(), String> {
    if from.is_dir() {
        return files_in(from)?.iter().try_for_each(|path| copy(path, &to.join(path.file_name().unwrap_or_default())));
    }
    let done = to.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::copy(from, to));
    done.map(|_| ()).map_err(|error| format!("{} to {}: {error}", from.display(), to.display()))
}

/// Returns the files and folders in a folder, sorted.
pub fn files_in(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let read = || fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>();
    let mut paths = read().map_err(|error| format!("{}: {error}", folder.display()))?;
    paths.sort();
    Ok(paths)
}
