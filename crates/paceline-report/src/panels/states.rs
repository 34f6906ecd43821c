//! The states that controllers say they are in.

use super::bank::{Bank, step};
use super::{Draw, Scene, over_time, seconds};
use crate::figure::{Axis, Kind, Panel, Role, Series};
use crate::read::SignalRow;

struct States<'a> {
    scene: &'a Scene<'a>,
    series: Bank,
}

pub(super) fn begin<'a>(scene: &'a Scene<'a>) -> Box<dyn Draw + 'a> {
    Box::new(States { scene, series: Bank::default() })
}

impl Draw for States<'_> {
    fn signal(&mut self, row: &SignalRow<'_>) {
        let (Some(subject), Some((number, states))) = (self.scene.subject(row.flow), self.scene.states(row)) else {
            return;
        };
        let make =
            || Series { states: states.to_vec(), ..Series::new(row.name, row.name, subject, Role::Main, Kind::Band) };
        step(self.series.of(subject, number, make), seconds(row.time_ns), row.value);
    }

    fn finish(self: Box<Self>) -> Vec<Panel> {
        let caption = "A lane for each state that a controller or TCP tells: which holds when.".to_owned();
        let mut panel = over_time("states", "States", caption, Axis::new("state", ""), self.scene);
        panel.series = self.series.finish();
        for series in &mut panel.series {
            let end = self.scene.shown_flow(series).map_or(self.scene.duration_s, |flow| flow.lives_s.1);
            super::bank::hold(series, end);
        }
        vec![panel]
    }
}
