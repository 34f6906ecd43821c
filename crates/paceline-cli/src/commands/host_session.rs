// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `send` and `recv` share.

use miette::{IntoDiagnostic, Result, miette};
use paceline_live::hosts::seal::{SECRET_MIN, Secret};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::os::unix::fs::MetadataExt;
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
            if let Some(warning) = std::fs::metadata(file).ok().and_then(|data| exposure(file, data.mode())) {
                eprintln!("warning: {warning}");
            }
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

/// Returns a warning if other users may read or change a file of this mode.
fn exposure(file: &Path, mode: u32) -> Option<String> {
    let (name, mode) = (file.display(), mode & 0o777);
    (mode & 0o077 != 0).then(|| {
        format!(
            "other users may read or change the secret file {name} (mode {mode:03o}); mend it with: chmod 600 {name}"
        )
    })
}

/// Returns a flag that SIGINT and SIGTERM set.
pub fn stop_flag() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, stop.clone()).into_diagnostic()?;
    }
    Ok(stop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_file_is_for_its_owner_alone() {
        let warning = |mode| exposure(Path::new("secret"), mode);
        assert_eq!([0o100_600, 0o100_400, 0o100_700].map(warning), [None, None, None]);
        for mode in [0o100_640, 0o100_604, 0o100_620, 0o100_644] {
            assert!(warning(mode).is_some_and(|text| text.contains("chmod 600 secret")), "{mode:o}");
        }
    }
}
