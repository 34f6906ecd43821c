// SPDX-License-Identifier: MIT OR Apache-2.0
//! How exactly packets are released: `--timing` of `link` and `send`.

use clap::ValueEnum;
use paceline_live::testbed::timing::Timing;

/// The values of `--timing`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Release {
    Precise,
    Sleep,
}

impl Release {
    /// Returns the timing, with this one for `precise`.
    pub fn timing(self, precise: Timing) -> Timing {
        match self {
            Self::Precise => precise,
            Self::Sleep => Timing::Sleep,
        }
    }
}
