//! `paceline sweep`.

use crate::output;
use crate::progress::Jobs;
use crate::table::{Table, kind_of, shown};
use crate::worlds::world;
use miette::{Result, miette};
use paceline::Registry;
use paceline_lab::run::Runner;
use paceline_lab::scenario::{Catalogue, Setting};
use paceline_lab::sweep::{Measure, Point, Sweep, SweepError, SweepFolder, SweepResult};
use paceline_lab::world::World;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Arguments of `sweep`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Sweep id (see `paceline list sweeps`) or a TOML file.
    sweep: String,
    /// Sets a value of the sweep file: dotted key, elements of lists by number, such as axis.0.log.steps=8. May be given
    /// often.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<Setting>,
    /// World to run in.
    #[arg(long, default_value = "sim")]
    world: String,
    /// Seeds per point; else as many as the sweep says.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    seeds: Option<u64>,
    /// Writes each job as it is done, and in the end the tables and pictures, into this folder.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Goes on with what --out holds.
    #[arg(long, requires = "out")]
    resume: bool,
    /// How many threads; else as many as the machine has cores.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=1024))]
    threads: Option<u64>,
    /// Prints one JSON document; with --out without the points, which are in the folder.
    #[arg(long)]
    json: bool,
}

/// Runs every point and prints a table, a grid or what is best.
pub fn sweep(arguments: &Arguments) -> Result<ExitCode> {
    let registry = Registry::standard();
    let world = match world(&arguments.world)? {
        Ok(world) => world,
        Err(code) => return Ok(code),
    };
    let origin = Catalogue.find_sweep(&arguments.sweep)?;
    let mut sweep = Sweep::load_with(&origin, &arguments.settings, &registry)?;
    sweep.repeats = arguments.seeds.unwrap_or(sweep.repeats);
    if let Some(threads) = arguments.threads {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads as usize).build_global();
        pool.map_err(|error| miette!("{threads} threads are not to be had: {error}"))?;
    }
    let result = run(&sweep, &*world, &registry, arguments.out.as_deref(), arguments.resume)?;
    let refined = match sweep.refined(&result, &registry)? {
        None => None,
        Some(refined) => {
            let folder = arguments.out.as_ref().map(|dir| dir.join("best"));
            // A kill may have come before it was begun.
            let result = run(&refined, &*world, &registry, folder.as_deref(), arguments.resume)?;
            Some((refined, result))
        }
    };
    let told = |result: &SweepResult| if arguments.out.is_some() { result.without_points() } else { result.clone() };
    match arguments.json {
        true => output::print_json(&Told { result: told(&result), refined: refined.as_ref().map(|(_, r)| told(r)) })?,
        false => {
            let mut text = describe(&sweep, &result);
            if let Some((sweep, result)) = &refined {
                text += &format!("\n{}", describe(sweep, result));
            }
            output::print(text.trim_end())?;
        }
    }
    let claimed = sweep.sum.as_ref().is_some_and(|sum| sum.larger_where.is_some());
    if claimed && result.sides.is_none() {
        eprintln!("the claim `larger_where` cannot be judged: on one of its sides no point has a sum");
    }
    let holds = !claimed || result.sides.as_ref().is_some_and(|sides| sides.holds);
    Ok(ExitCode::from(if holds { 0 } else { 1 }))
}

/// The JSON document.
#[derive(serde::Serialize)]
struct Told {
    #[serde(flatten)]
    result: SweepResult,
    /// The best points on more seeds.
    #[serde(skip_serializing_if = "Option::is_none")]
    refined: Option<SweepResult>,
}

/// Every job of a sweep, into a folder if there is one.
fn run(sweep: &Sweep, world: &dyn World, registry: &Registry, out: Option<&Path>, resume: bool) -> Result<SweepResult> {
    let folder = out.map(|dir| SweepFolder::open(dir, sweep, world.name(), registry, resume)).transpose();
    let folder = folder.map_err(refused)?;
    let done = folder.as_ref().map_or(0, SweepFolder::done_jobs);
    let progress = Jobs::new(sweep.jobs() - done, done);
    let runner = Runner { world, registry, clock: &|| 0.0, ticked: &|| () };
    let finished = || progress.done();
    let result = match &folder {
        None => sweep.run(&runner, &finished),
        Some(folder) => sweep.run_into(&runner, folder, &finished),
    };
    drop(progress);
    let result = result.map_err(refused)?;
    if let Some(dir) = out {
        // Drawn from what is stored: a sweep is no worse without pictures.
        match paceline_report::sweeps::write(&result, dir) {
            Ok(files) if files.is_empty() => eprintln!("the tables are in {}", dir.display()),
            Ok(files) => eprintln!("the tables are in {}, and {} pictures in figures", dir.display(), files.len()),
            Err(problem) => eprintln!("no picture was written: {problem}"),
        }
    }
    Ok(result)
}

