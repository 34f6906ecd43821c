//! `paceline compare`.

use super::report::report_within;
use super::run::describe_assertion;
use super::stored::{Into, run_into};
use super::{Selection, controllers, refused, verdict, with_runner};
use crate::output;
use crate::table::{Table, kind_of, shown};
use miette::{IntoDiagnostic, Result};
use paceline_lab::group::{Differences, RunMetrics};
use paceline_lab::plan::Plan;
use paceline_lab::run::RunsResult;
use paceline_lab::stats::Paired;
use paceline_lab::store::Store;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::ExitCode;

/// Arguments of `compare`.
#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    selection: Selection,
    /// The controllers.
    #[arg(long, value_delimiter = ',', required = true, value_name = "A,B[,…]")]
    controllers: Vec<String>,
    /// How many runs of each, on the same consecutive seeds; the scenario's own number if absent.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    repeats: Option<u32>,
    /// Writes rows, results and manifest into this folder.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

const SHOWN: [&str; 10] = [
    "utilization",
    "throughput_bps",
    "attained",
    "queue_p50_ms",
    "queue_p95_ms",
    "loss_ratio",
    "owd_p95_ms",
    "frame_delay_p95_ms",
    "freeze_s",
    "jain",
];

/// Runs the scenario under each controller and prints what each came to, and what each differs by from the first.
pub fn compare(arguments: &Arguments) -> Result<ExitCode> {
    let selection = &arguments.selection;
    let registry = selection.registry();
    let world = match selection.world()? {
        Ok(world) => world,
        Err(code) => return Ok(code),
    };
    let names = controllers(&arguments.controllers, &registry)?;
    let plans = names.iter().map(|n| selection.plan(Some(n), &registry)).collect::<Result<Vec<_>>>()?;
    let seeds = selection.seeds(arguments.repeats.unwrap_or(plans[0].repeats));
    let store = arguments.out.as_deref().map(Store::create).transpose().into_diagnostic()?;
    let results = with_runner(&*world, &registry, &plans, &seeds, |runner, index, plan| match &store {
        None => runner.run_all(plan, &seeds).map_err(refused),
        Some(store) => {
            let into = Into { store: Some(store), pcap: None };
            run_into(into, selection, Some(&names[index]), runner, plan, &seeds)
        }
    })?;
    if let Some(dir) = &arguments.out {
        eprintln!("rows and results are in {}", dir.display());
    }

    let each: Vec<Vec<RunMetrics>> = plans.iter().zip(&results).map(|(plan, result)| metrics(plan, result)).collect();
    let differences: Vec<(&String, Differences)> =
        names.iter().zip(&each).skip(1).map(|(name, runs)| (name, Differences::between(&each[0], runs))).collect();

    if selection.json {
        let each: Vec<_> =
            names.iter().zip(&results).map(|(name, result)| json!({ "controller": name, "result": result })).collect();
        let differences = differences.iter().map(|(name, found)| named(name, &names[0], found));
        let differences = differences.collect::<serde_json::Result<Vec<_>>>().into_diagnostic()?;
        output::print_json(&json!({ "scenario": plans[0].id, "controllers": each, "differences": differences }))?;
    } else {
        let plan = &plans[0];
        let n = seeds.len();
        let mut text = format!(
            "{}  {}\n  {}\n\n",
            plan.id,
            plan.title,
            match n {
                1 => format!("one run of each, seed {}", seeds[0]),
                _ => format!("{n} runs of each, the same seeds from {}; mean ± half the 95 % interval", seeds[0]),
            }
        );
        text += &table(&names, &results, plan.flows.len());
        for (name, found) in &differences {
            text += &describe(name, &names[0], found, plan.flows.len());
        }
        if !differences.is_empty() {
            text += "\n";
        }
        for ((name, result), plan) in names.iter().zip(&results).zip(&plans) {
            for assertion in result.assertions.iter().filter(|a| !a.holds) {
                text += &format!("  {name}: {}", describe_assertion(assertion));
            }
            // What the plan says is what was asked; what came of it is which runs were left out.
            for note in result.notes.iter().filter(|note| !plan.notes.contains(note)) {
                text += &format!("  · {name}: {note}\n");
            }
        }
        output::print(text.trim_end())?;
    }
    if let Some(dir) = &arguments.out {
        report_within(dir);
    }
    Ok(verdict(&results))
}

fn metrics(plan: &Plan, result: &RunsResult) -> Vec<RunMetrics> {
    result.runs.iter().map(|run| RunMetrics::of(plan, run)).collect()
}

/// The differences of one controller as JSON.
fn named(controller: &str, baseline: &str, found: &Differences) -> serde_json::Result<Value> {
    let mut value = serde_json::to_value(found)?;
    (value["controller"], value["baseline"]) = (json!(controller), json!(baseline));
    Ok(value)
}

/// Metrics that the tables show.
fn shown_of(flows: usize) -> impl Iterator<Item = &'static str> {
    SHOWN.into_iter().filter(move |id| *id != "jain" || flows > 1)
}

/// What one controller differs by from the baseline, seed by seed.
fn describe(name: &str, baseline: &str, found: &Differences, flows: usize) -> String {
    let n = found.seeds;
    let title = format!("\n  {name} against {baseline}, seed by seed");
    if found.same_runs == n {
        let runs = if n == 1 { "its run is".to_owned() } else { format!("all {n} runs are") };
        return format!("{title}: no difference, {runs} the same decision for decision\n");
    }
    let mut table = Table::new(&["", "difference", "± 95 %", "d_z", ""], 1).with_prose();
    let shown: Vec<_> = shown_of(flows).filter_map(|id| Some((id, found.metrics.get(id)?))).collect();
    for (id, difference) in &shown {
        let kind = kind_of(id);
        table.row(vec![
            (*id).to_owned(),
            kind.show_difference(difference.mean),
            if n > 1 { kind.show_size(difference.ci95) } else { "–".to_owned() },
            difference.effect.map_or_else(|| "–".to_owned(), |d| format!("{d:.1}")),
            told(difference).to_owned(),
        ]);
    }
    let apart = shown.iter().filter(|(_, d)| d.apart == Some(true)).count();
    let counted = match n {
        1 => "one seed says nothing of how sure a difference is: --repeats 10".to_owned(),
        _ => format!(
            "{apart} of {} metrics are told apart from 0; each interval stands for itself, none is corrected for their number",
            shown.len()
        ),
    };
    format!("{title}\n\n{}\n  {counted}\n", table.render())
}

/// A difference in a word.
pub fn told(difference: &Paired) -> &'static str {
    match (difference.apart, difference.mean) {
        (None, _) => "",
        (Some(true), mean) if mean > 0.0 => "more",
        (Some(true), _) => "less",
        (Some(false), mean) if mean == 0.0 && difference.std == 0.0 => "the same",
        (Some(false), _) => "not told apart",
    }
}

fn table(names: &[String], results: &[RunsResult], flows: usize) -> String {
    let mut headings = vec![""];
    headings.extend(names.iter().map(String::as_str));
    let mut table = Table::new(&headings, 1);
    for id in shown_of(flows) {
        let kind = kind_of(id);
        let cell = |result: &RunsResult| match result.summary.get(id) {
            None => "–".to_owned(),
            Some(s) if s.n > 1 => format!("{} ± {}", shown(s.mean, kind), shown(s.ci95, kind)),
            Some(s) => shown(s.mean, kind),
        };
        if results.iter().any(|r| r.summary.contains_key(id)) {
            table.row(core::iter::once(id.to_owned()).chain(results.iter().map(cell)).collect());
        }
    }
    table.render()
}
