// SPDX-License-Identifier: MIT OR Apache-2.0
//! `paceline reproduce --world` with a world in real time: its verdicts beside those of the simulator. Each run is stored as
//! soon as it is made.

use super::text::{cell_text, notes, place_text, verdict_counts_text};
use super::{Arguments, find_targets, finish, nothing_to_judge};
use crate::commands::{missing_text, with_progress};
use crate::environment::environment;
use crate::errors::{cached_run_error, world_error};
use crate::external;
use crate::interrupt::{self, Continues};
use crate::output;
use crate::table::Table;
use miette::{IntoDiagnostic, Result};
use paceline::Registry;
use paceline_lab::judge::Experiment;
use paceline_lab::reproduce::{
    Limits, RealtimeExperiment, RealtimeReproduction, RunContext, Seeds, Verdicts, reproduce as reproduce_all,
};
use paceline_lab::results::{Cell, ExperimentReport, Report, Store};
use paceline_lab::storage::Inputs;
use paceline_netsim::sim::Simulator;
use paceline_netsim::world::World;
use paceline_scenario::{Origin, Scenario, is_formula_table};
use paceline_units::TimeDelta;
use std::collections::BTreeMap;
use std::process::ExitCode;

/// Runs of each case if --repeats is absent: enough for a mean with an interval.
const REPEATS: u64 = 3;

/// Makes the missing runs, as far as time allows, and prints the verdicts on all stored runs.
pub(super) fn reproduce(arguments: &Arguments, world: &dyn World, registry: Registry) -> Result<ExitCode> {
    let mut origins = find_targets(&arguments.targets)?;
    // Formula tables are the same in every world.
    origins.retain(|origin| !is_formula_table(&origin.name));
    let registry = &external::add_of_files(registry, arguments.allow_exec, &origins)?;
    let experiments = experiments(arguments, world, registry, &origins)?;
    if experiments.is_empty() {
        return Err(nothing_to_judge(arguments));
    }
    let seeds = arguments.seeds.count(super::SEEDS)?.unwrap_or(REPEATS);
    let store = arguments.out.as_deref().map(Store::create).transpose().into_diagnostic()?;
    let resumed = RealtimeReproduction::resume(experiments, seeds, (registry, world.name()), store.as_ref());
    let mut all = resumed.into_diagnostic()?;
    let missing = all.missing();
    let seconds: f64 = missing.iter().map(|task| all.seconds(task)).sum();
    let at_once = arguments.jobs.jobs.unwrap_or(1) as usize;
    eprintln!("{}", missing_text(world.name(), all.run_count(), missing.len(), Some(seconds / at_once as f64)));
    interrupt::announce(arguments.out.as_deref(), Continues::Again);
    let limits = Limits { at_once, within_s: arguments.time_limit.map(TimeDelta::as_secs_f64) };
    with_progress(world, registry, seconds, |runner, progress| {
        all.complete(runner, store.as_ref(), limits, &|line| progress.println(line))
    })
    .map_err(cached_run_error)?;
    let verdicts = Verdicts::of(all.reports(world.name(), &simulated(arguments, &origins)?));
    finish(arguments, &verdicts, || describe(&verdicts.report, world.name()))
}

/// Loads each experiment under the controllers of the command line, or under its own and those of the world.
fn experiments(
    arguments: &Arguments,
    world: &dyn World,
    registry: &Registry,
    origins: &[Origin],
) -> Result<Vec<RealtimeExperiment>> {
    let named = arguments.controllers.without_oracles(registry)?;
    let baselines = world.baselines().iter().filter(|_| arguments.controllers.names.is_empty());
    let controllers: Vec<Option<&str>> =
        named.iter().map(Option::as_deref).chain(baselines.map(|name| Some(*name))).collect();
    let mut all = Vec::new();
    for origin in origins {
        for controller in &controllers {
            let Some(experiment) = Experiment::load_under(origin, *controller, registry)? else { continue };
            if experiment.has_expectations() {
                let under = under(&experiment, world, registry);
                let inputs = Inputs {
                    environment: environment().clone(),
                    scenario_text: origin.text.clone(),
                    ..Inputs::default()
                };
                all.push(RealtimeExperiment::new(experiment, under, |case: &Scenario| inputs.manifest(case, registry)));
            }
        }
    }
    Ok(all)
}

