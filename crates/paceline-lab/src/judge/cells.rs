// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes a cell with a verdict for every published value and bound, from the values of runs.

use super::experiment::Experiment;
use super::tolerance::tolerance;
use super::values::{ExperimentRuns, RunValues, Values};
use crate::metrics;
use crate::results::{
    Assertion, Assumed, CaseRuns, Cell, CellVerdict, ChangeResult, Check, Denominator, EachWindow, ExperimentReport,
    Judgement, Looks, Verdict,
};
use crate::run_result::{Expectation, RunResult, windows};
use paceline_netsim::records::{Label, MetricKind, Statistic, Summary};
use paceline_scenario::{Assert, Constant, Expect, IncludeIf, Quantity, Reference, Remark, Scenario};
use std::collections::BTreeSet;

/// The note of a cell that is not reproduced for a reason that nobody found.
pub const CAUSE_NOT_FOUND: &str = "cause not found";

/// The quantity of a published value or a bound, in one case.
#[derive(Clone, Copy)]
struct CellSpec<'a> {
    case: usize,
    of: &'a Quantity,
    over: Option<&'a Reference>,
    runs: Statistic,
    remark: &'a Remark,
    place: usize,
}

impl<'a> CellSpec<'a> {
    fn value(case: usize, e: &'a Expect) -> Self {
        Self {
            case,
            of: &e.quantity,
            over: e.relative_to.as_ref(),
            runs: Statistic::Mean,
            remark: &e.remark,
            place: e.index,
        }
    }

    fn bound(case: usize, a: &'a Assert) -> Self {
        Self { case, of: &a.quantity, over: a.relative_to.as_ref(), runs: a.runs, remark: &a.remark, place: a.index }
    }
}

/// Returns a cell for every published value and bound that depends only on runs of this scenario: no null sender, no ratio to
/// another case. A claim that depends on other cases is not judged.
pub fn cells_of(scenario: &Scenario, runs: &[RunResult]) -> Vec<Cell> {
    let Some(first) = runs.first() else { return Vec::new() };
    let (experiment, runs) = one_case(scenario, runs.iter().map(|run| (run.seed, run)));
    let mut cells = experiment.report(&runs, &first.world).cells;
    for cell in cells.iter_mut().filter(|c| c.published.is_none() && c.note.as_deref() == Some(CAUSE_NOT_FOUND)) {
        // Only a difference from a published value is looked into.
        cell.note = None;
    }
    for cell in cells.iter_mut().filter(|c| c.published.is_some() && c.verdict != CellVerdict::Reproduced) {
        let Some(claim) = &cell.claim else { continue };
        let bounds = || scenario.asserts.iter().filter(|a| a.id == *claim);
        if bounds().next().is_none() || !bounds().all(|a| is_of_one_case(a.relative_to.as_ref())) {
            let id = &scenario.plan.id;
            let note = format!("the claim `{claim}` depends on other cases: run `paceline reproduce {id}`");
            cell.verdict = CellVerdict::Not;
            cell.note = Some(cell.note.iter().cloned().chain([note]).collect::<Vec<_>>().join("; "));
        }
    }
    cells
}

/// Judges the bounds that depend only on runs of this scenario, and measures its published values.
pub(crate) fn judge(scenario: &Scenario, runs: &[RunResult]) -> (Vec<Assertion>, Vec<Expectation>) {
    // By position, because a caller may run a seed twice.
    let (experiment, runs) = one_case(scenario, (0..).zip(runs));
    let flow_name = |flow: Option<usize>| flow.map(|f| scenario.plan.flows[f].id.clone());
    let assertion = |a: &Assert| {
        let spec = CellSpec::bound(0, a);
        let measured = experiment.value(&runs, &spec, false);
        let judgement = experiment.judgement(&runs, &spec, &check_of_bound(a));
        Assertion {
            id: a.id.clone(),
            metric: a.quantity.metric.clone(),
            flow: flow_name(a.quantity.flow),
            stream: stream_name(scenario, &a.quantity),
            window_s: a.quantity.window.seconds(),
            each: each_window(scenario, &a.quantity),
            ratio: a.relative_to.is_some(),
            runs: a.runs,
            bounds: a.bounds,
            measured: measured.map(|v| v.mean),
            ci95: measured.map(|v| v.ci95).filter(|c| c.is_finite()),
            holds: judgement.verdict == Verdict::Holds,
            judgement,
        }
    };
    let expectation = |e: &Expect| Expectation {
        metric: e.quantity.metric.clone(),
        flow: flow_name(e.quantity.flow),
        window_s: e.quantity.window.seconds(),
        ratio: e.relative_to.is_some(),
        published: e.published,
        measured: experiment.value(&runs, &CellSpec::value(0, e), false),
    };
    let case = &experiment.cases[0];
    (case.asserts.iter().map(assertion).collect(), case.expects.iter().map(expectation).collect())
}

