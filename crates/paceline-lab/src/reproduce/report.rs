//! What a reproduction says: cells, experiments, tallies.

use super::Verdict;
use super::runs::Run;
use crate::label::Label;
use crate::plan::Constant;
use crate::stats::{Statistic, Summary};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// One experiment's verdicts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ExperimentReport {
    /// Scenario id.
    pub id: String,
    /// A line on it.
    pub title: String,
    /// The paper and the place in it; empty: the scenario does not say.
    #[serde(default)]
    pub source: String,
    /// What is assumed in it because no source gives it.
    pub assumed: Vec<Assumed>,
    /// The runs of each case.
    pub runs: Vec<CaseRuns>,
    /// A cell for each published value and bound of each case.
    pub cells: Vec<Cell>,
    /// What its media flows are under, in a world that has controllers of its own; none: what the scenario says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub under: Option<String>,
    /// How many of its runs the machine disturbed, however often they were repeated.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub disturbed: usize,
    /// Seconds of real time that its runs took, one after the other; nothing that is kept depends on it.
    #[serde(skip)]
    pub wall_s: f64,
}

/// The runs of one case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaseRuns {
    /// Which case.
    pub case: Label,
    /// How many, on seeds from 1.
    pub n: usize,
    /// One hash over the trace hashes of all, 16 hexadecimal digits.
    pub trace_hash: String,
}

/// An assumed constant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    /// Which number of several runs it is.
    #[serde(default)]
    pub runs: Statistic,
    /// What it is divided by, if it is a ratio.
    pub over: Option<OverCell>,
    /// What was published; none: it is a bound.
    pub published: Option<f64>,
    /// Lowest and highest mean allowed, of a bound.
    #[serde(deserialize_with = "crate::json::some_bounds")]
    pub bounds: Option<(f64, f64)>,
    /// How far the measured mean may lie from the published value.
    pub tolerance: Option<f64>,
    /// The mean over runs; none if any run has no value.
    pub measured: Option<f64>,
    /// Half-width of its 95 % interval; none for one run.
    pub ci95: Option<f64>,
    /// How many runs, or pairs of runs, of a ratio between cases.
    pub n: usize,
    /// How many more there were that do not count by what the scenario keeps; none: it keeps all.
    #[serde(default)]
    pub left_out: Option<usize>,
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
    /// What another world comes to, where this one was laid beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<BesideCell>,
    /// What it comes to under the changes that are said to move it into tolerance, where it is not reproduced.
    pub moved: Option<Moved>,
    /// Its place among the values and bounds of the scenario file, to find it again where a change moved its window.
    #[serde(skip)]
    pub(super) place: usize,
}

/// A cell in another world.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BesideCell {
    /// World.
    pub world: String,
    /// The controllers of the media flows in question.
    pub controller: String,
    /// The mean over runs; none if any run has no value.
    pub measured: Option<f64>,
    /// Half-width of its 95 % interval; none for one run.
    pub ci95: Option<f64>,
    /// How many runs.
    pub n: usize,
    /// What became of it there.
    pub verdict: Verdict,
}

/// A cell under changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Moved {
    /// The `--set` changes.
    pub by: Vec<String>,
    /// The mean over as many runs.
    pub measured: Option<f64>,
    /// Half-width of its 95 % interval.
    pub ci95: Option<f64>,
    /// The verdict that this would be; none: it was not run.
    pub verdict: Option<Verdict>,
}

/// What a cell's value is divided by.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The experiments.
    pub experiments: Vec<ExperimentReport>,
    /// How many of which.
    pub summary: Tallies,
}

/// Cells by verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// All.
    pub cells: usize,
    /// Reproduced.
    pub reproduced: usize,
    /// Not, but the claim holds.
    pub direction: usize,
    /// Neither.
    pub not: usize,
    /// Not run yet; these are not among `cells`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub not_run: usize,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Cells by verdict, with and without those that the null sender reproduces too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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

impl Report {
    /// Of these, in this order.
    pub fn of(experiments: Vec<ExperimentReport>) -> Self {
        let summary = tally(&experiments);
        Self { experiments, summary }
    }
}

impl ExperimentReport {
    /// What it is an experiment of: its id up to the slash.
    pub fn paper(&self) -> &str {
        self.id.split_once('/').map_or(&self.id, |(paper, _)| paper)
    }

