// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask javascript`: the package for JavaScript, and its tests under Node.

use crate::steps::{Problem, command, copy, need, no_arguments, root, run, target};
use crate::wasm;
use std::fs;
use std::path::PathBuf;

/// Builds the package, tests it, and prints its folder.
pub fn javascript(arguments: &[String]) -> Result<(), Problem> {
    no_arguments(arguments)?;
    println!("{}", package()?.display());
    Ok(())
}

/// The stage of the same name.
pub fn check(_: &str) -> Result<(), Problem> {
    package().map(|_| ())
}

fn package() -> Result<PathBuf, Problem> {
    need("node --version", "Get it with `apt-get install nodejs`.")?;
    let folder = target().join("javascript");
    _ = fs::remove_dir_all(&folder);
    copy(&root().join("js"), &folder)?;
    copy(&wasm::module("npm")?, &folder.join("paceline.wasm"))?;
    run(command("node --test test/").current_dir(&folder))?;
    Ok(folder)
}
