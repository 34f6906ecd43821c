//! Queuing delay: of each packet, and as RTCP's round-trip times show it.

use super::bank::Bank;
use super::{Draw, Scene, millis, over_time, seconds};
use crate::figure::{Axis, Kind, Panel, Role, Series};
use crate::read::{Event, FlowKind, FlowRow, PacketRow};

struct Queues<'a> {
    scene: &'a Scene<'a>,
    waited: Bank,
    sampled: Bank,
}

pub(super) fn begin<'a>(scene: &'a Scene<'a>) -> Box<dyn Draw + 'a> {
    Box::new(Queues { scene, waited: Bank::default(), sampled: Bank::default() })
}

impl Draw for Queues<'_> {
    fn packet(&mut self, row: &PacketRow) {
        let Event::Crossed { hop, waited_ns, left_ns } = row.event else { return };
        if let Some(subject) = self.scene.subject(row.flow).filter(|_| row.forth && self.scene.is_limited(hop)) {
            let name = &self.scene.run.about.hops[usize::from(hop)];
            let make = || {
                let (id, label) = (format!("waited:{name}"), format!("waited at {name}"));
                Series::new(&id, &label, subject, Role::Main, Kind::Line)
            };
            self.waited.of(subject, usize::from(hop), make).push(seconds(left_ns), millis(waited_ns));
        }
    }

    fn flow(&mut self, row: &FlowRow) {
        if row.kind != FlowKind::RoundTrip {
            return;
        }
        let (Some(subject), Some(flow)) = (self.scene.subject(row.flow), self.scene.flow(row.flow)) else { return };
        let at = seconds(row.time_ns);
        let holds = flow.propagation.partition_point(|(from, _)| *from <= at).max(1) - 1;
        if let Some((_, propagation)) = flow.propagation.get(holds) {
            let make = || Series::new("rtcp", "round-trip time over propagation", subject, Role::Second, Kind::Points);
            self.sampled.of(subject, 0, make).push(at, row.value - propagation);
        }
    }

    fn finish(self: Box<Self>) -> Vec<Panel> {
        let mut caption = "Lines: how long each packet waited before its service, drawn when its last bit left the \
                           hop. Points: each measured round-trip time less what propagation takes of it."
            .to_owned();
        for (hop, _) in self.scene.limits() {
            caption += &format!(" Queue of {}: {}, at most {} {}.", hop.id, hop.queue, hop.limit.0, hop.limit.1);
        }
        let mut panel = over_time("queue", "Queuing delay", caption, Axis::new("queuing delay", "ms"), self.scene);
        panel.series = self.waited.finish();
        for series in &mut panel.series {
            order(series);
        }
        panel.series.extend(self.sampled.finish());
        vec![panel]
    }
}

/// Rows come when a packet is at the far end; with jitter or a changing delay that is not the order of leaving.
fn order(series: &mut Series) {
    if !series.x.is_sorted() {
        let mut points: Vec<(f64, f64)> = series.x.iter().copied().zip(series.y.iter().copied()).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        (series.x, series.y) = points.into_iter().unzip();
    }
}
