// SPDX-License-Identifier: MIT OR Apache-2.0
//! Signals of controllers and TCP: states in one panel, and all others but gradients in one panel per unit.

use super::gradient::{GRADIENTS, THRESHOLDS};
use super::series_map::{BySignal, SeriesMap, hold, step};
use super::{PanelBuilder, RunView, over_time, seconds};
use crate::report::figure::{Axis, Panel, Role, Series, SeriesKind};
use crate::report::read::SignalRow;
use paceline_netsim::records::EventRecord;

/// Panels by unit: unit of the signals, id, title, axis label, displayed unit, factor.
const UNITS: &[(&str, &str, &str, &str, &str, f64)] = &[
    ("bit/s", "control", "Rates inside the controllers", "rate", "Mbit/s", 1e-6),
    ("B", "window", "Windows", "window", "kB", 1e-3),
    ("ms", "signals-ms", "Other signals, in ms", "signal", "ms", 1.0),
    ("", "signals", "Other signals, plain numbers", "signal", "", 1.0),
];

struct Signals<'a> {
    view: &'a RunView<'a>,
    /// Series by unit.
    panels: Vec<(String, SeriesMap)>,
    names: Vec<String>,
    targets: BySignal<Option<Target>>,
}

/// The series of a signal: places of the panel and of the series in it, and the factor to the displayed unit.
#[derive(Clone, Copy)]
struct Target {
    panel: usize,
    series: usize,
    factor: f64,
}

pub(super) fn begin<'a>(view: &'a RunView<'a>) -> Box<dyn PanelBuilder + 'a> {
    Box::new(Signals { view, panels: Vec::new(), names: Vec::new(), targets: BySignal::default() })
}

/// Returns the target of a signal, or of the REMBs of a flow.
fn target(
    panels: &mut Vec<(String, SeriesMap)>,
    names: &mut Vec<String>,
    (subject, name, unit): (usize, &str, &str),
    (role, kind): (Role, SeriesKind),
) -> Target {
    let number = names.iter().position(|known| known == name).unwrap_or_else(|| {
        names.push(name.to_owned());
        names.len() - 1
    });
    let factor = UNITS.iter().find(|(known, ..)| *known == unit).map_or(1.0, |(.., factor)| *factor);
    let panel = panels.iter().position(|(known, _)| known == unit).unwrap_or_else(|| {
        panels.push((unit.to_owned(), SeriesMap::default()));
        panels.len() - 1
    });
    let series = panels[panel].1.place(subject, number, || Series::new(name, name, subject, role, kind));
    Target { panel, series, factor }
}

impl PanelBuilder for Signals<'_> {
    fn event(&mut self, event: &EventRecord) {
        let Self { view, panels, names, .. } = self;
        if let EventRecord::Remb { at, flow, rate } = *event
            && let Some(subject) = view.subject(flow)
        {
            let to = target(panels, names, (subject, "REMB", "bit/s"), (Role::Second, SeriesKind::Points));
            panels[to.panel].1.at(to.series).push(seconds(at), rate.as_bps_f64() * to.factor);
        }
    }

    fn signal(&mut self, row: &SignalRow<'_>) {
        let Self { view, panels, names, targets } = self;
        let make = || {
            let elsewhere = GRADIENTS.contains(&row.name) || THRESHOLDS.contains(&row.name);
            let subject = view.subject(row.flow).filter(|_| !elsewhere && view.states(row).is_none())?;
            Some(target(panels, names, (subject, row.name, row.unit), (Role::Main, SeriesKind::Steps)))
        };
        if let Some(to) = targets.of(row, make) {
            // The initial slow start threshold exceeds every window.
            let value = if row.value < 1e15 { row.value } else { f64::NAN };
            step(panels[to.panel].1.at(to.series), seconds(row.at), value * to.factor);
        }
    }

    fn finish(self: Box<Self>) -> Vec<Panel> {
        let view = self.view;
        let panel = |(unit, series): (String, SeriesMap)| {
            let known = UNITS.iter().find(|(of, ..)| *of == unit);
            let id = known.map_or_else(|| format!("signals-{unit}"), |known| known.1.to_owned());
            let (title, label) = known.map_or(("Other signals", "signal"), |known| (known.2, known.3));
            let shown = known.map_or(unit.as_str(), |known| known.4);
            let mut series = series.finish();
            for series in series.iter_mut().filter(|series| series.kind == SeriesKind::Steps) {
                hold(series, view.shown_flow(series).map_or(view.duration_s, |flow| flow.lives_s.1));
            }
            let mut caption =
                "Signals as the controller or TCP emits them; a value holds until the next. The documentation of the \
                 controller explains its signals."
                    .to_owned();
            if series.iter().any(|s| s.id == "REMB") {
                caption += " Points: the rate in each REMB of the receiver.";
            }
            let mut panel = over_time(&id, title, caption, Axis::new(label, shown), view);
            panel.series = series;
            panel
        };
        let mut panels: Vec<Panel> = self.panels.into_iter().map(panel).collect();
        panels.sort_by_key(|panel| UNITS.iter().position(|(_, id, ..)| *id == panel.id).unwrap_or(UNITS.len()));
        panels
    }
}

struct States<'a> {
    view: &'a RunView<'a>,
    series: SeriesMap,
    places: BySignal<Option<usize>>,
}

pub(super) fn begin_states<'a>(view: &'a RunView<'a>) -> Box<dyn PanelBuilder + 'a> {
    Box::new(States { view, series: SeriesMap::default(), places: BySignal::default() })
}

impl PanelBuilder for States<'_> {
    fn signal(&mut self, row: &SignalRow<'_>) {
        let Self { view, series, places } = self;
        let place = || {
            let (subject, (number, states)) = (view.subject(row.flow)?, view.states(row)?);
            let make = || Series {
                states: states.to_vec(),
                ..Series::new(row.name, row.name, subject, Role::Main, SeriesKind::Band)
            };
            Some(series.place(subject, number, make))
        };
        if let Some(place) = places.of(row, place) {
            step(series.at(place), seconds(row.at), row.value);
        }
    }

    fn finish(self: Box<Self>) -> Vec<Panel> {
        let caption = "One lane per state signal of a controller or TCP, with its value over time.".to_owned();
        let mut panel = over_time("states", "States", caption, Axis::new("state", ""), self.view);
        panel.series = self.series.finish();
        for series in &mut panel.series {
            let end = self.view.shown_flow(series).map_or(self.view.duration_s, |flow| flow.lives_s.1);
            hold(series, end);
        }
        vec![panel]
    }
}
