// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stored results: what `--out DIR` wrote, by this package or by the command.

use crate::errors::Failure;
use crate::packets::{Column as PacketColumn, PacketRecorder};
use crate::recording::{Column, both, columns};
use crate::request::registry;
use crate::rows::Rows;
use crate::series::SeriesRecorder;
use crate::{controller::Registered, sweep::FinishedSweep};
use paceline_lab::report::Results;
use paceline_lab::results::database::Database;
use paceline_lab::results::files::read_json;
use paceline_lab::results::{
    Group, RUNS, SCOREBOARD_FILE, SUITES_FILE, Store, SuiteReport, SuitesReport, tables::RunTables,
};
use paceline_lab::suite::Suite;
use paceline_netsim::records::Summary;
use pyo3::prelude::*;
use std::path::{Path, PathBuf};

/// A folder of results as Python receives it. Its events are read when they are needed.
#[derive(IntoPyObject, Default)]
pub struct StoredData {
    runs: Vec<StoredRunData>,
    /// The JSON document of each group of runs, and its views as text and as HTML.
    groups: Vec<(String, String, String)>,
    /// The JSON document of each comparison, and its views as text and as HTML.
    comparisons: Vec<(String, String, String)>,
    sweep: Option<FinishedSweep>,
    /// The JSON document of suites, and its views as text and as HTML.
    suites: Option<(String, String, String)>,
    /// The JSON document of `reproduce --out`.
    scoreboard: Option<String>,
}

/// A stored run.
#[derive(IntoPyObject)]
pub struct StoredRunData {
    directory: PathBuf,
    /// The run's entry in `run --json`; `null` for a run that was interrupted.
    document: String,
    /// Names, seed and files of the run, as JSON.
    stored: String,
    /// What plots need besides events, as JSON.
    description: String,
    text: String,
    html: String,
    controllers: Vec<String>,
}

/// Reads a folder of results.
#[pyfunction]
pub fn load(py: Python<'_>, dir: PathBuf, controllers: Vec<Registered>) -> PyResult<StoredData> {
    let is_sweep = paceline_lab::sweep::SweepFolder::id_at(&dir).is_some();
    if is_sweep {
        let finished = FinishedSweep::read(py, &dir, registry(controllers)?)?;
        return Ok(StoredData { sweep: Some(finished), ..StoredData::default() });
    }
    Ok(py.detach(|| read(&dir))?)
}

fn read(dir: &Path) -> Result<StoredData, Failure> {
    let mut data = StoredData::default();
    let scoreboard = dir.join(SCOREBOARD_FILE);
    if scoreboard.is_file() {
        let document: serde_json::Value = read_json(&scoreboard)?;
        data.scoreboard = Some(document.to_string());
        if !Store::exists(dir) {
            return Ok(data);
        }
    }
    let suites = dir.join(SUITES_FILE);
    if suites.is_file() {
        let report = SuitesReport::read(&suites)?;
        let named: Vec<Suite> = report.suites.iter().map(described).collect();
        let (text, html) = both(&paceline_cli::suites_view(&named, &report));
        data.suites = Some((serde_json::to_string(&report)?, text, html));
        return Ok(data);
    }
    let results = Results::open(dir)?;
    for run in &results.runs {
        let group = results.groups.iter().find_map(|group| of_run(group, &run.about.run.directory));
        let (text, html) = group.map_or_else(Default::default, |group| both(&paceline_cli::group_view(&group)));
        data.runs.push(StoredRunData {
            directory: dir.join(RUNS).join(&run.about.run.directory),
            document: run.result.to_string(),
            stored: serde_json::to_string(&run.about.run)?,
            description: serde_json::to_string(&run.description())?,
            text,
            html,
            controllers: (0..run.about.flows.len()).map(|flow| run.controller(flow).to_owned()).collect(),
        });
    }
    for group in &results.groups {
        let (text, html) = both(&paceline_cli::group_view(group));
        data.groups.push((serde_json::to_string(group)?, text, html));
    }
    for table in &results.comparisons {
        let (text, html) = both(&paceline_cli::comparison_table_view(table));
        data.comparisons.push((serde_json::to_string(table)?, text, html));
    }
    Ok(data)
}

/// Returns a suite of the catalogue with the verdicts that it expects, or the suite of a report.
fn described(report: &SuiteReport) -> Suite {
    let SuiteReport { id, title, source, family, developed, repeats, .. } = report.clone();
    let own = Suite {
        id,
        title,
        source,
        family,
        developed,
        repeats,
        scenarios: Vec::new(),
        short_repeats: 3,
        short_tests: Default::default(),
        tests: None,
        settings: Vec::new(),
        expected: None,
        expected_file: None,
    };
    Suite::find(&report.id).unwrap_or(own)
}

/// Returns the group as if it consisted of the run in this folder; `None` if it does not contain it. What is judged by all runs is
/// left out.
fn of_run(group: &Group, directory: &str) -> Option<Group> {
    let index = group.runs.iter().position(|run| run == directory)?;
    let metrics = &group.per_run.get(index)?.metrics;
    let summary = metrics.iter().filter_map(|(id, value)| Some((id.clone(), Summary::from_values(&[*value])?)));
    Some(Group {
        seeds: vec![*group.seeds.get(index)?],
        runs: vec![directory.to_owned()],
        summary: summary.collect(),
        cells: Vec::new(),
        assertions: Vec::new(),
        per_run: vec![group.per_run[index].clone()],
        ..group.clone()
    })
}

/// Returns the table of results of a folder: of every run, or of the runs with these folders.
#[pyfunction]
#[pyo3(signature = (dir, directories))]
pub fn rows(py: Python<'_>, dir: PathBuf, directories: Option<Vec<String>>) -> PyResult<Vec<PacketColumn>> {
    let rows = py.detach(|| -> Result<Rows, Failure> {
        let mut rows = Rows::default();
        let database = Database::open(&dir)?;
        database.each_run(|run, folder| {
            let is_wanted = |names: &Vec<String>| folder.is_some_and(|own| names.iter().any(|name| name == own));
            if directories.as_ref().is_none_or(is_wanted) {
                rows.add(&[], &run);
            }
        })?;
        Ok(rows)
    })?;
    Ok(rows.columns(py))
}

/// The series of a stored run, or its packets.
type Replayed = (Option<Vec<Column>>, Option<Vec<PacketColumn>>);

/// Reads the series of a stored run, or its packets.
#[pyfunction]
pub fn replay(py: Python<'_>, directory: PathBuf, packets: bool) -> PyResult<Replayed> {
    let (series, packets) = py.detach(|| -> Result<_, Failure> {
        Store::read_settled(&directory, || {
            let about = Store::read_run(&directory)?.about;
            let header = about.header();
            let mut recorder =
                ((!packets).then(|| SeriesRecorder::new(&header)), packets.then(|| PacketRecorder::new(&header)));
            RunTables::new(&directory, &about).replay(&header, &mut recorder)?;
            Ok(recorder)
        })
    })?;
    Ok((series.map(|recorder| columns(py, recorder.finish())), packets.map(|recorder| recorder.columns(py))))
}
