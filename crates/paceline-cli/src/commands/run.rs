// SPDX-License-Identifier: MIT OR Apache-2.0
//! `paceline run`.

use super::options::seeds_text;
use super::report::finish_folder;
use super::stored::{Made, StoredRuns};
use crate::output;
use crate::table::{Table, digits_text, kind_of, sparkline, value_text};
use crate::view::View;
use miette::Result;
use paceline_lab::compare::{combine, mean_score_text};
use paceline_lab::metrics;
use paceline_lab::report::cells::{CellText, place};
use paceline_lab::report::check_text::{CheckLine, cell_verdict};
use paceline_lab::report::committed;
use paceline_lab::results::{Assertion, Cell, Check, Group, Verdict};
use paceline_lab::run::RunsResult;
use paceline_netsim::records::{HostStats, MetricKind};
use paceline_scenario::Scenario;
use paceline_units::Time;
use std::ops::Range;
use std::path::PathBuf;
use std::process::ExitCode;

/// Arguments of `run`.
#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    pub runs: StoredRuns,
    /// Writes every packet, at the ends and at every hop, into this pcapng file; for one run only.
    #[arg(long, value_name = "FILE", conflicts_with = "resume")]
    pub(super) pcap: Option<PathBuf>,
}

/// Runs a scenario and prints the results.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let (Arguments { runs, pcap }, json) = (arguments, arguments.runs.selection.options.json);
    let Made { controllers, scenarios, results, unstored, .. } = runs.make(pcap.as_deref(), |_| 1)?;
    if let Some(file) = pcap.as_ref().filter(|_| unstored.is_none()) {
        eprintln!("packets are in {}", file.display());
    }
    let text = || scenarios.iter().zip(&results).map(|(s, r)| describe(s, r));
    match results.as_slice() {
        [one] => output::print_results(json, one, || text().collect())?,
        all => {
            let names: Vec<String> = controllers.into_iter().flatten().collect();
            output::print_results(json, &combine(&names, all), || text().collect::<Vec<_>>().join("\n"))?;
        }
    }
    unstored.map_or(Ok(()), Err)?;
    finish_folder(runs.out.as_deref())?;
    output::exit_code(none_fails(&results))
}

/// Returns whether no assertion fails. One that is undecided does not.
pub fn none_fails(results: &[RunsResult]) -> bool {
    results.iter().flat_map(|r| &r.assertions).all(|a| a.judgement.verdict != Verdict::Fails)
}

pub(super) fn describe(scenario: &Scenario, result: &RunsResult) -> String {
    view(scenario, result).text()
}

/// Returns what readers see of the runs of a scenario.
pub fn view(scenario: &Scenario, result: &RunsResult) -> View {
    let plan = &scenario.plan;
    let first = &result.runs[0];
    let n = result.runs.len();
    let case = if plan.case.is_empty() { String::new() } else { format!("  [{}]", plan.case) };
    let seeds = seeds_text(&result.runs.iter().map(|run| run.seed).collect::<Vec<_>>());
    let wall: f64 = result.runs.iter().map(|r| r.wall_s).sum();
    // The hash belongs to one run; for several, `--json` has that of each.
    let trace = if n == 1 { format!(" · trace {}", first.trace_hash) } else { String::new() };
    let each = if n > 1 { " each" } else { "" };
    let how = match &first.machine {
        None => format!("{} simulated in {:.0} ms{each}", plan.duration, wall * 1e3 / n as f64),
        Some(_) => format!("{} in real time{each}, world {}", plan.duration, first.world),
    };
    let source = if plan.source.is_empty() { String::new() } else { format!("{} · ", plan.source) };
    let mut view = View::default();
    view.heading(format!("{}{case}  {seeds}{trace}", output::bold(&plan.id)));
    view.line("", &plan.title);
    view.line("", source + &how);
    view.drawing(timeline(scenario, result));
    let cells = paceline_lab::judge::cells_of(scenario, &result.runs);
    let published: Vec<&Cell> = cells.iter().filter(|cell| cell.published.is_some()).collect();
    let score = mean_score_text(&result.summary).map(|score| format!("score {score}"));
    score.into_iter().chain(result.assertions.iter().map(assertion_line)).for_each(|line| view.line("", line));
    view.extend(main_values(scenario, result));
    if !published.is_empty() {
        let reproduce = format!("causes, and what is assumed: `paceline reproduce {}`", plan.id);
        view.table_with_note(published_values(scenario, result, &published), Some(reproduce));
    } else if scenario.constants.iter().any(|constant| constant.applied) {
        view.line("", format!("what is assumed: `paceline reproduce {}`", plan.id));
        view.gap();
    }
    let (flows, more) = flows(scenario, result);
    view.table_with_note(flows, more);
    if result.runs[0].whole.links.iter().any(shows) {
        view.table(hops(result));
    }
    for run in &result.runs {
        if let Some(machine) = &run.machine {
            view.line("· ", format!("seed {}: {}", run.seed, describe_host(machine)));
        }
    }
    result.notes.iter().filter(|note| !Scenario::is_general(note)).for_each(|note| view.line("· ", note));
    view
}

