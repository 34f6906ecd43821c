//! More was sent than the bottleneck carries: its queue grew, and drained after the drop.

use super::{Cause, Evidence, Strength, ms, queue_threshold, rate};
use crate::episodes::EpisodeKind;
use crate::facts::Facts;
use crate::model::Quantity;

pub(super) const CAUSE: Cause = Cause {
    id: "own-queue",
    title: "over-use: more was sent than the bottleneck carries",
    advice: "the capacity fell or was reached: a lower maximum rate avoids the queue; check the radio link or the contract",
    examine,
};

/// Ours: frames spread the delays of their own packets; their lower end varies less.
const JITTER: f64 = 0.3;

fn examine(facts: &Facts<'_>) -> Option<Evidence> {
    if facts.episode.kind == EpisodeKind::SlowReturn {
        return None;
    }
    let delays = facts.delays()?;
    let (from, to) = facts.window();
    if delays.rise < queue_threshold(&delays).max(JITTER * delays.jitter) {
        return None;
    }
    let received =
        facts.flow.get(Quantity::ReceivedRate).and_then(|series| series.quantile(facts.episode.start, to, 0.5));
    let carried = received.map_or_else(String::new, |bps| format!("; {} arrived", rate(bps)));
    Some(Evidence {
        // A single sample of statistics may also be a burst of delay.
        strength: if facts.isolated_round_trip().is_some() { Strength::Weak } else { Strength::Strong },
        text: format!("delay rose by {} before the drop and drained after it{carried}", ms(delays.rise)),
        series: vec![Quantity::DelayLow, Quantity::RoundTrip, Quantity::ReceivedRate],
        span: (from, to),
    })
}
