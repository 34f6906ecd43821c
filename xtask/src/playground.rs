//! `cargo xtask playground`: the simulator as WebAssembly in one HTML page.

use crate::steps::{Problem, command, no_arguments, run, target};
use crate::wasm;
use std::fs;
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
    let failed = |error| format!("{}: {error}", page.display());
    fs::create_dir_all(&folder).map_err(failed)?;
    writer.arg(module).arg(&page);
    run(writer)?;
    let size = fs::metadata(&page).map_err(failed)?.len();
    if size > MOST_BYTES {
        return Err(Problem::Failed(format!("{} has {size} bytes, more than {MOST_BYTES}", page.display())));
    }
    Ok(page)
}
