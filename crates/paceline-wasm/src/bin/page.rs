// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes the page: `playground-page MODULE.wasm PAGE.html`.

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [module, page] = arguments.as_slice() else {
        eprintln!("usage: playground-page MODULE.wasm PAGE.html");
        return ExitCode::from(2);
    };
    match write(module, page) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{module} to {page}: {error}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(not(target_family = "wasm"))]
fn write(module: &str, page: &str) -> std::io::Result<()> {
    std::fs::write(page, paceline_wasm::playground::page::html(&std::fs::read(module)?)?)
}

/// A module writes no page.
#[cfg(target_family = "wasm")]
fn write(_: &str, _: &str) -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}