/// A sweep's complaint as a command's: a world's has an exit code of its own.
fn refused(error: SweepError) -> miette::Report {
    match error {
        SweepError::World(error) => super::refused(error),
        other => other.into(),
    }
}

/// Most points that are all shown, and how many are where there are more.
const MOST_ROWS: usize = 40;
const FEW_ROWS: usize = 10;

/// A column for people: its heading and what stands in it.
type Column<'a> = (String, Box<dyn Fn(&Point) -> Option<f64> + 'a>);

fn describe(sweep: &Sweep, result: &SweepResult) -> String {
    let mut text = format!("{}: {}\n  {}; seeds per point: {}\n\n", sweep.id, sweep.title, sweep.source, sweep.repeats);
    let few: Option<Vec<Vec<toml::Value>>> = sweep.axes.iter().map(|axis| axis.few()).collect();
    match few.as_deref() {
        _ if !result.swings.is_empty() => text += &swings(sweep, result),
        Some([down, right]) => {
            for (heading, value) in columns(sweep) {
                text += &format!("{heading}\n{}\n", grid(sweep, result, (down, right), &*value));
            }
        }
        _ if result.points.len() <= MOST_ROWS => text += &rows(sweep, result, 0..result.points.len()),
        // Without a sum none is best.
        _ if result.best.is_none() => {
            text += &format!("The first {FEW_ROWS} of {} points:\n", result.points.len());
            text += &rows(sweep, result, 0..FEW_ROWS);
        }
        _ => {
            text += &format!("The best {FEW_ROWS} of {} points:\n", result.points.len());
            text += &rows(sweep, result, result.ranking().take(FEW_ROWS));
        }
    }
    text + &standing(sweep, result)
}

/// What is best, where the published point stands, and the claim on the sides.
fn standing(sweep: &Sweep, result: &SweepResult) -> String {
    let mut text = String::new();
    if let Some(best) = &result.best {
        let far = best.decades.map(|d| format!(", {d:.2} decades from the published point")).unwrap_or_default();
        let raw = if sweep.sum.as_ref().is_some_and(|s| s.normalised) {
            format!(" (raw {:.3})", best.raw_sum)
        } else {
            String::new()
        };
        text += &format!("The sum is largest, {:.3}{raw}, at {}{far}.\n", best.sum, place(sweep, &best.at));
    }
    if let Some(published) = &result.published {
        text += &format!(
            "The point nearest to the published one, {}, has {:.3}: rank {} of {}, {:.3} below the largest.\n",
            place(sweep, &published.at),
            published.sum,
            published.rank,
            result.points.len(),
            published.deficit
        );
    }
    if let Some(sides) = &result.sides {
        let ((first, second), (larger, n), (less, m)) = (&sides.keys, sides.larger, sides.less);
        let holds = if sides.holds { "the claim holds" } else { "the claim fails" };
        text += &format!(
            "Its mean is {larger:.3} over the {n} points with {first} > {second}, {less:.3} over the {m} with {first} < {second}: {holds}.\n"
        );
    }
    text
}

fn columns(sweep: &Sweep) -> Vec<Column<'_>> {
    let measures = sweep.measures.iter().enumerate();
    let mut columns: Vec<Column<'_>> = measures
        .map(|(index, m)| {
            let value = move |point: &Point| point.values[index].map(|s| s.mean);
            (heading(m), Box::new(value) as Box<dyn Fn(&Point) -> Option<f64>>)
        })
        .collect();
    if let Some(sum) = &sweep.sum {
        let how = if sum.normalised { ", each from 0 to 1 over the sweep" } else { "" };
        columns.push((format!("sum of the measures{how}"), Box::new(|point: &Point| point.sum)));
    }
    columns
}

fn heading(measure: &Measure) -> String {
    let published = measure.published.map(|p| format!(" (published {})", shown(p, kind_of(&measure.metric))));
    format!("{}: {}{}", measure.name, measure.metric, published.unwrap_or_default())
}

