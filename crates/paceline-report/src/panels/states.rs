//! States of controllers and TCP.

use super::series_map::{SeriesMap, step};
use super::{PanelBuilder, RunView, over_time, seconds};
use crate::figure::{Axis, Panel, Role, Series, SeriesKind};
use crate::read::SignalRow;

struct States<'a> {
    view: &'a RunView<'a>,
    series: SeriesMap,
}

pub(super) fn begin<'a>(view: &'a RunView<'a>) -> Box<dyn PanelBuilder + 'a> {
    Box::new(States { view, series: SeriesMap::default() })
}

impl PanelBuilder for States<'_> {
    fn signal(&mut self, row: &SignalRow<'_>) {
        let (Some(subject), Some((number, states))) = (self.view.subject(row.flow), self.view.states(row)) else {
            return;
        };
        let make = || Series {
            states: states.to_vec(),
            ..Series::new(row.name, row.name, subject, Role::Main, SeriesKind::Band)
        };
        step(self.series.of(subject, number, make), seconds(row.time_ns), row.value);
    }

    fn finish(self: Box<Self>) -> Vec<Panel> {
        let caption = "One lane per state signal of a controller or TCP, with its value over time.".to_owned();
        let mut panel = over_time("states", "States", caption, Axis::new("state", ""), self.view);
        panel.series = self.series.finish();
        for series in &mut panel.series {
            let end = self.view.shown_flow(series).map_or(self.view.duration_s, |flow| flow.lives_s.1);
            super::series_map::hold(series, end);
        }
        vec![panel]
    }
}
