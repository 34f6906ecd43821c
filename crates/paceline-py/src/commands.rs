// SPDX-License-Identifier: MIT OR Apache-2.0
//! The commands as functions. Documents are JSON, of the same shape as the command's `--json`.

use crate::controller::Registered;
use crate::errors::Failure;
use crate::packets::Column;
use crate::recording::{Making, RecordedRuns, RunsData, both, json};
use crate::request::{Request, registry, registry_with};
use crate::rows::Rows;
use crate::stop::{Progress, interruptible, interruptible_with};
use crate::suite::subjects;
use crate::world::{Repeat, with_runner};
use paceline::Registry;
use paceline_cli::Cited;
use paceline_lab::compare::{Candidates, Choice, choose as choice_of, usual};
use paceline_lab::judge::Experiment;
use paceline_lab::metrics;
use paceline_lab::report::choice::render;
use paceline_lab::reproduce::{RunContext, Seeds, Targets, reproduce as reproduce_experiments};
use paceline_lab::results::Store;
use paceline_lab::results::database::code;
use paceline_lab::run_identity::whole_runs;
use paceline_lab::yardsticks::Oracle;
use paceline_scenario::{self, Call, CallPath, Catalogue, Changes, Override, Scenario};
use pyo3::prelude::*;
use serde::Serialize;
use std::ffi::OsString;
use std::process::ExitCode;

/// Runs the command with these words, of which the first is the name of the program, and returns its exit code. `program` is how
/// the command starts itself.
#[pyfunction]
pub fn command(py: Python<'_>, words: Vec<OsString>, program: Vec<OsString>) -> u8 {
    paceline_cli::set_program(program);
    let exit = py.detach(|| paceline_cli::run(&words));
    // An exit code does not tell its number.
    (0..=u8::MAX).find(|code| ExitCode::from(*code) == exit).unwrap_or(u8::MAX)
}

/// Makes runs, each with its series and packets.
#[pyfunction]
#[pyo3(signature = (request, controller, making, controllers, progress))]
pub fn runs(
    py: Python<'_>,
    request: Request,
    controller: Option<String>,
    making: Making,
    controllers: Vec<Registered>,
    progress: Progress,
) -> PyResult<RunsData> {
    let registry = registry_with(py, controllers, &controller)?;
    let made = interruptible_with(py, progress, |stop| {
        let controller = controller.as_deref();
        let scenario = request.scenario(controller, &registry)?;
        stop.expect(making.seconds(&scenario));
        making.runs(&request, controller, scenario, (&registry, stop))
    })?;
    made.into_data(py, &registry)
}

/// A comparison as Python receives it.
#[derive(IntoPyObject)]
pub struct ComparisonData {
    /// The JSON document of `compare --json`.
    document: String,
    text: String,
    html: String,
    /// By controller, the baseline first.
    controllers: Vec<RunsData>,
    /// The table of results.
    rows: Vec<Column>,
}

/// Makes runs on the same seeds under each controller, and compares each with the first. `command` is the call.
#[pyfunction]
#[pyo3(signature = (request, names, making, controllers, command, progress))]
pub fn compare(
    py: Python<'_>,
    request: Request,
    names: Vec<String>,
    making: Making,
    controllers: Vec<Registered>,
    command: String,
    progress: Progress,
) -> PyResult<ComparisonData> {
    let registry = registry_with(py, controllers, &names)?;
    let (comparison, text, html, made) = interruptible_with(py, progress, |stop| {
        let scenarios: Vec<Scenario> =
            names.iter().map(|name| request.scenario(Some(name), &registry)).collect::<Result<_, _>>()?;
        stop.expect(scenarios.iter().map(|scenario| making.seconds(scenario)).sum());
        let made = |(name, scenario): (&String, &Scenario)| {
            making.runs(&request, Some(name), scenario.clone(), (&registry, stop))
        };
        let made = names.iter().zip(&scenarios).map(made).collect::<Result<Vec<RecordedRuns>, _>>()?;
        let results = made.iter().map(|runs| runs.result.clone()).collect();
        let mut comparison = paceline_lab::compare::compare(&names, &scenarios, results, &registry);
        comparison.table.changes = request.typed_changes();
        comparison.table.command = command;
        if let Some(dir) = making.out() {
            Store::create(dir)?.comparison(&comparison.table)?;
        }
        let (text, html) = both(&paceline_cli::comparison_view(&comparison, &scenarios));
        Ok((comparison, text, html, made))
    })?;
    let document = json(&Cited::new(&comparison))?;
    let mut rows = Rows::new(&["controller"]);
    names.iter().zip(&made).for_each(|(name, runs)| runs.add_rows(&mut rows, &[name]));
    let rows = rows.columns(py);
    let controllers = made.into_iter().map(|runs| runs.into_data(py, &registry)).collect::<PyResult<_>>()?;
    Ok(ComparisonData { document, text, html, controllers, rows })
}

