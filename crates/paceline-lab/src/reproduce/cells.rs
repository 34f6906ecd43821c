//! From what runs came to, to a cell for every published value and bound.

use super::report::{Assumed, CaseRuns, Cell, ExperimentReport, Moved, OverCell};
use super::runs::{Measured, Run, Values};
use super::verdict::{comes_close, keeps, of_value};
use super::{Experiment, Verdict, tolerance};
use crate::label::Label;
use crate::metrics::{self, Kind};
use crate::plan::{Assert, Expect, Keep, Plan, Quantity, Reference, Remark};
use crate::run::{RunResult, ratio, windows};
use crate::stats::{Statistic, Summary};
use std::collections::BTreeSet;

/// A published value or a bound of one case.
#[derive(Clone, Copy)]
struct Asked<'a> {
    case: usize,
    of: &'a Quantity,
    over: Option<&'a Reference>,
    runs: Statistic,
    remark: &'a Remark,
    place: usize,
}

impl<'a> Asked<'a> {
    fn value(case: usize, e: &'a Expect) -> Self {
        Self { case, of: &e.of, over: e.over.as_ref(), runs: Statistic::Mean, remark: &e.remark, place: e.place }
    }

    fn bound(case: usize, a: &'a Assert) -> Self {
        Self { case, of: &a.of, over: a.over.as_ref(), runs: a.runs, remark: &a.remark, place: a.place }
    }
}

/// A cell for every published value and bound that runs of one plan decide alone: no null sender, no ratio to another
/// case. A value whose claim rests on other cases gets no verdict from it.
pub fn cells_of(plan: &Plan, runs: &[RunResult]) -> Vec<Cell> {
    let (Some(first), windows) = (runs.first(), windows(plan)) else { return Vec::new() };
    let alone = |over: &Option<Reference>| !matches!(over, Some(Reference::Elsewhere { .. }));
    let mut kept = plan.clone();
    kept.expects.retain(|e| alone(&e.over));
    kept.asserts.retain(|a| alone(&a.over));
    let of_run = |run: &RunResult| {
        let values = kept.quantities().map(|quantity| run.value(plan, &windows, quantity)).collect();
        (run.seed, Run { trace_hash: run.trace_hash.clone(), values })
    };
    let measured = Measured { runs: [vec![runs.iter().map(of_run).collect()], Vec::new()], ..Measured::default() };
    let mut cells = Experiment::of(vec![kept]).report(&measured, &first.world).cells;
    for cell in cells.iter_mut().filter(|c| c.published.is_some() && c.verdict != Verdict::Reproduced) {
        let Some(claim) = &cell.claim else { continue };
        let bounds = || plan.asserts.iter().filter(|a| a.id == *claim);
        if bounds().next().is_none() || !bounds().all(|a| alone(&a.over)) {
            let told = format!("the claim `{claim}` rests on other cases: `paceline reproduce {}` judges it", plan.id);
            cell.verdict = Verdict::Not;
            cell.note = Some(cell.note.iter().cloned().chain([told]).collect::<Vec<_>>().join("; "));
        }
    }
    cells
}

