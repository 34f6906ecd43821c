// SPDX-License-Identifier: MIT OR Apache-2.0
//! The text of the page: one section per scenario.

use super::comparison::ComparisonView;
use crate::report::cells::{self, CellText};
use crate::report::check_text::{CheckLine, cell_verdict, summary_text};
use crate::report::figure::{Figure, Panel, Series, SeriesKind};
use crate::report::read::{Results, Run};
use crate::report::{panels, shell_quoted, validation_text};
use crate::results::{Cell, Group, Validation};
use paceline_netsim::records::{MetricCatalogue, MetricKind, Program};
use serde_json::Value;
use std::path::Path;

pub(super) struct Section<'a> {
    pub(super) scenario: &'a str,
    pub(super) title: String,
    pub(super) source: String,
    pub(super) facts: Vec<(&'static str, String)>,
    pub(super) commands: Vec<String>,
    pub(super) comparisons: Vec<ComparisonView>,
    pub(super) validations: Vec<ValidationView>,
    pub(super) groups: Vec<GroupView>,
    pub(super) flows: Vec<FlowView>,
    /// Assumed constants: key, value, reason.
    pub(super) assumed: Vec<(String, String, String)>,
    pub(super) notes: Vec<String>,
    /// The overlay of the runs, if there are several. It follows the table of a comparison, and otherwise the published values.
    pub(super) overlay: Option<FigureSet<'a>>,
    pub(super) single: FigureSet<'a>,
}

pub(super) struct FigureSet<'a> {
    /// What the entries of the legend are.
    pub(super) subjects: &'static str,
    /// Describes missing data and runs that are not drawn; empty if there are none.
    pub(super) left_out: String,
    pub(super) figures: Vec<FigureView<'a>>,
}

pub(super) struct GroupView {
    pub(super) name: String,
    pub(super) published: Vec<CellView>,
    /// Bounds that the scenario states.
    pub(super) assertions: Vec<CellView>,
    /// Metric, mean with interval, n.
    pub(super) summary: Vec<(String, String, usize)>,
}

pub(super) struct ValidationView {
    pub(super) name: String,
    pub(super) worlds: [String; 2],
    /// Quantity, value in each world, difference, half of its interval.
    pub(super) rows: Vec<[String; 5]>,
    /// Distances, verdicts and host statistics.
    pub(super) lines: Vec<String>,
}

pub(super) struct CellView {
    pub(super) what: String,
    pub(super) published: String,
    pub(super) measured: String,
    pub(super) tolerance: String,
    pub(super) class: &'static str,
    pub(super) verdict: String,
    pub(super) note: String,
}

pub(super) struct FlowView {
    pub(super) run: String,
    pub(super) flow: String,
    pub(super) controller: String,
    pub(super) numbers: Vec<String>,
    pub(super) hash: String,
}

/// Headings of [`FlowView::numbers`].
pub(super) const FLOW_NUMBERS: [&str; 7] =
    ["throughput", "target", "loss", "one-way p50", "one-way p95", "frame p95", "freezes"];

pub(crate) struct FigureView<'a> {
    pub(crate) id: &'a str,
    pub(super) title: &'a str,
    pub(crate) panels: Vec<PanelView<'a>>,
}

/// A plot without its data.
pub(crate) struct PanelView<'a> {
    pub(crate) id: &'a str,
    pub(crate) title: &'a str,
    pub(crate) caption: &'a str,
    /// Text alternative of the plot.
    pub(crate) description: String,
}

