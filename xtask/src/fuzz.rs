// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask fuzz`, which needs cargo-fuzz, and the stage `fuzz` of `cargo xtask test`, which needs a stable toolchain only.

use crate::steps::{Problem, command, copy, create, failed, files_in, need, output, program, root, run, shown};
use serde_json::Value;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

/// How long the stage runs each target, seconds; `PACELINE_FUZZ_SECONDS` changes it.
const SECONDS: &str = "20";

/// Test executables with fuzz targets, as crate and name.
const EXECUTABLES: [(&str, &str); 5] = [
    ("paceline-lab", "it"),
    ("paceline-wire", "it"),
    ("paceline-live", "it"),
    ("paceline-explain", "it"),
    ("paceline-c", "interface"),
];

/// Bytes at most of the inputs of a target that a fuzzer found and that the repository keeps, and of one of them.
const KEPT_BYTES: (u64, u64) = (12 << 10, 1536);

/// Runs the tests of every fuzz target, all at the same time, so that each has a share of the processors. The command builds them.
pub fn without_fuzzer(build: Command) -> Result<(), Problem> {
    let seconds = std::env::var("PACELINE_FUZZ_SECONDS").unwrap_or_else(|_| SECONDS.to_owned());
    run_tests(build, ("PACELINE_FUZZ_SECONDS", &seconds))
}

/// Builds the tests of every fuzz target and runs them with this variable.
fn run_tests(build: Command, (variable, value): (&str, &str)) -> Result<(), Problem> {
    let (messages, _) = output(build)?;
    let started = EXECUTABLES.map(|(package, name)| {
        let path = executable(&messages, package, name).ok_or_else(|| format!("no test `{name}` of {package}"))?;
        let mut tests = program(path, "fuzz survive --quiet");
        tests.current_dir(root().join("crates").join(package)).env(variable, value);
        // All tests at once, whatever the number of processors.
        tests.env("RUST_TEST_THREADS", "8");
        eprintln!("\n==> {variable}={value} {}", shown(&tests));
        tests.spawn().map_err(|error| format!("`{}` did not start: {error}", shown(&tests)))
    });
    for (started, (package, _)) in started.into_iter().zip(EXECUTABLES) {
        let status = started?.wait().map_err(|error| error.to_string())?;
        if !status.success() {
            return Err(Problem::Failed(format!("a fuzz target of {package} failed: {status}")));
        }
    }
    Ok(())
}

/// Finds the executable of a test in cargo's messages.
fn executable(messages: &str, package: &str, name: &str) -> Option<PathBuf> {
    let manifest = root().join("crates").join(package).join("Cargo.toml");
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut found = messages.filter(|message| {
        message["target"]["kind"][0] == "test"
            && message["target"]["name"] == name
            && message["manifest_path"].as_str().is_some_and(|path| manifest == *path)
    });
    found.find_map(|message| message["executable"].as_str().map(PathBuf::from))
}

/// Runs every target under `fuzz/` with a fuzzer, one after the other, and prints a table. What they find stays in `fuzz/target/corpus`,
/// without inputs that reach nothing new; some of these inputs are kept in the repository.
pub fn fuzz(arguments: &[String]) -> Result<(), Problem> {
    let number =
        |text: &String| text.parse().map_err(|_| Problem::Usage(format!("`{text}` is not a number of minutes")));
    let minutes: usize = match arguments {
        [] => 10,
        [option, minutes] if option == "--minutes" && minutes != "0" => number(minutes)?,
        _ => return Err(Problem::Usage("takes --minutes N, from 1, or nothing".into())),
    };
    let advice = "Get it with `rustup toolchain install nightly` and `cargo install --locked cargo-fuzz`.";
    need("cargo +nightly fuzz --version", advice)?;
    // The samples of the tests are the first inputs.
    let packages: String = EXECUTABLES.iter().map(|(package, _)| format!(" --package {package}")).collect();
    let tests = command(&format!("cargo test --quiet{packages} --tests --no-run --message-format=json"));
    run_tests(tests, ("PACELINE_FUZZ_SAMPLES", &root().join("fuzz/target/corpus").display().to_string()))?;
    run(command("cargo +nightly fuzz build"))?;
    let (targets, mut table, mut failed) = (targets()?, String::new(), Vec::new());
    for target in &targets {
        let (row, is_failed) = run_target(target, 60 * minutes / targets.len())?;
        table += &row;
        failed.extend(is_failed.then_some(&**target));
    }
    println!("target          executions  edges  inputs\n{table}");
    if failed.is_empty() { Ok(()) } else { Err(Problem::Failed(format!("findings of {}", failed.join(", ")))) }
}

