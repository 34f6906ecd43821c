//! What the command does, as functions: a document comes back as JSON, of the same shape as the command's `--json`.

use crate::ask::{Ask, raised_or, registry};
use crate::controller::Registered;
use crate::errors::Failure;
use crate::picture::Watched;
use crate::series::Watch;
use crate::stop::{Stop, interruptible};
use crate::world::{Again, Steps};
use paceline::{Registry, SignalShape, SignalSpec};
use paceline_lab::group::{Differences, Group, Making, RunMetrics};
use paceline_lab::metrics::METRICS;
use paceline_lab::plan::Plan;
use paceline_lab::reproduce::{Experiment, FormulaTable, Report, Seeds, papers, reproduce as reproduce_all};
use paceline_lab::run::{Runner, RunsResult, header, summarise};
use paceline_lab::scenario::{self, Catalogue, Changes, is_formula_table};
use paceline_lab::store::{RunManifest, Setting, Store};
use paceline_lab::world::WorldError;
use pyo3::prelude::*;
use serde_json::{Map, Value, json};
use std::path::Path;
use std::time::Instant;

/// Does `work` with a runner of the simulator; what a controller in Python raised comes back as it was raised.
fn with_runner<T>(
    stop: &Stop,
    again: Again<'_>,
    registry: &Registry,
    work: impl FnOnce(&Runner<'_>, &dyn Fn(WorldError) -> Failure) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let world = Steps::new(stop, again);
    let began = Instant::now();
    let clock = || began.elapsed().as_secs_f64();
    let runner = Runner { world: &world, registry, clock: &clock, ticked: &|| () };
    work(&runner, &|error| world.failure(error))
}

/// One run, watched.
#[pyfunction]
#[pyo3(signature = (ask, controller, seed, controllers, out))]
pub fn run(
    py: Python<'_>,
    ask: Ask,
    controller: Option<String>,
    seed: u64,
    controllers: Vec<Registered>,
    out: Option<std::path::PathBuf>,
) -> PyResult<Watched> {
    let registry = registry(controllers)?;
    let (plan, setting, documents, series) = interruptible(py, |stop| {
        let plan = ask.plan(controller.as_deref(), &registry)?;
        let (result, series) = with_runner(stop, ask.again(controller.as_deref()), &registry, |runner, failure| {
            let header = header(&plan, runner.registry, runner.world.name(), seed);
            let mut watch = Watch::new(&header);
            let result = match &out {
                None => summarise(&plan, vec![runner.run(&plan, seed, Some(&mut watch)).map_err(failure)?]),
                Some(dir) => stored(dir, &ask, runner, &plan, &[seed], Some(&mut watch), failure)?,
            };
            Ok((result, watch.finish()))
        })?;
        let metrics = serde_json::to_string(&result.runs[0].metrics(&plan))?;
        let setting = Setting::of(&plan, &registry);
        Ok((plan, setting, (serde_json::to_string(&result)?, metrics), series))
    })?;
    Ok(Watched::new(py, &plan, seed, setting, documents, series))
}

/// Runs on these seeds, on all cores.
#[pyfunction]
#[pyo3(signature = (ask, controller, seeds, controllers, out))]
pub fn runs(
    py: Python<'_>,
    ask: Ask,
    controller: Option<String>,
    seeds: Vec<u64>,
    controllers: Vec<Registered>,
    out: Option<std::path::PathBuf>,
) -> PyResult<String> {
    let registry = registry(controllers)?;
    interruptible(py, |stop| {
        let plan = ask.plan(controller.as_deref(), &registry)?;
        let result = with_runner(stop, ask.again(controller.as_deref()), &registry, |runner, failure| match &out {
            None => runner.run_all(&plan, &seeds).map_err(failure),
            Some(dir) => stored(dir, &ask, runner, &plan, &seeds, None, failure),
        })?;
        Ok(serde_json::to_string(&result)?)
    })
}

/// The same seeds under each controller, and what each differs by from the first.
#[pyfunction]
#[pyo3(signature = (ask, names, seeds, controllers, out))]
pub fn compare(
    py: Python<'_>,
    ask: Ask,
    names: Vec<String>,
    seeds: Option<Vec<u64>>,
    controllers: Vec<Registered>,
    out: Option<std::path::PathBuf>,
) -> PyResult<String> {
    let registry = registry(controllers)?;
    interruptible(py, |stop| {
        let plans = names.iter().map(|name| ask.plan(Some(name), &registry)).collect::<Result<Vec<Plan>, _>>()?;
        let seeds = seeds.unwrap_or_else(|| (1..=u64::from(plans[0].repeats)).collect());
        let each = |(name, plan): (&String, &Plan)| {
            with_runner(stop, ask.again(Some(name)), &registry, |runner, failure| match &out {
                None => runner.run_all(plan, &seeds).map_err(failure),
                Some(dir) => stored(dir, &ask, runner, plan, &seeds, None, failure),
            })
        };
        let results = names.iter().zip(&plans).map(each).collect::<Result<Vec<RunsResult>, _>>()?;
        let metrics = |(plan, result): (&Plan, &RunsResult)| -> Vec<RunMetrics> {
            result.runs.iter().map(|run| RunMetrics::of(plan, run)).collect()
        };
        let metrics: Vec<_> = plans.iter().zip(&results).map(metrics).collect();
        let difference = |(name, runs): (&String, &Vec<RunMetrics>)| {
            let mut value = serde_json::to_value(Differences::between(&metrics[0], runs))?;
            (value["controller"], value["baseline"]) = (json!(name), json!(names[0]));
            Ok(value)
        };
        let differences: Vec<Value> =
            names.iter().zip(&metrics).skip(1).map(difference).collect::<serde_json::Result<_>>()?;
        let each: Vec<Value> =
            names.iter().zip(&results).map(|(name, result)| json!({ "controller": name, "result": result })).collect();
        let document = json!({ "scenario": plans[0].id, "controllers": each, "differences": differences });
        Ok(serde_json::to_string(&document)?)
    })
}

/// A verdict on each published value and claim of these experiments.
#[pyfunction]
#[pyo3(signature = (asks, controller, seeds, controllers))]
pub fn reproduce(
    py: Python<'_>,
    asks: Vec<Ask>,
    controller: Option<String>,
    seeds: Option<u64>,
    controllers: Vec<Registered>,
) -> PyResult<String> {
    let registry = registry(controllers)?;
    interruptible(py, |stop| {
        let (mut experiments, mut tables) = (Vec::new(), Vec::new());
        for ask in &asks {
            let origin = match !ask.is_text() && Catalogue.formula_tables().any(|id| id == ask.name) {
                true => Catalogue.find_formula_table(&ask.name)?,
                false => ask.origin()?,
            };
            if is_formula_table(&origin.name) {
                tables.push(FormulaTable::load(&origin)?.report);
                continue;
            }
            let changes = ask.changes(controller.as_deref())?;
            let mut experiment = raised_or(|| Experiment::load_changed(&origin, &changes, &registry))?;
            if !experiment.says_something() {
                continue;
            }
            experiment = experiment.beside_null_sender();
            // What is said to move a value holds of the experiment as it is written.
            if changes == Changes::default() {
                experiment = raised_or(|| experiment.with_changes(&origin, &registry))?;
            }
            experiments.push(experiment);
        }
        let again = match asks.as_slice() {
            [ask] => ask.again(controller.as_deref()),
            _ => Again { call: None, controller: controller.as_deref() },
        };
        let seeds = seeds.map_or(Seeds::AsNeeded, Seeds::Exactly);
        let made = with_runner(stop, again, &registry, |runner, failure| {
            reproduce_all(runner, &experiments, seeds, &|_| ()).map_err(failure)
        })?;
        let report = Report::of(made.experiments.into_iter().chain(tables).collect());
        let mut document = serde_json::to_value(&report)?;
        document["papers"] = serde_json::to_value(papers(&report.experiments))?;
        Ok(serde_json::to_string(&document)?)
    })
}

/// Runs whose rows and results go to a folder, as with `--out`.
fn stored(
    dir: &Path,
    ask: &Ask,
    runner: &Runner<'_>,
    plan: &Plan,
    seeds: &[u64],
    mut watch: Option<&mut Watch>,
    failure: &dyn Fn(WorldError) -> Failure,
) -> Result<RunsResult, Failure> {
    let store = Store::create(dir)?;
    let case = plan.case.pairs().map(|(key, value)| format!("case.{key}={value}"));
    let assumed: Map<String, Value> =
        plan.constants.iter().filter(|c| c.applied).map(|c| (c.key.clone(), json!(c.value))).collect();
    let manifest = RunManifest {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        scenario_text: ask.origin()?.text,
        changes: case.chain(ask.typed().iter().cloned()).collect(),
        setting: Some(Setting::of(plan, runner.registry)),
        more: [("assumed".to_owned(), Value::Object(assumed))].into(),
        ..RunManifest::default()
    };
    let (mut runs, mut folders) = (Vec::new(), Vec::new());
    for seed in seeds {
        let header = header(plan, runner.registry, runner.world.name(), *seed);
        let mut rows = store.run(&header, manifest.clone())?;
        let result = runner.run(plan, *seed, Some(&mut (&mut rows, watch.as_deref_mut()))).map_err(failure)?;
        let folder = rows.finish(&serde_json::to_value(&result)?)?;
        folders.extend(folder.file_name().map(|name| name.to_string_lossy().into_owned()));
        runs.push(result);
    }
    let result = summarise(plan, runs);
    let making =
        Making { version: manifest.version, command: ask.call(), changes: ask.typed().to_vec(), runs: folders };
    if let Some(group) = Group::of(plan, &result, making) {
        store.group(&group)?;
    }
    Ok(result)
}

/// The name and the text of a scenario.
#[pyfunction]
pub fn find(name: &str) -> PyResult<(String, String)> {
    let origin = Catalogue.find(name).map_err(Failure::from)?;
    Ok((origin.name, origin.text))
}

/// The text of a scenario with what is asked for written into it.
#[pyfunction]
pub fn edited(ask: Ask) -> PyResult<String> {
    let text = || -> Result<String, Failure> {
        Ok(scenario::edited(&ask.origin()?, &ask.settings()?, &Registry::standard())?)
    };
    Ok(text()?)
}

/// The cases of a scenario, each as `name=value`.
#[pyfunction]
pub fn cases(ask: Ask, controllers: Vec<Registered>) -> PyResult<Vec<String>> {
    let registry = registry(controllers)?;
    Ok(ask.plan(None, &registry)?.cases.iter().map(ToString::to_string).collect())
}

/// What there is, as `list --json` has it: controllers with their parameters and signals, scenarios, sweeps, metrics.
#[pyfunction]
pub fn catalogue(controllers: Vec<Registered>) -> PyResult<String> {
    let registry = registry(controllers)?;
    let signal = |s: &SignalSpec| {
        let states = match s.shape {
            SignalShape::Series => Value::Null,
            SignalShape::State(names) => json!(names),
        };
        json!({ "name": s.name, "unit": s.unit, "states": states })
    };
    let signals = |specs: &[SignalSpec]| specs.iter().map(signal).collect::<Vec<_>>();
    let controller = |entry: &paceline::Entry| {
        let parameter = |f: &paceline::FieldInfo| json!({ "name": f.name, "unit": f.unit, "default": f.default, "range": [f.range.0, f.range.1], "source": f.source });
        let (send, receive) = entry.signals();
        json!({
            "name": entry.name(),
            "summary": entry.summary(),
            "source": entry.source(),
            "parameters": entry.fields().iter().map(parameter).collect::<Vec<_>>(),
            "signals": { "send": signals(send), "receive": signals(receive) },
        })
    };
    let metric = |m: &paceline_lab::metrics::MetricSpec| json!({ "name": m.id, "summary": m.summary, "unit": m.kind.unit(), "kind": m.kind.name() });
    let document = json!({
        "controllers": registry.iter().map(controller).collect::<Vec<_>>(),
        "scenarios": Catalogue.ids().collect::<Vec<_>>(),
        "sweeps": Catalogue.sweeps().collect::<Vec<_>>(),
        "tables": Catalogue.formula_tables().collect::<Vec<_>>(),
        "metrics": METRICS.iter().map(metric).collect::<Vec<_>>(),
    });
    Ok(document.to_string())
}
