//! The scoreboard: a reproduction as a file that is kept, and that equal versions of the program write alike.

use super::Report;
use crate::store::StoreError;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;

/// Name of its file in its folder.
pub const SCOREBOARD_FILE: &str = "scoreboard.json";

/// Every verdict, and the version that gave them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scoreboard {
    /// Version of the program that ran.
    pub version: String,
    /// The verdicts, as `reproduce --json` prints them.
    #[serde(flatten)]
    pub report: Report,
}

impl Scoreboard {
    /// Its text, which is read back as it was.
    pub fn text(&self) -> String {
        serde_json::to_string_pretty(self).expect("strings, numbers and lists become JSON") + "\n"
    }

    /// Reads one.
    ///
    /// # Errors
    /// The file cannot be read, or is no scoreboard.
    pub fn read(path: &Path) -> Result<Self, StoreError> {
        let io = |source| StoreError::Io { action: "read", path: path.to_path_buf(), source };
        let text = fs::read(path).map_err(io)?;
        let damaged =
            |error: serde_json::Error| StoreError::Damaged { path: path.to_path_buf(), cause: error.to_string() };
        serde_json::from_slice(&text).map_err(damaged)
    }
}
