//! `paceline run`.

use super::report::report_within;
use super::stored::{Into, run_into};
use super::{Selection, controllers, refused, verdict, with_runner};
use crate::output;
use crate::table::{Table, kind_of, maybe, shown, sparkline};
use miette::{IntoDiagnostic, Result, miette};
use paceline_lab::machine::Machine;
use paceline_lab::metrics::{self, Kind};
use paceline_lab::plan::Plan;
use paceline_lab::run::{self, Assertion, RunsResult};
use paceline_lab::stats::Statistic;
use paceline_lab::store::Store;
use serde_json::{Map, Value, json};
use std::ops::{Add, Range};
use std::path::PathBuf;
use std::process::ExitCode;

/// Arguments of `run`.
#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    pub(super) selection: Selection,
    /// Controllers to put every flow under, one after the other; the scenario's own if absent.
    #[arg(long, value_delimiter = ',', value_name = "NAME[,NAME…]")]
    pub(super) controller: Vec<String>,
    /// How many runs, on consecutive seeds.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(super) repeats: u32,
    /// Writes rows, results and manifest into this folder.
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,
    /// Writes every packet, at the ends and at every hop, into this pcapng file; of one run only.
    #[arg(long, value_name = "FILE")]
    pub(super) pcap: Option<PathBuf>,
}

/// Runs a scenario and prints what it came to.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let selection = &arguments.selection;
    let registry = selection.registry();
    let world = match selection.world()? {
        Ok(world) => world,
        Err(code) => return Ok(code),
    };
    let chosen: Vec<Option<String>> = match controllers(&arguments.controller, &registry)? {
        none if none.is_empty() => vec![None],
        some => some.into_iter().map(Some).collect(),
    };
    let plans = chosen.iter().map(|c| selection.plan(c.as_deref(), &registry)).collect::<Result<Vec<_>>>()?;
    let seeds = selection.seeds(arguments.repeats);
    if arguments.pcap.is_some() && plans.len() * seeds.len() != 1 {
        let help = "leave out --repeats, or name one controller; --seed says which run";
        return Err(miette!(help = help, "--pcap takes one run, and this asks for {}", plans.len() * seeds.len()));
    }

    if arguments.pcap.is_some() && world.real_time() {
        let help = "a tool such as tcpdump sees the packets of the test track; --out has what became of each";
        return Err(miette!(help = help, "--pcap writes what the simulator sends, and `{}` is real", world.name()));
    }

    let store = arguments.out.as_deref().map(Store::create).transpose().into_diagnostic()?;
    let into = Into { store: store.as_ref(), pcap: arguments.pcap.as_deref() };
    let results = with_runner(&*world, &registry, &plans, &seeds, |runner, index, plan| match into.anything() {
        false => runner.run_all(plan, &seeds).map_err(refused),
        true => run_into(into, selection, chosen[index].as_deref(), runner, plan, &seeds),
    })?;
    if let Some(dir) = &arguments.out {
        eprintln!("rows and results are in {}", dir.display());
    }
    if let Some(file) = into.pcap {
        eprintln!("packets are in {}", file.display());
    }

    if selection.json {
        match results.as_slice() {
            [one] => output::print_json(one)?,
            many => output::print_json(&together(&arguments.controller, many).into_diagnostic()?)?,
        }
    } else {
        for (plan, result) in plans.iter().zip(&results) {
            output::print(&describe(plan, result, &selection.changes()))?;
        }
    }
    if let Some(dir) = &arguments.out {
        report_within(dir);
    }
    Ok(verdict(&results))
}

/// Runs under several controllers as one document: every run (its flows name their controller), the summary of the
/// first controller where scripts for one look for it, and the summary of each under its name.
fn together(names: &[String], results: &[RunsResult]) -> serde_json::Result<Value> {
    let runs: Vec<_> = results.iter().flat_map(|r| &r.runs).collect();
    let mut controllers = Map::new();
    let (mut assertions, mut expectations) = (Vec::new(), Vec::new());
    for (name, result) in names.iter().zip(results) {
        controllers.insert(name.clone(), serde_json::to_value(&result.summary)?);
        let named = |mut value: Value| {
            value["controller"] = json!(name);
            value
        };
        for assertion in &result.assertions {
            assertions.push(named(serde_json::to_value(assertion)?));
        }
        for expectation in &result.expectations {
            expectations.push(named(serde_json::to_value(expectation)?));
        }
    }
    Ok(json!({
        "scenario": results[0].scenario,
        "runs": runs,
        "summary": results[0].summary,
        "controllers": controllers,
        "assertions": assertions,
        "expectations": expectations,
    }))
}