/// A choice as Python receives it.
#[derive(IntoPyObject)]
pub struct ChoiceData {
    /// The JSON document of `choose --json`.
    document: String,
    text: String,
    html: String,
    /// The page.
    page: String,
    /// The table of results.
    rows: Vec<Column>,
}

/// Paths, traces, the call over them (video, use, duration), and settings.
type Calls = (Vec<String>, Vec<String>, (Option<String>, Option<String>, Option<String>), Vec<String>);

/// Makes runs of a call on each path under each candidate, and ranks them. `command` is the call of the function.
#[pyfunction]
#[pyo3(signature = (calls, names, seeds, controllers, command, progress))]
pub fn choose(
    py: Python<'_>,
    calls: Calls,
    names: Vec<String>,
    seeds: Vec<u64>,
    controllers: Vec<Registered>,
    command: String,
    progress: Progress,
) -> PyResult<ChoiceData> {
    let registry = Oracle::add_all(registry_with(py, controllers, &names)?);
    let (paths, traces, (video, media_use, duration), settings) = calls;
    let (choice, runs) = interruptible_with(py, progress, |stop| {
        let parsed: Result<Vec<Override>, String> = settings.iter().map(|text| text.parse()).collect();
        let parsed = parsed.map_err(Failure::Argument)?;
        let names = if names.is_empty() { usual(&registry) } else { names.clone() };
        let subjects = subjects(&names, &registry)?;
        let paths = CallPath::find_all(&traces, &paths, &Call { video, media_use, duration })?;
        let load = |path| Candidates::load(path, &subjects, &parsed, &registry);
        let candidates = paths.into_iter().map(load).collect::<Result<Vec<_>, _>>()?;
        candidates.iter().for_each(|of| stop.expect((of.seconds() * seeds.len() as f64) as u64));
        let runs = with_runner("sim", (&registry, stop), Repeat::default(), |runner| {
            let run = |of: Candidates| Ok(of.run(runner, &seeds).map(|results| (of, results))?);
            candidates.into_iter().map(run).collect::<Result<Vec<_>, Failure>>()
        })?;
        let choice = Choice { command, ..choice_of(&runs, &parsed, &registry) };
        Ok((choice, runs))
    })?;
    let code = code(env!("CARGO_PKG_VERSION"), paceline_cli::environment().commit.as_deref());
    let mut rows = Rows::new(&["path", "controller"]);
    for (candidates, results) in &runs {
        let (path, scenarios) = candidates.scenarios();
        for ((name, scenario), result) in scenarios.zip(results) {
            let found = whole_runs(scenario, (&settings, &code), &result.runs);
            found.for_each(|run| rows.add(&[path, name], &run));
        }
    }
    let (text, html) = both(&paceline_cli::choice_view(&choice));
    let page = render(&choice, metrics::catalogue()).map_err(Failure::from)?;
    Ok(ChoiceData { document: json(&Cited::new(&choice))?, text, html, page, rows: rows.columns(py) })
}

/// A reproduction as Python receives it.
#[derive(IntoPyObject)]
pub struct ReproductionData {
    /// The JSON document of `reproduce --json`.
    document: String,
    text: String,
    /// The table of results.
    rows: Vec<Column>,
}

