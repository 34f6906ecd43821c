// SPDX-License-Identifier: MIT OR Apache-2.0
//! `paceline reproduce`.

mod realtime;
mod scoreboard;
mod text;

use super::options::{self, ControllerOptions, JobOptions, Names, SeedOptions, done_runs};
use super::with_progress;
use crate::errors::world_error;
use crate::external;
use crate::interrupt::{self, Continues};
use crate::output;
use crate::worlds;
use miette::{IntoDiagnostic, Report as Error, Result, miette};
use paceline::Registry;
use paceline_lab::judge::Experiment;
use paceline_lab::reproduce::{Seeds, Targets, Verdicts, sensitivity};
use paceline_lab::results::ExperimentReport;
use paceline_netsim::world::World;
use paceline_scenario::{Catalogue, Changes, Origin, and, is_formula_table, is_scenario, suggestion};
use paceline_units::TimeDelta;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Arguments of `reproduce`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Papers (`mmsys16`), experiments (`mmsys16/table1`), `all`, or TOML files or folders of them.
    #[arg(required = true, value_name = "TARGET", value_parser = Names(options::targets), hide_possible_values = true)]
    targets: Vec<String>,
    /// World: sim, testbed or browser. In real time, the verdicts are compared with those of the simulator.
    #[arg(long, default_value = "sim")]
    world: String,
    #[command(flatten)]
    controllers: ControllerOptions,
    #[command(flatten)]
    seeds: SeedOptions,
    /// Starts no run that would not end within this time, such as `40min`. The rest is shown as `not run`, and the same
    /// command with the same --out resumes. In real time only.
    #[arg(long, value_name = "TIME")]
    time_limit: Option<TimeDelta>,
    #[command(flatten)]
    jobs: JobOptions,
    /// Lets the scenario files run code: they may name `exec:` and `lib:` controllers. They run with your rights.
    #[arg(long)]
    allow_exec: bool,
    /// Sets every assumed constant to both ends of its range and reports which verdicts change.
    #[arg(long, conflicts_with = "out")]
    sensitivity: bool,
    /// Writes the verdicts into this folder: scoreboard.json for `paceline diff`, scoreboard.md for review, scoreboard.html
    /// for a browser. In real time also stores every run with its events; stored runs are not repeated.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Keeps each finished run in the folder of --out, and makes only the runs that it lacks. Runs of another version of the program,
    /// or of a changed scenario, are made again. In real time this is always so.
    #[arg(long, requires = "out")]
    resume: bool,
    /// Prints one JSON document.
    #[arg(long)]
    json: bool,
}

/// Why an experiment has seeds from 1.
const SEEDS: &str = "verdicts are of the same runs everywhere";

/// Runs experiments and prints a verdict on each published value and each bound.
pub fn reproduce(arguments: &Arguments) -> Result<ExitCode> {
    let world = worlds::open(&arguments.world, None)?;
    if world.real_time() {
        if arguments.sensitivity {
            return Err(miette!(help = "leave out --world", "--sensitivity works in the simulator only"));
        }
        let registry = external::add(worlds::registry(&arguments.world), &arguments.controllers.names, &[], "")?;
        return realtime::reproduce(arguments, &*world, registry);
    }
    if arguments.time_limit.is_some() {
        let help = "leave it out; Ctrl-C ends the command, and --out DIR --resume continues it";
        return Err(miette!(help = help, "--time-limit needs a world in real time, and `{}` is not", world.name()));
    }
    let origins = find_targets(&arguments.targets)?;
    let registry = external::add(worlds::registry(&arguments.world), &arguments.controllers.names, &[], "")?;
    let registry = external::add_of_files(registry, arguments.allow_exec, &origins)?;
    let controllers = arguments.controllers.without_oracles(&registry)?;
    let mut targets = load(origins, &controllers, &registry)?;
    if targets.is_empty() {
        return Err(nothing_to_judge(arguments));
    }
    let repeats = arguments.seeds.count(SEEDS)?;
    arguments.jobs.start()?;
    if arguments.sensitivity {
        if !arguments.controllers.names.is_empty() {
            return Err(miette!(help = "leave out one of them", "--sensitivity has no --controllers"));
        }
        return report_sensitivity(arguments, (&*world, &registry), &targets.origins, repeats);
    }
    if arguments.resume {
        targets.done = done_runs(arguments.out.as_deref(), true)?;
        interrupt::announce(arguments.out.as_deref(), Continues::Again);
    }
    let seeds = repeats.map_or(Seeds::AsNeeded, Seeds::Exactly);
    let verdicts = with_progress(&*world, &registry, 0.0, |runner, progress| {
        targets.verdicts(runner, seeds, &|seconds| progress.expect(seconds))
    });
    let verdicts = verdicts.map_err(world_error)?;
    finish(arguments, &verdicts, || text::describe(&verdicts.report))
}