/// Returns an experiment of one case, without ratios to other cases, and the values of its runs by key.
fn one_case<'r>(scenario: &Scenario, runs: impl Iterator<Item = (u64, &'r RunResult)>) -> (Experiment, ExperimentRuns) {
    let windows = windows(scenario);
    let mut case = scenario.clone();
    case.expects.retain(|e| is_of_one_case(e.relative_to.as_ref()));
    case.asserts.retain(|a| is_of_one_case(a.relative_to.as_ref()));
    let of_run = |(key, run): (u64, &RunResult)| {
        let values = case.quantities().map(|quantity| run.value(scenario, &windows, quantity)).collect();
        (key, RunValues { trace_hash: run.trace_hash.clone(), values })
    };
    let runs = [vec![runs.map(of_run).collect()], Vec::new()];
    (Experiment::of(vec![case]), ExperimentRuns { runs, ..ExperimentRuns::default() })
}

fn is_of_one_case(over: Option<&Reference>) -> bool {
    !matches!(over, Some(Reference::OtherCase { .. }))
}

impl Experiment {
    pub(crate) fn report(&self, runs: &ExperimentRuns, world: &str) -> ExperimentReport {
        let mut cells = Vec::new();
        let bounds: Vec<(usize, &Assert)> = self
            .cases
            .iter()
            .enumerate()
            .flat_map(|(c, scenario)| scenario.asserts.iter().map(move |a| (c, a)))
            .collect();
        let judgement = |case: usize, a: &Assert| self.judgement(runs, &CellSpec::bound(case, a), &check_of_bound(a));
        // If a claim has bounds in the case of the value, only these decide; otherwise all of them.
        let claim_holds = |case: usize, id: &str| {
            let of_claim = || bounds.iter().filter(|(_, a)| a.id == id);
            let own = of_claim().any(|(c, _)| *c == case);
            let deciding = of_claim().filter(|(c, _)| !own || *c == case);
            Verdict::all(deciding.map(|(c, a)| judgement(*c, a).verdict)) == Verdict::Holds
        };
        for (case, scenario) in self.cases.iter().enumerate() {
            for e in &scenario.expects {
                cells.push(self.published(runs, world, case, e, &claim_holds));
            }
            for a in &scenario.asserts {
                let mut cell = self.cell(runs, world, &CellSpec::bound(case, a), &check_of_bound(a), false);
                cell.bounds = Some(a.bounds);
                cell.claim = Some(a.id.clone());
                cell.fitted = a.fitted.clone();
                cells.push(cell);
            }
        }
        let scenario = &self.cases[0];
        ExperimentReport {
            id: scenario.plan.id.clone(),
            title: scenario.plan.title.clone(),
            source: scenario.plan.source.clone(),
            assumed: self.assumed().map(assumed).collect(),
            runs: self
                .cases
                .iter()
                .zip(runs.of(false))
                .map(|(of, runs)| {
                    CaseRuns::of(&of.plan.case, runs.iter().map(|(seed, run)| (*seed, run.trace_hash.as_str())))
                })
                .collect(),
            cells,
            under: None,
            disturbed: 0,
            wall_s: runs.wall_s,
        }
    }

    /// Returns the judgement of a quantity. If too few runs are included, it has no value. An extreme of several runs that holds may fail in
    /// one of those that are left, so it is undecided before the last look.
    fn judgement(&self, runs: &ExperimentRuns, spec: &CellSpec<'_>, check: &Check) -> Judgement {
        let value = self.value(runs, spec, false).filter(|_| !self.includes_too_few(runs, spec));
        let Some(looks) = runs.looks else { return check.judge(value.as_ref()) };
        let judgement = looks.judge(check, value.as_ref());
        let has_runs_left = || looks.after(runs.of(false)[spec.case].len() as u64).is_some();
        if spec.runs != Statistic::Mean && judgement.verdict == Verdict::Holds && has_runs_left() {
            return Judgement::default();
        }
        judgement
    }

