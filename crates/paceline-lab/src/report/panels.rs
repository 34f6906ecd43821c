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
/// Largest number of packet events of single runs in a report. Beyond it, the last runs of each group are in means alone, with a note on the
/// page.
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

/// Panels from which means of several runs are computed.
const MEANS: &[Begin] = &[rate::begin, queue::begin, frames::begin];

/// Returns the figures of a folder by scenario: panels over time, distributions, then the means of several runs.
pub fn figures(results: &Results) -> Result<Vec<Figure>, ReportError> {
    figures_within(results, ROWS_DRAWN)
}

fn figures_within(results: &Results, most: u64) -> Result<Vec<Figure>, ReportError> {
    let mut figures = Vec::new();
    for scenario in results.scenarios() {
        let mut of_scenario = of_scenario(results, scenario, &drawn_within(results, scenario, most))?;
        let validations: Vec<&Validation> =
            results.validations.iter().filter(|validation| validation.scenario == scenario).collect();
        let panels = of_scenario.iter_mut().flat_map(|figure| &mut figure.panels);
        distributions::append_distance(panels, &validations);
        figures.extend(of_scenario);
    }
    Ok(figures)
}

/// Returns the runs of a scenario with lines of their own. If they have too many events, each group keeps its first seeds.
pub fn drawn<'a>(results: &'a Results, scenario: &str) -> Vec<&'a Run> {
    drawn_within(results, scenario, ROWS_DRAWN)
}

fn drawn_within<'a>(results: &'a Results, scenario: &str, most: u64) -> Vec<&'a Run> {
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
            *n == 0 || rows <= most
        })
        .map(|(_, index)| index)
        .collect();
    kept.sort_unstable();
    kept.into_iter().map(|index| all[index]).collect()
}

fn of_scenario(results: &Results, scenario: &str, drawn: &[&Run]) -> Result<Vec<Figure>, ReportError> {
    let mut subjects: Vec<Subject> = Vec::new();
    let mut over_time: Vec<Vec<Panel>> = PANELS.iter().map(|_| Vec::new()).collect();
    let mut over_values: Vec<Vec<Panel>> = DISTRIBUTIONS.iter().map(|_| Vec::new()).collect();
    let mut means = overlay::Means::default();
    for run in results.runs.iter().filter(|run| run.about.run.scenario == scenario) {
        let is_drawn = drawn.iter().any(|other| core::ptr::eq(*other, run));
        let (first, view) = (subjects.len(), RunView::new(run, subjects.len()));
        let own = view.subjects();
        let all = if is_drawn { [PANELS, DISTRIBUTIONS].concat() } else { MEANS.to_vec() };
        let mut builders: Vec<Box<dyn PanelBuilder + '_>> = all.into_iter().map(|begin| begin(&view)).collect();
        run.tables().events(|events| builders.iter_mut().for_each(|d| d.events(events)))?;
        if is_drawn {
            run.tables().signals(|rows| builders.iter_mut().for_each(|d| d.signals(rows)))?;
        }
        let done: Vec<Vec<Panel>> = builders.into_iter().map(|builder| builder.finish()).collect();
        means.add(run, &done, |series| Some(own[series.subject? - first].flow.clone()));
        if is_drawn {
            for (panels, done) in over_time.iter_mut().chain(&mut over_values).zip(done) {
                done.into_iter().for_each(|panel| merge(panels, panel));
            }
            subjects.extend(own);
        }
    }
    run_view::label(&mut subjects, drawn);
    let figure = |id: &str, title: &str, panels: Vec<Vec<Panel>>| Figure {
        id: format!("{scenario}/{id}"),
        scenario: scenario.to_owned(),
        title: title.to_owned(),
        subjects: subjects.clone(),
        panels: panels.into_iter().flatten().filter(|panel| !panel.series.is_empty()).collect(),
    };
    let mut figures =
        vec![figure("time", "Over time", over_time), figure("distribution", "Distributions", over_values)];
    figures.extend(means.figure(&figures[0]));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{RunInputs, Store};
    use crate::run::Runner;
    use paceline::Registry;
    use paceline_scenario::{Changes, Origin};

    const SCENARIO: &str = "id = \"x\"\ntitle = \"\"\nduration = \"5 s\"\n[path.forward]\ncapacity = \"1 Mbps\"\n[[flow]]\nid = \"call\"\n\
                            controller = \"gcc-2016\"\n";

    /// Means are of all runs, also of those that have no lines of their own; n is in the legend. Rates and queues are never negative.
    #[test]
    fn means_are_of_all_runs_of_a_thinned_page() {
        let registry = Registry::standard();
        let origin = Origin::from_text("x", SCENARIO.to_owned());
        let scenario = paceline_scenario::load(&origin, &Changes::default(), &registry).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let store = Store::create(dir.path()).unwrap();
        let inputs = RunInputs { setting: Some(scenario.plan.describe(&registry)), ..RunInputs::default() };
        for seed in 1..=3 {
            let mut events = store.run(&scenario.plan.header(&registry, "sim", seed), inputs.clone()).unwrap();
            let result = Runner::simulator(&registry).run(&scenario, seed, Some(&mut events)).unwrap();
            events.finish(&serde_json::to_value(&result).unwrap(), Vec::new()).unwrap();
        }
        let results = Results::open(dir.path()).unwrap();
        let [all, thinned] = [ROWS_DRAWN, 1].map(|most| figures_within(&results, most).unwrap());
        assert_eq!([&all, &thinned].map(|figures| figures[0].subjects.len()), [3, 1], "lines of single runs");
        assert_eq!(all[2], thinned[2], "means");
        assert_eq!(thinned[2].subjects[0].label, "all runs (n = 3)");
        let rate = thinned[2].panel("rate:call").unwrap().series.last().unwrap();
        assert!((8..=10).contains(&rate.len()) && rate.ci95.iter().any(|half| *half > 0.0), "{rate:?}");
        let least = |id: &str| thinned.iter().find_map(|figure| figure.panel(id)).unwrap().y.least;
        assert_eq!(["rate:call", "queue:forward", "gradient"].map(least), [Some(0.0), Some(0.0), None]);
    }
}
