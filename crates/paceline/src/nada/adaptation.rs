//! What a NADA sender makes of a report: accelerated ramp-up while the path has room, else gradual update.

use paceline_units::{Rate, TimeDelta};

/// Numbers of the gradual update.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GradualConfig {
    /// Reference congestion signal `x_ref`, ms.
    pub x_ref: f64,
    /// Scaling `kappa`.
    pub kappa: f64,
    /// `eta`, weight of the signal's change.
    pub eta: f64,
    /// Upper bound of the round-trip time for which the loop is stable, `tau`, ms.
    pub tau: f64,
}

/// Numbers of the ramp-up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RampUpConfig {
    /// Most that is added at once, as a share of what is received.
    pub gamma_max: f64,
    /// Queuing delay that a ramp-up may cause, `Q`, ms.
    pub q_bound: f64,
}

/// The gradual update (med16, eq. 3 to 5; RFC 8698, eq. 5 to 7): `x` and `x_before` in ms, `delta` the time that the step
/// stands for. With `K_1 = kappa delta / tau^2` and `K_2 = kappa eta / tau`
///
/// ```text
/// x_o = x - x_ref R_max / R,   x_d = x - x_before,   R <- R (1 - K_1 x_o - K_2 x_d)
/// ```
///
/// Its bounds are the caller's.
pub fn gradual(rate: Rate, x: f64, x_before: f64, delta: TimeDelta, max: Rate, c: &GradualConfig) -> Rate {
    let r = rate.as_bps_f64().max(1.0);
    let (k_1, k_2) = (c.kappa * delta.as_millis_f64() / (c.tau * c.tau), c.kappa * c.eta / c.tau);
    let (x_o, x_d) = (x - c.x_ref * (max.as_bps_f64() / r), x - x_before);
    Rate::from_bps_f64((r * (1.0 - k_1 * x_o - k_2 * x_d)).max(0.0))
}

/// Accelerated ramp-up (med16, eq. 2 with the received rate): `(1 + gamma) received`, `gamma = min(gamma_max, Q / span)`,
/// `span` the time until the step shows: round trip and feedback interval.
pub fn ramp_up(received: Rate, span: TimeDelta, c: &RampUpConfig) -> Rate {
    received.scale(1.0 + ramp_gain(span, c))
}

/// `gamma` (med16, eq. 2; RFC 8698, eq. 3).
pub fn ramp_gain(span: TimeDelta, c: &RampUpConfig) -> f64 {
    (c.q_bound / span.as_millis_f64().max(1.0)).min(c.gamma_max)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MED16: GradualConfig = GradualConfig { x_ref: 20.0, kappa: 0.5, eta: 2.0, tau: 500.0 };
    const DELTA: TimeDelta = TimeDelta::from_millis(100);

    #[test]
    fn a_gradual_update_ends_at_zero_and_rests_at_the_equilibrium() {
        let med16 =
            |kbps, x, before| gradual(Rate::from_kbps(kbps), x, before, DELTA, Rate::from_kbps(2500), &MED16).as_bps();
        assert_eq!(med16(1000, 3000.0, 0.0), 0, "never below zero");
        // Equilibrium, eq. 9: R = x_ref R_max / x.
        assert_eq!(med16(1000, 50.0, 50.0), 1_000_000);
    }

    #[test]
    fn a_ramp_up_takes_its_share_of_the_queue_that_it_may_cause() {
        let c = RampUpConfig { gamma_max: 0.2, q_bound: 50.0 };
        let after = |rtt| ramp_up(Rate::from_kbps(1000), TimeDelta::from_millis(rtt) + DELTA, &c).as_bps();
        assert_eq!([after(0), after(150), after(400)], [1_200_000, 1_200_000, 1_100_000]);
    }
}
