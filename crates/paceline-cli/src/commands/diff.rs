// SPDX-License-Identifier: MIT OR Apache-2.0
//! `paceline diff`.

use crate::output;
use crate::table::{MISSING, Table, digits_text, kind_of};
use miette::{Result, miette};
use paceline_lab::diff::{self, CellDiff, CellResult, Diff, GroupDiff, GroupName, InputDifference, MetricDiff};
use paceline_lab::metrics;
use paceline_lab::report::check_text::ValueText;
use paceline_lab::results::ChangeResult;
use paceline_netsim::records::MetricKind;
use std::path::PathBuf;
use std::process::ExitCode;

/// Arguments of `diff`.
#[derive(clap::Args)]
pub struct Arguments {
    /// A folder that `run --out` or `compare --out` wrote, or a scoreboard of `reproduce --out`.
    before: PathBuf,
    /// Another of the same kind.
    after: PathBuf,
    /// Prints one JSON document.
    #[arg(long)]
    json: bool,
}

/// Prints the differences between two results; exit code 1 if there are any.
pub fn diff(arguments: &Arguments) -> Result<ExitCode> {
    let found = diff::diff(&arguments.before, &arguments.after).map_err(|error| {
        let help =
            "`paceline run … --out DIR` and `compare … --out DIR` write results, `reproduce … --out DIR` writes a scoreboard";
        miette!(help = help, "{}", with_causes(&error))
    })?;
    output::print_result(arguments.json, &found, || describe(&found, arguments))?;
    output::exit_code(!found.moved)
}

/// Returns an error and its causes in one line.
fn with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

fn describe(found: &Diff, arguments: &Arguments) -> String {
    let mut text = String::new();
    for group in &found.groups {
        text += &describe_group(group);
    }
    for (names, path) in [(&found.only_before, &arguments.before), (&found.only_after, &arguments.after)] {
        for name in names {
            text += &format!("only in {}: {} ({})\n", path.display(), title(name), runs(name.runs));
        }
        text += if names.is_empty() { "" } else { "\n" };
    }
    let hashes = format!("{}, {} hashes equal", runs(found.runs), found.hashes_equal);
    if !found.moved {
        return format!("{text}no difference: {hashes}");
    }
    let cells = || found.groups.iter().flat_map(|g| &g.cells);
    let verdicts = cells().filter(|cell| cell.verdict_moved()).count();
    format!("{text}different: {hashes}; the verdict changed in {} of {} changed cells", verdicts, cells().count())
}

fn runs(n: usize) -> String {
    format!("{n} run{}", if n == 1 { "" } else { "s" })
}

fn title(name: &GroupName) -> String {
    let case = if name.case.is_empty() { String::new() } else { format!("  [{}]", name.case) };
    let controllers =
        if name.controllers.is_empty() { String::new() } else { format!("  {}", name.controllers.join("+")) };
    format!("{}{case}{controllers}", name.scenario)
}

fn describe_group(group: &GroupDiff) -> String {
    let mut text = format!("{}\n", output::bold(&title(&group.name)));
    for input in &group.asked {
        text += &format!("{}\n", output::wrap(&describe_input_difference(input)));
    }
    if !group.moved {
        return text + "  no difference\n\n";
    }
    let both = group.name.runs - group.runs_only_before;
    let seeds: Vec<String> = group.moved_seeds.iter().map(u64::to_string).collect();
    let seeds = if seeds.is_empty() { String::new() } else { format!("; changed: seed {}", seeds.join(", ")) };
    text += &match group.hashes_equal {
        Some(equal) => output::wrap(&format!("{equal} of {both} hashes equal{seeds}")) + "\n",
        None => format!("  the combined hash of {both} runs or the number of runs differs\n"),
    };
    for (more, which) in [(group.runs_only_before, "first"), (group.runs_only_after, "second")] {
        if more > 0 {
            text += &format!("  {} only in the {which}\n", runs(more));
        }
    }
    if !group.metrics.is_empty() {
        text += &format!("\n{}", metrics(&group.metrics));
    }
    let (once, both): (Vec<&CellDiff>, Vec<&CellDiff>) = group.cells.iter().partition(|cell| cell.is_published_once());
    if !both.is_empty() {
        text += &format!("\n{}", cells(&both));
    }
    if let Some(first) = once.first() {
        let which = if first.after.is_none() { "first" } else { "second" };
        let only =
            format!("Published values apply to the scenario as written: only the {which} has them ({}).", once.len());
        text += &format!("\n{}\n", output::wrap(&only));
    }
    text + "\n"
}

