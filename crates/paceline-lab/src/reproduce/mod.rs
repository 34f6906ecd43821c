//! Reproduction: every published value and every bound of an experiment beside what was measured, with a verdict.
//!
//! ```text
//! experiments x cases x seeds, and the same under the null sender --runs--> values --verdict--> cells --tally--> summary
//! ```
//!
//! All runs are one list, longest first, so that no core waits while another works through the last experiment. Where an
//! interval is too wide for a verdict the next seeds are added.

mod null_sender;
mod sensitivity;
mod tolerance;
mod verdict;

pub use null_sender::null_sender;
pub use sensitivity::{ConstantEnd, ConstantReport, Flip, SensitivityReport, SensitivitySummary, sensitivity};
pub use tolerance::tolerance;
pub use verdict::Verdict;

use crate::label::Label;
use crate::metrics;
use crate::plan::{Assert, Constant, Expect, FlowPlan, Plan, Quantity, Reference, Remark};
use crate::run::{Runner, ratio, windows};
use crate::scenario::{Changes, Origin, Problem, load_cases};
use crate::stats::Summary;
use crate::world::WorldError;
use paceline::Registry;
use rayon::prelude::*;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use verdict::{comes_close, keeps, of_value, too_wide};

/// No experiment gets more runs than this of each case.
pub const SEEDS_MAX: u64 = 40;

/// One experiment: every case of it, each as written and under the null sender.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// Its cases; one, without a label, where it has none.
    pub cases: Vec<Plan>,
    /// What there is to run under the null sender; nothing where it is not asked for. Cases that only differ in their
    /// controller are one run there.
    nulls: Vec<Plan>,
    /// Which of these each case is.
    null_of: Vec<usize>,
    /// The cases under changes that are said to move a value into tolerance, by those changes.
    changed: BTreeMap<Vec<String>, Vec<Plan>>,
}

/// One experiment's verdicts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExperimentReport {
    /// Scenario id.
    pub id: String,
    /// A line on it.
    pub title: String,
    /// What is assumed in it because no source gives it.
    pub assumed: Vec<Assumed>,
    /// A cell for each published value and bound of each case.
    pub cells: Vec<Cell>,
}

/// An assumed constant.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Assumed {
    /// Its name.
    pub id: String,
    /// The key that it stands for.
    pub key: String,
    /// Its value.
    pub value: String,
    /// Why this value.
    pub why: String,
}

/// A published value or a bound, and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cell {
    /// Metric id.
    pub metric: String,
    /// The controllers of the media flows in question.
    pub controller: String,
    /// World.
    pub world: String,
    /// Case of the experiment.
    pub case: Label,
    /// The flow it is taken of.
    pub flow: Option<String>,
    /// The span it is taken over, s.
    pub window_s: (f64, f64),
    /// What it is divided by, if it is a ratio.
    pub over: Option<OverCell>,
    /// What was published; none: it is a bound.
    pub published: Option<f64>,
    /// Lowest and highest mean allowed, of a bound.
    pub bounds: Option<(f64, f64)>,
    /// How far the measured mean may lie from the published value.
    pub tolerance: Option<f64>,
    /// The mean over runs; none if any run has no value.
    pub measured: Option<f64>,
    /// Half-width of its 95 % interval; none for one run.
    pub ci95: Option<f64>,
    /// How many runs.
    pub n: usize,
    /// The mean under the null sender.
    pub null_sender: Option<f64>,
    /// Whether the null sender's mean is within the tolerance or bounds too; then it proves nothing.
    pub null_reproduces: bool,
    /// The claim that it supports or, of a bound, is.
    pub claim: Option<String>,
    /// What became of it.
    pub verdict: Verdict,
    /// What to know where it is not reproduced.
    pub note: Option<String>,
    /// What it comes to under the changes that are said to move it into tolerance, where it is not reproduced.
    pub moved: Option<Moved>,
}

/// A cell under changes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Moved {
    /// The `--set` changes.
    pub by: Vec<String>,
    /// The mean over as many runs.
    pub measured: Option<f64>,
    /// Half-width of its 95 % interval.
    pub ci95: Option<f64>,
    /// The verdict that this would be.
    pub verdict: Verdict,
}

/// What a cell's value is divided by.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OverCell {
    /// Metric id.
    pub metric: String,
    /// Case of the experiment.
    pub case: Label,
    /// The flow it is taken of.
    pub flow: Option<String>,
    /// The span it is taken over, s.
    pub window_s: (f64, f64),
}

/// Every experiment's verdicts, and how many of which.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// The experiments.
    pub experiments: Vec<ExperimentReport>,
    /// How many of which.
    pub summary: Tallies,
}

