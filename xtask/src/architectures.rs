// SPDX-License-Identifier: MIT OR Apache-2.0
//! The stage `architectures`: a run makes the same decisions on another processor and with addresses of 32 bits.
//!
//! `examples/trace-hashes` prints lines `name trace signals` with two hashes of a run. It runs natively, for aarch64 under qemu,
//! and for WebAssembly under Node.

use crate::steps::{Problem, command, need, output, root, target};
use std::process::Command;

/// Another architecture: a Rust target and the command line that runs its programs.
struct Architecture {
    target: &'static str,
    runner: &'static str,
    /// The name of the built program.
    program: &'static str,
    /// The Debian package that contains the runner.
    package: &'static str,
}

const ARCHITECTURES: [Architecture; 2] = [
    Architecture {
        target: "aarch64-unknown-linux-musl",
        runner: "qemu-aarch64",
        program: "trace-hashes",
        package: "qemu-user",
    },
    Architecture {
        target: "wasm32-wasip1",
        runner: "node --no-warnings examples/trace-hashes/wasi.mjs",
        program: "trace-hashes.wasm",
        package: "nodejs",
    },
];

/// Compares the trace hashes of this machine with those of the other architectures.
///
/// Without `PACELINE_FULL` only with the first: a test of the playground compares hashes of WebAssembly.
pub fn check(_: &str) -> Result<(), Problem> {
    let count = if std::env::var_os("PACELINE_FULL").is_some() { ARCHITECTURES.len() } else { 1 };
    let architectures = &ARCHITECTURES[..count];
    for Architecture { runner, package, .. } in architectures {
        let runner = runner.split(' ').next().unwrap_or(runner);
        need(&format!("{runner} --version"), &format!("Get it with `apt-get install {package}`."))?;
    }
    let mut native = build();
    // With the command, whose libraries are then shared.
    native.args(["--package", "paceline-cli"]);
    output(native)?;
    let native = hashes(Command::new(target().join("release/trace-hashes")))?;
    for Architecture { target: name, runner, program, .. } in architectures {
        let mut build = build();
        // Rust's own linker, and a C library that Rust ships: no cross compiler is needed.
        build.args(["--target", name]).env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER", "rust-lld");
        output(build)
            .map_err(|error| Problem::Failed(format!("{error}; `rustup target add {name}` installs the target")))?;
        let mut run = command(runner);
        run.arg(target().join(name).join("release").join(program));
        let different = differences(&native, &hashes(run)?);
        if !different.is_empty() {
            return Err(Problem::Failed(format!("hashes here and on {name} differ:\n{}", different.join("\n"))));
        }
    }
    let names: Vec<&str> = architectures.iter().map(|one| one.target).collect();
    eprintln!("{} runs have equal hashes here and on {}", native.len(), names.join(" and "));
    Ok(())
}

fn build() -> Command {
    command("cargo build --quiet --locked --release --package trace-hashes")
}

/// Runs the program. Returns its lines, of which it prints at least two.
fn hashes(mut program: Command) -> Result<Vec<String>, String> {
    program.current_dir(root());
    let (stdout, _) = output(program)?;
    let lines: Vec<String> = stdout.lines().map(str::to_owned).collect();
    if lines.len() < 2 { Err(format!("too few hashes: {lines:?}")) } else { Ok(lines) }
}

/// Returns a line for each hash that differs or that one side lacks.
fn differences(here: &[String], there: &[String]) -> Vec<String> {
    let line = |lines: &[String], n: usize| lines.get(n).map_or_else(|| "–".to_owned(), Clone::clone);
    let all = 0..here.len().max(there.len());
    let pairs = all.map(|n| (line(here, n), line(there, n)));
    pairs.filter(|(here, there)| here != there).map(|(here, there)| format!("  {here}, but {there}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_name_changed_and_missing_hashes() {
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        let here = lines("one 1\ntwo 2\nthree 3");
        assert!(differences(&here, &here).is_empty());
        assert_eq!(differences(&here, &lines("one 1\ntwo 9")), ["  two 2, but two 9", "  three 3, but –"]);
        assert_eq!(differences(&here[..1], &here[..2]), ["  –, but two 2"]);
    }
}
