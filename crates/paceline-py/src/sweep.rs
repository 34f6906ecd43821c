//! Sweeps: batches of jobs in any process, and the folder that stores their rows.

use crate::controller::Registered;
use crate::errors::Failure;
use crate::request::{Request, raised_or, registry};
use crate::stop::{Stop, interruptible, pool};
use crate::world::{Repeat, SteppedSimulator};
use paceline::Registry;
use paceline_lab::run::Runner;
use paceline_lab::sweep::{JobRow, REPEATS, SweepError, SweepFolder};
use paceline_results::SweepResult;
use paceline_scenario::Catalogue;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// A loaded sweep. Jobs are computed from their number; a scenario is loaded where it is run.
#[pyclass(frozen, module = "paceline._paceline")]
pub struct Sweep {
    sweep: paceline_lab::sweep::Sweep,
    registry: Arc<Registry>,
}

/// A folder of a sweep, locked by this process until `close()`. A traceback can keep the object alive, so it is not enough to
/// drop it.
#[pyclass(frozen, module = "paceline._paceline")]
pub struct Folder(Mutex<Option<Arc<SweepFolder>>>);

/// The result of a sweep.
#[pyclass(frozen, module = "paceline._paceline")]
pub struct FinishedSweep {
    result: SweepResult,
    /// The JSON document of `paceline sweep --json`: without the points if they are in a folder.
    #[pyo3(get)]
    document: String,
}

const WORLD: &str = "sim";

impl Sweep {
    /// Calls `work` with a runner, on this number of threads; `None`: one for each core.
    fn with_runner<T: Send>(
        &self,
        py: Python<'_>,
        threads: Option<usize>,
        work: impl FnOnce(&Runner<'_>) -> Result<T, SweepError> + Send,
    ) -> PyResult<T> {
        interruptible(py, |stop: &Stop| {
            let world = SteppedSimulator::new(stop, Repeat::default());
            let runner = Runner::new(&world, &self.registry);
            let done = match threads {
                None => work(&runner),
                Some(threads) => {
                    let pool = pool(Some(threads))
                        .map_err(|e| PyValueError::new_err(format!("cannot start {threads} threads: {e}")))?;
                    pool.install(|| work(&runner))
                }
            };
            done.map_err(|error| match error {
                SweepError::Backend(error) => world.failure(error),
                other => Failure::from(other),
            })
        })
    }
}

impl FinishedSweep {
    fn new(result: SweepResult, stored: bool) -> PyResult<Self> {
        let printed = if stored { &result.without_points() } else { &result };
        let document = serde_json::to_string(printed).map_err(Failure::from)?;
        Ok(Self { result, document })
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
    #[pyo3(signature = (request, seeds, controllers))]
    fn new(request: Request, seeds: Option<u64>, controllers: Vec<Registered>) -> PyResult<Self> {
        if let Some(seeds) = seeds.filter(|seeds| !REPEATS.contains(seeds)) {
            return Err(PyValueError::new_err(format!("seeds must be 1 to 10000, not {seeds}")));
        }
        let registry = registry(controllers)?;
        let read = || -> Result<_, Failure> {
            let origin = match request.is_text() {
                true => request.origin()?,
                false => Catalogue.find_sweep(&request.name)?,
            };
            let settings = request.settings()?;
            let mut sweep = raised_or(|| paceline_lab::sweep::Sweep::load_with(&origin, &settings, &registry))?;
            sweep.repeats = seeds.unwrap_or(sweep.repeats);
            Ok(sweep)
        };
        Ok(Self { sweep: read()?, registry: Arc::new(registry) })
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
        let rows = self.with_runner(py, None, |runner| self.sweep.batch(runner, first..end))?;
        Ok(serde_json::to_string(&rows).map_err(Failure::from)?)
    }

    /// Runs every job on local threads, in memory.
    fn run(&self, py: Python<'_>, threads: Option<usize>) -> PyResult<FinishedSweep> {
        FinishedSweep::new(self.with_runner(py, threads, |runner| self.sweep.run(runner, &|| ()))?, false)
    }

    /// Creates a folder for the sweep, or resumes one.
    fn open(&self, dir: PathBuf, resume: bool) -> PyResult<Folder> {
        let folder = raised_or(|| SweepFolder::open(&dir, &self.sweep, WORLD, &self.registry, resume))?;
        Ok(Folder(Mutex::new(Some(Arc::new(folder)))))
    }

    /// Checks that the folder's rows were made with the same code.
    fn verify(&self, py: Python<'_>, folder: &Folder) -> PyResult<()> {
        let folder = folder.get()?;
        self.with_runner(py, None, |runner| self.sweep.verify(runner, &folder))
    }

    /// Runs every job that is missing in the folder, on local threads.
    fn run_into(&self, py: Python<'_>, folder: &Folder, threads: Option<usize>) -> PyResult<FinishedSweep> {
        let folder = folder.get()?;
        FinishedSweep::new(self.with_runner(py, threads, |runner| self.sweep.run_into(runner, &folder, &|| ()))?, true)
    }

    /// Computes the result from the folder's rows, which must be complete.
    fn merge(&self, py: Python<'_>, folder: &Folder) -> PyResult<FinishedSweep> {
        let folder = folder.get()?;
        FinishedSweep::new(py.detach(|| folder.merge(&self.sweep)).map_err(Failure::from)?, true)
    }

    /// Returns the sweep of the best points on more seeds, if the file has `[refine]`.
    fn refined(&self, finished: &FinishedSweep) -> PyResult<Option<Self>> {
        let refined = raised_or(|| self.sweep.refined(&finished.result, &self.registry))?;
        Ok(refined.map(|sweep| Self { sweep, registry: Arc::clone(&self.registry) }))
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