    /// Returns whether more runs may decide a case: a bound is open, and none fails. Extremes are judged after all runs.
    pub(crate) fn needs_runs(&self, runs: &ExperimentRuns, case: usize) -> bool {
        let mut needs = false;
        for a in &self.cases[case].asserts {
            let (spec, check) = (CellSpec::bound(case, a), check_of_bound(a));
            if a.runs != Statistic::Mean || self.includes_too_few(runs, &spec) {
                needs = true;
            } else if self.judgement(runs, &spec, &check).verdict == Verdict::Fails {
                return false;
            } else {
                needs |= self.may_be_decided(runs, &spec, &check);
            }
        }
        needs
    }

    /// Returns whether a quantity is undecided and more runs are not futile.
    fn may_be_decided(&self, runs: &ExperimentRuns, spec: &CellSpec<'_>, check: &Check) -> bool {
        let is_futile =
            |looks: Looks| self.value(runs, spec, false).is_some_and(|value| looks.is_futile(check, &value));
        self.judgement(runs, spec, check).verdict == Verdict::Undecided && !runs.looks.is_some_and(is_futile)
    }

    /// Returns the cases to which bounds of a case refer. They need the same seeds.
    pub(crate) fn referenced_cases(&self, case: usize) -> impl Iterator<Item = usize> {
        self.cases[case].asserts.iter().filter_map(|a| match &a.relative_to {
            Some(Reference::OtherCase { case, .. }) => Some(self.index(case)),
            _ => None,
        })
    }

    fn published(
        &self,
        runs: &ExperimentRuns,
        world: &str,
        case: usize,
        e: &Expect,
        claim_holds: &dyn Fn(usize, &str) -> bool,
    ) -> Cell {
        let spec = CellSpec::value(case, e);
        let usual = || {
            let metric = metrics::find(&e.quantity.metric).expect("it was resolved");
            tolerance(metric, e.relative_to.is_some(), e.published)
        };
        let tolerance = e.tolerance.unwrap_or_else(usual);
        let claim = e.claim.as_ref().is_some_and(|id| claim_holds(case, id));
        let check = Check::Published { value: e.published, tolerance };
        let mut cell = self.cell(runs, world, &spec, &check, claim);
        cell.published = Some(e.published);
        cell.tolerance = Some(tolerance);
        cell.claim = e.claim.clone();
        cell.fitted = e.fitted.clone();
        cell
    }

    /// Returns a cell without the fields that only published values or only bounds have; `claim`: whether the claim that the value
    /// supports holds.
    fn cell(&self, runs: &ExperimentRuns, world: &str, spec: &CellSpec<'_>, check: &Check, claim: bool) -> Cell {
        let scenario = &self.cases[spec.case];
        let value = self.value(runs, spec, false);
        let null = self.value(runs, spec, true);
        let judgement = self.judgement(runs, spec, check);
        let verdict = match judgement.verdict {
            Verdict::Holds => CellVerdict::Reproduced,
            _ if claim && !self.includes_too_few(runs, spec) => CellVerdict::Direction,
            _ => CellVerdict::Not,
        };
        let name = |scenario: &Scenario, flow: Option<usize>| flow.map(|f| scenario.plan.flows[f].id.clone());
        let over = spec.over.map(|over| {
            let (scenario, quantity) = match over {
                Reference::SameRun(quantity) => (scenario, quantity),
                Reference::OtherCase { case, key } => {
                    let scenario = &self.cases[self.index(case)];
                    (scenario, &scenario.references[key])
                }
            };
            Denominator {
                metric: quantity.metric.clone(),
                case: scenario.plan.case.clone(),
                flow: name(scenario, quantity.flow),
                window_s: quantity.window.seconds(),
            }
        });
        let mut cell = Cell {
            metric: spec.of.metric.clone(),
            controller: controllers(scenario, spec.of.flow),
            world: world.to_owned(),
            case: scenario.plan.case.clone(),
            flow: name(scenario, spec.of.flow),
            stream: stream_name(scenario, spec.of),
            window_s: spec.of.window.seconds(),
            each: each_window(scenario, spec.of),
            runs: spec.runs,
            over,
            measured: value.map(|v| v.mean),
            ci95: value.map(|v| v.ci95).filter(|c| c.is_finite()),
            n: self.included_count(runs, spec),
            left_out: self
                .rules(spec)
                .next()
                .map(|_| runs.of(false)[spec.case].len() - self.included_count(runs, spec)),
            null_sender: null.map(|v| v.mean),
            // The null sender needs no interval: if its mean is allowed, the value is no evidence.
            null_reproduces: null.is_some_and(|v| check.contains(v.mean)),
            verdict,
            check: Some(judgement.verdict),
            further_runs: judgement.further_runs,
            note: self.note(runs, spec).filter(|_| verdict != CellVerdict::Reproduced),
            moved: Some(ChangeResult {
                by: spec.remark.reproduced_with.clone(),
                measured: None,
                ci95: None,
                verdict: None,
            })
            .filter(|moved| verdict != CellVerdict::Reproduced && !moved.by.is_empty()),
            place: spec.place,
            ..Cell::default()
        };
        // The mean is allowed: only more runs are missing, not a cause.
        let is_close = value.is_some_and(|v| check.contains(v.mean));
        if verdict != CellVerdict::Reproduced && is_close && !self.includes_too_few(runs, spec) {
            cell.note = Some(too_few_runs(&cell));
            cell.moved = None;
        }
        cell
    }