/// Cells by verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// All.
    pub cells: usize,
    /// Reproduced.
    pub reproduced: usize,
    /// Not, but the claim holds.
    pub direction: usize,
    /// Neither.
    pub not: usize,
}

/// Cells by verdict, with and without those that the null sender reproduces too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tallies {
    /// Every cell, bounds included.
    #[serde(flatten)]
    pub all: Tally,
    /// Those of them that the null sender does not reproduce.
    pub without_null: Tally,
    /// Published values.
    pub published: Tally,
    /// Those of them that the null sender does not reproduce.
    pub published_without_null: Tally,
    /// Claims: a claim holds if all bounds of its id hold.
    pub claims: usize,
    /// Claims that hold.
    pub claims_held: usize,
    /// Claims that do not all hold under the null sender too.
    pub claims_without_null: usize,
    /// Those of them that hold.
    pub claims_held_without_null: usize,
}

/// Which runs there shall be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seeds {
    /// As many as each scenario says, and more where an interval is too wide for a verdict.
    AsNeeded,
    /// From 1 to this.
    Exactly(u64),
}

impl Experiment {
    /// The experiment of a scenario, with other values of some assumed constants.
    pub fn load(origin: &Origin, constants: &[(String, String)], registry: &Registry) -> Result<Self, Problem> {
        let changes = Changes { constants: constants.to_vec(), ..Changes::default() };
        Ok(Self::of(load_cases(origin, &changes, registry)?))
    }

    fn of(cases: Vec<Plan>) -> Self {
        Self { cases, nulls: Vec::new(), null_of: Vec::new(), changed: BTreeMap::new() }
    }

    /// Also under every change that is said to move a value into tolerance, where the value is not reproduced.
    pub fn with_changes(mut self, origin: &Origin, registry: &Registry) -> Result<Self, Problem> {
        let remarks = self
            .cases
            .iter()
            .flat_map(|plan| plan.expects.iter().map(|e| &e.remark).chain(plan.asserts.iter().map(|a| &a.remark)));
        let wanted: BTreeSet<&Vec<String>> = remarks.map(|r| &r.moved_by).filter(|m| !m.is_empty()).collect();
        for moved_by in wanted {
            let settings = moved_by.iter().map(|text| text.parse().expect("it was resolved")).collect();
            let changes = Changes { settings, ..Changes::default() };
            self.changed.insert(moved_by.clone(), load_cases(origin, &changes, registry)?);
        }
        Ok(self)
    }

    /// Also under the null sender, if there is media for it to send.
    pub fn beside_null_sender(mut self) -> Self {
        if self.cases.iter().flat_map(|c| &c.flows).all(|f| f.media().is_none()) {
            return self;
        }
        let mut seen: Vec<String> = Vec::new();
        for plan in &self.cases {
            let null = null_sender(plan);
            let what = format!("{:?}", (&null.duration, &null.hops, &null.flows, &null.measure));
            let index = seen.iter().position(|other| *other == what).unwrap_or_else(|| {
                seen.push(what);
                self.nulls.push(null);
                seen.len() - 1
            });
            self.null_of.push(index);
            // It is asked for all that any of its cases is asked for.
            let shared = &mut self.nulls[index];
            for quantity in plan.quantities() {
                if !shared.quantities().any(|other| other == quantity) {
                    let key = shared.references.keys().last().map_or(0, |key| key + 1);
                    shared.references.insert(key, quantity.clone());
                }
            }
        }
        self
    }

    /// Scenario id.
    pub fn id(&self) -> &str {
        &self.cases[0].id
    }

    /// Whether there is anything to give a verdict on.
    pub fn says_something(&self) -> bool {
        self.cases.iter().any(|c| !c.expects.is_empty() || !c.asserts.is_empty())
    }

    /// The constants that any of its cases assumes.
    fn assumed(&self) -> impl Iterator<Item = &Constant> {
        let applied = |id: &str| self.cases.iter().flat_map(|c| &c.constants).any(|c| c.id == id && c.applied);
        self.cases[0].constants.iter().filter(move |c| applied(&c.id))
    }

    fn plans(&self, null: bool) -> &[Plan] {
        if null { &self.nulls } else { &self.cases }
    }
}

/// A run to be made.
struct Job {
    experiment: usize,
    null: bool,
    case: usize,
    seed: u64,
}

/// Everything that a run was asked for, in the order of [`Plan::quantities`].
type Values = Vec<Option<f64>>;

/// What runs of an experiment came to.
#[derive(Clone, Debug, Default)]
struct Measured {
    /// Of each case, and of each under the null sender: by seed.
    runs: [Vec<BTreeMap<u64, Values>>; 2],
}

