//! The matrix: how many of which, an experiment a row, by paper.

use super::{ExperimentReport, Tallies, tally};
use serde::Serialize;

/// A paper's part.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PaperCounts {
    /// What its experiments' ids begin with.
    pub paper: String,
    /// All of them together.
    #[serde(flatten)]
    pub counts: Counts,
    /// Each of them.
    pub experiments: Vec<ExperimentCounts>,
}

/// An experiment's row.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExperimentCounts {
    /// Scenario id.
    pub id: String,
    /// What stands in its row.
    #[serde(flatten)]
    pub counts: Counts,
}

/// What stands in a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Counts {
    /// Cells and claims by verdict.
    #[serde(flatten)]
    pub tallies: Tallies,
    /// Runs that the cells rest on, of every case; the null sender's are not counted.
    pub runs: usize,
    /// Seconds of real time that all runs took, the null sender's and the tried changes' included, one after the other;
    /// 0 where they were not made just now.
    pub wall_s: f64,
}

/// A row for each experiment, by paper; papers in the order in which they come.
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
    /// Of these together.
    pub fn of<'a>(reports: impl IntoIterator<Item = &'a ExperimentReport, IntoIter: Clone>) -> Self {
        let reports = reports.into_iter();
        let runs = reports.clone().flat_map(|report| &report.runs).map(|case| case.n).sum();
        let wall_s = reports.clone().map(|report| report.wall_s).sum();
        Self { tallies: tally(reports), runs, wall_s }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::CaseRuns;

    fn report(id: &str, runs: &[usize], wall_s: f64) -> ExperimentReport {
        let case = |n: &usize| CaseRuns { n: *n, ..CaseRuns::of_value(&Default::default(), None) };
        let runs = runs.iter().map(case).collect();
        ExperimentReport { id: id.to_owned(), runs, wall_s, ..ExperimentReport::default() }
    }

    #[test]
    fn papers_are_what_ids_begin_with() {
        // A table that a formula gives comes after all that is run.
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
