//! Reproduction in a world in real time, beside the simulator's: every run is kept as it is made, so that hours of runs can be
//! cut and gone on with, and what was not run yet reads `not run`.
//!
//! ```text
//! experiments x controllers x cases x seeds ─▶ kept runs ─┐
//!                                  the simulator's cells ─┴▶ cells with `beside`
//! ```
//!
//! The null sender and the causes of `moved_by` are the simulator's business: in real time nobody waits for them.

use super::report::BesideCell;
use super::runs::{Measured, Run};
use super::{Cell, Experiment, ExperimentReport, Verdict};
use crate::kept::{self, KeptError};
use crate::plan::{Plan, Quantity};
use crate::rows::{Row, RowSink};
use crate::run::{self, RunResult, Runner, windows};
use crate::store::{RunManifest, Store, StoreError};
use paceline::Registry;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Where what a scenario asked of a run stands in its document.
const ASKED: &str = "asked";

/// An experiment under controllers of a world in real time.
pub struct Undertaking {
    /// It, with the world's controllers in its plans.
    pub experiment: Experiment,
    /// What its media flows are under, for people.
    pub under: String,
    /// What the runs of each case are made from.
    pub inputs: Vec<RunManifest>,
}

impl Undertaking {
    /// Of an experiment whose cases are made from what `inputs` says of each plan.
    pub fn new(experiment: Experiment, under: String, inputs: impl FnMut(&Plan) -> RunManifest) -> Self {
        let inputs = experiment.cases.iter().map(inputs).collect();
        Self { experiment, under, inputs }
    }
}

/// Everything that is to be run in a world in real time, and what of it is there.
pub struct Beside {
    undertakings: Vec<Undertaking>,
    seeds: u64,
    /// By undertaking, case and seed.
    done: Vec<Vec<BTreeMap<u64, Done>>>,
    /// Why the world does not run an undertaking.
    refused: Vec<Option<String>>,
}

/// A run that is to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    undertaking: usize,
    case: usize,
    seed: u64,
}

/// A run that was made.
#[derive(Clone, Debug, PartialEq)]
pub struct Done {
    run: Run,
    /// What the machine did to it, if that was too much.
    pub disturbed: Option<String>,
}

/// What a run's document says of what was asked of it.
#[derive(Deserialize, Serialize)]
struct Asked {
    metric: String,
    flow: Option<usize>,
    window_s: (f64, f64),
    value: Option<f64>,
}

/// Sees nothing: all that is asked for stands in the result.
struct Unseeing;

impl RowSink for Unseeing {
    fn row(&mut self, _: &Row) {}
    fn wants_signals(&self) -> bool {
        false
    }
}

impl Beside {
    /// On seeds from 1 to `seeds`; runs that the store holds and that were made from the same are there already.
    ///
    /// # Errors
    /// The store's manifest cannot be read.
    pub fn take_up(
        undertakings: Vec<Undertaking>,
        seeds: u64,
        (registry, world): (&Registry, &str),
        store: Option<&Store>,
    ) -> Result<Self, StoreError> {
        let mut done = Vec::new();
        for undertaking in &undertakings {
            let mut cases = Vec::new();
            for (plan, inputs) in undertaking.experiment.cases.iter().zip(&undertaking.inputs) {
                let mut runs = BTreeMap::new();
                for seed in (1..=seeds).filter(|_| store.is_some()) {
                    let document = store.map(|s| s.result(&run::header(plan, registry, world, seed), inputs));
                    let found = document.transpose()?.flatten().and_then(|document| Done::of(plan, &document));
                    runs.extend(found.map(|run| (seed, run)));
                }
                cases.push(runs);
            }
            done.push(cases);
        }
        let refused = vec![None; undertakings.len()];
        Ok(Self { undertakings, seeds, done, refused })
    }