/// Describes a change of the inputs, such as `change path.rtt: 50ms → 80ms`.
fn describe_input_difference(asked: &InputDifference) -> String {
    let key = asked.key.as_ref().map_or(String::new(), |key| format!(" {key}"));
    let side = |side: &Option<String>| side.clone().unwrap_or_else(|| MISSING.to_owned());
    format!("{}{key}: {} → {}", asked.what, side(&asked.before), side(&asked.after))
}

fn metrics(moved: &[MetricDiff]) -> String {
    let mut table = Table::new(["metric", "before", "after", "difference", "± 95 %", "d_z", "seeds"], 1);
    for m in moved {
        let kind = kind_of(&m.metric);
        let (mean, ci) = (m.difference.map(|d| d.mean), m.difference.map(|d| d.ci95).filter(|ci| ci.is_finite()));
        let dash = || MISSING.to_owned();
        let mut seeds = m.seeds_moved.to_string();
        for (count, what) in [(m.lost, "lost"), (m.gained, "gained")] {
            seeds += &if count > 0 { format!(", {count} {what}") } else { String::new() };
        }
        table.row(vec![
            with_unit(&m.metric, kind),
            digits_text(m.before, kind),
            digits_text(m.after, kind),
            mean.map_or_else(dash, |d| without_unit(&kind.show_difference(d))),
            ci.map_or_else(dash, |ci| kind.digits(ci)),
            m.difference.and_then(|d| d.effect).map_or_else(dash, |d| format!("{d:.1}")),
            seeds,
        ]);
    }
    table.render()
}

/// Returns a metric with its unit, unless its name ends with that.
fn with_unit(metric: &str, kind: MetricKind) -> String {
    let unit = kind.shown_unit();
    if unit.is_empty() || metric.ends_with(&format!("_{unit}")) {
        metric.to_owned()
    } else {
        format!("{metric} {unit}")
    }
}

fn without_unit(value: &str) -> String {
    value.split(' ').next().unwrap_or_default().to_owned()
}

/// Returns a table of values, first those whose verdict changed.
fn cells(moved: &[&CellDiff]) -> String {
    let mut table = Table::new(["value or claim", "flow", "window", "before", "after", "verdict"], 3).with_text_last();
    let (first, rest): (Vec<&CellDiff>, Vec<&CellDiff>) = moved.iter().partition(|cell| cell.verdict_moved());
    for cell in first.into_iter().chain(rest) {
        let ratio = if cell.ratio { " relative to its reference" } else { "" };
        let published = [&cell.before, &cell.after].into_iter().flatten().find_map(|side| side.published);
        let what = match (published, &cell.claim) {
            (None, Some(claim)) => format!("{claim}: {}{ratio}", cell.metric),
            (published, _) => format!("{}{ratio}, published {}", cell.metric, value(published, cell)),
        };
        let verdict = |side: &Option<CellResult>| side.as_ref().map_or(MISSING, |s| s.verdict.name());
        let (before, after) = (verdict(&cell.before), verdict(&cell.after));
        table.row(vec![
            what,
            cell.flow.clone().unwrap_or_default(),
            format!("{} to {} s", cell.window_s.0, cell.window_s.1),
            measured(&cell.before, cell),
            measured(&cell.after, cell),
            from_to(before, after) + &with_its_changes(cell),
        ]);
    }
    table.render()
}

fn from_to(before: &str, after: &str) -> String {
    if before == after { before.to_owned() } else { format!("{before} → {after}") }
}

/// Describes the effect of the changes that the scenario names for a value, if the effect changed.
fn with_its_changes(cell: &CellDiff) -> String {
    let moved = |side: &Option<CellResult>| side.as_ref().and_then(|s| s.moved.clone());
    let (Some(before), Some(after)) = (moved(&cell.before), moved(&cell.after)) else { return String::new() };
    if before == after {
        return String::new();
    }
    let effect =
        |m: &ChangeResult| format!("{}, {}", value(m.measured, cell), m.verdict.map_or("not run", |v| v.name()));
    format!("; with the changes of reproduced_with: {}", from_to(&effect(&before), &effect(&after)))
}

fn measured(side: &Option<CellResult>, cell: &CellDiff) -> String {
    let (mean, ci95) = side.as_ref().map(|s| (s.measured, s.ci95)).unwrap_or_default();
    text_of(cell).mean(mean, ci95)
}

fn value(value: Option<f64>, cell: &CellDiff) -> String {
    text_of(cell).value(value)
}

fn text_of(cell: &CellDiff) -> ValueText {
    ValueText::of(metrics::catalogue(), &cell.metric, false, cell.ratio)
}
