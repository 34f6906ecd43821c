// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask playground`: the simulator as WebAssembly in one HTML page.

use crate::steps::{Problem, check_size, command, create, no_arguments, run, target};
use crate::wasm;
use std::path::PathBuf;
use std::process::Command;

/// The maximum size of the page.
const MOST_BYTES: u64 = 5_000_000;

/// Builds the page and prints its path.
pub fn playground(arguments: &[String]) -> Result<(), Problem> {
    no_arguments(arguments)?;
    println!("{}", page()?.display());
    Ok(())
}

/// Builds the page and returns its path.
pub fn page() -> Result<PathBuf, Problem> {
    write(command("cargo run --quiet --locked --package paceline-wasm --bin playground-page --"))
}

/// Builds the module, assembles the page with this program and returns its path.
pub fn write(mut writer: Command) -> Result<PathBuf, Problem> {
    let module = wasm::module("playground")?;
    let folder = target().join("playground");
    let page = folder.join("playground.html");
    create(&folder)?;
    run(writer.arg(module).arg(&page))?;
    check_size(&page, MOST_BYTES)?;
    Ok(page)
}
