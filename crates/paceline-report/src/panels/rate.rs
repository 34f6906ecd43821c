//! Rates: what each flow received, its target, and the capacity.

use super::bank::{Bank, hold, step};
use super::{Draw, Scene, over_time, seconds};
use crate::figure::{Axis, Kind, Panel, Role, Series};
use crate::read::{Event, FlowKind, FlowRow, PacketRow};

/// Bin of the received rate, ms.
pub const BIN_MS: u32 = 500;
const BIN_NS: i64 = BIN_MS as i64 * 1_000_000;
const MBIT: f64 = 1e6;

struct Rates<'a> {
    scene: &'a Scene<'a>,
    /// Bytes that each subject received in each bin.
    received: Vec<(usize, Vec<u64>)>,
    targets: Bank,
}

pub(super) fn begin<'a>(scene: &'a Scene<'a>) -> Box<dyn Draw + 'a> {
    Box::new(Rates { scene, received: Vec::new(), targets: Bank::default() })
}

impl Draw for Rates<'_> {
    fn packet(&mut self, row: &PacketRow) {
        if let (Event::Arrived { .. }, true) = (row.event, row.forth) {
            let subject = self.scene.any_subject(row.flow);
            let at = self.received.iter().position(|(known, _)| *known == subject);
            let at = at.unwrap_or_else(|| {
                self.received.push((subject, Vec::new()));
                self.received.len() - 1
            });
            let bins = &mut self.received[at].1;
            let bin = usize::try_from(row.time_ns / BIN_NS).unwrap_or(0);
            if bins.len() <= bin {
                bins.resize(bin + 1, 0);
            }
            bins[bin] += u64::try_from(row.size_bytes).unwrap_or(0);
        }
    }

    fn flow(&mut self, row: &FlowRow) {
        if let (FlowKind::Target, Some(subject)) = (row.kind, self.scene.subject(row.flow)) {
            let make = || Series::new("target", "target", subject, Role::Second, Kind::Steps);
            step(self.targets.of(subject, 0, make), seconds(row.time_ns), row.value / MBIT);
        }
    }

    fn finish(mut self: Box<Self>) -> Vec<Panel> {
        let scene = self.scene;
        let caption = format!(
            "Received rate: all that arrived, headers included, in bins of {BIN_MS} ms. Target: what the controller \
             allows its encoder. Capacity: of the forward hops; recorded traces as means over 100 ms."
        );
        let mut panel = over_time("rate", "Rate", caption, Axis::new("rate", "Mbit/s"), scene);
        for (hop, steps) in scene.limits() {
            let (id, label) = (format!("capacity:{}", hop.id), format!("capacity of {}", hop.id));
            let mut series = Series { subject: None, ..Series::new(&id, &label, 0, Role::Limit, Kind::Steps) };
            steps.iter().for_each(|(at, bps)| series.push(*at, bps / MBIT));
            hold(&mut series, scene.duration_s);
            panel.series.push(series);
        }
        self.received.sort_by_key(|(subject, _)| *subject);
        for (subject, bins) in &self.received {
            let mut series = Series::new("received", "received rate", *subject, Role::Main, Kind::Steps);
            let begun = bins.iter().position(|bytes| *bytes > 0).unwrap_or(0);
            for (bin, bytes) in bins.iter().enumerate().skip(begun) {
                let from = seconds(BIN_NS * bin as i64);
                let length = (scene.duration_s - from).min(f64::from(BIN_MS) / 1e3);
                // What arrives at the very end has no bin of its own.
                if length > 0.0 {
                    series.push(from, *bytes as f64 * 8.0 / length / MBIT);
                }
            }
            let end = scene.duration_s.min(seconds(BIN_NS * bins.len() as i64));
            hold(&mut series, end);
            panel.series.push(series);
        }
        let mut targets = self.targets.finish();
        for series in &mut targets {
            let flow = scene.shown_flow(series);
            hold(series, flow.map_or(scene.duration_s, |flow| flow.lives_s.1));
        }
        panel.series.extend(targets);
        vec![panel]
    }
}