/// Returns what readers see of a stored group of runs.
pub fn group_view(group: &Group) -> View {
    let mut view = View::default();
    let mut name = vec![group.case.to_string(), group.changes.join(", ")];
    name.retain(|part| !part.is_empty());
    let changes = if name.is_empty() { String::new() } else { format!("  [{}]", name.join(", ")) };
    view.heading(format!("{}{changes}  {}", output::bold(&group.scenario), group.title));
    if !group.source.is_empty() {
        view.line("", &group.source);
    }
    let mut controllers: Vec<&str> = group.controllers.iter().flatten().map(String::as_str).collect();
    controllers.dedup();
    let seeds = match group.seeds[..] {
        [] => "no run".to_owned(),
        [seed] => format!("seed {seed}"),
        ref seeds => format!("{} runs, {}", seeds.len(), seeds_text(seeds)),
    };
    view.line("", format!("{} · {seeds} · world {} · version {}", controllers.join(", "), group.world, group.version));
    view.plot();
    view.gap();
    if let Some(score) = mean_score_text(&group.summary) {
        view.line("", format!("score {score}"));
        view.gap();
    }
    let several = group.seeds.len() > 1;
    let mut table = Table::new(["", "measured"].into_iter().chain(several.then_some("± 95 %")), 1);
    for (id, summary) in SHOWN.iter().filter_map(|id| Some((*id, group.summary.get(*id)?))) {
        let kind = kind_of(id);
        let mut row = vec![id.to_owned(), kind.show(summary.mean)];
        row.extend(several.then(|| kind.show(summary.ci95)));
        table.row(row);
    }
    view.table(table);
    let format = CellText::new(metrics::catalogue());
    let mut table = Table::new(["", "measured", "published", "tolerance", "verdict"], 1);
    let published: Vec<&Cell> = group.cells.iter().filter(|cell| cell.published.is_some()).collect();
    for cell in &published {
        let what: Vec<String> = place(cell).into_iter().filter(|part| !part.is_empty()).collect();
        let [measured, published] = [format.measured(cell), format.value(cell.published, cell)];
        table.row(vec![what.join(", "), measured, published, format.tolerance(cell), cell_verdict(cell)]);
    }
    if !published.is_empty() {
        view.table(table);
    }
    for assertion in &group.assertions {
        view.line("", assertion_line(assertion));
    }
    group.notes.iter().for_each(|note| view.line("· ", note));
    view
}

/// Returns whether the measured mean is within the tolerance of the published value. The verdict also needs a narrow interval.
fn is_within(cell: &Cell) -> bool {
    match (cell.measured, cell.published, cell.tolerance) {
        (Some(measured), Some(value), Some(tolerance)) => Check::Published { value, tolerance }.contains(measured),
        _ => false,
    }
}

/// Describes the load and the timing errors of the machine during a run in real time.
fn describe_host(machine: &HostStats) -> String {
    let [idle, others] = [machine.idle, machine.others].map(|share| MetricKind::Share.show(share));
    let mut line = format!(
        "CPU idle {idle}, other processes {others}; 99 % of packets left the link within {:.0} µs of their due time, 99 % \
         of timers fired within {:.0} µs",
        machine.late_us.p99, machine.wake_us.p99
    );
    if let Some(why) = &machine.disturbed {
        line += &format!("; DISTURBED after {} attempts: {why}", machine.attempts);
    }
    line
}

/// Describes an assertion in one line.
pub fn assertion_line(assertion: &Assertion) -> String {
    output::check_line(&CheckLine::of_assertion(assertion, metrics::catalogue()))
}

