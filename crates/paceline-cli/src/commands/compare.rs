// SPDX-License-Identifier: MIT OR Apache-2.0
//! `paceline compare`.

use super::options::seeds_text;
use super::report::finish_folder;
use super::run::{assertion_line, none_fails};
use super::stored::{Made, StoredRuns};
use crate::output;
use crate::table::{MISSING, Table, kind_of};
use crate::view::View;
use miette::{IntoDiagnostic, Result};
use paceline_lab::compare::{Comparison, ControllerRuns};
use paceline_lab::report::check_text::summary_text;
use paceline_lab::report::ranking_text;
use paceline_lab::results::{ComparisonRow, ComparisonTable, RankedController, Role, Verdict};
use paceline_netsim::records::{MetricKind, Paired};
use paceline_scenario::Scenario;
use std::process::ExitCode;

/// Runs the scenario under each controller, and prints the ranking and the differences of each controller to the first.
pub fn compare(arguments: &StoredRuns) -> Result<ExitCode> {
    let (selection, options) = (&arguments.selection, &arguments.selection.options);
    let made = arguments.make(None, |scenarios| scenarios[0].repeats)?;
    let Made { registry, controllers, scenarios, seeds, store, results, unstored } = made;
    let names: Vec<String> = controllers.into_iter().flatten().collect();
    let passed = none_fails(&results);
    let mut comparison = paceline_lab::compare::compare(&names, &scenarios, results, &registry);
    comparison.table.changes = options.changes();
    comparison.table.command = selection.command("compare", Some(("controllers", &names.join(","))), &seeds);
    let stored = match (unstored, &store) {
        (Some(problem), _) => Err(problem),
        (None, store) => store.iter().try_for_each(|store| store.comparison(&comparison.table)).into_diagnostic(),
    };
    output::print_results(options.json, &comparison, || describe(&comparison, &scenarios))?;
    stored?;
    finish_folder(arguments.out.as_deref())?;
    output::exit_code(passed)
}

fn describe(comparison: &Comparison, scenarios: &[Scenario]) -> String {
    view(comparison, scenarios).text()
}

/// Returns what readers see of a comparison.
pub fn view(comparison: &Comparison, scenarios: &[Scenario]) -> View {
    let mut view = table_view(&comparison.table);
    for difference in comparison.differences.iter().filter(|d| d.found.same_runs == d.found.seeds) {
        let (controller, baseline) = (&difference.controller, &difference.baseline);
        view.line("", format!("{controller} makes the same decisions as {baseline} in each run."));
    }
    view.gap();
    // The same for all.
    for note in &scenarios[0].notes {
        view.line("· ", note.clone());
    }
    for (ControllerRuns { controller, result }, scenario) in comparison.controllers.iter().zip(scenarios) {
        for assertion in result.assertions.iter().filter(|a| a.judgement.verdict != Verdict::Holds) {
            view.line("", format!("{controller}: {}", assertion_line(assertion)));
        }
        // Those of the result say which runs were left out.
        for note in result.notes.iter().filter(|note| !scenario.notes.contains(note)) {
            view.line("· ", format!("{controller}: {note}"));
        }
    }
    view
}

/// Returns what readers see of the table of a comparison.
pub fn table_view(table: &ComparisonTable) -> View {
    let mut view = View::default();
    let mut name = format!("{}  {}", table.scenario, table.title);
    if !table.case.is_empty() || !table.changes.is_empty() {
        let more: Vec<String> = [table.case.to_string(), table.changes.join(", ")].into();
        name += &format!("  [{}]", more.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", "));
    }
    view.heading(name);
    let runs = match table.seeds[..] {
        [seed] => format!("one run of each controller, seed {seed}"),
        ref seeds => format!(
            "{} runs of each controller, {}, the capacity of the path the same in all; mean ± half of its 95\u{a0}% interval over seeds",
            seeds.len(),
            seeds_text(seeds)
        ),
    };
    view.line("", runs);
    view.gap();
    if !table.verdict.is_empty() {
        view.line("", table.verdict.join(" "));
        view.gap();
    }
    add_ranking(&mut view, &table.ranking, true);
    view.parts(blocks(table), block(table, &(0..table.controllers.len()).collect::<Vec<_>>()));
    if table.seeds.len() > 1 {
        view.line(
            "",
            format!(
                "+ better, - worse than {} by an amount that matters: 95\u{a0}% intervals of the differences seed by seed, corrected for {} comparisons.",
                table.controllers[0], table.judged
            ),
        );
    }
    view
}

