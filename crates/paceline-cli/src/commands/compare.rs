//! `paceline compare`.

use super::report::report_within;
use super::run::describe_assertion;
use super::stored::run_into;
use super::{Selection, controllers, refused, verdict, with_runner};
use crate::output;
use crate::table::{Table, kind_of, shown};
use miette::{IntoDiagnostic, Result};
use paceline::Registry;
use paceline_lab::run::RunsResult;
use paceline_lab::store::Store;
use serde_json::json;
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

/// Runs the scenario under each controller and prints one table.
pub fn compare(arguments: &Arguments) -> Result<ExitCode> {
    let selection = &arguments.selection;
    let registry = Registry::standard();
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
        Some(store) => run_into(store, selection, Some(&names[index]), runner, plan, &seeds),
    })?;
    if let Some(dir) = &arguments.out {
        eprintln!("rows and results are in {}", dir.display());
        report_within(dir)?;
    }

    if selection.json {
        let each: Vec<_> =
            names.iter().zip(&results).map(|(name, result)| json!({ "controller": name, "result": result })).collect();
        output::print_json(&json!({ "scenario": plans[0].id, "controllers": each }))?;
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
        for (name, result) in names.iter().zip(&results) {
            for assertion in result.assertions.iter().filter(|a| !a.holds) {
                text += &format!("  {name}: {}", describe_assertion(assertion));
            }
        }
        output::print(text.trim_end())?;
    }
    Ok(verdict(&results))
}

fn table(names: &[String], results: &[RunsResult], flows: usize) -> String {
    let mut headings = vec![""];
    headings.extend(names.iter().map(String::as_str));
    let mut table = Table::new(&headings, 1);
    for id in SHOWN.into_iter().filter(|id| *id != "jain" || flows > 1) {
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
