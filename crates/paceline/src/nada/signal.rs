// SPDX-License-Identifier: MIT OR Apache-2.0
//! The composite congestion signal: delay, loss and marks, expressed as a delay.

use crate::params;

params! {
    /// The parameters of the penalties.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct PenaltyConfig {
        /// RFC 8698, table 2.
        const RFC_8698;

        /// Delay that the reference loss ratio stands for.
        d_loss as "dloss_ms": f64 = 10.0, unit "ms", in 0.0..=1e4, from "table 2, DLOSS";
        /// Reference loss ratio.
        plr_ref as "plrref": f64 = 0.01, in 1e-4..=1.0, from "table 2, PLRREF";
        /// Delay that the reference marking ratio stands for.
        d_mark as "dmark_ms": f64 = 2.0, unit "ms", in 0.0..=1e4, from "table 2, DMARK";
        /// Reference marking ratio.
        pmr_ref as "pmrref": f64 = 0.01, in 1e-4..=1.0, from "table 2, PMRREF";
    }
}

/// Returns the signal of RFC 8698, eq. 2, in ms:
/// `x_curr = d_tilde + DMARK (p_mark / PMRREF)^2 + DLOSS (p_loss / PLRREF)^2`.
pub fn quadratic_signal(d_tilde: f64, p_loss: f64, p_mark: f64, c: &PenaltyConfig) -> f64 {
    let (mark, loss) = (p_mark / c.pmr_ref, p_loss / c.plr_ref);
    d_tilde + c.d_mark * mark * mark + c.d_loss * loss * loss
}

/// Returns the signal of 2015 (med16, eq. 1), in ms: `x_n = d~ + D_loss p`.
pub fn linear_signal(warped: f64, loss: f64, d_loss: f64) -> f64 {
    warped + d_loss * loss
}

/// Returns the smoothed ratio of RFC 8698, eq. 10: `p = ALPHA p_inst + (1 - ALPHA) p`.
pub fn smoothed_ratio(instant: f64, before: f64, alpha: f64) -> f64 {
    alpha * instant + (1.0 - alpha) * before
}
