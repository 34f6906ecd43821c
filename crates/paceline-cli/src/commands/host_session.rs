//! What `send` and `recv` share.

use miette::{IntoDiagnostic, Result, miette};
use paceline_live::hosts::seal::{SECRET_MIN, Secret};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The UDP port, if no other is given. It is below the range from which systems choose ports of clients.
pub const PORT: u16 = 9777;

/// The environment variable with the secret, if no file is given.
const SECRET: &str = "PACELINE_SECRET";

/// Returns the secret of the file, or of the environment variable; `None` if there is neither. Arguments would show in lists of
/// processes.
///
/// # Errors
/// The file cannot be read, or the secret is too short.
pub fn secret(file: Option<&Path>) -> Result<Option<Secret>> {
    let (text, place) = match file {
        Some(file) => {
            let text = std::fs::read(file).map_err(|error| miette!("cannot read {}: {error}", file.display()))?;
            (text, file.display().to_string())
        }
        None => match std::env::var_os(SECRET) {
            Some(text) => (text.into_encoded_bytes(), SECRET.to_owned()),
            None => return Ok(None),
        },
    };
    let help = "write a random one with: head -c 32 /dev/urandom | base64 > secret";
    let secret = Secret::new(&text);
    secret.map(Some).ok_or_else(|| miette!(help = help, "the secret in {place} is shorter than {SECRET_MIN} bytes"))
}

/// Returns a flag that SIGINT and SIGTERM set.
pub fn stop_flag() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, stop.clone()).into_diagnostic()?;
    }
    Ok(stop)
}
