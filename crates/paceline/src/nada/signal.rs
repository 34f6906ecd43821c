//! The composite congestion signal: delay, loss and marks, expressed as a delay.

/// The numbers of the penalties.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PenaltyConfig {
    /// The delay that the reference loss ratio stands for, `DLOSS`, ms.
    pub d_loss: f64,
    /// The reference loss ratio, `PLRREF`.
    pub plr_ref: f64,
    /// The delay that the reference marking ratio stands for, `DMARK`, ms.
    pub d_mark: f64,
    /// The reference marking ratio, `PMRREF`.
    pub pmr_ref: f64,
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
