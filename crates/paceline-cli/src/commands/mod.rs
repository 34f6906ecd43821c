//! One file a command.

mod beside;
#[cfg(target_os = "linux")]
pub mod call;
pub mod compare;
pub mod diff;
pub mod gap;
#[cfg(target_os = "linux")]
pub mod link;
pub mod list;
pub mod report;
pub mod reproduce;
pub mod run;
mod scoreboard;
mod stored;
pub mod sweep;

use crate::output;
use crate::progress::Progress;
use crate::worlds::{self, world};
use clap::Args;
use miette::{Result, miette};
use paceline::Registry;
use paceline_lab::kept::KeptError;
use paceline_lab::plan::Plan;
use paceline_lab::run::{Runner, RunsResult};
use paceline_lab::scenario::{self, Catalogue, Changes, Label, Setting};
use paceline_lab::world::{World, WorldError};
use std::process::ExitCode;
use std::time::Instant;

/// What `paceline` alone says.
pub fn welcome() -> Result<ExitCode> {
    output::print(&format!(
        "Paceline: congestion control for real-time media. A library of controllers, a laboratory to judge them.\n\n{}\n\n`paceline list` shows what there is to run, `paceline help` every command.",
        crate::FIRST_STEPS
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// `paceline schema`.
pub fn schema() -> Result<ExitCode> {
    output::print_json(&scenario::schema())?;
    Ok(ExitCode::SUCCESS)
}

/// Which scenario, changed how, in which world, on which seeds.
#[derive(Args)]
pub struct Selection {
    /// Scenario id (see `paceline list scenarios`) or a TOML file.
    pub scenario: String,
    #[command(flatten)]
    variation: Variation,
    /// World to run in.
    #[arg(long, default_value = "sim")]
    world: String,
    /// First seed.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Prints one JSON document.
    #[arg(long)]
    pub json: bool,
}

/// What of a scenario is changed.
#[derive(Args, Clone)]
pub struct Variation {
    /// Sets a value of the scenario: dotted key, elements of lists by id or number. May be given often.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<Setting>,
    /// The case of the scenario, by what its label says; several with blanks or commas between, or given often. The scenario
    /// as written if absent.
    #[arg(long = "case", value_name = "NAME=VALUE")]
    case: Vec<Label>,
}

impl Variation {
    /// The case.
    pub fn label(&self) -> Label {
        self.case.iter().fold(Label::default(), |case, more| case.with(more))
    }
}

impl Selection {
    /// The plan, under the controller named or the scenario's own.
    pub fn plan(&self, controller: Option<&str>, registry: &Registry) -> Result<Plan> {
        let origin = Catalogue.find(&self.scenario)?;
        let case = self.variation.label();
        let (controller, settings) = (controller.map(str::to_owned), self.variation.settings.clone());
        let changes = Changes { case, settings, controller, ..Changes::default() };
        Ok(scenario::load(&origin, &changes, registry)?)
    }

    /// The world, or the exit code that says it is not to be had.
    pub fn world(&self) -> Result<std::result::Result<Box<dyn World>, ExitCode>> {
        world(&self.world)
    }

    /// The world's name.
    #[cfg(target_os = "linux")]
    pub fn world_name(&self) -> &str {
        &self.world
    }

    /// The controllers that the world has.
    pub fn registry(&self) -> Registry {
        worlds::registry(&self.world)
    }

    /// The scenario's text as it was found.
    pub fn text(&self) -> Result<String> {
        Ok(Catalogue.find(&self.scenario)?.text)
    }

    /// The changes as typed.
    pub fn changes(&self) -> Vec<String> {
        self.variation.settings.iter().map(Setting::to_string).collect()
    }

    /// `count` seeds, from the first on.
    pub fn seeds(&self, count: u32) -> Vec<u64> {
        (0..count as u64).map(|i| self.seed.wrapping_add(i)).collect()
    }
}

/// Does `each` plan, by its number, with a runner, under one progress bar.
pub fn with_runner(
    world: &dyn World,
    registry: &Registry,
    plans: &[Plan],
    seeds: &[u64],
    each: impl Fn(&Runner<'_>, usize, &Plan) -> Result<RunsResult>,
) -> Result<Vec<RunsResult>> {
    let seconds: f64 = plans.iter().map(|p| p.duration.as_secs_f64() * seeds.len() as f64).sum();
    let progress = Progress::new(seconds as u64, world);
    let began = Instant::now();
    let clock = || began.elapsed().as_secs_f64();
    let ticked = || progress.tick();
    let runner = Runner { world, registry, clock: &clock, ticked: &ticked };
    plans.iter().enumerate().map(|(index, plan)| each(&runner, index, plan)).collect()
}

/// Success if every assertion holds.
pub fn verdict(results: &[RunsResult]) -> ExitCode {
    let holds = results.iter().flat_map(|r| &r.assertions).all(|a| a.holds);
    ExitCode::from(if holds { 0 } else { 1 })
}

/// A world's complaint as a command's.
pub fn refused(error: WorldError) -> miette::Report {
    Refused(error).into()
}

/// The complaint of a run that was to be kept, as a command's.
pub fn not_kept(error: KeptError) -> miette::Report {
    match error {
        KeptError::World(error) => refused(error),
        other => miette::Report::from_err(other),
    }
}

/// Seconds for people.
pub fn time(seconds: f64) -> String {
    let whole = seconds.ceil() as u64;
    match (whole / 3600, whole / 60 % 60, whole % 60) {
        (0, 0, s) => format!("{s} s"),
        (0, min, s) => format!("{min} min {s} s"),
        (h, min, _) => format!("{h} h {min} min"),
    }
}

/// Why a world did not run something.
#[derive(Debug)]
pub struct Refused(WorldError);

impl Refused {
    /// The command's exit code: whether the world is not to be had, or what was asked of it.
    pub fn code(&self) -> u8 {
        match self.0 {
            WorldError::Unavailable { .. } => 3,
            _ => 2,
        }
    }
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Refused {}

impl miette::Diagnostic for Refused {
    fn help(&self) -> Option<Box<dyn std::fmt::Display + '_>> {
        match &self.0 {
            WorldError::Unavailable { hint, .. } => Some(Box::new(hint)),
            _ => None,
        }
    }
}

/// Controllers of a comma-separated list, each of them known.
pub fn controllers(list: &[String], registry: &Registry) -> Result<Vec<String>> {
    let known: Vec<&str> = registry.iter().map(|e| e.name()).collect();
    for (index, name) in list.iter().enumerate() {
        if list[..index].contains(name) {
            return Err(miette!("controller `{name}` is named twice"));
        }
        if registry.get(name).is_none() {
            return Err(miette!(help = scenario::no_controller(name, &known), "no controller `{name}`"));
        }
    }
    Ok(list.to_vec())
}
