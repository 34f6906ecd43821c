//! Losses: dropped bytes, and the loss in receiver reports.

use super::series_map::{Bins, SeriesMap, hold};
use super::{PanelBuilder, RunView, over_time, seconds};
use crate::report::figure::{Axis, Panel, Role, Series, SeriesKind};
use crate::report::read::{Event, FlowKind, FlowRow, PacketRow};

/// Bin length of the loss ratio, s.
pub const BIN_S: u32 = 1;
const BIN_NS: i64 = BIN_S as i64 * 1_000_000_000;

struct Losses<'a> {
    view: &'a RunView<'a>,
    /// Bytes sent and bytes dropped.
    bins: Bins<[u64; 2]>,
    reports: SeriesMap,
}

pub(super) fn begin<'a>(view: &'a RunView<'a>) -> Box<dyn PanelBuilder + 'a> {
    Box::new(Losses { view, bins: Bins::default(), reports: SeriesMap::default() })
}

impl PanelBuilder for Losses<'_> {
    fn packet(&mut self, row: &PacketRow) {
        let which = match row.event {
            Event::Sent => 0,
            Event::Dropped { .. } => 1,
            _ => return,
        };
        if let Some(subject) = self.view.subject(row.flow).filter(|_| row.is_forward) {
            self.bins.at(subject, row.time_ns, BIN_NS)[which] += u64::try_from(row.size_bytes).unwrap_or(0);
        }
    }

    fn flow(&mut self, row: &FlowRow) {
        if let (FlowKind::FractionLost, Some(subject)) = (row.kind, self.view.subject(row.flow)) {
            let make = || Series::new("reported", "reported lost", subject, Role::Second, SeriesKind::Points);
            self.reports.of(subject, 0, make).push(seconds(row.time_ns), row.value * 100.0);
        }
    }

    fn finish(self: Box<Self>) -> Vec<Panel> {
        let caption = format!(
            "Steps: dropped bytes over sent bytes, in bins of {BIN_S} s (above 100 % if packets sent before the bin are \
             dropped in it). Points: the fraction lost in each receiver report."
        );
        let mut panel = over_time("loss", "Loss", caption, Axis::new("lost", "%"), self.view);
        for (subject, bins) in self.bins.finish() {
            let mut series = Series::new("dropped", "dropped", subject, Role::Main, SeriesKind::Steps);
            for (bin, [sent, dropped]) in bins.iter().enumerate() {
                let ratio = if *sent > 0 { 100.0 * *dropped as f64 / *sent as f64 } else { f64::NAN };
                series.push(seconds(BIN_NS * bin as i64), ratio);
            }
            hold(&mut series, self.view.duration_s.min(seconds(BIN_NS * bins.len() as i64)));
            panel.series.push(series);
        }
        panel.series.extend(self.reports.finish());
        vec![panel]
    }
}
