//! Measured round-trip times.

use super::series_map::SeriesMap;
use super::{PanelBuilder, RunView, over_time, seconds};
use crate::figure::{Axis, Panel, Role, Series, SeriesKind};
use crate::read::{FlowKind, FlowRow};

struct RoundTrips<'a> {
    view: &'a RunView<'a>,
    samples: SeriesMap,
}

pub(super) fn begin<'a>(view: &'a RunView<'a>) -> Box<dyn PanelBuilder + 'a> {
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