impl Measured {
    fn none(experiment: &Experiment) -> Self {
        Self { runs: [false, true].map(|null| vec![BTreeMap::new(); experiment.plans(null).len()]) }
    }

    fn of(&self, null: bool) -> &[BTreeMap<u64, Values>] {
        &self.runs[usize::from(null)]
    }
}

/// Every verdict. `announce` is told of simulated seconds to come, before they are run.
pub fn reproduce(
    runner: &Runner<'_>,
    experiments: &[Experiment],
    seeds: Seeds,
    announce: &dyn Fn(f64),
) -> Result<Report, WorldError> {
    let mut reports = verdicts(runner, experiments, seeds, announce)?;
    try_changes(runner, experiments, &mut reports, announce)?;
    let summary = tally(&reports);
    Ok(Report { experiments: reports, summary })
}

/// Every experiment on as many seeds as its verdicts want.
fn verdicts(
    runner: &Runner<'_>,
    experiments: &[Experiment],
    seeds: Seeds,
    announce: &dyn Fn(f64),
) -> Result<Vec<ExperimentReport>, WorldError> {
    let mut measured = first_runs(runner, experiments, seeds, announce)?;
    loop {
        let reports: Vec<ExperimentReport> =
            experiments.iter().zip(&measured).map(|(e, m)| e.report(m, runner.world.name())).collect();
        let wanting: Vec<_> = match seeds {
            Seeds::Exactly(_) => Vec::new(),
            Seeds::AsNeeded => more_seeds(&reports),
        };
        if wanting.is_empty() {
            return Ok(reports);
        }
        let more = wanting.into_iter().flat_map(|(experiment, seeds)| jobs(experiments, experiment, seeds)).collect();
        run_jobs(runner, experiments, more, &mut measured, announce)?;
    }
}

/// Runs again, on the same seeds, what is said to move cells that are not reproduced.
fn try_changes(
    runner: &Runner<'_>,
    experiments: &[Experiment],
    reports: &mut [ExperimentReport],
    announce: &dyn Fn(f64),
) -> Result<(), WorldError> {
    let wanted = |index: usize, by: &Vec<String>| {
        reports[index].cells.iter().any(|cell| cell.moved.as_ref().is_some_and(|moved| moved.by == *by))
    };
    let (mut tried, mut changed) = (Vec::new(), Vec::new());
    for (index, experiment) in experiments.iter().enumerate() {
        for (by, cases) in experiment.changed.iter().filter(|(by, _)| wanted(index, by)) {
            tried.push((index, by));
            changed.push(Experiment::of(cases.clone()));
        }
    }
    let runs = |(index, _): &(usize, &Vec<String>)| reports[*index].cells.first().map_or(0, |cell| cell.n as u64);
    let again: Vec<Job> = (0..changed.len()).flat_map(|i| jobs(&changed, i, 1..=runs(&tried[i]))).collect();
    let mut measured: Vec<Measured> = changed.iter().map(Measured::none).collect();
    run_jobs(runner, &changed, again, &mut measured, announce)?;
    for (((index, by), experiment), measured) in tried.into_iter().zip(&changed).zip(&measured) {
        let then = experiment.report(measured, runner.world.name());
        for cell in &mut reports[index].cells {
            let same = then.cells.iter().find(|other| other.is_of_the_same(cell));
            if let (Some(moved), Some(same)) = (cell.moved.as_mut().filter(|m| m.by == *by), same) {
                (moved.measured, moved.ci95, moved.verdict) = (same.measured, same.ci95, same.verdict);
            }
        }
    }
    for report in reports {
        for cell in &mut report.cells {
            cell.complete_note(&report.id);
        }
    }
    Ok(())
}

fn first_runs(
    runner: &Runner<'_>,
    experiments: &[Experiment],
    seeds: Seeds,
    announce: &dyn Fn(f64),
) -> Result<Vec<Measured>, WorldError> {
    let mut measured: Vec<Measured> = experiments.iter().map(Measured::none).collect();
    let first = experiments.iter().enumerate().flat_map(|(index, e)| {
        let count = match seeds {
            Seeds::AsNeeded => e.cases[0].repeats as u64,
            Seeds::Exactly(count) => count,
        };
        jobs(experiments, index, 1..=count)
    });
    run_jobs(runner, experiments, first.collect(), &mut measured, announce)?;
    Ok(measured)
}

fn jobs(experiments: &[Experiment], experiment: usize, seeds: core::ops::RangeInclusive<u64>) -> Vec<Job> {
    let one = |null: bool| {
        let cases = 0..experiments[experiment].plans(null).len();
        let seeds = seeds.clone();
        cases.flat_map(move |case| seeds.clone().map(move |seed| Job { experiment, null, case, seed }))
    };
    one(false).chain(one(true)).collect()
}

