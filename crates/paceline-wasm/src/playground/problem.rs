// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the page shows of an error.

use paceline_scenario::ScenarioError;
use serde::Serialize;

/// An error, with its place in the text and a hint.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// What is wrong.
    pub message: String,
    /// How to mend it.
    pub hint: Option<String>,
    /// The text that holds the error: the file, or a change of it.
    pub source: String,
    /// Line, from 1.
    pub line: Option<usize>,
    /// Column, in characters from 1.
    pub column: Option<usize>,
    /// The part of the text that is wrong.
    pub offending: Option<String>,
}

impl From<ScenarioError> for Problem {
    fn from(error: ScenarioError) -> Self {
        Self {
            message: error.to_string(),
            hint: error.hint().map(str::to_owned),
            source: error.source_name().to_owned(),
            line: error.line(),
            column: error.column(),
            offending: error.offending().map(str::to_owned),
        }
    }
}

impl From<String> for Problem {
    fn from(message: String) -> Self {
        Self { message, ..Self::default() }
    }
}