    /// Returns why a value is not reproduced, as far as it is known. The effect of changes is added later.
    fn note(&self, runs: &ExperimentRuns, spec: &CellSpec<'_>) -> Option<String> {
        let (n, none) = (self.included_count(runs, spec), self.without_value(runs, spec));
        let missing = (none > 0).then(|| format!("no value in {none} of {n} runs"));
        let unknown = || spec.remark.reproduced_with.is_empty().then(|| CAUSE_NOT_FOUND.to_owned());
        let cause = self.too_few_included_note(runs, spec).or_else(|| spec.remark.note.clone()).or_else(unknown);
        let parts: Vec<String> = missing.into_iter().chain(cause).collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    /// Returns the note that too few runs are included, with the rule of the case that excludes most.
    fn too_few_included_note(&self, runs: &ExperimentRuns, spec: &CellSpec<'_>) -> Option<String> {
        if !self.includes_too_few(runs, spec) {
            return None;
        }
        let of_case = |case: usize| &runs.of(false)[case];
        let left_out = |case: usize| of_case(case).values().filter(|run| !self.includes(case, run, false)).count();
        // For equal numbers `max_by_key` returns the last: the case of the value.
        let (case, keep) = self.rules(spec).max_by_key(|(case, _)| left_out(*case))?;
        let mut text = keep.describe(self.included_count(runs, spec), of_case(spec.case).len());
        if self.cases[spec.case].include_if.as_ref() != Some(keep) {
            text += &format!(" in {}", self.cases[case].plan.case);
        }
        Some(keep.note.as_ref().map_or(text.clone(), |note| format!("{text}: {note}")))
    }

    /// Returns the rules of included runs: of the other case of a ratio, and of the case of the value.
    fn rules<'a>(&'a self, spec: &CellSpec<'_>) -> impl Iterator<Item = (usize, &'a IncludeIf)> {
        let other = match spec.over {
            Some(Reference::OtherCase { case, .. }) => Some(self.index(case)),
            _ => None,
        };
        let keep = |case: usize| Some((case, self.cases[case].include_if.as_ref()?));
        other.into_iter().chain([spec.case]).filter_map(keep)
    }

    fn index(&self, case: &Label) -> usize {
        self.cases.iter().position(|p| p.plan.case == *case).expect("references name existing cases")
    }

    /// Returns the number of included runs, or pairs of runs.
    fn included_count(&self, runs: &ExperimentRuns, spec: &CellSpec<'_>) -> usize {
        self.values(runs, spec, false).map_or(0, |values| values.len())
    }

    fn includes_too_few(&self, runs: &ExperimentRuns, spec: &CellSpec<'_>) -> bool {
        IncludeIf::too_few(self.included_count(runs, spec), runs.of(false)[spec.case].len())
    }

    /// Returns whether a run is included. All runs of the null sender are: it lacks the state that rules refer to.
    fn includes(&self, case: usize, run: &RunValues, null: bool) -> bool {
        let scenario = &self.cases[case];
        null || scenario
            .includes_run(|of| run.values[scenario.quantities().position(|q| q == of).expect("the rule is a quantity")])
    }

    /// Returns the statistic over seeds; for a ratio, of the ratio of each seed. `None` if an included run has no value.
    fn value(&self, runs: &ExperimentRuns, spec: &CellSpec<'_>, null: bool) -> Option<Summary> {
        let values = self.values(runs, spec, null)?;
        let value = spec.runs.compute(&values.into_iter().collect::<Option<Vec<f64>>>()?)?;
        Some(runs.looks.map_or(value, |looks| looks.interval(value)))
    }

