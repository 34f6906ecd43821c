// SPDX-License-Identifier: MIT OR Apache-2.0
//! `paceline suite`.

mod beside;
mod ci;
mod plots;
mod text;

use super::options::{self, ControllerOptions, JobOptions, Names, SeedOptions, done_runs};
use super::with_progress;
use crate::errors::world_error;
use crate::external;
use crate::interrupt::{self, Continues};
use crate::output;
use crate::view::View;
use crate::worlds;
use beside::Earlier;
use ci::CiOptions;
use miette::{IntoDiagnostic, Result, miette};
use paceline_lab::metrics;
use paceline_lab::report::suites::markdown::leaderboard;
use paceline_lab::report::suites::{self, SUITES_PAGE};
use paceline_lab::results::baseline::BaselineChange;
use paceline_lab::results::{Agreement, SUITES_FILE, SuiteReport, SuitesReport, write_whole};
use paceline_lab::suite::{Expected, Suite, run};
use paceline_lab::yardsticks::Oracle;
use paceline_netsim::sim::Simulator;
use paceline_netsim::world::World;
use paceline_scenario::{Catalogue, Override};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The leaderboard as Markdown in the folder of --out, with its pictures.
const LEADERBOARD: &str = "leaderboard.md";

/// Arguments of `suite`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Suites (see `paceline list suites`), `all`, `short` for up to three runs of some tests, or manifests of
    /// your own, NAME.suite.toml.
    #[arg(value_name = "SUITE", value_parser = Names(options::suites), hide_possible_values = true)]
    suites: Vec<String>,
    #[command(flatten)]
    controllers: ControllerOptions,
    #[command(flatten)]
    seeds: SeedOptions,
    /// Sets a value of every scenario: dotted key, elements of lists by id or number. Can be repeated. No verdicts are expected of
    /// the changed suite.
    #[arg(long = "set", value_name = "KEY=VALUE", conflicts_with_all = ["accept", "beside"])]
    settings: Vec<Override>,
    /// World of the runs. Before those in real time the simulator makes the same runs, and the result says whether both put the
    /// controllers in the same order. In real time there is one run of each test, unless --repeats says more.
    #[arg(long, default_value = "sim", value_parser = worlds::names(), conflicts_with_all = ["accept", "beside", "plots"])]
    world: String,
    /// Writes the results into this folder: suites.json, suites.html for a browser, and leaderboard.md with pictures.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Adds the rows of earlier results: a folder of --out, such as the published results of every controller.
    #[arg(long, value_name = "DIR")]
    beside: Vec<PathBuf>,
    /// Continues an interrupted suite in the folder of --out, which keeps each finished run. Runs of another version of the
    /// program, or of a changed scenario, are made again.
    #[arg(long, requires = "out")]
    resume: bool,
    /// Plots the first run of each test that a controller fails, for the page of --out.
    #[arg(long, requires = "out")]
    plots: bool,
    /// Writes the verdicts into NAME.expected.toml beside the manifest. Later runs compare theirs with them.
    #[arg(long)]
    accept: bool,
    /// Ends with exit code 1 if a verdict is undecided.
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    ci: CiOptions,
    #[command(flatten)]
    jobs: JobOptions,
    /// Prints one JSON document.
    #[arg(long)]
    json: bool,
}