/// A result for people.
pub(super) fn describe(plan: &Plan, result: &RunsResult, changes: &[String]) -> String {
    let first = &result.runs[0];
    let n = result.runs.len();
    let case = if plan.case.is_empty() { String::new() } else { format!("  [{}]", plan.case) };
    let mut text = format!("{}{case}  {}\n", plan.id, plan.title);
    if !plan.source.is_empty() {
        text += &format!("  {}\n", plan.source);
    }
    let seeds = match n {
        1 => format!("seed {}", first.seed),
        _ => format!("seeds {} to {}", first.seed, result.runs[n - 1].seed),
    };
    let wall: f64 = result.runs.iter().map(|r| r.wall_s).sum();
    // Events and hash are of one run: with several, `--json` has those of each.
    let trace = match n {
        1 => format!(" · {} events · trace {}", first.events, first.trace_hash),
        _ => String::new(),
    };
    let each = if n > 1 { " each" } else { "" };
    text += &match &first.machine {
        None => format!("  {} simulated in {:.0} ms{each} · {seeds}{trace}\n\n", plan.duration, wall * 1e3 / n as f64),
        Some(_) => format!("  {} in real time{each}, world {} · {seeds}\n\n", plan.duration, first.world),
    };
    text += &timeline(plan, result);
    text += &headline(plan, result);
    text += &flows(plan, result);
    text += &hops(result);
    for assertion in &result.assertions {
        text += &format!("  {}", describe_assertion(assertion));
    }
    if !changes.is_empty() && !result.expectations.is_empty() {
        text += &format!("  · published values are for the scenario as written, not with {}\n", changes.join(", "));
    }
    if result.runs.len() < plan.repeats as usize && !result.expectations.is_empty() {
        text += &format!("  · published values are means of {0} runs: --repeats {0}\n", plan.repeats);
    }
    for run in &result.runs {
        if let Some(machine) = &run.machine {
            text += &format!("  · seed {}: {}\n", run.seed, describe_machine(machine));
        }
    }
    for note in &result.notes {
        text += &format!("  · {note}\n");
    }
    text
}

/// What the machine did to a run in real time, in a line.
fn describe_machine(machine: &Machine) -> String {
    let (idle, others) = (shown(machine.idle, Kind::Share), shown(machine.others, Kind::Share));
    let mut line = format!(
        "the machine was idle for {idle}, others took {others}; 99 % of packets left the link within {:.0} µs of their time, \
         of timers within {:.0} µs",
        machine.late_us.p99, machine.wake_us.p99
    );
    if let Some(why) = &machine.disturbed {
        line += &format!("; DISTURBED after {} attempts: {why}", machine.attempts);
    }
    line
}

/// One line on an assertion.
pub fn describe_assertion(assertion: &Assertion) -> String {
    let kind = kind_of(&assertion.metric);
    let id = match assertion.runs {
        Statistic::Mean => assertion.metric.clone(),
        extreme => format!("the {} {} of the runs", extreme.name(), assertion.metric),
    };
    let mark = if assertion.holds { "holds" } else { "FAILS" };
    let flow = assertion.flow.as_deref().map_or(String::new(), |f| format!(" of {f}"));
    let bounds = (shown(assertion.bounds.0, kind), shown(assertion.bounds.1, kind));
    let measured = maybe(assertion.measured, kind);
    if assertion.ratio {
        let (bounds, measured) = (assertion.bounds, assertion.measured.map_or("–".to_owned(), |m| format!("{m:.3}")));
        let (from, to) = (bounds.0, bounds.1);
        return format!(
            "{mark}  {}: {id}{flow} over its reference is {measured}, wanted {from} to {to}\n",
            assertion.id
        );
    }
    format!("{mark}  {}: {id}{flow} is {measured}, wanted {} to {}\n", assertion.id, bounds.0, bounds.1)
}

/// Lines of flows that tables and plots show; more would hide the rest of the result.
const LINES_SHOWN: usize = 12;

/// What is one line in tables and plots: a flow, or the TCP flows that one table of the scenario stands for.
struct Line {
    flows: Range<usize>,
    first: String,
    last: String,
}

/// The lines of a plan, media flows first.
fn lines(plan: &Plan) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for (index, flow) in plan.flows.iter().enumerate() {
        let joins = |line: &&mut Line| {
            flow.media().is_none() && flow.group.is_some() && flow.group == plan.flows[line.flows.start].group
        };
        match lines.last_mut().filter(joins) {
            Some(line) => (line.flows.end, line.last) = (index + 1, flow.id.clone()),
            None => lines.push(Line { flows: index..index + 1, first: flow.id.clone(), last: flow.id.clone() }),
        }
    }
    lines.sort_by_key(|line| plan.flows[line.flows.start].media().is_none());
    lines
}

