// SPDX-License-Identifier: MIT OR Apache-2.0
//! `paceline choose`.

use super::compare::add_ranking;
use super::options::{
    ControllerOptions, JobOptions, Names, SeedOptions, scenarios, seed_options, seeds_text, subjects,
};
use super::with_progress;
use crate::errors::world_error;
use crate::view::View;
use crate::{external, output, worlds};
use clap::builder::PossibleValuesParser;
use miette::{IntoDiagnostic, Result};
use paceline_lab::compare::{Candidates, Choice, RUNS, choose as choice_of, usual};
use paceline_lab::metrics;
use paceline_lab::report::{choice, shell_quoted};
use paceline_lab::yardsticks::Oracle;
use paceline_netsim::plan::MediaUse;
use paceline_scenario::{Call, CallPath, Override, path_presets};
use std::path::PathBuf;
use std::process::ExitCode;

/// Arguments of `choose`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Paths of the call: presets (see `paceline list paths`; `adsl` or `dsl` is `adsl-up`), scenarios, or files of recorded traces.
    #[arg(value_name = "PATH", value_parser = Names(paths), hide_possible_values = true)]
    paths: Vec<String>,
    /// Recorded trace of the capacity on the way of the media, and one of the way back. Can be repeated.
    #[arg(long = "trace", value_name = "[NAME=]FILE[,BACK]")]
    traces: Vec<String>,
    /// One more path. Can be repeated.
    #[arg(long, value_name = "PATH", value_parser = Names(paths), hide_possible_values = true)]
    also: Vec<String>,
    /// Video of the call over presets and traces, see `paceline list sources`; 720p is 720p30 [default: 720p].
    #[arg(long, value_name = "NAME")]
    video: Option<String>,
    /// What this call is for: conversation, game, teleoperation or contribution [default: conversation].
    #[arg(long = "use", value_name = "USE", value_parser = PossibleValuesParser::new(MediaUse::NAMES.map(|(name, _)| name)), hide_possible_values = true)]
    media_use: Option<String>,
    /// Length of a run of this call [default: that of the trace, at most 120 s].
    #[arg(long, value_name = "TIME")]
    duration: Option<String>,
    #[command(flatten)]
    controllers: ControllerOptions,
    /// Sets a value of each scenario: dotted key. Can be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<Override>,
    #[command(flatten)]
    seeds: SeedOptions,
    #[command(flatten)]
    jobs: JobOptions,
    /// File of the page, for a browser or a printer.
    #[arg(long, value_name = "FILE", default_value = choice::CHOICE_PAGE)]
    page: PathBuf,
    /// Prints one JSON document.
    #[arg(long)]
    json: bool,
}

/// Returns the names of presets of paths, and the ids of scenarios.
fn paths() -> Vec<String> {
    path_presets().into_iter().map(|preset| preset.name).chain(scenarios()).collect()
}

/// Runs the candidates on each path, prints which to choose, and writes the page.
pub fn choose(arguments: &Arguments) -> Result<ExitCode> {
    let Arguments { settings, controllers, .. } = arguments;
    let Arguments { video, media_use, duration, .. } = arguments;
    let call = Call { video: video.clone(), media_use: media_use.clone(), duration: duration.clone() };
    let others = [&arguments.paths[..], &arguments.also].concat();
    let paths = CallPath::find_all(&arguments.traces, &others, &call)?;
    let registry = external::add(Oracle::add_all(worlds::registry("sim")), &controllers.names, &[], "")?;
    let names = if controllers.names.is_empty() { usual(&registry) } else { controllers.names.clone() };
    let subjects = subjects(&names, &registry)?;
    let load = |path| Candidates::load(path, &subjects, settings, &registry);
    let candidates = paths.into_iter().map(load).collect::<std::result::Result<Vec<_>, _>>()?;
    let seeds = arguments.seeds.list(RUNS)?;
    arguments.jobs.start()?;
    let seconds = candidates.iter().map(|of| of.seconds() * seeds.len() as f64).sum();
    let world = worlds::open("sim", None)?;
    let runs = with_progress(&*world, &registry, seconds, |runner, _| {
        let run = |of: Candidates| of.run(runner, &seeds).map(|results| (of, results));
        candidates.into_iter().map(run).collect::<std::result::Result<Vec<_>, _>>()
    });
    let mut choice = choice_of(&runs.map_err(world_error)?, settings, &registry);
    choice.command = arguments.command(&names, &seeds);
    output::print_results(arguments.json, &choice, || view(&choice).text())?;
    choice::write(&choice, &arguments.page, metrics::catalogue()).into_diagnostic()?;
    eprintln!("the page is {}", arguments.page.display());
    Ok(ExitCode::SUCCESS)
}

impl Arguments {
    /// Returns the command that repeats the choice.
    fn command(&self, names: &[String], seeds: &[u64]) -> String {
        let mut words = vec!["paceline".to_owned(), "choose".to_owned()];
        words.extend(self.paths.iter().cloned());
        let settings: Vec<String> = self.settings.iter().map(Override::to_string).collect();
        let one = |value: &Option<String>| value.iter().cloned().collect::<Vec<String>>();
        for (option, values) in [
            ("--trace", self.traces.clone()),
            ("--also", self.also.clone()),
            ("--video", one(&self.video)),
            ("--use", one(&self.media_use)),
            ("--duration", one(&self.duration)),
            ("--set", settings),
            ("--controllers", vec![names.join(",")]),
        ] {
            words.extend(values.into_iter().flat_map(|value| [option.to_owned(), value]));
        }
        words.extend(seed_options(seeds));
        words.iter().map(|word| shell_quoted(word)).collect::<Vec<_>>().join(" ")
    }
}

/// Returns what readers see of a choice.
pub fn view(choice: &Choice) -> View {
    let mut view = View::default();
    let [first, rest @ ..] = &choice.paths[..] else { return view };
    let seeds = &first.table.seeds;
    let runs = if seeds.len() == 1 { "one run".to_owned() } else { format!("{} runs", seeds.len()) };
    view.heading(match rest.is_empty() {
        true => format!("{}  {}", output::bold(&first.name), first.table.title),
        false => {
            let names: Vec<&str> = choice.paths.iter().map(|path| path.name.as_str()).collect();
            format!("{} paths: {}", names.len(), output::bold(&names.join(", ")))
        }
    });
    let each = if rest.is_empty() { format!(" of {:.0} s", first.seconds) } else { " on each path".to_owned() };
    view.line("", format!("{runs} of each controller{each}, {}", seeds_text(seeds)));
    view.gap();
    view.line("", choice.verdict.join(" "));
    view.gap();
    add_ranking(&mut view, &choice.ranking, true);
    for path in choice.paths.iter().filter(|_| !rest.is_empty()) {
        view.heading(format!("{}  {}", output::bold(&path.name), path.table.title));
        view.line("", path.table.verdict.join(" "));
        view.gap();
        add_ranking(&mut view, &path.table.ranking, false);
    }
    for limit in &choice.limits {
        view.line("· ", limit.clone());
    }
    view.gap();
    view.line("", format!("Again: {}", choice.command));
    view
}
