//! `cargo xtask deny`, which needs a program outside the Rust toolchain.

use crate::steps::{Problem, command, need, no_arguments, run};

/// Checks advisories, licences, bans and sources of all dependencies with `deny.toml`.
pub fn deny(arguments: &[String]) -> Result<(), Problem> {
    no_arguments(arguments)?;
    need("cargo deny --version", "Get it with `cargo install --locked cargo-deny`.")?;
    Ok(run(command("cargo deny --workspace check"))?)
}
