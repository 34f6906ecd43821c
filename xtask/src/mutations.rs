//! `cargo xtask mutations`: changes constants of the controllers by one or two percent, one at a time, and looks whether a
//! test of that very block fails.
//!
//! A block's tests are those with its name in theirs: the tests in its file, and its vectors and printed constants in
//! `crates/paceline/tests`.

use crate::steps::{Problem, command, output, root, target};
use std::fs;
use std::path::Path;
use std::process::Command;

/// A constant that is changed.
struct Mutation {
    /// Its file in `crates/paceline/src`.
    file: &'static str,
    /// The line, or the part of it that is found nowhere else in the file before its tests.
    from: &'static str,
    /// What stands there instead.
    to: &'static str,
    /// Parts of the names of tests that may catch it.
    block: &'static [&'static str],
}

const MUTATIONS: &[Mutation] = &[
    m("blocks/acked_rate.rs", "const UNCERTAINTY: f64 = 10.0;", "const UNCERTAINTY: f64 = 10.2;", &["acked_rate"]),
    m("blocks/acked_rate.rs", "(50.0, 5.0)", "(51.0, 5.0)", &["acked_rate"]),
    m("blocks/adaptive_threshold.rs", "from_millis(100)", "from_millis(101)", &["threshold"]),
    m("blocks/convergence.rs", "const MEMORY: f64 = 0.95;", "const MEMORY: f64 = 0.96;", &["convergence", "capacity"]),
    m("blocks/convergence.rs", "const FAR: f64 = 3.0;", "const FAR: f64 = 3.06;", &["convergence", "capacity"]),
    m("blocks/kalman_two_state.rs", "slope: 8.0 / 512.0", "slope: 8.1 / 512.0", &["two_state"]),
    m("blocks/kalman_two_state.rs", "variance: 50.0", "variance: 50.5", &["two_state"]),
    m("blocks/kalman_two_state.rs", "q_offset: 1e-3", "q_offset: 1.02e-3", &["two_state"]),
    m("blocks/kalman_two_state.rs", "q_offset: 1e-2", "q_offset: 1.02e-2", &["two_state"]),
    m("blocks/overuse_detector.rs", "SCALE_MAX: u32 = 60", "SCALE_MAX: u32 = 61", &["detector"]),
    m("blocks/send_side_estimate.rs", "from_millis(300)", "from_millis(303)", &["send_side_estimate"]),
    m("blocks/tfrc.rs", "(1.0 + 32.0 * p * p)", "(1.0 + 32.5 * p * p)", &["tfrc", "tcp_throughput"]),
    m("gcc/aimd.rs", "80.0 * 8.0", "81.0 * 8.0", &["aimd"]),
    m("gcc/dynamic_alpha.rs", "(1.0 - b) / 1.14", "(1.0 - b) / 1.15", &["dynamic_alpha", "dynamic_decrease"]),
    m("gcc/gcc2016.rs", "k_u: 0.01,", "k_u: 0.0102,", &["gcc2016"]),
    m("gcc/gcc2016.rs", "alpha: 0.85,", "alpha: 0.86,", &["gcc2016"]),
    m("gcc/gcc_tfb.rs", "smoothing: 0.9 }", "smoothing: 0.91 }", &["gcc_tfb"]),
    m("gcc/rate_controller.rs", "1200.0 * 8.0", "1212.0 * 8.0", &["rate_"]),
    m("gcc/region_control.rs", "const B: f64 = 0.0407;", "const B: f64 = 0.0411;", &["region_control", "response"]),
    m("gcc/region_control.rs", "const ABOVE: f64 = 2.5;", "const ABOVE: f64 = 2.55;", &["region_control"]),
    m("gcc/remb.rs", "TOLD_AT_ONCE: f64 = 0.97", "TOLD_AT_ONCE: f64 = 0.98", &["remb"]),
    m("guard.rs", "const KEPT: f64 = 0.8;", "const KEPT: f64 = 0.81;", &["guard"]),
    m("protection.rs", "FEC_SHARE_SLOPE: f64 = 4.0", "FEC_SHARE_SLOPE: f64 = 4.08", &["protection"]),
];

