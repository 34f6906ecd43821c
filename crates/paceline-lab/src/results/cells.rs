// SPDX-License-Identifier: MIT OR Apache-2.0
//! The documents of a reproduction: cells, experiments, counts.

use crate::results::{Conclusion, Judgement, StoreError, Verdict, files};
use paceline_netsim::records::{Label, Statistic, Summary};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ExperimentReport {
    pub id: String,
    pub title: String,
    /// The paper and the place in it; empty if the scenario has no source.
    #[serde(default)]
    pub source: String,
    pub assumed: Vec<Assumed>,
    pub runs: Vec<CaseRuns>,
    /// A cell for each published value and bound of each case.
    pub cells: Vec<Cell>,
    /// Controllers of its media flows, in a world with its own controllers; `None` for those of the scenario.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub under: Option<String>,
    /// Number of runs that other load of the host disturbed in every attempt.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub disturbed: usize,
    /// Sum of the wall times of its runs, s. Not stored.
    #[serde(skip)]
    pub wall_s: f64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaseRuns {
    pub case: Label,
    /// Number of runs, on seeds from 1.
    pub n: usize,
    /// Hash over all trace hashes, 16 hexadecimal digits.
    pub trace_hash: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Assumed {
    pub id: String,
    /// The scenario key.
    pub key: String,
    pub value: String,
    pub why: String,
    /// The experiment and the case to which it is limited, such as `fig11 threshold=static`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    pub metric: String,
    pub controller: String,
    pub world: String,
    pub case: Label,
    /// Flow, for a metric of a flow.
    pub flow: Option<String>,
    /// Stream, for a metric of a stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<String>,
    pub window_s: (f64, f64),
    /// The bounds of each of several windows, for a share of windows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub each: Option<EachWindow>,
    #[serde(default)]
    pub runs: Statistic,
    pub over: Option<Denominator>,
    /// The published value; `None` for a bound.
    pub published: Option<f64>,
    /// Lowest and highest allowed mean, for a bound.
    #[serde(deserialize_with = "paceline_netsim::records::json::some_bounds")]
    pub bounds: Option<(f64, f64)>,
    /// Largest allowed distance of the measured mean to the published value.
    pub tolerance: Option<f64>,
    /// The mean over runs; `None` if a run has no value.
    pub measured: Option<f64>,
    /// Half-width of its 95 % interval; `None` for one run.
    pub ci95: Option<f64>,
    /// Number of runs; for a ratio between cases, of pairs.
    pub n: usize,
    /// Number of runs that the scenario excludes; `None` if it includes all.
    #[serde(default)]
    pub left_out: Option<usize>,
    pub null_sender: Option<f64>,
    /// Whether the null sender's mean is within the tolerance or bounds, too. Such a cell is no evidence.
    pub null_reproduces: bool,
    /// The constant of the scenario that was chosen by a sweep of this value or bound. Such a cell is no evidence either.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fitted: Option<String>,
    /// The claim that it supports; for a bound, its id.
    pub claim: Option<String>,
    /// The verdict in the words of reproductions.
    pub verdict: CellVerdict,
    /// The verdict on the measured value alone; `None` if no run was made.
    #[serde(default)]
    pub check: Option<Verdict>,
    /// See [`Judgement::further_runs`].
    #[serde(default)]
    pub further_runs: Option<u64>,
    /// Explanation, where it is not reproduced.
    pub note: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<OtherWorldCell>,
    /// The cell with the changes that should move it into tolerance, where it is not reproduced.
    pub moved: Option<ChangeResult>,
    /// Its index among the values and bounds of the scenario file, which identifies it if a change moves its window.
    #[serde(skip)]
    pub place: usize,
}

/// Bounds in each of several windows. The measured value is the share of windows in which they hold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EachWindow {
    /// The length of a window, or `change`: from one change of the path to the next.
    pub of: String,
    pub windows: usize,
    /// Lowest and highest allowed value in a window.
    #[serde(deserialize_with = "paceline_netsim::records::json::bounds")]
    pub bounds: (f64, f64),
    /// The quantity of the same window by which the metric is divided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OtherWorldCell {
    pub world: String,
    pub controller: String,
    /// The mean over runs; `None` if a run has no value.
    pub measured: Option<f64>,
    /// Half-width of its 95 % interval; `None` for one run.
    pub ci95: Option<f64>,
    pub n: usize,
    pub verdict: CellVerdict,
}

/// A cell with changes to the scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChangeResult {
    /// The `--set` changes.
    pub by: Vec<String>,
    /// The mean over the same seeds.
    pub measured: Option<f64>,
    /// Half-width of its 95 % interval.
    pub ci95: Option<f64>,
    /// The verdict; `None` if it was not run.
    pub verdict: Option<CellVerdict>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Denominator {
    pub metric: String,
    pub case: Label,
    pub flow: Option<String>,
    pub window_s: (f64, f64),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    pub experiments: Vec<ExperimentReport>,
    /// The conclusions of papers whose experiments were run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conclusions: Vec<Conclusion>,
    pub summary: VerdictSummary,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerdictCounts {
    /// All cells that were run.
    pub cells: usize,
    pub reproduced: usize,
    /// Not reproduced, but the claim holds.
    pub direction: usize,
    /// Neither.
    pub not: usize,
    /// Not run yet; not included in `cells`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub not_run: usize,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Numbers of cells by verdict, with and without those that the null sender reproduces too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerdictSummary {
    /// Every cell, bounds included.
    #[serde(flatten)]
    pub all: VerdictCounts,
    /// Those of them that the null sender does not reproduce.
    pub without_null: VerdictCounts,
    pub published: VerdictCounts,
    /// Those of them that the null sender does not reproduce.
    pub published_without_null: VerdictCounts,
    /// Claims. A claim holds if all bounds with its id do.
    pub claims: usize,
    pub claims_held: usize,
    /// Claims with a bound that is evidence.
    pub claims_without_null: usize,
    /// Those of them that hold.
    pub claims_held_without_null: usize,
}

impl Report {
    pub fn of(experiments: Vec<ExperimentReport>) -> Self {
        let summary = count_verdicts(&experiments);
        Self { experiments, conclusions: Vec::new(), summary }
    }
}

impl ExperimentReport {
    /// Returns whether a claim fails. One that is undecided does not.
    pub fn fails(&self) -> bool {
        self.cells.iter().any(|cell| cell.published.is_none() && cell.check == Some(Verdict::Fails))
    }

    /// Returns its paper: the id up to the slash.
    pub fn paper(&self) -> &str {
        self.id.split_once('/').map_or(&self.id, |(paper, _)| paper)
    }

    /// Returns the number of runs of each case, on seeds from 1, with those that the scenario excludes.
    pub fn runs_per_case(&self) -> u64 {
        self.runs.first().map_or(0, |runs| runs.n as u64)
    }
}

impl CaseRuns {
    /// Returns the summary of a value that needs no run.
    pub fn of_value(case: &Label, value: Option<f64>) -> Self {
        let bits = value.map_or(0, f64::to_bits).to_le_bytes();
        Self { case: case.clone(), n: 0, trace_hash: format!("{:016x}", xxhash_rust::xxh3::xxh3_64(&bits)) }
    }

    /// Returns the summary of runs, given as seed and trace hash in the order of the seeds.
    pub fn of<'a>(case: &Label, runs: impl ExactSizeIterator<Item = (u64, &'a str)>) -> Self {
        let n = runs.len();
        let hashes: String = runs.map(|(seed, hash)| format!("{seed} {hash}\n")).collect();
        let trace_hash = format!("{:016x}", xxhash_rust::xxh3::xxh3_64(hashes.as_bytes()));
        Self { case: case.clone(), n, trace_hash }
    }
}

