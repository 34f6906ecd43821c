// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reproduction in a world in real time. Every run is stored when it ends, so that hours of runs can be interrupted and
//! resumed. Cells without runs have the verdict `not run`.
//!
//! ```text
//! experiments x controllers x cases x seeds ─▶ stored runs ─┐
//!                                      the simulator's cells ─┴▶ cells with `beside`
//! ```
//!
//! The null sender and the changes of `reproduced_with` are only run in the simulator.

use crate::judge::{CAUSE_NOT_FOUND, Experiment, ExperimentRuns, RunValues};
use crate::results::{Cell, CellVerdict, ExperimentReport, OtherWorldCell, RunInputs, Store, StoreError};
use crate::run::{RunResult, Runner, windows};
use crate::run_cache::{self, CachedRun, RunCacheError};
use paceline::Registry;
use paceline_scenario::{Quantity, Scenario};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

pub struct RealtimeExperiment {
    /// The experiment, with these controllers in its scenarios.
    pub experiment: Experiment,
    /// The controllers, for people.
    pub under: String,
    pub inputs: Vec<RunInputs>,
}

impl RealtimeExperiment {
    pub fn new(experiment: Experiment, under: String, inputs: impl FnMut(&Scenario) -> RunInputs) -> Self {
        let inputs = experiment.cases.iter().map(inputs).collect();
        Self { experiment, under, inputs }
    }
}