impl<'a> Section<'a> {
    pub(super) fn of(results: &'a Results, scenario: &'a str, figures: &'a [Figure], metrics: MetricCatalogue) -> Self {
        let runs: Vec<&Run> = results.runs.iter().filter(|run| run.about.run.scenario == scenario).collect();
        let groups: Vec<&Group> = results.groups.iter().filter(|group| group.scenario == scenario).collect();
        let validations: Vec<&Validation> =
            results.validations.iter().filter(|validation| validation.scenario == scenario).collect();
        let comparisons = results.comparisons.iter().filter(|table| table.scenario == scenario);
        let several_worlds = runs.iter().any(|run| run.about.run.world != runs[0].about.run.world);
        let drawn = panels::drawn(results, scenario).len();
        let description = runs.iter().find_map(|run| run.description());
        let text = |of: fn(&Group) -> &String, or: Option<&String>| {
            groups.iter().map(|group| of(group)).find(|text| !text.is_empty()).or(or).cloned().unwrap_or_default()
        };
        let of_scenario = figures.iter().filter(|figure| figure.scenario == scenario);
        let (overlays, single): (Vec<&Figure>, Vec<&Figure>) = of_scenario.partition(|figure| figure.is_overlay());
        let set = |subjects, figures: Vec<&'a Figure>, left_out| FigureSet {
            subjects,
            left_out,
            figures: figures.into_iter().map(FigureView::of).collect(),
        };
        Self {
            scenario,
            title: text(|g| &g.title, description.map(|d| &d.title)),
            source: text(|g| &g.source, description.map(|d| &d.source)),
            facts: facts(&runs),
            commands: commands(&groups, &validations, &runs, &folder(&results.dir)),
            comparisons: comparisons.map(|table| ComparisonView::of(table, metrics)).collect(),
            validations: validations.iter().map(|validation| ValidationView::of(validation)).collect(),
            groups: groups.iter().map(|group| GroupView::of(group, several_worlds, metrics)).collect(),
            flows: runs.iter().flat_map(|run| FlowView::of(run)).collect(),
            assumed: assumed(&groups, &runs),
            notes: unique(
                results
                    .notes_of(scenario)
                    .chain(groups.iter().flat_map(|group| &group.notes).cloned())
                    .chain(command_lines(&runs)),
            ),
            overlay: (!overlays.is_empty()).then(|| set("Groups of runs shown", overlays, String::new())),
            single: set("Flows of runs shown", single, left_out(&runs, drawn)),
        }
    }
}

/// Describes interrupted runs, runs that are not drawn, and flows without their own series.
fn left_out(runs: &[&Run], drawn: usize) -> String {
    let cut = runs.iter().filter_map(|run| Some((&run.about.run.directory, run.cut()?)));
    let mut notes: Vec<String> = cut
        .map(|(name, cut)| {
            format!("{name} was {cut}: its process ended there. It has events until then and no result.")
        })
        .collect();
    if runs.len() > drawn {
        let left = runs.len() - drawn;
        notes.push(format!(
            "Single runs: {drawn} of {} are drawn, because {left} more would make the page too large. Means are of all runs.",
            runs.len()
        ));
    }
    let others = |run: &&&Run| run.about.flows.len() > panels::shown(run).len();
    if let Some(run) = runs.iter().find(others) {
        let (shown, all) = (panels::shown(run).len(), run.about.flows.len());
        notes.push(format!("{shown} of a run's {all} flows have lines and rows of their own, media first; the other flows are drawn as a sum."));
    }
    notes.join(" ")
}

fn facts(runs: &[&Run]) -> Vec<(&'static str, String)> {
    let list = |of: &dyn Fn(&Run) -> Vec<String>| {
        unique(runs.iter().flat_map(|run| of(run)).filter(|value| !value.is_empty())).join(", ")
    };
    let mut seeds: Vec<u64> = runs.iter().map(|run| run.about.run.seed).collect();
    seeds.sort_unstable();
    seeds.dedup();
    let consecutive = seeds.len() > 2 && seeds.windows(2).all(|pair| pair[1] - pair[0] == 1);
    let seeds = match (consecutive, seeds.first(), seeds.last()) {
        (true, Some(first), Some(last)) => format!("{first} to {last}"),
        _ => seeds.iter().map(u64::to_string).collect::<Vec<_>>().join(", "),
    };
    let all = [
        ("runs", runs.len().to_string()),
        ("seeds", seeds),
        ("controllers", list(&|run| media_controllers(run))),
        ("changes", list(&|run| run.about.run.changes.clone())),
        ("duration", list(&|run| vec![format!("{} s", run.duration_s())])),
        ("world", list(&|run| vec![run.about.run.world.clone()])),
        ("version", list(&|run| vec![run.about.run.version.clone()])),
        ("commit", list(&|run| run.about.run.commit.iter().cloned().collect())),
        ("machine", list(&|run| run.about.inputs.environment.machine.iter().cloned().collect())),
        ("system", list(&|run| run.about.inputs.environment.system.iter().cloned().collect())),
        ("browser", list(&|run| programs(run).into_iter().map(|program| program.version).collect())),
        ("created", list(&|run| run.about.run.created.iter().cloned().collect())),
    ];
    all.into_iter().filter(|(_, value)| !value.is_empty()).collect()
}