impl EachWindow {
    pub fn describe(&self, metric: &str) -> String {
        let over = self.over.as_ref().map_or(String::new(), |over| format!(" over {over}"));
        let windows = match self.of.as_str() {
            "change" => "spans between changes".to_owned(),
            length => format!("windows of {length}"),
        };
        let bounds = match self.bounds {
            (low, f64::INFINITY) => format!("of at least {low}"),
            (f64::NEG_INFINITY, high) => format!("of at most {high}"),
            (low, high) => format!("from {low} to {high}"),
        };
        format!("share of {} {windows} with {metric}{over} {bounds}", self.windows)
    }
}

impl Cell {
    /// Describes the measured quantity: metric, statistic and denominator.
    pub fn quantity(&self) -> String {
        let stream = self.stream.as_ref().map_or(String::new(), |stream| format!(" of stream {stream}"));
        let metric = self.runs.qualify(&self.metric) + &stream;
        if let Some(each) = &self.each {
            return each.describe(&metric);
        }
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

    /// Returns whether both cells have the same value or bound of the same case.
    pub fn is_same_quantity(&self, other: &Self) -> bool {
        (&self.case, self.place) == (&other.case, other.place)
    }

    /// Adds the command with the tried changes to the note, and whether it moves the cell into tolerance.
    pub fn note_change(&mut self, experiment: &str, repeats: u64) {
        let Some(moved) = &self.moved else { return };
        let case: String = self.case.pairs().map(|(name, value)| format!(" --case '{name}={value}'")).collect();
        let sets: String = moved.by.iter().map(|change| format!(" --set '{change}'")).collect();
        let does = match moved.verdict {
            Some(CellVerdict::Reproduced) => "moved",
            Some(_) => "not moved",
            None => "has no value any more, so it is not moved",
        };
        let command = format!("`paceline run {experiment}{case} --repeats {repeats}{sets}`");
        let note = self.note.as_ref().map_or(String::new(), |note| format!("{note}; "));
        self.note = Some(format!("{note}{does} into tolerance by {command}"));
    }

    /// Returns whether the cell says anything about the controller: the null sender does not reproduce it, and no constant was
    /// fitted to it.
    pub fn is_evidence(&self) -> bool {
        !self.null_reproduces && self.fitted.is_none()
    }

    /// Returns the judgement of the measured value; `None` if no run was made.
    pub fn judgement(&self) -> Option<Judgement> {
        Some(Judgement { verdict: self.check?, further_runs: self.further_runs })
    }

    pub fn summary(&self) -> Option<Summary> {
        let ci95 = self.ci95.unwrap_or(f64::INFINITY);
        Some(Summary { mean: self.measured?, std: 0.0, ci95, n: self.n })
    }
}

pub fn count_verdicts<'a>(reports: impl IntoIterator<Item = &'a ExperimentReport>) -> VerdictSummary {
    let mut counts = VerdictSummary::default();
    for report in reports {
        // By claim: whether it holds, and whether none of its bounds is evidence.
        let mut claims: BTreeMap<&str, (bool, bool)> = BTreeMap::new();
        let not_run: BTreeSet<&str> = report
            .cells
            .iter()
            .filter(|c| c.verdict == CellVerdict::NotRun)
            .filter_map(|c| c.claim.as_deref())
            .collect();
        for cell in &report.cells {
            counts.all.count(cell.verdict);
            if cell.is_evidence() {
                counts.without_null.count(cell.verdict);
            }
            match (&cell.published, &cell.claim) {
                (Some(_), _) => {
                    counts.published.count(cell.verdict);
                    if cell.is_evidence() {
                        counts.published_without_null.count(cell.verdict);
                    }
                }
                (None, Some(id)) => {
                    let claim = claims.entry(id).or_insert((true, true));
                    claim.0 &= cell.verdict == CellVerdict::Reproduced;
                    claim.1 &= !cell.is_evidence();
                }
                (None, None) => {}
            }
        }
        claims.retain(|id, _| !not_run.contains(id));
        for (held, null) in claims.into_values() {
            counts.claims += 1;
            counts.claims_held += usize::from(held);
            counts.claims_without_null += usize::from(!null);
            counts.claims_held_without_null += usize::from(held && !null);
        }
    }
    counts
}