/// Makes the runs, the longest first, on as many threads as there are.
fn run_jobs(
    runner: &Runner<'_>,
    experiments: &[Experiment],
    mut jobs: Vec<Job>,
    measured: &mut [Measured],
    announce: &dyn Fn(f64),
) -> Result<(), WorldError> {
    let plan = |job: &Job| &experiments[job.experiment].plans(job.null)[job.case];
    announce(jobs.iter().map(|j| plan(j).duration.as_secs_f64()).sum());
    jobs.sort_by_cached_key(|j| core::cmp::Reverse(traffic(plan(j))));
    // `par_bridge` hands out one after the other, in order.
    let done: Vec<(Job, Values)> = jobs
        .into_iter()
        .par_bridge()
        .map(|job| {
            let plan = plan(&job);
            let run = runner.run(plan, job.seed, None)?;
            let windows = windows(plan);
            let values = plan.quantities().map(|quantity| run.value(plan, &windows, quantity)).collect();
            Ok((job, values))
        })
        .collect::<Result<_, WorldError>>()?;
    for (job, values) in done {
        measured[job.experiment].runs[usize::from(job.null)][job.case].insert(job.seed, values);
    }
    Ok(())
}

/// About how much there is to simulate, in bytes: what the bottleneck could pass, or what the sources can use.
fn traffic(plan: &Plan) -> u64 {
    let life = |f: &FlowPlan| (f.stop - f.start).as_secs_f64();
    let asked: Option<f64> = plan.flows.iter().map(|f| Some(f.most()?.as_bps_f64() * life(f) / 8.0)).sum();
    let end = paceline_units::Time::ZERO + plan.duration;
    let passed = plan.hops[plan.bottleneck].capacity.as_ref().map(|c| c.volume(paceline_units::Time::ZERO, end));
    let asked = asked.map_or(u64::MAX, |bytes| bytes as u64);
    passed.map_or(asked, |passed| passed.as_bytes().min(asked))
}

/// The experiments that have a cell whose interval is too wide for a verdict, and the seeds that they get.
fn more_seeds(reports: &[ExperimentReport]) -> Vec<(usize, core::ops::RangeInclusive<u64>)> {
    let wanted = |report: &ExperimentReport| {
        let n = report.cells.first()?.n as u64;
        let counts = report.cells.iter().filter_map(|cell| {
            let (tolerance, measured) = (cell.tolerance?, cell.summary()?);
            too_wide(tolerance, Some(&measured)).then(|| {
                // Half-widths shrink as the root of the number of runs.
                let shrink = measured.ci95 / tolerance;
                (n as f64 * shrink * shrink).min(SEEDS_MAX as f64).ceil() as u64
            })
        });
        let target = counts.max()?.clamp(n + 1, 2 * n + 3).min(SEEDS_MAX);
        (target > n).then_some(n + 1..=target)
    };
    reports.iter().enumerate().filter_map(|(index, report)| Some((index, wanted(report)?))).collect()
}

impl Cell {
    /// Whether another is of the same value or bound.
    fn is_of_the_same(&self, other: &Self) -> bool {
        let what = |c: &Self| (c.metric.clone(), c.case.clone(), c.flow.clone(), c.window_s, c.published, c.bounds);
        what(self) == what(other) && self.claim == other.claim && self.over == other.over
    }

    /// Says which command moves it into tolerance, or does not.
    fn complete_note(&mut self, experiment: &str) {
        let Some(moved) = &self.moved else { return };
        let case: String = self.case.pairs().map(|(name, value)| format!(" --case '{name}={value}'")).collect();
        let sets: String = moved.by.iter().map(|change| format!(" --set '{change}'")).collect();
        let does = if moved.verdict == Verdict::Reproduced { "moved" } else { "not moved" };
        let command = format!("`paceline run {experiment}{case} --repeats {}{sets}`", self.n);
        let note = self.note.as_ref().map_or(String::new(), |note| format!("{note}; "));
        self.note = Some(format!("{note}{does} into tolerance by {command}"));
    }

    /// What was measured.
    fn summary(&self) -> Option<Summary> {
        let ci95 = self.ci95.unwrap_or(f64::INFINITY);
        Some(Summary { mean: self.measured?, std: 0.0, ci95, n: self.n })
    }
}

/// A published value or a bound of one case.
#[derive(Clone, Copy)]
struct Asked<'a> {
    case: usize,
    of: &'a Quantity,
    over: Option<&'a Reference>,
    remark: &'a Remark,
}