impl Experiment {
    /// A cell for every published value and bound.
    pub(super) fn report(&self, measured: &Measured, world: &str) -> ExperimentReport {
        let mut cells = Vec::new();
        let bounds: Vec<(usize, &Assert)> =
            self.cases.iter().enumerate().flat_map(|(c, plan)| plan.asserts.iter().map(move |a| (c, a))).collect();
        let holds = |case: usize, a: &Assert, null: bool| {
            let asked = Asked::bound(case, a);
            (null || !self.keeps_too_few(measured, &asked))
                && keeps(a.bounds, self.value(measured, &asked, null).as_ref())
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
                let verdict = if holds(case, a, false) { Verdict::Reproduced } else { Verdict::Not };
                let mut cell = self.cell(measured, world, &Asked::bound(case, a), verdict);
                cell.bounds = Some(a.bounds);
                cell.claim = Some(a.id.clone());
                cell.null_reproduces = holds(case, a, true);
                cells.push(cell);
            }
        }
        let plan = &self.cases[0];
        ExperimentReport {
            id: plan.id.clone(),
            title: plan.title.clone(),
            source: plan.source.clone(),
            assumed: self.assumed().map(Assumed::of).collect(),
            runs: self
                .cases
                .iter()
                .zip(measured.of(false))
                .map(|(plan, runs)| CaseRuns::of(&plan.case, runs))
                .collect(),
            cells,
            under: None,
            disturbed: 0,
            wall_s: measured.wall_s,
        }
    }

    fn published(
        &self,
        measured: &Measured,
        world: &str,
        case: usize,
        e: &Expect,
        claim_holds: &dyn Fn(usize, &str) -> bool,
    ) -> Cell {
        let asked = Asked::value(case, e);
        let usual = || {
            let metric = metrics::find(&e.of.metric).expect("it was resolved");
            tolerance(metric, e.over.is_some(), e.published)
        };
        let tolerance = e.tolerance.unwrap_or_else(usual);
        let claim = e.claim.as_ref().is_some_and(|id| claim_holds(case, id));
        let value = |null| self.value(measured, &asked, null);
        let too_few = self.keeps_too_few(measured, &asked);
        let verdict = match too_few {
            true => Verdict::Not,
            false => of_value(e.published, tolerance, value(false).as_ref(), claim),
        };
        let mut cell = self.cell(measured, world, &asked, verdict);
        cell.published = Some(e.published);
        cell.tolerance = Some(tolerance);
        cell.claim = e.claim.clone();
        cell.null_reproduces = comes_close(e.published, tolerance, value(true).as_ref());
        // The mean is where it should be: there is no cause to be shown, only runs to be added.
        let close = comes_close(e.published, tolerance, value(false).as_ref());
        if verdict != Verdict::Reproduced && close && !too_few {
            cell.note = Some(too_few_runs(&cell));
            cell.moved = None;
        }
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
            runs: asked.runs,
            over,
            published: None,
            bounds: None,
            tolerance: None,
            measured: value.map(|v| v.mean),
            ci95: value.map(|v| v.ci95).filter(|c| c.is_finite()),
            n: self.counting(measured, asked),
            left_out: self
                .rules(asked)
                .next()
                .map(|_| measured.of(false)[asked.case].len() - self.counting(measured, asked)),
            null_sender: self.value(measured, asked, true).map(|v| v.mean),
            null_reproduces: false,
            claim: None,
            verdict,
            note: self.note(measured, asked).filter(|_| verdict != Verdict::Reproduced),
            moved: Some(Moved { by: asked.remark.moved_by.clone(), measured: None, ci95: None, verdict: None })
                .filter(|moved| verdict != Verdict::Reproduced && !moved.by.is_empty()),
            beside: None,
            place: asked.place,
        }
    }

    /// Why a value is not reproduced, as far as it is known; where a change moves it, that is said later.
    fn note(&self, measured: &Measured, asked: &Asked<'_>) -> Option<String> {
        let (n, none) = (self.counting(measured, asked), self.without_value(measured, asked));
        let missing = (none > 0).then(|| format!("no value in {none} of {n} runs"));
        let unknown = || asked.remark.moved_by.is_empty().then(|| "cause not found".to_owned());
        let cause = self.too_few_kept(measured, asked).or_else(|| asked.remark.note.clone()).or_else(unknown);
        let parts: Vec<String> = missing.into_iter().chain(cause).collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    /// That too few runs count, and why: by the rule of the case that leaves out most, where it is a ratio between two.
    fn too_few_kept(&self, measured: &Measured, asked: &Asked<'_>) -> Option<String> {
        if !self.keeps_too_few(measured, asked) {
            return None;
        }
        let runs = |case: usize| &measured.of(false)[case];
        let left_out = |case: usize| runs(case).values().filter(|run| !self.counts(case, run, false)).count();
        // Of two that leave out as many `max_by_key` takes the last: the value's own case.
        let (case, keep) = self.rules(asked).max_by_key(|(case, _)| left_out(*case))?;
        let told = keep.told(self.counting(measured, asked), runs(asked.case).len());
        let same = self.cases[asked.case].keep.as_ref() == Some(keep);
        let told = if same { told } else { format!("{told} in {}", self.cases[case].case) };
        Some(keep.note.as_ref().map_or(told.clone(), |note| format!("{told}: {note}")))
    }

    /// What is asked of runs, by case: of the other case of a ratio, and of the value's own.
    fn rules<'a>(&'a self, asked: &Asked<'_>) -> impl Iterator<Item = (usize, &'a Keep)> {
        let other = match asked.over {
            Some(Reference::Elsewhere { case, .. }) => Some(self.index(case)),
            _ => None,
        };
        let keep = |case: usize| Some((case, self.cases[case].keep.as_ref()?));
        other.into_iter().chain([asked.case]).filter_map(keep)
    }

    fn index(&self, case: &Label) -> usize {
        self.cases.iter().position(|p| p.case == *case).expect("references are to cases that there are")
    }

    /// How many runs count, or pairs of runs.
    fn counting(&self, measured: &Measured, asked: &Asked<'_>) -> usize {
        self.values(measured, asked, false).map_or(0, |values| values.len())
    }

    /// Whether too few runs count to show anything.
    fn keeps_too_few(&self, measured: &Measured, asked: &Asked<'_>) -> bool {
        Keep::too_few(self.counting(measured, asked), measured.of(false)[asked.case].len())
    }

    /// Whether this run of a case counts. Of the null sender all do: it has nothing that it could be asked for.
    fn counts(&self, case: usize, run: &Run, null: bool) -> bool {
        let plan = &self.cases[case];
        null || plan.counts(|of| run.values[plan.quantities().position(|q| q == of).expect("it is asked for")])
    }

    /// What was asked for, over seeds; of a ratio, the ratio of each seed. None if any run that counts has no value.
    fn value(&self, measured: &Measured, asked: &Asked<'_>, null: bool) -> Option<Summary> {
        let values = self.values(measured, asked, null)?;
        asked.runs.of(&values.into_iter().collect::<Option<Vec<f64>>>()?)
    }

    /// How many runs have no value of it.
    fn without_value(&self, measured: &Measured, asked: &Asked<'_>) -> usize {
        let values = self.values(measured, asked, false).unwrap_or_default();
        values.iter().filter(|value| value.is_none()).count()
    }

    /// The value of each seed whose runs count.
    fn values(&self, measured: &Measured, asked: &Asked<'_>, null: bool) -> Option<Values> {
        let of = |case: usize, quantity: &Quantity| {
            let case = if null { *self.null_of.get(case)? } else { case };
            let index = self.plans(null)[case].quantities().position(|q| q == quantity)?;
            Some((&measured.of(null)[case], index))
        };
        let counts = |case: usize, run: &Run| self.counts(case, run, null);
        let (own, index) = of(asked.case, asked.of)?;
        let over = match asked.over {
            None => None,
            Some(Reference::Here(quantity)) => Some((asked.case, of(asked.case, quantity)?)),
            Some(Reference::Elsewhere { case, key }) => {
                let case = self.index(case);
                Some((case, of(case, &self.cases[case].references[key])?))
            }
        };
        let pair_counts = |(seed, run): &(&u64, &Run)| {
            let other = over.and_then(|(case, (runs, _))| Some((case, runs.get(*seed)?)));
            counts(asked.case, run) && other.is_none_or(|(case, run)| counts(case, run))
        };
        let value = |(seed, run): (&u64, &Run)| match over {
            None => run.values[index],
            Some((_, (other, reference))) => ratio(run.values[index]?, other.get(seed)?.values[reference]?),
        };
        Some(own.iter().filter(pair_counts).map(value).collect())
    }
}

/// The interval of a mean that lies within the tolerance is too wide.
fn too_few_runs(cell: &Cell) -> String {
    let kind = match (&cell.over, metrics::find(&cell.metric)) {
        (None, Some(metric)) => metric.kind,
        _ => Kind::Number,
    };
    match cell.ci95 {
        Some(ci95) => format!("too few runs: ± {}", kind.show(ci95)),
        None => "too few runs: one has no interval".to_owned(),
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