/// Returns the command line of each program that took part.
fn command_lines(runs: &[&Run]) -> Vec<String> {
    let line = |program: Program| {
        let words: Vec<String> = program.command.iter().map(|word| shell_quoted(word)).collect();
        format!("{} was started as: {}", program.version, words.join(" "))
    };
    runs.iter().flat_map(|run| programs(run)).map(line).collect()
}

fn programs(run: &Run) -> Vec<Program> {
    serde_json::from_value(run.result["programs"].clone()).unwrap_or_default()
}

fn unique<T: PartialEq>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut unique = Vec::new();
    for value in values {
        if !unique.contains(&value) {
            unique.push(value);
        }
    }
    unique
}

/// Returns the commands stored with the validations and groups. In a folder without them, reconstructs one command per kind of run.
fn commands(groups: &[&Group], validations: &[&Validation], runs: &[&Run], dir: &str) -> Vec<String> {
    let out = |command: &String| format!("{command} --out {}", shell_quoted(dir));
    let mut commands: Vec<String> = validations.iter().map(|validation| out(&validation.command)).collect();
    if groups.is_empty() && validations.is_empty() {
        let key = |run: &Run| (run.about.run.controllers.clone(), run.about.run.changes.clone());
        commands.extend(runs.iter().filter(|run| run.about.run.world == "sim").map(|run| {
            let seeds: Vec<u64> = runs.iter().filter(|r| key(r) == key(run)).map(|r| r.about.run.seed).collect();
            command_of(run, &seeds, dir)
        }));
    } else {
        commands.extend(groups.iter().map(|group| out(&group.command)));
    }
    commands.push(format!("paceline report {}", shell_quoted(dir)));
    unique(commands)
}

/// Returns the name of the folder for the commands, without its private path.
fn folder(dir: &Path) -> String {
    dir.file_name().map_or_else(|| "results".to_owned(), |name| name.to_string_lossy().into_owned())
}

fn media_controllers(run: &Run) -> Vec<String> {
    let media =
        |flow: &usize| run.description().and_then(|d| d.flows.get(*flow)).is_none_or(|flow| flow.kind == "media");
    let flows = (0..run.about.run.controllers.len()).filter(media);
    let mut controllers: Vec<String> = flows.map(|flow| run.controller(flow).to_owned()).collect();
    controllers.dedup();
    controllers
}

fn command_of(run: &Run, seeds: &[u64], dir: &str) -> String {
    let mut command = format!("paceline run {}", shell_quoted(&run.about.run.scenario));
    if let [one] = &media_controllers(run)[..] {
        command += &format!(" --controller {one}");
    }
    for change in &run.about.run.changes {
        command += &match change.strip_prefix("case.") {
            Some(case) => format!(" --case {}", shell_quoted(case)),
            None => format!(" --set {}", shell_quoted(change)),
        };
    }
    let first = seeds.iter().min().copied().unwrap_or(1);
    if first != 1 {
        command += &format!(" --seed {first}");
    }
    if seeds.len() > 1 {
        command += &format!(" --repeats {}", seeds.len());
    }
    command + &format!(" --out {}", shell_quoted(dir))
}

fn assumed(groups: &[&Group], runs: &[&Run]) -> Vec<(String, String, String)> {
    if groups.is_empty() {
        let stored = runs.iter().filter_map(|run| run.about.inputs.more.get("assumed")?.as_object());
        return unique(stored.flatten().map(|(key, value)| (key.clone(), plain(value), String::new())));
    }
    let assumed = groups.iter().flat_map(|group| &group.assumed);
    unique(assumed.map(|one| (one.key.clone(), one.value.to_string(), one.why.clone())))
}

fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(plain).collect::<Vec<_>>().join(", "),
        Value::Object(pairs) => {
            let pairs: Vec<String> = pairs.iter().map(|(key, value)| format!("{key}={}", plain(value))).collect();
            pairs.join(", ")
        }
        other => other.to_string(),
    }
}

fn or_dash(value: Option<f64>, kind: MetricKind) -> String {
    value.map_or_else(|| "–".to_owned(), |value| kind.show(value))
}

