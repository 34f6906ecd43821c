//! `cargo xtask fuzz`, which needs cargo-fuzz, and the stage `fuzz` of `cargo xtask test`, which needs a stable toolchain only.

use crate::steps::{Problem, command, create, files_in, need, output, program, root, run, shown};
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;

/// How long the stage runs each target, seconds; `PACELINE_FUZZ_SECONDS` changes it.
const SECONDS: &str = "20";

/// Test executables with fuzz targets, as crate and name.
const EXECUTABLES: [(&str, &str); 4] =
    [("paceline-lab", "it"), ("paceline-wire", "it"), ("paceline-live", "it"), ("paceline-explain", "it")];

/// Runs the tests of every fuzz target, all at the same time, so that each has a share of the processors. The command builds them.
pub fn without_fuzzer(build: Command) -> Result<(), Problem> {
    let (messages, _) = output(build)?;
    let seconds = std::env::var("PACELINE_FUZZ_SECONDS").unwrap_or_else(|_| SECONDS.to_owned());
    let started = EXECUTABLES.map(|(package, name)| {
        let path = executable(&messages, package, name).ok_or_else(|| format!("no test `{name}` of {package}"))?;
        let mut tests = program(path, "fuzz survive --quiet");
        tests.current_dir(root().join("crates").join(package)).env("PACELINE_FUZZ_SECONDS", &seconds);
        // All tests at once, whatever the number of processors.
        tests.env("RUST_TEST_THREADS", "8");
        eprintln!("\n==> PACELINE_FUZZ_SECONDS={seconds} {}", shown(&tests));
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

/// Runs every target under `fuzz/` for some seconds, with a fuzzer.
pub fn fuzz(arguments: &[String]) -> Result<(), Problem> {
    let seconds: u32 = match arguments {
        [] => 60,
        [seconds] => seconds.parse().map_err(|_| Problem::Usage(format!("`{seconds}` is not a number of seconds")))?,
        _ => return Err(Problem::Usage("takes a number of seconds or nothing".into())),
    };
    let advice = "Get it with `rustup toolchain install nightly` and `cargo install --locked cargo-fuzz`.";
    need("cargo +nightly fuzz --version", advice)?;
    for target in targets()? {
        // The first folder receives what the fuzzer finds; the second is kept in the repository.
        let (found, kept) = (format!("fuzz/target/corpus/{target}"), format!("fuzz/corpus/{target}"));
        [&found, &kept].into_iter().try_for_each(|folder| create(&root().join(folder)))?;
        run(command(&format!("cargo +nightly fuzz run {target} {found} {kept} -- -max_total_time={seconds}")))?;
    }
    Ok(())
}

fn targets() -> Result<Vec<String>, String> {
    let files = files_in(&root().join("fuzz/fuzz_targets"))?;
    Ok(files.iter().filter_map(|file| file.file_name()?.to_str()?.strip_suffix(".rs").map(str::to_owned)).collect())
}
