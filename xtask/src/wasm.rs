//! Builds crates of the workspace as WebAssembly modules.

use crate::steps::{Problem, command, output, run, target};
use std::path::{Path, PathBuf};

const TARGET: &str = "wasm32-unknown-unknown";

/// Builds the module of a crate and returns its path.
pub fn module(package: &str) -> Result<PathBuf, Problem> {
    let libraries = output(command(&format!("rustc --print target-libdir --target {TARGET}")));
    if !libraries.is_ok_and(|(folder, _)| Path::new(folder.trim()).is_dir()) {
        return Err(Problem::Missing(format!("Get the target with `rustup target add {TARGET}`.")));
    }
    run(command(&format!("cargo build --quiet --locked --package {package} --lib --profile wasm --target {TARGET}")))?;
    Ok(target().join(TARGET).join("wasm").join(format!("{}.wasm", package.replace('-', "_"))))
}
