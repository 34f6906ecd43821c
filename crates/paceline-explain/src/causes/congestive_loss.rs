//! A queue overflowed.

use super::{Cause, Evidence, LOSS, LOST_LEAST, QUEUE, Strength, ms, percent, queue_threshold};
use crate::facts::Facts;
use crate::model::Quantity;

pub(super) const CAUSE: Cause = Cause {
    id: "congestive-loss",
    title: "congestive loss: a queue was full and dropped packets",
    advice: "the bottleneck has less capacity than was sent: lower the maximum rate, or free the link",
    examine,
};

/// Ours: losses happen while the delay is above this share of its peak.
const AT_PEAK: f64 = 0.5;
/// Ours: at least this share of the losses.
const SHARE: f64 = 0.6;

fn examine(facts: &Facts<'_>) -> Option<Evidence> {
    let (from, to) = facts.window();
    let (share, lost) = facts.loss()?;
    let delays = facts.delays()?;
    // A short queue delays the last packets of a frame only.
    let queued = delays.rise >= queue_threshold(&delays).max(1.5 * delays.jitter)
        || (delays.is_one_way && delays.spike >= 2.0 * QUEUE + 1.5 * delays.jitter);
    if share < LOSS || lost < LOST_LEAST || !queued {
        return None;
    }
    // With packets, the losses must be where the queue is.
    if let (Some(losses), Some(high)) = (facts.flow.get(Quantity::PacketsLost), facts.flow.get(Quantity::DelayHigh)) {
        let peak = delays.spike;
        let step = crate::packets::BIN;
        let at_peak: f64 = losses
            .within(from, to)
            .iter()
            .filter(|(at, _)| {
                let around = high.max(*at - step * 2, *at + step * 3);
                around.is_some_and(|value| value - delays.base >= AT_PEAK * peak)
            })
            .map(|point| point.1)
            .sum();
        if at_peak < SHARE * lost {
            return None;
        }
    }
    Some(Evidence {
        strength: Strength::Strong,
        text: format!("{} lost while packets waited up to {} longer", percent(share), ms(delays.spike)),
        series: vec![Quantity::PacketsLost, Quantity::DelayHigh, Quantity::RoundTrip],
        span: (from, to),
    })
}
