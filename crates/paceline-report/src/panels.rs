//! From rows to figures: a file for each kind of panel, each listening to the rows of one run at a time.
//!
//! To add one: a file here, a line in `PANELS`.

mod bank;
mod distributions;
mod frames;
mod gradient;
mod loss;
mod queue;
mod rate;
mod round_trip;
mod scene;
mod signals;
mod states;

use crate::error::ReportError;
use crate::figure::{Axis, Figure, Panel, Subject};
use crate::read::{FlowRow, FrameRow, PacketRow, Results, Run, SignalRow};
use paceline_lab::gap::Gap;
use scene::Scene;
pub(crate) use scene::shown;

/// Flows of a run that have series of their own; the others are drawn as their sum.
pub const FLOWS_SHOWN: usize = 8;
/// Rows of packets that a report draws. What is left out is runs, the last of each group first, and the page says so.
pub const ROWS_DRAWN: u64 = 12_000_000;

/// Listens to one run and answers what it drew.
trait Draw {
    fn packet(&mut self, _: &PacketRow) {}
    fn flow(&mut self, _: &FlowRow) {}
    fn frame(&mut self, _: &FrameRow) {}
    fn signal(&mut self, _: &SignalRow<'_>) {}
    /// What came of it; panels without series are left out.
    fn finish(self: Box<Self>) -> Vec<Panel>;
}

type Begin = for<'a> fn(&'a Scene<'a>) -> Box<dyn Draw + 'a>;

/// Panels over time, from top to bottom.
const PANELS: &[Begin] = &[
    rate::begin,
    queue::begin,
    loss::begin,
    gradient::begin,
    states::begin,
    signals::begin,
    frames::begin,
    round_trip::begin,
];

/// Panels over values.
const DISTRIBUTIONS: &[Begin] = &[distributions::begin];

/// The figures of a folder, scenario by scenario: its runs over time, then distributions.
///
/// # Errors
/// A table cannot be read.
pub fn figures(results: &Results) -> Result<Vec<Figure>, ReportError> {
    let mut figures = Vec::new();
    for scenario in results.scenarios() {
        let mut of_scenario = of_scenario(scenario, &drawn(results, scenario))?;
        let gaps: Vec<&Gap> = results.gaps.iter().filter(|gap| gap.scenario == scenario).collect();
        let panels = of_scenario.iter_mut().flat_map(|figure| &mut figure.panels);
        distributions::tell_distance(panels, &gaps);
        figures.extend(of_scenario);
    }
    Ok(figures)
}

/// The runs of a scenario that are drawn: all of them, or as many seeds of each group as there are rows for.
pub fn drawn<'a>(results: &'a Results, scenario: &str) -> Vec<&'a Run> {
    let all: Vec<&Run> = results.runs.iter().filter(|run| run.stored.scenario == scenario).collect();
    let key = |run: &Run| (run.stored.world.clone(), run.stored.controllers.clone(), run.stored.changes.clone());
    // How many runs of its group come before each.
    let place = |index: usize| all[..index].iter().filter(|run| key(run) == key(all[index])).count();
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by_key(|index| place(*index));
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
        let scene = Scene::new(run, subjects.len());
        subjects.extend(scene.subjects());
        let all = PANELS.iter().chain(DISTRIBUTIONS);
        let mut drawing: Vec<Box<dyn Draw + '_>> = all.map(|begin| begin(&scene)).collect();
        run.packets(|row| drawing.iter_mut().for_each(|d| d.packet(row)))?;
        run.flows(|row| drawing.iter_mut().for_each(|d| d.flow(row)))?;
        run.frames(|row| drawing.iter_mut().for_each(|d| d.frame(row)))?;
        run.signals(|row| drawing.iter_mut().for_each(|d| d.signal(row)))?;
        for (panels, done) in over_time.iter_mut().chain(&mut over_values).zip(drawing) {
            done.finish().into_iter().for_each(|panel| join(panels, panel));
        }
    }
    scene::label(&mut subjects, runs);
    let figure = |id: &str, title: &str, panels: Vec<Vec<Panel>>| Figure {
        id: format!("{scenario}/{id}"),
        scenario: scenario.to_owned(),
        title: title.to_owned(),
        subjects: subjects.clone(),
        panels: panels.into_iter().flatten().filter(|panel| !panel.series.is_empty()).collect(),
    };
    Ok(vec![figure("time", "Over time", over_time), figure("distribution", "Distributions", over_values)])
}

/// Puts what one run drew to what the runs before it drew.
fn join(panels: &mut Vec<Panel>, panel: Panel) {
    let Some(known) = panels.iter_mut().find(|known| known.id == panel.id) else {
        panels.push(panel);
        return;
    };
    known.x.range = match (known.x.range, panel.x.range) {
        (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
        (a, b) => a.or(b),
    };
    for series in panel.series {
        // Limits belong to nobody: equal ones are one.
        if series.subject.is_some() || !known.series.contains(&series) {
            known.series.push(series);
        }
    }
}

/// A panel over time.
fn over_time(id: &str, title: &str, caption: String, y: Axis, scene: &Scene<'_>) -> Panel {
    let (id, title) = (id.to_owned(), title.to_owned());
    Panel { id, title, caption, x: Axis::time(scene.duration_s), y, series: Vec::new() }
}

/// Nanoseconds as seconds.
fn seconds(ns: i64) -> f64 {
    ns as f64 / 1e9
}

/// Nanoseconds as milliseconds.
fn millis(ns: i64) -> f64 {
    ns as f64 / 1e6
}
