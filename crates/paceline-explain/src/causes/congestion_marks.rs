// SPDX-License-Identifier: MIT OR Apache-2.0
//! A bottleneck marked packets (ECN), and the controller lowered its rate.

use super::{Cause, Evidence, Strength, percent};
use crate::episodes::EpisodeKind;
use crate::facts::{Facts, LOST_MIN};
use crate::model::Quantity;
use paceline_units::Time;

pub(super) const CAUSE: Cause = Cause {
    id: "congestion-marks",
    title: "congestion marks: a bottleneck marked packets, as ECN and L4S do before a queue is long",
    advice: "the bottleneck has less capacity than was sent, and says so in time; a lower maximum rate avoids the marks",
    examine,
};

/// Assumed: marks at this share of the packets lower a rate. L4S controllers hold theirs with fewer.
const SHARE: f64 = 0.01;
/// Assumed: marks are the cause if they are so many times as frequent as in the whole call.
const TIMES: f64 = 2.0;

fn examine(facts: &Facts<'_>) -> Option<Evidence> {
    if matches!(facts.episode.kind, EpisodeKind::SlowReturn | EpisodeKind::SentDrop) {
        return None;
    }
    let (from, to) = facts.window();
    let count = |from, to| {
        let sum = |quantity| facts.flow.get(quantity).map_or(0.0, |series| series.sum(from, to));
        (sum(Quantity::CeArrived), sum(Quantity::EctArrived))
    };
    let share = |(marked, capable): (f64, f64)| marked / (marked + capable).max(1.0);
    let (now, usual) = (count(from, to), share(count(facts.flow.span.0, Time::MAX)));
    if now.0 < LOST_MIN || share(now) < SHARE {
        return None;
    }
    // What holds a plateau is as frequent in it as elsewhere.
    let is_more = facts.episode.kind == EpisodeKind::Plateau || share(now) >= TIMES * usual;
    Some(Evidence {
        strength: if is_more { Strength::Strong } else { Strength::Weak },
        text: format!(
            "{} of the packets came with a mark (CE), {} in the whole call",
            percent(share(now)),
            percent(usual)
        ),
        series: vec![Quantity::CeArrived, Quantity::EctArrived],
        span: (from, to),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_flow::{drop_between, packets};

    #[test]
    fn marks_are_a_cause_where_they_are_frequent() {
        let strength = |before: f64, around: f64| {
            let marked = move |at: f64| if (29.0..31.0).contains(&at) { around } else { before };
            let flow = packets(&[
                (Quantity::SentRate, &|_| 1e6),
                (Quantity::EctArrived, &move |at| 10.0 - marked(at)),
                (Quantity::CeArrived, &marked),
            ]);
            examine(&Facts { flow: &flow, episode: &drop_between(30.0, 30.5) }).map(|evidence| evidence.strength)
        };
        assert_eq!(strength(0.0, 5.0), Some(Strength::Strong));
        assert_eq!(strength(5.0, 5.0), Some(Strength::Weak), "as frequent as always");
        assert_eq!(strength(0.0, 0.0), None);
    }
}
