//! `paceline compare`.

use super::report::finish_folder;
use super::run::{all_pass, describe_assertion};
use super::stored::{Destination, make_runs};
use super::{Selection, check_controllers, with_progress};
use crate::output;
use crate::table::{MISSING, Table, kind_of};
use crate::worlds;
use miette::{IntoDiagnostic, Result};
use paceline_lab::compare::{Comparison, ControllerDifferences, ControllerRuns};
use paceline_records::Paired;
use paceline_results::Store;
use paceline_scenario::Scenario;
use std::path::PathBuf;
use std::process::ExitCode;

/// Arguments of `compare`.
#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    selection: Selection,
    /// The controllers; the first is the baseline.
    #[arg(long, value_delimiter = ',', required = true, value_name = "A,B[,…]")]
    controllers: Vec<String>,
    /// Number of runs of each, on the same consecutive seeds; the scenario's own number if absent.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    repeats: Option<u32>,
    /// Writes events, results and manifest into this folder.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

const SHOWN: [&str; 10] = [
    "utilization",
    "throughput_bps",
    "link_share",
    "queue_p50_ms",
    "queue_p95_ms",
    "loss_ratio",
    "owd_p95_ms",
    "frame_delay_p95_ms",
    "freeze_duration_s",
    "jain",
];

/// Runs the scenario under each controller, and prints each result and its differences from the first.
pub fn compare(arguments: &Arguments) -> Result<ExitCode> {
    let (selection, options) = (&arguments.selection, &arguments.selection.options);
    let registry = worlds::registry(&options.world);
    let world = worlds::open(&options.world, None)?;
    let names = &arguments.controllers;
    check_controllers(names, &registry)?;
    let scenarios = names.iter().map(|n| selection.load(Some(n), &registry)).collect::<Result<Vec<_>>>()?;
    let seeds = options.seeds(arguments.repeats.unwrap_or(scenarios[0].repeats));
    let store = arguments.out.as_deref().map(Store::create).transpose().into_diagnostic()?;
    let destination = Destination { store: store.as_ref(), pcap: None };
    let seconds = scenarios.iter().map(|s| s.plan.duration.as_secs_f64() * seeds.len() as f64).sum();
    let results = with_progress(&*world, &registry, seconds, |runner, _| -> Result<Vec<_>> {
        let each = names.iter().zip(&scenarios);
        each.map(|(name, s)| make_runs(destination, selection, Some(name), runner, s, &seeds)).collect()
    })?;
    let passed = all_pass(&results);
    let comparison = paceline_lab::compare::compare(names, &scenarios, results);
    output::print_result(options.json, &comparison, || describe(&comparison, &scenarios, &seeds))?;
    finish_folder(arguments.out.as_deref());
    output::exit_code(passed)
}

fn describe(comparison: &Comparison, scenarios: &[Scenario], seeds: &[u64]) -> String {
    let (plan, n) = (&scenarios[0].plan, seeds.len());
    let runs = match n {
        1 => format!("one run of each, seed {}", seeds[0]),
        _ => format!("{n} runs of each, the same seeds from {}; mean ± half the 95 % interval", seeds[0]),
    };
    let mut text = format!("{}  {}\n  {runs}\n\n", plan.id, plan.title);
    text += &table(&comparison.controllers, plan.flows.len());
    for difference in &comparison.differences {
        text += &describe_difference(difference, plan.flows.len());
    }
    if !comparison.differences.is_empty() {
        text += "\n";
    }
    for (ControllerRuns { controller, result }, scenario) in comparison.controllers.iter().zip(scenarios) {
        for assertion in result.assertions.iter().filter(|a| !a.holds) {
            text += &format!("  {controller}: {}", describe_assertion(assertion));
        }
        // Notes of the scenario are the same for all; those of the result say which runs were left out.
        for note in result.notes.iter().filter(|note| !scenario.notes.contains(note)) {
            text += &format!("  · {controller}: {note}\n");
        }
    }
    text
}

fn shown_metrics(flows: usize) -> impl Iterator<Item = &'static str> {
    SHOWN.into_iter().filter(move |id| *id != "jain" || flows > 1)
}

/// Describes the differences of one controller from the baseline, seed by seed.
fn describe_difference(
    ControllerDifferences { controller, baseline, found }: &ControllerDifferences,
    flows: usize,
) -> String {
    let n = found.seeds;
    let title = format!("\n  {controller} against {baseline}, seed by seed");
    if found.same_runs == n {
        let runs = if n == 1 { "its run is".to_owned() } else { format!("all {n} runs are") };
        return format!("{title}: no difference, {runs} identical in every decision\n");
    }
    let mut table = Table::new(["", "difference", "± 95 %", "d_z", ""], 1).with_text_last();
    let shown: Vec<_> = shown_metrics(flows).filter_map(|id| Some((id, found.metrics.get(id)?))).collect();
    for (id, difference) in &shown {
        let kind = kind_of(id);
        table.row(vec![
            (*id).to_owned(),
            kind.show_difference(difference.mean),
            if n > 1 { kind.show_size(difference.ci95) } else { MISSING.to_owned() },
            difference.effect.map_or_else(|| MISSING.to_owned(), |d| format!("{d:.1}")),
            direction(difference).to_owned(),
        ]);
    }
    let significant = shown.iter().filter(|(_, d)| d.apart == Some(true)).count();
    let counted = match n {
        1 => "one seed gives no confidence interval; use --repeats 10".to_owned(),
        _ => format!(
            "{significant} of {} differences are significant (95 %, not corrected for multiple comparisons)",
            shown.len()
        ),
    };
    format!("{title}\n\n{}\n  {counted}\n", table.render())
}

/// Returns the direction of a difference if it is significant.
pub fn direction(difference: &Paired) -> &'static str {
    match (difference.apart, difference.mean) {
        (None, _) => "",
        (Some(true), mean) if mean > 0.0 => "more",
        (Some(true), _) => "less",
        (Some(false), mean) if mean == 0.0 && difference.std == 0.0 => "the same",
        (Some(false), _) => "not significant",
    }
}

fn table(controllers: &[ControllerRuns], flows: usize) -> String {
    let mut table = Table::new([""].into_iter().chain(controllers.iter().map(|c| c.controller.as_str())), 1);
    for id in shown_metrics(flows) {
        let kind = kind_of(id);
        let cell = |of: &ControllerRuns| match of.result.summary.get(id) {
            None => MISSING.to_owned(),
            Some(s) if s.n > 1 => format!("{} ± {}", kind.show(s.mean), kind.show(s.ci95)),
            Some(s) => kind.show(s.mean),
        };
        if controllers.iter().any(|c| c.result.summary.contains_key(id)) {
            table.row([id.to_owned()].into_iter().chain(controllers.iter().map(cell)).collect());
        }
    }
    table.render()
}
