// SPDX-License-Identifier: MIT OR Apache-2.0
//! Suites: jobs in any process, and the folder that stores their runs.

use crate::controller::Registered;
use crate::errors::Failure;
use crate::packets::Column;
use crate::recording::{both, json};
use crate::request::{check_controller, registry_with};
use crate::rows::Rows;
use crate::stop::{Progress, Stop, interruptible, interruptible_with, on_threads};
use crate::world::{Repeat, with_runner};
use paceline::Registry;
use paceline_lab::done_runs::DoneRuns;
use paceline_lab::suite::{ALL, Subject, Suite, SuiteJob, SuiteRun};
use paceline_lab::yardsticks::Oracle;
use paceline_netsim::world::WorldError;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

const WORLD: &str = "sim";

/// The runs of suites under controllers.
#[pyclass(frozen, module = "paceline._paceline")]
pub struct SuiteRuns {
    state: Mutex<State>,
    registry: Registry,
    /// The argument that names each suite.
    names: Vec<String>,
}

struct State {
    runs: paceline_lab::suite::SuiteRuns,
    /// The folder and its finished runs.
    out: Option<(PathBuf, DoneRuns)>,
    /// The jobs that were handed out.
    jobs: Vec<SuiteJob>,
}

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
    rows: Rows,
}

#[pymethods]
impl FinishedSuites {
    /// Returns the columns of the table of results.
    #[getter]
    fn rows(&self, py: Python<'_>) -> Vec<Column> {
        self.rows.columns(py)
    }
}

/// Returns the controllers and oracles of these names, each once.
pub fn subjects(names: &[String], registry: &Registry) -> Result<Vec<Subject>, Failure> {
    for (n, name) in names.iter().enumerate().filter(|(_, name)| *name != ALL && Oracle::find(name).is_none()) {
        check_controller(name, registry)?;
        if names[..n].contains(name) {
            return Err(Failure::Argument(format!("controller `{name}` is named twice")));
        }
    }
    Ok(Subject::named(names, registry))
}

/// A job of a worker: its number, suite, controller, index of the scenario, indices of its cases, and seeds.
type Job = (usize, String, String, usize, Vec<usize>, Vec<u64>);

#[pymethods]
impl SuiteRuns {
    /// Loads suites under controllers, and reads the finished runs of a folder.
    #[new]
    #[pyo3(signature = (names, controllers, seeds, registered, out, resume))]
    fn new(
        py: Python<'_>,
        names: Vec<String>,
        controllers: Vec<String>,
        seeds: Option<Vec<u64>>,
        registered: Vec<Registered>,
        out: Option<PathBuf>,
        resume: bool,
    ) -> PyResult<Self> {
        let own: Vec<String> = registered.iter().map(|controller| controller.name.clone()).collect();
        let registry = Oracle::add_all(registry_with(py, registered, &controllers)?);
        let (mut suites, mut arguments) = (Vec::<Suite>::new(), Vec::new());
        for given in &names {
            for suite in Suite::find_all(core::slice::from_ref(given)).map_err(Failure::from)? {
                if suites.iter().all(|other| other.id != suite.id) {
                    // A suite of a file is found by the name of the file alone.
                    arguments.push(suite.own_name(given));
                    suites.push(suite);
                }
            }
        }
        let subjects = subjects(&controllers, &registry)?;
        let loaded = py.detach(|| paceline_lab::suite::SuiteRuns::load(suites, subjects, seeds.as_deref(), &registry));
        let mut runs = loaded.map_err(Failure::from)?;
        let Some(folder) = out else {
            return Ok(Self {
                state: Mutex::new(State { runs, out: None, jobs: Vec::new() }),
                registry,
                names: arguments,
            });
        };
        let done = DoneRuns::open(&folder).map_err(Failure::from)?;
        if done.count() > 0 && !resume {
            let (place, count) = (folder.display(), done.count());
            let message =
                format!("`{place}` holds {count} finished runs; resume=True uses them, and a new folder starts again");
            return Err(Failure::Argument(message).into());
        }
        interruptible(py, |stop| {
            runs.restore(WORLD, &done)?;
            with_runner(WORLD, (&registry, stop), Repeat::default(), |runner| {
                for (index, subject) in runs.subjects().iter().enumerate().filter(|(_, of)| own.contains(&of.name)) {
                    if !runs.is_repeatable(runner, index)? {
                        let (place, name) = (folder.display(), &subject.name);
                        let message =
                            format!("`{place}` holds runs of other code of the controller `{name}`; name a new folder");
                        return Err(Failure::Argument(message));
                    }
                }
                Ok(())
            })
        })?;
        let state = State { runs, out: Some((folder, done)), jobs: Vec::new() };
        Ok(Self { state: Mutex::new(state), registry, names: arguments })
    }