impl Experiment {
    /// A cell for every published value and bound.
    fn report(&self, measured: &Measured, world: &str) -> ExperimentReport {
        let mut cells = Vec::new();
        let bounds: Vec<(usize, &Assert)> =
            self.cases.iter().enumerate().flat_map(|(c, plan)| plan.asserts.iter().map(move |a| (c, a))).collect();
        let holds = |case: usize, a: &Assert, null: bool| {
            let asked = Asked { case, of: &a.of, over: a.over.as_ref(), remark: &a.remark };
            keeps(a.bounds, self.value(measured, &asked, null).as_ref())
        };
        // A claim that has bounds in the value's own case is judged by those, else by all that it has.
        let claim_holds = |case: usize, id: &str| {
            let of_claim = || bounds.iter().filter(|(_, a)| a.id == id);
            let own = of_claim().any(|(c, _)| *c == case);
            of_claim().filter(|(c, _)| !own || *c == case).all(|(c, a)| holds(*c, a, false))
        };
        for (case, plan) in self.cases.iter().enumerate() {
            for e in &plan.expects {
                cells.push(self.published(measured, world, case, e, &claim_holds));
            }
            for a in &plan.asserts {
                let asked = Asked { case, of: &a.of, over: a.over.as_ref(), remark: &a.remark };
                let verdict = if holds(case, a, false) { Verdict::Reproduced } else { Verdict::Not };
                let mut cell = self.cell(measured, world, &asked, verdict);
                cell.bounds = Some(a.bounds);
                cell.claim = Some(a.id.clone());
                cell.null_reproduces = holds(case, a, true);
                cells.push(cell);
            }
        }
        let plan = &self.cases[0];
        let assumed = self.assumed().map(|c| Assumed {
            id: c.id.clone(),
            key: c.key.clone(),
            value: c.value.clone(),
            why: c.why.clone(),
        });
        ExperimentReport { id: plan.id.clone(), title: plan.title.clone(), assumed: assumed.collect(), cells }
    }

    fn published(
        &self,
        measured: &Measured,
        world: &str,
        case: usize,
        e: &Expect,
        claim_holds: &dyn Fn(usize, &str) -> bool,
    ) -> Cell {
        let asked = Asked { case, of: &e.of, over: e.over.as_ref(), remark: &e.remark };
        let usual = || {
            let metric = metrics::find(&e.of.metric).expect("it was resolved");
            tolerance(metric, e.over.is_some(), e.published)
        };
        let tolerance = e.tolerance.unwrap_or_else(usual);
        let claim = e.claim.as_ref().is_some_and(|id| claim_holds(case, id));
        let value = |null| self.value(measured, &asked, null);
        let verdict = of_value(e.published, tolerance, value(false).as_ref(), claim);
        let mut cell = self.cell(measured, world, &asked, verdict);
        cell.published = Some(e.published);
        cell.tolerance = Some(tolerance);
        cell.claim = e.claim.clone();
        cell.null_reproduces = comes_close(e.published, tolerance, value(true).as_ref());
        cell
    }

    /// A cell without what only published values or only bounds have.
    fn cell(&self, measured: &Measured, world: &str, asked: &Asked<'_>, verdict: Verdict) -> Cell {
        let plan = &self.cases[asked.case];
        let value = self.value(measured, asked, false);
        let name = |plan: &Plan, flow: Option<usize>| flow.map(|f| plan.flows[f].id.clone());
        let over = asked.over.map(|over| {
            let (plan, quantity) = match over {
                Reference::Here(quantity) => (plan, quantity),
                Reference::Elsewhere { case, key } => {
                    let plan = &self.cases[self.index(case)];
                    (plan, &plan.references[key])
                }
            };
            OverCell {
                metric: quantity.metric.clone(),
                case: plan.case.clone(),
                flow: name(plan, quantity.flow),
                window_s: quantity.window.seconds(),
            }
        });
        Cell {
            metric: asked.of.metric.clone(),
            controller: controllers(plan, asked.of.flow),
            world: world.to_owned(),
            case: plan.case.clone(),
            flow: name(plan, asked.of.flow),
            window_s: asked.of.window.seconds(),
            over,
            published: None,
            bounds: None,
            tolerance: None,
            measured: value.map(|v| v.mean),
            ci95: value.map(|v| v.ci95).filter(|c| c.is_finite()),
            n: measured.of(false)[asked.case].len(),
            null_sender: self.value(measured, asked, true).map(|v| v.mean),
            null_reproduces: false,
            claim: None,
            verdict,
            note: self.note(measured, asked).filter(|_| verdict != Verdict::Reproduced),
            moved: Some(Moved { by: asked.remark.moved_by.clone(), measured: None, ci95: None, verdict })
                .filter(|moved| verdict != Verdict::Reproduced && !moved.by.is_empty()),
        }
    }

