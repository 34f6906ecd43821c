// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs suites under several controllers and makes their document.

use super::file::{Expected, Suite};
use crate::compare::scores::CAUSES;
use crate::judge::{Experiment, ExperimentRuns, RunValues};
use crate::metrics::is_competing;
use crate::results::{
    BoundResult, Cell, ChangedVerdict, ExperimentReport, RowKind, Scale, SuiteBound, SuiteReport, SuiteRow, SuiteTest,
    TestResult, ValueFormat, Verdict,
};
use crate::yardsticks::{self, Oracle};
use paceline::Registry;
use paceline_netsim::plan::{MediaUse, Plan};
use paceline_netsim::records::Summary;
use paceline_netsim::sim::Simulator;
use paceline_netsim::world::World;
use paceline_scenario::{Changes, Origin, Quantity, Scenario, ScenarioError, Window, load_cases};
use paceline_units::Time;
use std::collections::{BTreeMap, BTreeSet};

/// The metrics of each test that are measured besides its bounds. The first [`OF_SCORE`] do not need a capacity.
const SUMMARY: [&str; 7] =
    ["score", CAUSES[0].1, CAUSES[1].1, CAUSES[2].1, "others_keep", "utilization", "queue_p95_ms"];
const OF_SCORE: usize = 4;

/// What is judged: a controller of the registry, or an oracle.
#[derive(Clone, Debug)]
pub struct Subject {
    pub name: String,
    pub kind: RowKind,
    pub oracle: Option<Oracle>,
}

/// The name that stands for all suites, and for all subjects.
pub const ALL: &str = "all";

/// The controllers that are judged if none are named: one of each family of today.
const USUAL: [&str; 3] = ["googcc", "scream-v2", "nada"];

impl Subject {
    /// Returns the subjects of these names, which the caller has checked: controllers and oracles, or [`ALL`]. Without names, they are
    /// one controller of each family of today.
    pub fn named(names: &[String], registry: &Registry) -> Vec<Self> {
        if names.iter().any(|name| name == ALL) {
            return Self::all(registry);
        }
        let one = |name: &str| Oracle::find(name).map_or_else(|| Self::controller(name, registry), Self::oracle);
        match names {
            [] => USUAL.map(one).to_vec(),
            names => names.iter().map(|name| one(name)).collect(),
        }
    }

    /// Returns a controller of the registry.
    pub fn controller(name: impl Into<String>, registry: &Registry) -> Self {
        let name = name.into();
        Self { kind: yardsticks::row_kind(&name, registry), name, oracle: None }
    }

    pub fn oracle(oracle: Oracle) -> Self {
        Self { name: oracle.name().to_owned(), kind: RowKind::Oracle, oracle: Some(oracle) }
    }

    /// Returns every controller of the registry, then the faulty ones, then the oracles. `fixed` is left out: `faulty-constant` is
    /// one.
    pub fn all(registry: &Registry) -> Vec<Self> {
        let own = registry.iter().map(|entry| entry.name());
        let own = own.filter(|name| *name != "fixed" && Oracle::find(name).is_none());
        own.map(|name| Self::controller(name, registry)).chain(Oracle::ALL.map(Self::oracle)).collect()
    }

    /// Loads a scenario for runs under this subject; `None` for an oracle that does not apply to its path. The registry has the
    /// oracle, see [`Oracle::add_all`].
    pub fn scenario(
        &self,
        origin: &Origin,
        changes: &Changes,
        registry: &Registry,
    ) -> Result<Option<Scenario>, ScenarioError> {
        let under = |controller| crate::load(origin, &Changes { controller, ..changes.clone() }, registry);
        let replaced = under(Some(self.name.clone()))?;
        match self.oracle {
            None => Ok(Some(replaced)),
            Some(oracle) => Ok(oracle.scenario(&under(None)?, replaced)),
        }
    }

