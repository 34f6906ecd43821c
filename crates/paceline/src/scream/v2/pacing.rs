//! The pacing rate (draft, section "Packet Pacing").

use paceline_units::Rate;

/// The numbers of the pacer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PacingConfig {
    /// `RATE_PACE_MIN`.
    pub min: Rate,
    /// `PACKET_PACING_HEADROOM`.
    pub headroom: f64,
    /// `MAX_RELAXED_PACING_FACTOR`; 1: pacing is never relaxed.
    pub relaxed_max: f64,
    /// `RELAXED_PACING_LIMIT_LOW`.
    pub relaxed_low: f64,
}

impl PacingConfig {
    /// The draft.
    pub const DRAFT: Self = Self { min: Rate::from_kbps(50), headroom: 1.5, relaxed_max: 4.0, relaxed_low: 0.8 };
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
