//! The commands as functions. Documents are JSON, of the same shape as the command's `--json`.

use crate::controller::Registered;
use crate::errors::Failure;
use crate::plot::RecordedRun;
use crate::request::{Request, raised_or, registry};
use crate::series::SeriesRecorder;
use crate::stop::{Stop, interruptible};
use crate::world::{Repeat, SteppedSimulator};
use paceline::Registry;
use paceline_lab::reproduce::{Seeds, Targets};
use paceline_lab::run::{Runner, RunsResult};
use paceline_lab::storage::run_and_store;
use paceline_records::RunHeader;
use paceline_results::Store;
use paceline_scenario::{self, Catalogue, Scenario};
use pyo3::prelude::*;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Calls `work` with a runner of the simulator. If a controller in Python raised an exception, that is the failure.
fn with_runner<T>(
    stop: &Stop,
    repeat: Repeat<'_>,
    registry: &Registry,
    work: impl FnOnce(&Runner<'_>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let world = SteppedSimulator::new(stop, repeat);
    let started = Instant::now();
    let clock = || started.elapsed().as_secs_f64();
    let runner = Runner { world: &world, registry, clock: &clock, ticked: &|| () };
    work(&runner).map_err(|failure| match failure {
        Failure::Backend(error) => world.failure(error),
        other => other,
    })
}

/// Makes one run with its series.
#[pyfunction]
#[pyo3(signature = (request, controller, seed, controllers, out))]
pub fn run(
    py: Python<'_>,
    request: Request,
    controller: Option<String>,
    seed: u64,
    controllers: Vec<Registered>,
    out: Option<PathBuf>,
) -> PyResult<RecordedRun> {
    let registry = registry(controllers)?;
    let (scenario, description, documents, series) = interruptible(py, |stop| {
        let scenario = request.scenario(controller.as_deref(), &registry)?;
        let store = out.as_deref().map(Store::create).transpose()?;
        let mut recorder = None;
        let result = with_runner(stop, request.repeat(controller.as_deref()), &registry, |runner| {
            let start = |header: &RunHeader| Ok(SeriesRecorder::new(header));
            let finish = |recorded| {
                recorder = Some(recorded);
                Ok(())
            };
            run_and_store(runner, &scenario, &[seed], (store.as_ref(), request.inputs()?), start, finish)
        })?;
        let metrics = serde_json::to_string(&result.runs[0].metrics(&scenario))?;
        let description = scenario.plan.describe(&registry);
        let series = recorder.expect("one run was made").finish();
        Ok((scenario, description, (serde_json::to_string(&result)?, metrics), series))
    })?;
    Ok(RecordedRun::new(py, &scenario, seed, description, documents, series))
}

/// Makes the runs of a scenario on these seeds: on all cores, or one after the other into a folder.
fn all_runs(
    request: &Request,
    controller: Option<&str>,
    (scenario, seeds, out): (&Scenario, &[u64], Option<&Path>),
    registry: &Registry,
    stop: &Stop,
) -> Result<RunsResult, Failure> {
    with_runner(stop, request.repeat(controller), registry, |runner| match out {
        None => Ok(runner.run_all(scenario, seeds)?),
        Some(dir) => {
            let store = Store::create(dir)?;
            let stored = (Some(&store), request.inputs()?);
            run_and_store(runner, scenario, seeds, stored, |_| Ok(()), |()| Ok(()))
        }
    })
}

/// Makes runs on these seeds, on all cores.
#[pyfunction]
#[pyo3(signature = (request, controller, seeds, controllers, out))]
pub fn runs(
    py: Python<'_>,
    request: Request,
    controller: Option<String>,
    seeds: Vec<u64>,
    controllers: Vec<Registered>,
    out: Option<PathBuf>,
) -> PyResult<String> {
    let registry = registry(controllers)?;
    interruptible(py, |stop| {
        let controller = controller.as_deref();
        let scenario = request.scenario(controller, &registry)?;
        let result = all_runs(&request, controller, (&scenario, &seeds, out.as_deref()), &registry, stop)?;
        Ok(serde_json::to_string(&result)?)
    })
}

/// Makes runs on the same seeds under each controller, and compares each with the first.
#[pyfunction]
#[pyo3(signature = (request, names, seeds, controllers, out))]
pub fn compare(
    py: Python<'_>,
    request: Request,
    names: Vec<String>,
    seeds: Option<Vec<u64>>,
    controllers: Vec<Registered>,
    out: Option<PathBuf>,
) -> PyResult<String> {
    let registry = registry(controllers)?;
    interruptible(py, |stop| {
        let scenarios: Vec<Scenario> =
            names.iter().map(|name| request.scenario(Some(name), &registry)).collect::<Result<_, _>>()?;
        let seeds = seeds.unwrap_or_else(|| (1..=u64::from(scenarios[0].repeats)).collect());
        let result = |(name, scenario): (&String, &Scenario)| {
            all_runs(&request, Some(name), (scenario, &seeds, out.as_deref()), &registry, stop)
        };
        let results = names.iter().zip(&scenarios).map(result).collect::<Result<Vec<RunsResult>, _>>()?;
        Ok(serde_json::to_string(&paceline_lab::compare::compare(&names, &scenarios, results))?)
    })
}

/// Gives a verdict on each published value and claim of these experiments.
#[pyfunction]
#[pyo3(signature = (requests, controller, seeds, controllers))]
pub fn reproduce(
    py: Python<'_>,
    requests: Vec<Request>,
    controller: Option<String>,
    seeds: Option<u64>,
    controllers: Vec<Registered>,
) -> PyResult<String> {
    let registry = registry(controllers)?;
    let controller = controller.as_deref();
    interruptible(py, |stop| {
        let origin = |request: &Request| -> Result<_, Failure> {
            let is_table = !request.is_text() && Catalogue.formula_tables().any(|id| id == request.name);
            let origin = if is_table { Catalogue.find_formula_table(&request.name)? } else { request.origin()? };
            Ok((origin, request.changes(controller)?))
        };
        let origins = requests.iter().map(origin).collect::<Result<Vec<_>, _>>()?;
        let targets = raised_or(|| Targets::load(origins, &registry))?;
        let repeat = match requests.as_slice() {
            [request] => request.repeat(controller),
            _ => Repeat { call: None, controller },
        };
        let seeds = seeds.map_or(Seeds::AsNeeded, Seeds::Exactly);
        let verdicts = with_runner(stop, repeat, &registry, |runner| Ok(targets.verdicts(runner, seeds, &|_| ())?))?;
        Ok(serde_json::to_string(&verdicts)?)
    })
}

/// Returns the name and the text of a scenario.
#[pyfunction]
pub fn find(name: &str) -> PyResult<(String, String)> {
    let origin = Catalogue.find(name).map_err(Failure::from)?;
    Ok((origin.name, origin.text))
}

/// Returns the text of a scenario with its changes written into it.
#[pyfunction]
pub fn edited(request: Request) -> PyResult<String> {
    let text = || -> Result<String, Failure> {
        Ok(paceline_scenario::edited(&request.origin()?, &request.settings()?, &Registry::standard())?)
    };
    Ok(text()?)
}

/// Returns the cases of a scenario, each as `name=value`.
#[pyfunction]
pub fn cases(request: Request, controllers: Vec<Registered>) -> PyResult<Vec<String>> {
    let registry = registry(controllers)?;
    Ok(request.scenario(None, &registry)?.cases.iter().map(ToString::to_string).collect())
}

/// Returns the catalogue, similar to `list --json`: controllers with their parameters and signals, scenarios, sweeps, metrics.
#[pyfunction]
pub fn catalogue(controllers: Vec<Registered>) -> PyResult<String> {
    let overview = paceline_lab::catalogue::overview(&registry(controllers)?);
    Ok(serde_json::to_string(&overview).map_err(Failure::from)?)
}
