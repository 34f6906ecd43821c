//! Queuing delay of each packet and as seen in RTCP round-trip times; and these round-trip times.

use super::series_map::SeriesMap;
use super::{PanelBuilder, RunView, millis, over_time, seconds};
use crate::report::figure::{Axis, Panel, Role, Series, SeriesKind};
use crate::report::read::{Event, FlowKind, FlowRow, PacketRow};

struct Queues<'a> {
    view: &'a RunView<'a>,
    waited: SeriesMap,
    sampled: SeriesMap,
}

pub(super) fn begin<'a>(view: &'a RunView<'a>) -> Box<dyn PanelBuilder + 'a> {
    Box::new(Queues { view, waited: SeriesMap::default(), sampled: SeriesMap::default() })
}

impl PanelBuilder for Queues<'_> {
    fn packet(&mut self, row: &PacketRow) {
        let Event::Crossed { hop, waited_ns, left_ns } = row.event else { return };
        if let Some(subject) = self.view.subject(row.flow).filter(|_| row.is_forward && self.view.is_limited(hop)) {
            let name = &self.view.run.about.hops[usize::from(hop)];
            let make = || {
                let (id, label) = (format!("waited:{name}"), format!("waited at {name}"));
                Series::new(&id, &label, subject, Role::Main, SeriesKind::Line)
            };
            self.waited.of(subject, usize::from(hop), make).push(seconds(left_ns), millis(waited_ns));
        }
    }

    fn flow(&mut self, row: &FlowRow) {
        if row.kind != FlowKind::RoundTrip {
            return;
        }
        let (Some(subject), Some(flow)) = (self.view.subject(row.flow), self.view.flow(row.flow)) else { return };
        let at = seconds(row.time_ns);
        let holds = flow.propagation.partition_point(|(from, _)| *from <= at).max(1) - 1;
        if let Some((_, propagation)) = flow.propagation.get(holds) {
            let make =
                || Series::new("rtcp", "round-trip time over propagation", subject, Role::Second, SeriesKind::Points);
            self.sampled.of(subject, 0, make).push(at, row.value - propagation);
        }
    }

    fn finish(self: Box<Self>) -> Vec<Panel> {
        let mut caption = "Lines: queuing delay of each packet, at the time when its last bit left the hop. Points: \
                           each measured round-trip time minus its propagation delay."
            .to_owned();
        for (hop, _) in self.view.limits(true).chain(self.view.limits(false)) {
            caption += &format!(" Queue of {}: {}, at most {} {}.", hop.id, hop.queue, hop.limit.0, hop.limit.1);
        }
        let mut panel = over_time("queue", "Queuing delay", caption, Axis::new("queuing delay", "ms"), self.view);
        panel.series = self.waited.finish();
        for series in &mut panel.series {
            sort(series);
        }
        panel.series.extend(self.sampled.finish());
        vec![panel]
    }
}

/// Sorts the points by time. Events are ordered by arrival, which differs from departure with jitter or a changing delay.
fn sort(series: &mut Series) {
    if !series.x.is_sorted() {
        let mut points: Vec<(f64, f64)> = series.x.iter().copied().zip(series.y.iter().copied()).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        (series.x, series.y) = points.into_iter().unzip();
    }
}

struct RoundTrips<'a> {
    view: &'a RunView<'a>,
    samples: SeriesMap,
}

pub(super) fn begin_round_trips<'a>(view: &'a RunView<'a>) -> Box<dyn PanelBuilder + 'a> {
    Box::new(RoundTrips { view, samples: SeriesMap::default() })
}

impl PanelBuilder for RoundTrips<'_> {
    fn flow(&mut self, row: &FlowRow) {
        if let (FlowKind::RoundTrip, Some(subject)) = (row.kind, self.view.subject(row.flow)) {
            let make = || Series::new("rtt", "round-trip time", subject, Role::Main, SeriesKind::Line);
            self.samples.of(subject, 0, make).push(seconds(row.time_ns), row.value);
        }
    }

    fn finish(self: Box<Self>) -> Vec<Panel> {
        let caption = "Each round-trip time that the sender computes from a receiver report, or TCP from an \
                       acknowledgement."
            .to_owned();
        let axis = Axis::new("round-trip time", "ms");
        let mut panel = over_time("rtt", "Round-trip time", caption, axis, self.view);
        panel.series = self.samples.finish();
        vec![panel]
    }
}
