//! The scoreboard: a stored reproduction, byte-identical for equal versions of the program.

use crate::{Report, StoreError, files};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Name of its file in its folder.
pub const SCOREBOARD_FILE: &str = "scoreboard.json";

/// Every verdict of a version.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scoreboard {
    /// Version of the program.
    pub version: String,
    /// The verdicts, as `reproduce --json` prints them.
    #[serde(flatten)]
    pub report: Report,
}

impl Scoreboard {
    /// Returns its text. Reading the text gives an equal scoreboard.
    pub fn text(&self) -> String {
        serde_json::to_string_pretty(self).expect("strings, numbers and lists become JSON") + "\n"
    }

    /// Reads a scoreboard.
    ///
    /// # Errors
    /// The file cannot be read, or is not a scoreboard.
    pub fn read(path: &Path) -> Result<Self, StoreError> {
        files::read_json(path)
    }
}
