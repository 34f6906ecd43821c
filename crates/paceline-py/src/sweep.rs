// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sweeps: batches of jobs in any process, and the folder that stores their rows.

use crate::controller::Registered;
use crate::errors::Failure;
use crate::packets::Column;
use crate::recording::{Making, RunsData, both, json};
use crate::request::{Request, registry};
use crate::rows::Rows;
use crate::stop::{Progress, Stop, interruptible, interruptible_with, on_threads};
use crate::world::{Repeat, with_runner};
use paceline::Registry;
use paceline_lab::results::SweepResult;
use paceline_lab::results::database::MeasuredRun;
use paceline_lab::run::Runner;
use paceline_lab::sweep::{JobRow, REPEATS, SweepError, SweepFolder};
use paceline_scenario::Catalogue;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// A loaded sweep. Jobs are computed from their number; a scenario is loaded where it is run.
#[pyclass(frozen, module = "paceline._paceline")]
pub struct Sweep {
    sweep: paceline_lab::sweep::Sweep,
    registry: Arc<Registry>,
    /// Name of the world.
    world: String,
}

/// A folder of a sweep, locked by this process until `close()`. A traceback can keep the object alive, so it is not enough to
/// drop it.
#[pyclass(frozen, module = "paceline._paceline")]
pub struct Folder(Mutex<Option<Arc<SweepFolder>>>);

/// The result of a sweep.
#[pyclass(frozen, module = "paceline._paceline")]
pub struct FinishedSweep {
    result: SweepResult,
    /// The JSON document of `paceline sweep --json`.
    #[pyo3(get)]
    document: String,
    /// The text of the sweep.
    #[pyo3(get)]
    source: String,
    /// The result as the command prints it.
    #[pyo3(get)]
    text: String,
    /// The same as HTML.
    #[pyo3(get)]
    html: String,
    /// The rows of a sweep in memory; those of a folder are read from it.
    rows: Rows,
}

impl Sweep {
    /// Calls `work` with a runner, on this number of threads; `None`: one for each core. The progress is counted in jobs.
    fn with_runner<T: Send>(
        &self,
        py: Python<'_>,
        (threads, progress): (Option<usize>, Progress),
        work: impl FnOnce(&Runner<'_>, &Stop) -> Result<T, SweepError> + Send,
    ) -> PyResult<T> {
        interruptible_with(py, progress, |stop: &Stop| {
            with_runner(&self.world, (&self.registry, stop), Repeat::default(), |runner| {
                let Runner { world, registry, clock, .. } = *runner;
                let runner = Runner { world, registry, clock, ticked: &|| () };
                on_threads(threads, || Ok(work(&runner, stop)?))
            })
        })
    }

    /// Returns the result as Python receives it.
    fn finished(&self, result: SweepResult, rows: &[JobRow]) -> PyResult<FinishedSweep> {
        let runs = self.sweep.measured(rows, &self.world, &self.registry).map_err(Failure::from)?;
        FinishedSweep::new(&self.sweep, result, &runs)
    }
}

impl FinishedSweep {
    fn new(sweep: &paceline_lab::sweep::Sweep, result: SweepResult, runs: &[MeasuredRun]) -> PyResult<Self> {
        let (text, html) = both(&paceline_cli::sweep_view(sweep, &result));
        let mut rows = Rows::default();
        runs.iter().for_each(|run| rows.add(&[], run));
        Ok(Self { rows, document: json(&result)?, source: sweep.origin().text.clone(), text, html, result })
    }

    /// Reads a folder.
    pub fn read(py: Python<'_>, dir: &Path, registry: Registry) -> PyResult<Self> {
        let (sweep, result) = py.detach(|| SweepFolder::read(dir, &registry)).map_err(Failure::from)?;
        Self::new(&sweep, result, &[])
    }
}

impl Folder {
    fn get(&self) -> PyResult<Arc<SweepFolder>> {
        let folder = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        folder.clone().ok_or_else(|| PyValueError::new_err("the folder is closed"))
    }
}

#[pymethods]
impl Sweep {
    #[new]
    #[pyo3(signature = (request, seeds, controllers, world))]
    fn new(request: Request, seeds: Option<u64>, controllers: Vec<Registered>, world: String) -> PyResult<Self> {
        if let Some(seeds) = seeds.filter(|seeds| !REPEATS.contains(seeds)) {
            return Err(Failure::Argument(format!("seeds must be 1 to 10000, not {seeds}")).into());
        }
        let registry = registry(controllers)?;
        let read = || -> Result<_, Failure> {
            let origin = match request.is_text() {
                true => request.origin()?,
                false => Catalogue.find_sweep(&request.name)?,
            };
            let settings = request.settings()?;
            let mut sweep = paceline_lab::sweep::Sweep::load_with(&origin, &settings, &registry)?;
            sweep.repeats = seeds.unwrap_or(sweep.repeats);
            Ok(sweep)
        };
        Ok(Self { sweep: read()?, registry: Arc::new(registry), world })
    }

