//! A queue overflowed.

use super::{Cause, Evidence, QUEUE, Strength, ms, percent, queue_threshold};
use crate::episodes::EpisodeKind;
use crate::facts::{Facts, LOSS};
use crate::model::Quantity;
use paceline_units::TimeDelta;

pub(super) const CAUSE: Cause = Cause {
    id: "congestive-loss",
    title: "congestive loss: a queue was full and dropped packets",
    advice: "the bottleneck has less capacity than was sent: lower the maximum rate, or free the link",
    examine,
};

/// Ours: losses happen while the delay is above this share of its peak.
const AT_PEAK: f64 = 0.4;
/// Ours: at least this share of the losses.
const SHARE: f64 = 0.5;

/// Ours: a queue up to this length is short, s.
const SHORT: f64 = 0.1;
/// Ours: losses without a queue go on after it.
const AFTER: TimeDelta = TimeDelta::from_secs(6);
/// Ours: losses are that much more frequent at the peak.
const MORE: f64 = 1.4;

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
    let queued = delays.rise >= queue_threshold(&delays).max(0.3 * delays.jitter)
        || (delays.is_one_way && delays.spike >= 2.0 * QUEUE + 1.5 * delays.jitter);
    if !queued {
        return None;
    }
    // With packets, the losses must be where the queue is.
    if let (Some(losses), Some(high)) = (facts.flow.get(Quantity::PacketsLost), facts.flow.get(Quantity::DelayHigh)) {
        let peak = delays.spike;
        let step = crate::packets::BIN;
        let sent = facts.flow.get(Quantity::PacketsSent)?;
        // Lost and sent packets at the peak, and elsewhere.
        let mut counts = [(0.0, 0.0); 2];
        for (at, lost) in losses.within(from, to + AFTER) {
            let around = high.max(*at - step * 2, *at + step * 3);
            let is_peak = around.is_some_and(|value| value - delays.base >= AT_PEAK * peak);
            let (sum, all) = &mut counts[usize::from(!is_peak)];
            *sum += lost;
            *all += sent.at(*at).unwrap_or(0.0);
        }
        let [(at_peak, sent_at_peak), (elsewhere, sent_elsewhere)] = counts;
        // Random losses are as frequent elsewhere.
        let is_random = sent_elsewhere >= 30.0 && at_peak / sent_at_peak.max(1.0) < MORE * elsewhere / sent_elsewhere;
        if is_random {
            return None;
        }
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
