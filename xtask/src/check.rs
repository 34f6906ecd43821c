//! `cargo xtask test`: everything that must hold before a change goes in. Nothing but the Rust toolchain is needed.

use crate::steps::{Problem, command, output, program, run, target};
use crate::{docs, make_traces, reference};
use std::time::Instant;

/// The README names this as the test command, and `.ci/run` calls it.
pub fn test(arguments: &[String]) -> Result<(), Problem> {
    if !arguments.is_empty() {
        return Err(Problem::Usage("takes no arguments; for one test there is `cargo test`".into()));
    }
    let began = Instant::now();
    run(command("cargo fmt --all --check"))?;
    run(command("cargo clippy --quiet --workspace --all-targets -- -D warnings"))?;
    run(command("cargo test --quiet --workspace"))?;
    let mut doc = command("cargo doc --quiet --workspace --no-deps");
    doc.env("RUSTDOCFLAGS", "-D warnings");
    run(doc)?;
    eprintln!("\n==> cargo xtask make-traces --check");
    make_traces::run(&["--check".to_owned()])?;
    same_in_debug_and_release()?;
    eprintln!("\n==> cargo xtask reference --check");
    reference::check(&target().join("release/paceline"))?;
    docs::docs(&[])?;
    eprintln!("\nall checks passed in {:.0} s", began.elapsed().as_secs_f64());
    Ok(())
}

/// A run decides the same, bit for bit, whatever the optimiser does and whether or not overflow is checked.
fn same_in_debug_and_release() -> Result<(), String> {
    // Asking for the tests along with the programs selects what is compiled already: only linking is left.
    run(command("cargo build --quiet --profile test --workspace --exclude xtask --bins --tests"))?;
    run(command("cargo build --quiet --release"))?;
    let (debug, release) = (trace_hash("debug")?, trace_hash("release")?);
    if debug != release {
        return Err(format!("the trace hash is {debug} in debug and {release} in release"));
    }
    eprintln!("trace hash {debug} in debug and in release");
    Ok(())
}

fn trace_hash(profile: &str) -> Result<String, String> {
    let paceline = target().join(profile).join("paceline");
    let (json, _) = output(program(paceline, "run mmsys16/table1 --set duration=60s --json"))?;
    let after = json.split_once("\"trace_hash\": \"").map(|(_, rest)| rest);
    let hash = after.and_then(|rest| rest.split('"').next()).filter(|hash| hash.len() == 16);
    hash.map(str::to_owned).ok_or_else(|| "`paceline run --json` prints no trace hash".into())
}