/// Runs suites and prints which bounds hold under which controller. The exit code is 1 if an expected verdict changed, or
/// if something is worse than a baseline. An undecided verdict is a warning, and with `--strict` exit code 1.
pub fn suite(arguments: &Arguments) -> Result<ExitCode> {
    let world = worlds::open(&arguments.world, None)?;
    let registry = worlds::registry(&arguments.world);
    let registry = if world.real_time() { registry } else { Oracle::add_all(registry) };
    let registry = external::add(registry, &arguments.controllers.names, &[], "")?;
    if arguments.suites.is_empty() {
        let all: Vec<&str> = Catalogue.suites().collect();
        let help =
            format!("name suites, a manifest of your own, or `all`; `paceline list suites` has {}", all.join(", "));
        return Err(miette!(help = help, "no suite is named"));
    }
    let mut found = Suite::find_all(&arguments.suites)?;
    for suite in found.iter_mut().filter(|_| !arguments.settings.is_empty()) {
        let settings: Vec<String> = arguments.settings.iter().map(Override::to_string).collect();
        suite.title += &format!(" [{}]", settings.join(", "));
        (suite.expected, suite.expected_file) = (None, None);
        suite.settings.clone_from(&arguments.settings);
    }
    if world.real_time() {
        arguments.controllers.without_oracles(&registry)?;
    }
    let mut subjects = options::subjects(&arguments.controllers.names, &registry)?;
    subjects.retain(|subject| subject.oracle.is_none() || !world.real_time());
    let repeats = arguments.seeds.count("verdicts are of the same runs for every controller")?;
    // Both worlds need the same seeds.
    let repeats = repeats.or(world.real_time().then_some(1));
    if let Some(suite) = found.iter().find(|suite| arguments.accept && suite.expected_file.is_none()) {
        let help = "copy its manifest, or name the file: paceline suite DIR/NAME.suite.toml --accept";
        return Err(miette!(help = help, "the suite `{}` is part of the program, so its verdicts are fixed", suite.id));
    }
    let earlier = arguments.beside.iter().map(|folder| Earlier::read(folder, &found, repeats));
    let earlier: Vec<Earlier> = earlier.collect::<Result<_>>()?;
    let baseline = arguments.ci.baseline()?;
    arguments.jobs.start()?;
    let done = done_runs(arguments.out.as_deref(), arguments.resume)?;
    interrupt::announce(arguments.out.as_deref(), Continues::Resume);
    let judge = |world: &dyn World| -> Result<SuitesReport> {
        let report = with_progress(world, &registry, 0.0, |runner, progress| {
            let announce = |seconds| progress.expect(seconds);
            run(runner, &found, &subjects, repeats, done.as_ref(), &announce)
        });
        report?.map_err(world_error)
    };
    let simulated = world.real_time().then(|| judge(&Simulator)).transpose()?;
    let mut report = judge(&*world)?;
    if let Some(simulated) = simulated {
        for (suite, simulated) in report.suites.iter_mut().zip(&simulated.suites) {
            suite.agreement = Agreement::of(simulated, suite);
        }
    }
    let accepted = if arguments.accept { accept(&found, &report) } else { Ok(()) };
    let plotted = match arguments.out.as_ref().filter(|_| arguments.plots) {
        Some(folder) => plots::write(folder, &report, &arguments.settings, &*world, &registry),
        None => Ok(()),
    };
    let undecided = report.suites.iter().map(SuiteReport::undecided).sum::<usize>();
    if undecided > 0 {
        let advice = if arguments.strict { "" } else { "; --strict makes that exit code 1" };
        eprintln!("warning: undecided verdicts: {undecided}{advice}");
    }
    let (changes, compared) = match ci::compared(baseline.as_ref(), &report) {
        Ok(changes) => (changes, Ok(())),
        Err(error) => (None, Err(error)),
    };
    let for_ci = arguments.ci.write(&report, changes.as_deref());
    // What follows also shows the earlier results.
    let own = subjects.len();
    for earlier in earlier {
        earlier.add(&mut report)?;
    }
    let written = arguments.out.iter().try_for_each(|folder| {
        write(folder, &report)?;
        let page = folder.join(SUITES_PAGE);
        eprintln!("the results are in {}; open {}", folder.display(), page.display());
        Ok::<_, miette::Report>(())
    });
    output::print_result(arguments.json, &report, || {
        let compared = changes.as_ref().map_or_else(String::new, |changes| ci::view(changes).text());
        text::describe(&found, &report, own).text() + &compared
    })?;
    accepted.and(plotted).and(written).and(for_ci).and(compared)?;
    let is_as_expected = arguments.accept || report.suites.iter().all(|suite| suite.changed.is_empty());
    let is_worse = changes.iter().flatten().any(BaselineChange::is_regression);
    output::exit_code(is_as_expected && !is_worse && !(arguments.strict && undecided > 0))
}

/// Describes results that are all of one run.
pub fn view(suites: &[Suite], report: &SuitesReport) -> View {
    text::describe(suites, report, usize::MAX)
}

/// Writes the results of suites into a folder: `suites.json`, its page, and the leaderboard with its pictures.
pub fn write(folder: &Path, report: &SuitesReport) -> Result<()> {
    let mut text = serde_json::to_string_pretty(report).into_diagnostic()?;
    text.push('\n');
    write_whole(folder, SUITES_FILE, text.as_bytes()).into_diagnostic()?;
    suites::write(folder, &folder.join(SUITES_PAGE), metrics::catalogue()).into_diagnostic()?;
    write_leaderboard(folder, report)
}

/// Writes the leaderboard of suites with its pictures into a folder.
pub fn write_leaderboard(folder: &Path, report: &SuitesReport) -> Result<()> {
    let board = leaderboard(report, "");
    write_whole(folder, LEADERBOARD, board.text.as_bytes()).into_diagnostic()?;
    for (name, picture) in &board.pictures {
        write_whole(folder, name, picture.as_bytes()).into_diagnostic()?;
    }
    Ok(())
}

fn accept(suites: &[Suite], report: &SuitesReport) -> Result<()> {
    for (suite, report) in suites.iter().zip(&report.suites) {
        let Some(file) = &suite.expected_file else { continue };
        let text = Expected::of(report, suite.expected.as_ref()).text(&suite.id);
        std::fs::write(file, text).map_err(|error| miette!("cannot write {}: {error}", file.display()))?;
        eprintln!("the expected verdicts are in {}", file.display());
    }
    Ok(())
}