    /// Why a value is not reproduced, as far as it is known; where a change moves it, that is said later.
    fn note(&self, measured: &Measured, asked: &Asked<'_>) -> Option<String> {
        let (n, none) = (measured.of(false)[asked.case].len(), self.without_value(measured, asked));
        let missing = (none > 0).then(|| format!("no value in {none} of {n} runs"));
        let unknown = || asked.remark.moved_by.is_empty().then(|| "cause not found".to_owned());
        let parts: Vec<String> = missing.into_iter().chain(asked.remark.note.clone().or_else(unknown)).collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    fn index(&self, case: &Label) -> usize {
        self.cases.iter().position(|p| p.case == *case).expect("references are to cases that there are")
    }

    /// What was asked for, over seeds; of a ratio, the ratio of each seed. None if any run has no value.
    fn value(&self, measured: &Measured, asked: &Asked<'_>, null: bool) -> Option<Summary> {
        let values = self.values(measured, asked, null)?;
        Summary::of(&values.into_iter().collect::<Option<Vec<f64>>>()?)
    }

    /// How many runs have no value of it.
    fn without_value(&self, measured: &Measured, asked: &Asked<'_>) -> usize {
        let values = self.values(measured, asked, false).unwrap_or_default();
        values.iter().filter(|value| value.is_none()).count()
    }

    /// The value of each seed.
    fn values(&self, measured: &Measured, asked: &Asked<'_>, null: bool) -> Option<Values> {
        let of = |case: usize, quantity: &Quantity| {
            let case = if null { *self.null_of.get(case)? } else { case };
            let index = self.plans(null)[case].quantities().position(|q| q == quantity)?;
            Some((&measured.of(null)[case], index))
        };
        let (own, index) = of(asked.case, asked.of)?;
        let over = match asked.over {
            None => None,
            Some(Reference::Here(quantity)) => Some(of(asked.case, quantity)?),
            Some(Reference::Elsewhere { case, key }) => {
                let case = self.index(case);
                Some(of(case, &self.cases[case].references[key])?)
            }
        };
        let value = |(seed, values): (&u64, &Values)| match over {
            None => values[index],
            Some((other, reference)) => ratio(values[index]?, other.get(seed)?[reference]?),
        };
        Some(own.iter().map(value).collect())
    }
}

/// The controller of the flow or, for a run as a whole, of its media flows.
fn controllers(plan: &Plan, flow: Option<usize>) -> String {
    if let Some(flow) = flow.map(|f| &plan.flows[f]) {
        return flow.control().to_owned();
    }
    let media: BTreeSet<&str> = plan.flows.iter().filter_map(|f| Some(f.media()?.controller.name.as_str())).collect();
    media.into_iter().collect::<Vec<_>>().join(",")
}

/// How many of which.
pub fn tally(reports: &[ExperimentReport]) -> Tallies {
    let mut tallies = Tallies::default();
    for report in reports {
        // By claim: whether it holds, and whether it does under the null sender.
        let mut claims: BTreeMap<&str, (bool, bool)> = BTreeMap::new();
        for cell in &report.cells {
            tallies.all.count(cell.verdict);
            if !cell.null_reproduces {
                tallies.without_null.count(cell.verdict);
            }
            match (&cell.published, &cell.claim) {
                (Some(_), _) => {
                    tallies.published.count(cell.verdict);
                    if !cell.null_reproduces {
                        tallies.published_without_null.count(cell.verdict);
                    }
                }
                (None, Some(id)) => {
                    let claim = claims.entry(id).or_insert((true, true));
                    claim.0 &= cell.verdict == Verdict::Reproduced;
                    claim.1 &= cell.null_reproduces;
                }
                (None, None) => {}
            }
        }
        for (held, null) in claims.into_values() {
            tallies.claims += 1;
            tallies.claims_held += usize::from(held);
            tallies.claims_without_null += usize::from(!null);
            tallies.claims_held_without_null += usize::from(held && !null);
        }
    }
    tallies
}

impl Tally {
    fn count(&mut self, verdict: Verdict) {
        self.cells += 1;
        *match verdict {
            Verdict::Reproduced => &mut self.reproduced,
            Verdict::Direction => &mut self.direction,
            Verdict::Not => &mut self.not,
        } += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::Simulator;

    const TWO_CASES: &str = r#"
id = "test/two"
title = "Two thresholds"
duration = "10s"
repeats = 3
[path]
rtt = "20ms"
[path.forward]
capacity = "1Mbps"
[[flow]]
id = "video"
controller = "gcc-2016"
[[case]]
label = { threshold = "static" }
set = { "flow.video.controller" = "gcc-2016-static" }
[[case]]
label = { threshold = "adaptive" }
[[expect]]
metric = "rtt_p95_ms"
case = { threshold = "static" }
published = 100
claim = "cuts"
note = "the encoder"
moved_by = ["path.rtt=50ms"]
[[expect]]
metric = "utilization"
published = 0.9
claim = "busy"
[[assert]]
id = "cuts"
metric = "rtt_p95_ms"
case = { threshold = "adaptive" }
over = { case = { threshold = "static" } }
bounds = [0, 0.7]
[[assert]]
id = "busy"
metric = "utilization"
bounds = [0.5, 1]
"#;

    fn experiment(text: &str) -> Experiment {
        let origin = Origin::from_text("two.toml", text);
        Experiment::load(&origin, &[], &Registry::standard()).unwrap().beside_null_sender()
    }

    /// Runs that came to what `value` says of metric, case, seed and null sender.
    fn runs(experiment: &Experiment, seeds: u64, value: impl Fn(&str, &str, u64, bool) -> Option<f64>) -> Measured {
        let runs = [false, true].map(|null| {
            let of = |plan: &Plan| {
                let case = plan.case.to_string();
                let run = |seed| plan.quantities().map(|q| value(&q.metric, &case, seed, null)).collect();
                (1..=seeds).map(|seed| (seed, run(seed))).collect()
            };
            experiment.plans(null).iter().map(of).collect()
        });
        Measured { runs }
    }

    fn cell<'a>(report: &'a ExperimentReport, case: &str, metric: &str, published: bool) -> &'a Cell {
        let mut found = report.cells.iter().filter(|c| c.case.to_string() == format!("threshold={case}"));
        found.find(|c| c.metric == metric && c.published.is_some() == published).expect("it is among the cells")
    }