impl ValidationView {
    fn of(validation: &Validation) -> Self {
        let mut name =
            vec![validation_text::controllers(validation), validation.case.to_string(), validation.changes.join(", ")];
        name.retain(|part| !part.is_empty());
        let distances =
            validation_text::distance(validation).into_iter().chain(validation_text::between_seeds(validation));
        let lines = validation
            .verdicts
            .iter()
            .map(|check| CheckLine::of_validation(check).to_string())
            .chain(distances)
            .chain(validation_text::machines(validation));
        let (rows, hidden) = validation_text::rows(validation);
        let more = (hidden > 0).then(|| format!("{hidden} more flows are in the document of `validate --json`"));
        Self {
            name: name.join(" · "),
            worlds: validation.worlds.clone(),
            rows: rows.into_iter().map(|(_, row)| row).collect(),
            lines: lines.chain(more).collect(),
        }
    }
}

impl GroupView {
    fn of(group: &Group, several_worlds: bool, metrics: MetricCatalogue) -> Self {
        let mut controllers: Vec<&str> = group.controllers.iter().flatten().map(String::as_str).collect();
        controllers.dedup();
        let mut name = vec![controllers.join(", "), group.case.to_string(), group.changes.join(", ")];
        name.extend(several_worlds.then(|| group.world.clone()));
        name.retain(|part| !part.is_empty());
        let summary = group.summary.iter().map(|(metric, interval)| {
            let kind = metrics.get(metric).map_or(MetricKind::Number, |metric| metric.kind);
            (metric.clone(), summary_text(interval, |v| kind.show(v)), interval.n)
        });
        let cells = |is_published: bool| {
            let cells = group.cells.iter().filter(move |cell| cell.published.is_some() == is_published);
            cells.map(|cell| CellView::of(cell, CellText::new(metrics))).collect()
        };
        Self { name: name.join(" · "), published: cells(true), assertions: cells(false), summary: summary.collect() }
    }
}

impl CellView {
    fn of(cell: &Cell, text: CellText) -> Self {
        let [mut what, _, flow, window] = cells::place(cell);
        if !flow.is_empty() {
            what += &format!(" of {flow}");
        }
        what += &format!(", {window}");
        if let (None, Some(claim)) = (cell.published, &cell.claim) {
            what = format!("{claim}: {what}");
        }
        Self {
            what,
            published: text.value(cell.published, cell),
            measured: text.measured(cell),
            tolerance: text.tolerance(cell),
            class: match cell.judgement().filter(|_| cell.published.is_none()) {
                Some(judgement) => judgement.verdict.name(),
                None => cell.verdict.name(),
            },
            verdict: cell_verdict(cell),
            note: cell.note.clone().unwrap_or_default(),
        }
    }
}

impl FlowView {
    fn of(run: &Run) -> Vec<Self> {
        let flows = run.result["flows"].as_array().map_or(&[][..], Vec::as_slice);
        let hash = run.about.run.trace_hash.clone().unwrap_or_default();
        let of = |(index, flow): (usize, &Value)| {
            let streams = flow["streams"].as_array().map_or(&[][..], Vec::as_slice);
            // As in the terminal: pauses of audio are not freezes.
            let video = || streams.iter().filter(|stream| stream["kind"] == "video");
            let sum = |key: &str| video().map(|s| s[key].as_f64()).sum::<Option<f64>>();
            let freezes = sum("freezes").zip(sum("freeze_s")).filter(|_| video().next().is_some());
            let number = |value: &Value, kind| or_dash(value.as_f64(), kind);
            Self {
                run: run.about.run.directory.clone(),
                flow: flow["id"].as_str().unwrap_or_default().to_owned(),
                controller: run.controller(index).to_owned(),
                numbers: vec![
                    number(&flow["throughput_bps"], MetricKind::Rate),
                    number(&flow["target_bps"], MetricKind::Rate),
                    number(&flow["loss_ratio"], MetricKind::Loss),
                    number(&flow["owd_ms"]["p50"], MetricKind::Delay),
                    number(&flow["owd_ms"]["p95"], MetricKind::Delay),
                    streams
                        .first()
                        .map_or("–".to_owned(), |s| number(&s["frame_delay_ms"]["p95"], MetricKind::Delay)),
                    freezes.map_or("–".to_owned(), |(count, s)| format!("{count}, {s:.1} s")),
                ],
                hash: hash.clone(),
            }
        };
        panels::shown(run).into_iter().filter_map(|index| Some((index, flows.get(index)?))).map(of).collect()
    }
}

