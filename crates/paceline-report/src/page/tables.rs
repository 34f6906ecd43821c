//! What stands in words on the page: a section for each scenario.

use crate::cells;
use crate::figure::{Figure, Kind, Panel, Series};
use crate::gaps;
use crate::panels;
use crate::read::{Results, Run};
use paceline_lab::gap::Gap;
use paceline_lab::group::Group;
use paceline_lab::metrics;
use paceline_lab::metrics::Kind as MetricKind;
use paceline_lab::reproduce::Cell;
use serde_json::Value;
use std::path::Path;

/// A scenario's part of the page.
pub(super) struct Section<'a> {
    pub(super) scenario: &'a str,
    pub(super) title: String,
    pub(super) source: String,
    /// Name and value of what a reader asks first.
    pub(super) facts: Vec<(&'static str, String)>,
    /// Commands that make the page again.
    pub(super) commands: Vec<String>,
    pub(super) gaps: Vec<GapView>,
    pub(super) groups: Vec<GroupView>,
    pub(super) flows: Vec<FlowView>,
    /// What is assumed: key, value, why.
    pub(super) assumed: Vec<(String, String, String)>,
    pub(super) notes: Vec<String>,
    /// What of the data is not there or not drawn; empty if all of it is.
    pub(super) left_out: String,
    pub(super) figures: Vec<FigureView<'a>>,
}

/// What runs of one kind came to.
pub(super) struct GroupView {
    pub(super) name: String,
    pub(super) cells: Vec<CellView>,
    /// Metric, mean with interval, n.
    pub(super) summary: Vec<(String, String, usize)>,
}

/// How far two worlds lie apart.
pub(super) struct GapView {
    pub(super) name: String,
    pub(super) worlds: [String; 2],
    /// What, in each world, difference, half of its interval.
    pub(super) rows: Vec<[String; 5]>,
    /// Distances, verdicts, machines.
    pub(super) lines: Vec<String>,
}

/// A published value or a claim.
pub(super) struct CellView {
    pub(super) what: String,
    pub(super) published: String,
    pub(super) measured: String,
    pub(super) tolerance: String,
    pub(super) verdict: &'static str,
    pub(super) note: String,
}

/// A flow of a run.
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

/// A figure, without its numbers.
pub(super) struct FigureView<'a> {
    pub(super) id: &'a str,
    pub(super) title: &'a str,
    pub(super) panels: Vec<PanelView<'a>>,
}

/// A plot, without its numbers.
pub(super) struct PanelView<'a> {
    pub(super) id: &'a str,
    pub(super) title: &'a str,
    pub(super) caption: &'a str,
    /// The plot in words.
    pub(super) spoken: String,
}

impl<'a> Section<'a> {
    pub(super) fn of(results: &'a Results, scenario: &'a str, figures: &'a [Figure]) -> Self {
        let runs: Vec<&Run> = results.runs.iter().filter(|run| run.stored.scenario == scenario).collect();
        let groups: Vec<&Group> = results.groups.iter().filter(|group| group.scenario == scenario).collect();
        let gaps: Vec<&Gap> = results.gaps.iter().filter(|gap| gap.scenario == scenario).collect();
        let several_worlds = runs.iter().any(|run| run.stored.world != runs[0].stored.world);
        let drawn = panels::drawn(results, scenario).len();
        let setting = runs.iter().find_map(|run| run.setting());
        let told = |of: fn(&Group) -> &String, or: Option<&String>| {
            groups.iter().map(|group| of(group)).find(|text| !text.is_empty()).or(or).cloned().unwrap_or_default()
        };
        Self {
            scenario,
            title: told(|g| &g.title, setting.map(|s| &s.title)),
            source: told(|g| &g.source, setting.map(|s| &s.source)),
            facts: facts(&runs),
            commands: commands(&groups, &gaps, &runs, &folder(&results.dir)),
            gaps: gaps.iter().map(|gap| GapView::of(gap)).collect(),
            groups: groups.iter().map(|group| GroupView::of(group, several_worlds)).collect(),
            flows: runs.iter().flat_map(|run| FlowView::of(run)).collect(),
            assumed: assumed(&groups, &runs),
            notes: notes(&groups),
            left_out: left_out(&runs, drawn),
            figures: figures.iter().filter(|figure| figure.scenario == scenario).map(FigureView::of).collect(),
        }
    }
}

