// SPDX-License-Identifier: MIT OR Apache-2.0
//! Builds the WebAssembly modules of `paceline-wasm`.

use crate::steps::{Problem, command, output, run, target};
use std::path::{Path, PathBuf};

const TARGET: &str = "wasm32-unknown-unknown";

/// Builds the module of a feature and returns its path, at which the next one replaces it.
pub fn module(feature: &str) -> Result<PathBuf, Problem> {
    let libraries = output(command(&format!("rustc --print target-libdir --target {TARGET}")));
    if !libraries.is_ok_and(|(folder, _)| Path::new(folder.trim()).is_dir()) {
        return Err(Problem::Missing(format!("Get the target with `rustup target add {TARGET}`.")));
    }
    let package = format!("--package paceline-wasm --no-default-features --features {feature}");
    run(command(&format!("cargo build --quiet --locked {package} --lib --profile wasm --target {TARGET}")))?;
    Ok(target().join(TARGET).join("wasm/paceline_wasm.wasm"))
}
