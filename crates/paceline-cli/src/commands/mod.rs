// SPDX-License-Identifier: MIT OR Apache-2.0
//! One file for each command, and what several of them share.

pub mod calibrate;
#[cfg(all(feature = "testbed", target_os = "linux"))]
pub mod call;
pub mod choose;
pub mod compare;
pub mod diff;
pub mod explain;
pub mod fit;
#[cfg(all(feature = "testbed", target_os = "linux"))]
mod host_recording;
#[cfg(all(feature = "testbed", target_os = "linux"))]
mod host_session;
#[cfg(all(feature = "testbed", target_os = "linux"))]
pub mod link;
pub mod list;
#[cfg(feature = "mcp")]
pub mod mcp;
#[cfg(all(feature = "testbed", target_os = "linux"))]
mod metrics_server;
pub mod new;
pub mod options;
pub mod play;
mod python_module;
#[cfg(all(feature = "testbed", target_os = "linux"))]
pub mod recv;
#[cfg(all(feature = "testbed", target_os = "linux"))]
mod release;
pub mod report;
pub mod reproduce;
pub mod run;
pub mod schema;
pub mod search;
#[cfg(all(feature = "testbed", target_os = "linux"))]
pub mod send;
pub mod shell;
pub mod stored;
pub mod suite;
pub mod sweep;
pub mod trace;
mod unavailable;
#[cfg(all(feature = "testbed", target_os = "linux"))]
mod user;
pub mod validate;

#[cfg(not(all(feature = "testbed", target_os = "linux")))]
pub use unavailable::{call, link, recv, send};

#[cfg(not(feature = "mcp"))]
pub use unavailable::mcp;

use crate::environment::environment;
use crate::external;
use crate::output;
use crate::progress::Progress;
use crate::worlds;
use clap::Args;
use miette::{Result, miette};
use options::{ControllerOptions, JobOptions, Names, SeedOptions, scenarios, seed_options};
use paceline::Registry;
use paceline_lab::report::shell_quoted;
use paceline_lab::run::Runner;
use paceline_lab::storage::Inputs;
use paceline_lab::suite::ALL;
use paceline_lab::yardsticks::Oracle;
use paceline_netsim::world::World;
use paceline_scenario::{self, Catalogue, Changes, Label, Override, Scenario};
use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Instant;

/// The version of the program, with the commit of its source.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (commit ", env!("PACELINE_COMMIT"), ")");

/// Returns [`VERSION`] and the document or commit that each controller follows, from the registry.
pub fn long_version() -> String {
    let registry = Registry::standard();
    let mut text = format!("{VERSION}\n\nControllers follow");
    let mut entries = registry.iter().peekable();
    while let Some(entry) = entries.next() {
        let mut names = entry.name().to_owned();
        while let Some(same) = entries.next_if(|next| next.source() == entry.source()) {
            names += &format!(", {}", same.name());
        }
        text += &format!("\n  {names}");
        output::wrap_to(entry.source(), output::width().saturating_sub(4))
            .iter()
            .for_each(|line| text += &format!("\n    {line}"));
    }
    text
}

/// Three commands to try, for people who are new here.
pub const FIRST_STEPS: &str = "\
Three things to try first:
  One call over a changing link
    paceline run mmsys16/table1
  Two controllers on the same link
    paceline compare mmsys16/table1 --controllers gcc-2016,fixed
  A table of a paper, published and measured values
    paceline reproduce fhmn13/step";

/// Prints what Paceline is and three commands to try.
pub fn welcome() -> Result<ExitCode> {
    let what = "Paceline: congestion control for real-time media. A library of controllers, and a simulator and a testbed to \
                test and compare them.";
    let more = "`paceline list` shows what can be run, `paceline new` writes a scenario of your own, and `paceline help` shows \
                every command.";
    let [what, more] = [what, more].map(|text| output::wrap_to(text, output::width()).join("\n"));
    output::print(&format!("{what}\n\n{FIRST_STEPS}\n\n{more}"))?;
    Ok(ExitCode::SUCCESS)
}

/// Accepts any arguments.
#[derive(Args)]
pub struct AnyArguments {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _arguments: Vec<OsString>,
}

/// A scenario and how it is run.
#[derive(Args, Clone)]
pub struct Selection {
    /// Scenario id (see `paceline list scenarios`) or a TOML file.
    #[arg(value_parser = Names(scenarios), hide_possible_values = true)]
    pub scenario: String,
    #[command(flatten)]
    pub options: RunOptions,
}

/// How scenarios are run.
#[derive(Args, Clone)]
pub struct RunOptions {
    #[command(flatten)]
    variation: Variation,
    /// Lets the scenario file run code: it may name `exec:` and `lib:` controllers. They run with your rights.
    #[arg(long)]
    allow_exec: bool,
    /// World: sim, testbed or browser.
    #[arg(long, default_value = "sim")]
    pub world: String,
    #[command(flatten)]
    pub seeds: SeedOptions,
    #[command(flatten)]
    pub jobs: JobOptions,
    /// Prints one JSON document.
    #[arg(long)]
    pub json: bool,
}

