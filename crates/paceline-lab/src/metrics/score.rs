// SPDX-License-Identifier: MIT OR Apache-2.0
//! The score of a call, from 0 to 100, by what its viewers see. `docs/explanation/score.md` has the formulas.

use super::accumulators::Score;
use super::{MetricSpec, StreamResult, WindowResult};
use paceline_netsim::flow::MediaKind;
use paceline_netsim::plan::StreamPlan;
use paceline_netsim::records::{Better, MetricKind};

/// Weight of the video in the score of a flow that has both kinds of media. A choice.
const VIDEO_WEIGHT: f64 = 0.7;

pub(super) const SCORE: MetricSpec = MetricSpec::new(
    "score",
    MetricKind::Points,
    "how good the picture is that a viewer sees, from 0 to 100: age and rate of the newest rendered frame at each moment; the \
     worst second of ten weighs as much as their mean; mean over the media flows that are no cross traffic, or of the flow, if one is named",
    |r, flow, _| of_run(r, flow, |score| score.score),
)
.with_streams(|s| Some(s.score?.score))
.with_freezes();
pub(super) const LOST_TO_RATE: MetricSpec = MetricSpec::new(
    "score_lost_to_rate",
    MetricKind::Points,
    "points of the score that a rate below that of the best quality costs, or concealed audio",
    |r, flow, _| of_run(r, flow, |score| score.lost_to_rate),
)
.with_better(Better::Lower)
.with_streams(|s| Some(s.score?.lost_to_rate))
.with_freezes();
pub(super) const LOST_TO_FREEZES: MetricSpec = MetricSpec::new(
    "score_lost_to_freezes",
    MetricKind::Points,
    "points of the score that freezes cost, beyond the usual time between two frames",
    |r, flow, _| of_run(r, flow, |score| score.lost_to_freezes),
)
.with_better(Better::Lower)
.with_streams(|s| Some(s.score?.lost_to_freezes))
.with_freezes();
pub(super) const LOST_TO_DELAY: MetricSpec = MetricSpec::new(
    "score_lost_to_delay",
    MetricKind::Points,
    "points of the score that delay costs without freezes",
    |r, flow, _| of_run(r, flow, |score| score.lost_to_delay),
)
.with_better(Better::Lower)
.with_streams(|s| Some(s.score?.lost_to_delay))
.with_freezes();

/// Returns the mean over the media flows that have a score; or the value of the named flow.
fn of_run(run: &WindowResult, flow: Option<usize>, part: fn(Score) -> f64) -> Option<f64> {
    let flows = flow.map_or(&run.flows[..], |f| core::slice::from_ref(&run.flows[f]));
    Some(part(Score::mean(flows.iter().filter_map(|flow| Some((flow.score?, 1.0))))?))
}

/// Returns the score of a flow: of its videos by their priority, of its audio streams by theirs, and [`VIDEO_WEIGHT`] of the one and
/// the rest of the other where it has both.
pub(super) fn of_flow(plans: &[StreamPlan], streams: &[StreamResult]) -> Option<Score> {
    let of_kind = |kind: MediaKind| {
        let of_kind = plans.iter().zip(streams).filter(move |(plan, _)| plan.kind == kind);
        Score::mean(of_kind.filter_map(|(plan, stream)| Some((stream.score?, plan.priority))))
    };
    let kinds = [(of_kind(MediaKind::Video), VIDEO_WEIGHT), (of_kind(MediaKind::Audio), 1.0 - VIDEO_WEIGHT)];
    Score::mean(kinds.into_iter().filter_map(|(score, weight)| Some((score?, weight))))
}