/// What of the runs is not there, or not drawn by itself.
fn left_out(runs: &[&Run], drawn: usize) -> String {
    let cut = runs.iter().filter_map(|run| Some((&run.stored.directory, run.cut()?)));
    let mut said: Vec<String> = cut
        .map(|(name, cut)| format!("{name} was {cut}: its process ended there. It has rows until then and no result."))
        .collect();
    if runs.len() > drawn {
        let left = runs.len() - drawn;
        said.push(format!("The plots show {drawn} of {} runs: {left} would make the page too large.", runs.len()));
    }
    let others = |run: &&&Run| run.about.flows.len() > panels::shown(run).len();
    if let Some(run) = runs.iter().find(others) {
        let (shown, all) = (panels::shown(run).len(), run.about.flows.len());
        said.push(format!("{shown} of a run's {all} flows have lines and rows of their own, media first; the rates of the others are drawn as one sum."));
    }
    said.join(" ")
}

fn facts(runs: &[&Run]) -> Vec<(&'static str, String)> {
    let each_once = |values: Vec<String>| {
        let mut seen: Vec<String> = Vec::new();
        for value in values {
            if !value.is_empty() && !seen.contains(&value) {
                seen.push(value);
            }
        }
        seen
    };
    let list = |of: &dyn Fn(&Run) -> Vec<String>| each_once(runs.iter().flat_map(|run| of(run)).collect()).join(", ");
    let seeds: Vec<u64> = {
        let mut seeds: Vec<u64> = runs.iter().map(|run| run.stored.seed).collect();
        seeds.sort_unstable();
        seeds.dedup();
        seeds
    };
    let consecutive = seeds.len() > 2 && seeds.windows(2).all(|pair| pair[1] - pair[0] == 1);
    let seeds = match (consecutive, seeds.first(), seeds.last()) {
        (true, Some(first), Some(last)) => format!("{first} to {last}"),
        _ => seeds.iter().map(u64::to_string).collect::<Vec<_>>().join(", "),
    };
    let all = [
        ("runs", runs.len().to_string()),
        ("seeds", seeds),
        ("controllers", list(&|run| run.stored.controllers.iter().flatten().cloned().collect())),
        ("changes", list(&|run| run.stored.changes.clone())),
        ("length", list(&|run| vec![format!("{} s", run.duration_s())])),
        ("world", list(&|run| vec![run.stored.world.clone()])),
        ("version", list(&|run| vec![run.stored.version.clone()])),
        ("made", list(&|run| run.stored.created.iter().cloned().collect())),
    ];
    all.into_iter().filter(|(_, value)| !value.is_empty()).collect()
}

/// The commands of the gaps and groups or, in a folder without, what must have made each kind of run.
fn commands(groups: &[&Group], gaps: &[&Gap], runs: &[&Run], dir: &str) -> Vec<String> {
    let mut commands: Vec<String> = Vec::new();
    let mut add = |command: String| {
        if !command.is_empty() && !commands.contains(&command) {
            commands.push(command);
        }
    };
    gaps.iter().for_each(|gap| add(format!("{} --out {}", gap.command, quoted(dir))));
    if groups.is_empty() && gaps.is_empty() {
        let key = |run: &Run| (run.stored.controllers.clone(), run.stored.changes.clone());
        let mut done = Vec::new();
        for run in runs.iter().filter(|run| run.stored.world == "sim") {
            if done.contains(&key(run)) {
                continue;
            }
            done.push(key(run));
            let seeds: Vec<u64> = runs.iter().filter(|r| key(r) == key(run)).map(|r| r.stored.seed).collect();
            add(command_of(run, &seeds, dir));
        }
    } else {
        groups.iter().for_each(|group| add(format!("{} --out {}", group.command, quoted(dir))));
    }
    add(format!("paceline report {}", quoted(dir)));
    commands
}

/// What the commands call the folder: where it stands is no one else's business.
fn folder(dir: &Path) -> String {
    dir.file_name().map_or_else(|| "results".to_owned(), |name| name.to_string_lossy().into_owned())
}