/// Maximum number of lines in tables and plots of flows.
const LINES_SHOWN: usize = 12;

/// A line in tables and plots: a flow, or all TCP flows of one `[[flow]]` table with `count`.
struct Line {
    flows: Range<usize>,
    first: String,
    last: String,
}

/// Returns the lines of a scenario, media flows first.
fn lines(scenario: &Scenario) -> Vec<Line> {
    let all = &scenario.plan.flows;
    let mut lines: Vec<Line> = Vec::new();
    for (index, flow) in all.iter().enumerate() {
        let joins = |line: &&mut Line| {
            flow.media().is_none() && flow.group.is_some() && flow.group == all[line.flows.start].group
        };
        match lines.last_mut().filter(joins) {
            Some(line) => (line.flows.end, line.last) = (index + 1, flow.id.clone()),
            None => lines.push(Line { flows: index..index + 1, first: flow.id.clone(), last: flow.id.clone() }),
        }
    }
    lines.sort_by_key(|line| all[line.flows.start].media().is_none());
    lines
}

impl Line {
    /// Returns the name of the line; `how` says how the values of several flows were combined.
    fn label(&self, how: &str) -> String {
        match self.flows.len() {
            1 => self.first.clone(),
            n => format!("{} … {}, {how} of {n}", self.first, self.last),
        }
    }
}

/// Draws the capacity and the rate of each flow over time, in the first run. Each direction has a scale of its own.
fn timeline(scenario: &Scenario, result: &RunsResult) -> Table {
    /// The widest label that is not wrapped, and blanks around the columns.
    const LABEL_MAX: usize = 20;
    const BLANKS: usize = 6;
    let (plan, run) = (&scenario.plan, &result.runs[0]);
    let seconds = plan.duration.as_secs_f64().ceil() as usize;
    let mut lines = lines(scenario);
    lines.truncate(LINES_SHOWN);
    let flow = |line: &Line| &plan.flows[line.flows.start];
    let first = flow(&lines[0]).direction;
    lines.sort_by_key(|line| flow(line).direction != first);
    let directions: Vec<&[Line]> = lines.chunk_by(|a, b| flow(a).direction == flow(b).direction).collect();
    let capacities = &["capacity", "capacity back"][..directions.len()];
    let labels = lines.iter().map(|line| textwrap::core::display_width(&line.label("sum")));
    let label = labels.max().unwrap_or(0).min(LABEL_MAX).max(capacities[capacities.len() - 1].len());
    let bin = seconds.div_ceil(output::width().saturating_sub(label + BLANKS).max(20)).max(1);
    let binned = |per_second: &dyn Fn(usize) -> f64| -> Vec<f64> {
        let starts = (0..seconds).step_by(bin);
        let mean = |s: usize| {
            let end = (s + bin).min(seconds);
            (s..end).map(per_second).sum::<f64>() / (end - s) as f64
        };
        starts.map(mean).collect()
    };
    let capacity_of = |hop: &usize| {
        let capacity = plan.hops[*hop].capacity.as_ref()?;
        let second = |s: usize| Time::from_secs(s as i64);
        Some(binned(&|s| capacity.volume(second(s), second(s + 1)).as_bits() as f64))
    };
    let rate = |line: &Line| {
        let bytes = |s: usize| line.flows.clone().filter_map(|f| run.seconds[f].get(s)).sum::<u64>();
        binned(&|s| bytes(s) as f64 * 8.0)
    };
    let (mut heights, mut rows) = (Vec::new(), Vec::new());
    for (lines, name) in directions.iter().zip(capacities) {
        let slowest = || {
            let route = flow(&lines[0]).route.iter().filter_map(capacity_of);
            route.min_by(|a, b| a.iter().sum::<f64>().total_cmp(&b.iter().sum()))
        };
        let capacity = if heights.is_empty() { capacity_of(&plan.bottleneck) } else { slowest() };
        let rates: Vec<Vec<f64>> = lines.iter().map(rate).collect();
        let top = capacity.iter().flatten().chain(rates.iter().flatten()).copied().fold(0.0, f64::max);
        heights.push(format!("{:.2} Mbit/s", top / 1e6));
        rows.extend(capacity.map(|capacity| vec![(*name).to_owned(), sparkline(&capacity, top)]));
        for (line, rates) in lines.iter().zip(&rates) {
            let is_active = |index: usize| {
                let (from, to) = ((index * bin) as f64, ((index + 1) * bin) as f64);
                flow(line).start.as_secs_f64() < to && flow(line).stop.as_secs_f64() > from
            };
            let marks = sparkline(rates, top);
            let marks = marks.chars().enumerate().map(|(i, c)| if is_active(i) { c } else { ' ' });
            rows.push(vec![line.label("sum"), marks.collect()]);
        }
    }
    let seed = if result.runs.len() > 1 { format!("seed {}, ", run.seed) } else { String::new() };
    let heights = heights.join(", back ");
    let legend = format!("{seed}0 to {seconds} s, 1 char = {bin} s, full height = {heights}");
    let mut table = Table::new(["", &legend], 2);
    rows.into_iter().for_each(|row| table.row(row));
    table
}

