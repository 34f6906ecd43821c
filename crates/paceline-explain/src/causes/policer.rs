// SPDX-License-Identifier: MIT OR Apache-2.0
//! A policer drops what exceeds a rate, without a queue.

use super::{Cause, Evidence, LOSS, LOST_MIN, QUEUE, Strength, percent, rate};
use crate::episodes::EpisodeKind;
use crate::facts::Facts;
use crate::frames;
use crate::model::{Quantity, sorted};
use paceline_units::{Time, TimeDelta};

pub(super) const CAUSE: Cause = Cause {
    id: "policer",
    title: "policer: packets above a fixed rate were dropped, without a queue",
    advice: "keep the maximum rate below the policed rate, and pace; ask the operator for shaping in place of policing",
    examine,
};

/// The span that is examined. Assumed: a policer is there for long.
const BEFORE: TimeDelta = TimeDelta::from_secs(20);
const AFTER: TimeDelta = TimeDelta::from_secs(15);
/// Assumed: a packet that waited longer than jitter explains, s.
const SPIKE: f64 = 0.04;
/// Assumed: fewer seconds with loss, or without it below the rate, may be chance.
const SECONDS: usize = 2;
/// Assumed: a policer drops again and again. Few losses need a third time: two may meet the largest rates by chance.
const TIMES: usize = 2;
const TIMES_SMALL: usize = 3;
/// Assumed: a single loss says nothing about the rate.
const LEAST: f64 = 2.0;
/// Assumed: at most this share of all seconds is on the wrong side of the rate. Bursts pass a policer while it has tokens.
const WRONG: f64 = 0.2;

/// Assumed: reports count losses up to a second after what was sent, so that so many intervals are taken together.
const POOLED: usize = 3;
/// Assumed: fewer samples say nothing about a correlation.
const SAMPLES: usize = 5;
/// Quantile of the normal distribution: one-sided 1 %. Assumed: the rule examines many drops.
const CLEAR: f64 = 2.326;

/// A second of the call.
struct Second {
    /// Sent in it; if packets were lost, the larger of this and what was sent before.
    sent: f64,
    sent_in_it: f64,
    lost: f64,
    delivered: f64,
    is_lossy: bool,
}

fn examine(facts: &Facts<'_>) -> Option<Evidence> {
    if facts.episode.kind == EpisodeKind::SlowReturn {
        return None;
    }
    let (from, to) = facts.window();
    let (share, _) = facts.loss().filter(|(_, lost)| *lost >= LEAST)?;
    let is_notable = facts.notable_loss().is_some();
    let times = if is_notable { TIMES } else { TIMES_SMALL };
    let delays = facts.delays();
    // Nothing waits before a policer.
    let queued = delays.is_some_and(|delays| delays.rise >= QUEUE || delays.spike >= SPIKE);
    if queued || frames::spread(facts).is_some() {
        return None;
    }
    let seconds = seconds(facts, from - BEFORE, to + AFTER);
    let lossy: Vec<&Second> = seconds.iter().filter(|second| second.is_lossy).collect();
    if lossy.len() < SECONDS {
        return None;
    }
    let delivered = sorted(lossy.iter().map(|second| second.delivered));
    let limit = delivered[delivered.len() / 2];
    let fits = has_threshold(&seconds, &lossy, times) || (is_notable && grows_with_rate(&seconds));
    fits.then(|| Evidence {
        strength: Strength::Strong,
        text: format!("{} lost without delay, more at higher rates; {} arrived", percent(share), rate(limit)),
        series: vec![Quantity::SentRate, Quantity::ReceivedRate, Quantity::PacketsLost],
        span: (from, to),
    })
}

fn seconds(facts: &Facts<'_>, start: Time, end: Time) -> Vec<Second> {
    let length = if facts.is_coarse() { TimeDelta::from_secs(1) } else { TimeDelta::from_millis(500) };
    let received = facts.flow.get(Quantity::ReceivedRate);
    let mut seconds = Vec::new();
    let mut at = start;
    while at < end {
        let next = at + length;
        if let Some(((share, lost), sent)) = facts.loss_within(at, next).zip(facts.sent(at, next)) {
            let is_lossy = share >= LOSS / 2.0 && lost > LOST_MIN / 2.0;
            // What caused a loss was sent just before it.
            let before = facts.sent(at - length, at).unwrap_or(sent);
            let delivered = received.and_then(|series| series.mean(at, next)).unwrap_or(sent * (1.0 - share));
            let triggering = if is_lossy { sent.max(before) } else { sent };
            seconds.push(Second { sent: triggering, sent_in_it: sent, lost: share, delivered, is_lossy });
        }
        at = next;
    }
    seconds
}

