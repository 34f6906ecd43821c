//! Sweeps: a batch of jobs wherever it is asked for, and the folder that takes them.

use crate::ask::{Ask, raised_or, registry};
use crate::controller::Registered;
use crate::errors::Failure;
use crate::stop::{Stop, interruptible, pool};
use crate::world::{Again, Steps};
use paceline::Registry;
use paceline_lab::run::Runner;
use paceline_lab::scenario::Catalogue;
use paceline_lab::sweep::{JobRow, REPEATS, SweepError, SweepFolder, SweepResult};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// A sweep that was read: which jobs there are is arithmetic, and a plan is made where it is run.
#[pyclass(frozen, module = "paceline._paceline")]
pub struct Sweep {
    sweep: paceline_lab::sweep::Sweep,
    registry: Arc<Registry>,
}

/// A folder of a sweep, held by this process alone until it is closed: Python keeps what a traceback names.
#[pyclass(frozen, module = "paceline._paceline")]
pub struct Folder(Mutex<Option<Arc<SweepFolder>>>);

/// What a sweep came to.
#[pyclass(frozen, module = "paceline._paceline")]
pub struct Swept {
    result: SweepResult,
    /// As `paceline sweep --json` prints it: without its points where they are in a folder.
    #[pyo3(get)]
    document: String,
}

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

impl Swept {
    fn new(result: SweepResult, stored: bool) -> PyResult<Self> {
        let told = if stored { &result.without_points() } else { &result };
        let document = serde_json::to_string(told).map_err(Failure::from)?;
        Ok(Self { result, document })
    }
}

impl Folder {
    fn held(&self) -> PyResult<Arc<SweepFolder>> {
        let folder = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        folder.clone().ok_or_else(|| PyValueError::new_err("the folder is closed"))
    }
}

#[pymethods]
impl Sweep {
    #[new]
    #[pyo3(signature = (ask, seeds, controllers))]
    fn new(ask: Ask, seeds: Option<u64>, controllers: Vec<Registered>) -> PyResult<Self> {
        if let Some(seeds) = seeds.filter(|seeds| !REPEATS.contains(seeds)) {
            return Err(PyValueError::new_err(format!("seeds are 1 to 10000, not {seeds}")));
        }
        let registry = registry(controllers)?;
        let read = || -> Result<_, Failure> {
            let origin = match ask.is_text() {
                true => ask.origin()?,
                false => Catalogue.find_sweep(&ask.name)?,
            };
            let settings = ask.settings()?;
            let mut sweep = raised_or(|| paceline_lab::sweep::Sweep::load_with(&origin, &settings, &registry))?;
            sweep.repeats = seeds.unwrap_or(sweep.repeats);
            Ok(sweep)
        };
        Ok(Self { sweep: read()?, registry: Arc::new(registry) })
    }

    /// Its text, changes made.
    #[getter]
    fn text(&self) -> &str {
        &self.sweep.origin().text
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

    /// Every job on local threads, in memory.
    fn run(&self, py: Python<'_>, threads: Option<usize>) -> PyResult<Swept> {
        Swept::new(self.with_runner(py, threads, |runner| self.sweep.run(runner, &|| ()))?, false)
    }

    /// Makes a folder for it, or goes on with one.
    fn open(&self, dir: PathBuf, resume: bool) -> PyResult<Folder> {
        let folder = raised_or(|| SweepFolder::open(&dir, &self.sweep, WORLD, &self.registry, resume))?;
        Ok(Folder(Mutex::new(Some(Arc::new(folder)))))
    }

    /// Complains if code is no longer what the folder's rows were made with.
    fn prove(&self, py: Python<'_>, folder: &Folder) -> PyResult<()> {
        let folder = folder.held()?;
        self.with_runner(py, None, |runner| self.sweep.prove(runner, &folder))
    }

    /// Every job that the folder lacks, on local threads.
    fn run_into(&self, py: Python<'_>, folder: &Folder, threads: Option<usize>) -> PyResult<Swept> {
        let folder = folder.held()?;
        Swept::new(self.with_runner(py, threads, |runner| self.sweep.run_into(runner, &folder, &|| ()))?, true)
    }

    /// What the folder's rows come to, all of them being there.
    fn merge(&self, py: Python<'_>, folder: &Folder) -> PyResult<Swept> {
        let folder = folder.held()?;
        Swept::new(py.detach(|| folder.merge(&self.sweep)).map_err(Failure::from)?, true)
    }

    /// The best points of what it came to once more, on more seeds, if its file asks for them.
    fn refined(&self, swept: &Swept) -> PyResult<Option<Self>> {
        let refined = raised_or(|| self.sweep.refined(&swept.result, &self.registry))?;
        Ok(refined.map(|sweep| Self { sweep, registry: Arc::clone(&self.registry) }))
    }
}

#[pymethods]
impl Folder {
    /// How many jobs are done.
    #[getter]
    fn done(&self) -> PyResult<u64> {
        Ok(self.held()?.done_jobs())
    }

    /// Lets go of it.
    fn close(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// What is not done yet, first and end of each batch.
    fn batches(&self, size: u64) -> PyResult<Vec<(u64, u64)>> {
        Ok(self.held()?.batches(size).into_iter().map(|range| (range.start, range.end)).collect())
    }

    /// Takes the rows of a batch, as JSON; those that it has already are left as they are.
    fn write(&self, py: Python<'_>, rows: &str) -> PyResult<()> {
        let rows: Vec<JobRow> = serde_json::from_str(rows).map_err(Failure::from)?;
        let folder = self.held()?;
        Ok(py.detach(|| folder.write(&rows)).map_err(Failure::from)?)
    }
}
