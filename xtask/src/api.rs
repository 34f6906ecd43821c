// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask api`: the public interface of each published crate, in its `api.txt`. A change of the interface shows in
//! the diff of a commit.
//!
//! rustdoc writes JSON, which the program `xtask/public-api` lists. The format of the JSON depends on the version of Rust, so a
//! fixed version writes it: the `rust-version` of the workspace, which is a stable one. Only rustdoc runs, on four small crates.

use crate::package::PUBLISHED;
use crate::steps::{Problem, command, has_flag, need, output, root, run, target, write};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// The `rust-version` of the workspace.
const VERSION: &str = env!("CARGO_PKG_RUST_VERSION");

/// Writes the listings; with `--check` only compares the listings.
pub fn api(arguments: &[String]) -> Result<(), Problem> {
    if has_flag(arguments, "--check")? {
        return check("");
    }
    Ok(listings()?.into_iter().try_for_each(|(path, text)| write(&path, text))?)
}

/// Compares the listings with the files.
pub fn check(_features: &str) -> Result<(), Problem> {
    for (path, text) in listings()? {
        let stored = fs::read_to_string(&path).unwrap_or_default();
        if stored != text {
            let shown = path.strip_prefix(root()).unwrap_or(&path).display();
            let first = text.lines().zip(stored.lines()).find(|(now, before)| now != before);
            let first = first.map_or_else(String::new, |(now, before)| format!("\n- {before}\n+ {now}"));
            let advice = "`cargo xtask api` writes it. A removed or changed item needs a new minor version";
            return Err(Problem::Failed(format!("the public interface is not that of {shown}; {advice}{first}")));
        }
    }
    Ok(())
}

/// Returns the path and the text of each listing.
fn listings() -> Result<Vec<(PathBuf, String)>, Problem> {
    need(
        &format!("rustup run {VERSION} rustc --version"),
        &format!("`rustup toolchain install --profile minimal {VERSION}` installs it."),
    )?;
    let (json, listing) = (target().join("api"), target().join("public-api"));
    run(command("cargo build --quiet --locked --manifest-path xtask/public-api/Cargo.toml --target-dir").arg(&listing))?;
    let mut listings = Vec::new();
    for name in PUBLISHED {
        // Without the feature `unstable-internals`, which promises nothing.
        let features = if name == "paceline" { "--features=rtp" } else { "--all-features" };
        let line = format!("rustup run {VERSION} cargo rustdoc --quiet --locked --package {name} --lib {features}");
        let mut rustdoc = command(&line);
        rustdoc.arg("--target-dir").arg(&json).args("-- -Z unstable-options --output-format json".split(' '));
        // Permits the unstable output of a stable rustdoc.
        run(rustdoc.env("RUSTC_BOOTSTRAP", "1"))?;
        let (text, _) = output(
            Command::new(listing.join("debug/public-api-listing"))
                .arg(json.join(format!("doc/{}.json", name.replace('-', "_")))),
        )?;
        listings.push((root().join(format!("crates/{name}/api.txt")), text));
    }
    Ok(listings)
}