/// All runs of a reproduction in real time, finished and missing.
pub struct RealtimeReproduction {
    experiments: Vec<RealtimeExperiment>,
    seeds: u64,
    /// By experiment, case and seed.
    finished: Vec<Vec<BTreeMap<u64, FinishedRun>>>,
    /// For each experiment, why the world cannot run it.
    unavailable: Vec<Option<String>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingRun {
    experiment: usize,
    case: usize,
    seed: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct FinishedRun {
    run: RunValues,
    /// How other load of the host disturbed it, if that was too much.
    pub disturbed: Option<String>,
}

/// A measured quantity, as the run's document stores it.
#[derive(Deserialize, PartialEq, Serialize)]
struct StoredQuantity {
    metric: String,
    flow: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stream: Option<usize>,
    window_s: (f64, f64),
    /// The windows and bounds of a share of windows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    each: Option<String>,
    value: Option<f64>,
}

impl StoredQuantity {
    fn of(quantity: &Quantity, value: Option<f64>) -> Self {
        Self {
            metric: quantity.metric.clone(),
            flow: quantity.flow,
            stream: quantity.stream,
            window_s: quantity.window.seconds(),
            each: quantity.each.as_ref().map(|each| format!("{:?}", (each.of, each.bounds, &each.relative_to))),
            value,
        }
    }

    fn is(&self, quantity: &Quantity) -> bool {
        *self == Self::of(quantity, self.value)
    }
}

impl CachedRun for FinishedRun {
    const NAME: &'static str = "asked";
    type Observer = ();

    fn observer(_: &Scenario) {}

    fn findings(scenario: &Scenario, result: &RunResult, (): ()) -> Value {
        let windows = windows(scenario);
        let stored = |quantity: &Quantity| StoredQuantity::of(quantity, result.value(scenario, &windows, quantity));
        let quantities: Vec<StoredQuantity> = scenario.quantities().map(stored).collect();
        serde_json::to_value(quantities).expect("names and numbers become JSON")
    }

    fn from_document(scenario: &Scenario, document: &Value) -> Option<Self> {
        let stored = Vec::<StoredQuantity>::deserialize(document.get(Self::NAME)?).ok()?;
        let same_number = stored.len() == scenario.quantities().count();
        let fits = same_number && stored.iter().zip(scenario.quantities()).all(|(stored, wanted)| stored.is(wanted));
        let trace_hash = document.get("trace_hash")?.as_str()?.to_owned();
        let values = stored.iter().map(|stored| stored.value).collect();
        let disturbed = document.pointer("/machine/disturbed").and_then(Value::as_str).map(str::to_owned);
        fits.then_some(Self { run: RunValues { trace_hash, values }, disturbed })
    }
}

impl RealtimeReproduction {
    /// Begins or resumes a reproduction on seeds from 1 to `seeds`. Stored runs with the same inputs are finished.
    pub fn resume(
        experiments: Vec<RealtimeExperiment>,
        seeds: u64,
        (registry, world): (&Registry, &str),
        store: Option<&Store>,
    ) -> Result<Self, StoreError> {
        let mut finished = Vec::new();
        for RealtimeExperiment { experiment, inputs, .. } in &experiments {
            let mut cases = vec![BTreeMap::new(); experiment.cases.len()];
            for ((scenario, inputs), runs) in experiment.cases.iter().zip(inputs).zip(&mut cases) {
                for (store, seed) in store.iter().flat_map(|store| (1..=seeds).map(move |seed| (store, seed))) {
                    let found = run_cache::find((store, inputs), registry, world, scenario, seed)?;
                    runs.extend(found.map(|run| (seed, run)));
                }
            }
            finished.push(cases);
        }
        let unavailable = vec![None; experiments.len()];
        Ok(Self { experiments, seeds, finished, unavailable })
    }

    /// Returns the missing runs: every case on the first seed, then on the next.
    pub fn missing(&self) -> Vec<PendingRun> {
        let run = |seed| move |(experiment, case)| PendingRun { experiment, case, seed };
        (1..=self.seeds)
            .flat_map(|seed| self.cases().map(run(seed)))
            .filter(|run| !self.finished[run.experiment][run.case].contains_key(&run.seed))
            .collect()
    }

    /// Returns the number of runs, finished and missing.
    pub fn run_count(&self) -> usize {
        self.cases().count() * self.seeds as usize
    }

    /// Returns the cases to be run, by experiment: those from which a quantity is needed.
    fn cases(&self) -> impl Iterator<Item = (usize, usize)> {
        self.experiments.iter().enumerate().flat_map(|(index, of)| {
            let cases = of.experiment.cases.iter().enumerate();
            cases.filter(|(_, scenario)| scenario.is_evaluated()).map(move |(case, _)| (index, case))
        })
    }

    /// Returns the duration of a run, s.
    pub fn seconds(&self, run: &PendingRun) -> f64 {
        self.scenario(run).plan.duration.as_secs_f64()
    }

    pub fn describe(&self, run: &PendingRun) -> String {
        let plan = &self.scenario(run).plan;
        let case = if plan.case.is_empty() { String::new() } else { format!(" [{}]", plan.case) };
        let mut under: Vec<&str> =
            plan.flows.iter().filter_map(|flow| Some(flow.media()?.controller.name.as_str())).collect();
        under.dedup();
        format!("{}{case} under {}, seed {}", plan.id, under.join(" and "), run.seed)
    }

    fn scenario(&self, run: &PendingRun) -> &Scenario {
        &self.experiments[run.experiment].experiment.cases[run.case]
    }

    /// Makes a run and stores it, if there is a store.
    pub fn make(
        &self,
        runner: &Runner<'_>,
        store: Option<&Store>,
        run: &PendingRun,
    ) -> Result<FinishedRun, RunCacheError> {
        let into = store.map(|store| (store, &self.experiments[run.experiment].inputs[run.case]));
        run_cache::make(runner, self.scenario(run), run.seed, into)
    }

    pub fn add(&mut self, run: &PendingRun, finished: FinishedRun) {
        self.finished[run.experiment][run.case].insert(run.seed, finished);
    }

    /// Records why the world cannot run the experiment of this run.
    pub fn mark_unavailable(&mut self, run: &PendingRun, cause: String) {
        self.unavailable[run.experiment].get_or_insert(cause);
    }

    /// Returns a report of each experiment, with the cells of the simulator's report of the same experiment.
    pub fn reports(&self, world: &str, simulated: &[ExperimentReport]) -> Vec<ExperimentReport> {
        let report = |(index, of): (usize, &RealtimeExperiment)| {
            let finished = &self.finished[index];
            let values =
                |runs: &BTreeMap<u64, FinishedRun>| runs.iter().map(|(seed, of)| (*seed, of.run.clone())).collect();
            let runs = [finished.iter().map(values).collect(), Vec::new()];
            let runs = ExperimentRuns { runs, ..ExperimentRuns::default() };
            let mut report = of.experiment.report(&runs, world);
            let other = simulated.iter().find(|other| other.id == report.id);
            for cell in &mut report.cells {
                let same = other.and_then(|other| other.cells.iter().find(|other| other.is_same_quantity(cell)));
                add_simulated(cell, same, self.unavailable[index].as_deref());
            }
            report.under = Some(of.under.clone());
            report.disturbed = finished.iter().flat_map(BTreeMap::values).filter(|d| d.disturbed.is_some()).count();
            report
        };
        self.experiments.iter().enumerate().map(report).collect()
    }
}

/// Adds the simulator's cell to a cell, and the reason of the verdict in this world.
fn add_simulated(cell: &mut Cell, same: Option<&Cell>, unavailable: Option<&str>) {
    cell.moved = None;
    if let Some(same) = same {
        (cell.null_sender, cell.null_reproduces) = (same.null_sender, same.null_reproduces);
        cell.beside = Some(OtherWorldCell {
            world: same.world.clone(),
            controller: same.controller.clone(),
            measured: same.measured,
            ci95: same.ci95,
            n: same.n,
            verdict: same.verdict,
        });
    }
    let left_out = cell.left_out.unwrap_or(0);
    if cell.n + left_out == 0 {
        (cell.verdict, cell.check) = (CellVerdict::NotRun, None);
        cell.note = unavailable.map(str::to_owned);
    } else if cell.verdict != CellVerdict::Reproduced && cell.measured.is_some() && left_out == 0 {
        // The scenario's own note is on the simulator.
        let same_verdict = same.is_some_and(|same| same.verdict == cell.verdict);
        let cause = if same_verdict { "as in the simulator" } else { CAUSE_NOT_FOUND };
        cell.note = cell.note.take().filter(|note| note.starts_with("too few runs")).or(Some(cause.to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::altered_simulator::AlteredSimulator;
    use crate::reproduce::{RunContext, Seeds, reproduce};
    use crate::results::Report;
    use paceline_netsim::sim::Simulator;
    use paceline_scenario::Origin;

    const TEXT: &str = r#"
id = "test/beside"
title = "A rate that frames of random size move"
duration = "5s"
repeats = 2
[path.forward]
capacity = "1Mbps"
[[flow]]
id = "video"
controller = "gcc-2016"
[[case]]
label = { size = "small" }
[[case]]
label = { size = "large" }
set = { "path.forward.capacity" = "3Mbps" }
[[expect]]
metric = "utilization"
published = 0.5
tolerance = 1
why = "any value will do"
[[expect]]
metric = "queue_p95_ms"
case = { size = "large" }
published = 9999
note = "a remark on the simulator"
reproduced_with = ["path.rtt=50ms"]
[[assert]]
id = "larger"
metric = "throughput_bps"
flow = "video"
case = { size = "large" }
relative_to = { case = { size = "small" } }
bounds = [0.5, 10]
"#;

    fn resume(store: Option<&Store>) -> RealtimeReproduction {
        resume_text(TEXT, store)
    }

    fn resume_text(text: &str, store: Option<&Store>) -> RealtimeReproduction {
        let registry = Registry::standard();
        let experiment = Experiment::load(&Origin::from_text("beside.toml", text), &[], &registry).unwrap();
        let inputs = |scenario: &Scenario| {
            let changes = vec![scenario.plan.case.to_string()];
            RunInputs { scenario_text: text.to_owned(), changes, ..Default::default() }
        };
        let experiment = RealtimeExperiment::new(experiment, "gcc-2016".to_owned(), inputs);
        RealtimeReproduction::resume(vec![experiment], 2, (&registry, "slow"), store).unwrap()
    }

    #[test]
    fn cases_without_a_needed_quantity_are_not_run() {
        // Nothing is published for `middle`; `small` is the denominator of `large`.
        let text = TEXT.replace("published = 0.5", "published = 0.5\ncase = { size = \"large\" }").replace(
            "[[case]]\nlabel = { size = \"large\" }",
            "[[case]]\nlabel = { size = \"middle\" }\n[[case]]\nlabel = { size = \"large\" }",
        );
        let all = resume_text(&text, None);
        let cases: Vec<usize> = all.missing().iter().map(|run| run.case).collect();
        assert_eq!((all.run_count(), cases), (4, vec![0, 2, 0, 2]));
    }

    #[test]
    fn an_interrupted_reproduction_resumes_and_marks_missing_runs() {
        let registry = Registry::standard();
        let slow = AlteredSimulator::named("slow");
        let runner = Runner::new(&slow, &registry);
        let simulated = {
            let runner = Runner { world: &Simulator, ..runner };
            let origin = Origin::from_text("beside.toml", TEXT);
            let experiment = Experiment::load(&origin, &[], &registry).unwrap().with_null_sender();
            reproduce(RunContext::all(&runner), &[experiment], Seeds::Exactly(2)).unwrap().experiments
        };
        let folder = std::env::temp_dir().join(format!("paceline-beside-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let store = Store::create(&folder).unwrap();

        let mut all = resume(Some(&store));
        let missing = all.missing();
        let (seeds, cases): (Vec<u64>, Vec<usize>) = missing.iter().map(|run| (run.seed, run.case)).unzip();
        assert_eq!((seeds, cases), (vec![1, 1, 2, 2], vec![0, 1, 0, 1]), "every case once, then again");
        assert_eq!((all.run_count(), all.seconds(&missing[0])), (4, 5.0));
        assert_eq!(all.describe(&missing[1]), "test/beside [size=large] under gcc-2016, seed 1");

        // The first case on its first seed, then interrupted.
        let done = all.make(&runner, Some(&store), &missing[0]).unwrap();
        all.add(&missing[0], done);
        let cells = all.reports("slow", &simulated).remove(0).cells;
        let verdicts: Vec<CellVerdict> = cells.iter().map(|cell| cell.verdict).collect();
        // One run has no interval; the other case has no run, so the ratio has no value.
        assert_eq!(verdicts, [CellVerdict::Not, CellVerdict::NotRun, CellVerdict::NotRun, CellVerdict::NotRun]);
        assert_eq!((cells[0].n, cells[0].note.as_deref()), (1, Some("too few runs: one has no interval")));
        assert_eq!(serde_json::to_value(cells[1].verdict).unwrap(), "not run");
        let tallies = Report::of(all.reports("slow", &simulated)).summary;
        assert_eq!((tallies.all.cells, tallies.all.not_run, tallies.claims), (1, 3, 0));

        let mut all = resume(Some(&store));
        assert_eq!(all.missing(), missing[1..]);
        for run in all.missing() {
            let done = all.make(&runner, Some(&store), &run).unwrap();
            all.add(&run, done);
        }
        assert_eq!((slow.run_count(), resume(Some(&store)).missing().len()), (4, 0));
        let report = all.reports("slow", &simulated).remove(0);
        // The runs equal those of the simulator, and so do the numbers in both columns.
        for (cell, same) in report.cells.iter().zip(&simulated[0].cells) {
            let other = cell.beside.as_ref().unwrap();
            assert_eq!((cell.measured, cell.ci95, cell.verdict), (same.measured, same.ci95, same.verdict));
            assert_eq!((other.measured, other.ci95, other.verdict), (same.measured, same.ci95, same.verdict));
            assert_eq!((other.world.as_str(), other.controller.as_str(), other.n), ("sim", "gcc-2016", 2));
            assert_eq!((cell.world.as_str(), cell.null_sender), ("slow", same.null_sender));
        }
        let tail = report.cells.iter().find(|cell| cell.published == Some(9999.0)).unwrap();
        assert_eq!((tail.note.as_deref(), &tail.moved), (Some("as in the simulator"), &None));
        assert_eq!((report.under.as_deref(), report.disturbed), (Some("gcc-2016"), 0));
        assert_eq!(resume(Some(&store)).reports("slow", &simulated)[0], report, "restored from the store");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn an_unavailable_experiment_has_the_cause_in_its_cells() {
        let mut all = resume(None);
        let run = all.missing()[0];
        all.mark_unavailable(&run, "no such controller there".to_owned());
        let report = all.reports("slow", &[]).remove(0);
        assert!(report.cells.iter().all(|cell| cell.verdict == CellVerdict::NotRun && cell.beside.is_none()));
        assert_eq!(report.cells[0].note.as_deref(), Some("no such controller there"));
    }
}
