// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frame delay and freezes.

use super::series_map::{SeriesMap, element};
use super::{PanelBuilder, RunView, over_time, seconds};
use crate::report::figure::{Axis, Panel, Role, Series, SeriesKind};
use paceline_netsim::records::EventRecord;
use paceline_units::FlowId;

struct Frames<'a> {
    view: &'a RunView<'a>,
    delays: SeriesMap,
    refused: SeriesMap,
    /// Render times, s, by flow and stream.
    rendered: Vec<Vec<Vec<f64>>>,
    /// The flows and streams, in the order of their first frames.
    order: Vec<(FlowId, usize)>,
}

pub(super) fn begin<'a>(view: &'a RunView<'a>) -> Box<dyn PanelBuilder + 'a> {
    let (delays, refused) = (SeriesMap::default(), SeriesMap::default());
    Box::new(Frames { view, delays, refused, rendered: Vec::new(), order: Vec::new() })
}

impl PanelBuilder for Frames<'_> {
    fn event(&mut self, event: &EventRecord) {
        let (at, flow, stream, captured) = match *event {
            EventRecord::Frame { at, flow, stream, captured, .. } => (at, flow, stream, Some(captured)),
            EventRecord::FrameDropped { at, flow, stream } => (at, flow, stream, None),
            _ => return,
        };
        let Some(subject) = self.view.subject(flow) else { return };
        let (view, stream) = (self.view, usize::from(stream.0));
        let series = |what: &str, label: &str, role, kind| {
            let name = view.stream(flow, stream);
            Series::new(&format!("{what}:{name}"), &format!("{label} of {name}"), subject, role, kind)
        };
        let time = seconds(at);
        let Some(captured) = captured else {
            let make = || series("refused", "dropped frames", Role::Second, SeriesKind::Points);
            self.refused.of(subject, stream, make).push(time, 0.0);
            return;
        };
        let make = || series("delay", "frame delay", Role::Main, SeriesKind::Line);
        self.delays.of(subject, stream, make).push(time, (at - captured).as_millis_f64());
        let rendered = element(element(&mut self.rendered, flow.0.into()), stream);
        if rendered.is_empty() {
            self.order.push((flow, stream));
        }
        rendered.push(time);
    }

    fn finish(self: Box<Self>) -> Vec<Panel> {
        let view = self.view;
        let caption =
            "Lines: time from capture to rendering of each frame, at its render time. Shaded: freezes, which \
                       are gaps between rendered frames above max(3 × mean, mean + 150 ms), with the mean of the \
                       last 30 gaps. Points at zero: frames that the sender dropped because the pacer's queue was full."
                .to_owned();
        let axis = Axis::new("frame delay", "ms");
        let mut panel = over_time("frames", "Frame delay and freezes", caption, axis, view);
        panel.series = self.delays.finish();
        for (flow, stream) in self.order {
            let times = &self.rendered[usize::from(flow.0)][stream];
            let Some(subject) = view.subject(flow) else { continue };
            let name = view.stream(flow, stream);
            let lives = view.flow(flow).map_or((0.0, view.duration_s), |flow| flow.lives_s);
            let mut series = Series {
                states: vec!["freeze".to_owned()],
                ..Series::new(
                    &format!("freezes:{name}"),
                    &format!("freezes of {name}"),
                    subject,
                    Role::Second,
                    SeriesKind::Band,
                )
            };
            for (from, to) in freezes(times, lives.1) {
                series.push(from, 0.0);
                series.push(to, f64::NAN);
            }
            if !series.is_empty() {
                panel.series.push(series);
            }
        }
        panel.series.extend(self.refused.finish());
        vec![panel]
    }
}

/// Number of gaps in the mean.
const MEMORY: usize = 30;

/// Returns the freezes between frames rendered at these times, including the gap until `end`, as the metrics count them.
fn freezes(times: &[f64], end: f64) -> Vec<(f64, f64)> {
    let mut freezes = Vec::new();
    let nexts = times.iter().skip(1).copied().chain([end]);
    for (index, (from, to)) in times.iter().copied().zip(nexts).enumerate() {
        let known = index.min(MEMORY);
        if known >= 2 {
            let mean = (from - times[index - known]) / known as f64;
            if to - from > (3.0 * mean).max(mean + 0.150) {
                freezes.push((from, to));
            }
        }
    }
    freezes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn freezes_exceed_both_bounds() {
        let steady: Vec<f64> = (0..40).map(|n| f64::from(n) * 0.040).collect();
        let after = |gap: f64| {
            let mut times = steady.clone();
            times.push(1.560 + gap);
            freezes(&times, 1.560 + gap)
        };
        assert!(after(0.189).is_empty(), "40 + 150 ms is more than 3 x 40");
        let [(from, to)] = after(0.191)[..] else { panic!("one freeze") };
        assert!((from - 1.560).abs() < 1e-9 && (to - 1.751).abs() < 1e-9, "{from} to {to}");
        assert_eq!(freezes(&steady, 2.0).len(), 1, "the open end is a gap");
        assert!(freezes(&steady[..2], 9.0).is_empty(), "one gap is known, two are needed");
    }
}
