//! Round-trip times, as each flow measures them.

use super::bank::Bank;
use super::{Draw, Scene, over_time, seconds};
use crate::figure::{Axis, Kind, Panel, Role, Series};
use crate::read::{FlowKind, FlowRow};

struct RoundTrips<'a> {
    scene: &'a Scene<'a>,
    samples: Bank,
}

pub(super) fn begin<'a>(scene: &'a Scene<'a>) -> Box<dyn Draw + 'a> {
    Box::new(RoundTrips { scene, samples: Bank::default() })
}

impl Draw for RoundTrips<'_> {
    fn flow(&mut self, row: &FlowRow) {
        if let (FlowKind::RoundTrip, Some(subject)) = (row.kind, self.scene.subject(row.flow)) {
            let make = || Series::new("rtt", "round-trip time", subject, Role::Main, Kind::Line);
            self.samples.of(subject, 0, make).push(seconds(row.time_ns), row.value);
        }
    }

    fn finish(self: Box<Self>) -> Vec<Panel> {
        let caption = "Each round-trip time that the sender takes from a receiver report, or TCP from an \
                       acknowledgement."
            .to_owned();
        let axis = Axis::new("round-trip time", "ms");
        let mut panel = over_time("rtt", "Round-trip time", caption, axis, self.scene);
        panel.series = self.samples.finish();
        vec![panel]
    }
}
