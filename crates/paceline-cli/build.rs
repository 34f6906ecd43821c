// SPDX-License-Identifier: MIT OR Apache-2.0
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
    if std::env::var_os("CARGO_FEATURE_PLAYGROUND").is_some() {
        playground();
    }
}

/// Sets `PACELINE_PLAYGROUND` to the path of the page of `paceline play`. The variable in the environment takes precedence.
fn playground() {
    const NAME: &str = "PACELINE_PLAYGROUND";
    println!("cargo::rerun-if-env-changed={NAME}");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |folder| root.join(folder));
    let page = std::env::var_os(NAME).map_or_else(|| target.join("playground/playground.html"), |page| root.join(page));
    println!("cargo::rerun-if-changed={}", page.display());
    match page.canonicalize() {
        Ok(page) => println!("cargo::rustc-env={NAME}={}", page.display()),
        Err(error) => {
            println!("cargo::error=the feature `playground` needs {}: {error}", page.display());
            println!("cargo::error=`cargo xtask playground` writes it");
        }
    }
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
