//! Running other programs: announced, and an error that names the command.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Why a chore stopped.
#[derive(Debug)]
pub enum Problem {
    /// Something is wrong.
    Failed(String),
    /// A program that is not part of the Rust toolchain is missing; how to get it.
    Missing(String),
    /// The arguments make no sense.
    Usage(String),
}

impl From<String> for Problem {
    fn from(text: String) -> Self {
        Self::Failed(text)
    }
}

/// The root of the workspace.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace")
}

/// Where builds go.
pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |dir| root().join(dir))
}

/// A program with its arguments, separated by spaces, to run at the root of the workspace.
pub fn command(line: &str) -> Command {
    let mut words = line.split(' ');
    let mut command = Command::new(words.next().expect("a line has a first word"));
    command.args(words).current_dir(root());
    command
}

/// A program of ours with its arguments, separated by spaces, to run at the root of the workspace.
pub fn program(path: PathBuf, arguments: &str) -> Command {
    let mut command = Command::new(path);
    command.args(arguments.split(' ')).current_dir(root());
    command
}

/// The command as one would type it.
pub fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(|w| w.to_string_lossy()).collect();
    words.join(" ").replace(&format!("{}/", root().display()), "")
}

/// Runs it, its output going where ours goes.
pub fn run(mut command: Command) -> Result<(), String> {
    eprintln!("\n==> {}", shown(&command));
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`{}` failed: {status}", shown(&command))),
        Err(error) => Err(format!("`{}` did not start: {error}", shown(&command))),
    }
}

/// Runs it and answers what it wrote to stdout and stderr.
pub fn output(mut command: Command) -> Result<(String, String), String> {
    eprintln!("\n==> {}", shown(&command));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match command.output() {
        Ok(Output { status, stdout, stderr }) if status.success() => Ok((text(&stdout), text(&stderr))),
        Ok(Output { status, stderr, .. }) => Err(format!("`{}` failed: {status}\n{}", shown(&command), text(&stderr))),
        Err(error) => Err(format!("`{}` did not start: {error}", shown(&command))),
    }
}

/// Whether `line` runs and ends well; if not, the chore cannot be done, and `advice` says how to get the program.
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
