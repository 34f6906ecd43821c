//! The delay gradient against its threshold: what a delay-based controller decides by.

use super::bank::Bank;
use super::{Draw, Scene, over_time, seconds};
use crate::figure::{Axis, Kind, Panel, Role, Series};
use crate::read::SignalRow;

/// Signals that are compared with a threshold, by the names that controllers give them.
pub(super) const GRADIENTS: &[&str] = &["m scaled", "m", "T", "T(ti)", "trend scaled", "modified trend", "offset"];
/// Thresholds that they are compared with, of either sign.
pub(super) const THRESHOLDS: &[&str] = &["gamma", "threshold", "del_var_th"];

struct Gradients<'a> {
    scene: &'a Scene<'a>,
    series: Bank,
    compared: bool,
}

pub(super) fn begin<'a>(scene: &'a Scene<'a>) -> Box<dyn Draw + 'a> {
    Box::new(Gradients { scene, series: Bank::default(), compared: false })
}

impl Draw for Gradients<'_> {
    fn signal(&mut self, row: &SignalRow<'_>) {
        let Some(subject) = self.scene.subject(row.flow) else { return };
        let at = seconds(row.time_ns);
        if let Some(number) = GRADIENTS.iter().position(|name| *name == row.name) {
            let make = || Series::new(row.name, row.name, subject, Role::Main, Kind::Line);
            self.series.of(subject, number, make).push(at, row.value);
        } else if let Some(number) = THRESHOLDS.iter().position(|name| *name == row.name) {
            self.compared = true;
            for (sign, factor) in [("+", 1.0), ("−", -1.0)] {
                let number = GRADIENTS.len() + 2 * number + usize::from(factor < 0.0);
                let make = || {
                    let id = format!("{sign}{}", row.name);
                    Series::new(&id, &id, subject, Role::Second, Kind::Steps)
                };
                self.series.of(subject, number, make).push(at, factor * row.value);
            }
        }
    }

    fn finish(self: Box<Self>) -> Vec<Panel> {
        let caption = "Lines: the one-way delay gradient as the controller compares it. Steps: the threshold, of \
                       either sign. Above it the controller sees over-use, below the negative one under-use."
            .to_owned();
        let axis = Axis::new("gradient", "ms");
        let mut panel = over_time("gradient", "Delay gradient and threshold", caption, axis, self.scene);
        // A gradient that nothing is compared with is a signal like others.
        if self.compared {
            panel.series = self.series.finish();
        }
        vec![panel]
    }
}
