// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask deny`, which needs a program outside the Rust toolchain.

use crate::steps::{Problem, command, files_in, need, no_arguments, output, run};
use std::path::PathBuf;

/// Checks advisories, licences, bans and sources of all dependencies with `deny.toml`. Without a network the database of advisories that
/// an earlier check stored counts; without one, advisories are skipped with a message.
pub fn deny(arguments: &[String]) -> Result<(), Problem> {
    no_arguments(arguments)?;
    need("cargo deny --version", "Get it with `cargo install --locked cargo-deny`.")?;
    // Those of other systems, too: the check itself fetches nothing. Without a network, they may be stored.
    let _ = run(command("cargo fetch --quiet --locked"));
    let checks = match (output(command("cargo deny fetch db")).is_ok(), has_database()) {
        (true, _) => "",
        (false, true) => {
            eprintln!("no network: the stored database of advisories counts");
            ""
        }
        (false, false) => {
            eprintln!("SKIPPED: advisories, because there is neither a network nor a stored database");
            " bans licenses sources"
        }
    };
    Ok(run(command(&format!("cargo deny --workspace --offline check{checks}")))?)
}

/// Returns whether cargo-deny has stored a database of advisories.
fn has_database() -> bool {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo")));
    let databases = home.and_then(|home| files_in(&home.join("advisory-dbs")).ok());
    databases.is_some_and(|found| found.iter().any(|path| path.is_dir()))
}