/// The main metrics.
const SHOWN: [&str; 9] = [
    "utilization",
    "media_utilization",
    "throughput_bps",
    "link_share",
    "queue_p50_ms",
    "queue_p95_ms",
    "loss_ratio",
    "jain",
    "media_jain",
];

/// Returns the main metrics that the tables of flows and hops lack: of several runs all, because those tables have no intervals.
fn main_values(scenario: &Scenario, result: &RunsResult) -> View {
    let flows = &scenario.plan.flows;
    let media = flows.iter().filter(|f| f.media().is_some()).count();
    let (mixed, several) = (media < flows.len(), result.runs.len() > 1);
    let is_informative = |id: &&str| match *id {
        "jain" => flows.len() > 1,
        "media_utilization" => mixed,
        "media_jain" => mixed && media > 1,
        "link_share" => several || result.expectations.is_empty(),
        _ => several,
    };
    let mut table = Table::new(["", "mean", "± 95 %"], 1);
    let mut line = Vec::new();
    for id in SHOWN.iter().filter(|id| is_informative(id)) {
        let (kind, Some(summary)) = (kind_of(id), result.summary.get(*id)) else { continue };
        let [mean, ci95] = [summary.mean, summary.ci95].map(|value| kind.show(value));
        line.push(format!("{} {mean}", label(id, scenario)));
        table.row(vec![label(id, scenario), mean, ci95]);
    }
    let mut view = View::default();
    if !several && !line.is_empty() {
        view.line("", line.join(" · "));
    }
    view.gap();
    if several {
        view.table(table);
    }
    view
}

/// Returns a table of the published values: whether these runs are within the tolerance, and the committed verdict, which is of the
/// mean over all runs.
fn published_values(scenario: &Scenario, result: &RunsResult, cells: &[&Cell]) -> Table {
    let several = result.runs.len() > 1;
    let mut headings = vec!["", "measured"];
    headings.extend(several.then_some("± 95 %"));
    headings.extend(["published", "fits"]);
    headings.extend(scenario.is_shipped.then_some("mean of all"));
    let mut table = Table::new(headings, 1);
    let duration_s = scenario.plan.duration.as_secs_f64();
    let format = CellText::new(metrics::catalogue());
    for e in &result.expectations {
        let of = |cell: &&&Cell| {
            (&cell.metric, &cell.flow, cell.window_s, cell.published)
                == (&e.metric, &e.flow, e.window_s, Some(e.published))
        };
        let (cell, measured) = (cells.iter().find(of), e.measured.as_ref());
        let kind = if e.ratio { MetricKind::Number } else { kind_of(&e.metric) };
        let flow = e.flow.as_deref().map_or(String::new(), |f| format!(" of {f}"));
        let ratio = if e.ratio { " relative to its reference" } else { "" };
        let (from, to) = e.window_s;
        let window = if (from, to) == (0.0, duration_s) { String::new() } else { format!(" {from}–{to} s") };
        let mut row = vec![
            format!("{}{flow}{ratio}{window}", label(&e.metric, scenario)),
            value_text(measured.map(|m| m.mean), kind),
        ];
        row.extend(several.then(|| value_text(measured.map(|m| m.ci95), kind)));
        row.push(cell.map_or_else(|| kind.show(e.published), |cell| format.allowed(cell)));
        row.push(cell.map_or("", |cell| if is_within(cell) { "yes" } else { "no" }).to_owned());
        let verdict = || cell.and_then(|cell| committed::verdict(scenario, cell)).unwrap_or("–").to_owned();
        row.extend(scenario.is_shipped.then(verdict));
        table.row(row);
    }
    table
}

