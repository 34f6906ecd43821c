// SPDX-License-Identifier: MIT OR Apache-2.0
//! Other traffic fills the queue: what is carried of the flow varies although the queue stands.

use super::{Cause, Evidence, Strength, ms, percent, queue_threshold};
use crate::carried;
use crate::episodes::EpisodeKind;
use crate::facts::{Delays, Facts};
use crate::frames;
use crate::model::Quantity;
use paceline_units::TimeDelta;

pub(super) const CAUSE: Cause = Cause {
    id: "cross-traffic",
    title: "cross traffic: others filled the queue",
    advice: "stop uploads and downloads beside the call, or give it a queue of its own (FQ-CoDel, DSCP, L4S)",
    examine,
};

/// Assumed: what is carried of a single flow while its queue stands varies by less. One packet of 1228 bytes in 500 ms is 20 kbit/s,
/// or 4 % of 500 kbit/s; statistics say neither when a round-trip time was measured nor what arrived.
const SHARED: f64 = 0.15;
const SHARED_COARSE: f64 = 0.25;

/// Assumed for statistics: seconds after the drop this share of the rise remains. A queue of the flow alone drains.
const REMAINS: f64 = 0.25;
/// Assumed for statistics: a queue that the controller does not drain in seconds is kept by others.
const STANDS: f64 = 0.06;
const STANDS_SHARE: f64 = 0.4;
/// Assumed for statistics of a slow bottleneck: this share of the rise stays so long before the drop or after it, in every report.
const STANDING_DURATION: TimeDelta = TimeDelta::from_secs(10);
const LASTS_SHARE: f64 = 0.5;
/// Assumed: and most of the time it is longer by this share of the rise at least.
const VARIES: f64 = 0.05;
/// Assumed: fewer reports do not show how a queue varies.
const REPORTS: usize = 4;
/// Above this share of lost packets TCP would not keep a queue: at 5 % and a round trip of 200 ms its rate is below 300 kbit/s
/// (RFC 5348, equation 1).
const TCP_LOSS: f64 = 0.05;

fn examine(facts: &Facts<'_>) -> Option<Evidence> {
    // A plateau may last for an hour, and a queue that stands for so long does not end with it.
    if matches!(facts.episode.kind, EpisodeKind::SlowReturn | EpisodeKind::Plateau) {
        return None;
    }
    let delays = facts.delays()?;
    if delays.rise < queue_threshold(&delays).max(0.5 * delays.jitter) {
        return None;
    }
    let varies = carried::spread(facts, delays.base).unwrap_or(0.0);
    let loss = facts.loss().map_or(0.0, |(share, _)| share);
    let shared = if delays.is_one_way { SHARED } else { SHARED_COARSE };
    let kept = if delays.is_one_way { None } else { kept(facts, &delays) };
    let by_chance = !delays.is_one_way || facts.loses_at_random(Some(&delays));
    let text = match kept {
        _ if loss >= TCP_LOSS && by_chance => return None,
        _ if varies >= shared => format!(
            "delay rose by {}, and what was carried varied by {} while the queue stood, {} or more",
            ms(delays.rise),
            percent(varies),
            percent(shared)
        ),
        Some(kept) => kept,
        None => return None,
    };
    Some(Evidence {
        strength: Strength::Strong,
        text,
        series: vec![Quantity::DelayLow, Quantity::RoundTrip, Quantity::ReceivedRate, Quantity::SentRate],
        span: facts.window(),
    })
}

/// Returns the least of a queue that statistics show in all of [`STANDING_DURATION`] before the drop or after it, s.
fn stands(facts: &Facts<'_>, delays: &Delays) -> Option<f64> {
    let delay = facts.flow.get(Quantity::RoundTrip)?;
    // Reports come every second or two.
    let margin = facts.flow.interval.max(TimeDelta::from_secs(1)).scale(2.5);
    let least = |from| {
        let (to, points) = (from + STANDING_DURATION, delay.within(from, from + STANDING_DURATION));
        let is_covered =
            points.len() >= REPORTS && points.first()?.0 - from <= margin && to - points.last()?.0 <= margin;
        // Most delays of a longer path are near the least.
        let (median, least) = (delay.quantile(from, to, 0.5)?, delay.min(from, to)?);
        (is_covered && median - least >= VARIES * delays.rise).then_some(least - delays.base)
    };
    let sides = [facts.episode.start - STANDING_DURATION, facts.episode.end + TimeDelta::from_secs(1)];
    sides.into_iter().filter_map(least).reduce(f64::max)
}