    /// Makes the missing runs on local threads; `None`: one for each core.
    #[pyo3(signature = (threads, progress))]
    fn run(&self, py: Python<'_>, threads: Option<usize>, progress: Progress) -> PyResult<()> {
        interruptible_with(py, progress, |stop: &Stop| {
            with_runner(WORLD, (&self.registry, stop), Repeat::default(), |runner| {
                let State { runs, out, .. } = &mut *self.state();
                let done = out.as_ref().map(|(_, done)| done);
                on_threads(threads, || Ok(runs.run(runner, done, &|seconds| stop.expect(seconds as u64))?))
            })
        })
    }

    /// Returns the missing runs as jobs for this number of workers. Finished runs may show that more are needed, until there are no jobs.
    #[pyo3(signature = (workers, batch))]
    fn jobs(&self, workers: usize, batch: Option<usize>) -> Vec<Job> {
        let State { runs, jobs, .. } = &mut *self.state();
        *jobs = runs.jobs(workers, batch);
        let of = |(number, job): (usize, &SuiteJob)| {
            let SuiteJob { suite, subject, scenario, cases, seeds } = job.clone();
            (number, self.names[suite].clone(), runs.subjects()[subject].name.clone(), scenario, cases, seeds)
        };
        jobs.iter().enumerate().map(of).collect()
    }

    /// Adds and stores the runs of a job, given as JSON.
    fn add(&self, py: Python<'_>, job: usize, runs: &str) -> PyResult<()> {
        let finished: Vec<SuiteRun> = serde_json::from_str(runs).map_err(Failure::from)?;
        Ok(py.detach(|| {
            let State { runs, out, jobs } = &mut *self.state();
            runs.add(&jobs[job], finished, (WORLD, out.as_ref().map(|(_, done)| done))).map_err(Failure::from)
        })?)
    }

    /// Returns the results, and writes them into the folder. All runs must be finished.
    fn finish(&self, py: Python<'_>) -> PyResult<FinishedSuites> {
        let State { runs, out, .. } = &mut *self.state();
        let report = py.detach(|| runs.report(WORLD));
        if let Some((folder, _)) = out {
            let write = py.detach(|| paceline_cli::write_suites(folder, &report));
            write.map_err(|error| Failure::World(WorldError::broken_by(&*error)))?;
        }
        let mut rows = Rows::new(&["suite", "controller"]);
        runs.measured(WORLD).for_each(|(suite, subject, run)| rows.add(&[&suite.id, &subject.name], &run));
        let (text, html) = both(&paceline_cli::suites_view(runs.suites(), &report));
        Ok(FinishedSuites { document: json(&report)?, text, html, rows })
    }

    /// Closes the folder.
    fn close(&self) {
        self.state().out = None;
    }
}

impl SuiteRuns {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes the runs of a job and returns them as JSON: cases of a scenario of a suite under a controller.
#[pyfunction]
pub fn suite_job(
    py: Python<'_>,
    suite: &str,
    controller: String,
    scenario: usize,
    cases: Vec<usize>,
    seeds: Vec<u64>,
    registered: Vec<Registered>,
) -> PyResult<String> {
    let names = [controller];
    let registry = Oracle::add_all(registry_with(py, registered, &names)?);
    let suite = Suite::find(suite).map_err(Failure::from)?;
    let subjects = subjects(&names, &registry)?;
    let job = SuiteJob { suite: 0, subject: 0, scenario, cases, seeds };
    let runs = interruptible(py, |stop| {
        with_runner(WORLD, (&registry, stop), Repeat::default(), |runner| {
            Ok(paceline_lab::suite::SuiteRuns::run_job(runner, &suite, &subjects[0], &job)??)
        })
    })?;
    json(&runs)
}
