//! The verdict on a published value or a bound.

use serde::{Deserialize, Serialize};

/// The verdict on a published value or a bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// For a published value: its distance to the measured mean and the half-width of the 95 % interval are within the
    /// tolerance. For a bound: the mean is within it.
    Reproduced,
    /// Not reproduced, but the claim that the value supports passes.
    Direction,
    /// Neither.
    Not,
    /// No run in real time was made yet.
    #[default]
    #[serde(rename = "not run")]
    NotRun,
}

impl Verdict {
    /// Returns its name in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Reproduced => "reproduced",
            Self::Direction => "direction",
            Self::Not => "not",
            Self::NotRun => "not run",
        }
    }
}
