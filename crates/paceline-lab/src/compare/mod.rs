// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs of one scenario under several controllers, side by side. `serde_json::to_value` turns the documents into what
//! `compare --json` and `run --controller A,B --json` print.

#[cfg(feature = "storage")]
mod choice;
mod difference;
pub(crate) mod gaps;
mod ranking;
pub(crate) mod scores;
mod table;
#[cfg(all(test, feature = "storage"))]
mod tests;
mod verdict;

#[cfg(feature = "storage")]
pub use choice::{Candidates, Choice, ChosenPath, RUNS, choose, usual};
pub use difference::difference;
pub use scores::{mean_score_text, score_text};

use crate::group::run_metrics;
use crate::results::{Assertion, ComparisonTable, Differences, RankedController, RunMetrics};
use crate::run_result::{Expectation, RunResult, RunsResult};
use paceline::Registry;
use paceline_netsim::records::Summary;
use paceline_scenario::Scenario;
use serde::Serialize;
use std::collections::BTreeMap;

/// The runs of a scenario under several controllers, and how each controller differs from the first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    pub scenario: String,
    pub controllers: Vec<ControllerRuns>,
    /// The ranking by score, the verdict, and the quantities of each flow and stream under each controller.
    pub table: ComparisonTable,
    /// The differences of each controller but the first, in every metric of the run as a whole.
    pub differences: Vec<ControllerDifferences>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ControllerRuns {
    pub controller: String,
    pub result: RunsResult,
}

/// How the runs under one controller differ from those under the baseline, seed by seed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ControllerDifferences {
    pub controller: String,
    pub baseline: String,
    #[serde(flatten)]
    pub found: Differences,
}

/// The option of `run` and `compare` that sets the number of runs.
const REPEATS: &str = "--repeats";

/// Controllers in the order of their mean score, and what follows from it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Ranked {
    pub ranking: Vec<RankedController>,
    /// In a few sentences.
    pub verdict: Vec<String>,
}

/// Ranks controllers by their runs of one scenario. The arguments are those of [`compare`]; `option` sets the number of runs.
pub fn rank(
    names: &[String],
    scenarios: &[Scenario],
    results: &[RunsResult],
    registry: &Registry,
    option: &str,
) -> Ranked {
    let mut scored = scores::scored(names, scenarios, results, registry);
    let ranking = ranking::ranking(&mut scored);
    let verdict = verdict::sentences(&ranking, &scored, 1, gaps::sentence(&scenarios[0].plan), option);
    Ranked { ranking, verdict }
}

/// Compares the runs of each scenario, which differ only in their controller, with those of the first. `names`, `scenarios`
/// and `results` have one element for each controller; `registry` has the controllers.
///
/// # Panics
/// There is no controller.
pub fn compare(names: &[String], scenarios: &[Scenario], results: Vec<RunsResult>, registry: &Registry) -> Comparison {
    let metrics = |(scenario, result): (&Scenario, &RunsResult)| -> Vec<RunMetrics> {
        result.runs.iter().map(|run| run_metrics(scenario, run)).collect()
    };
    let metrics: Vec<_> = scenarios.iter().zip(&results).map(metrics).collect();
    let difference = |(name, runs): (&String, &Vec<RunMetrics>)| ControllerDifferences {
        controller: name.clone(),
        baseline: names[0].clone(),
        found: Differences::between(&metrics[0], runs),
    };
    Comparison {
        scenario: scenarios[0].plan.id.clone(),
        table: table::table(names, scenarios, &results, registry),
        differences: names.iter().zip(&metrics).skip(1).map(difference).collect(),
        controllers: names
            .iter()
            .zip(results)
            .map(|(name, result)| ControllerRuns { controller: name.clone(), result })
            .collect(),
    }
}

/// The runs under several controllers in the shape of runs under one: every run (its flows name their controller), the
/// summary of the first controller, and the summary of each by name.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CombinedRuns<'a> {
    scenario: &'a str,
    runs: Vec<&'a RunResult>,
    summary: &'a BTreeMap<String, Summary>,
    controllers: BTreeMap<&'a str, &'a BTreeMap<String, Summary>>,
    assertions: Vec<OfController<'a, Assertion>>,
    expectations: Vec<OfController<'a, Expectation>>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct OfController<'a, T> {
    controller: &'a str,
    #[serde(flatten)]
    value: &'a T,
}

/// Combines the results under each of these controllers, in order.
///
/// # Panics
/// There is no result.
pub fn combine<'a>(names: &'a [String], results: &'a [RunsResult]) -> CombinedRuns<'a> {
    let named = || names.iter().map(String::as_str).zip(results);
    CombinedRuns {
        scenario: &results[0].scenario,
        runs: results.iter().flat_map(|r| &r.runs).collect(),
        summary: &results[0].summary,
        controllers: named().map(|(controller, r)| (controller, &r.summary)).collect(),
        assertions: named()
            .flat_map(|(controller, r)| r.assertions.iter().map(move |value| OfController { controller, value }))
            .collect(),
        expectations: named()
            .flat_map(|(controller, r)| r.expectations.iter().map(move |value| OfController { controller, value }))
            .collect(),
    }
}