impl VerdictCounts {
    fn count(&mut self, verdict: CellVerdict) {
        self.cells += usize::from(verdict != CellVerdict::NotRun);
        *match verdict {
            CellVerdict::Reproduced => &mut self.reproduced,
            CellVerdict::Direction => &mut self.direction,
            CellVerdict::Not => &mut self.not,
            CellVerdict::NotRun => &mut self.not_run,
        } += 1;
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CellVerdict {
    /// The check of the published value or bound holds.
    Reproduced,
    /// It does not, but the claim that the value supports holds.
    Direction,
    /// Neither.
    Not,
    /// No run in real time was made yet.
    #[default]
    #[serde(rename = "not run")]
    NotRun,
}

impl CellVerdict {
    pub fn mark(self) -> char {
        match self {
            Self::Reproduced => '✓',
            Self::Direction => '≈',
            Self::Not => '✗',
            Self::NotRun => '·',
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Reproduced => "reproduced",
            Self::Direction => "direction",
            Self::Not => "not",
            Self::NotRun => "not run",
        }
    }
}

pub const SCOREBOARD_FILE: &str = "scoreboard.json";

/// Every verdict of a version.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scoreboard {
    pub version: String,
    /// The verdicts, as `reproduce --json` prints them.
    #[serde(flatten)]
    pub report: Report,
}

impl Scoreboard {
    /// Returns its text. Reading the text gives an equal scoreboard.
    pub fn text(&self) -> String {
        serde_json::to_string_pretty(self).expect("strings, numbers and lists become JSON") + "\n"
    }

    /// Reads a scoreboard.
    pub fn read(path: &Path) -> Result<Self, StoreError> {
        files::read_json(path)
    }
}
