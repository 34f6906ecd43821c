// SPDX-License-Identifier: MIT OR Apache-2.0
//! A queue overflowed.

use super::{Cause, Evidence, QUEUE, Strength, ms, percent, queue_threshold};
use crate::episodes::EpisodeKind;
use crate::facts::{Facts, LOSS};
use crate::frames;
use crate::model::Quantity;

pub(super) const CAUSE: Cause = Cause {
    id: "congestive-loss",
    title: "congestive loss: a queue was full and dropped packets",
    advice: "the bottleneck has less capacity than was sent: lower the maximum rate, or free the link",
    examine,
};

/// Assumed: at least this share of the losses happens near the peak of the delay. The rest may be losses of the path.
const SHARE: f64 = 0.5;

/// Assumed: a queue up to this length is short, s. Controllers by delay react before a longer one is full.
const SHORT: f64 = 0.1;

fn examine(facts: &Facts<'_>) -> Option<Evidence> {
    if facts.episode.kind == EpisodeKind::SlowReturn {
        return None;
    }
    let (from, to) = facts.window();
    let (share, lost) = facts.notable_loss()?;
    let delays = facts.delays()?;
    // In a long queue the delay is the signal before few losses are.
    if share < LOSS && delays.rise > SHORT {
        return None;
    }
    // A short queue delays the last packets of a frame only.
    let spread = frames::spread(facts);
    let queued = spread.is_some()
        || delays.rise >= queue_threshold(&delays).max(0.3 * delays.jitter)
        || (delays.is_one_way && delays.spike >= 2.0 * QUEUE + 1.5 * delays.jitter);
    if !queued {
        return None;
    }
    // With packets, the losses must be where the queue is.
    if facts.loses_at_random(Some(&delays))
        || facts.losses_by_queue(&delays).is_some_and(|by| by.at_peak.0 < SHARE * lost)
    {
        return None;
    }
    // Samples of statistics do not show whether few losses were where the queue was.
    let strength = if facts.is_coarse() && share < LOSS { Strength::Weak } else { Strength::Strong };
    Some(Evidence {
        strength,
        text: match spread {
            Some(spread) => {
                format!("{} lost while a slow link spread frames by {} and more", percent(share), ms(spread))
            }
            None => format!("{} lost while packets waited up to {} longer", percent(share), ms(delays.spike)),
        },
        series: vec![Quantity::PacketsLost, Quantity::DelayHigh, Quantity::RoundTrip, Quantity::Jitter],
        span: (from, to),
    })
}
