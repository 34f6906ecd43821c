//! Sets `PACELINE_COMMIT` to the commit of the checkout, or to `unknown` without one. The variable in the environment takes
//! precedence, for builds of an archive.

use std::path::Path;
use std::process::Command;

const NAME: &str = "PACELINE_COMMIT";

fn main() {
    println!("cargo::rerun-if-env-changed={NAME}");
    println!("cargo::rerun-if-changed=build.rs");
    let commit = std::env::var(NAME).ok().or_else(commit).unwrap_or_else(|| "unknown".to_owned());
    println!("cargo::rustc-env={NAME}={commit}");
}

/// Returns the first twelve digits of the commit, unless the sources lie within the checkout of another project.
fn commit() -> Option<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().ok()?;
    if Path::new(&git(&["rev-parse", "--show-toplevel"])?).canonicalize().ok()? != root {
        return None;
    }
    // Every commit and checkout adds a line to the log of HEAD.
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"]).filter(|log| Path::new(log).is_file());
    println!("cargo::rerun-if-changed={}", log.or_else(|| git(&["rev-parse", "--git-path", "HEAD"]))?);
    git(&["rev-parse", "--short=12", "HEAD"])
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
