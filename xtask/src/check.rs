// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask test`: what must hold before a change goes in, in stages that also run alone.

use crate::package::{EMBEDDABLE, PUBLISHED};
use crate::steps::{Problem, command, no_arguments, output, packages, program, root, run, target};
use crate::{
    api, architectures, c_library, docs, figures, fuzz, javascript, licences, make_traces, package, playground,
    scoreboard,
};
use serde_json::{Value, from_str};
use std::process::Command;
use std::time::Instant;

/// Crates that also build for other systems than Linux; no dependency of theirs compiles C.
const PORTABLE: [&str; 4] = ["paceline-units", "paceline", "paceline-wire", "paceline-netsim"];

/// Rust targets, and what builds for them: the embeddable crates need an allocator, but no operating system.
const TARGETS: [(&str, &[&str], &str); 4] = [
    ("x86_64-pc-windows-msvc", &PORTABLE, ""),
    ("aarch64-apple-darwin", &PORTABLE, ""),
    ("wasm32-unknown-unknown", &EMBEDDABLE, ""),
    ("thumbv7em-none-eabihf", &EMBEDDABLE, "--no-default-features --features rtp"),
];

/// Everything that needs neither GStreamer nor a browser.
const FEATURES: &str = "paceline-cli/testbed";

/// A stage: its name, what it checks, and the function that checks it with these features.
struct Stage {
    name: &'static str,
    help: &'static str,
    /// Whether it runs when no stage is named. The others need more than a Rust toolchain of one version.
    default: bool,
    run: fn(features: &str) -> Result<(), Problem>,
}

const STAGES: &[Stage] = &[
    Stage { name: "lint", help: "format, clippy, warnings of rustdoc", default: true, run: lint },
    Stage { name: "tests", help: "unit, integration and doc tests, without a browser", default: true, run: tests },
    Stage { name: "determinism", help: "equal trace hashes in debug and release", default: true, run: determinism },
    Stage {
        name: "generated",
        help: "docs/figures, traces and expected verdicts are current",
        default: true,
        run: generated,
    },
    Stage { name: "docs", help: "links and commands of the pages", default: true, run: docs },
    Stage { name: "browser", help: "tests with Chromium: calls in real time, pages", default: false, run: browser },
    Stage {
        name: "package",
        help: "the published crates: packaged, built alone without C, used by a program",
        default: false,
        run: package::check,
    },
    Stage {
        name: "api",
        help: "the public interface of the published crates is that of their api.txt",
        default: false,
        run: api::check,
    },
    Stage {
        name: "c",
        help: "the library for C: header, programs under sanitizers and valgrind (needs cc and valgrind)",
        default: false,
        run: c_library::check,
    },
    Stage {
        name: "javascript",
        help: "the package for JavaScript (needs Node and the target wasm32-unknown-unknown)",
        default: false,
        run: javascript::check,
    },
    Stage {
        name: "targets",
        help: "clock-free crates on Windows, macOS, WebAssembly and without an operating system",
        default: false,
        run: targets,
    },
    Stage {
        name: "architectures",
        help: "equal trace hashes on aarch64, and with PACELINE_FULL in WebAssembly (needs qemu-user and Node)",
        default: false,
        run: architectures::check,
    },
    Stage { name: "msrv", help: "the oldest supported Rust versions", default: false, run: msrv },
    Stage { name: "licences", help: "licences and sources of dependencies", default: false, run: licences::check },
    Stage { name: "fuzz", help: "every fuzz target for a short time, without a fuzzer", default: false, run: fuzzing },
];

/// Runs the named stages, or the default ones.
pub fn test(arguments: &[String]) -> Result<(), Problem> {
    let (mut features, mut stages) = (FEATURES, Vec::new());
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--features" => features = words.next().ok_or_else(|| Problem::Usage("--features needs a list".into()))?,
            name => stages.push(STAGES.iter().find(|stage| stage.name == name).ok_or_else(|| unknown(name))?),
        }
    }
    if stages.is_empty() {
        stages.extend(STAGES.iter().filter(|stage| stage.default));
    }
    let mut times = String::new();
    for stage in stages {
        let began = Instant::now();
        (stage.run)(features)?;
        times += &format!("{:<13} {:>5.0} s\n", stage.name, began.elapsed().as_secs_f64());
    }
    eprintln!("\nall checks passed\n{times}");
    Ok(())
}

/// Runs the checks of which CI runs a sample or none: long calls, random steps and fuzzing, other architectures, the oldest versions of
/// Rust, and all papers and suites.
pub fn full(arguments: &[String]) -> Result<(), Problem> {
    const LENGTHS: [(&str, &str); 6] = [
        ("PACELINE_FULL", "1"),
        ("PACELINE_CALLS", "30"),
        ("PACELINE_FUZZ_SECONDS", "600"),
        ("PACELINE_RANDOM_CALLS", "1000000"),
        ("PACELINE_STRESS_STEPS", "2000"),
        ("PACELINE_SOAK_MINUTES", "60"),
    ];
    no_arguments(arguments)?;
    const STAGES: &str = "test tests browser javascript fuzz architectures msrv --features paceline-cli/full";
    for line in [STAGES, "scoreboard --check"] {
        run(command(&format!("cargo xtask {line}")).envs(LENGTHS))?;
    }
    Ok(())
}

fn unknown(name: &str) -> Problem {
    let lines: String = STAGES.iter().map(|stage| format!("\n  {:<13} {}", stage.name, stage.help)).collect();
    Problem::Usage(format!("no stage `{name}`; takes `--features LIST` and any of these:{lines}"))
}