/// Changes of a scenario.
#[derive(Args, Clone)]
pub struct Variation {
    /// Sets a value of the scenario: dotted key, elements of lists by id or number. Can be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<Override>,
    /// Selects a case of the scenario by its label. Separate several names with spaces or commas, or repeat the option; the
    /// scenario as written if absent.
    #[arg(long = "case", value_name = "NAME=VALUE")]
    case: Vec<Label>,
}

impl Variation {
    /// Returns the changes of the scenario, under a controller or under its own.
    pub fn changes(&self, controller: Option<&str>) -> Changes {
        Changes {
            case: self.label(),
            settings: self.settings.clone(),
            controller: controller.map(str::to_owned),
            ..Changes::default()
        }
    }

    /// Returns the label of the selected case.
    fn label(&self) -> Label {
        self.case.iter().fold(Label::default(), |case, more| case.with(more))
    }
}

impl RunOptions {
    /// Returns the `--set` options as typed.
    pub fn changes(&self) -> Vec<String> {
        self.variation.settings.iter().map(Override::to_string).collect()
    }

    /// Returns the options of a simulated run of a case.
    fn of_case(case: Label, settings: Vec<Override>, seed: u64) -> Self {
        Self {
            variation: Variation { settings, case: vec![case] },
            allow_exec: false,
            world: "sim".to_owned(),
            seeds: SeedOptions::one(seed),
            jobs: JobOptions::default(),
            json: false,
        }
    }
}

impl Selection {
    /// Returns the controllers of the world, and the external ones that the arguments name; with `--allow-exec` also those of
    /// the scenario file.
    pub fn registry(&self, controllers: &[String]) -> Result<Registry> {
        let text = match self.options.allow_exec {
            true => Catalogue.find(&self.scenario)?.text,
            false => String::new(),
        };
        let (world, set) = (&self.options.world, self.options.changes());
        let mut registry = worlds::registry(world);
        let is_oracle = |name: &String| name == ALL || Oracle::find(name).is_some();
        if world == "sim" && controllers.iter().any(is_oracle) {
            registry = Oracle::add_all(registry);
        }
        external::add(registry, controllers, &set, &text)
    }

    /// Returns the command that repeats one run under a controller; under those of the scenario if `None`.
    pub fn repeat(&self, controller: Option<&str>, seed: u64) -> String {
        self.command("run", controller.map(|name| ("controllers", name)), &[seed])
    }

    /// Loads the scenario under each of these controllers, or under its own. `all` leaves out those that do not apply to it.
    pub fn load_all(
        &self,
        controllers: &ControllerOptions,
        registry: &Registry,
    ) -> Result<(Vec<Option<String>>, Vec<Scenario>)> {
        if controllers.names.is_empty() || self.options.world != "sim" {
            let names = controllers.without_oracles(registry)?;
            let load = |name: &Option<String>| self.load(name.as_deref(), registry);
            let scenarios = names.iter().map(load).collect::<Result<_>>()?;
            return Ok((names, scenarios));
        }
        let (origin, changes) = (Catalogue.find(&self.scenario)?, self.options.variation.changes(None));
        let couples = controllers.is_all() && self.load(None, registry)?.plan.coupled_flow().is_some();
        let (mut names, mut scenarios) = (Vec::new(), Vec::new());
        for subject in controllers.subjects(registry)? {
            let fits = !couples || registry.get(&subject.name).is_some_and(|entry| entry.couples());
            match fits.then(|| subject.scenario(&origin, &changes, registry)).transpose()?.flatten() {
                Some(scenario) => {
                    names.push(Some(subject.name));
                    scenarios.push(scenario);
                }
                None if controllers.is_all() => eprintln!("`{}` does not apply to this scenario", subject.name),
                None => {
                    let help = "an oracle needs a bottleneck with a capacity of its own, or oracle_rate in [measure] on Wi-Fi; leave it out";
                    return Err(miette!(help = help, "the oracle `{}` does not apply to this scenario", subject.name));
                }
            }
        }
        Ok((names, scenarios))
    }

    /// Loads the scenario, under a controller or under its own. It has no published values if they do not apply: with changes, or
    /// under another controller than its own.
    pub fn load(&self, controller: Option<&str>, registry: &Registry) -> Result<Scenario> {
        let changes = self.options.variation.changes(controller);
        Ok(paceline_lab::load(&Catalogue.find(&self.scenario)?, &changes, registry)?)
    }

    /// Returns what runs of the command of this name are made from.
    pub fn inputs(&self, name: &str, controller: Option<&str>, seeds: &[u64]) -> Result<Inputs> {
        Ok(Inputs {
            environment: environment().clone(),
            scenario_text: Catalogue.find(&self.scenario)?.text,
            changes: self.options.changes(),
            command: self.command(name, controller.map(|name| ("controllers", name)), seeds),
        })
    }

