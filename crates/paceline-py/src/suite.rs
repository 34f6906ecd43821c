//! Suites: jobs of one suite under one subject in any process, and their merged results.

use crate::backend::{Repeat, with_runner};
use crate::controller::Registered;
use crate::errors::Failure;
use crate::recording::{both, json};
use crate::request::{check_controller, registry_with};
use crate::stop::{Stop, interruptible, pool};
use paceline::Registry;
use paceline_lab::suite::{ALL, Subject, Suite, run};
use paceline_lab::yardsticks::Oracle;
use paceline_results::SuitesReport;
use pyo3::prelude::*;
use std::collections::BTreeSet;

/// The results of suites.
#[pyclass(frozen, module = "paceline._paceline")]
pub struct FinishedSuites {
    /// The JSON document of `paceline suite --json`.
    #[pyo3(get)]
    document: String,
    /// The result as the command prints it.
    #[pyo3(get)]
    text: String,
    /// The same as HTML.
    #[pyo3(get)]
    html: String,
}

impl FinishedSuites {
    fn new(suites: &[Suite], report: &SuitesReport) -> PyResult<Self> {
        let (text, html) = both(&paceline_cli::suites_view(suites, report));
        Ok(Self { document: json(report)?, text, html })
    }
}

fn subjects(names: &[String], registry: &Registry) -> Result<Vec<Subject>, Failure> {
    for (n, name) in names.iter().enumerate().filter(|(_, name)| *name != ALL && Oracle::find(name).is_none()) {
        check_controller(name, registry)?;
        if names[..n].contains(name) {
            return Err(Failure::Argument(format!("controller `{name}` is named twice")));
        }
    }
    Ok(Subject::named(names, registry))
}

/// Returns the jobs: each suite under each controller. Jobs of other processes run them one by one.
#[pyfunction]
pub fn suite_jobs(
    py: Python<'_>,
    names: Vec<String>,
    controllers: Vec<String>,
    registered: Vec<Registered>,
) -> PyResult<Vec<(String, String)>> {
    let registry = registry_with(py, registered, &controllers)?;
    let subjects = subjects(&controllers, &registry)?;
    let (mut seen, mut jobs) = (BTreeSet::new(), Vec::new());
    for given in &names {
        for suite in Suite::find_all(core::slice::from_ref(given)).map_err(Failure::from)? {
            // A suite of a file is found by the name of the file alone.
            let name = if given == ALL { &suite.id } else { given };
            if seen.insert(suite.id.clone()) {
                jobs.extend(subjects.iter().map(|subject| (name.clone(), subject.name.clone())));
            }
        }
    }
    Ok(jobs)
}

/// Runs suites under controllers on local threads.
#[pyfunction]
#[pyo3(signature = (names, controllers, repeats, registered, threads))]
pub fn suites(
    py: Python<'_>,
    names: Vec<String>,
    controllers: Vec<String>,
    repeats: Option<u64>,
    registered: Vec<Registered>,
    threads: Option<usize>,
) -> PyResult<FinishedSuites> {
    let registry = registry_with(py, registered, &controllers)?;
    let suites = Suite::find_all(&names).map_err(Failure::from)?;
    let subjects = subjects(&controllers, &registry)?;
    let report = interruptible(py, |stop: &Stop| {
        with_runner("sim", (&registry, stop), Repeat::default(), |runner| {
            let make = || -> Result<SuitesReport, Failure> { Ok(run(runner, &suites, &subjects, repeats, &|_| ())??) };
            match threads {
                None => make(),
                Some(threads) => {
                    let pool = pool(Some(threads))
                        .map_err(|e| Failure::Argument(format!("cannot start {threads} threads: {e}")))?;
                    pool.install(make)
                }
            }
        })
    })?;
    FinishedSuites::new(&suites, &report)
}

/// Merges documents of the same suites under different controllers, in their order.
#[pyfunction]
pub fn merge_suites(names: Vec<String>, documents: Vec<String>) -> PyResult<FinishedSuites> {
    let suites = Suite::find_all(&names).map_err(Failure::from)?;
    let parts = documents.iter().map(|text| serde_json::from_str(text)).collect::<Result<Vec<SuitesReport>, _>>();
    FinishedSuites::new(&suites, &SuitesReport::merge(parts.map_err(Failure::from)?))
}
