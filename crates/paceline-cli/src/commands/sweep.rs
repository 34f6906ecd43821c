// SPDX-License-Identifier: MIT OR Apache-2.0
//! `paceline sweep`.

use super::options::{ControllerOptions, JobOptions, Names, SeedOptions, sweeps};
use crate::errors::world_error;
use crate::external;
use crate::interrupt::{self, Continues};
use crate::output;
use crate::progress::Progress;
use crate::table::{MISSING, Table, kind_of};
use crate::view::View;
use crate::worlds;
use miette::{IntoDiagnostic, Result, WrapErr};
use paceline::Registry;
use paceline_lab::report::check_text::summary_text;
use paceline_lab::results::{Measure, Point, SweepResult, Verdict};
use paceline_lab::run::Runner;
use paceline_lab::sweep::{Sweep, SweepError, SweepFolder};
use paceline_netsim::world::World;
use paceline_scenario::{Catalogue, Override};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Arguments of `sweep`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Sweep id (see `paceline list sweeps`) or a TOML file.
    #[arg(value_parser = Names(sweeps), hide_possible_values = true)]
    sweep: String,
    /// Sets a value of the sweep file: dotted key, elements of lists by number, such as axis.0.log.steps=8. Can be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<Override>,
    /// World: sim, testbed or browser.
    #[arg(long, default_value = "sim")]
    world: String,
    #[command(flatten)]
    controllers: ControllerOptions,
    #[command(flatten)]
    seeds: SeedOptions,
    /// Writes each finished job, and at the end the tables and plots, into this folder.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Resumes the sweep in the folder of --out.
    #[arg(long, requires = "out")]
    resume: bool,
    #[command(flatten)]
    jobs: JobOptions,
    /// Lets the sweep file run code: it may name `exec:` and `lib:` controllers. They run with your rights.
    #[arg(long)]
    allow_exec: bool,
    /// Prints one JSON document; with --out it omits the points, which are in the folder.
    #[arg(long)]
    json: bool,
}

/// Runs every point and prints a table, a grid or the best points.
pub fn sweep(arguments: &Arguments) -> Result<ExitCode> {
    let world = worlds::open(&arguments.world, None)?;
    let origin = Catalogue.find_sweep(&arguments.sweep)?;
    let set: Vec<String> = arguments.settings.iter().map(Override::to_string).collect();
    let text = if arguments.allow_exec { origin.text.as_str() } else { "" };
    let registry = external::add(Registry::standard(), &arguments.controllers.names, &set, text)?;
    let controllers: Vec<String> = arguments.controllers.without_oracles(&registry)?.into_iter().flatten().collect();
    let mut settings = arguments.settings.clone();
    if !controllers.is_empty() {
        let setting = format!("controllers={controllers:?}").parse();
        settings.push(setting.expect("a key and a value"));
    }
    let mut sweep = Sweep::load_with(&origin, &settings, &registry)?;
    let repeats = arguments.seeds.count("each point of a sweep has the same seeds")?;
    sweep.repeats = repeats.unwrap_or(sweep.repeats);
    arguments.jobs.start()?;
    interrupt::announce(arguments.out.as_deref(), Continues::Resume);
    let (result, mut written) = run(&sweep, &*world, &registry, arguments.out.as_deref(), arguments.resume)?;
    let refined = match sweep.refined(&result, &registry)? {
        None => None,
        Some(refined) => {
            let folder = arguments.out.as_ref().map(|dir| dir.join("best"));
            // The killed process may not have started it: `resume` also accepts a new folder.
            let (result, more) = run(&refined, &*world, &registry, folder.as_deref(), arguments.resume)?;
            written = written.and(more);
            Some((refined, result))
        }
    };
    let printed = |result: &SweepResult| if arguments.out.is_some() { result.without_points() } else { result.clone() };
    let document = Document { result: printed(&result), refined: refined.as_ref().map(|(_, r)| printed(r)) };
    output::print_results(arguments.json, &document, || match &refined {
        None => describe(&sweep, &result),
        Some((best, refined)) => format!("{}\n{}", describe(&sweep, &result), describe(best, refined)),
    })?;
    written?;
    let claimed = sweep.sum.as_ref().is_some_and(|sum| sum.larger_where.is_some());
    if claimed && result.sides.is_none() {
        eprintln!(
            "the claim `larger_where` has no result: no point on one side has a sum; extend the axes so that both keys cross"
        );
    }
    output::exit_code(!claimed || result.sides.as_ref().is_some_and(|sides| sides.verdict != Verdict::Fails))
}

#[derive(serde::Serialize)]
struct Document {
    #[serde(flatten)]
    result: SweepResult,
    /// The best points, on more seeds.
    #[serde(skip_serializing_if = "Option::is_none")]
    refined: Option<SweepResult>,
}