    /// Returns the `paceline` command of this name that repeats the runs. `controller` is the option that names controllers,
    /// with its value.
    pub fn command(&self, name: &str, controller: Option<(&str, &str)>, seeds: &[u64]) -> String {
        let RunOptions { variation, allow_exec, world, .. } = &self.options;
        let mut words = vec!["paceline".to_owned(), name.to_owned(), self.scenario.clone()];
        let mut option = |name: &str, value: String| words.extend([format!("--{name}"), value]);
        for (key, value) in variation.case.iter().flat_map(|case| case.pairs()) {
            option("case", format!("{key}={value}"));
        }
        for change in self.options.changes() {
            option("set", change);
        }
        if world != "sim" {
            option("world", world.clone());
        }
        if let Some((name, value)) = controller {
            option(name, value.to_owned());
        }
        words.extend(seed_options(seeds));
        if *allow_exec {
            words.push("--allow-exec".to_owned());
        }
        words.iter().map(|word| shell_quoted(word)).collect::<Vec<_>>().join(" ")
    }
}

/// Calls `work` with a runner whose finished seconds count on a progress bar of `seconds`.
pub fn with_progress<T>(
    world: &dyn World,
    registry: &Registry,
    seconds: f64,
    work: impl FnOnce(&Runner<'_>, &Progress) -> T,
) -> T {
    let progress = Progress::of_seconds(seconds, world);
    let started = Instant::now();
    let clock = || started.elapsed().as_secs_f64();
    let ticked = || progress.tick();
    work(&Runner { world, registry, clock: &clock, ticked: &ticked }, &progress)
}

/// Formats a duration for messages, rounded up to seconds.
pub fn duration_text(seconds: f64) -> String {
    let whole = seconds.ceil() as u64;
    match (whole / 3600, whole / 60 % 60, whole % 60) {
        (0, 0, s) => format!("{s} s"),
        (0, min, s) => format!("{min} min {s} s"),
        (h, min, _) => format!("{h} h {min} min"),
    }
}

/// Describes how many of `runs` runs are missing, and the real time that they take; `None` in virtual time.
pub fn missing_text(world: &str, runs: usize, missing: usize, seconds: Option<f64>) -> String {
    let stored = if missing < runs { format!(", {} stored already", runs - missing) } else { String::new() };
    let which = if missing == runs { "they".to_owned() } else { format!("the other {missing}") };
    let takes = match seconds.filter(|_| missing > 0) {
        Some(seconds) => format!("; {which} take {} in real time", duration_text(seconds)),
        None => String::new(),
    };
    format!("{world}: {runs} runs{stored}{takes}")
}

/// Rejects external controllers where they cannot run.
pub fn reject_external(names: &[String], why: &str, hint: &str) -> Result<()> {
    match names.iter().find(|name| external::is_external(name)) {
        Some(name) => Err(miette!(help = hint.to_owned(), "the controller `{name}` cannot run here: {why}")),
        None => Ok(()),
    }
}

/// Checks that each controller exists and is named once.
pub fn check_controllers(names: &[String], registry: &Registry) -> Result<()> {
    let known: Vec<&str> = registry.iter().map(|e| e.name()).collect();
    for (index, name) in names.iter().enumerate() {
        if names[..index].contains(name) {
            return Err(miette!(help = "name each controller once", "controller `{name}` is named twice"));
        }
        if registry.get(name).is_none() {
            return Err(miette!(help = paceline_scenario::no_controller(name, &known), "no controller `{name}`"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn own_controllers_are_rejected_where_they_cannot_run() {
        let reject = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            reject_external(&names, "why", "hint").err().map(|error| error.to_string())
        };
        assert_eq!(reject(&["googcc", "fixed"]), None);
        let expected = "the controller `lib:./mine.so` cannot run here: why";
        assert_eq!(reject(&["googcc", "lib:./mine.so"]).as_deref(), Some(expected));
    }

    #[test]
    fn states_missing_runs_and_their_duration() {
        assert_eq!(missing_text("sim", 6, 6, None), "sim: 6 runs");
        assert_eq!(missing_text("browser", 6, 6, Some(30.0)), "browser: 6 runs; they take 30 s in real time");
        let resumed = "browser: 6 runs, 1 stored already; the other 5 take 2 h 1 min in real time";
        assert_eq!(missing_text("browser", 6, 5, Some(7260.0)), resumed);
        assert_eq!(missing_text("browser", 6, 0, Some(0.0)), "browser: 6 runs, 6 stored already");
        for (seconds, text) in [(0.0, "0 s"), (59.2, "1 min 0 s"), (600.0, "10 min 0 s"), (7260.0, "2 h 1 min")] {
            assert_eq!(duration_text(seconds), text);
        }
    }
}