    /// What is to be run yet: first everything once, then again.
    pub fn missing(&self) -> Vec<Task> {
        let task = |seed| move |(undertaking, case)| Task { undertaking, case, seed };
        (1..=self.seeds)
            .flat_map(|seed| self.cases().map(task(seed)))
            .filter(|task| !self.done[task.undertaking][task.case].contains_key(&task.seed))
            .collect()
    }

    /// How many runs there are when all is done.
    pub fn runs(&self) -> usize {
        self.cases().count() * self.seeds as usize
    }

    /// The cases that are run, by undertaking: in real time none is run that is asked for nothing.
    fn cases(&self) -> impl Iterator<Item = (usize, usize)> {
        let all = self.undertakings.iter().enumerate();
        all.flat_map(|(u, undertaking)| {
            let cases = undertaking.experiment.cases.iter().enumerate();
            cases.filter(|(_, plan)| plan.is_asked()).map(move |(case, _)| (u, case))
        })
    }

    /// How long a run takes, s.
    pub fn seconds(&self, task: &Task) -> f64 {
        self.plan(task).duration.as_secs_f64()
    }

    /// What a run is of, for people.
    pub fn describe(&self, task: &Task) -> String {
        let plan = self.plan(task);
        let case = if plan.case.is_empty() { String::new() } else { format!(" [{}]", plan.case) };
        let mut under: Vec<&str> =
            plan.flows.iter().filter_map(|flow| Some(flow.media()?.controller.name.as_str())).collect();
        under.dedup();
        format!("{}{case} under {}, seed {}", plan.id, under.join(" and "), task.seed)
    }

    fn plan(&self, task: &Task) -> &Plan {
        &self.undertakings[task.undertaking].experiment.cases[task.case]
    }

    /// Makes a run; into the store, if there is one.
    ///
    /// # Errors
    /// The world cannot run it, or the store cannot keep it.
    pub fn make(&self, runner: &Runner<'_>, store: Option<&Store>, task: &Task) -> Result<Done, KeptError> {
        let plan = self.plan(task);
        let into = store.map(|store| (store, &self.undertakings[task.undertaking].inputs[task.case]));
        let asked = |result: &RunResult, Unseeing| {
            let windows = windows(plan);
            let of = |quantity: &Quantity| Asked {
                metric: quantity.metric.clone(),
                flow: quantity.flow,
                window_s: quantity.window.seconds(),
                value: result.value(plan, &windows, quantity),
            };
            let asked: Vec<Asked> = plan.quantities().map(of).collect();
            (ASKED, serde_json::to_value(asked).expect("names and numbers become JSON"))
        };
        let document = kept::made(runner, plan, task.seed, into, || Unseeing, asked)?;
        Ok(Done::of(plan, &document).expect("a document says what was put into it"))
    }

    /// A run was made.
    pub fn add(&mut self, task: &Task, done: Done) {
        self.done[task.undertaking][task.case].insert(task.seed, done);
    }

    /// The world does not run what this is of, and why.
    pub fn refuse(&mut self, task: &Task, cause: String) {
        self.refused[task.undertaking].get_or_insert(cause);
    }

    /// A report of each undertaking, its cells beside those of the simulator's report of the same experiment.
    pub fn reports(&self, world: &str, simulated: &[ExperimentReport]) -> Vec<ExperimentReport> {
        let report = |(index, undertaking): (usize, &Undertaking)| {
            let runs = |done: &BTreeMap<u64, Done>| done.iter().map(|(seed, done)| (*seed, done.run.clone())).collect();
            let runs = [self.done[index].iter().map(runs).collect(), Vec::new()];
            let mut report = undertaking.experiment.report(&Measured { runs, ..Measured::default() }, world);
            let other = simulated.iter().find(|other| other.id == report.id);
            for cell in &mut report.cells {
                let same = other.and_then(|other| other.cells.iter().find(|other| other.is_of_the_same(cell)));
                lay_beside(cell, same, self.refused[index].as_deref());
            }
            report.under = Some(undertaking.under.clone());
            report.disturbed =
                self.done[index].iter().flat_map(BTreeMap::values).filter(|d| d.disturbed.is_some()).count();
            report
        };
        self.undertakings.iter().enumerate().map(report).collect()
    }
}

