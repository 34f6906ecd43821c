// SPDX-License-Identifier: MIT OR Apache-2.0
//! Received rate, target and capacity.

use super::series_map::{Bins, SeriesMap, hold, step};
use super::{PanelBuilder, RunView, is_forward, over_time, seconds};
use crate::report::figure::{Axis, Panel, Role, Series, SeriesKind};
use paceline_netsim::records::{EventRecord, HopDescription};
use paceline_units::{FlowId, Time};

pub const BIN_MS: u32 = 500;
const BIN_NS: i64 = BIN_MS as i64 * 1_000_000;
const MBIT: f64 = 1e6;
/// Most steps of a capacity: a trace with more is smoothed.
const CAPACITY_STEPS: usize = 240;

struct Rates<'a> {
    view: &'a RunView<'a>,
    forward: Direction,
    reverse: Direction,
}

#[derive(Default)]
struct Direction {
    /// Bytes received.
    received: Bins<u64>,
    targets: SeriesMap,
}

pub(super) fn begin<'a>(view: &'a RunView<'a>) -> Box<dyn PanelBuilder + 'a> {
    Box::new(Rates { view, forward: Direction::default(), reverse: Direction::default() })
}

impl Rates<'_> {
    fn direction(&mut self, flow: FlowId) -> &mut Direction {
        if self.view.is_reverse(flow) { &mut self.reverse } else { &mut self.forward }
    }
}

impl PanelBuilder for Rates<'_> {
    fn event(&mut self, event: &EventRecord) {
        match *event {
            EventRecord::Arrived { at, packet, .. } if is_forward(&packet) => {
                let subject = self.view.any_subject(packet.flow);
                *self.direction(packet.flow).received.at(subject, at, BIN_NS) += packet.size.as_bytes();
            }
            EventRecord::Decision { at, flow, target, .. } => {
                let Some(subject) = self.view.subject(flow) else { return };
                let make = || Series::new("target", "target", subject, Role::Second, SeriesKind::Steps);
                let targets = &mut self.direction(flow).targets;
                step(targets.of(subject, 0, make), seconds(at), target.as_bps_f64() / MBIT);
            }
            _ => {}
        }
    }

    fn finish(self: Box<Self>) -> Vec<Panel> {
        let caption = |hops: &str| {
            format!(
                "Received rate: received bytes including headers, in bins of {BIN_MS} ms. Target: the rate that the controller \
                 sets for its encoder. Shaded: capacity of the {hops} hops; with more than {CAPACITY_STEPS} changes, means over equal \
                 parts of the run."
            )
        };
        let panel = |id, title, hops| over_time(id, title, caption(hops), Axis::new("rate", "Mbit/s"), self.view);
        let forward = panel("rate", "Rate", "forward");
        let reverse = panel("rate-reverse", "Rate, reverse direction", "reverse");
        vec![
            self.forward.fill(forward, self.view, self.view.limits(true)),
            self.reverse.fill(reverse, self.view, self.view.limits(false)),
        ]
    }
}

impl Direction {
    /// Adds the series to a panel. Limits without flows are left out.
    fn fill<'a>(
        self,
        mut panel: Panel,
        view: &RunView<'_>,
        limits: impl Iterator<Item = (&'a HopDescription, &'a [(f64, f64)])>,
    ) -> Panel {
        let mut received = self.received.finish().peekable();
        if received.peek().is_none() {
            return panel;
        }
        for (hop, steps) in limits {
            let (id, label) = (format!("capacity:{}", hop.id), format!("capacity of {}", hop.id));
            let mut series = Series { subject: None, ..Series::new(&id, &label, 0, Role::Limit, SeriesKind::Steps) };
            smoothed(steps, view.duration_s).into_iter().for_each(|(at, bps)| series.push(at, bps / MBIT));
            hold(&mut series, view.duration_s);
            panel.series.push(series);
        }
        for (subject, bins) in received {
            let mut series = Series::new("received", "received rate", subject, Role::Main, SeriesKind::Steps);
            let begun = bins.iter().position(|bytes| *bytes > 0).unwrap_or(0);
            for (bin, bytes) in bins.iter().enumerate().skip(begun) {
                let from = seconds(Time::from_nanos(BIN_NS * bin as i64));
                let length = (view.duration_s - from).min(f64::from(BIN_MS) / 1e3);
                // A bin that starts at the end of the run has no length.
                if length > 0.0 {
                    series.push(from, *bytes as f64 * 8.0 / length / MBIT);
                }
            }
            let end = view.duration_s.min(seconds(Time::from_nanos(BIN_NS * bins.len() as i64)));
            hold(&mut series, end);
            panel.series.push(series);
        }
        let mut targets = self.targets.finish();
        for series in &mut targets {
            let flow = view.shown_flow(series);
            hold(series, flow.map_or(view.duration_s, |flow| flow.lives_s.1));
        }
        panel.series.extend(targets);
        panel
    }
}

/// Returns the steps of a capacity until `end_s`; if there are more than [`CAPACITY_STEPS`], their means over bins of equal length, a multiple
/// of those of the received rate.
fn smoothed(steps: &[(f64, f64)], end_s: f64) -> Vec<(f64, f64)> {
    let used = &steps[..steps.partition_point(|(at, _)| *at < end_s)];
    if used.len() <= CAPACITY_STEPS {
        return used.to_vec();
    }
    let shortest = f64::from(BIN_MS) / 1e3;
    let bin_s = (end_s / CAPACITY_STEPS as f64 / shortest).ceil() * shortest;
    let mut bins = vec![(0.0, 0.0); (end_s / bin_s).ceil() as usize];
    for (index, (at, value)) in used.iter().enumerate() {
        let until = used.get(index + 1).map_or(end_s, |next| next.0);
        for (bin, (sum, length)) in bins.iter_mut().enumerate().skip((at / bin_s) as usize) {
            let part = until.min((bin + 1) as f64 * bin_s) - at.max(bin as f64 * bin_s);
            if part <= 0.0 {
                break;
            }
            *sum += value * part;
            *length += part;
        }
    }
    let mean = |(bin, (sum, length)): (usize, &(f64, f64))| (*length > 0.0).then(|| (bin as f64 * bin_s, sum / length));
    bins.iter().enumerate().filter_map(mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_are_smoothed_and_few_changes_are_exact() {
        let few = [(0.0, 1e6), (10.25, 3e6), (60.0, 9e6)];
        assert_eq!(smoothed(&few, 60.0), few[..2]);
        // 1 and 3 Mbit/s by turns of 100 ms: means of 2 Mbit/s over half seconds of five values, 1.8 and 2.2.
        let comb: Vec<(f64, f64)> = (0..600).map(|n| (f64::from(n) * 0.1, f64::from(1 + n % 2 * 2) * 1e6)).collect();
        let smooth = smoothed(&comb, 60.0);
        assert_eq!((smooth.len(), smooth[0].0, smooth[119].0), (120, 0.0, 59.5));
        assert!(smooth.iter().all(|(_, bps)| (bps - 2e6).abs() < 0.2e6 + 1.0), "{smooth:?}");
        let mean = smooth.iter().map(|(_, bps)| bps).sum::<f64>() / 120.0;
        assert!((mean - 2e6).abs() < 1.0, "{mean}");
        // 240 bins at most, each of several half seconds.
        let long: Vec<(f64, f64)> = (0..3000).map(|n| (f64::from(n) * 0.1, 1e6)).collect();
        let smooth = smoothed(&long, 300.0);
        assert_eq!((smooth.len(), smooth[1].0), (200, 1.5));
    }
}