/// Runs every job of a sweep, into a folder if there is one. Returns the result, and whether its tables and plots are written.
fn run(
    sweep: &Sweep,
    world: &dyn World,
    registry: &Registry,
    out: Option<&Path>,
    resume: bool,
) -> Result<(SweepResult, Result<()>)> {
    let folder = out.map(|dir| SweepFolder::open(dir, sweep, world.name(), registry, resume)).transpose();
    let folder = folder.map_err(sweep_error)?;
    let done = folder.as_ref().map_or(0, SweepFolder::done_jobs);
    let progress = Progress::of_jobs(sweep.jobs() - done, done);
    let runner = Runner::new(world, registry);
    let finished = || progress.tick();
    let result = match &folder {
        None => sweep.run(&runner, &finished),
        Some(folder) => sweep.run_into(&runner, folder, &finished),
    };
    drop(progress);
    let result = result.map_err(sweep_error)?;
    let written = folder.iter().zip(out).try_for_each(|(folder, dir)| write(sweep, &result, folder, dir));
    Ok((result, written))
}

/// Writes the tables and the plots of a sweep.
fn write(sweep: &Sweep, result: &SweepResult, folder: &SweepFolder, dir: &Path) -> Result<()> {
    folder.write_tables(sweep, result).map_err(sweep_error)?;
    let files = paceline_lab::report::sweeps::write(result, dir, paceline_lab::metrics::catalogue());
    match files.into_diagnostic().wrap_err("the plots were not written")?.len() {
        0 => {
            eprintln!("the tables are in {}", dir.display());
            eprintln!("there is no plot: plots need one or two axes of increasing numbers without units");
        }
        count => eprintln!("the tables are in {}, and {count} plots in figures", dir.display()),
    }
    Ok(())
}

fn sweep_error(error: SweepError) -> miette::Report {
    match error {
        SweepError::World(error) => world_error(error),
        other => other.into(),
    }
}

/// Up to this number, all points are shown.
const ALL_ROWS_MAX: usize = 40;
/// Number of points shown if there are more.
const FEW_ROWS: usize = 10;

/// A column of a table: its heading, and its value with a text.
type Column<'a> = (String, Box<dyn Fn(&Point) -> Option<(f64, String)> + 'a>);

fn describe(sweep: &Sweep, result: &SweepResult) -> String {
    view(sweep, result).text()
}

/// Returns what readers see of a sweep.
pub fn view(sweep: &Sweep, result: &SweepResult) -> View {
    let mut view = View::default();
    view.heading(format!("{}: {}", output::bold(&sweep.id), sweep.title));
    // The source of a sweep that is made in code is empty.
    let source = [sweep.source.clone(), format!("seeds per point: {}", sweep.repeats)];
    view.line("", source.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; "));
    view.gap();
    let few: Option<Vec<Vec<toml::Value>>> = sweep.axes.iter().map(|axis| axis.few()).collect();
    match few.as_deref() {
        _ if !result.swings.is_empty() => {
            let legend = "* the 95 % interval of the paired difference excludes 0".to_owned();
            view.table_with_note(swings(sweep, result), Some(legend));
        }
        Some([down, right]) => {
            for (heading, value) in columns(sweep) {
                view.sentences(heading);
                view.table_with_note(grid(sweep, result, (down, right), &*value), Some("* largest".to_owned()));
            }
        }
        _ if result.points.len() <= ALL_ROWS_MAX => view.table(rows(sweep, result, 0..result.points.len())),
        // Without a sum there is no best point.
        _ if result.best.is_none() => {
            view.sentences(format!("The first {FEW_ROWS} of {} points:", result.points.len()));
            view.table(rows(sweep, result, 0..FEW_ROWS));
        }
        _ => {
            view.sentences(format!("The best {FEW_ROWS} of {} points:", result.points.len()));
            view.table(rows(sweep, result, result.ranking().take(FEW_ROWS)));
        }
    }
    ranking(&mut view, sweep, result);
    view
}

/// Describes the best point, the rank of the published point, and the result of the claim.
fn ranking(view: &mut View, sweep: &Sweep, result: &SweepResult) {
    if let Some(best) = &result.best {
        let far = best.decades.map(|d| format!(", {d:.2} decades from the published point")).unwrap_or_default();
        let raw = if is_normalised(sweep) { format!(" (raw {:.3})", best.raw_sum) } else { String::new() };
        view.sentences(format!("The sum is largest, {:.3}{raw}, at {}{far}.", best.sum, place(sweep, &best.at)));
    }
    if let Some(published) = &result.published {
        view.sentences(format!(
            "The point nearest to the published one, {}, has the sum {:.3}: rank {} of {}, {:.3} below the largest.",
            place(sweep, &published.at),
            published.sum,
            published.rank,
            result.points.len(),
            published.deficit
        ));
    }
    if let Some(sides) = &result.sides {
        let ((first, second), (larger, n), (less, m)) = (&sides.keys, sides.larger, sides.less);
        let verdict = output::in_colour_of(sides.verdict, format!("the claim {}", sides.verdict));
        view.sentences(format!(
            "The mean sum is {larger:.3} over the {n} points with {first} > {second}, and {less:.3} over the {m} with {first} < {second}: {verdict}."
        ));
    }
}

fn is_normalised(sweep: &Sweep) -> bool {
    sweep.sum.as_ref().is_some_and(|sum| sum.normalised)
}

fn columns(sweep: &Sweep) -> Vec<Column<'_>> {
    let measures = sweep.measures.iter().enumerate();
    let mut columns: Vec<Column<'_>> = measures
        .map(|(index, m)| {
            let value = move |point: &Point| {
                point.values[index].map(|s| (s.mean, summary_text(&s, |v| kind_of(&m.metric).show(v))))
            };
            (heading(m), Box::new(value) as Box<dyn Fn(&Point) -> Option<(f64, String)>>)
        })
        .collect();
    if let Some(sum) = &sweep.sum {
        let how = if sum.normalised { ", each from 0 to 1 over the sweep" } else { "" };
        let value = |point: &Point| point.sum.map(|sum| (sum, format!("{sum:.3}")));
        columns.push((format!("sum of the measures{how}"), Box::new(value)));
    }
    columns
}

