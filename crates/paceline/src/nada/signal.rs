//! The composite congestion signal: all that speaks for congestion, as a delay.

/// Numbers of the penalties.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PenaltyConfig {
    /// Delay that losses at the reference ratio stand for, `DLOSS`, ms.
    pub d_loss: f64,
    /// Reference loss ratio, `PLRREF`.
    pub plr_ref: f64,
    /// Delay that marks at the reference ratio stand for, `DMARK`, ms.
    pub d_mark: f64,
    /// Reference marking ratio, `PMRREF`.
    pub pmr_ref: f64,
}

/// RFC 8698, eq. 2, in ms: `x_curr = d_tilde + DMARK (p_mark / PMRREF)^2 + DLOSS (p_loss / PLRREF)^2`.
pub fn quadratic_signal(d_tilde: f64, p_loss: f64, p_mark: f64, c: &PenaltyConfig) -> f64 {
    let (mark, loss) = (p_mark / c.pmr_ref, p_loss / c.plr_ref);
    d_tilde + c.d_mark * mark * mark + c.d_loss * loss * loss
}

/// The signal of 2015 (med16, eq. 1), in ms: `x_n = d~ + D_loss p`.
pub fn linear_signal(warped: f64, loss: f64, d_loss: f64) -> f64 {
    warped + d_loss * loss
}

/// RFC 8698, eq. 10: `p = ALPHA p_inst + (1 - ALPHA) p`.
pub fn smoothed_ratio(instant: f64, before: f64, alpha: f64) -> f64 {
    alpha * instant + (1.0 - alpha) * before
}
