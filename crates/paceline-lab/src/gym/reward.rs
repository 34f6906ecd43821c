// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reward of a step.
//!
//! ```text
//! r = min(1, goodput / share) − a · delay − b · loss
//! ```
//!
//! Goodput is media that arrived at its first transmission: retransmissions, FEC and padding add no reward. The share is
//! the rate that the flow could have used: the capacity of the step over the flows that cross it, and no more than its
//! sources make. A queue therefore adds no reward: above the share the first term is constant, and delay and loss only
//! cost.

use super::ground_truth::Truth;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reward {
    /// Cost of a second of delay over propagation, `a`: at 2 a queue of 100 ms costs a fifth of the share.
    pub delay_per_s: f64,
    /// Cost of the fraction lost, `b`: above 1, or sending into a full, short queue would increase the reward.
    pub loss: f64,
}

impl Default for Reward {
    fn default() -> Self {
        Self { delay_per_s: 2.0, loss: 2.0 }
    }
}

impl Reward {
    pub fn evaluate(&self, truth: &Truth) -> f64 {
        let used = if truth.share_bps > 0.0 { (truth.goodput_bps / truth.share_bps).min(1.0) } else { 0.0 };
        used - self.delay_per_s * truth.delay_s - self.loss * truth.loss
    }
}
