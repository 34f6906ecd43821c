// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask dist`: published binaries. They are built twice: the first build counts what typical simulations execute, and
//! the compiler arranges the second build for that.

use crate::steps::{Problem, command, no_arguments, output, program, run, target};
use std::path::PathBuf;

/// The programs that the first build runs, with their arguments. They cover every family of controllers, in simulations and
/// alone, both kinds of flow, the queues and the medium of suites, and stored results. What they do not execute is optimised
/// for size.
const TRAINING: &[(&str, &str)] = &[
    ("speed", "simulate 4"),
    ("speed", "simulate 2 gcc-tfb"),
    ("speed", "simulate 2 nada"),
    ("speed", "simulate 2 nada-sender"),
    ("speed", "simulate 2 scream"),
    ("speed", "simulate 2 googcc"),
    ("speed", "simulate 2 scream-v2"),
    ("speed", "cubic 4"),
    ("speed", "hundred 10"),
    ("speed", "receive 100000"),
    ("examples/senders", "gcc-tfb 100000"),
    ("examples/senders", "nada 100000"),
    ("examples/senders", "nada-sender 100000"),
    ("examples/senders", "scream 100000"),
    ("examples/senders", "theirs 100000"),
    ("examples/senders", "script 100000"),
    ("paceline", "run rfc8867/5.6"),
    ("paceline", "run zoo/late-comer"),
    ("paceline", "run zoo/twenty-flows"),
    ("paceline", "run rfc8869/3.2c"),
    ("paceline", "run l4s/dualpi2"),
    ("paceline", "run l4s/fq-codel"),
];
const BUILD: &str = "cargo build --quiet --profile dist --package paceline-cli --package paceline-benches --features paceline-cli/testbed,paceline-cli/mcp --bins --example senders";

/// Builds the binaries.
pub fn dist(arguments: &[String]) -> Result<(), Problem> {
    no_arguments(arguments)?;
    println!("{}", guided()?.join("paceline").display());
    Ok(())
}

/// Builds the binaries and returns their folder.
pub fn guided() -> Result<PathBuf, Problem> {
    let profdata = profdata()?;
    let (counts, merged) = (target().join("profile-counts"), target().join("profile.profdata"));
    // Counts of another version of the code do not fit.
    let _ = std::fs::remove_dir_all(&counts);
    let instrumented = build("instrumented", &format!("-Cprofile-generate={}", counts.display()))?;
    for (path, arguments) in TRAINING {
        output(program(instrumented.join(path), arguments))?;
    }
    run(program(profdata, "merge -o").arg(&merged).arg(&counts))?;
    build("guided", &format!("-Cprofile-use={}", merged.display()))
}

/// Builds with these flags of the compiler in a folder of the target folder, and returns the folder of the binaries.
fn build(folder: &str, flags: &str) -> Result<PathBuf, Problem> {
    let folder = target().join(folder);
    let mut build = command(BUILD);
    // Unlike `RUSTFLAGS`, this is not split at spaces.
    build.arg("--target-dir").arg(&folder).env("CARGO_ENCODED_RUSTFLAGS", flags);
    run(build)?;
    Ok(folder.join("dist"))
}

/// Returns the path of `llvm-profdata`, which comes with the compiler.
fn profdata() -> Result<PathBuf, Problem> {
    let (libraries, _) = output(command("rustc --print target-libdir"))?;
    let path = PathBuf::from(libraries.trim()).with_file_name("bin").join("llvm-profdata");
    match path.exists() {
        true => Ok(path),
        false => {
            Err(Problem::Missing("llvm-profdata is missing. Get it with `rustup component add llvm-tools`.".into()))
        }
    }
}
