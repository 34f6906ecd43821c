// SPDX-License-Identifier: MIT OR Apache-2.0
//! Video metrics: frame delay and freezes.

use super::{MetricSpec, StreamResult, WindowResult};
use paceline_netsim::flow::MediaKind;
use paceline_netsim::records::{Better, MetricKind};

pub(super) const FRAME_DELAY_P95: MetricSpec = MetricSpec::new(
    "frame_delay_p95_ms",
    MetricKind::Delay,
    "95th percentile of the delay from capture to rendering, of the first stream; a video frame that was never rendered counts \
     with the time until the next one was; of the first flow, if none is named",
    |r, flow, _| r.flow(flow).streams.first()?.frame_delay_ms.map(|d| d.p95),
)
.with_streams(|s| s.frame_delay_ms.map(|d| d.p95));

pub(super) const FREEZE_DURATION: MetricSpec = MetricSpec::new(
    "freeze_duration_s",
    MetricKind::Time,
    "total duration of freezes (W3C totalFreezesDuration, and every gap of 1 s) of the video stream with the longest; of the \
     flow, if one is named",
    |r, flow, _| r.video(flow).map(|s| s.freeze_s).reduce(f64::max),
)
.with_streams(|s| Some(s.freeze_s))
.with_freezes();

pub(super) const FREEZE_RATIO: MetricSpec = MetricSpec::new(
    "freeze_ratio",
    MetricKind::Share,
    "duration of freezes over the time that the stream lived, of the video stream with the largest; of the flow, if one is named",
    |r, flow, _| r.video(flow).filter_map(|s| s.freeze_ratio).reduce(f64::max),
)
.with_better(Better::Lower)
.with_streams(|s| s.freeze_ratio)
.with_freezes();

pub(super) const LATE_OR_LOST: MetricSpec = MetricSpec::new(
    "late_or_lost_ratio",
    MetricKind::Loss,
    "video frames that were not rendered, or later than 400 ms after capture (ITU-T G.114), over all, of the video stream with \
     the largest; of the flow, if one is named",
    |r, flow, _| r.video(flow).filter_map(|s| s.late_or_lost_ratio).reduce(f64::max),
)
.with_streams(|s| s.late_or_lost_ratio);

pub(super) const DISCARD_RATIO: MetricSpec = MetricSpec::new(
    "discard_ratio",
    MetricKind::Loss,
    "frames that were complete more than 100 ms later after capture than the fastest one so far, too late for a playout buffer \
     of this length, over frames rendered; of the video stream with the largest; of the flow, if one is named",
    |r, flow, _| r.video(flow).filter_map(|s| s.discard_ratio).reduce(f64::max),
)
.with_streams(|s| s.discard_ratio);

pub(super) const AUDIO_GAPS: MetricSpec = MetricSpec::new(
    "audio_gap_ratio",
    MetricKind::Loss,
    "audio frames that did not arrive, or later than 400 ms after capture (ITU-T G.114), over all, of the audio stream with the \
     largest; of the flow, if one is named",
    |r, flow, _| r.streams(flow, MediaKind::Audio).filter_map(|s| s.late_or_lost_ratio).reduce(f64::max),
);

impl WindowResult {
    fn streams(&self, flow: Option<usize>, kind: MediaKind) -> impl Iterator<Item = &StreamResult> {
        let flows = flow.map_or(&self.flows[..], |f| core::slice::from_ref(&self.flows[f]));
        flows.iter().flat_map(|f| &f.streams).filter(move |s| s.kind == kind.name())
    }

    fn video(&self, flow: Option<usize>) -> impl Iterator<Item = &StreamResult> {
        self.streams(flow, MediaKind::Video)
    }
}
