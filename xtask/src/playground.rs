//! `cargo xtask playground`: the simulator as WebAssembly in one HTML page.

use crate::steps::{Problem, command, run, target};
use crate::wasm;
use std::fs;
use std::path::PathBuf;

/// The maximum size of the page.
const MOST_BYTES: u64 = 5_000_000;

/// Builds the page and prints its path.
pub fn playground(arguments: &[String]) -> Result<(), Problem> {
    if !arguments.is_empty() {
        return Err(Problem::Usage("takes no arguments".into()));
    }
    println!("{}", page()?.display());
    Ok(())
}

/// Builds the page and returns its path.
pub fn page() -> Result<PathBuf, Problem> {
    let module = wasm::module("playground")?;
    let folder = target().join("playground");
    let page = folder.join("playground.html");
    let failed = |error| format!("{}: {error}", page.display());
    fs::create_dir_all(&folder).map_err(failed)?;
    let mut write = command("cargo run --quiet --locked --package paceline-wasm --bin playground-page --");
    write.arg(module).arg(&page);
    run(write)?;
    let size = fs::metadata(&page).map_err(failed)?.len();
    if size > MOST_BYTES {
        return Err(Problem::Failed(format!("{} has {size} bytes, more than {MOST_BYTES}", page.display())));
    }
    Ok(page)
}