    /// Returns the number of included runs without a value.
    fn without_value(&self, runs: &ExperimentRuns, spec: &CellSpec<'_>) -> usize {
        let values = self.values(runs, spec, false).unwrap_or_default();
        values.iter().filter(|value| value.is_none()).count()
    }

    /// Returns the value of each seed with included runs.
    fn values(&self, runs: &ExperimentRuns, spec: &CellSpec<'_>, null: bool) -> Option<Values> {
        let of = |case: usize, quantity: &Quantity| {
            let case = if null { *self.null_of.get(case)? } else { case };
            let index = self.scenarios(null)[case].quantities().position(|q| q == quantity)?;
            Some((&runs.of(null)[case], index))
        };
        let counts = |case: usize, run: &RunValues| self.includes(case, run, null);
        let (own, index) = of(spec.case, spec.of)?;
        let over = match spec.over {
            None => None,
            Some(Reference::SameRun(quantity)) => Some((spec.case, of(spec.case, quantity)?)),
            Some(Reference::OtherCase { case, key }) => {
                let case = self.index(case);
                Some((case, of(case, &self.cases[case].references[key])?))
            }
        };
        let pair_counts = |(seed, run): &(&u64, &RunValues)| {
            let other = over.and_then(|(case, (runs, _))| Some((case, runs.get(*seed)?)));
            counts(spec.case, run) && other.is_none_or(|(case, run)| counts(case, run))
        };
        let value = |(seed, run): (&u64, &RunValues)| match over {
            None => run.values[index],
            Some((_, (other, reference))) => ratio(run.values[index]?, other.get(seed)?.values[reference]?),
        };
        Some(own.iter().filter(pair_counts).map(value).collect())
    }
}

/// Returns the kind of a measured value: that of the metric, or a share of windows.
pub(crate) fn kind_of(metric: &str, share_of_windows: bool) -> MetricKind {
    match metrics::find(metric) {
        Some(metric) if !share_of_windows => metric.kind,
        Some(_) => MetricKind::Share,
        None => MetricKind::Number,
    }
}

fn check_of_bound(a: &Assert) -> Check {
    Check::bound(kind_of(&a.quantity.metric, a.quantity.each.is_some()), a.relative_to.is_some(), a.bounds)
}

/// Returns one number over another, if that is finite.
fn ratio(value: f64, over: f64) -> Option<f64> {
    Some(value / over).filter(|ratio| ratio.is_finite())
}

/// Returns the note on a mean within the tolerance whose interval is too wide.
fn too_few_runs(cell: &Cell) -> String {
    let kind = match &cell.over {
        None => kind_of(&cell.metric, cell.each.is_some()),
        Some(_) => MetricKind::Number,
    };
    match cell.ci95 {
        Some(ci95) => format!("too few runs: ± {}", kind.show(ci95)),
        None => "too few runs: one has no interval".to_owned(),
    }
}

fn stream_name(scenario: &Scenario, of: &Quantity) -> Option<String> {
    Some(scenario.plan.flows[of.flow?].media()?.streams[of.stream?].id.clone())
}

/// Returns what results say of the windows of a quantity.
fn each_window(scenario: &Scenario, of: &Quantity) -> Option<EachWindow> {
    let each = of.each.as_ref()?;
    let name = |over: &Quantity| {
        let metric = (over.metric != of.metric).then(|| over.metric.clone());
        let flow = over.flow.filter(|_| over.flow != of.flow).map(|flow| scenario.plan.flows[flow].id.clone());
        metric.into_iter().chain(flow).collect::<Vec<_>>().join(" ")
    };
    let over = each.relative_to.as_deref().map(name);
    Some(EachWindow { of: each.of.to_string(), windows: each.windows.len(), bounds: each.bounds, over })
}

/// Returns the controller of the flow or, for a whole run, those of its media flows.
fn controllers(scenario: &Scenario, flow: Option<usize>) -> String {
    let flows = &scenario.plan.flows;
    if let Some(flow) = flow {
        return flows[flow].control().to_owned();
    }
    let media: BTreeSet<&str> = flows.iter().filter_map(|f| Some(f.media()?.controller.name.as_str())).collect();
    media.into_iter().collect::<Vec<_>>().join(",")
}

pub fn assumed(constant: &Constant) -> Assumed {
    let Constant { id, key, value, why, only, .. } = constant.clone();
    Assumed { id, key, value, why, only }
}
