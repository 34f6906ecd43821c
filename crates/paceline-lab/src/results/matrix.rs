// SPDX-License-Identifier: MIT OR Apache-2.0
//! The matrix of verdict counts: a row for each experiment, by paper.

use crate::results::{ExperimentReport, VerdictSummary, count_verdicts};
use serde::Serialize;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PaperCounts {
    pub paper: String,
    #[serde(flatten)]
    pub counts: Counts,
    pub experiments: Vec<ExperimentCounts>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExperimentCounts {
    pub id: String,
    #[serde(flatten)]
    pub counts: Counts,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Counts {
    #[serde(flatten)]
    pub verdicts: VerdictSummary,
    /// Runs of every case, without those of the null sender.
    pub runs: usize,
    /// Sum of the wall times of all runs, s, with those of the null sender and of the tried changes; 0 for stored runs.
    pub wall_s: f64,
}

/// Returns a row for each experiment, by paper, in the order of the first experiment of each.
pub fn papers(reports: &[ExperimentReport]) -> Vec<PaperCounts> {
    let mut names: Vec<&str> = Vec::new();
    for report in reports {
        if !names.contains(&report.paper()) {
            names.push(report.paper());
        }
    }
    let of_paper = |paper: &str| {
        let own = || reports.iter().filter(|report| report.paper() == paper);
        let row = |report: &ExperimentReport| ExperimentCounts { id: report.id.clone(), counts: Counts::of([report]) };
        PaperCounts { paper: paper.to_owned(), counts: Counts::of(own()), experiments: own().map(row).collect() }
    };
    names.into_iter().map(of_paper).collect()
}

impl Counts {
    pub fn of<'a>(reports: impl IntoIterator<Item = &'a ExperimentReport, IntoIter: Clone>) -> Self {
        let reports = reports.into_iter();
        let runs = reports.clone().flat_map(|report| &report.runs).map(|case| case.n).sum();
        let wall_s = reports.clone().map(|report| report.wall_s).sum();
        Self { verdicts: count_verdicts(reports), runs, wall_s }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::CaseRuns;

    fn report(id: &str, runs: &[usize], wall_s: f64) -> ExperimentReport {
        let case = |n: &usize| CaseRuns { n: *n, ..CaseRuns::of_value(&Default::default(), None) };
        let runs = runs.iter().map(case).collect();
        ExperimentReport { id: id.to_owned(), runs, wall_s, ..ExperimentReport::default() }
    }

    #[test]
    fn experiments_are_grouped_by_the_prefix_of_their_id() {
        let reports = [
            report("b/one", &[3, 4], 1.5),
            report("a/one", &[10], 2.0),
            report("b/two", &[], 0.25),
            report("x", &[1], 4.0),
        ];
        let papers = papers(&reports);
        let rows =
            |paper: &PaperCounts| paper.experiments.iter().map(|e| (e.id.clone(), e.counts.runs)).collect::<Vec<_>>();
        let all: Vec<_> = papers.iter().map(|p| (p.paper.as_str(), p.counts.runs, p.counts.wall_s, rows(p))).collect();
        let own = |id: &str, runs| (id.to_owned(), runs);
        assert_eq!(
            all,
            [
                ("b", 7, 1.75, vec![own("b/one", 7), own("b/two", 0)]),
                ("a", 10, 2.0, vec![own("a/one", 10)]),
                ("x", 1, 4.0, vec![own("x", 1)]),
            ]
        );
    }
}
