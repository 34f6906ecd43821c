// SPDX-License-Identifier: MIT OR Apache-2.0
//! The results of runs, as `run --json` prints them.

use crate::metrics::{METRICS, MetricSpec, WindowResult, find};
use crate::results::Assertion;
use paceline_netsim::records::{HostStats, Label, Program, Summary};
use paceline_scenario::{Quantity, Scenario, Window};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    pub world: String,
    pub seed: u64,
    /// How long it lasted, in time of the run, s.
    pub duration_s: f64,
    /// Hash over every decision of links and endpoints, 16 hexadecimal digits.
    pub trace_hash: String,
    /// How long it took, in real time, s.
    pub wall_s: f64,
    pub events: u64,
    /// State of the host during the run; none in virtual time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<HostStats>,
    /// Other programs that took part, such as browsers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<Program>,
    #[serde(flatten)]
    pub whole: WindowResult,
    /// Results of each window of the scenario, in the order of [`windows`].
    #[serde(skip)]
    pub windows: Vec<WindowResult>,
    /// Bytes that each flow received in each second.
    #[serde(skip)]
    pub seconds: Vec<Vec<u64>>,
    #[serde(skip)]
    pub delivered: u64,
}

/// Runs of one scenario, as `run --json` prints them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunsResult {
    pub scenario: String,
    /// The case of the scenario; empty if it has none or runs as written.
    pub case: Label,
    /// Every run, by seed.
    pub runs: Vec<RunResult>,
    /// Every metric of the whole run: mean, deviation and interval over the runs.
    pub summary: BTreeMap<String, Summary>,
    /// Every bound of the scenario, and whether the runs that count keep it.
    pub assertions: Vec<Assertion>,
    /// Every published value beside the measured one.
    pub expectations: Vec<Expectation>,
    /// Notes for the reader: traces taken, what headers count, how limits behave, how many runs count.
    pub notes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Expectation {
    pub metric: String,
    /// The flow it is taken of; none: the run as a whole.
    pub flow: Option<String>,
    pub window_s: (f64, f64),
    /// Whether it is a ratio to a reference.
    pub ratio: bool,
    pub published: f64,
    pub measured: Option<Summary>,
}

/// Returns the windows that the published values and bounds of a scenario refer to, each once.
pub fn windows(scenario: &Scenario) -> Vec<Window> {
    let mut windows: Vec<Window> = scenario.quantities().flat_map(|q| q.windows()).copied().collect();
    windows.sort_unstable();
    windows.dedup();
    windows
}

impl RunResult {
    pub fn metrics(&self, scenario: &Scenario) -> BTreeMap<String, f64> {
        let value = |m: &MetricSpec| (m.value)(&self.whole, None, &scenario.measure);
        METRICS.iter().filter_map(|m| Some((m.id.to_owned(), value(m)?))).collect()
    }

    /// Returns the value of a quantity (of several windows: the share that is within the bounds) in this run of `scenario`, whose [`windows`] these are.
    pub(crate) fn value(&self, scenario: &Scenario, windows: &[Window], quantity: &Quantity) -> Option<f64> {
        let value = |window: &Window, metric: &str, flow: Option<usize>, stream: Option<usize>| {
            let result = &self.windows[windows.binary_search(window).ok()?];
            let metric = find(metric)?;
            match (flow, stream) {
                (Some(flow), Some(stream)) => (metric.of_stream?)(&result.flows[flow].streams[stream]),
                _ => (metric.value)(result, flow, &scenario.measure),
            }
        };
        let Quantity { metric, flow, stream, window, each } = quantity;
        let Some(each) = each else { return value(window, metric, *flow, *stream) };
        let is_within = |window: &&Window| {
            let over = match &each.relative_to {
                Some(of) => value(window, &of.metric, of.flow, of.stream),
                None => Some(1.0),
            };
            let measured = value(window, metric, *flow, *stream).zip(over).map(|(value, over)| value / over);
            measured.is_some_and(|measured| each.bounds.0 <= measured && measured <= each.bounds.1)
        };
        let held = each.windows.iter().filter(is_within).count();
        Some(held as f64 / each.windows.len() as f64)
    }
}