/// Runs a target. Returns its row of the table, and whether it found something.
fn run_target(target: &str, seconds: usize) -> Result<(String, bool), Problem> {
    // The first folder receives what the fuzzer finds; the second is kept in the repository.
    let (found, kept) = (format!("fuzz/target/corpus/{target}"), format!("fuzz/corpus/{target}"));
    [&found, &kept].into_iter().try_for_each(|folder| create(&root().join(folder)))?;
    let log = root().join(format!("fuzz/target/{target}.log"));
    let options = format!("-max_total_time={seconds} -timeout=20");
    let mut fuzzer = command(&format!("cargo +nightly fuzz run {target} {found} {kept} -- {options}"));
    let is_failed = run(fuzzer.stderr(File::create(&log).map_err(failed(&log))?)).is_err();
    let text = String::from_utf8_lossy(&fs::read(&log).map_err(failed(&log))?).into_owned();
    if is_failed {
        eprintln!(
            "{}",
            text.lines().rev().take(40).collect::<Vec<_>>().into_iter().rev().collect::<Vec<_>>().join("\n")
        );
    } else {
        run(command(&format!("cargo +nightly fuzz cmin {target} {found}")))?;
        keep(&root().join(&found), &root().join(&kept))?;
    }
    // `#EXECUTIONS … cov: EDGES …`
    let words = text.lines().rfind(|line| line.starts_with('#') && line.contains(" cov: ")).unwrap_or_default();
    let words: Vec<&str> = words.split_whitespace().collect();
    let edges = words.iter().position(|word| *word == "cov:").and_then(|at| words.get(at + 1)).unwrap_or(&"?");
    let executions = words.first().map_or("?", |word| word.trim_start_matches('#'));
    let inputs = files_in(&root().join(&found))?.len();
    Ok((format!("{target:<14} {executions:>11} {edges:>6} {inputs:>7}\n"), is_failed))
}

/// Replaces the inputs in the repository that a fuzzer found, whose names are hashes, by the largest of these that are short: each reaches what smaller ones do not.
fn keep(found: &Path, kept: &Path) -> Result<(), String> {
    let is_hash = |path: &PathBuf| path.file_name().is_some_and(|name| name.len() == 40);
    for old in files_in(kept)?.into_iter().filter(is_hash) {
        fs::remove_file(&old).map_err(failed(&old))?;
    }
    let size = |path: &PathBuf| fs::metadata(path).map_or(u64::MAX, |file| file.len());
    let mut inputs: Vec<(u64, PathBuf)> =
        files_in(found)?.into_iter().filter(is_hash).map(|path| (size(&path), path)).collect();
    inputs.retain(|(size, _)| *size <= KEPT_BYTES.1);
    inputs.sort_by(|a, b| b.cmp(a));
    let mut sum = 0;
    for (size, path) in inputs {
        sum += size;
        if sum > KEPT_BYTES.0 {
            break;
        }
        copy(&path, &kept.join(path.file_name().unwrap_or_default()))?;
    }
    Ok(())
}

fn targets() -> Result<Vec<String>, String> {
    let files = files_in(&root().join("fuzz/fuzz_targets"))?;
    Ok(files.iter().filter_map(|file| file.file_name()?.to_str()?.strip_suffix(".rs").map(str::to_owned)).collect())
}