    /// How many runs were made of each case, on seeds from 1; those that do not count are among them.
    pub(super) fn made(&self) -> u64 {
        self.runs.first().map_or(0, |runs| runs.n as u64)
    }
}

impl CaseRuns {
    /// Of a value that takes no run.
    pub(super) fn of_value(case: &Label, value: Option<f64>) -> Self {
        let bits = value.map_or(0, f64::to_bits).to_le_bytes();
        Self { case: case.clone(), n: 0, trace_hash: format!("{:016x}", xxhash_rust::xxh3::xxh3_64(&bits)) }
    }

    pub(super) fn of(case: &Label, runs: &BTreeMap<u64, Run>) -> Self {
        let hashes: String = runs.iter().map(|(seed, run)| format!("{seed} {}\n", run.trace_hash)).collect();
        let trace_hash = format!("{:016x}", xxhash_rust::xxh3::xxh3_64(hashes.as_bytes()));
        Self { case: case.clone(), n: runs.len(), trace_hash }
    }
}

impl Assumed {
    /// What is told of a constant.
    pub(crate) fn of(constant: &Constant) -> Self {
        let Constant { id, key, value, why, .. } = constant.clone();
        Self { id, key, value, why }
    }
}

impl Cell {
    /// What is measured: the metric, which number of several runs, and what it is divided by.
    pub fn quantity(&self) -> String {
        let metric = match self.runs {
            Statistic::Mean => self.metric.clone(),
            extreme => format!("{} {}", extreme.name(), self.metric),
        };
        let Some(over) = &self.over else { return metric };
        let mut other = Vec::new();
        if over.metric != self.metric {
            other.push(over.metric.clone());
        }
        if over.case != self.case {
            other.push(over.case.to_string());
        }
        if over.flow != self.flow {
            other.extend(over.flow.clone());
        }
        if over.window_s != self.window_s {
            other.push(format!("{} to {} s", over.window_s.0, over.window_s.1));
        }
        format!("{metric} over {}", other.join(" "))
    }

    /// Whether another is of the same value or bound of the same case.
    pub(super) fn is_of_the_same(&self, other: &Self) -> bool {
        (&self.case, self.place) == (&other.case, other.place)
    }

    /// Says which command moves it into tolerance, or does not, in this many runs of each case.
    pub(super) fn complete_note(&mut self, experiment: &str, made: u64) {
        let Some(moved) = &self.moved else { return };
        let case: String = self.case.pairs().map(|(name, value)| format!(" --case '{name}={value}'")).collect();
        let sets: String = moved.by.iter().map(|change| format!(" --set '{change}'")).collect();
        let does = match moved.verdict {
            Some(Verdict::Reproduced) => "moved",
            Some(_) => "not moved",
            None => "has no value any more, so it is not moved",
        };
        let command = format!("`paceline run {experiment}{case} --repeats {made}{sets}`");
        let note = self.note.as_ref().map_or(String::new(), |note| format!("{note}; "));
        self.note = Some(format!("{note}{does} into tolerance by {command}"));
    }

    /// What was measured, as far as a verdict asks.
    pub(super) fn summary(&self) -> Option<Summary> {
        let ci95 = self.ci95.unwrap_or(f64::INFINITY);
        Some(Summary { mean: self.measured?, std: 0.0, ci95, n: self.n })
    }
}

/// How many of which.
pub fn tally<'a>(reports: impl IntoIterator<Item = &'a ExperimentReport>) -> Tallies {
    let mut tallies = Tallies::default();
    for report in reports {
        // By claim: whether it holds, and whether it does under the null sender.
        let mut claims: BTreeMap<&str, (bool, bool)> = BTreeMap::new();
        let not_run: BTreeSet<&str> =
            report.cells.iter().filter(|c| c.verdict == Verdict::NotRun).filter_map(|c| c.claim.as_deref()).collect();
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
        claims.retain(|id, _| !not_run.contains(id));
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
        self.cells += usize::from(verdict != Verdict::NotRun);
        *match verdict {
            Verdict::Reproduced => &mut self.reproduced,
            Verdict::Direction => &mut self.direction,
            Verdict::Not => &mut self.not,
            Verdict::NotRun => &mut self.not_run,
        } += 1;
    }
}