/// Adds a ranking, with how to read it.
pub fn add_ranking(view: &mut View, ranking: &[RankedController], has_legend: bool) {
    if ranking.is_empty() {
        return;
    }
    let mut rows = ranking_text::rows(ranking).into_iter();
    let mut text = Table::new(rows.next().unwrap_or_default(), 2).with_keys(2);
    rows.for_each(|row| text.row(row));
    view.table_with_note(text, has_legend.then(|| ranking_text::legend(ranking)));
}

/// Returns the table, with as many controllers side by side as fit the terminal. The baseline is in each block.
fn blocks(table: &ComparisonTable) -> String {
    let others: Vec<usize> = (1..table.controllers.len()).collect();
    let fits = |text: &String| text.lines().all(|line| textwrap::core::display_width(line) <= output::width());
    let render = |at_once: usize| -> Vec<String> {
        let block = |some: &[usize]| render(table, &[&[0], some].concat());
        if others.is_empty() { vec![block(&[])] } else { others.chunks(at_once).map(block).collect() }
    };
    let fitting = (1..=others.len().max(1)).rev().map(render).find(|blocks| blocks.iter().all(fits));
    fitting.unwrap_or_else(|| render(1)).join("\n") + "\n"
}

/// Draws the table of some of its controllers.
fn render(table: &ComparisonTable, controllers: &[usize]) -> String {
    block(table, controllers).render_wide()
}

/// Returns the table of some of its controllers.
fn block(table: &ComparisonTable, controllers: &[usize]) -> Table {
    let mut text =
        Table::new([String::new()].into_iter().chain(controllers.iter().map(|c| table.controllers[*c].clone())), 1);
    for rows in table.by_subject() {
        text.row(vec![output::bold(&heading(rows))]);
        for row in rows {
            let kind = kind_of(&row.metric);
            let unit = kind.shown_unit();
            let label = if unit.is_empty() { format!("  {}", row.label) } else { format!("  {}, {unit}", row.label) };
            text.row([label].into_iter().chain(controllers.iter().map(|c| cell(row, kind, *c))).collect());
        }
    }
    text
}

/// Returns the name of the subject of these rows, with its role.
fn heading(rows: &[ComparisonRow]) -> String {
    let subject = &rows[0].subject;
    match (subject.role, &subject.stream) {
        (Role::Traffic, _) => format!("{} (other traffic)", subject.name()),
        _ => subject.name(),
    }
}

fn cell(row: &ComparisonRow, kind: MetricKind, controller: usize) -> String {
    let Some(value) = &row.values[controller] else { return format!("{MISSING}  ") };
    let mut text = summary_text(value, |v| kind.digits(v));
    if row.best[controller] {
        text = output::bold(&text);
    }
    let mark = match row.differences[controller].and_then(|difference| difference.improves()) {
        Some(true) => output::good(" +"),
        Some(false) => output::bad(" -"),
        None => "  ".to_owned(),
    };
    text + &mark
}

/// Returns the direction of a difference if it is significant.
pub fn direction(difference: &Paired) -> &'static str {
    match (difference.significant, difference.mean) {
        (None, _) => "",
        (Some(true), mean) if mean > 0.0 => "more",
        (Some(true), _) => "less",
        (Some(false), mean) if mean == 0.0 && difference.std == 0.0 => "equal",
        (Some(false), _) => "undecided",
    }
}