/// Gives a verdict on each published value and claim of these experiments.
#[pyfunction]
#[pyo3(signature = (requests, controller, seeds, controllers, world, progress))]
pub fn reproduce(
    py: Python<'_>,
    requests: Vec<Request>,
    controller: Option<String>,
    seeds: Option<u64>,
    controllers: Vec<Registered>,
    world: &str,
    progress: Progress,
) -> PyResult<ReproductionData> {
    let registry = registry_with(py, controllers, &controller)?;
    let controller = controller.as_deref();
    let verdicts = interruptible_with(py, progress, |stop| {
        let origin = |request: &Request| -> Result<_, Failure> {
            let is_table = !request.is_text() && Catalogue.formula_tables().any(|id| id == request.name);
            let origin = if is_table { Catalogue.find_formula_table(&request.name)? } else { request.origin()? };
            Ok((origin, request.changes(controller)?))
        };
        let origins = requests.iter().map(origin).collect::<Result<Vec<_>, _>>()?;
        let targets = Targets::load(origins, &registry)?;
        let repeat = match requests.as_slice() {
            [request] => request.repeat(controller),
            _ => Repeat { call: None, controller },
        };
        let seeds = seeds.map_or(Seeds::AsNeeded, Seeds::Exactly);
        let announce = |seconds| stop.expect(seconds as u64);
        with_runner(world, (&registry, stop), repeat, |runner| Ok(targets.verdicts(runner, seeds, &announce)?))
    })?;
    let mut rows = Rows::default();
    verdicts.runs.iter().for_each(|run| rows.add(&[], run));
    let text = anstream::adapter::strip_str(&paceline_cli::reproduction_text(&verdicts.report)).to_string();
    Ok(ReproductionData { document: json(&Cited::new(&verdicts))?, text, rows: rows.columns(py) })
}

/// Gives a verdict on the cells of these experiments with other values of assumed constants, as id and value. Without a number of
/// seeds, as many as the verdicts need. Without the null sender, all cells count as if it did not reproduce them.
#[pyfunction]
#[pyo3(signature = (requests, controller, seeds, constants, null_sender))]
pub fn trial(
    py: Python<'_>,
    requests: Vec<Request>,
    controller: Option<String>,
    seeds: Option<u64>,
    constants: Vec<(String, String)>,
    null_sender: bool,
) -> PyResult<String> {
    let registry = Registry::standard();
    interruptible(py, |stop| {
        let load = |request: &Request| -> Result<Experiment, Failure> {
            let (origin, changes) = (request.origin()?, request.changes(controller.as_deref())?);
            let changes = Changes { constants: constants.clone(), ..changes };
            let experiment = Experiment::load_changed(&origin, &changes, &registry)?;
            Ok(if null_sender { experiment.with_null_sender() } else { experiment })
        };
        let experiments = requests.iter().map(load).collect::<Result<Vec<_>, _>>()?;
        let seeds = seeds.map_or(Seeds::AsNeeded, Seeds::Exactly);
        let report = with_runner("sim", (&registry, stop), Repeat::default(), |runner| {
            Ok(reproduce_experiments(RunContext::all(runner), &experiments, seeds)?)
        })?;
        Ok(serde_json::to_string(&report)?)
    })
}

/// A constant that an experiment assumes.
#[derive(Serialize)]
struct AssumedConstant {
    experiment: String,
    id: String,
    key: String,
    value: String,
    low: String,
    high: String,
}

/// Returns the constants that these experiments assume, once for each experiment.
#[pyfunction]
pub fn constants(requests: Vec<Request>) -> PyResult<String> {
    let registry = Registry::standard();
    let mut found = Vec::new();
    for request in &requests {
        let origin = request.origin()?;
        let experiment = Experiment::load(&origin, &[], &registry).map_err(Failure::from)?;
        for constant in experiment.cases.first().into_iter().flat_map(|case| &case.constants) {
            let is_applied = |case: &Scenario| case.constants.iter().any(|c| c.id == constant.id && c.applied);
            if experiment.cases.iter().any(is_applied) {
                let paceline_scenario::Constant { id, key, value, range: (low, high), .. } = constant.clone();
                found.push(AssumedConstant { experiment: experiment.id().to_owned(), id, key, value, low, high });
            }
        }
    }
    json(&found)
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
    json(&paceline_lab::catalogue::overview(&registry(controllers)?))
}