fn heading(measure: &Measure) -> String {
    let published = measure.published.map(|p| format!(" (published {})", kind_of(&measure.metric).show(p)));
    format!("{}: {}{}", measure.name, measure.metric, published.unwrap_or_default())
}

/// Returns a row for each constant: its values, and the change of each measure at the low and at the high value. A star
/// marks intervals that exclude 0.
fn swings(sweep: &Sweep, result: &SweepResult) -> Table {
    let mut headings: Vec<String> = ["controller", "constant", "low", "base", "high"].map(str::to_owned).to_vec();
    headings.extend(sweep.measures.iter().map(|m| format!("{}: {}, low / high", m.name, m.metric)));
    let mut table = Table::new(headings, 2);
    for swing in &result.swings {
        let mut row = vec![swing.controller.clone().unwrap_or_default(), swing.key.clone()];
        row.extend(swing.values.map(|value| label(&value.into())));
        for (changes, measure) in swing.changes.iter().zip(&sweep.measures) {
            let kind = kind_of(&measure.metric);
            let cells = changes.each_ref().map(|change| match change {
                None => MISSING.to_owned(),
                Some(c) => {
                    let mark = if c.significant == Some(true) { "*" } else { "" };
                    format!("{mark}{}", kind.show_difference(c.mean))
                }
            });
            row.push(cells.join(" / "));
        }
        table.row(row);
    }
    table
}

/// Returns a row for each of these points, with a column for each measure.
fn rows(sweep: &Sweep, result: &SweepResult, points: impl IntoIterator<Item = usize>) -> Table {
    let mut headings: Vec<String> = sweep.keys().map(str::to_owned).collect();
    headings.extend(sweep.measures.iter().map(heading));
    let normalised = is_normalised(sweep);
    headings.extend(sweep.sum.as_ref().map(|_| "sum".to_owned()));
    headings.extend(normalised.then(|| "raw sum".to_owned()));
    let mut table = Table::new(headings, 0).with_keys(sweep.keys().count());
    let number = |value: Option<f64>| value.map_or_else(|| MISSING.to_owned(), |s| format!("{s:.3}"));
    for point in points.into_iter().map(|index| &result.points[index]) {
        let mut row: Vec<String> = point.at.iter().map(label).collect();
        for (values, measure) in point.values.iter().zip(&sweep.measures) {
            row.push(values.as_ref().map_or_else(
                || MISSING.to_owned(),
                |values| summary_text(values, |v| kind_of(&measure.metric).show(v)),
            ));
        }
        row.extend(sweep.sum.as_ref().map(|_| number(point.sum)));
        row.extend(normalised.then(|| number(point.raw_sum)));
        table.row(row);
    }
    table
}

/// Returns a grid: the first axis downwards, the second to the right, the largest values marked.
fn grid(
    sweep: &Sweep,
    result: &SweepResult,
    (down, right): (&[toml::Value], &[toml::Value]),
    value: &dyn Fn(&Point) -> Option<(f64, String)>,
) -> Table {
    let largest = result.points.iter().filter_map(|point| Some(value(point)?.0)).reduce(f64::max);
    let keys: Vec<&str> = sweep.keys().collect();
    let mut headings = vec![keys.join(" \\ ")];
    headings.extend(right.iter().map(label));
    let mut table = Table::new(headings, 0);
    for (row, first) in down.iter().enumerate() {
        let cell = |column: usize| {
            let index = row * right.len() + column;
            let Some((number, text)) = value(&result.points[index]) else { return MISSING.to_owned() };
            let mark = if Some(number) == largest { "*" } else { "" };
            format!("{mark}{text}")
        };
        table.row(std::iter::once(label(first)).chain((0..right.len()).map(cell)).collect());
    }
    table
}

fn place(sweep: &Sweep, at: &[toml::Value]) -> String {
    let pairs = sweep.keys().zip(at);
    pairs.map(|(key, value)| format!("{key} = {}", label(value))).collect::<Vec<_>>().join(", ")
}

/// Formats a value of an axis, numbers with three digits.
fn label(value: &toml::Value) -> String {
    match value.as_float() {
        Some(x) if x != 0.0 && !(0.01..1e4).contains(&x.abs()) => format!("{x:.2e}"),
        Some(x) => format!("{}", (x * 1e4).round() / 1e4),
        None => value.as_str().map_or_else(|| value.to_string(), str::to_owned),
    }
}
