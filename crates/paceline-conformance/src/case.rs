//! Which config is compared with which oracle, and the known differences that a comparison excludes.

use crate::oracle::Vintage;
use paceline::GoogCcConfig;

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

    /// Returns the config with the rule of today.
    fn apply(self, config: GoogCcConfig) -> GoogCcConfig {
        match self {
            Self::WholeKbps => config.with_whole_kbps(true),
            Self::Ties => config.with_number("loss_prefers_larger", 1.0),
            Self::BeforeReport => config.with_number("loss_after_report", 0.0),
            Self::StableTarget => config.with_number("stable_target", 0.0),
            Self::AlrRounding => config.with_number("alr_truncates", 0.0),
            Self::AlrPublished => config.with_number("alr_after_feedback", 1.0).with_number("alr_publishes", 1.0),
            Self::Allocation => {
                config.with_number("probe_allocation_anywhere", 1.0).with_number("probe_allocation_decrease", 0.0)
            }
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
        let (now, then) = (GoogCcConfig::default(), GoogCcConfig::y2024());
        match self {
            Self::Preset2024 => rules_of_2024(then),
            Self::RulesOf2024 => rules_of_2024(with_losses_of(then, &now)),
            Self::Current => now.with_number("allocation_change", 0.0),
            Self::With(rule) => rule.apply(rules_of_2024(with_losses_of(then, &now))),
            Self::WithoutWindow => rules_of_2024(then).with_number("window_ms", 0.0),
        }
    }
}

/// Returns the config with the numbers of another one's loss-based estimate.
fn with_losses_of(config: GoogCcConfig, other: &GoogCcConfig) -> GoogCcConfig {
    let numbers = other.numbers();
    let losses = numbers.iter().filter(|n| n.name.starts_with("loss_") && n.name != "loss_after_report");
    losses.fold(config, |config, number| config.with_number(number.name, number.default))
}

/// The crate's own deviation in whole kbit/s is repeated.
fn rules_of_2024(config: GoogCcConfig) -> GoogCcConfig {
    config.with_whole_kbps(false).with_number("loss_prefers_larger", 0.0).with_number("allocation_change", 0.0)
}