fn command_of(run: &Run, seeds: &[u64], dir: &str) -> String {
    let mut command = format!("paceline run {}", quoted(&run.stored.scenario));
    let media =
        |flow: usize| run.setting().and_then(|setting| setting.flows.get(flow)).is_none_or(|flow| flow.kind == "media");
    let mut controllers: Vec<&str> =
        (0..run.stored.controllers.len()).filter(|flow| media(*flow)).map(|flow| run.controller(flow)).collect();
    controllers.dedup();
    if let [one] = controllers[..] {
        command += &format!(" --controller {one}");
    }
    for change in &run.stored.changes {
        command += &match change.strip_prefix("case.") {
            Some(case) => format!(" --case {}", quoted(case)),
            None => format!(" --set {}", quoted(change)),
        };
    }
    let first = seeds.iter().min().copied().unwrap_or(1);
    if first != 1 {
        command += &format!(" --seed {first}");
    }
    if seeds.len() > 1 {
        command += &format!(" --repeats {}", seeds.len());
    }
    command + &format!(" --out {}", quoted(dir))
}

/// As a shell takes it.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

fn assumed(groups: &[&Group], runs: &[&Run]) -> Vec<(String, String, String)> {
    let mut all: Vec<(String, String, String)> = Vec::new();
    let mut add = |row: (String, String, String)| {
        if !all.contains(&row) {
            all.push(row);
        }
    };
    for one in groups.iter().flat_map(|group| &group.assumed) {
        add((one.key.clone(), one.value.to_string(), one.why.clone()));
    }
    if groups.is_empty() {
        let kept = runs.iter().filter_map(|run| run.about.inputs.more.get("assumed")?.as_object());
        kept.flatten().for_each(|(key, value)| add((key.clone(), plain(value), String::new())));
    }
    all
}

fn notes(groups: &[&Group]) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    for note in groups.iter().flat_map(|group| &group.notes) {
        if !notes.contains(note) {
            notes.push(note.clone());
        }
    }
    notes
}

/// A JSON value for people.
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

fn kind_of(metric: &str) -> MetricKind {
    metrics::find(metric).map_or(MetricKind::Number, |metric| metric.kind)
}

fn or_dash(value: Option<f64>, kind: MetricKind) -> String {
    value.map_or_else(|| "–".to_owned(), |value| kind.show(value))
}

impl GapView {
    fn of(gap: &Gap) -> Self {
        let mut name = vec![gaps::controllers(gap), gap.case.to_string(), gap.changes.join(", ")];
        name.retain(|part| !part.is_empty());
        let distances = gaps::distance(gap).into_iter().chain(gaps::between_seeds(gap));
        let lines = gap.verdicts.iter().map(gaps::verdict).chain(distances).chain(gaps::machines(gap));
        let (rows, hidden) = gaps::rows(gap);
        let more = (hidden > 0).then(|| format!("{hidden} more flows are in gap.json"));
        Self {
            name: name.join(" · "),
            worlds: gap.worlds.clone(),
            rows: rows.into_iter().map(|(_, row)| row).collect(),
            lines: lines.chain(more).collect(),
        }
    }
}

impl GroupView {
    fn of(group: &Group, several_worlds: bool) -> Self {
        let mut controllers: Vec<&str> = group.controllers.iter().flatten().map(String::as_str).collect();
        controllers.dedup();
        let mut name = vec![controllers.join(", "), group.case.to_string(), group.changes.join(", ")];
        name.extend(several_worlds.then(|| group.world.clone()));
        name.retain(|part| !part.is_empty());
        let summary = group.summary.iter().map(|(metric, interval)| {
            let kind = kind_of(metric);
            let mut value = kind.show(interval.mean);
            if interval.n > 1 {
                value += &format!(" ± {}", kind.show(interval.ci95));
            }
            (metric.clone(), value, interval.n)
        });
        Self {
            name: name.join(" · "),
            cells: group.cells.iter().map(CellView::of).collect(),
            summary: summary.collect(),
        }
    }
}

impl CellView {
    fn of(cell: &Cell) -> Self {
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
            published: cells::value(cell.published, cell),
            measured: cells::measured(cell),
            tolerance: cells::tolerance(cell),
            verdict: cell.verdict.name(),
            note: cell.note.clone().unwrap_or_default(),
        }
    }
}

