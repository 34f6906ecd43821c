//! Losses: what the network dropped, and what reports told the sender.

use super::bank::Bank;
use super::{Draw, Scene, over_time, seconds};
use crate::figure::{Axis, Kind, Panel, Role, Series};
use crate::read::{Event, FlowKind, FlowRow, PacketRow};

/// Bin of the ratio dropped, s.
pub const BIN_S: u32 = 1;
const BIN_NS: i64 = BIN_S as i64 * 1_000_000_000;

struct Losses<'a> {
    scene: &'a Scene<'a>,
    /// Bytes sent and bytes dropped of each subject, in each bin.
    bins: Vec<(usize, Vec<[u64; 2]>)>,
    reports: Bank,
}

pub(super) fn begin<'a>(scene: &'a Scene<'a>) -> Box<dyn Draw + 'a> {
    Box::new(Losses { scene, bins: Vec::new(), reports: Bank::default() })
}

impl Draw for Losses<'_> {
    fn packet(&mut self, row: &PacketRow) {
        let which = match row.event {
            Event::Sent => 0,
            Event::Dropped { .. } => 1,
            _ => return,
        };
        if let Some(subject) = self.scene.subject(row.flow).filter(|_| row.forth) {
            let at = self.bins.iter().position(|(known, _)| *known == subject);
            let at = at.unwrap_or_else(|| {
                self.bins.push((subject, Vec::new()));
                self.bins.len() - 1
            });
            let bins = &mut self.bins[at].1;
            let bin = usize::try_from(row.time_ns / BIN_NS).unwrap_or(0);
            if bins.len() <= bin {
                bins.resize(bin + 1, [0; 2]);
            }
            bins[bin][which] += u64::try_from(row.size_bytes).unwrap_or(0);
        }
    }

    fn flow(&mut self, row: &FlowRow) {
        if let (FlowKind::FractionLost, Some(subject)) = (row.kind, self.scene.subject(row.flow)) {
            let make = || Series::new("reported", "reported lost", subject, Role::Second, Kind::Points);
            self.reports.of(subject, 0, make).push(seconds(row.time_ns), row.value * 100.0);
        }
    }

    fn finish(mut self: Box<Self>) -> Vec<Panel> {
        let caption = format!(
            "Steps: bytes that hops dropped over bytes sent, in bins of {BIN_S} s (over 100 % where packets sent \
             before the bin are dropped in it). Points: the fraction lost that each receiver report told the sender."
        );
        let mut panel = over_time("loss", "Loss", caption, Axis::new("lost", "%"), self.scene);
        self.bins.sort_by_key(|(subject, _)| *subject);
        for (subject, bins) in &self.bins {
            let mut series = Series::new("dropped", "dropped", *subject, Role::Main, Kind::Steps);
            for (bin, [sent, dropped]) in bins.iter().enumerate() {
                let ratio = if *sent > 0 { 100.0 * *dropped as f64 / *sent as f64 } else { f64::NAN };
                series.push(seconds(BIN_NS * bin as i64), ratio);
            }
            super::bank::hold(&mut series, self.scene.duration_s.min(seconds(BIN_NS * bins.len() as i64)));
            panel.series.push(series);
        }
        panel.series.extend(self.reports.finish());
        vec![panel]
    }
}