/// A row for each constant: its values, and how each measure changes at the low and at the high one; a star where the
/// interval excludes 0.
fn swings(sweep: &Sweep, result: &SweepResult) -> String {
    let mut headings: Vec<String> = ["controller", "constant", "low", "base", "high"].map(str::to_owned).to_vec();
    headings.extend(sweep.measures.iter().map(|m| format!("{}: {}, low / high", m.name, m.metric)));
    let mut table = Table::new(&headings.iter().map(String::as_str).collect::<Vec<_>>(), 2);
    for swing in &result.swings {
        let mut row = vec![swing.controller.clone().unwrap_or_default(), swing.key.clone()];
        row.extend(swing.values.map(|value| label(&value.into())));
        for (changes, measure) in swing.changes.iter().zip(&sweep.measures) {
            let kind = kind_of(&measure.metric);
            let told = changes.each_ref().map(|change| match change {
                None => "–".to_owned(),
                Some(c) => {
                    let mark = if c.apart == Some(true) { "*" } else { "" };
                    format!("{mark}{}", kind.show_difference(c.mean))
                }
            });
            row.push(told.join(" / "));
        }
        table.row(row);
    }
    format!("{}  * the 95 % interval of the difference, seed by seed, excludes 0\n", table.render())
}

/// A row for each of these points, a column per measure.
fn rows(sweep: &Sweep, result: &SweepResult, points: impl IntoIterator<Item = usize>) -> String {
    let mut headings: Vec<String> = sweep.keys().map(str::to_owned).collect();
    headings.extend(sweep.measures.iter().map(heading));
    let normalised = sweep.sum.as_ref().is_some_and(|s| s.normalised);
    headings.extend(sweep.sum.as_ref().map(|_| "sum".to_owned()));
    headings.extend(normalised.then(|| "raw sum".to_owned()));
    let mut table = Table::new(&headings.iter().map(String::as_str).collect::<Vec<_>>(), 0);
    let number = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |s| format!("{s:.3}"));
    for point in points.into_iter().map(|index| &result.points[index]) {
        let mut row: Vec<String> = point.at.iter().map(label).collect();
        for (summary, measure) in point.values.iter().zip(&sweep.measures) {
            row.push(match summary {
                None => "–".to_owned(),
                Some(s) if s.ci95.is_finite() => {
                    format!("{} ± {}", shown(s.mean, kind_of(&measure.metric)), shown(s.ci95, kind_of(&measure.metric)))
                }
                Some(s) => shown(s.mean, kind_of(&measure.metric)),
            });
        }
        row.extend(sweep.sum.as_ref().map(|_| number(point.sum)));
        row.extend(normalised.then(|| number(point.raw_sum)));
        table.row(row);
    }
    table.render() + "\n"
}

/// The first axis downwards, the second to the right; the largest value marked.
fn grid(
    sweep: &Sweep,
    result: &SweepResult,
    (down, right): (&[toml::Value], &[toml::Value]),
    value: &dyn Fn(&Point) -> Option<f64>,
) -> String {
    let values = result.points.iter().enumerate().filter_map(|(index, point)| Some((index, value(point)?)));
    let largest = values.reduce(|best, other| if other.1 > best.1 { other } else { best }).map(|(index, _)| index);
    let keys: Vec<&str> = sweep.keys().collect();
    let mut headings = vec![keys.join(" \\ ")];
    headings.extend(right.iter().map(label));
    let mut table = Table::new(&headings.iter().map(String::as_str).collect::<Vec<_>>(), 0);
    for (row, first) in down.iter().enumerate() {
        let cell = |column: usize| {
            let index = row * right.len() + column;
            let mark = if Some(index) == largest { "*" } else { "" };
            value(&result.points[index]).map_or_else(|| "–".to_owned(), |v| format!("{mark}{v:.3}"))
        };
        table.row(std::iter::once(label(first)).chain((0..right.len()).map(cell)).collect());
    }
    format!("{}  * largest\n", table.render())
}

fn place(sweep: &Sweep, at: &[toml::Value]) -> String {
    let pairs = sweep.keys().zip(at);
    pairs.map(|(key, value)| format!("{key} = {}", label(value))).collect::<Vec<_>>().join(", ")
}

/// A value of an axis: numbers to three digits.
fn label(value: &toml::Value) -> String {
    match value.as_float() {
        Some(x) if x != 0.0 && !(0.01..1e4).contains(&x.abs()) => format!("{x:.2e}"),
        Some(x) => format!("{}", (x * 1e4).round() / 1e4),
        None => value.as_str().map_or_else(|| value.to_string(), str::to_owned),
    }
}
