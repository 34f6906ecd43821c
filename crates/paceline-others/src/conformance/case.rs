// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which config is compared with which oracle, and the known differences that a comparison excludes.

use crate::conformance::oracle::Vintage;
use paceline::GoogCcConfig;
use paceline::internals::blocks::PushbackConfig;
use paceline::internals::googcc::{BandwidthConfig, LossV2Config};
use paceline_units::TimeDelta;

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// The preset `googcc-2024` and the crate as it is.
    Preset2024,
    /// The numbers of 2026 with the rules of 2024, and the crate with the numbers of 2026.
    RulesOf2024,
    /// `googcc` as it is, and the crate with the numbers of 2026.
    Current,
    /// As [`Case::RulesOf2024`], but with one rule of 2026.
    With(Rule),
    /// As [`Case::Preset2024`], without a congestion window in both.
    WithoutWindow,
}

/// A rule in which the subject differs from the crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The preference for a bandwidth counts whole kbit/s (`CR-KBPS`: the crate counts fractions, libwebrtc never did).
    WholeKbps,
    /// Of two candidates with the same objective the larger one counts (2025-06).
    Ties,
    /// The loss-based estimate does not wait for a receiver report (2025-12).
    BeforeReport,
    /// There is no stable target (2025-08).
    StableTarget,
    /// The rate of the application-limited region is rounded, not truncated (2025-07).
    AlrRounding,
    /// The application-limited region leads to no probe before feedback, and its change is published (2026-06).
    AlrPublished,
    /// An increase of the allocation is probed outside the application-limited region, a decrease is not (2026-08).
    Allocation,
}

impl Rule {
    /// All rules.
    pub const ALL: [Self; 7] = [
        Self::WholeKbps,
        Self::Ties,
        Self::BeforeReport,
        Self::StableTarget,
        Self::AlrRounding,
        Self::AlrPublished,
        Self::Allocation,
    ];

    /// Puts the rule of today into a config.
    fn apply(self, c: &mut GoogCcConfig) {
        let now = GoogCcConfig::default();
        match self {
            Self::WholeKbps => c.bandwidth.v2.whole_kbps = true,
            Self::Ties => c.bandwidth.v2.prefers_larger = true,
            Self::BeforeReport => c.bandwidth.waits_for_report = false,
            Self::StableTarget => c.bandwidth.has_stable_target = false,
            Self::AlrRounding => c.alr_truncates = false,
            Self::AlrPublished => {
                (c.alr_after_feedback, c.alr_publishes) = (now.alr_after_feedback, now.alr_publishes);
            }
            Self::Allocation => c.probes = now.probes,
        }
    }
}

impl Case {
    /// The comparisons in which nothing but the crate's own deviations may differ.
    pub const EXACT: [Self; 2] = [Self::Preset2024, Self::RulesOf2024];

    /// Returns the numbers of the oracle.
    pub fn vintage(self) -> Vintage {
        match self {
            Self::Preset2024 | Self::WithoutWindow => Vintage::Y2024,
            Self::RulesOf2024 | Self::Current | Self::With(_) => Vintage::Y2026,
        }
    }

    /// Returns whether both have a congestion window.
    pub fn has_window(self) -> bool {
        self != Self::WithoutWindow
    }

    /// Returns the config of the subject.
    pub fn config(self) -> GoogCcConfig {
        let (now, then) = (GoogCcConfig::default(), GoogCcConfig::Y2024);
        // The crate's own deviation in whole kbit/s is repeated.
        let rules_of_2024 = |v2| GoogCcConfig {
            bandwidth: BandwidthConfig {
                v2: LossV2Config { whole_kbps: false, prefers_larger: false, ..v2 },
                ..then.bandwidth
            },
            allocation_change: 0.0,
            ..then.clone()
        };
        match self {
            Self::Preset2024 => rules_of_2024(then.bandwidth.v2),
            Self::RulesOf2024 => rules_of_2024(now.bandwidth.v2),
            Self::Current => GoogCcConfig { allocation_change: 0.0, ..now },
            Self::With(rule) => {
                let mut config = rules_of_2024(now.bandwidth.v2);
                rule.apply(&mut config);
                config
            }
            Self::WithoutWindow => {
                let window = PushbackConfig { queue: TimeDelta::ZERO, ..then.window };
                GoogCcConfig { window, ..rules_of_2024(then.bandwidth.v2) }
            }
        }
    }
}