    #[test]
    fn ratios_are_of_the_same_seed() {
        let experiment = experiment(TWO_CASES);
        // 8 over 10 and 20 over 40: 0.65 on average, where the means' ratio would be 0.56.
        let measured = runs(&experiment, 2, |metric, case, seed, _| {
            Some(match (metric, case, seed) {
                ("utilization", ..) => 0.9,
                (_, "threshold=static", 1) => 10.0,
                (_, "threshold=static", _) => 40.0,
                (_, _, 1) => 8.0,
                _ => 20.0,
            })
        });
        let report = experiment.report(&measured, "sim");
        let cuts = cell(&report, "adaptive", "rtt_p95_ms", false);
        assert!((cuts.measured.unwrap() - 0.65).abs() < 1e-12, "{cuts:?}");
        // t(1) = 12.706 times the deviation 0.2121 over root 2.
        assert!((cuts.ci95.unwrap() - 1.906).abs() < 1e-3, "{cuts:?}");
        assert_eq!(cuts.over.as_ref().unwrap().case.to_string(), "threshold=static");
        assert_eq!((cuts.verdict, cuts.claim.as_deref()), (Verdict::Reproduced, Some("cuts")));
        assert_eq!((cuts.published, cuts.bounds), (None, Some((0.0, 0.7))));
    }

    #[test]
    fn a_claim_is_judged_by_its_bounds_in_the_value_s_own_case_if_there_are_any() {
        let experiment = experiment(TWO_CASES);
        // The static case is not busy, and the adaptive one is, though less than was published.
        let measured = runs(&experiment, 4, |metric, case, seed, null| {
            let spread = seed as f64 * 1e-3;
            Some(match (metric, case) {
                ("utilization", _) if null => 0.9,
                ("utilization", "threshold=static") => 0.3 + spread,
                ("utilization", _) => 0.7 + spread,
                _ if null => 300.0,
                (_, "threshold=static") => 300.0 + spread,
                _ => 150.0,
            })
        });
        let report = experiment.report(&measured, "sim");
        let verdict = |case, metric, published| cell(&report, case, metric, published).verdict;
        assert_eq!(verdict("static", "utilization", false), Verdict::Not);
        assert_eq!(verdict("static", "utilization", true), Verdict::Not);
        assert_eq!(verdict("adaptive", "utilization", false), Verdict::Reproduced);
        assert_eq!(verdict("adaptive", "utilization", true), Verdict::Direction);
        // `cuts` has a bound in the adaptive case alone, and the static value rests on that.
        let tail = cell(&report, "static", "rtt_p95_ms", true);
        assert_eq!((tail.verdict, tail.tolerance, tail.n), (Verdict::Direction, Some(25.0), 4));
        let mut tail = tail.clone();
        assert_eq!(
            (tail.note.as_deref(), tail.moved.as_ref().unwrap().by.as_slice()),
            (Some("the encoder"), &["path.rtt=50ms".to_owned()][..])
        );
        tail.complete_note("test/two");
        let command = "`paceline run test/two --case 'threshold=static' --repeats 4 --set 'path.rtt=50ms'`";
        assert_eq!(tail.note.unwrap(), format!("the encoder; not moved into tolerance by {command}"));
        let busy = cell(&report, "adaptive", "utilization", true);
        assert_eq!(
            (busy.note.as_deref(), busy.null_sender, busy.null_reproduces),
            (Some("cause not found"), Some(0.9), true)
        );

        let tallies = tally(&[report]);
        let of = |t: Tally| (t.cells, t.reproduced, t.direction, t.not);
        assert_eq!(of(tallies.all), (6, 2, 2, 2));
        assert_eq!(of(tallies.published), (3, 0, 2, 1));
        // The null sender is the same run in both cases: it reproduces their utilisation and keeps their bound.
        assert_eq!(of(tallies.published_without_null), (1, 0, 1, 0));
        assert_eq!(of(tallies.without_null), (2, 1, 1, 0));
        // `busy` holds in one case of two, so it does not hold, and proves nothing anyhow; `cuts` does.
        assert_eq!((tallies.claims, tallies.claims_held), (2, 1));
        assert_eq!((tallies.claims_without_null, tallies.claims_held_without_null), (1, 1));
    }