/// Loads the experiments under each controller. Those whose cases compare controllers are left out under another than their own.
fn load(origins: Vec<Origin>, controllers: &[Option<String>], registry: &Registry) -> Result<Targets> {
    let mut wanted = Vec::new();
    for origin in origins {
        for controller in controllers {
            let is_other = controller.is_some() && !is_formula_table(&origin.name);
            if is_other && Experiment::load_under(&origin, controller.as_deref(), registry)?.is_none() {
                eprintln!("{} is left out: its cases compare controllers", origin.argument());
                break;
            }
            wanted.push((origin.clone(), Changes { controller: controller.clone(), ..Changes::default() }));
        }
    }
    // A formula has no controller.
    let mut tables = BTreeSet::new();
    wanted.retain(|(origin, _)| !is_formula_table(&origin.name) || tables.insert(origin.name.clone()));
    Ok(Targets::load(wanted, registry)?)
}

/// Writes the scoreboard, prints the verdicts, and returns whether no claim fails.
fn finish(arguments: &Arguments, verdicts: &Verdicts, describe: impl FnOnce() -> String) -> Result<ExitCode> {
    let stored = arguments.out.iter().try_for_each(|folder| scoreboard::write(folder, &verdicts.report));
    output::print_result(arguments.json, verdicts, describe)?;
    stored?;
    output::exit_code(!verdicts.report.experiments.iter().any(ExperimentReport::fails))
}

fn report_sensitivity(
    arguments: &Arguments,
    (world, registry): (&dyn World, &Registry),
    origins: &[Origin],
    repeats: Option<u64>,
) -> Result<ExitCode> {
    let report = with_progress(world, registry, 0.0, |runner, progress| {
        sensitivity(runner, origins, repeats, &|seconds| progress.expect(seconds))
    });
    let report = report?.map_err(world_error)?;
    output::print_result(arguments.json, &report, || text::describe_sensitivity(&report))?;
    Ok(ExitCode::SUCCESS)
}

/// Describes verdicts as text.
pub fn text(report: &paceline_lab::results::Report) -> String {
    text::describe(report)
}

fn nothing_to_judge(arguments: &Arguments) -> Error {
    let help = "add [[expect]] or [[assert]] tables to the scenario, or use `paceline run`";
    miette!(help = help, "{} has no published value and no bound", arguments.targets.join(", "))
}

fn find_targets(targets: &[String]) -> Result<Vec<Origin>> {
    let mut all: Vec<Origin> = Vec::new();
    for target in targets {
        for origin in find_target(target)? {
            if all.iter().all(|other| other.name != origin.name) {
                all.push(origin);
            }
        }
    }
    Ok(all)
}

/// Finds the scenarios of a target: a folder, `all`, a paper, an experiment or a file.
fn find_target(target: &str) -> Result<Vec<Origin>> {
    let folder = Path::new(target);
    if folder.is_dir() {
        let mut files = Vec::new();
        for entry in folder.read_dir().into_diagnostic()? {
            let path = entry.into_diagnostic()?.path().display().to_string();
            let name = path.replace('\\', "/");
            files.extend((is_scenario(&name) || is_formula_table(&name)).then_some(path));
        }
        files.sort();
        return Ok(files.iter().map(|file| Catalogue.find(file)).collect::<std::result::Result<_, _>>()?);
    }
    let is_selected =
        |id: &str| target == "all" || id == target || id.strip_prefix(target).is_some_and(|rest| rest.starts_with('/'));
    let scenarios = Catalogue.ids().filter(|id| is_selected(id)).map(|id| Catalogue.find(id));
    let tables = Catalogue.formula_tables().filter(|id| is_selected(id)).map(|id| Catalogue.find_formula_table(id));
    let found: Vec<Origin> = scenarios.chain(tables).collect::<std::result::Result<_, _>>()?;
    if !found.is_empty() {
        return Ok(found);
    }
    if target.contains(['/', '.']) {
        return Ok(vec![Catalogue.find(target)?]);
    }
    let papers = options::papers();
    let papers: Vec<&str> = papers.iter().map(String::as_str).chain(["all"]).collect();
    let help = and(suggestion(target, &papers), "`paceline list scenarios` shows papers and experiments");
    Err(miette!(help = help, "no paper `{target}`"))
}