impl Line {
    /// Its name, and how the numbers of several flows became one.
    fn named(&self, how: &str) -> String {
        match self.flows.len() {
            1 => self.first.clone(),
            n => format!("{} … {}, {how} of {n}", self.first, self.last),
        }
    }
}

/// Rate of each flow over time, beside the capacity, in the first run.
fn timeline(plan: &Plan, result: &RunsResult) -> String {
    const WIDTH: usize = 60;
    let run = &result.runs[0];
    let seconds = plan.duration.as_secs_f64().ceil() as usize;
    let bin = seconds.div_ceil(WIDTH).max(1);
    let binned = |per_second: &dyn Fn(usize) -> f64| -> Vec<f64> {
        let starts = (0..seconds).step_by(bin);
        let mean = |s: usize| {
            let end = (s + bin).min(seconds);
            (s..end).map(per_second).sum::<f64>() / (end - s) as f64
        };
        starts.map(mean).collect()
    };
    let capacity = plan.hops[plan.bottleneck].capacity.as_ref().map(|c| {
        let at = |s: usize| {
            let second = |s: usize| paceline_units::Time::from_secs(s as i64);
            c.volume(second(s), second(s + 1)).as_bits() as f64
        };
        binned(&at)
    });
    let lines = lines(plan);
    let rate = |line: &Line| {
        let bytes = |s: usize| line.flows.clone().filter_map(|f| run.seconds[f].get(s)).sum::<u64>();
        binned(&|s| bytes(s) as f64 * 8.0)
    };
    let rates: Vec<Vec<f64>> = lines.iter().map(rate).collect();
    let top = capacity.iter().flatten().chain(rates.iter().flatten()).copied().fold(0.0, f64::max);
    let seed = if result.runs.len() > 1 { format!("seed {}, ", run.seed) } else { String::new() };
    let legend = format!("{seed}0 to {seconds} s, one mark {bin} s, full height {:.2} Mbit/s", top / 1e6);
    let mut table = Table::new(&["", &legend], 2);
    if let Some(capacity) = &capacity {
        table.row(vec!["capacity".to_owned(), sparkline(capacity, top)]);
    }
    for (line, rates) in lines.iter().zip(&rates).take(LINES_SHOWN) {
        let flow = &plan.flows[line.flows.start];
        let alive = |index: usize| {
            let (from, to) = ((index * bin) as f64, ((index + 1) * bin) as f64);
            flow.start.as_secs_f64() < to && flow.stop.as_secs_f64() > from
        };
        let marks = sparkline(rates, top);
        let marks = marks.chars().enumerate().map(|(i, c)| if alive(i) { c } else { ' ' });
        table.row(vec![line.named("sum"), marks.collect()]);
    }
    table.render() + "\n"
}

/// The metrics that say most, and the published values.
fn headline(plan: &Plan, result: &RunsResult) -> String {
    const SHOWN: [&str; 9] = [
        "utilization",
        "media_utilization",
        "throughput_bps",
        "attained",
        "queue_p50_ms",
        "queue_p95_ms",
        "loss_ratio",
        "jain",
        "media_jain",
    ];
    let media = plan.flows.iter().filter(|f| f.media().is_some()).count();
    let mixed = media < plan.flows.len();
    let tells = |id: &str| match id {
        "jain" => plan.flows.len() > 1,
        "media_utilization" => mixed,
        "media_jain" => mixed && media > 1,
        _ => true,
    };
    let several = result.runs.len() > 1;
    let published = !result.expectations.is_empty();
    let mut headings = vec!["", "measured"];
    headings.extend(several.then_some("± 95 %"));
    headings.extend(published.then_some("published"));
    let mut table = Table::new(&headings, 1);
    let whole = |e: &&run::Expectation, id: &str| {
        e.metric == id && !e.ratio && e.flow.is_none() && e.window_s == (0.0, plan.duration.as_secs_f64())
    };
    for id in SHOWN {
        let expected = result.expectations.iter().find(|e| whole(e, id));
        // A published value stands beside what the runs that count came to.
        let summary = match expected {
            Some(expected) => expected.measured.as_ref(),
            None => result.summary.get(id).filter(|_| tells(id)),
        };
        if summary.is_none() && expected.is_none() {
            continue;
        }
        let kind = kind_of(id);
        let mut row = vec![label(id, plan), maybe(summary.map(|s| s.mean), kind)];
        if several {
            row.push(maybe(summary.map(|s| s.ci95), kind));
        }
        row.extend(expected.map(|e| shown(e.published, kind)));
        table.row(row);
    }
    for e in result.expectations.iter().filter(|e| !SHOWN.iter().any(|id| whole(e, id))) {
        let kind = if e.ratio { Kind::Number } else { kind_of(&e.metric) };
        let flow = e.flow.as_deref().map_or(String::new(), |f| format!(" of {f}"));
        let ratio = if e.ratio { " over its reference" } else { "" };
        let name = format!("{}{flow}{ratio}, {} to {} s", e.metric, e.window_s.0, e.window_s.1);
        let mut row = vec![name, maybe(e.measured.map(|m| m.mean), kind)];
        if several {
            row.push(maybe(e.measured.map(|m| m.ci95), kind));
        }
        row.push(shown(e.published, kind));
        table.row(row);
    }
    table.render() + "\n"
}