    #[test]
    fn a_run_without_a_value_leaves_none() {
        let experiment = experiment(TWO_CASES);
        let measured = runs(&experiment, 3, |_, _, seed, _| (seed != 2).then_some(1.0));
        let report = experiment.report(&measured, "sim");
        assert!(report.cells.iter().all(|c| c.measured.is_none() && c.ci95.is_none() && c.verdict == Verdict::Not));
        let text = serde_json::to_value(&report.cells[0]).unwrap();
        assert!(text["measured"].is_null() && text["ci95"].is_null() && text["null_sender"].is_null());
    }

    #[test]
    fn only_experiments_with_too_wide_an_interval_get_more_seeds() {
        let experiment = experiment(TWO_CASES);
        let wanted = |n: u64, ci95: f64| {
            let measured = runs(&experiment, n, |_, _, _, _| Some(0.9));
            let mut report = experiment.report(&measured, "sim");
            let cell = report.cells.iter_mut().find(|c| c.metric == "utilization" && c.published.is_some()).unwrap();
            cell.ci95 = Some(ci95).filter(|c| c.is_finite());
            let untouched = experiment.report(&runs(&experiment, 3, |_, _, _, _| Some(0.9)), "sim");
            more_seeds(&[untouched, report])
        };
        assert_eq!(wanted(5, 0.05), []);
        assert_eq!(wanted(5, 0.06), [(1, 6..=8)]); // 5 x 1.44 = 7.2
        assert_eq!(wanted(5, 0.2), [(1, 6..=13)]); // 80, but no more than doubled at once
        assert_eq!(wanted(30, 0.2), [(1, 31..=40)]);
        assert_eq!(wanted(40, 0.2), []);
    }

    #[test]
    fn runs_of_everything_give_every_cell() {
        // No tolerance is met by frames of random size, so that experiment gets all seeds there are; the other its own.
        let narrow = TWO_CASES.replace("published = 0.9", "published = 0.9\ntolerance = 1e-9\nwhy = \"test\"");
        let wide = TWO_CASES.replace("published = 100", "published = 100\ntolerance = 1e9\nwhy = \"test\"");
        let wide = wide.replace("published = 0.9", "published = 0.9\ntolerance = 1e9\nwhy = \"test\"");
        let experiments = [experiment(&narrow), experiment(&wide)];
        let registry = Registry::standard();
        let runner = Runner { world: &Simulator, registry: &registry, clock: &|| 0.0, ticked: &|| () };
        let announced = std::sync::Mutex::new(0.0);
        let announce = |seconds: f64| *announced.lock().unwrap() += seconds;
        let report = reproduce(&runner, &experiments, Seeds::AsNeeded, &announce).unwrap();
        let [narrow, wide] = report.experiments.as_slice() else { panic!("two") };
        assert!(narrow.cells.iter().all(|c| c.n == SEEDS_MAX as usize), "{:?}", narrow.cells[0]);
        assert!(wide.cells.iter().all(|c| c.n == 3 && c.measured.is_some() && c.null_sender.is_some()));
        // Two cases of 10 s, which are one without their controller, 40 and 3 seeds.
        assert_eq!(*announced.lock().unwrap(), 3.0 * 10.0 * 43.0);
        let again = reproduce(&runner, &experiments[1..], Seeds::Exactly(3), &|_| ()).unwrap();
        assert_eq!(again.experiments[0], *wide);
    }
}