/// Returns what statistics say of a queue that the controller does not drain.
fn kept(facts: &Facts<'_>, delays: &Delays) -> Option<String> {
    // A slow bottleneck that the flow fills again and again has a queue too, but not all the time.
    if frames::spread(facts).is_some() {
        let least = stands(facts, delays).filter(|least| *least >= STANDS.max(LASTS_SHARE * delays.rise))?;
        let (rise, least, lasts) = (ms(delays.rise), ms(least), ms(STANDING_DURATION.as_secs_f64()));
        return Some(format!("of a queue of {rise}, {least} or more were there all the time for {lasts}"));
    }
    let (least_after, least_before) =
        (queue_threshold(delays).max(REMAINS * delays.rise), STANDS.max(STANDS_SHARE * delays.rise));
    let stood = facts.stood(delays.base).filter(|least| *least >= least_before);
    if delays.after >= least_after {
        let (rise, after, least) = (ms(delays.rise), ms(delays.after), ms(least_after));
        return Some(format!("of a queue of {rise}, {after} were there seconds after the drop, {least} or more"));
    }
    stood.map(|stood| format!("a queue of {} stood before the drop, {} or more", ms(stood), ms(least_before)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::episodes::Episode;
    use crate::test_flow::{drop_between, packets, statistics};

    /// The evidence for an episode of this kind at 30 s, in a flow with a queue in a span, s, that is carried at these rates.
    fn examined(kind: EpisodeKind, span: (f64, f64), carried: &dyn Fn(f64) -> f64) -> Option<Evidence> {
        let during = |at: f64| (span.0..span.1).contains(&at);
        let flow = packets(&[
            (Quantity::ReceivedRate, &|at| if during(at) { carried(at) } else { 2e6 }),
            (Quantity::DelayLow, &|at| if during(at) { 0.1 + 0.02 * (at % 5.0) } else { 0.0 }),
            (Quantity::DelayHigh, &|at| if during(at) { 0.3 } else { 0.005 }),
        ]);
        examine(&Facts { flow: &flow, episode: &Episode { kind, ..drop_between(30.0, 30.5) } })
    }

    #[test]
    fn what_is_carried_varies_beside_other_traffic_only() {
        let shared = |at: f64| if at % 4.0 < 2.0 { 1.2e6 } else { 0.6e6 };
        let found = examined(EpisodeKind::Drop, (25.0, 35.0), &shared).expect("other traffic");
        assert_eq!(found.strength, Strength::Strong);
        assert!(found.text.ends_with("15.0 % or more"), "{}", found.text);
        for side in [0.8, 1.0, 1.2] {
            let step = |at: f64| if at < 29.999 { 1.2e6 } else { 0.6e6 };
            assert_eq!(
                examined(EpisodeKind::Drop, (29.999 - side, 29.999 + side), &step),
                None,
                "{side} s on each side"
            );
        }
        assert_eq!(examined(EpisodeKind::Plateau, (25.0, 35.0), &shared), None);
    }

    #[test]
    fn statistics_show_a_queue_that_remains() {
        let found = |until: f64| {
            let flow = statistics(&[
                (Quantity::SentRate, &|_| 1e6),
                (Quantity::RoundTrip, &|at| if (28.0..until).contains(&at) { 0.2 } else { 0.05 }),
            ]);
            examine(&Facts { flow: &flow, episode: &drop_between(30.0, 31.0) }).map(|evidence| evidence.text)
        };
        let kept = found(45.0).expect("a queue that remains");
        assert_eq!(kept, "of a queue of 150 ms, 150 ms were there seconds after the drop, 38 ms or more");
        assert_eq!(found(32.0), None, "it drains");
    }

    #[test]
    fn a_queue_that_others_keep_varies_and_a_longer_path_does_not() {
        let found = |until: f64, delay: &dyn Fn(f64) -> f64| {
            let mut flow = statistics(&[
                (Quantity::SentRate, &|at| if at < 30.0 { 1.2e6 } else { 0.5e6 }),
                (Quantity::Jitter, &|at| if at < 28.0 { 0.005 + 1e-5 * at } else { 0.03 + 1e-5 * at }),
                (Quantity::RoundTrip, delay),
            ]);
            let delays = flow.series.get_mut(&Quantity::RoundTrip).unwrap();
            delays.points.retain(|(at, _)| at.as_secs_f64() < until);
            kept(
                &Facts { flow: &flow, episode: &drop_between(30.0, 31.0) },
                &Delays { base: 0.05, rise: 0.3, spike: 0.3, after: 0.0, jitter: 0.0, is_one_way: false },
            )
        };
        let shared = found(60.0, &|at| if at < 28.0 { 0.05 } else { 0.3 + 0.01 * (at % 5.0) });
        assert_eq!(shared.as_deref(), Some("of a queue of 300 ms, 250 ms or more were there all the time for 10 s"));
        assert_eq!(found(60.0, &|at| if at < 28.0 { 0.05 } else { 0.35 }), None, "a longer path");
        assert_eq!(found(36.0, &|at| if at < 28.0 { 0.05 } else { 0.3 + 0.01 * (at % 5.0) }), None, "the call ends");
        assert_eq!(found(60.0, &|at| if (28.0..33.0).contains(&at) { 0.35 } else { 0.05 }), None, "it drains");
    }
}
