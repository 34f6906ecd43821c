//! Other traffic fills the queue: delay stays although less is sent.

use super::{Cause, Evidence, Strength, ms, queue_threshold};
use crate::facts::Facts;
use crate::model::Quantity;

pub(super) const CAUSE: Cause = Cause {
    id: "cross-traffic",
    title: "cross traffic: others filled the queue",
    advice: "stop uploads and downloads beside the call, or give it a queue of its own (FQ-CoDel, DSCP, L4S)",
    examine,
};

/// Ours: after the drop this share of the rise remains. A queue of the sender's own packets drains when it sends less.
const REMAINS: f64 = 0.4;

fn examine(facts: &Facts<'_>) -> Option<Evidence> {
    let delays = facts.delays()?;
    if delays.rise < queue_threshold(&delays).max(1.5 * delays.jitter) || delays.after < REMAINS * delays.rise {
        return None;
    }
    Some(Evidence {
        strength: Strength::Strong,
        text: format!(
            "delay rose by {} and stayed {} up after the drop",
            ms(delays.rise),
            ms(delays.after)
        ),
        series: vec![Quantity::DelayLow, Quantity::RoundTrip, Quantity::SentRate],
        span: facts.window(),
    })
}