    /// Loads the cases of a scenario of a suite under this subject.
    pub(super) fn load(&self, origin: &Origin, suite: &Suite, registry: &Registry) -> Result<Loaded, ScenarioError> {
        let under = |controller: Option<&str>| {
            let controller = controller.map(str::to_owned);
            let changes = Changes { controller, settings: suite.settings.clone(), ..Changes::default() };
            load_cases(origin, &changes, crate::registries(registry))
        };
        let couples = registry.get(&self.name).is_some_and(|entry| entry.couples());
        if !couples {
            let written = under(None)?;
            if written.iter().any(|case| case.plan.coupled_flow().is_some()) {
                return Ok(Loaded::of(written, suite, false));
            }
        }
        let cases = under(Some(&self.name))?;
        let Some(oracle) = self.oracle else { return Ok(Loaded::of(cases, suite, true)) };
        let written = under(None)?;
        let apply = |(written, case): (&Scenario, Scenario)| oracle.scenario(written, case);
        let all: Option<Vec<Scenario>> = written.iter().zip(cases).map(apply).collect();
        Ok(all.map_or_else(|| Loaded::of(written, suite, false), |all| Loaded::of(all, suite, true)))
    }
}

pub(super) struct Loaded {
    pub(super) experiment: Experiment,
    /// Whether it is run. An oracle does not apply to each path, and not every controller can be coupled.
    pub(super) applies: bool,
}

impl Loaded {
    /// Creates the tests of the suite among these cases, with the cases to which their bounds refer.
    fn of(mut cases: Vec<Scenario>, suite: &Suite, applies: bool) -> Self {
        if let Some(tests) = &suite.tests {
            let all = Experiment::of(cases);
            let is_test = |case: &usize| tests.contains(&test_name(&all.cases[*case].plan));
            let mut kept: BTreeSet<usize> = (0..all.cases.len()).filter(is_test).collect();
            let mut open: Vec<usize> = kept.iter().copied().collect();
            while let Some(case) = open.pop() {
                open.extend(all.referenced_cases(case).filter(|case| kept.insert(*case)));
            }
            let is_kept = all.cases.into_iter().enumerate().filter(|(case, _)| kept.contains(case));
            cases = is_kept.map(|(_, case)| case).collect();
        }
        for case in &mut cases {
            case.remove_published("with bounds alone");
            add_summary(case);
        }
        Self { experiment: Experiment::of(cases), applies }
    }
}

/// Adds the metrics of the summary to what is measured. A bottleneck that shares a medium, such as Wi-Fi, has no capacity of its
/// own, so they say nothing of it, and without competing flows there is nothing that others keep.
fn add_summary(scenario: &mut Scenario) {
    let metrics = if yardsticks::shares_a_medium(&scenario.plan) { &SUMMARY[..OF_SCORE] } else { &SUMMARY[..] };
    let whole = Window { from: Time::ZERO, to: Time::ZERO + scenario.plan.duration };
    let has_competing = scenario.plan.flows.iter().any(is_competing);
    for (n, metric) in metrics.iter().enumerate().filter(|(_, metric)| has_competing || **metric != "others_keep") {
        scenario.references.insert(usize::MAX - n, Quantity::new(*metric, None, whole));
    }
}

pub(super) fn check(origin: &Origin, experiment: &Experiment) -> Result<(), ScenarioError> {
    let problem =
        |message: String| ScenarioError::of(&origin.name, &origin.text, format!("{}: {message}", origin.name));
    for case in &experiment.cases {
        if case.asserts.is_empty() {
            let label =
                if case.plan.case.is_empty() { "it".to_owned() } else { format!("its case {}", case.plan.case) };
            let error = problem(format!("a scenario of a suite needs bounds, and {label} has none"));
            return Err(error.help("add [[assert]] with id, metric, bounds and why"));
        }
        if let Some(bound) = case.asserts.iter().find(|a| a.why.as_ref().is_none_or(|why| why.trim().is_empty())) {
            let error = problem(format!("the bound `{}` has no reason", bound.id));
            return Err(error.help("add why = \"…\" to it: a suite states the reason of each bound"));
        }
    }
    Ok(())
}

