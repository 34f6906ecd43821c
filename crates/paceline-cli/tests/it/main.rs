// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command in the simulator: documents on stdout, messages on stderr, exit codes.

mod choose;
mod cli;
mod diff;
mod explain;
mod external;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod faults;
mod fit;
mod input;
#[cfg(feature = "mcp")]
mod mcp;
mod new;
mod reproduce;
mod shared_folder;
mod suite;
mod sweep;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod tracer;
mod usage;

use paceline_lab::results::{Contents, Store};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_paceline"));
    command.args(arguments).current_dir(folder);
    command
}

fn paceline(folder: &Path, arguments: &[&str]) -> Output {
    command(folder, arguments).output().expect("the command starts")
}

/// Returns an empty folder with these files.
fn folder(name: &str, files: &[(&str, &str)]) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    for (file, text) in files {
        fs::write(folder.join(file), text).unwrap();
    }
    folder
}

/// Reads a folder of results.
fn stored(folder: &Path) -> Contents {
    Store::read(folder).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Returns stdout of a command that must have ended with `code`.
#[track_caller]
fn stdout(output: &Output, code: i32) -> &str {
    assert_eq!(output.status.code(), Some(code), "{}", stderr(output));
    std::str::from_utf8(&output.stdout).expect("stdout is UTF-8")
}

/// Returns the only document on stdout of a command that must have ended with `code`.
#[track_caller]
fn document(output: &Output, code: i32) -> Value {
    serde_json::from_str(stdout(output, code)).expect("stdout is exactly one JSON document")
}

/// Checks for bad input: exit code 2, nothing on stdout, these texts on stderr.
#[track_caller]
fn rejects(output: &Output, messages: &[&str]) {
    assert_eq!(stdout(output, 2), "");
    contains_all(&stderr(output), messages);
}

#[track_caller]
fn contains_all(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }
}

/// Returns a text without the line breaks and blanks that fit it to a terminal.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn keys(value: &Value) -> BTreeSet<&str> {
    value.as_object().expect("an object").keys().map(String::as_str).collect()
}

fn read_json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}
