//! `paceline reproduce`.

mod realtime;
mod scoreboard;
mod text;

use super::with_progress;
use crate::errors::backend_error;
use crate::external;
use crate::output;
use crate::worlds;
use miette::{IntoDiagnostic, Report as Error, Result, miette};
use paceline::Registry;
use paceline_lab::reproduce::{Seeds, Targets, Verdicts, sensitivity};
use paceline_netsim::backend::Backend;
use paceline_results::ExperimentReport;
use paceline_scenario::{Catalogue, Changes, Origin, is_formula_table, is_scenario, suggestion};
use paceline_units::TimeDelta;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Arguments of `reproduce`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Papers (`mmsys16`), experiments (`mmsys16/table1`), `all`, or TOML files or folders of them.
    #[arg(required = true, value_name = "TARGET")]
    targets: Vec<String>,
    /// Backend: sim, testbed or browser. In real time, the verdicts are compared with those of the simulator.
    #[arg(long, default_value = "sim")]
    world: String,
    /// Controllers for every media flow, one after the other; the scenario's own, and those of the world, if absent. In real
    /// time only.
    #[arg(long, visible_alias = "controller", value_delimiter = ',', value_name = "NAME[,NAME…]")]
    controllers: Vec<String>,
    /// Exactly this many runs of each case. If absent: the number in the scenario, and more (up to 40) where an interval is
    /// too wide for a verdict; in real time, 3.
    #[arg(long, alias = "seeds", value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    repeats: Option<u64>,
    /// Starts no run that would not end within this time, such as `40min`. The rest is shown as `not run`, and the same
    /// command with the same --out resumes. In real time only.
    #[arg(long, alias = "within", value_name = "TIME")]
    time_limit: Option<TimeDelta>,
    /// Number of runs at the same time, if the machine is fast enough; 1 if absent. In real time only.
    #[arg(long, alias = "at-once", value_name = "N", value_parser = clap::value_parser!(u64).range(1..=64))]
    jobs: Option<u64>,
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
    /// Prints one JSON document.
    #[arg(long)]
    json: bool,
}

/// Runs experiments and prints a verdict on each published value and each bound.
pub fn reproduce(arguments: &Arguments) -> Result<ExitCode> {
    let world = worlds::open(&arguments.world, None)?;
    if world.real_time() {
        if arguments.sensitivity {
            return Err(miette!(help = "leave out --world", "--sensitivity works in the simulator only"));
        }
        let registry = external::add(worlds::registry(&arguments.world), &arguments.controllers, &[], "")?;
        return realtime::reproduce(arguments, &*world, registry);
    }
    let realtime_only =
        [("--controllers", !arguments.controllers.is_empty()), ("--time-limit", arguments.time_limit.is_some())];
    if let Some((option, _)) = realtime_only.iter().find(|(_, given)| *given) {
        let help = "`paceline compare` runs a scenario under several controllers";
        return Err(miette!(help = help, "{option} needs a world in real time, and `{}` is not", world.name()));
    }
    let origins = find_targets(&arguments.targets)?;
    let registry = external::add_of_files(worlds::registry(&arguments.world), arguments.allow_exec, &origins)?;
    let targets = Targets::load(origins.into_iter().map(|origin| (origin, Changes::default())), &registry)?;
    if targets.is_empty() {
        return Err(nothing_to_judge(arguments));
    }
    if arguments.sensitivity {
        return report_sensitivity(arguments, &*world, &registry, &targets.origins);
    }
    let seeds = arguments.repeats.map_or(Seeds::AsNeeded, Seeds::Exactly);
    let verdicts = with_progress(&*world, &registry, 0.0, |runner, progress| {
        targets.verdicts(runner, seeds, &|seconds| progress.expect(seconds))
    });
    let verdicts = verdicts.map_err(backend_error)?;
    finish(arguments, &verdicts, || text::describe(&verdicts.report))
}

/// Writes the scoreboard, prints the verdicts, and returns whether no claim fails.
fn finish(arguments: &Arguments, verdicts: &Verdicts, describe: impl FnOnce() -> String) -> Result<ExitCode> {
    if let Some(folder) = &arguments.out {
        scoreboard::write(folder, &verdicts.report)?;
    }
    output::print_result(arguments.json, verdicts, describe)?;
    output::exit_code(!verdicts.report.experiments.iter().any(ExperimentReport::fails))
}

fn report_sensitivity(
    arguments: &Arguments,
    world: &dyn Backend,
    registry: &Registry,
    origins: &[Origin],
) -> Result<ExitCode> {
    let report = with_progress(world, registry, 0.0, |runner, progress| {
        sensitivity(runner, origins, arguments.repeats, &|seconds| progress.expect(seconds))
    });
    let report = report?.map_err(backend_error)?;
    output::print_result(arguments.json, &report, || text::describe_sensitivity(&report))?;
    Ok(ExitCode::SUCCESS)
}

/// Describes verdicts as text.
pub fn text(report: &paceline_results::Report) -> String {
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
    let papers: BTreeSet<&str> = Catalogue.ids().filter_map(|id| Some(id.split_once('/')?.0)).collect();
    if target.contains(['/', '.']) {
        return Ok(vec![Catalogue.find(target)?]);
    }
    let papers: Vec<&str> = papers.into_iter().chain(["all"]).collect();
    let help = format!("{}; or an experiment, see `paceline list scenarios`", suggestion(target, &papers));
    Err(miette!(help = help, "no paper `{target}`"))
}
