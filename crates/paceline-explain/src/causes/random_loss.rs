//! Packets are lost without a queue.

use super::{Cause, Evidence, Strength, percent, queue_threshold};
use crate::facts::Facts;
use crate::frames;
use crate::model::Quantity;

pub(super) const CAUSE: Cause = Cause {
    id: "random-loss",
    title: "random loss: packets were lost without a queue",
    advice: "look at the radio link or a bad cable; FEC and retransmission help, a lower rate does not",
    examine,
};

fn examine(facts: &Facts<'_>) -> Option<Evidence> {
    let (share, _) = facts.notable_loss()?;
    let delays = facts.delays();
    let queued = frames::spread(facts).is_some()
        || delays.is_some_and(|delays| delays.rise >= queue_threshold(&delays).max(0.3 * delays.jitter));
    let is_random = delays.is_some_and(|delays| facts.loses_at_random(&delays));
    Some(Evidence {
        strength: if queued && !is_random { Strength::Weak } else { Strength::Strong },
        text: match queued {
            true => format!("{} of the packets lost, with a queue and without", percent(share)),
            false => format!("{} of the packets lost, at unchanged delay", percent(share)),
        },
        series: vec![Quantity::PacketsLost, Quantity::DelayLow, Quantity::RoundTrip],
        span: facts.window(),
    })
}
