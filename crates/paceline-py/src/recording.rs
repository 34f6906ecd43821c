// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a call keeps of the events of its runs, and the runs as Python receives them.

use crate::errors::Failure;
use crate::packets::{Column as PacketColumn, PacketRecorder};
use crate::request::Request;
use crate::rows::Rows;
use crate::series::{Series, SeriesRecorder};
use crate::stop::Stop;
use crate::world::with_runner;
use numpy::PyArray1;
use paceline::Registry;
use paceline_cli::{Cited, runs_view, view::View};
use paceline_lab::results::Store;
use paceline_lab::results::database::code;
use paceline_lab::run::{Runner, RunsResult, summarise};
use paceline_lab::run_identity::whole_runs;
use paceline_lab::storage::{Inputs, run_and_store};
use paceline_netsim::records::RunHeader;
use paceline_scenario::Scenario;
use pyo3::prelude::*;
use std::path::PathBuf;

/// How runs are made, besides their scenario: `paceline.runs._Making`.
#[derive(FromPyObject)]
pub struct Making {
    seeds: Option<Vec<u64>>,
    /// Name of the world.
    world: String,
    /// Whether to keep series, and packets.
    series: bool,
    packets: bool,
    /// A folder for events and results.
    out: Option<PathBuf>,
}

/// The observers of a run.
type Recorder = (Option<SeriesRecorder>, Option<PacketRecorder>);

/// Runs of one scenario with what was recorded of each.
pub struct RecordedRuns {
    pub scenario: Scenario,
    pub result: RunsResult,
    /// The changes by `set`, and the program.
    changes: Vec<String>,
    code: String,
    recorders: Vec<Recorder>,
}

/// Name, unit, times in s and values.
pub type Column = (String, String, Py<PyAny>, Py<PyAny>);

/// A run as Python receives it.
#[derive(IntoPyObject)]
pub struct RunData {
    /// The JSON document of `run --json` for this run alone.
    document: String,
    /// Every metric of the whole run, by id, as JSON.
    metrics: String,
    text: String,
    html: String,
    series: Option<Vec<Column>>,
    packets: Option<Vec<PacketColumn>>,
}

/// Runs of one scenario as Python receives them.
#[derive(IntoPyObject)]
pub struct RunsData {
    /// The JSON document of `run --repeats N --json`.
    document: String,
    text: String,
    html: String,
    /// What plots need besides events, as JSON.
    description: String,
    controllers: Vec<String>,
    runs: Vec<RunData>,
    /// The table of results.
    rows: Vec<PacketColumn>,
}

impl Making {
    /// Returns the seeds; those of the scenario if none were given.
    pub fn seeds(&self, scenario: &Scenario) -> Vec<u64> {
        self.seeds.clone().unwrap_or_else(|| (1..=u64::from(scenario.repeats)).collect())
    }

    /// Returns the seconds of all runs of this scenario.
    pub fn seconds(&self, scenario: &Scenario) -> u64 {
        (scenario.plan.duration.as_secs_f64() * self.seeds(scenario).len() as f64) as u64
    }

    /// Returns the folder for results.
    pub fn out(&self) -> Option<&PathBuf> {
        self.out.as_ref()
    }

    fn recorder(&self, header: &RunHeader) -> Recorder {
        (self.series.then(|| SeriesRecorder::new(header)), self.packets.then(|| PacketRecorder::new(header)))
    }

    /// Makes the runs of a scenario, under one controller or its own: in parallel, or one after the other into a folder.
    pub fn runs(
        &self,
        request: &Request,
        controller: Option<&str>,
        scenario: Scenario,
        (registry, stop): (&Registry, &Stop),
    ) -> Result<RecordedRuns, Failure> {
        let (inputs, changes) = (request.inputs()?, request.typed_changes());
        let code = code(env!("CARGO_PKG_VERSION"), inputs.environment.commit.as_deref());
        let repeat = request.repeat(controller);
        let made =
            with_runner(&self.world, (registry, stop), repeat, |runner| self.on_runner(runner, &scenario, inputs));
        made.map(|(result, recorders)| RecordedRuns { scenario, result, changes, code, recorders })
    }

    fn on_runner(
        &self,
        runner: &Runner<'_>,
        scenario: &Scenario,
        inputs: Inputs,
    ) -> Result<(RunsResult, Vec<Recorder>), Failure> {
        let seeds = self.seeds(scenario);
        let Some(dir) = &self.out else {
            return Ok(runner.run_all_observed(scenario, &seeds, |header| self.recorder(header))?);
        };
        let store = Store::create(dir)?;
        let mut recorders = Vec::new();
        let start = |header: &RunHeader| Ok::<_, Failure>(self.recorder(header));
        let finish = |recorder| {
            recorders.push(recorder);
            Ok(())
        };
        let result = run_and_store(runner, scenario, &seeds, (Some(&store), inputs), start, finish)?.stored()?;
        Ok((result, recorders))
    }
}

impl RecordedRuns {
    /// Converts documents to JSON, views to text and HTML, and what was recorded to numpy arrays.
    pub fn into_data(self, py: Python<'_>, registry: &Registry) -> PyResult<RunsData> {
        let mut rows = Rows::default();
        self.add_rows(&mut rows, &[]);
        let Self { scenario, result, recorders, .. } = self;
        let views = scenario.plan.describe(registry);
        let (text, html) = both(&runs_view(&scenario, &result));
        let document = json(&Cited::new(&result))?;
        let each = result.runs.into_iter().zip(recorders);
        let runs = each.map(|(run, (series, packets))| {
            let metrics = json(&run.metrics(&scenario))?;
            let alone = summarise(&scenario, vec![run]);
            let (text, html) = both(&runs_view(&scenario, &alone));
            Ok(RunData {
                document: json(&Cited::new(&alone))?,
                metrics,
                text,
                html,
                series: series.map(|recorder| columns(py, recorder.finish())),
                packets: packets.map(|recorder| recorder.columns(py)),
            })
        });
        Ok(RunsData {
            document,
            text,
            html,
            description: json(&views)?,
            controllers: scenario.plan.flows.iter().map(|flow| flow.control().to_owned()).collect(),
            runs: runs.collect::<PyResult<_>>()?,
            rows: rows.columns(py),
        })
    }

    /// Adds the values of the runs to a table of results.
    pub fn add_rows(&self, rows: &mut Rows, own: &[&str]) {
        whole_runs(&self.scenario, (&self.changes, &self.code), &self.result.runs).for_each(|run| rows.add(own, &run));
    }
}

/// Returns a view as text without styles, and as HTML.
pub fn both(view: &View) -> (String, String) {
    (anstream::adapter::strip_str(view.text().trim_end()).to_string(), view.html())
}

/// Returns a document as JSON.
pub fn json(document: &impl serde::Serialize) -> PyResult<String> {
    Ok(serde_json::to_string(document).map_err(Failure::from)?)
}

/// Converts series to numpy arrays, which own the memory that the run filled.
pub fn columns(py: Python<'_>, series: Vec<Series>) -> Vec<Column> {
    let array = |values| PyArray1::<f64>::from_vec(py, values).into_any().unbind();
    series.into_iter().map(|s| (s.name, s.unit, array(s.time_s), array(s.value))).collect()
}