/// Returns the names of the controllers of the media flows.
fn under(experiment: &Experiment, world: &dyn World, registry: &Registry) -> String {
    let flows = experiment.cases.iter().flat_map(|case| &case.plan.flows).filter_map(|flow| flow.media());
    let mut names: Vec<String> =
        flows.map(|media| world.describe_controller(&media.controller.name, registry)).collect();
    names.sort();
    names.dedup();
    names.join(", ")
}

/// Returns the simulator's verdicts on the same experiments.
fn simulated(arguments: &Arguments, origins: &[Origin]) -> Result<Vec<ExperimentReport>> {
    let registry = external::add_of_files(Registry::standard(), arguments.allow_exec, origins)?;
    let load = |origin| Experiment::load(origin, &[], &registry);
    let experiments = origins.iter().map(load).collect::<Result<Vec<_>, _>>()?.into_iter();
    let experiments: Vec<_> =
        experiments.filter(Experiment::has_expectations).map(Experiment::with_null_sender).collect();
    let report = with_progress(&Simulator, &registry, 0.0, |runner, progress| {
        let announce = &|seconds| progress.expect(seconds);
        reproduce_all(RunContext { announce, ..RunContext::all(runner) }, &experiments, Seeds::AsNeeded)
    });
    Ok(report.map_err(world_error)?.experiments)
}

/// Describes the verdicts: a table for each experiment, with a column for each controller.
fn describe(report: &Report, world: &str) -> String {
    let mut by_id: BTreeMap<usize, Vec<&ExperimentReport>> = BTreeMap::new();
    for experiment in &report.experiments {
        let first = report.experiments.iter().position(|other| other.id == experiment.id).unwrap_or_default();
        by_id.entry(first).or_default().push(experiment);
    }
    let mut text: String = by_id.values().map(|columns| describe_experiment(columns, world)).collect();
    let s = &report.summary;
    text += &format!("  published values {}", verdict_counts_text(&s.published));
    text += &format!("; claims {}: {} hold\n", s.claims, s.claims_held);
    if s.all.not_run > 0 {
        text += &format!("  cells not run: {}; the same command with the same --out resumes\n", s.all.not_run);
    }
    text
}

fn describe_experiment(columns: &[&ExperimentReport], world: &str) -> String {
    let first = columns[0];
    let mut text = format!("{}  {}\n\n", first.id, first.title);
    let headings = ["value", "published", "sim", ""].map(str::to_owned);
    let each = (1..=columns.len()).flat_map(|n| [format!("{world} {n}"), String::new()]);
    let mut table = Table::new(headings.into_iter().chain(each), 1).with_text_last();
    for (index, cell) in first.cells.iter().enumerate() {
        let wanted = match (cell.published, cell.bounds) {
            (None, Some(_)) => cell_text().tolerance(cell),
            (published, _) => cell_text().value(published, cell),
        };
        let claim = cell.claim.as_ref().filter(|_| cell.bounds.is_some());
        let place = claim.map_or(place_text(cell), |claim| format!("{} ({claim})", place_text(cell)));
        let simulated = cell.beside.as_ref().map_or(String::new(), |other| other.verdict.mark().to_string());
        let mut row = vec![place, wanted, cell_text().beside(cell), simulated];
        for column in columns {
            let cell: &Cell = &column.cells[index];
            row.extend([cell_text().measured(cell), cell.verdict.mark().to_string()]);
        }
        table.row(row);
    }
    text += &table.render();
    text.push('\n');
    for (n, column) in (1..).zip(columns) {
        let runs: Vec<String> = column.runs.iter().map(|runs| runs.n.to_string()).collect();
        let disturbed = match column.disturbed {
            0 => String::new(),
            n => format!("; {n} of them were disturbed by load on the machine in every attempt"),
        };
        let under = column.under.as_deref().unwrap_or_default();
        text += &output::wrap(&format!("{world} {n}: {under}; runs of each case: {}{disturbed}", runs.join(", ")));
        text.push('\n');
        text += &notes(column, "  ");
    }
    text + "\n"
}
