//! Frames: from capture to rendering, and freezes.

use super::bank::Bank;
use super::{Draw, Scene, millis, over_time, seconds};
use crate::figure::{Axis, Kind, Panel, Role, Series};
use crate::read::FrameRow;

struct Frames<'a> {
    scene: &'a Scene<'a>,
    delays: Bank,
    refused: Bank,
    /// Flow, stream, and when its frames were rendered, s.
    rendered: Vec<(u16, usize, Vec<f64>)>,
}

pub(super) fn begin<'a>(scene: &'a Scene<'a>) -> Box<dyn Draw + 'a> {
    Box::new(Frames { scene, delays: Bank::default(), refused: Bank::default(), rendered: Vec::new() })
}

impl Draw for Frames<'_> {
    fn frame(&mut self, row: &FrameRow) {
        let Some(subject) = self.scene.subject(row.flow) else { return };
        let name = self.scene.stream(row.flow, row.stream);
        let series = |what: &str, label: &str, role, kind| {
            Series::new(&format!("{what}:{name}"), &format!("{label} of {name}"), subject, role, kind)
        };
        let at = seconds(row.time_ns);
        let Some(captured) = row.captured_ns else {
            let make = || series("refused", "refused frames", Role::Second, Kind::Points);
            self.refused.of(subject, row.stream, make).push(at, 0.0);
            return;
        };
        let make = || series("delay", "frame delay", Role::Main, Kind::Line);
        self.delays.of(subject, row.stream, make).push(at, millis(row.time_ns - captured));
        let known = self.rendered.iter().position(|(flow, stream, _)| (*flow, *stream) == (row.flow, row.stream));
        let known = known.unwrap_or_else(|| {
            self.rendered.push((row.flow, row.stream, Vec::new()));
            self.rendered.len() - 1
        });
        self.rendered[known].2.push(at);
    }

    fn finish(self: Box<Self>) -> Vec<Panel> {
        let scene = self.scene;
        let caption = "Lines: from capture to rendering of each frame, drawn when it is rendered. Shaded lanes: \
                       freezes, which are gaps between rendered frames over max(3 × mean, mean + 150 ms), the mean \
                       being that of the last 30 gaps. Points at zero: frames that the sender refused to queue."
            .to_owned();
        let axis = Axis::new("frame delay", "ms");
        let mut panel = over_time("frames", "Frame delay and freezes", caption, axis, scene);
        panel.series = self.delays.finish();
        for (flow, stream, times) in &self.rendered {
            let Some(subject) = scene.subject(*flow) else { continue };
            let name = scene.stream(*flow, *stream);
            let lives = scene.flow(*flow).map_or((0.0, scene.duration_s), |flow| flow.lives_s);
            let mut series = Series {
                states: vec!["freeze".to_owned()],
                ..Series::new(
                    &format!("freezes:{name}"),
                    &format!("freezes of {name}"),
                    subject,
                    Role::Second,
                    Kind::Band,
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

/// Gaps that the mean is taken of.
const MEMORY: usize = 30;

/// The freezes among frames rendered at these times, the gap still open at `end` included: as metrics count them.
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
    fn freezes_are_gaps_over_both_bounds() {
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