/// Returns the name of a metric, with how the scenario measures queues.
fn label(id: &str, scenario: &Scenario) -> String {
    use paceline_scenario::QueueMeasure;
    let how = match (id.starts_with("queue"), scenario.measure.queue) {
        (false, _) => "",
        (true, QueueMeasure::Packet) => " (each packet)",
        (true, QueueMeasure::Rtcp) => " (RTCP samples)",
        (true, QueueMeasure::OneWay) => " (one-way, jitter included)",
    };
    format!("{id}{how}")
}

/// Returns the table of flows, and a line on those that it leaves out.
fn flows(scenario: &Scenario, result: &RunsResult) -> (Table, Option<String>) {
    let headings = [
        "flow",
        "rate Mbit/s",
        "target Mbit/s",
        "lost %",
        "delay p50 ms",
        "delay p95 ms",
        "frame p95 ms",
        "freezes",
        "frozen s",
    ];
    let mut table = Table::new(headings, 1);
    let lines = lines(scenario);
    for line in lines.iter().take(LINES_SHOWN) {
        let mean = |of: &dyn Fn(&metrics::FlowResult) -> Option<f64>, kind: MetricKind| {
            let flows = result.runs.iter().flat_map(|r| &r.whole.flows[line.flows.clone()]);
            let values: Option<Vec<f64>> = flows.map(of).collect();
            digits_text(values.map(|v| v.iter().sum::<f64>() / v.len() as f64), kind)
        };
        // Of the video stream that froze longest.
        let video = |f: &metrics::FlowResult, of: fn(&metrics::StreamResult) -> f64| {
            f.streams.iter().filter(|s| s.kind == "video").map(of).reduce(f64::max)
        };
        table.row(vec![
            format!("{} ({})", line.label("mean"), scenario.plan.flows[line.flows.start].control()),
            mean(&|f| Some(f.throughput_bps), MetricKind::Rate),
            mean(&|f| f.target_bps, MetricKind::Rate),
            mean(&|f| Some(f.loss_ratio), MetricKind::Loss),
            mean(&|f| f.owd_ms.map(|d| d.p50), MetricKind::Delay),
            mean(&|f| f.owd_ms.map(|d| d.p95), MetricKind::Delay),
            mean(&|f| f.streams.first()?.frame_delay_ms.map(|d| d.p95), MetricKind::Delay),
            mean(&|f| video(f, |s| s.freezes as f64), MetricKind::Count),
            mean(&|f| video(f, |s| s.freeze_s), MetricKind::Time),
        ]);
    }
    let more: usize = lines.iter().skip(LINES_SHOWN).map(|line| line.flows.len()).sum();
    (table, (more > 0).then(|| format!("… and {more} more flows; --json has them all")))
}

/// Returns whether the table of hops has this one. One that only delays shows in the delays of the flows.
fn shows(hop: &metrics::LinkResult) -> bool {
    hop.capacity_bps.is_some() || hop.loss_ratio > 0.0
}

fn hops(result: &RunsResult) -> Table {
    let headings = [
        "hop",
        "capacity Mbit/s",
        "used %",
        "dropped %",
        "queue p50 ms",
        "queue p95 ms",
        "queue p99 ms",
        "queue max ms",
    ];
    let mut table = Table::new(headings, 1);
    for (index, link) in result.runs[0].whole.links.iter().enumerate().filter(|(_, link)| shows(link)) {
        let mean = |of: &dyn Fn(&metrics::LinkResult) -> Option<f64>| {
            let values: Option<Vec<f64>> = result.runs.iter().map(|r| of(&r.whole.links[index])).collect();
            values.map(|v| v.iter().sum::<f64>() / v.len() as f64)
        };
        let of = |of: fn(&metrics::Distribution) -> f64| {
            digits_text(mean(&|l| l.queue_ms.as_ref().map(of)), MetricKind::Delay)
        };
        table.row(vec![
            link.id.clone(),
            link.capacity_bps.map_or("unlimited".to_owned(), |c| MetricKind::Rate.digits(c)),
            digits_text(mean(&|l| l.utilization), MetricKind::Utilization),
            digits_text(mean(&|l| Some(l.loss_ratio)), MetricKind::Loss),
            of(|d| d.p50),
            of(|d| d.p95),
            of(|d| d.p99),
            of(|d| d.max),
        ]);
    }
    table
}