/// What a queue metric means depends on the scenario: say it.
fn label(id: &str, plan: &Plan) -> String {
    use paceline_lab::plan::QueueMeasure;
    let how = match (id.starts_with("queue"), plan.measure.queue) {
        (false, _) => "",
        (true, QueueMeasure::Packet) => " (each packet)",
        (true, QueueMeasure::Rtcp) => " (RTCP samples)",
        (true, QueueMeasure::OneWay) => " (one-way, jitter included)",
    };
    format!("{id}{how}")
}

fn flows(plan: &Plan, result: &RunsResult) -> String {
    let headings =
        ["flow", "controller", "throughput", "target", "loss", "one-way p50", "p95", "frame p95", "freezes", "frozen"];
    let mut table = Table::new(&headings, 2);
    let lines = lines(plan);
    for line in lines.iter().take(LINES_SHOWN) {
        let mean = |of: &dyn Fn(&metrics::FlowResult) -> Option<f64>, kind: Kind| {
            let flows = result.runs.iter().flat_map(|r| &r.whole.flows[line.flows.clone()]);
            let values: Option<Vec<f64>> = flows.map(of).collect();
            maybe(values.map(|v| v.iter().sum::<f64>() / v.len() as f64), kind)
        };
        let streams =
            |f: &metrics::FlowResult, of: fn(&metrics::StreamResult) -> f64| f.streams.iter().map(of).reduce(f64::add);
        table.row(vec![
            line.named("mean"),
            plan.flows[line.flows.start].control().to_owned(),
            mean(&|f| Some(f.throughput_bps), Kind::Rate),
            mean(&|f| f.target_bps, Kind::Rate),
            mean(&|f| Some(f.loss_ratio), Kind::Loss),
            mean(&|f| f.owd_ms.map(|d| d.p50), Kind::Delay),
            mean(&|f| f.owd_ms.map(|d| d.p95), Kind::Delay),
            mean(&|f| f.streams.first()?.frame_delay_ms.map(|d| d.p95), Kind::Delay),
            mean(&|f| streams(f, |s| s.freezes as f64), Kind::Count),
            mean(&|f| streams(f, |s| s.freeze_s), Kind::Time),
        ]);
    }
    let more: usize = lines.iter().skip(LINES_SHOWN).map(|line| line.flows.len()).sum();
    let more = if more > 0 { format!("  … and {more} more flows; --json has them all\n") } else { String::new() };
    table.render() + &more + "\n"
}

fn hops(result: &RunsResult) -> String {
    let mut table = Table::new(&["hop", "capacity", "used", "dropped", "queue p50", "p95", "p99", "max"], 1);
    for (index, link) in result.runs[0].whole.links.iter().enumerate() {
        let mean = |of: &dyn Fn(&metrics::LinkResult) -> Option<f64>| {
            let values: Option<Vec<f64>> = result.runs.iter().map(|r| of(&r.whole.links[index])).collect();
            values.map(|v| v.iter().sum::<f64>() / v.len() as f64)
        };
        let of = |of: fn(&metrics::Distribution) -> f64| maybe(mean(&|l| l.queue_ms.as_ref().map(of)), Kind::Delay);
        table.row(vec![
            link.id.clone(),
            link.capacity_bps.map_or("unlimited".to_owned(), |c| shown(c, Kind::Rate)),
            maybe(mean(&|l| l.utilization), Kind::Utilization),
            maybe(mean(&|l| Some(l.loss_ratio)), Kind::Loss),
            of(|d| d.p50),
            of(|d| d.p95),
            of(|d| d.p99),
            of(|d| d.max),
        ]);
    }
    table.render() + "\n"
}
