// SPDX-License-Identifier: MIT OR Apache-2.0
//! The pacing rate (draft, section "Packet Pacing").

use crate::params;
use paceline_units::Rate;

params! {
    /// The parameters of the pacer.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct PacingConfig {
        /// The draft.
        const DRAFT;

        /// Lowest pacing rate.
        min as "pace_min_bps": Rate = Rate::from_kbps(50), in 1000.0..=1e9, from "RATE_PACE_MIN";
        /// Pacing rate over the target.
        headroom as "pacing_factor": f64 = 1.5, in 0.5..=10.0, from "PACKET_PACING_HEADROOM; libwebrtc: 1.1";
        /// Largest further factor near the highest rate; 1: pacing is never relaxed.
        relaxed_max: f64 = 4.0, in 1.0..=100.0, from "MAX_RELAXED_PACING_FACTOR; C++, libwebrtc: 1";
        /// Share of the highest rate from which on it applies.
        relaxed_low: f64 = 0.8, in 0.0..=0.99, from "RELAXED_PACING_LIMIT_LOW";
    }
}

impl PacingConfig {
    /// The authors' C++, whose relaxed pacing is off.
    pub const CPP: Self = Self { relaxed_max: 1.0, ..Self::DRAFT };
}

/// `pace_bitrate`: above the target, and far above it when the target is close to its maximum.
pub fn pacing_rate(target: Rate, max: Rate, config: &PacingConfig) -> Rate {
    let nominal = target.as_bps_f64() / max.as_bps_f64().max(1.0);
    let relaxed = ((nominal - config.relaxed_low) / (1.0 - config.relaxed_low)).min(1.0);
    let scale = (1.0 - relaxed).max(1.0 / config.relaxed_max).min(1.0);
    target.max(config.min).scale(config.headroom / scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: 80 % of the maximum are not relaxed, 90 % are by two, 95 % and more by four.
    #[test]
    fn pacing_is_relaxed_near_the_maximum() {
        let kbps = Rate::from_kbps;
        let at = |target| pacing_rate(kbps(target), kbps(10_000), &PacingConfig::DRAFT).as_bps_f64() / 1e3;
        let near = |value: f64, expected: f64| assert!((value - expected).abs() < 0.1, "{value}");
        near(at(8000), 12_000.0);
        near(at(9000), 27_000.0);
        near(at(9500), 57_000.0);
        near(at(10_000), 60_000.0);
        near(at(20), 75.0);
        let strict = pacing_rate(kbps(10_000), kbps(10_000), &PacingConfig::CPP);
        assert_eq!(strict, kbps(15_000));
    }
}
