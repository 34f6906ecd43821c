// SPDX-License-Identifier: MIT OR Apache-2.0
//! Queuing delay of each packet and as seen in RTCP round-trip times; and these round-trip times.

use super::series_map::SeriesMap;
use super::{PanelBuilder, RunView, is_forward, over_time, seconds};
use crate::report::figure::{Axis, Panel, Role, Series, SeriesKind};
use paceline_netsim::records::EventRecord;
use paceline_units::{FlowId, Time, TimeDelta};

struct Queues<'a> {
    view: &'a RunView<'a>,
    waited: SeriesMap,
    sampled: SeriesMap,
}

pub(super) fn begin<'a>(view: &'a RunView<'a>) -> Box<dyn PanelBuilder + 'a> {
    Box::new(Queues { view, waited: SeriesMap::default(), sampled: SeriesMap::default() })
}

impl PanelBuilder for Queues<'_> {
    fn event(&mut self, event: &EventRecord) {
        let (hop, packet, waited, left) = match *event {
            EventRecord::Crossed { hop, packet, waited, left, .. } => (hop, packet, waited, left),
            EventRecord::RoundTrip { at, flow, rtt } => return self.round_trip(at, flow, rtt),
            _ => return,
        };
        let is_counted = is_forward(&packet) && self.view.is_limited(hop);
        if let Some(subject) = self.view.subject(packet.flow).filter(|_| is_counted) {
            let name = &self.view.run.about.hops[usize::from(hop)];
            let make = || {
                let (id, label) = (format!("waited:{name}"), format!("waited at {name}"));
                Series::new(&id, &label, subject, Role::Main, SeriesKind::Line)
            };
            self.waited.of(subject, usize::from(hop), make).push(seconds(left), waited.as_millis_f64());
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

impl Queues<'_> {
    fn round_trip(&mut self, at: Time, flow: FlowId, rtt: TimeDelta) {
        let (Some(subject), Some(flow)) = (self.view.subject(flow), self.view.flow(flow)) else { return };
        let at = seconds(at);
        let holds = flow.propagation.partition_point(|(from, _)| *from <= at).max(1) - 1;
        if let Some((_, propagation)) = flow.propagation.get(holds) {
            let make =
                || Series::new("rtcp", "round-trip time over propagation", subject, Role::Second, SeriesKind::Points);
            self.sampled.of(subject, 0, make).push(at, rtt.as_millis_f64() - propagation);
        }
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
    fn event(&mut self, event: &EventRecord) {
        if let EventRecord::RoundTrip { at, flow, rtt } = *event
            && let Some(subject) = self.view.subject(flow)
        {
            let make = || Series::new("rtt", "round-trip time", subject, Role::Main, SeriesKind::Line);
            self.samples.of(subject, 0, make).push(seconds(at), rtt.as_millis_f64());
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