/// Returns the document of a suite: `runs` has the runs of each subject in each scenario.
pub(super) fn report(
    (suite, seeds): (&Suite, Option<&[u64]>),
    subjects: &[Subject],
    (experiments, applies): (&[Experiment], &[bool]),
    runs: &[ExperimentRuns],
    world: &str,
) -> SuiteReport {
    let (mut tests, mut rows) = (Vec::new(), Vec::new());
    for (n, subject) in subjects.iter().enumerate() {
        let mut results = Vec::new();
        for (scenario_index, origin) in suite.scenarios.iter().enumerate() {
            let index = n * suite.scenarios.len() + scenario_index;
            let (experiment, runs) = (&experiments[index], &runs[index]);
            let report = experiment.report(runs, world);
            for (case, scenario) in experiment.cases.iter().enumerate() {
                let cells: Vec<&Cell> = report.cells.iter().filter(|cell| cell.case == scenario.plan.case).collect();
                if n == 0 {
                    tests.push(test((suite, origin), scenario, &report, &cells));
                }
                results.push(match applies[index] {
                    true => result(scenario, &runs.of(false)[case], &report.runs[case].trace_hash, &cells),
                    false => TestResult::default(),
                });
            }
        }
        rows.push(SuiteRow { controller: subject.name.clone(), kind: subject.kind, results });
    }
    let repeats = seeds.map_or(suite.repeats, |seeds| seeds.len() as u64);
    let others = seeds.filter(|seeds| !seeds.iter().copied().eq(1..=repeats)).unwrap_or_default();
    let mut report = SuiteReport {
        id: suite.id.clone(),
        title: suite.title.clone(),
        source: suite.source.clone(),
        family: suite.family.clone(),
        world: if world == Simulator.name() { String::new() } else { world.to_owned() },
        developed: suite.developed.clone(),
        repeats,
        sequential: seeds.is_none(),
        seeds: others.to_vec(),
        tests,
        rows,
        changed: Vec::new(),
        agreement: None,
    };
    if let Some(expected) =
        suite.expected.as_ref().filter(|expected| expected.is_of(&report) && report.world.is_empty())
    {
        report.changed = expected.changes(&report);
    }
    report
}

fn result(scenario: &Scenario, runs: &BTreeMap<u64, RunValues>, trace_hash: &str, cells: &[&Cell]) -> TestResult {
    let values = |metric: usize| {
        let of = scenario.references.get(&(usize::MAX - metric))?;
        let index = scenario.quantities().position(|q| q == of)?;
        runs.values().map(|run| run.values[index]).collect::<Option<Vec<f64>>>()
    };
    let mean = |metric: usize| Some(Summary::from_values(&values(metric)?)?.mean);
    TestResult {
        runs: runs.len() as u64,
        trace_hash: trace_hash.to_owned(),
        scores: values(0).unwrap_or_default(),
        lost: mean(1).zip(mean(2)).zip(mean(3)).map(|((rate, delay), freezes)| [rate, delay, freezes]),
        others_keep: mean(4),
        utilization: mean(5),
        queue_p95_ms: mean(6),
        bounds: cells.iter().map(|cell| bound_result(cell)).collect(),
    }
}

