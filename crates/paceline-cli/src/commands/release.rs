//! How exactly packets are released: `--timing` of `link` and `send`.

use clap::ValueEnum;
use paceline_live::timing::Timing;

/// The values of `--timing`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Release {
    Precise,
    Sleep,
}

impl From<Release> for Timing {
    fn from(release: Release) -> Self {
        match release {
            Release::Precise => Self::Precise,
            Release::Sleep => Self::Sleep,
        }
    }
}
