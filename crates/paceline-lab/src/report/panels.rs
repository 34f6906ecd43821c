// SPDX-License-Identifier: MIT OR Apache-2.0
//! Converts events to figures. Each file builds one kind of panel from the events of one run.
//!
//! A new panel needs a file here and an entry in `PANELS`.

mod distributions;
mod frames;
mod gradient;
mod loss;
mod overlay;
mod queue;
mod rate;
mod run_view;
mod series_map;
mod signals;

use crate::report::error::ReportError;
use crate::report::figure::{Axis, Figure, Panel, Subject};
use crate::report::read::{Results, Run, SignalRow};
use crate::results::Validation;
use paceline_netsim::records::{EventRecord, PacketRecord};
use paceline_units::Time;
use run_view::RunView;
pub(crate) use run_view::shown;

/// Largest number of flows of a run with their own series. The others are drawn as a sum.
pub const FLOWS_SHOWN: usize = 8;
/// Largest number of packet events in a report. Beyond it, the last runs of each group are left out, with a note on the page.
pub const ROWS_DRAWN: u64 = 12_000_000;

trait PanelBuilder {
    /// Handles an event that is no signal.
    fn event(&mut self, _: &EventRecord) {}
    fn signal(&mut self, _: &SignalRow<'_>) {}
    // One virtual call for many rows.
    fn events(&mut self, events: &[EventRecord]) {
        events.iter().for_each(|event| self.event(event));
    }
    fn signals(&mut self, rows: &[SignalRow<'_>]) {
        rows.iter().for_each(|row| self.signal(row));
    }
    /// Returns the panels. Panels without series are dropped.
    fn finish(self: Box<Self>) -> Vec<Panel>;
}

type Begin = for<'a> fn(&'a RunView<'a>) -> Box<dyn PanelBuilder + 'a>;

/// Panels over time, in display order.
const PANELS: &[Begin] = &[
    rate::begin,
    queue::begin,
    loss::begin,
    gradient::begin,
    signals::begin_states,
    signals::begin,
    frames::begin,
    queue::begin_round_trips,
];

const DISTRIBUTIONS: &[Begin] = &[distributions::begin];

/// Returns the figures of a folder by scenario: panels over time, distributions, then the overlay of several runs.
pub fn figures(results: &Results) -> Result<Vec<Figure>, ReportError> {
    let mut figures = Vec::new();
    for scenario in results.scenarios() {
        let mut of_scenario = of_scenario(scenario, &drawn(results, scenario))?;
        let validations: Vec<&Validation> =
            results.validations.iter().filter(|validation| validation.scenario == scenario).collect();
        let panels = of_scenario.iter_mut().flat_map(|figure| &mut figure.panels);
        distributions::append_distance(panels, &validations);
        figures.extend(of_scenario);
    }
    Ok(figures)
}

/// Returns the runs of a scenario to draw. If they have too many events, each group keeps its first seeds.
pub fn drawn<'a>(results: &'a Results, scenario: &str) -> Vec<&'a Run> {
    let all: Vec<&Run> = results.runs.iter().filter(|run| run.about.run.scenario == scenario).collect();
    let key =
        |run: &Run| (run.about.run.world.clone(), run.about.run.controllers.clone(), run.about.run.changes.clone());
    // Number of earlier runs of the same group.
    let rank = |index: usize| all[..index].iter().filter(|run| key(run) == key(all[index])).count();
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by_key(|index| rank(*index));
    let mut rows = 0;
    let mut kept: Vec<usize> = order
        .into_iter()
        .enumerate()
        .take_while(|(n, index)| {
            rows += all[*index].rows("packets.parquet");
            *n == 0 || rows <= ROWS_DRAWN
        })
        .map(|(_, index)| index)
        .collect();
    kept.sort_unstable();
    kept.into_iter().map(|index| all[index]).collect()
}

fn of_scenario(scenario: &str, runs: &[&Run]) -> Result<Vec<Figure>, ReportError> {
    let mut subjects: Vec<Subject> = Vec::new();
    let mut over_time: Vec<Vec<Panel>> = PANELS.iter().map(|_| Vec::new()).collect();
    let mut over_values: Vec<Vec<Panel>> = DISTRIBUTIONS.iter().map(|_| Vec::new()).collect();
    for run in runs {
        let view = RunView::new(run, subjects.len());
        subjects.extend(view.subjects());
        let all = PANELS.iter().chain(DISTRIBUTIONS);
        let mut builders: Vec<Box<dyn PanelBuilder + '_>> = all.map(|begin| begin(&view)).collect();
        run.tables().events(|events| builders.iter_mut().for_each(|d| d.events(events)))?;
        run.tables().signals(|rows| builders.iter_mut().for_each(|d| d.signals(rows)))?;
        for (panels, done) in over_time.iter_mut().chain(&mut over_values).zip(builders) {
            done.finish().into_iter().for_each(|panel| merge(panels, panel));
        }
    }
    run_view::label(&mut subjects, runs);
    let figure = |id: &str, title: &str, panels: Vec<Vec<Panel>>| Figure {
        id: format!("{scenario}/{id}"),
        scenario: scenario.to_owned(),
        title: title.to_owned(),
        subjects: subjects.clone(),
        panels: panels.into_iter().flatten().filter(|panel| !panel.series.is_empty()).collect(),
    };
    let mut figures =
        vec![figure("time", "Over time", over_time), figure("distribution", "Distributions", over_values)];
    figures.extend(overlay::figure(runs, &figures[0]));
    Ok(figures)
}

fn merge(panels: &mut Vec<Panel>, panel: Panel) {
    let Some(known) = panels.iter_mut().find(|known| known.id == panel.id) else {
        panels.push(panel);
        return;
    };
    known.x.range = match (known.x.range, panel.x.range) {
        (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
        (a, b) => a.or(b),
    };
    for series in panel.series {
        // Equal limits of several runs are drawn once.
        if series.subject.is_some() || !known.series.contains(&series) {
            known.series.push(series);
        }
    }
}

fn over_time(id: &str, title: &str, caption: String, y: Axis, view: &RunView<'_>) -> Panel {
    let (id, title) = (id.to_owned(), title.to_owned());
    Panel { id, title, caption, x: Axis::time(view.duration_s), y, series: Vec::new() }
}

/// Returns whether a packet travels in the direction of its flow's data.
fn is_forward(packet: &PacketRecord) -> bool {
    !packet.class.is_from_receiver()
}

fn seconds(at: Time) -> f64 {
    at.as_secs_f64()
}
