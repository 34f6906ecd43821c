//! Delay gradient and threshold of delay-based controllers.

use super::series_map::SeriesMap;
use super::{PanelBuilder, RunView, over_time, seconds};
use crate::figure::{Axis, Panel, Role, Series, SeriesKind};
use crate::read::SignalRow;

/// Names of signals that are compared with a threshold.
pub(super) const GRADIENTS: &[&str] = &["m scaled", "m", "T", "T(ti)", "trend scaled", "modified trend", "offset"];
/// Names of the thresholds, which apply with both signs.
pub(super) const THRESHOLDS: &[&str] = &["gamma", "threshold", "del_var_th"];

struct Gradients<'a> {
    view: &'a RunView<'a>,
    series: SeriesMap,
    compared: bool,
}

pub(super) fn begin<'a>(view: &'a RunView<'a>) -> Box<dyn PanelBuilder + 'a> {
    Box::new(Gradients { view, series: SeriesMap::default(), compared: false })
}

impl PanelBuilder for Gradients<'_> {
    fn signal(&mut self, row: &SignalRow<'_>) {
        let Some(subject) = self.view.subject(row.flow) else { return };
        let at = seconds(row.time_ns);
        if let Some(number) = GRADIENTS.iter().position(|name| *name == row.name) {
            let make = || Series::new(row.name, row.name, subject, Role::Main, SeriesKind::Line);
            self.series.of(subject, number, make).push(at, row.value);
        } else if let Some(number) = THRESHOLDS.iter().position(|name| *name == row.name) {
            self.compared = true;
            for (sign, factor) in [("+", 1.0), ("−", -1.0)] {
                let number = GRADIENTS.len() + 2 * number + usize::from(factor < 0.0);
                let make = || {
                    let id = format!("{sign}{}", row.name);
                    Series::new(&id, &id, subject, Role::Second, SeriesKind::Steps)
                };
                self.series.of(subject, number, make).push(at, factor * row.value);
            }
        }
    }

    fn finish(self: Box<Self>) -> Vec<Panel> {
        let caption = "Lines: the one-way delay gradient that the controller compares with the threshold. Steps: the \
                       threshold with both signs. Above it the controller detects over-use, below its negative under-use."
            .to_owned();
        let axis = Axis::new("gradient", "ms");
        let mut panel = over_time("gradient", "Delay gradient and threshold", caption, axis, self.view);
        // Without a threshold, the gradient is not compared and no panel is shown.
        if self.compared {
            panel.series = self.series.finish();
        }
        vec![panel]
    }
}