impl FlowView {
    fn of(run: &Run) -> Vec<Self> {
        let flows = run.result["flows"].as_array().map_or(&[][..], Vec::as_slice);
        let hash = run.stored.trace_hash.clone().unwrap_or_default();
        let of = |(index, flow): (usize, &Value)| {
            let streams = flow["streams"].as_array().map_or(&[][..], Vec::as_slice);
            let sum = |key: &str| streams.iter().map(|s| s[key].as_f64()).sum::<Option<f64>>();
            let freezes = sum("freezes").zip(sum("freeze_s")).filter(|_| !streams.is_empty());
            let number = |value: &Value, kind| or_dash(value.as_f64(), kind);
            Self {
                run: run.stored.directory.clone(),
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
    fn of(figure: &'a Figure) -> Self {
        let panels = figure.panels.iter().map(|panel| PanelView {
            id: &panel.id,
            title: &panel.title,
            caption: &panel.caption,
            spoken: spoken(panel, figure),
        });
        Self { id: &figure.id, title: &figure.title, panels: panels.collect() }
    }
}

/// Series of a plot that its words go into.
const SPOKEN: usize = 24;

/// A plot in words: least, mean and largest of each series.
/// The mean over time of a value that holds until the next, of any other the mean of the points.
fn mean(series: &Series, values: &[f64]) -> f64 {
    let spans = series.x.windows(2).zip(&series.y).map(|(x, y)| (x[1] - x[0], *y)).filter(|(_, y)| y.is_finite());
    let (time, sum) = spans.fold((0.0, 0.0), |(time, sum), (span, y)| (time + span, sum + span * y));
    match series.kind {
        Kind::Steps if time > 0.0 => sum / time,
        _ => values.iter().sum::<f64>() / values.len() as f64,
    }
}

fn spoken(panel: &Panel, figure: &Figure) -> String {
    let unit = |unit: &str| if unit.is_empty() { String::new() } else { format!(" {unit}") };
    let of = |series: &Series| {
        let label =
            series.subject.map_or_else(String::new, |subject| format!(" of {}", figure.subjects[subject].label));
        let numbers = match series.kind {
            Kind::Band if series.states.len() == 1 => {
                format!("{} times", series.y.iter().filter(|y| !y.is_nan()).count())
            }
            Kind::Band => format!("{} changes", series.len().saturating_sub(2)),
            Kind::Cdf => {
                let half = series.y.partition_point(|share| *share < 0.5).min(series.len() - 1);
                let unit = unit(&panel.x.unit);
                format!("half up to {:.3}{unit}, all up to {:.3}{unit}", series.x[half], series.x[series.len() - 1])
            }
            Kind::Line | Kind::Steps | Kind::Points => {
                let values: Vec<f64> = series.y.iter().copied().filter(|y| y.is_finite()).collect();
                let (least, most) = (values.iter().copied().reduce(f64::min), values.iter().copied().reduce(f64::max));
                match (least, most) {
                    (Some(least), Some(most)) => {
                        let mean = mean(series, &values);
                        let unit = unit(&panel.y.unit);
                        format!("least {least:.3}, mean {mean:.3}, largest {most:.3}{unit}")
                    }
                    _ => "no value".to_owned(),
                }
            }
        };
        format!("{}{label}: {numbers}", series.label)
    };
    let mut text: Vec<String> = panel.series.iter().take(SPOKEN).map(of).collect();
    if panel.series.len() > SPOKEN {
        text.push(format!("and {} more series", panel.series.len() - SPOKEN));
    }
    format!("{}. {}.", panel.title, text.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_told_in_the_metrics_own_unit() {
        let cell: Cell = serde_json::from_str(
            r#"{"metric": "utilization", "controller": "gcc-2016", "world": "sim", "case": {}, "flow": "video",
                "window_s": [0, 200], "over": null, "published": 0.84, "bounds": null, "tolerance": 0.05,
                "measured": 0.8, "ci95": 0.01, "n": 10, "null_sender": null, "null_reproduces": false, "claim": null,
                "verdict": "reproduced", "note": null, "moved": null}"#,
        )
        .unwrap();
        let view = CellView::of(&cell);
        assert_eq!(view.what, "utilization of video, 0 to 200 s");
        assert_eq!([view.published, view.measured, view.tolerance], ["84.0 %", "80.0 % ± 1.0 %", "± 5.0 %"]);
    }

    #[test]
    fn shells_take_what_is_quoted() {
        assert_eq!(quoted("path.rtt=80ms"), "path.rtt=80ms");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }
}
