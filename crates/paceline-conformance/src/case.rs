//! Which config is compared with which oracle.

use crate::oracle::Vintage;
use paceline::googcc::{BandwidthConfig, GoogCcConfig, LossV2Config, ProbingConfig};

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// The preset `googcc-2024` and the crate as it is.
    Preset2024,
    /// The numbers of 2026 with the rules of 2024, and the crate with the numbers of 2026.
    RulesOf2024,
    /// `googcc` as it is, and the crate with the numbers of 2026.
    Current,
}

impl Case {
    /// All comparisons.
    pub const ALL: [Self; 3] = [Self::Preset2024, Self::RulesOf2024, Self::Current];

    /// Returns the numbers of the oracle.
    pub fn vintage(self) -> Vintage {
        match self {
            Self::Preset2024 => Vintage::Y2024,
            Self::RulesOf2024 | Self::Current => Vintage::Y2026,
        }
    }

    /// Returns the config of the subject. But for [`Case::Current`], deviations of the crate that are not a matter of its age
    /// are repeated (`CR-KBPS`).
    pub fn config(self) -> GoogCcConfig {
        let (now, then) = (GoogCcConfig::default(), GoogCcConfig::y2024());
        let as_the_crate = |v2| LossV2Config { whole_kbps: false, prefers_larger: false, ..v2 };
        let rules = |v2| GoogCcConfig {
            bandwidth: BandwidthConfig { v2: as_the_crate(v2), ..then.bandwidth },
            probes: ProbingConfig { ..then.probes },
            ..then.clone()
        };
        match self {
            Self::Preset2024 => rules(then.bandwidth.v2),
            Self::RulesOf2024 => rules(now.bandwidth.v2),
            Self::Current => now,
        }
    }
}