/// Returns whether losses occur above a rate and not below it. A loss that does not depend on the rate has clean seconds at the
/// same rate before it began.
fn has_threshold(seconds: &[Second], lossy: &[&Second], least: usize) -> bool {
    let wrong = |threshold: f64| seconds.iter().filter(|second| (second.sent >= threshold) != second.is_lossy).count();
    let near = |second: &&Second| [0.98, 1.0, 1.02, 1.04].map(|share| share * second.sent);
    let threshold = lossy.iter().flat_map(near).min_by_key(|threshold| wrong(*threshold));
    threshold.is_some_and(|threshold| {
        let below = lossy.iter().filter(|second| second.sent < threshold).count();
        let clean_above = seconds.iter().filter(|second| !second.is_lossy && second.sent >= threshold).count();
        let clean_below = seconds.iter().filter(|second| !second.is_lossy && second.sent < threshold).count();
        // A policer drops again whenever the rate returns.
        let times = seconds.chunk_by(|a, b| a.is_lossy == b.is_lossy).filter(|run| run[0].is_lossy).count();
        times >= least
            && wrong(threshold) as f64 <= WRONG * seconds.len() as f64
            && 2 * below <= lossy.len()
            && clean_above <= lossy.len()
            && clean_below >= SECONDS
    })
}

/// Returns whether the share of lost packets grows with the rate: what exceeds the policed rate is lost. Losses by chance take the
/// same share of any rate.
///
/// The samples do not overlap. Their correlation r is clear if atanh(r) · √(n − 3) ≥ [`CLEAR`]: without a connection the left side is
/// close to a standard normal variable (Fisher's transformation).
fn grows_with_rate(seconds: &[Second]) -> bool {
    let mean = |values: &mut dyn Iterator<Item = f64>| {
        let (sum, count) = values.fold((0.0, 0), |(sum, count), value| (sum + value, count + 1));
        sum / f64::from(count)
    };
    let pools = seconds.chunks_exact(POOLED);
    let pools =
        pools.map(|run| (mean(&mut run.iter().map(|one| one.sent_in_it)), mean(&mut run.iter().map(|one| one.lost))));
    let lossy: Vec<(f64, f64)> = pools.filter(|(_, lost)| *lost >= LOSS / 2.0).collect();
    if lossy.len() < SAMPLES {
        return false;
    }
    let (sent, lost) = (mean(&mut lossy.iter().map(|one| one.0)), mean(&mut lossy.iter().map(|one| one.1)));
    let sum =
        |product: &dyn Fn(f64, f64) -> f64| lossy.iter().map(|one| product(one.0 - sent, one.1 - lost)).sum::<f64>();
    let norm = (sum(&|sent, _| sent * sent) * sum(&|_, lost| lost * lost)).sqrt();
    let correlation = sum(&|sent, lost| sent * lost) / norm;
    norm > 0.0 && libm::atanh(correlation) * (lossy.len() as f64 - 3.0).sqrt() >= CLEAR
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seconds of a call at rates from 0.6 to 1.4 Mbit/s, with this share of lost packets at a rate.
    fn grows(lost: &dyn Fn(usize, f64) -> f64) -> bool {
        let second = |index: usize| {
            let sent = 6e5 + 2e5 * ((index / 3) % 5) as f64;
            let lost = lost(index, sent);
            Second { sent, sent_in_it: sent, lost, delivered: sent * (1.0 - lost), is_lossy: lost > 0.0 }
        };
        grows_with_rate(&(0..60).map(second).collect::<Vec<_>>())
    }

    #[test]
    fn a_share_that_grows_with_the_rate_is_that_of_a_policer() {
        assert!(grows(&|_, sent| 1.0 - (8e5 / sent).min(1.0)));
    }

    #[test]
    fn a_share_that_does_not_depend_on_the_rate_is_not() {
        assert!(!grows(&|_, _| 0.1), "constant");
        assert!(!grows(&|index, _| 0.05 + 0.01 * ((index * 7919) % 11) as f64), "by chance");
        assert!(!grows(&|_, sent| (sent / 1.4e6 - 1.0).abs()), "falls with the rate");
    }

    #[test]
    fn few_samples_are_not_enough() {
        assert!(!grows(&|index, sent| if index < 14 { 1.0 - (8e5 / sent).min(1.0) } else { 0.0 }));
    }
}
