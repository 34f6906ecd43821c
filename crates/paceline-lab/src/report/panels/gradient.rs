// SPDX-License-Identifier: MIT OR Apache-2.0
//! Delay gradient and threshold of delay-based controllers.

use super::series_map::{BySignal, SeriesMap};
use super::{PanelBuilder, RunView, over_time, seconds};
use crate::report::figure::{Axis, Panel, Role, Series, SeriesKind};
use crate::report::read::SignalRow;

/// Names of signals that are compared with a threshold.
pub(super) const GRADIENTS: &[&str] = &["m scaled", "m", "T", "T(ti)", "trend scaled", "modified trend", "offset"];
/// Names of the thresholds, which apply with both signs.
pub(super) const THRESHOLDS: &[&str] = &["gamma", "threshold", "del_var_th"];

struct Gradients<'a> {
    view: &'a RunView<'a>,
    series: SeriesMap,
    uses: BySignal<Use>,
    compared: bool,
}

/// The series of a signal, as places in the map.
#[derive(Clone, Copy)]
enum Use {
    None,
    Gradient(usize),
    /// With both signs.
    Threshold([usize; 2]),
}

pub(super) fn begin<'a>(view: &'a RunView<'a>) -> Box<dyn PanelBuilder + 'a> {
    Box::new(Gradients { view, series: SeriesMap::default(), uses: BySignal::default(), compared: false })
}

impl Gradients<'_> {
    fn classify(view: &RunView<'_>, series: &mut SeriesMap, row: &SignalRow<'_>) -> Use {
        let Some(subject) = view.subject(row.flow) else { return Use::None };
        if let Some(number) = GRADIENTS.iter().position(|name| *name == row.name) {
            let make = || Series::new(row.name, row.name, subject, Role::Main, SeriesKind::Line);
            return Use::Gradient(series.place(subject, number, make));
        }
        let Some(number) = THRESHOLDS.iter().position(|name| *name == row.name) else { return Use::None };
        Use::Threshold([("+", 0), ("−", 1)].map(|(sign, second)| {
            let id = format!("{sign}{}", row.name);
            let make = || Series::new(&id, &id, subject, Role::Second, SeriesKind::Steps);
            series.place(subject, GRADIENTS.len() + 2 * number + second, make)
        }))
    }
}

impl PanelBuilder for Gradients<'_> {
    fn signal(&mut self, row: &SignalRow<'_>) {
        let Self { view, series, uses, compared } = self;
        let at = seconds(row.at);
        match uses.of(row, || Self::classify(view, series, row)) {
            Use::None => {}
            Use::Gradient(place) => series.at(place).push(at, row.value),
            Use::Threshold([above, below]) => {
                *compared = true;
                series.at(above).push(at, row.value);
                series.at(below).push(at, -row.value);
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
