// SPDX-License-Identifier: MIT OR Apache-2.0
//! Validation: differences between two worlds on one scenario, over the same seeds in each, seed by seed.
//!
//! ```text
//! run JSON with `waiting` ─▶ ValidationRun ─┬─ of two worlds ─▶ Validation: means, differences, distance of distributions, verdicts
//! ```

mod fields;
mod queue_delay;
mod verdict;

pub use queue_delay::{Distance, QueueDelayCounts, QueueDelayObserver, STEP_US};
pub use verdict::{QUEUE_PART, QUEUE_TOLERANCE_MS, UTILIZATION_TOLERANCE};

use crate::results::{ComparedMetric, ComparedRun, QueueDelay, Validation};
use crate::run::RunResult;
use crate::run_cache::CachedRun;
use fields::{ComparedField, compared_fields};
use paceline_netsim::records::{HostStats, Paired, Summary};
use paceline_scenario::Scenario;
use serde::Deserialize;
use serde_json::Value;

#[derive(Clone, Debug, PartialEq)]
pub struct ValidationRun {
    line: ComparedRun,
    /// In the order of [`compared_fields`].
    values: Vec<Option<f64>>,
    queue_delay: QueueDelayCounts,
}

impl ValidationRun {
    /// Returns the load of the host; `None` in virtual time.
    pub fn machine(&self) -> Option<&HostStats> {
        self.line.machine.as_ref()
    }
}

impl CachedRun for ValidationRun {
    const NAME: &'static str = "waiting";
    type Observer = QueueDelayObserver;

    fn observer(scenario: &Scenario) -> QueueDelayObserver {
        QueueDelayObserver::at_bottleneck(scenario)
    }

    fn findings(_: &Scenario, _: &RunResult, observer: QueueDelayObserver) -> Value {
        serde_json::to_value(observer.finish()).expect("counts become JSON")
    }

    fn from_document(scenario: &Scenario, document: &Value) -> Option<Self> {
        let counts = QueueDelayCounts::deserialize(document.get(Self::NAME)?).ok();
        let queue_delay = counts.filter(QueueDelayCounts::has_current_steps)?;
        let line = ComparedRun::deserialize(document).ok()?;
        let fields = compared_fields(scenario);
        let values = fields.iter().map(|field| document.pointer(&field.pointer)?.as_f64()).collect();
        Some(Self { line, values, queue_delay })
    }
}

/// Compares the runs of a scenario in two worlds. `changes` are those of `--set`; `command` reproduces the validation.
///
/// # Panics
/// The seeds in the two worlds differ.
pub fn validation_of(
    scenario: &Scenario,
    changes: Vec<String>,
    command: String,
    worlds: [&str; 2],
    runs: [&[ValidationRun]; 2],
) -> Validation {
    let plan = &scenario.plan;
    let [seeds, other] = runs.map(|runs| runs.iter().map(|run| run.line.seed).collect::<Vec<_>>());
    assert_eq!(seeds, other, "both worlds run the same seeds");
    let fields = compared_fields(scenario).into_iter().enumerate();
    let measured: Vec<ComparedMetric> = fields.filter_map(|(index, field)| compare(field, index, runs)).collect();
    Validation {
        scenario: plan.id.clone(),
        title: plan.title.clone(),
        case: plan.case.clone(),
        changes,
        command,
        controllers: plan.flows.iter().map(|f| Some(f.control().to_owned())).collect(),
        duration_s: plan.duration.as_secs_f64(),
        worlds: worlds.map(str::to_owned),
        seeds,
        queue_delay: queue_delay(&plan.hops[plan.bottleneck].id, runs),
        verdicts: verdict::verdicts(&measured),
        measured,
        runs: runs.map(|runs| runs.iter().map(|run| run.line.clone()).collect()),
    }
}

fn compare(field: ComparedField, index: usize, runs: [&[ValidationRun]; 2]) -> Option<ComparedMetric> {
    let values = runs.map(|runs| runs.iter().map(|run| run.values[index]).collect::<Option<Vec<f64>>>());
    let worlds = [0, 1].map(|world| Summary::from_values(values[world].as_deref()?));
    if worlds == [None, None] {
        return None;
    }
    let [first, second] = values;
    let pairs = first.zip(second).map(|(a, b)| a.into_iter().zip(b).collect::<Vec<_>>());
    let difference = pairs.and_then(|pairs| Paired::from_pairs(&pairs));
    let ComparedField { hop, flow, metric, .. } = field;
    Some(ComparedMetric { hop, flow, metric: metric.to_owned(), worlds, difference })
}

fn queue_delay(hop: &str, runs: [&[ValidationRun]; 2]) -> Option<QueueDelay> {
    let merged = runs.map(|runs| {
        let mut all = QueueDelayCounts::default();
        runs.iter().for_each(|run| all.merge(&run.queue_delay));
        all
    });
    let Distance { ks, at_ms } = merged[0].distance(&merged[1])?;
    let distance = |a: &ValidationRun, b: &ValidationRun| Some(a.queue_delay.distance(&b.queue_delay)?.ks);
    let between_seeds = |runs: &[ValidationRun]| {
        let pairs = (0..runs.len()).flat_map(|a| (a + 1..runs.len()).map(move |b| (a, b)));
        let all: Vec<f64> = pairs.filter_map(|(a, b)| distance(&runs[a], &runs[b])).collect();
        Some(Summary::from_values(&all)?.mean)
    };
    Some(QueueDelay {
        hop: hop.to_owned(),
        ks,
        at_ms,
        step_ms: f64::from(STEP_US) / 1e3,
        packets: [0, 1].map(|world: usize| merged[world].packets()),
        by_seed: runs[0].iter().zip(runs[1]).map(|(a, b)| distance(a, b)).collect(),
        between_seeds: runs.map(between_seeds),
    })
}
