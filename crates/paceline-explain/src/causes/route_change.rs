// SPDX-License-Identifier: MIT OR Apache-2.0
//! The packets take another way.

use super::{Cause, Evidence, Strength, ms, rate, rate_cap};
use crate::episodes::EpisodeKind;
use crate::facts::Facts;
use crate::model::{MarkKind, Quantity};
use paceline_units::TimeDelta;

pub(super) const CAUSE: Cause = Cause {
    id: "route-change",
    title: "route change: the packets took another path",
    advice: "expected after a handover or a switch of relays; if it repeats, look at ICE candidates and network interfaces",
    examine,
};

/// Assumed: a smaller step is hard to tell from a queue.
const STEP: f64 = 0.015;
/// Assumed: after the step, delays vary by at most this share of it; a queue drains or grows.
const FLAT: f64 = 0.25;
/// Assumed: the step takes at most this time; a queue needs longer to grow.
const EDGE: TimeDelta = TimeDelta::from_millis(300);
/// Assumed: a sent rate that the controller did not lower falls with the change of the route, not later.
const SOON: TimeDelta = TimeDelta::from_secs(2);

fn examine(facts: &Facts<'_>) -> Option<Evidence> {
    let (from, to) = facts.window();
    if !matches!(facts.episode.kind, EpisodeKind::Drop | EpisodeKind::SentDrop) {
        return None;
    }
    // A source that falls later has another reason.
    let from_mark = match facts.episode.kind {
        EpisodeKind::SentDrop => from.max(facts.episode.start - SOON),
        _ => from,
    };
    if let Some(mark) = facts.flow.marks(from_mark, to).find(|mark| mark.kind == MarkKind::RouteChange) {
        return Some(Evidence {
            strength: Strength::Strong,
            text: "the transport changed its route".to_owned(),
            series: vec![Quantity::RoundTrip, Quantity::DelayLow],
            span: (mark.at - TimeDelta::from_secs(2), mark.at + TimeDelta::from_secs(4)),
        });
    }
    if let Some(start) = restarted(facts) {
        return Some(Evidence {
            strength: Strength::Weak,
            text: format!("the rate began again at {}, as at the start of the call", rate(start)),
            series: vec![Quantity::Target, Quantity::Estimate],
            span: (from, to),
        });
    }
    let Some(delay) = facts.flow.get(Quantity::DelayLow) else { return by_round_trips(facts) };
    let points = delay.within(from - TimeDelta::from_secs(1), to);
    // The largest change between two times EDGE apart.
    let pairs = points.iter().enumerate().filter_map(|(index, before)| {
        let after = points[index..].iter().find(|after| after.0 - before.0 >= EDGE)?;
        Some((before.0, after.0, after.1 - before.1))
    });
    // A shorter path raises no delay and lowers no rate.
    let (before, after, step) = pairs.max_by(|a, b| a.2.total_cmp(&b.2))?;
    let long = TimeDelta::from_secs(3);
    let flat = TimeDelta::from_secs(5);
    let (low, high) = (delay.quantile(after, after + flat, 0.05)?, delay.quantile(after, after + flat, 0.8)?);
    let old = delay.quantile(before - long, before, 0.5)?;
    // The lower end stays at the new level: a queue that drains comes back below it.
    let lasting = delay.quantile(after + long, after + TimeDelta::from_secs(8), 0.1).unwrap_or(low);
    let is_step = step >= STEP && high - low <= FLAT * step && low - old >= 0.7 * step && lasting - old >= 0.6 * step;
    is_step.then(|| Evidence {
        strength: Strength::Strong,
        text: format!("the delay of the path stepped by {} and stayed", ms(step)),
        series: vec![Quantity::DelayLow, Quantity::RoundTrip],
        span: (before - long, after + long),
    })
}

/// Assumed: rates that differ by at most this share are equal, but for rounding.
const EQUAL: f64 = 0.0001;