fn lint(features: &str) -> Result<(), Problem> {
    run(command("cargo fmt --all --check"))?;
    run(command(&format!("cargo clippy --quiet --workspace --features {features} --all-targets -- -D warnings")))?;
    // As programs outside the workspace build it, without `unstable-internals`.
    run(command("cargo clippy --quiet --package paceline -- -D warnings"))?;
    Ok(run(command(&format!("cargo doc --quiet --workspace --features {features} --no-deps"))
        .env("RUSTDOCFLAGS", "-D warnings"))?)
}

fn tests(features: &str) -> Result<(), Problem> {
    Ok(run(cargo_test(features, "--no-fail-fast -- --skip browser"))?)
}

/// The tests that the stage `tests` leaves out: those whose names contain `browser`.
fn browser(features: &str) -> Result<(), Problem> {
    build_debug(features)?;
    // A test opens the page.
    playground::write(program(target().join("debug/playground-page"), ""))?;
    Ok(run(cargo_test(features, "--no-fail-fast --tests -- browser"))?)
}

fn fuzzing(features: &str) -> Result<(), Problem> {
    fuzz::without_fuzzer(cargo_test(features, "--no-run --message-format=json"))
}

/// Returns a command line of `cargo test`. All stages select the same packages, because the selection decides with which features
/// cargo builds the libraries.
fn cargo_test(features: &str, rest: &str) -> Command {
    // Calls with a browser need GStreamer, or else libraries that nothing else needs.
    let without = if features == FEATURES { "--exclude paceline-browser " } else { "" };
    command(&format!("cargo test --quiet --workspace {without}--features {features} {rest}"))
}

/// Builds what the tests use.
fn build_debug(features: &str) -> Result<(), String> {
    run(cargo_test(features, "--no-run"))
}

/// A run makes the same decisions at every level of optimisation, with and without overflow checks.
fn determinism(features: &str) -> Result<(), Problem> {
    build_debug(features)?;
    run(command("cargo build --quiet --release"))?;
    let (debug, release) = (trace_hash("debug")?, trace_hash("release")?);
    if debug != release {
        return Err(Problem::Failed(format!("the trace hash is {debug} in debug and {release} in release")));
    }
    eprintln!("trace hash {debug} in debug and in release");
    Ok(())
}

fn trace_hash(profile: &str) -> Result<String, String> {
    let paceline = target().join(profile).join("paceline");
    let (json, _) = output(program(paceline, "run mmsys16/table1 --set duration=60s --json"))?;
    let document: Value = from_str(&json).map_err(|error| format!("`paceline run --json`: {error}"))?;
    let hash = document["runs"][0]["trace_hash"].as_str().filter(|hash| hash.len() == 16);
    hash.map(str::to_owned).ok_or_else(|| "`paceline run --json` prints no trace hash".into())
}

fn generated(_: &str) -> Result<(), Problem> {
    make_traces::run(&["--check".to_owned()])?;
    scoreboard::scoreboard(&["expected".to_owned(), "--check".to_owned()])?;
    figures::figures(&["--check".to_owned()])
}

fn docs(features: &str) -> Result<(), Problem> {
    build_debug(features)?;
    docs::check()
}

fn targets(_: &str) -> Result<(), Problem> {
    check_targets(true)
}

/// Checks the portable crates for other systems: for all, or for those whose standard library is installed.
pub fn check_targets(all: bool) -> Result<(), Problem> {
    let installed = output(command("rustup target list --installed")).map_or_else(|_| String::new(), |(list, _)| list);
    for (system, crates, features) in TARGETS {
        if !all && !installed.lines().any(|line| line == system) {
            eprintln!("skipped: {system} is not installed (`rustup target add {system}`)");
            continue;
        }
        run(command(&format!("cargo check --quiet --locked --target {system}"))
            .args(crates.iter().flat_map(|name| ["--package", name]))
            .args(features.split_whitespace()))
        .map_err(|error| Problem::Failed(format!("{error}; `rustup target add {system}` installs the target")))?;
    }
    Ok(())
}

/// Checks the published crates, and with `PACELINE_FULL` the command, with the `rust-version` that each manifest states.
fn msrv(_: &str) -> Result<(), Problem> {
    let all = [(&PUBLISHED[..], "--all-features"), (&["paceline-cli"], "--features testbed")];
    let count = if std::env::var_os("PACELINE_FULL").is_some() { all.len() } else { 1 };
    for (crates, features) in &all[..count] {
        let version = installed_rust_version(crates[0])?;
        let mut check = command(&format!("rustup run {version} cargo check --quiet --locked {features} --target-dir"));
        run(check.arg(target().join("msrv")).args(crates.iter().flat_map(|name| ["--package", name])))?;
    }
    Ok(())
}

/// Returns the `rust-version` of a crate, which must be installed.
fn installed_rust_version(name: &str) -> Result<String, Problem> {
    let version = rust_version(name)?;
    if output(command("rustup toolchain list")).is_ok_and(|(list, _)| list.contains(&version)) {
        return Ok(version);
    }
    let advice = format!("`rustup toolchain install --profile minimal {version}`");
    Err(Problem::Missing(format!("Rust {version} is not installed: {advice}")))
}

fn rust_version(name: &str) -> Result<String, String> {
    let packages = packages("--no-deps")?;
    let found = packages.iter().find(|package| package["name"] == name);
    let version = found.and_then(|package| package["rust_version"].as_str());
    version.map(str::to_owned).ok_or_else(|| format!("{}: {name} states no rust-version", root().display()))
}