fn test(
    (suite, origin): (&Suite, &Origin),
    scenario: &Scenario,
    report: &ExperimentReport,
    cells: &[&Cell],
) -> SuiteTest {
    let bound = |(cell, assert): (&&Cell, &paceline_scenario::Assert)| SuiteBound {
        id: assert.id.clone(),
        quantity: cell.quantity(),
        metric: cell.metric.clone(),
        flow: cell.flow.clone(),
        window_s: cell.window_s,
        format: match (&cell.each, &cell.over) {
            (Some(_), _) => ValueFormat::Share,
            (None, Some(_)) => ValueFormat::Ratio,
            (None, None) => ValueFormat::Metric,
        },
        bounds: assert.bounds,
        why: assert.why.clone().unwrap_or_default(),
    };
    let mut test = SuiteTest {
        scenario: report.id.clone(),
        run: origin.argument().to_owned(),
        title: report.title.clone(),
        case: scenario.plan.case.clone(),
        media_use: media_use(&scenario.plan).unwrap_or_default().to_owned(),
        scale: None,
        bounds: cells.iter().zip(&scenario.asserts).map(bound).collect(),
    };
    let expected = suite.expected.as_ref().and_then(|expected| expected.scale.get(&test.name()));
    test.scale = expected.map(|ends| Scale::from(*ends));
    test
}

fn test_name(plan: &Plan) -> String {
    if plan.case.is_empty() { plan.id.clone() } else { format!("{} {}", plan.id, plan.case) }
}

/// Returns what the media of the first flow with a score are for.
fn media_use(plan: &Plan) -> Option<&'static str> {
    let media = plan.flows.iter().filter_map(|flow| flow.media()).find(|media| !media.is_cross_traffic)?;
    MediaUse::NAMES.into_iter().find_map(|(name, of)| (of == media.media_use).then_some(name))
}

fn bound_result(cell: &Cell) -> BoundResult {
    let judgement = cell.judgement().unwrap_or_default();
    BoundResult { measured: cell.measured, ci95: cell.ci95, pass: judgement.verdict == Verdict::Holds, judgement }
}

impl Expected {
    /// Returns the verdicts of a report as those to expect. Controllers of `before` that the report does not have keep theirs.
    pub fn of(report: &SuiteReport, before: Option<&Self>) -> Self {
        let kept = before.filter(|before| before.is_of(report)).map(|before| before.fails.clone());
        let mut fails: BTreeMap<_, _> = kept.unwrap_or_default();
        fails.extend(report.rows.iter().map(|row| (row.controller.clone(), report.failed(row).collect())));
        let scale = |(n, test): (usize, &SuiteTest)| {
            let Scale { zero, hundred } = report.scale_of_rows(n).or(test.scale)?;
            Some((test.name(), (zero, hundred)))
        };
        let scale = report.tests.iter().enumerate().filter_map(scale).collect();
        Self { repeats: report.repeats, sequential: report.sequential, fails, scale }
    }

    /// Returns whether they are of as many runs as a report, on seeds from 1.
    pub fn is_of(&self, report: &SuiteReport) -> bool {
        (self.repeats, self.sequential) == (report.repeats, report.sequential) && report.seeds.is_empty()
    }

    /// Returns the verdicts of a report that differ from these: bounds that fail now, and bounds that hold now or are gone. One that is
    /// undecided does not differ. Controllers without expected verdicts are left out.
    pub fn changes(&self, report: &SuiteReport) -> Vec<ChangedVerdict> {
        let mut changed = Vec::new();
        for row in &report.rows {
            let Some(expected) = self.fails.get(&row.controller) else { continue };
            let now: BTreeMap<String, Verdict> = report.verdicts(row).collect();
            let one = |(bound, verdict): (&String, Option<Verdict>)| ChangedVerdict {
                controller: row.controller.clone(),
                bound: bound.clone(),
                verdict,
            };
            let failed =
                now.iter().filter(|(bound, verdict)| **verdict == Verdict::Fails && !expected.contains(*bound));
            changed.extend(failed.map(|(bound, verdict)| one((bound, Some(*verdict)))));
            let met = expected.iter().map(|bound| (bound, now.get(bound).copied()));
            changed.extend(met.filter(|(_, verdict)| verdict.is_none_or(|v| v == Verdict::Holds)).map(one));
        }
        changed
    }
}