impl<'a> FigureView<'a> {
    pub(crate) fn of(figure: &'a Figure) -> Self {
        let panels = figure.panels.iter().map(|panel| PanelView {
            id: &panel.id,
            title: &panel.title,
            caption: &panel.caption,
            description: description(panel, figure),
        });
        Self { id: &figure.id, title: &figure.title, panels: panels.collect() }
    }
}

/// Largest number of series in a description.
const MAX_DESCRIBED: usize = 24;

/// Returns the mean of a series: weighted by time for steps, otherwise the mean of the points.
fn mean(series: &Series, values: &[f64]) -> f64 {
    let spans = series.x.windows(2).zip(&series.y).map(|(x, y)| (x[1] - x[0], *y)).filter(|(_, y)| y.is_finite());
    let (time, sum) = spans.fold((0.0, 0.0), |(time, sum), (span, y)| (time + span, sum + span * y));
    match series.kind {
        SeriesKind::Steps if time > 0.0 => sum / time,
        _ => values.iter().sum::<f64>() / values.len() as f64,
    }
}

/// Describes a plot: minimum, mean and maximum of each series.
fn description(panel: &Panel, figure: &Figure) -> String {
    let unit = |unit: &str| if unit.is_empty() { String::new() } else { format!(" {unit}") };
    let of = |series: &Series| {
        let label =
            series.subject.map_or_else(String::new, |subject| format!(" of {}", figure.subjects[subject].label));
        let numbers = match series.kind {
            SeriesKind::Band if series.states.len() == 1 => {
                format!("{} times", series.y.iter().filter(|y| !y.is_nan()).count())
            }
            SeriesKind::Band => format!("{} changes", series.len().saturating_sub(2)),
            SeriesKind::Cdf => {
                let half = series.y.partition_point(|share| *share < 0.5).min(series.len() - 1);
                let unit = unit(&panel.x.unit);
                format!("half up to {:.3}{unit}, all up to {:.3}{unit}", series.x[half], series.x[series.len() - 1])
            }
            SeriesKind::Line | SeriesKind::Steps | SeriesKind::Points => {
                let values: Vec<f64> = series.y.iter().copied().filter(|y| y.is_finite()).collect();
                let (least, most) = (values.iter().copied().reduce(f64::min), values.iter().copied().reduce(f64::max));
                match (least, most) {
                    (Some(least), Some(most)) => {
                        let mean = mean(series, &values);
                        let unit = unit(&panel.y.unit);
                        format!("minimum {least:.3}, mean {mean:.3}, maximum {most:.3}{unit}")
                    }
                    _ => "no value".to_owned(),
                }
            }
        };
        format!("{}{label}: {numbers}", series.label)
    };
    let mut text: Vec<String> = panel.series.iter().take(MAX_DESCRIBED).map(of).collect();
    if panel.series.len() > MAX_DESCRIBED {
        text.push(format!("and {} more series", panel.series.len() - MAX_DESCRIBED));
    }
    format!("{}. {}.", panel.title, text.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_netsim::records::{Better, MetricInfo, MetricKind};

    #[test]
    fn formats_cells_in_the_unit_of_the_metric() {
        let cell: Cell = serde_json::from_str(
            r#"{"metric": "utilization", "controller": "gcc-2016", "world": "sim", "case": {}, "flow": "video",
                "window_s": [0, 200], "over": null, "published": 0.84, "bounds": null, "tolerance": 0.05,
                "measured": 0.8, "ci95": 0.01, "n": 10, "null_sender": null, "null_reproduces": false, "claim": null,
                "verdict": "reproduced", "note": null, "moved": null}"#,
        )
        .unwrap();
        const METRICS: [MetricInfo; 1] = [MetricInfo {
            of_streams: false,
            id: "utilization",
            kind: MetricKind::Utilization,
            better: Better::Higher,
            summary: "used share of the capacity",
        }];
        let view = CellView::of(&cell, CellText::new(MetricCatalogue::new(&METRICS)));
        assert_eq!(view.what, "utilization of video, 0 to 200 s");
        assert_eq!([view.published, view.measured, view.tolerance], ["84.0 %", "80.0 % ± 1.0 %", "± 5.0 %"]);
    }
}
