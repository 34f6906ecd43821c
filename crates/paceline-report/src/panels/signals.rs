//! Every other number that a controller or TCP tells, by unit: rates it works with, windows, the rest.

use super::bank::{Bank, hold, step};
use super::gradient::{GRADIENTS, THRESHOLDS};
use super::{Draw, Scene, over_time, seconds};
use crate::figure::{Axis, Kind, Panel, Role, Series};
use crate::read::{FlowKind, FlowRow, SignalRow};

/// Panels by the unit of their signals: unit, id, title, what the axis measures, unit drawn, factor.
const UNITS: &[(&str, &str, &str, &str, &str, f64)] = &[
    ("bit/s", "control", "Rates inside the controllers", "rate", "Mbit/s", 1e-6),
    ("B", "window", "Windows", "window", "kB", 1e-3),
    ("ms", "signals-ms", "Other signals, in ms", "signal", "ms", 1.0),
    ("", "signals", "Other signals, plain numbers", "signal", "", 1.0),
];

struct Signals<'a> {
    scene: &'a Scene<'a>,
    /// A panel's unit, and what it holds.
    panels: Vec<(String, Bank)>,
    names: Vec<String>,
}

pub(super) fn begin<'a>(scene: &'a Scene<'a>) -> Box<dyn Draw + 'a> {
    Box::new(Signals { scene, panels: Vec::new(), names: Vec::new() })
}

impl Signals<'_> {
    fn add(&mut self, subject: usize, name: &str, unit: &str, role: Role, kind: Kind, (at, value): (f64, f64)) {
        let panel = self.panels.iter().position(|(known, _)| known == unit).unwrap_or_else(|| {
            self.panels.push((unit.to_owned(), Bank::default()));
            self.panels.len() - 1
        });
        let number = self.names.iter().position(|known| known == name).unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        });
        let factor = UNITS.iter().find(|(known, ..)| *known == unit).map_or(1.0, |(.., factor)| *factor);
        let series = self.panels[panel].1.of(subject, number, || Series::new(name, name, subject, role, kind));
        match kind {
            Kind::Steps => step(series, at, value * factor),
            _ => series.push(at, value * factor),
        }
    }
}

impl Draw for Signals<'_> {
    fn flow(&mut self, row: &FlowRow) {
        if let (FlowKind::Remb, Some(subject)) = (row.kind, self.scene.subject(row.flow)) {
            let point = (seconds(row.time_ns), row.value);
            self.add(subject, "REMB", "bit/s", Role::Second, Kind::Points, point);
        }
    }

    fn signal(&mut self, row: &SignalRow<'_>) {
        let elsewhere = GRADIENTS.contains(&row.name) || THRESHOLDS.contains(&row.name);
        let Some(subject) = self.scene.subject(row.flow).filter(|_| !elsewhere) else { return };
        if self.scene.states(row).is_none() {
            // A threshold that was never lowered is told as larger than any window.
            let value = if row.value < 1e15 { row.value } else { f64::NAN };
            let point = (seconds(row.time_ns), value);
            self.add(subject, row.name, row.unit, Role::Main, Kind::Steps, point);
        }
    }

    fn finish(self: Box<Self>) -> Vec<Panel> {
        let scene = self.scene;
        let panel = |(unit, bank): (String, Bank)| {
            let known = UNITS.iter().find(|(of, ..)| *of == unit);
            let id = known.map_or_else(|| format!("signals-{unit}"), |known| known.1.to_owned());
            let (title, label) = known.map_or(("Other signals", "signal"), |known| (known.2, known.3));
            let shown = known.map_or(unit.as_str(), |known| known.4);
            let mut series = bank.finish();
            for series in series.iter_mut().filter(|series| series.kind == Kind::Steps) {
                hold(series, scene.shown_flow(series).map_or(scene.duration_s, |flow| flow.lives_s.1));
            }
            let mut caption =
                "Each as the controller or TCP tells it; a value holds until the next. See the controller's page for \
                 what its signals are."
                    .to_owned();
            if series.iter().any(|s| s.id == "REMB") {
                caption += " Points: the rate in each REMB that the receiver sent.";
            }
            let mut panel = over_time(&id, title, caption, Axis::new(label, shown), scene);
            panel.series = series;
            panel
        };
        let mut panels: Vec<Panel> = self.panels.into_iter().map(panel).collect();
        panels.sort_by_key(|panel| UNITS.iter().position(|(_, id, ..)| *id == panel.id).unwrap_or(UNITS.len()));
        panels
    }
}
