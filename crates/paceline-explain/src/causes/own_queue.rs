// SPDX-License-Identifier: MIT OR Apache-2.0
//! More was sent than the bottleneck carries: its queue grew, and drained after the drop.

use super::{Cause, Evidence, MUCH, Strength, ms, queue_threshold, rate};
use crate::episodes::EpisodeKind;
use crate::facts::Facts;
use crate::frames;
use crate::model::Quantity;
use paceline_units::TimeDelta;

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
    // Between rare samples, a delay that rises after the fall is not its cause.
    let rises = |delay: f64| delay - delays.base >= queue_threshold(&delays).max(JITTER * delays.jitter);
    let until = facts.episode.end + TimeDelta::from_secs(1);
    let rose_before = || facts.flow.get(Quantity::RoundTrip)?.max(from, until).filter(|delay| rises(*delay));
    if facts.is_sparse() && !delays.is_one_way && rose_before().is_none() {
        return None;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_flow::{drop_between, statistics};

    #[test]
    fn between_rare_samples_a_delay_that_rises_after_the_drop_is_not_its_cause() {
        let is_queue = |from: f64, interval: i64| {
            let rtt = move |at: f64| if at >= from && at < from + 20.0 { 0.4 } else { 0.05 };
            let mut flow = statistics(&[(Quantity::SentRate, &|_| 1e6), (Quantity::RoundTrip, &rtt)]);
            flow.interval = TimeDelta::from_secs(interval);
            examine(&Facts { flow: &flow, episode: &drop_between(29.9, 30.0) }).is_some()
        };
        assert_eq!([is_queue(20.0, 20), is_queue(30.0, 20), is_queue(40.0, 20)], [true, true, false]);
        assert!(is_queue(31.0, 1), "reports come late");
    }
}
