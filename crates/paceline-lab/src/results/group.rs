// SPDX-License-Identifier: MIT OR Apache-2.0
//! A group: the summary of several runs of one scenario, which comparisons and reports read instead of rows.

use crate::results::{Assumed, Cell, EachWindow, Judgement};
use paceline_netsim::records::{Label, Paired, Statistic, Summary};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The summary of several runs of one scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Group {
    pub scenario: String,
    pub title: String,
    pub source: String,
    pub world: String,
    /// Case of the scenario; empty for the scenario as written.
    pub case: Label,
    /// Controller of each flow; `None` for a flow without one.
    pub controllers: Vec<Option<String>>,
    pub changes: Vec<String>,
    pub version: String,
    pub command: String,
    pub seeds: Vec<u64>,
    pub runs: Vec<String>,
    /// Every metric of the whole run: mean, standard deviation and interval over the runs.
    pub summary: BTreeMap<String, Summary>,
    /// The verdict on every published value and bound that only depends on these runs.
    pub cells: Vec<Cell>,
    pub assertions: Vec<Assertion>,
    pub assumed: Vec<Assumed>,
    pub notes: Vec<String>,
    /// The metrics of each run, in the order of the seeds.
    pub per_run: Vec<RunMetrics>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunMetrics {
    pub seed: u64,
    /// Hash over every decision of links and endpoints.
    pub trace_hash: String,
    /// Every metric of the whole run that has a value.
    pub metrics: BTreeMap<String, f64>,
}

/// Differences of runs to baseline runs of the same seeds, in which paths, losses and cross traffic draw the same numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Differences {
    /// Number of common seeds.
    pub seeds: usize,
    /// Seeds whose runs have equal trace hashes.
    pub same_runs: usize,
    /// Metrics with a value in each of these runs. The intervals are not corrected for multiple comparisons.
    pub metrics_compared: usize,
    /// Metrics whose interval excludes 0.
    pub significant: usize,
    /// The difference of each metric to the baseline.
    pub metrics: BTreeMap<String, Paired>,
}

impl Differences {
    pub fn between(baseline: &[RunMetrics], runs: &[RunMetrics]) -> Self {
        let partner = |from: &RunMetrics| runs.iter().find(|to| to.seed == from.seed);
        let pairs: Vec<(&RunMetrics, &RunMetrics)> = baseline.iter().filter_map(|f| Some((f, partner(f)?))).collect();
        let difference = |id: &String| {
            let values = pairs.iter().map(|(from, to)| Some((*from.metrics.get(id)?, *to.metrics.get(id)?)));
            Some((id.clone(), Paired::from_pairs(&values.collect::<Option<Vec<_>>>()?)?))
        };
        let ids = pairs.first().into_iter().flat_map(|(from, _)| from.metrics.keys());
        let metrics: BTreeMap<String, Paired> = ids.filter_map(difference).collect();
        Self {
            seeds: pairs.len(),
            same_runs: pairs.iter().filter(|(from, to)| from.trace_hash == to.trace_hash).count(),
            metrics_compared: metrics.len(),
            significant: metrics.values().filter(|d| d.significant == Some(true)).count(),
            metrics,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Assertion {
    pub id: String,
    pub metric: String,
    pub flow: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<String>,
    pub window_s: (f64, f64),
    /// The bounds of each of several windows, for a share of windows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub each: Option<EachWindow>,
    /// Whether it is a ratio to a reference.
    pub ratio: bool,
    #[serde(default)]
    pub runs: Statistic,
    #[serde(deserialize_with = "paceline_netsim::records::json::bounds")]
    pub bounds: (f64, f64),
    /// The measured statistic; `None` if a run has no value.
    pub measured: Option<f64>,
    /// Half-width of its 95 % interval; `None` without an interval.
    pub ci95: Option<f64>,
    /// Whether the verdict is `holds`.
    pub holds: bool,
    #[serde(flatten)]
    pub judgement: Judgement,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(seed: u64, trace_hash: &str, metrics: &[(&str, f64)]) -> RunMetrics {
        let metrics = metrics.iter().map(|(id, value)| ((*id).to_owned(), *value)).collect();
        RunMetrics { seed, trace_hash: trace_hash.to_owned(), metrics }
    }

    #[test]
    fn runs_are_paired_by_seed() {
        let baseline = [
            run(1, "a", &[("jain", 0.5), ("loss_ratio", 0.1), ("freeze_duration_s", 1.0)]),
            run(2, "b", &[("jain", 0.9), ("loss_ratio", 0.2)]),
            run(3, "c", &[("jain", 0.0)]),
        ];
        let runs = [
            run(2, "b", &[("jain", 1.0), ("loss_ratio", 0.2), ("freeze_duration_s", 2.0)]),
            run(1, "x", &[("jain", 0.6), ("loss_ratio", 0.1), ("freeze_duration_s", 2.0)]),
        ];
        let found = Differences::between(&baseline, &runs);
        // Seed 3 has no counterpart; freezes have no value in one run.
        assert_eq!((found.seeds, found.same_runs, found.metrics_compared, found.significant), (2, 1, 2, 1));
        assert!((found.metrics["jain"].mean - 0.1).abs() < 1e-12 && found.metrics["jain"].significant == Some(true));
        assert_eq!((found.metrics["loss_ratio"].mean, found.metrics["loss_ratio"].significant), (0.0, Some(false)));
        assert!(!found.metrics.contains_key("freeze_duration_s"));
        let nothing = Differences::between(&baseline, &[]);
        assert_eq!((nothing.seeds, nothing.metrics_compared), (0, 0));
    }
}