    /// Returns the text with the changes.
    #[getter]
    fn text(&self) -> &str {
        &self.sweep.origin().text
    }

    /// Returns the number of jobs.
    #[getter]
    fn jobs(&self) -> u64 {
        self.sweep.jobs()
    }

    /// Returns a suitable number of jobs per batch for this number of workers.
    fn batch_size(&self, workers: u64) -> u64 {
        self.sweep.batch_size(workers)
    }

    /// Runs a range of jobs and returns their rows, in order, as JSON. They depend only on the sweep and the version.
    fn batch(&self, py: Python<'_>, first: u64, end: u64) -> PyResult<String> {
        let rows = self.with_runner(py, (None, None), |runner, _| self.sweep.batch(runner, first..end))?;
        Ok(serde_json::to_string(&rows).map_err(Failure::from)?)
    }

    /// Runs every job on local threads, in memory.
    fn run(&self, py: Python<'_>, threads: Option<usize>, progress: Progress) -> PyResult<FinishedSweep> {
        let rows = self.with_runner(py, (threads, progress), |runner, stop| {
            stop.expect(self.sweep.jobs());
            self.sweep.rows(runner, &|| stop.tick())
        })?;
        self.finished(self.sweep.result(&rows), &rows)
    }

    /// Creates a folder for the sweep, or resumes one.
    fn open(&self, dir: PathBuf, resume: bool) -> PyResult<Folder> {
        let folder =
            SweepFolder::open(&dir, &self.sweep, &self.world, &self.registry, resume).map_err(Failure::from)?;
        Ok(Folder(Mutex::new(Some(Arc::new(folder)))))
    }

    /// Checks that the folder's rows were made with the same code.
    fn verify(&self, py: Python<'_>, folder: &Folder) -> PyResult<()> {
        let folder = folder.get()?;
        self.with_runner(py, (None, None), |runner, _| self.sweep.verify(runner, &folder))
    }

    /// Runs every job that is missing in the folder, on local threads.
    fn run_into(
        &self,
        py: Python<'_>,
        folder: &Folder,
        threads: Option<usize>,
        progress: Progress,
    ) -> PyResult<FinishedSweep> {
        let folder = folder.get()?;
        let made = self.with_runner(py, (threads, progress), |runner, stop| {
            stop.expect(folder.jobs() - folder.done_jobs());
            let result = self.sweep.run_into(runner, &folder, &|| stop.tick())?;
            folder.write_tables(&self.sweep, &result)?;
            Ok(result)
        })?;
        self.finished(made, &[])
    }

    /// Computes the result from the folder's rows, which must be complete.
    fn merge(&self, py: Python<'_>, folder: &Folder) -> PyResult<FinishedSweep> {
        let folder = folder.get()?;
        self.finished(py.detach(|| folder.merge(&self.sweep)).map_err(Failure::from)?, &[])
    }

    /// Makes the runs behind a measure at a point, each with its series and packets.
    fn runs(&self, py: Python<'_>, request: Request, point: u64, measure: usize, making: Making) -> PyResult<RunsData> {
        let made = interruptible(py, |stop| {
            let scenario = self.sweep.measured_scenario(point, measure, &self.registry)?;
            making.runs(&request, None, scenario, (&self.registry, stop))
        })?;
        made.into_data(py, &self.registry)
    }

    /// Returns the sweep of the best points on more seeds, if the file has `[refine]`.
    fn refined(&self, finished: &FinishedSweep) -> PyResult<Option<Self>> {
        let refined = self.sweep.refined(&finished.result, &self.registry).map_err(Failure::from)?;
        let (registry, world) = (&self.registry, &self.world);
        Ok(refined.map(|sweep| Self { sweep, registry: Arc::clone(registry), world: world.clone() }))
    }
}

#[pymethods]
impl FinishedSweep {
    /// Returns the columns of the table of results, for a sweep in memory.
    #[getter]
    fn rows(&self, py: Python<'_>) -> Vec<Column> {
        self.rows.columns(py)
    }
}

#[pymethods]
impl Folder {
    /// Returns the number of finished jobs.
    #[getter]
    fn done(&self) -> PyResult<u64> {
        Ok(self.get()?.done_jobs())
    }

    /// Unlocks the folder.
    fn close(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// Returns the missing jobs as batches: first job, and end.
    fn batches(&self, size: u64) -> PyResult<Vec<(u64, u64)>> {
        Ok(self.get()?.batches(size).into_iter().map(|range| (range.start, range.end)).collect())
    }

    /// Stores the rows of a batch, given as JSON. Rows of jobs that are stored already are ignored.
    fn write(&self, py: Python<'_>, rows: &str) -> PyResult<()> {
        let rows: Vec<JobRow> = serde_json::from_str(rows).map_err(Failure::from)?;
        let folder = self.get()?;
        Ok(py.detach(|| folder.write(&rows)).map_err(Failure::from)?)
    }
}
