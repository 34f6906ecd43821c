// SPDX-License-Identifier: MIT OR Apache-2.0
//! Losses: dropped bytes, and the loss in receiver reports.

use super::series_map::{Bins, SeriesMap, hold};
use super::{PanelBuilder, RunView, is_forward, over_time, seconds};
use crate::report::figure::{Axis, Panel, Role, Series, SeriesKind};
use paceline_netsim::records::EventRecord;
use paceline_units::Time;

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
    fn event(&mut self, event: &EventRecord) {
        let (at, packet, which) = match *event {
            EventRecord::Sent { at, packet } => (at, packet, 0),
            EventRecord::Dropped { at, packet, .. } => (at, packet, 1),
            EventRecord::FractionLost { at, flow, fraction } => {
                let Some(subject) = self.view.subject(flow) else { return };
                let make = || Series::new("reported", "reported lost", subject, Role::Second, SeriesKind::Points);
                return self.reports.of(subject, 0, make).push(seconds(at), fraction * 100.0);
            }
            _ => return,
        };
        if let Some(subject) = self.view.subject(packet.flow).filter(|_| is_forward(&packet)) {
            self.bins.at(subject, at, BIN_NS)[which] += packet.size.as_bytes();
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
                series.push(seconds(Time::from_nanos(BIN_NS * bin as i64)), ratio);
            }
            hold(&mut series, self.view.duration_s.min(seconds(Time::from_nanos(BIN_NS * bins.len() as i64))));
            panel.series.push(series);
        }
        panel.series.extend(self.reports.finish());
        vec![panel]
    }
}
