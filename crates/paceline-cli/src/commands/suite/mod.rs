//! `paceline suite`.

mod beside;
mod plots;
mod text;

use super::{check_controllers, with_progress};
use crate::errors::backend_error;
use crate::external;
use crate::interrupt::{self, Continues};
use crate::output;
use crate::view::View;
use crate::worlds;
use beside::Earlier;
use miette::{IntoDiagnostic, Result, miette};
use paceline::Registry;
use paceline_lab::done_runs::DoneRuns;
use paceline_lab::metrics;
use paceline_lab::suite::{ALL, Expected, Subject, Suite, run_with};
use paceline_lab::yardsticks::Oracle;
use paceline_report::suites::markdown::leaderboard;
use paceline_report::suites::{self, SUITES_PAGE};
use paceline_results::{SUITES_FILE, SuitesReport, write_whole};
use paceline_scenario::Catalogue;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The leaderboard as Markdown in the folder of --out, with its pictures.
const LEADERBOARD: &str = "leaderboard.md";

/// Arguments of `suite`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Suites (see `paceline list suites`), `all`, or manifests of your own, NAME.suite.toml.
    #[arg(value_name = "SUITE")]
    suites: Vec<String>,
    /// The controllers and oracles (ideal, causal), or `all`; googcc, scream-v2 and nada if absent.
    #[arg(long, visible_alias = "controller", value_delimiter = ',', value_name = "A,B[,…]")]
    controllers: Vec<String>,
    /// Number of runs of each test, on seeds from 1; the number in the manifest if absent.
    #[arg(long, alias = "seeds", value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    repeats: Option<u64>,
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
    /// Number of runs at the same time; the number of cores if absent.
    #[arg(long, alias = "threads", value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1024))]
    jobs: Option<u64>,
    /// Prints one JSON document.
    #[arg(long)]
    json: bool,
}

/// Runs suites and prints which bounds hold under which controller. The exit code is 1 if an expected verdict changed.
pub fn suite(arguments: &Arguments) -> Result<ExitCode> {
    let registry = external::add(worlds::registry("sim"), &arguments.controllers, &[], "")?;
    let world = worlds::open("sim", None)?;
    if arguments.suites.is_empty() {
        let all: Vec<&str> = Catalogue.suites().collect();
        let help =
            format!("name suites, a manifest of your own, or `all`; `paceline list suites` has {}", all.join(", "));
        return Err(miette!(help = help, "no suite is named"));
    }
    let found = Suite::find_all(&arguments.suites)?;
    let subjects = subjects(&arguments.controllers, &registry)?;
    if let Some(suite) = found.iter().find(|suite| arguments.accept && suite.expected_file.is_none()) {
        let help = "copy its manifest, or name the file: paceline suite DIR/NAME.suite.toml --accept";
        return Err(miette!(help = help, "the suite `{}` is part of the program, so its verdicts are fixed", suite.id));
    }
    let earlier = arguments.beside.iter().map(|folder| Earlier::read(folder, &found, arguments.repeats));
    let earlier: Vec<Earlier> = earlier.collect::<Result<_>>()?;
    if let Some(threads) = arguments.jobs {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads as usize).build_global();
        pool.map_err(|error| miette!(help = "use a smaller --jobs", "cannot start {threads} threads: {error}"))?;
    }
    let done = arguments.out.as_deref().map(DoneRuns::open).transpose();
    let done = done.into_diagnostic()?;
    if let Some((done, folder)) = done.as_ref().filter(|done| done.count() > 0).zip(arguments.out.as_ref()) {
        if !arguments.resume {
            let help = "--resume uses them; to start again, name a new folder";
            return Err(miette!(help = help, "`{}` holds {} finished runs", folder.display(), done.count()));
        }
        eprintln!("{} finished runs are in the folder", done.count());
    }
    interrupt::announce(arguments.out.as_deref(), Continues::Resume);
    let report = with_progress(&*world, &registry, 0.0, |runner, progress| {
        let announce = |seconds| progress.expect(seconds);
        run_with(runner, &found, &subjects, arguments.repeats, done.as_ref(), &announce)
    });
    let mut report = report?.map_err(backend_error)?;
    if arguments.accept {
        accept(&found, &report)?;
    }
    if let Some(folder) = arguments.out.as_ref().filter(|_| arguments.plots) {
        plots::write(folder, &report, &*world, &registry)?;
    }
    // What follows also shows the earlier results.
    let own = subjects.len();
    for earlier in earlier {
        earlier.add(&mut report)?;
    }
    if let Some(folder) = &arguments.out {
        write(folder, &report)?;
        let page = folder.join(SUITES_PAGE);
        eprintln!("the results are in {}; open {}", folder.display(), page.display());
    }
    output::print_result(arguments.json, &report, || text::describe(&found, &report, own).text())?;
    output::exit_code(arguments.accept || report.suites.iter().all(|suite| suite.changed.is_empty()))
}

/// Describes results that are all of one run.
pub fn view(suites: &[Suite], report: &SuitesReport) -> View {
    text::describe(suites, report, usize::MAX)
}

fn subjects(names: &[String], registry: &Registry) -> Result<Vec<Subject>> {
    if names.iter().all(|name| name != ALL) {
        let (oracles, controllers): (Vec<_>, Vec<_>) =
            names.iter().cloned().partition(|name| Oracle::find(name).is_some());
        check_controllers(&controllers, registry)?;
        if let Some((_, name)) = oracles.iter().enumerate().find(|(n, name)| oracles[..*n].contains(name)) {
            return Err(miette!(help = "name each oracle once", "the oracle `{name}` is named twice"));
        }
    }
    Ok(Subject::named(names, registry))
}

/// Writes the results of suites into a folder: `suites.json`, its page, and the leaderboard with its pictures.
///
/// # Errors
/// A file cannot be written.
pub fn write(folder: &Path, report: &SuitesReport) -> Result<()> {
    let mut text = serde_json::to_string_pretty(report).into_diagnostic()?;
    text.push('\n');
    write_whole(folder, SUITES_FILE, text.as_bytes()).into_diagnostic()?;
    suites::write(folder, &folder.join(SUITES_PAGE), metrics::catalogue()).into_diagnostic()?;
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
