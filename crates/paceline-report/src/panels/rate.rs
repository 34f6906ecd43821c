//! Received rate, target and capacity.

use super::series_map::{Bins, SeriesMap, hold, step};
use super::{PanelBuilder, RunView, over_time, seconds};
use crate::figure::{Axis, Panel, Role, Series, SeriesKind};
use crate::read::{Event, FlowKind, FlowRow, PacketRow};

/// Bin length of the received rate, ms.
pub const BIN_MS: u32 = 500;
const BIN_NS: i64 = BIN_MS as i64 * 1_000_000;
const MBIT: f64 = 1e6;

struct Rates<'a> {
    view: &'a RunView<'a>,
    /// Bytes received.
    received: Bins<u64>,
    targets: SeriesMap,
}

pub(super) fn begin<'a>(view: &'a RunView<'a>) -> Box<dyn PanelBuilder + 'a> {
    Box::new(Rates { view, received: Bins::default(), targets: SeriesMap::default() })
}

impl PanelBuilder for Rates<'_> {
    fn packet(&mut self, row: &PacketRow) {
        if let (Event::Arrived { .. }, true) = (row.event, row.is_forward) {
            let subject = self.view.any_subject(row.flow);
            *self.received.at(subject, row.time_ns, BIN_NS) += u64::try_from(row.size_bytes).unwrap_or(0);
        }
    }

    fn flow(&mut self, row: &FlowRow) {
        if let (FlowKind::Target, Some(subject)) = (row.kind, self.view.subject(row.flow)) {
            let make = || Series::new("target", "target", subject, Role::Second, SeriesKind::Steps);
            step(self.targets.of(subject, 0, make), seconds(row.time_ns), row.value / MBIT);
        }
    }

    fn finish(self: Box<Self>) -> Vec<Panel> {
        let view = self.view;
        let caption = format!(
            "Received rate: received bytes including headers, in bins of {BIN_MS} ms. Target: the rate that the \
             controller sets for its encoder. Capacity: of the forward hops; recorded traces as means over 100 ms."
        );
        let mut panel = over_time("rate", "Rate", caption, Axis::new("rate", "Mbit/s"), view);
        for (hop, steps) in view.limits() {
            let (id, label) = (format!("capacity:{}", hop.id), format!("capacity of {}", hop.id));
            let mut series = Series { subject: None, ..Series::new(&id, &label, 0, Role::Limit, SeriesKind::Steps) };
            steps.iter().for_each(|(at, bps)| series.push(*at, bps / MBIT));
            hold(&mut series, view.duration_s);
            panel.series.push(series);
        }
        for (subject, bins) in self.received.finish() {
            let mut series = Series::new("received", "received rate", subject, Role::Main, SeriesKind::Steps);
            let begun = bins.iter().position(|bytes| *bytes > 0).unwrap_or(0);
            for (bin, bytes) in bins.iter().enumerate().skip(begun) {
                let from = seconds(BIN_NS * bin as i64);
                let length = (view.duration_s - from).min(f64::from(BIN_MS) / 1e3);
                // A bin that starts at the end of the run has no length.
                if length > 0.0 {
                    series.push(from, *bytes as f64 * 8.0 / length / MBIT);
                }
            }
            let end = view.duration_s.min(seconds(BIN_NS * bins.len() as i64));
            hold(&mut series, end);
            panel.series.push(series);
        }
        let mut targets = self.targets.finish();
        for series in &mut targets {
            let flow = view.shown_flow(series);
            hold(series, flow.map_or(view.duration_s, |flow| flow.lives_s.1));
        }
        panel.series.extend(targets);
        vec![panel]
    }
}
