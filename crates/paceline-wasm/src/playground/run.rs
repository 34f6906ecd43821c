// SPDX-License-Identifier: MIT OR Apache-2.0
//! One run: its series, metrics and trace hash.

use crate::playground::controls::Text;
use crate::playground::problem::Problem;
use crate::playground::series::{Series, SeriesObserver};
use paceline::Registry;
use paceline_lab::compare::mean_score_text;
use paceline_lab::metrics::METRICS;
use paceline_lab::run::Runner;
use paceline_netsim::records::Summary;
use paceline_scenario::Changes;
use serde::Serialize;

/// A run.
#[derive(Debug, Serialize)]
pub struct RunAnswer {
    /// Title of the scenario.
    pub title: String,
    /// Duration, s.
    pub duration_s: f64,
    /// Hash over every decision, 16 hexadecimal digits: that of `paceline run` with the same text, controller and seed.
    pub trace_hash: String,
    /// Events simulated.
    pub events: u64,
    /// Controllers of the flows, in order.
    pub flows: Vec<Flow>,
    /// The score with the points lost to each cause, as `paceline run` prints it; none for a run without media.
    pub score: Option<String>,
    /// Every metric of the whole run that has a value.
    pub metrics: Vec<Metric>,
    /// What the reader should know of the run.
    pub notes: Vec<String>,
    /// Number of rows of each series.
    pub rows: usize,
    /// The series.
    pub series: Vec<Series>,
}

/// A flow of a run.
#[derive(Debug, Serialize)]
pub struct Flow {
    /// Name.
    pub id: String,
    /// `media` or `tcp`.
    pub kind: &'static str,
    /// Its controller, or TCP's congestion control.
    pub control: String,
}

/// A metric of a run.
#[derive(Debug, Serialize)]
pub struct Metric {
    /// Id.
    pub id: &'static str,
    /// Value, in the metric's unit.
    pub value: f64,
    /// Value as readers see it.
    pub text: String,
    /// Which values are better: `higher`, `lower` or `neither`.
    pub better: &'static str,
    /// Description in one line.
    pub summary: &'static str,
}

/// Makes a run. Its series go to `columns`.
///
/// # Errors
/// The text is wrong, or the simulator cannot run it.
pub fn run(
    text: &Text,
    controller: Option<String>,
    seed: u64,
    registry: &Registry,
    columns: &mut Vec<f32>,
) -> Result<RunAnswer, Problem> {
    let changes = Changes { controller, ..Changes::default() };
    let scenario = paceline_lab::load(&text.origin(), &changes, registry)?;
    let plan = &scenario.plan;
    let mut observer = SeriesObserver::new(plan, registry);
    let result = Runner::simulator(registry).run(&scenario, seed, Some(&mut observer)).map_err(|e| e.to_string())?;
    let values = result.metrics(&scenario);
    let metrics = METRICS.iter().filter_map(|metric| {
        let value = *values.get(metric.id)?;
        Some(Metric {
            id: metric.id,
            value,
            text: metric.kind.show(value),
            better: metric.better.name(),
            summary: metric.summary,
        })
    });
    let means =
        values.iter().filter_map(|(id, value)| Some((id.to_string(), Summary::from_values(&[*value])?))).collect();
    let flows = plan.flows.iter().map(|flow| Flow {
        id: flow.id.clone(),
        kind: flow.kind.name(),
        control: flow.control().to_owned(),
    });
    Ok(RunAnswer {
        title: plan.title.clone(),
        duration_s: result.duration_s,
        trace_hash: result.trace_hash.clone(),
        events: result.events,
        flows: flows.collect(),
        score: mean_score_text(&means),
        metrics: metrics.collect(),
        notes: scenario.notes.clone(),
        rows: observer.rows(),
        series: observer.finish(columns),
    })
}
