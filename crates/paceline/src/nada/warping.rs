// SPDX-License-Identifier: MIT OR Apache-2.0
//! Non-linear warping: above a threshold, larger queuing delays count less, so that a flow at a queue that other flows
//! keep full reacts to losses instead.

use libm::exp;

/// Returns the warped delay by RFC 8698, eq. 1, all in ms: `d` below `q_th`, else
/// `q_th exp(-lambda (d - q_th) / q_th)`.
pub fn exponential_warping(d: f64, q_th: f64, lambda: f64) -> f64 {
    if d < q_th { d } else { q_th * exp(-lambda * (d - q_th) / q_th) }
}

/// Returns the warped delay of 2015 (med16, figure 2), all in ms: the delay itself below the knee,
/// `((max - d) / (max - knee))^4 knee` up to `max`, zero above.
pub fn quartic_warping(d: f64, knee: f64, max: f64) -> f64 {
    if d < knee {
        d
    } else if d < max {
        let share = (max - d) / (max - knee);
        share * share * share * share * knee
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartic_warping_at_its_ends() {
        assert_eq!([0.0, 20.0, 50.0, 500.0].map(|d| quartic_warping(d, 50.0, 400.0)), [0.0, 20.0, 50.0, 0.0]);
        assert_eq!(quartic_warping(80.0, 100.0, 100.0), 80.0, "a knee at the maximum is a cut-off");
        assert_eq!(quartic_warping(100.0, 100.0, 100.0), 0.0);
    }
}
