//! `paceline sweep`.

use super::refused;
use crate::output;
use crate::progress::Progress;
use crate::table::{Table, kind_of, shown};
use crate::worlds::world;
use miette::Result;
use paceline::Registry;
use paceline_lab::run::Runner;
use paceline_lab::scenario::Catalogue;
use paceline_lab::sweep::{Measure, Point, Sweep, SweepResult};
use std::process::ExitCode;
use std::time::Instant;

/// Arguments of `sweep`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Sweep id (see `paceline list sweeps`) or a TOML file.
    sweep: String,
    /// World to run in.
    #[arg(long, default_value = "sim")]
    world: String,
    /// Seeds per point; else as many as the sweep says.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    seeds: Option<u64>,
    /// Prints one JSON document.
    #[arg(long)]
    json: bool,
}

/// Runs every point and prints a table or a grid.
pub fn sweep(arguments: &Arguments) -> Result<ExitCode> {
    let registry = Registry::standard();
    let world = match world(&arguments.world)? {
        Ok(world) => world,
        Err(code) => return Ok(code),
    };
    let sweep = Sweep::load(&Catalogue.find_sweep(&arguments.sweep)?, &registry)?;
    let seeds = arguments.seeds.unwrap_or(sweep.repeats);
    let progress = Progress::new(sweep.seconds(seeds) as u64, &*world);
    let began = Instant::now();
    let clock = || began.elapsed().as_secs_f64();
    let ticked = || progress.tick();
    let runner = Runner { world: &*world, registry: &registry, clock: &clock, ticked: &ticked };
    let result = sweep.run(&runner, seeds).map_err(refused)?;
    drop(progress);
    match arguments.json {
        true => output::print_json(&result)?,
        false => output::print(describe(&sweep, &result, seeds).trim_end())?,
    }
    Ok(ExitCode::SUCCESS)
}

/// A column for people: its heading and what stands in it.
type Column<'a> = (String, Box<dyn Fn(&Point) -> Option<f64> + 'a>);

fn describe(sweep: &Sweep, result: &SweepResult, seeds: u64) -> String {
    let mut text = format!("{}: {}\n  {}; seeds per point: {seeds}\n\n", sweep.id, sweep.title, sweep.source);
    if sweep.axes.len() == 1 {
        text += &rows(sweep, result);
    } else {
        for (heading, value) in columns(sweep) {
            text += &format!("{heading}\n{}\n", grid(result, &*value));
        }
    }
    if sweep.sum.is_some() {
        let sum = |point: &Point| point.sum;
        if let Some((index, sum)) = best(result, &sum) {
            text += &format!("The sum is largest, {sum:.3}, at {}.\n", place(result, index));
        }
        text += &halves(result);
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
    if let Some(normalised) = sweep.sum {
        let how = if normalised { ", each from 0 to 1 over the grid" } else { "" };
        columns.push((format!("sum of the measures{how}"), Box::new(|point: &Point| point.sum)));
    }
    columns
}

fn heading(measure: &Measure) -> String {
    let published = measure.published.map(|p| format!(" (published {})", shown(p, kind_of(&measure.metric))));
    format!("{}: {}{}", measure.name, measure.metric, published.unwrap_or_default())
}

/// A row per point, a column per measure.
fn rows(sweep: &Sweep, result: &SweepResult) -> String {
    let mut headings = vec![sweep.axes[0].key.clone()];
    headings.extend(sweep.measures.iter().map(heading));
    headings.extend(sweep.sum.map(|_| "sum".to_owned()));
    let mut table = Table::new(&headings.iter().map(String::as_str).collect::<Vec<_>>(), 0);
    for point in &result.points {
        let mut row = vec![label(&point.at[0])];
        for (summary, measure) in point.values.iter().zip(&sweep.measures) {
            row.push(match summary {
                None => "–".to_owned(),
                Some(s) if s.ci95.is_finite() => {
                    format!("{} ± {}", shown(s.mean, kind_of(&measure.metric)), shown(s.ci95, kind_of(&measure.metric)))
                }
                Some(s) => shown(s.mean, kind_of(&measure.metric)),
            });
        }
        row.extend(sweep.sum.map(|_| point.sum.map_or_else(|| "–".to_owned(), |s| format!("{s:.3}"))));
        table.row(row);
    }
    table.render() + "\n"
}

/// The first axis downwards, the second to the right; the largest value marked.
fn grid(result: &SweepResult, value: &dyn Fn(&Point) -> Option<f64>) -> String {
    let [down, right] = &result.axes[..] else { unreachable!("a sweep has one or two axes") };
    let largest = best(result, value).map(|(index, _)| index);
    let mut headings = vec![format!("{} \\ {}", down.key, right.key)];
    headings.extend(right.values.iter().map(label));
    let mut table = Table::new(&headings.iter().map(String::as_str).collect::<Vec<_>>(), 0);
    for (row, first) in down.values.iter().enumerate() {
        let cell = |column: usize| {
            let index = row * right.values.len() + column;
            let mark = if Some(index) == largest { "*" } else { "" };
            value(&result.points[index]).map_or_else(|| "–".to_owned(), |v| format!("{mark}{v:.3}"))
        };
        table.row(std::iter::once(label(first)).chain((0..right.values.len()).map(cell)).collect());
    }
    format!("{}  * largest\n", table.render())
}

/// The point with the largest value.
fn best(result: &SweepResult, value: &dyn Fn(&Point) -> Option<f64>) -> Option<(usize, f64)> {
    let values = result.points.iter().enumerate().filter_map(|(index, point)| Some((index, value(point)?)));
    values.reduce(|best, other| if other.1 > best.1 { other } else { best })
}

fn place(result: &SweepResult, index: usize) -> String {
    let pairs = result.axes.iter().zip(&result.points[index].at);
    pairs.map(|(axis, value)| format!("{} = {}", axis.key, label(value))).collect::<Vec<_>>().join(", ")
}

/// The mean of the sum on either side of the diagonal, where both axes are numbers.
fn halves(result: &SweepResult) -> String {
    let [first, second] = &result.axes[..] else { return String::new() };
    let mean = |side: fn(f64, f64) -> bool| {
        let sums: Vec<f64> = result
            .points
            .iter()
            .filter(|p| p.at[0].as_float().zip(p.at[1].as_float()).is_some_and(|(a, b)| side(a, b)))
            .filter_map(|p| p.sum)
            .collect();
        (!sums.is_empty()).then(|| (sums.iter().sum::<f64>() / sums.len() as f64, sums.len()))
    };
    let (Some((above, n)), Some((below, m))) = (mean(|a, b| a > b), mean(|a, b| a < b)) else { return String::new() };
    format!(
        "Its mean is {above:.3} over the {n} cells with {} > {}, {below:.3} over the {m} with {} < {}.\n",
        first.key, second.key, first.key, second.key
    )
}

/// A value of an axis: numbers to three digits.
fn label(value: &toml::Value) -> String {
    match value.as_float() {
        Some(x) if x != 0.0 && !(0.01..1e4).contains(&x.abs()) => format!("{x:.2e}"),
        Some(x) => format!("{}", (x * 1e4).round() / 1e4),
        None => value.as_str().map_or_else(|| value.to_string(), str::to_owned),
    }
}