impl Done {
    /// Of a run of this plan, by its document; none if it does not say what is asked for now.
    fn of(plan: &Plan, document: &Value) -> Option<Self> {
        let asked = Vec::<Asked>::deserialize(document.get(ASKED)?).ok()?;
        let is_same = |(asked, wanted): (&Asked, &Quantity)| {
            let window = wanted.window.seconds();
            (&asked.metric, asked.flow, asked.window_s) == (&wanted.metric, wanted.flow, window)
        };
        let fits = asked.len() == plan.quantities().count() && asked.iter().zip(plan.quantities()).all(is_same);
        let trace_hash = document.get("trace_hash")?.as_str()?.to_owned();
        let values = asked.iter().map(|asked| asked.value).collect();
        let disturbed = document.pointer("/machine/disturbed").and_then(Value::as_str).map(str::to_owned);
        fits.then_some(Self { run: Run { trace_hash, values }, disturbed })
    }
}

/// Says in a cell what the simulator's says, and what became of it here.
fn lay_beside(cell: &mut Cell, same: Option<&Cell>, refused: Option<&str>) {
    cell.moved = None;
    if let Some(same) = same {
        (cell.null_sender, cell.null_reproduces) = (same.null_sender, same.null_reproduces);
        cell.beside = Some(BesideCell {
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
        cell.verdict = Verdict::NotRun;
        cell.note = refused.map(str::to_owned);
    } else if cell.verdict != Verdict::Reproduced && cell.measured.is_some() && left_out == 0 {
        // The scenario's own remark is on the simulator.
        let shared = same.is_some_and(|same| same.verdict == cell.verdict);
        let told = if shared { "as in the simulator" } else { "cause not found" };
        cell.note = cell.note.take().filter(|note| note.starts_with("too few runs")).or(Some(told.to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::{Report, Seeds, reproduce};
    use crate::scenario::Origin;
    use crate::sim::Simulator;
    use crate::world::{Outcome, World, WorldError};
    use std::sync::atomic::{AtomicUsize, Ordering};

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
moved_by = ["path.rtt=50ms"]
[[assert]]
id = "larger"
metric = "throughput_bps"
flow = "video"
case = { size = "large" }
over = { case = { size = "small" } }
bounds = [0.5, 10]
"#;

    /// The simulator as a world in real time that counts its runs.
    #[derive(Default)]
    struct Slow(AtomicUsize);

    impl World for Slow {
        fn name(&self) -> &'static str {
            "slow"
        }
        fn real_time(&self) -> bool {
            true
        }
        fn run(
            &self,
            plan: &Plan,
            registry: &Registry,
            seed: u64,
            rows: &mut dyn RowSink,
        ) -> Result<Outcome, WorldError> {
            self.0.fetch_add(1, Ordering::SeqCst);
            Simulator.run(plan, registry, seed, rows)
        }
    }

    fn take_up(store: Option<&Store>) -> Beside {
        take_up_of(TEXT, store)
    }

    fn take_up_of(text: &str, store: Option<&Store>) -> Beside {
        let registry = Registry::standard();
        let experiment = Experiment::load(&Origin::from_text("beside.toml", text), &[], &registry).unwrap();
        let inputs = |plan: &Plan| {
            let changes = vec![plan.case.to_string()];
            RunManifest { version: "1".to_owned(), scenario_text: text.to_owned(), changes, ..Default::default() }
        };
        let undertaking = Undertaking::new(experiment, "gcc-2016".to_owned(), inputs);
        Beside::take_up(vec![undertaking], 2, (&registry, "slow"), store).unwrap()
    }

    #[test]
    fn a_case_that_is_asked_for_nothing_is_not_run() {
        // Nothing is published of the middle; the small one is what the large one is divided by.
        let text = TEXT.replace("published = 0.5", "published = 0.5\ncase = { size = \"large\" }").replace(
            "[[case]]\nlabel = { size = \"large\" }",
            "[[case]]\nlabel = { size = \"middle\" }\n[[case]]\nlabel = { size = \"large\" }",
        );
        let beside = take_up_of(&text, None);
        let cases: Vec<usize> = beside.missing().iter().map(|task| task.case).collect();
        assert_eq!((beside.runs(), cases), (4, vec![0, 2, 0, 2]));
    }

    #[test]
    fn what_was_cut_goes_on_and_what_was_not_run_says_so() {
        let registry = Registry::standard();
        let slow = Slow::default();
        let runner = Runner { world: &slow, registry: &registry, clock: &|| 0.0, ticked: &|| () };
        let simulated = {
            let runner = Runner { world: &Simulator, ..runner };
            let origin = Origin::from_text("beside.toml", TEXT);
            let experiment = Experiment::load(&origin, &[], &registry).unwrap().beside_null_sender();
            reproduce(&runner, &[experiment], Seeds::Exactly(2), &|_| ()).unwrap().experiments
        };
        let folder = std::env::temp_dir().join(format!("paceline-beside-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let store = Store::create(&folder).unwrap();

        let mut beside = take_up(Some(&store));
        let missing = beside.missing();
        let (seeds, cases): (Vec<u64>, Vec<usize>) = missing.iter().map(|task| (task.seed, task.case)).unzip();
        assert_eq!((seeds, cases), (vec![1, 1, 2, 2], vec![0, 1, 0, 1]), "everything once, then again");
        assert_eq!((beside.runs(), beside.seconds(&missing[0])), (4, 5.0));
        assert_eq!(beside.describe(&missing[1]), "test/beside [size=large] under gcc-2016, seed 1");

        // The first case on its first seed, then cut.
        let done = beside.make(&runner, Some(&store), &missing[0]).unwrap();
        beside.add(&missing[0], done);
        let cells = beside.reports("slow", &simulated).remove(0).cells;
        let verdicts: Vec<Verdict> = cells.iter().map(|cell| cell.verdict).collect();
        // One run has no interval, the other case none at all, and a ratio of the two neither.
        assert_eq!(verdicts, [Verdict::Not, Verdict::NotRun, Verdict::NotRun, Verdict::NotRun]);
        assert_eq!((cells[0].n, cells[0].note.as_deref()), (1, Some("too few runs: one has no interval")));
        assert_eq!(serde_json::to_value(cells[1].verdict).unwrap(), "not run");
        let tallies = Report::of(beside.reports("slow", &simulated)).summary;
        assert_eq!((tallies.all.cells, tallies.all.not_run, tallies.claims), (1, 3, 0));

        let mut beside = take_up(Some(&store));
        assert_eq!(beside.missing(), missing[1..]);
        for task in beside.missing() {
            let done = beside.make(&runner, Some(&store), &task).unwrap();
            beside.add(&task, done);
        }
        assert_eq!((slow.0.load(Ordering::SeqCst), take_up(Some(&store)).missing().len()), (4, 0));
        let report = beside.reports("slow", &simulated).remove(0);
        // The same runs as in the simulator: so are the numbers, whichever column they stand in.
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
        assert_eq!(take_up(Some(&store)).reports("slow", &simulated)[0], report, "as it was kept");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn what_the_world_refuses_says_why() {
        let mut beside = take_up(None);
        let task = beside.missing()[0];
        beside.refuse(&task, "no such controller there".to_owned());
        let report = beside.reports("slow", &[]).remove(0);
        assert!(report.cells.iter().all(|cell| cell.verdict == Verdict::NotRun && cell.beside.is_none()));
        assert_eq!(report.cells[0].note.as_deref(), Some("no such controller there"));
    }
}
