// SPDX-License-Identifier: MIT OR Apache-2.0
//! The conclusions of a paper, judged by the cells that are their evidence.
//!
//! ```text
//! every cell reproduced                                     holds
//! the others reproduced with one change, or one was fitted  holds if
//! otherwise, also if a cell is undecided                    does not hold
//! ```
//!
//! Only cells that are not reproduced are run with the change.

use super::{Cell, CellVerdict, ExperimentReport};
use paceline_netsim::records::Label;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Conclusion {
    /// The paper: folder of its experiments.
    pub paper: String,
    pub text: String,
    pub place: String,
    pub verdict: ConclusionVerdict,
    /// The changes with which it holds, as after `--set`, and the constants that were fitted to its evidence.
    pub conditions: Vec<String>,
    pub evidence: Vec<EvidenceResult>,
}

/// The cells that are evidence of a conclusion: those of a claim, or those of a published value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// Scenario id.
    pub experiment: String,
    /// The cases to which the cells belong: those whose label contains these pairs.
    pub case: Label,
    /// The id of the claim, or the metric of the published value.
    pub of: EvidenceOf,
}

/// What the cells of evidence have in common.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EvidenceOf {
    /// Bounds with this id.
    Claim(String),
    /// Published values of this metric.
    Metric(String),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EvidenceResult {
    #[serde(flatten)]
    pub evidence: Evidence,
    /// Whether every cell is reproduced.
    pub verdict: ConclusionVerdict,
    /// Whether no cell is evidence of the controller: the null sender reproduces each, too, or a constant was fitted to it.
    pub given: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ConclusionVerdict {
    /// Each cell of its evidence is reproduced.
    #[serde(rename = "holds")]
    Holds,
    /// The cells that are not reproduced are with the conditions.
    #[serde(rename = "holds if")]
    HoldsIf,
    /// Some cell is not reproduced, or two changes would be needed.
    #[serde(rename = "does not hold")]
    DoesNotHold,
}

impl ConclusionVerdict {
    pub fn name(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::HoldsIf => "holds if",
            Self::DoesNotHold => "does not hold",
        }
    }

    pub fn mark(self) -> char {
        match self {
            Self::Holds => CellVerdict::Reproduced.mark(),
            Self::HoldsIf => CellVerdict::Direction.mark(),
            Self::DoesNotHold => CellVerdict::Not.mark(),
        }
    }
}

impl Evidence {
    /// Returns whether a cell of its experiment belongs to it.
    pub fn contains(&self, cell: &Cell) -> bool {
        let is_of = match &self.of {
            EvidenceOf::Claim(id) => cell.published.is_none() && cell.claim.as_ref() == Some(id),
            EvidenceOf::Metric(metric) => cell.published.is_some() && cell.metric == *metric,
        };
        is_of && cell.case.matches(&self.case)
    }

    /// Describes it: experiment without the paper, claim or metric, and case.
    pub fn describe(&self) -> String {
        let experiment = self.experiment.rsplit('/').next().unwrap_or_default();
        let (EvidenceOf::Claim(what) | EvidenceOf::Metric(what)) = &self.of;
        let case = if self.case.is_empty() { String::new() } else { format!(" {}", self.case) };
        format!("{experiment} {what}{case}")
    }
}

impl Conclusion {
    /// Judges a conclusion. Returns `None` if an experiment of its evidence was not run.
    pub fn judge(
        (paper, text, place): (&str, &str, &str),
        evidence: &[Evidence],
        experiments: &[ExperimentReport],
    ) -> Option<Self> {
        let (mut changes, mut fitted) = (BTreeSet::new(), BTreeSet::new());
        let mut results = Vec::new();
        for evidence in evidence {
            let experiment = experiments.iter().find(|report| report.id == evidence.experiment)?;
            let cells: Vec<&Cell> = experiment.cells.iter().filter(|cell| evidence.contains(cell)).collect();
            let missing: Vec<&Cell> =
                cells.iter().copied().filter(|cell| cell.verdict != CellVerdict::Reproduced).collect();
            let moving: BTreeSet<Option<&Vec<String>>> = missing.iter().map(|cell| moved_by(cell)).collect();
            let keys: BTreeSet<&String> = cells.iter().filter_map(|cell| cell.fitted.as_ref()).collect();
            let verdict = match moving.iter().next() {
                _ if cells.is_empty() => ConclusionVerdict::DoesNotHold,
                None if keys.is_empty() => ConclusionVerdict::Holds,
                None => ConclusionVerdict::HoldsIf,
                Some(Some(_)) if moving.len() == 1 => ConclusionVerdict::HoldsIf,
                Some(_) => ConclusionVerdict::DoesNotHold,
            };
            changes.extend(moving.into_iter().flatten().cloned());
            fitted.extend(keys.into_iter().map(|key| value_of(experiment, key)));
            let given = !cells.iter().any(|cell| cell.is_evidence());
            results.push(EvidenceResult { evidence: evidence.clone(), verdict, given });
        }
        let worst = results.iter().map(|result| result.verdict).max()?;
        // Changes that were tried apart may not work together.
        let verdict = if changes.len() > 1 { ConclusionVerdict::DoesNotHold } else { worst };
        let conditions = match verdict {
            ConclusionVerdict::HoldsIf => changes.into_iter().flatten().chain(fitted).collect(),
            _ => Vec::new(),
        };
        let [paper, text, place] = [paper, text, place].map(str::to_owned);
        Some(Self { paper, text, place, verdict, conditions, evidence: results })
    }
}

