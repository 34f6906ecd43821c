// SPDX-License-Identifier: MIT OR Apache-2.0
//! More was sent than the bottleneck carries: its queue grew, and drained after the drop.

use super::{Cause, Evidence, MUCH, Strength, ms, queue_threshold, rate};
use crate::episodes::EpisodeKind;
use crate::facts::Facts;
use crate::frames;
use crate::model::Quantity;

pub(super) const CAUSE: Cause = Cause {
    id: "own-queue",
    title: "over-use: more was sent than the bottleneck carries",
    advice: "the capacity fell or was reached: a lower maximum rate avoids the queue; check the radio link or the contract",
    examine,
};

/// Assumed: frames spread the delays of their own packets; their lower end varies less.
const JITTER: f64 = 0.3;

fn examine(facts: &Facts<'_>) -> Option<Evidence> {
    if facts.episode.kind == EpisodeKind::SlowReturn {
        return None;
    }
    let delays = facts.delays()?;
    let (from, to) = facts.window();
    let spread = frames::spread(facts);
    if delays.rise < queue_threshold(&delays).max(JITTER * delays.jitter) {
        // A queue may drain between two frames, or between two samples of statistics.
        return spread.map(|spread| Evidence {
            strength: Strength::Strong,
            text: format!("a slow link spread frames by {} and more", ms(spread)),
            series: vec![Quantity::DelayHigh, Quantity::DelayLow, Quantity::Jitter, Quantity::RoundTrip],
            span: (from, to),
        });
    }
    let received =
        facts.flow.get(Quantity::ReceivedRate).and_then(|series| series.quantile(facts.episode.start, to, 0.5));
    let carried = received.map_or_else(String::new, |bps| format!("; {} arrived", rate(bps)));
    // A single sample of statistics may also be a burst of delay.
    let single = facts.isolated_round_trip().is_some() && spread.is_none();
    // Losses that do not depend on the queue lower the rate by themselves.
    let lossy = facts.loses_at_random(Some(&delays)) && facts.loss().is_some_and(|(share, _)| share >= MUCH);
    let rise = ms(delays.rise);
    let text = match facts.episode.kind {
        EpisodeKind::Plateau => format!("packets wait {rise} in a queue that stands{carried}"),
        _ => format!("delay rose by {rise} before the drop and drained after it{carried}"),
    };
    Some(Evidence {
        strength: if single || lossy { Strength::Weak } else { Strength::Strong },
        text,
        series: vec![Quantity::DelayLow, Quantity::RoundTrip, Quantity::ReceivedRate],
        span: (from, to),
    })
}