const fn m(file: &'static str, from: &'static str, to: &'static str, block: &'static [&'static str]) -> Mutation {
    Mutation { file, from, to, block }
}

/// Of the mutations, at least this share must be caught by a test of the block.
const CAUGHT: f64 = 0.9;

/// Prints which test catches each mutation; fails if fewer than nine in ten are caught in the right place.
pub fn mutations(arguments: &[String]) -> Result<(), Problem> {
    if !arguments.is_empty() {
        return Err(Problem::Usage("takes no arguments".into()));
    }
    // A copy is changed, so that whatever stops this leaves nothing behind.
    let copy = target().join("mutations/tree");
    let _ = fs::remove_dir_all(&copy);
    copy_tree(&copy)?;
    let failing = |what: &str| tests_that_fail(&copy).map_err(|problem| format!("{what}: {problem}"));
    let before = failing("without a change")?;
    if !before.is_empty() {
        return Err(Problem::Failed(format!("tests fail without any change: {}", before.join(", "))));
    }
    let mut caught = 0;
    for mutation in MUTATIONS {
        let file = copy.join("crates/paceline/src").join(mutation.file);
        let text = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        let failed = mutated(&text, mutation)
            .and_then(|mutated| fs::write(&file, mutated).map_err(|error| error.to_string()))
            .and_then(|()| failing(mutation.file));
        fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()))?;
        let failed = failed?;
        let right = failed.iter().find(|test| mutation.block.iter().any(|block| test.contains(block)));
        caught += usize::from(right.is_some());
        let verdict = match (right, failed.first()) {
            (Some(test), _) => format!("caught by {test}"),
            (None, Some(test)) => format!("caught elsewhere, by {test}"),
            (None, None) => "MISSED".to_owned(),
        };
        println!("{:<28} {} -> {}\n{:<28} {verdict}", mutation.file, mutation.from, mutation.to, "");
    }
    println!("{caught} of {} caught by a test of the block", MUTATIONS.len());
    match caught as f64 >= CAUGHT * MUTATIONS.len() as f64 {
        true => Ok(()),
        false => Err(Problem::Failed("fewer than nine in ten".into())),
    }
}

fn mutated(text: &str, mutation: &Mutation) -> Result<String, String> {
    let code = text.find("#[cfg(test)]").unwrap_or(text.len());
    match text[..code].matches(mutation.from).count() {
        1 => Ok(text.replacen(mutation.from, mutation.to, 1)),
        n => Err(format!("{}: `{}` is there {n} times, once is wanted", mutation.file, mutation.from)),
    }
}

/// Copies what git knows, and what it does not ignore.
fn copy_tree(to: &Path) -> Result<(), String> {
    let (files, _) = output(command("git ls-files --cached --others --exclude-standard"))?;
    for file in files.lines().filter(|file| root().join(file).is_file()) {
        let place = to.join(file);
        let made = place.parent().map_or(Ok(()), fs::create_dir_all);
        made.and_then(|()| fs::copy(root().join(file), &place)).map_err(|error| format!("{file}: {error}"))?;
    }
    Ok(())
}

/// The tests of the crate of controllers that fail in this copy.
fn tests_that_fail(tree: &Path) -> Result<Vec<String>, String> {
    let mut test = Command::new("cargo");
    test.args([
        "test",
        "--quiet",
        "--package",
        "paceline",
        "--lib",
        "--test",
        "vectors",
        "--test",
        "constants",
        "--no-fail-fast",
    ])
    .args(["--", "--format", "pretty"])
    .current_dir(tree)
    .env("CARGO_TARGET_DIR", target().join("mutations/target"));
    let ran = test.output().map_err(|error| format!("cargo did not start: {error}"))?;
    let text = String::from_utf8_lossy(&ran.stdout);
    let failed: Vec<String> = text
        .lines()
        .filter_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED").map(str::to_owned))
        .collect();
    match ran.status.success() == failed.is_empty() {
        true => Ok(failed),
        false => Err(String::from_utf8_lossy(&ran.stderr).into_owned()),
    }
}