/// Returns the changes with which a cell is reproduced.
fn moved_by(cell: &Cell) -> Option<&Vec<String>> {
    let moved = cell.moved.as_ref().filter(|moved| moved.verdict == Some(CellVerdict::Reproduced))?;
    Some(&moved.by)
}

/// Returns a fitted key with its value, if it is an assumed constant of this experiment.
fn value_of(experiment: &ExperimentReport, key: &str) -> String {
    let own = experiment.assumed.iter().find(|constant| constant.key == key && constant.only.is_some());
    own.map_or_else(|| key.to_owned(), |constant| format!("{key}={} (fitted)", constant.value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::ChangeResult;

    fn cell(claim: &str, verdict: CellVerdict) -> Cell {
        Cell { claim: Some(claim.to_owned()), bounds: Some((0.0, 1.0)), verdict, ..Cell::default() }
    }

    fn moved(claim: &str, by: &str, then: CellVerdict) -> Cell {
        let moved = ChangeResult { by: vec![by.to_owned()], measured: None, ci95: None, verdict: Some(then) };
        Cell { moved: Some(moved), ..cell(claim, CellVerdict::Not) }
    }

    fn judged(cells: Vec<Cell>, claims: &[&str]) -> Option<(ConclusionVerdict, Vec<String>)> {
        let report = ExperimentReport { id: "paper/one".to_owned(), cells, ..ExperimentReport::default() };
        let evidence = claims.iter().map(|claim| Evidence {
            experiment: claim.split_once(':').map_or("paper/one", |(other, _)| other).to_owned(),
            case: Label::default(),
            of: EvidenceOf::Claim((*claim).to_owned()),
        });
        let evidence: Vec<Evidence> = evidence.collect();
        let conclusion = Conclusion::judge(("paper", "text", ""), &evidence, &[report])?;
        Some((conclusion.verdict, conclusion.conditions))
    }

    #[test]
    fn conclusions_hold_with_all_their_cells_or_with_one_change() {
        use CellVerdict::{Direction, Not, Reproduced};
        use ConclusionVerdict::{DoesNotHold, Holds, HoldsIf};
        let fitted = || Cell { fitted: Some("media.a".to_owned()), ..cell("f", Reproduced) };
        let cells = || {
            vec![
                cell("good", Reproduced),
                cell("half", Direction),
                cell("bad", Not),
                moved("a", "x=1", Reproduced),
                moved("b", "x=1", Reproduced),
                moved("c", "y=2", Reproduced),
                moved("d", "x=1", Not),
                fitted(),
            ]
        };
        let of = |claims: &[&str]| judged(cells(), claims).unwrap();
        let if_ = |conditions: &[&str]| (HoldsIf, conditions.iter().map(|text| (*text).to_owned()).collect());
        assert_eq!(of(&["good"]), (Holds, vec![]));
        assert_eq!(of(&["good", "a", "b"]), if_(&["x=1"]));
        assert_eq!(of(&["good", "f"]), if_(&["media.a"]));
        for claims in [&["good", "bad"][..], &["half"], &["d"], &["a", "c"], &["a", "bad"], &["missing"]] {
            assert_eq!(of(claims), (DoesNotHold, vec![]), "{claims:?}");
        }
        assert_eq!(judged(cells(), &["paper/two:good"]), None, "an experiment that was not run");
    }
}
