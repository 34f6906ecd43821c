// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rate adaptation of a NADA sender: accelerated ramp-up while the path has spare capacity, otherwise gradual
//! update.

use crate::params;
use paceline_units::{Rate, TimeDelta};

params! {
    /// The parameters of the gradual update.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct GradualConfig {
        /// RFC 8698, table 2.
        const RFC_8698;

        /// Reference congestion signal.
        x_ref as "xref_ms": f64 = 10.0, unit "ms", in 0.0..=1e4, from "table 2, XREF";
        /// Scaling of the gradual update.
        kappa: f64 = 0.5, in 0.0..=10.0, from "table 2, KAPPA";
        /// Weight of the signal's change.
        eta: f64 = 2.0, in 0.0..=100.0, from "table 2, ETA";
        /// Longest round-trip time for which the loop is stable.
        tau as "tau_ms": f64 = 500.0, unit "ms", in 1.0..=1e5, from "table 2, TAU";
        /// Bound of `R_max` in the gradual update, in which a maximum far above the path would cause a long queue.
        r_max as "rmax_bps": Rate = Rate::from_kbps(20_000), in 1e3..=1e12, from "not in the RFC: RMAX is what the application can use";
    }
}

impl GradualConfig {
    /// med16, section II-A.
    pub const MED16: Self = Self { x_ref: 20.0, ..Self::RFC_8698 };
}

params! {
    /// The parameters of the ramp-up.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct RampUpConfig {
        /// RFC 8698, table 2.
        const RFC_8698;

        /// Largest increase, as a share of the received rate.
        gamma_max: f64 = 0.5, in 0.0..=10.0, from "table 2, GAMMA_MAX";
        /// Queuing delay that a ramp-up may cause.
        q_bound as "qbound_ms": f64 = 50.0, unit "ms", in 0.0..=1e4, from "table 2, QBOUND";
    }
}

/// Returns the rate after a gradual update (med16, eq. 3 to 5; RFC 8698, eq. 5 to 7). `x` and `x_before` are in ms;
/// `delta` is the time that the step stands for. With `K_1 = kappa delta / tau^2` and `K_2 = kappa eta / tau`
///
/// ```text
/// x_o = x - x_ref R_max / R,   x_d = x - x_before,   R <- R (1 - K_1 x_o - K_2 x_d)
/// ```
///
/// `R_max` is at most that of the parameters. The caller bounds the result.
pub fn gradual(rate: Rate, x: f64, x_before: f64, delta: TimeDelta, max: Rate, c: &GradualConfig) -> Rate {
    let r = rate.as_bps_f64().max(1.0);
    let (k_1, k_2) = (c.kappa * delta.as_millis_f64() / (c.tau * c.tau), c.kappa * c.eta / c.tau);
    let (x_o, x_d) = (x - c.x_ref * (max.min(c.r_max).as_bps_f64() / r), x - x_before);
    Rate::from_bps_f64((r * (1.0 - k_1 * x_o - k_2 * x_d)).max(0.0))
}

/// Returns the rate after an accelerated ramp-up (med16, eq. 2 with the received rate): `(1 + gamma) received` with
/// `gamma = min(gamma_max, Q / response)`. `response` is the time until the step is visible: round-trip time and
/// feedback interval.
pub fn ramp_up(received: Rate, response: TimeDelta, c: &RampUpConfig) -> Rate {
    received.scale(1.0 + ramp_gain(response, c))
}

/// Returns `gamma` (med16, eq. 2; RFC 8698, eq. 3).
pub fn ramp_gain(response: TimeDelta, c: &RampUpConfig) -> f64 {
    (c.q_bound / response.as_millis_f64().max(1.0)).min(c.gamma_max)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MED16: GradualConfig = GradualConfig::MED16;
    const RFC_8698: GradualConfig = GradualConfig::RFC_8698;
    const DELTA: TimeDelta = TimeDelta::from_millis(100);

    #[test]
    fn a_maximum_above_the_bound_changes_nothing() {
        let rate =
            |mbps: u64| gradual(Rate::from_kbps(2000), 100.0, 100.0, DELTA, Rate::from_kbps(mbps * 1000), &RFC_8698);
        assert_eq!([rate(20), rate(21), rate(1000)], [rate(20); 3]);
        assert!(rate(19) < rate(20));
    }

    #[test]
    fn gradual_update_is_stable_at_the_equilibrium_and_never_negative() {
        let med16 =
            |kbps, x, before| gradual(Rate::from_kbps(kbps), x, before, DELTA, Rate::from_kbps(2500), &MED16).as_bps();
        assert_eq!(med16(1000, 3000.0, 0.0), 0, "never negative");
        // Equilibrium, eq. 9: R = x_ref R_max / x.
        assert_eq!(med16(1000, 50.0, 50.0), 1_000_000);
    }
}