/// Returns the start rate of the call, if the rate fell to it at once. Controllers begin anew on another network route (libwebrtc,
/// `GoogCcNetworkController::OnNetworkRouteChange`). A rate that is the lowest of the call may be the minimum of the controller, and
/// one near a limit may be that limit.
fn restarted(facts: &Facts<'_>) -> Option<f64> {
    let (quantity, series) = facts.flow.rate()?;
    let (_, start) = *series.points.first()?;
    let (episode, known) = (facts.episode, matches!(quantity, Quantity::Target | Quantity::Estimate));
    let at_once = episode.end - episode.start <= EDGE;
    let lowest = series.points.iter().map(|(_, rate)| *rate).fold(f64::MAX, f64::min);
    let is_limit = start <= (1.0 + EQUAL) * lowest || rate_cap::is_known(facts.flow, start, facts.window().1);
    (known && at_once && !is_limit && (episode.to - start).abs() <= EQUAL * start).then_some(start)
}

/// Assumed: a sample that rises by this share of the largest rise lies between the two paths.
const BETWEEN: f64 = 0.3;

/// Statistics have round-trip times only: all samples after lie close together, and above all before.
fn by_round_trips(facts: &Facts<'_>) -> Option<Evidence> {
    let rtt = facts.flow.get(Quantity::RoundTrip)?;
    let (from, to) = (facts.episode.start - TimeDelta::from_secs(8), facts.episode.start + TimeDelta::from_secs(12));
    let points = rtt.within(from, to);
    let rise = |at: usize| {
        points.get(at).zip(points.get(at.wrapping_sub(1))).map_or(0.0, |(after, before)| after.1 - before.1)
    };
    let at = (1..points.len()).max_by(|a, b| rise(*a).total_cmp(&rise(*b)))?;
    let split = rise(at);
    // The two ways change one after the other: one sample may lie between.
    let end = if rise(at - 1) >= BETWEEN * split { at - 1 } else { at };
    let start = if rise(at + 1) >= BETWEEN * split { at + 1 } else { at };
    let (before, after) = (&points[..end], &points[start..]);
    let is_cause = (facts.window().0..=facts.window().1).contains(&after.first()?.0);
    let least = |points: &[(paceline_units::Time, f64)]| points.iter().map(|point| point.1).fold(f64::MAX, f64::min);
    let most = |points: &[(paceline_units::Time, f64)]| points.iter().map(|point| point.1).fold(0.0, f64::max);
    let step = least(after) - most(before);
    let flat = step >= 2.0 * STEP && most(after) - least(after) <= FLAT * step && is_cause;
    (before.len() >= 3 && after.len() >= 4 && flat).then(|| Evidence {
        strength: Strength::Strong,
        text: format!("the round-trip time stepped by {} and stayed", ms(step)),
        series: vec![Quantity::RoundTrip],
        span: (from, to),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::episodes::Episode;
    use crate::model::{Flow, Mark};
    use crate::test_flow::{drop_between, packets};
    use paceline_units::Time;

    /// A target that begins at 300 kbit/s and falls to it at 30 s; `early`: the target from 5 s to 8 s.
    fn flow(early: f64) -> Flow {
        packets(&[(Quantity::Target, &|at| match at {
            5.0..8.0 => early,
            8.0..30.0 => 2e6,
            30.0..40.0 | 0.0..5.0 => 3e5,
            _ => 1e6,
        })])
    }

    fn evidence(flow: &Flow, to: f64) -> Option<Evidence> {
        let episode = Episode { to, ..drop_between(29.9, 30.0) };
        examine(&Facts { flow, episode: &episode })
    }

    #[test]
    fn a_rate_that_begins_again_is_weak_evidence() {
        let found = evidence(&flow(2e5), 3e5).expect("the start rate");
        assert_eq!(found.strength, Strength::Weak);
        assert_eq!(evidence(&flow(2e5), 4e5), None, "another rate");
    }

    #[test]
    fn the_lowest_rate_of_a_call_is_no_new_beginning() {
        assert_eq!(evidence(&flow(4e5), 3e5), None);
    }

    #[test]
    fn a_limit_is_no_new_beginning() {
        let with_limit = |bps| {
            let mut flow = flow(2e5);
            flow.marks.push(Mark { at: Time::from_secs(1), kind: MarkKind::CapSet(bps) });
            evidence(&flow, 3e5)
        };
        assert_eq!(with_limit(3e5), None);
        assert!(with_limit(1e6).is_some(), "another limit");
    }
}
