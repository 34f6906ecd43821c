//! Sweeps: a batch of jobs wherever it is asked for, and the folder that takes them.

use crate::ask::{Ask, registry};
use crate::controller::Registered;
use crate::errors::Failure;
use crate::stop::{Stop, interruptible, pool};
use crate::world::{Again, Steps};
use paceline::Registry;
use paceline_lab::run::Runner;
use paceline_lab::scenario::Catalogue;
use paceline_lab::sweep::{JobRow, SweepError, SweepFolder, SweepResult};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::path::PathBuf;

/// A sweep that was read: which jobs there are is arithmetic, and a plan is made where it is run.
#[pyclass(frozen, module = "paceline._paceline")]
pub struct Sweep {
    sweep: paceline_lab::sweep::Sweep,
    registry: Registry,
}

/// A folder of a sweep, held by this process alone.
#[pyclass(frozen, module = "paceline._paceline")]
pub struct Folder(SweepFolder);

const WORLD: &str = "sim";

impl Sweep {
    /// Does `work` with a runner and on so many threads; none: as many as there are cores.
    fn with_runner<T: Send>(
        &self,
        py: Python<'_>,
        threads: Option<usize>,
        work: impl FnOnce(&Runner<'_>) -> Result<T, SweepError> + Send,
    ) -> PyResult<T> {
        interruptible(py, |stop: &Stop| {
            let world = Steps::new(stop, Again::default());
            let runner = Runner { world: &world, registry: &self.registry, clock: &|| 0.0, ticked: &|| () };
            let done = match threads {
                None => work(&runner),
                Some(threads) => {
                    let pool =
                        pool(Some(threads)).map_err(|e| PyValueError::new_err(format!("{threads} threads: {e}")))?;
                    pool.install(|| work(&runner))
                }
            };
            done.map_err(|error| match error {
                SweepError::World(error) => world.failure(error),
                other => Failure::from(other),
            })
        })
    }
}

fn json(result: &SweepResult) -> PyResult<String> {
    Ok(serde_json::to_string(result).map_err(Failure::from)?)
}

#[pymethods]
impl Sweep {
    #[new]
    #[pyo3(signature = (ask, seeds, controllers))]
    fn new(ask: Ask, seeds: Option<u64>, controllers: Vec<Registered>) -> PyResult<Self> {
        let registry = registry(controllers)?;
        let read = || -> Result<_, Failure> {
            let origin = match ask.is_text() {
                true => ask.origin()?,
                false => Catalogue.find_sweep(&ask.name)?,
            };
            let mut sweep = paceline_lab::sweep::Sweep::load_with(&origin, &ask.settings()?, &registry)?;
            sweep.repeats = seeds.unwrap_or(sweep.repeats);
            Ok(sweep)
        };
        Ok(Self { sweep: read()?, registry })
    }

    /// How many jobs there are.
    #[getter]
    fn jobs(&self) -> u64 {
        self.sweep.jobs()
    }

    /// How many jobs should be done at a time by so many workers.
    fn batch_size(&self, workers: u64) -> u64 {
        self.sweep.batch_size(workers)
    }

    /// The rows of some jobs, in order, as JSON. They hang on nothing but sweep and version.
    fn batch(&self, py: Python<'_>, first: u64, end: u64) -> PyResult<String> {
        let rows = self.with_runner(py, None, |runner| self.sweep.batch(runner, first..end))?;
        Ok(serde_json::to_string(&rows).map_err(Failure::from)?)
    }

    /// Every job on local threads, in memory; the result as JSON.
    fn run(&self, py: Python<'_>, threads: Option<usize>) -> PyResult<String> {
        json(&self.with_runner(py, threads, |runner| self.sweep.run(runner, &|| ()))?)
    }

    /// Makes a folder for it, or goes on with one.
    fn open(&self, dir: PathBuf, resume: bool) -> PyResult<Folder> {
        let folder = SweepFolder::open(&dir, &self.sweep, WORLD, &self.registry, resume);
        Ok(Folder(folder.map_err(Failure::from)?))
    }

    /// Every job that the folder lacks, on local threads; the result without its points, which are in the folder, as JSON.
    fn run_into(&self, py: Python<'_>, folder: &Folder, threads: Option<usize>) -> PyResult<String> {
        json(&self.with_runner(py, threads, |runner| self.sweep.run_into(runner, &folder.0, &|| ()))?.without_points())
    }

    /// What the folder's rows come to, all of them being there; as of `run_into`.
    fn merge(&self, py: Python<'_>, folder: &Folder) -> PyResult<String> {
        let merged = py.detach(|| folder.0.merge(&self.sweep)).map_err(Failure::from)?;
        json(&merged.without_points())
    }
}

#[pymethods]
impl Folder {
    /// How many jobs are done.
    #[getter]
    fn done(&self) -> u64 {
        self.0.done_jobs()
    }

    /// What is not done yet, first and end of each batch.
    fn batches(&self, size: u64) -> Vec<(u64, u64)> {
        self.0.batches(size).into_iter().map(|range| (range.start, range.end)).collect()
    }

    /// Takes the rows of a batch, as JSON; those that it has already are left as they are.
    fn write(&self, py: Python<'_>, rows: &str) -> PyResult<()> {
        let rows: Vec<JobRow> = serde_json::from_str(rows).map_err(Failure::from)?;
        Ok(py.detach(|| self.0.write(&rows)).map_err(Failure::from)?)
    }
}
