// SPDX-License-Identifier: MIT OR Apache-2.0
//! Flows for unit tests of rules.

use crate::episodes::{Episode, EpisodeKind};
use crate::model::{Confidence, Flow, Origin, Quantity, Series};
use paceline_units::Time;

/// A value at a time, s.
type Value<'a> = (Quantity, &'a dyn Fn(f64) -> f64);

/// Returns a flow of 60 s whose series have intervals of 100 ms, as those of packets.
pub fn packets(series: &[Value<'_>]) -> Flow {
    flow(600, 0.1, Confidence::Exact, series)
}

/// Returns a flow of 60 s whose series have intervals of 1 s, as those of statistics.
pub fn statistics(series: &[Value<'_>]) -> Flow {
    flow(60, 1.0, Confidence::Coarse, series)
}

fn flow(count: u32, step_s: f64, confidence: Confidence, series: &[Value<'_>]) -> Flow {
    let mut flow = Flow { span: (Time::ZERO, Time::from_secs(60)), ..Flow::default() };
    for (quantity, value) in series {
        let times = (0..count).map(|index| step_s * f64::from(index));
        let points = times.map(|at| (Time::from_secs_f64(at), value(at)));
        flow.series.insert(*quantity, Series::of(Origin::BothEnds, confidence, points));
    }
    flow
}

/// Returns a drop from 2 Mbit/s to 1 Mbit/s between two times, s.
pub fn drop_between(start: f64, end: f64) -> Episode {
    let (start, end) = (Time::from_secs_f64(start), Time::from_secs_f64(end));
    Episode { kind: EpisodeKind::Drop, start, end, from: 2e6, to: 1e6 }
}
