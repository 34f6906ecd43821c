//! `paceline reproduce … --world` of a world in real time: its runs beside the simulator's, each kept as it is made.

use super::reproduce::{Arguments, Printed, origins_of_all};
use super::{controllers, not_kept, refused, scoreboard, stored, time};
use crate::output;
use crate::progress::Progress;
use crate::table::Table;
use miette::{IntoDiagnostic, Result, miette};
use paceline::Registry;
use paceline_lab::kept::KeptError;
use paceline_lab::plan::Plan;
use paceline_lab::reproduce::{
    Beside, Cell, Done, Experiment, ExperimentReport, Report, Seeds, Task, Undertaking, Verdict, papers, reproduce,
};
use paceline_lab::run::Runner;
use paceline_lab::scenario::{Origin, is_formula_table};
use paceline_lab::sim::Simulator;
use paceline_lab::store::Store;
use paceline_lab::world::{World, WorldError};
use paceline_report::cells::{beside, measured, note, place, value};
use paceline_units::TimeDelta;
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Runs of each case, where nothing else is said: what a mean with an interval needs, and an afternoon has.
const REPEATS: u64 = 3;

/// Makes the runs that there is time for, and prints what all of them came to.
pub fn in_real_time(arguments: &Arguments, world: &dyn World, registry: &Registry) -> Result<ExitCode> {
    let mut origins = origins_of_all(&arguments.targets)?;
    // What a formula gives is the same in every world.
    origins.retain(|origin| !is_formula_table(&origin.name));
    let undertakings = undertakings(arguments, world, registry, &origins)?;
    if undertakings.is_empty() {
        let help = "a scenario says them in [[expect]] and [[assert]]; `paceline run` runs it without";
        return Err(miette!(help = help, "{} has no published value and no bound", arguments.targets.join(", ")));
    }
    let seeds = arguments.seeds.unwrap_or(REPEATS);
    let store = arguments.out.as_deref().map(Store::create).transpose().into_diagnostic()?;
    let take_up = Beside::take_up(undertakings, seeds, (registry, world.name()), store.as_ref());
    let mut all = take_up.into_diagnostic()?;
    complete(arguments, world, registry, &mut all, store.as_ref())?;
    let simulated = simulated(&origins)?;
    let report = Report::of(all.reports(world.name(), &simulated));
    if let Some(folder) = &arguments.out {
        scoreboard::write(folder, &report)?;
    }
    match arguments.json {
        true => output::print_json(&Printed { papers: papers(&report.experiments), report: &report })?,
        false => output::print(describe(&report, world.name()).trim_end())?,
    }
    let s = &report.summary;
    Ok(ExitCode::from(if s.claims_held == s.claims { 0 } else { 1 }))
}

/// Each experiment as it is written, and under the controllers asked for or the world's own.
fn undertakings(
    arguments: &Arguments,
    world: &dyn World,
    registry: &Registry,
    origins: &[Origin],
) -> Result<Vec<Undertaking>> {
    let asked = controllers(&arguments.controller, registry)?;
    let chosen: Vec<Option<&str>> = match asked.is_empty() {
        true => std::iter::once(None).chain(world.baselines().iter().map(|name| Some(*name))).collect(),
        false => asked.iter().map(|name| Some(name.as_str())).collect(),
    };
    let mut all = Vec::new();
    for origin in origins {
        for controller in &chosen {
            let Some(experiment) = Experiment::under(origin, *controller, registry)? else { continue };
            if experiment.says_something() {
                let under = under(&experiment, world, registry);
                let inputs = |plan: &Plan| stored::inputs_of(origin.text.clone(), Vec::new(), plan, registry);
                all.push(Undertaking::new(experiment, under, inputs));
            }
        }
    }
    Ok(all)
}

/// What the media flows are under, for people.
fn under(experiment: &Experiment, world: &dyn World, registry: &Registry) -> String {
    let flows = experiment.cases.iter().flat_map(|plan| &plan.flows).filter_map(|flow| flow.media());
    let mut names: Vec<String> = flows.map(|media| world.played(&media.controller.name, registry)).collect();
    names.sort();
    names.dedup();
    names.join(", ")
}

/// The simulator's verdicts on the same experiments.
fn simulated(origins: &[Origin]) -> Result<Vec<ExperimentReport>> {
    let registry = Registry::standard();
    let mut experiments = Vec::new();
    for origin in origins {
        let experiment = Experiment::load(origin, &[], &registry)?;
        if experiment.says_something() {
            experiments.push(experiment.beside_null_sender());
        }
    }
    let progress = Progress::new(0, &Simulator);
    let began = Instant::now();
    let clock = || began.elapsed().as_secs_f64();
    let ticked = || progress.tick();
    let runner = Runner { world: &Simulator, registry: &registry, clock: &clock, ticked: &ticked };
    let announce = |seconds: f64| progress.expect(seconds as u64);
    Ok(reproduce(&runner, &experiments, Seeds::AsNeeded, &announce).map_err(refused)?.experiments)
}

/// Makes what is missing, as far as the time goes.
fn complete(
    arguments: &Arguments,
    world: &dyn World,
    registry: &Registry,
    all: &mut Beside,
    store: Option<&Store>,
) -> Result<()> {
    let missing = all.missing();
    let seconds: f64 = missing.iter().map(|task| all.seconds(task)).sum();
    let at_once = arguments.at_once.unwrap_or(1) as usize;
    eprintln!("{}", ahead(world.name(), all.runs(), missing.len(), seconds / at_once as f64));
    let progress = Progress::new(seconds as u64, world);
    let began = Instant::now();
    let clock = || began.elapsed().as_secs_f64();
    let ticked = || progress.tick();
    let runner = Runner { world, registry, clock: &clock, ticked: &ticked };
    let (limit, broken) = (arguments.within.map(TimeDelta::as_secs_f64), AtomicBool::new(false));
    let fits = |task: &Task| limit.is_none_or(|limit| clock() + all.seconds(task) <= limit);
    let made: Mutex<Vec<(Task, Result<Done, KeptError>)>> = Mutex::new(Vec::new());
    let make = |task: Task| {
        if broken.load(Ordering::Relaxed) || !fits(&task) {
            return;
        }
        let done = all.make(&runner, store, &task);
        match &done {
            Ok(done) => {
                let how = done.disturbed.as_ref().map_or("done".to_owned(), |why| format!("disturbed: {why}"));
                progress.say(&format!("{}: {how}", all.describe(&task)));
            }
            Err(KeptError::World(WorldError::Unavailable { cause, .. })) => {
                progress.say(&format!("{}: not run: {cause}", all.describe(&task)));
            }
            Err(_) => broken.store(true, Ordering::Relaxed),
        }
        made.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push((task, done));
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(at_once).build().into_diagnostic()?;
    // `par_bridge` hands out one after the other, in order.
    pool.install(|| missing.into_iter().par_bridge().for_each(make));
    drop(progress);
    let mut failure = None;
    for (task, done) in made.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()) {
        match done {
            Ok(done) => all.add(&task, done),
            Err(KeptError::World(WorldError::Unavailable { cause, .. })) => all.refuse(&task, cause),
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    failure.map_or(Ok(()), |error| Err(not_kept(error)))
}

/// What of these runs is missing, in words.
fn ahead(world: &str, runs: usize, missing: usize, seconds: f64) -> String {
    let there = if missing < runs { format!(", {} there already", runs - missing) } else { String::new() };
    let takes = match missing {
        0 => String::new(),
        all if all == runs => format!("; they take {} in real time", time(seconds)),
        rest => format!("; the other {rest} take {} in real time", time(seconds)),
    };
    format!("{world}: {runs} runs{there}{takes}")
}

/// Verdicts for people: of each experiment one table, a column for each controller.
fn describe(report: &Report, world: &str) -> String {
    let mut by_id: BTreeMap<usize, Vec<&ExperimentReport>> = BTreeMap::new();
    for experiment in &report.experiments {
        let first = report.experiments.iter().position(|other| other.id == experiment.id).unwrap_or_default();
        by_id.entry(first).or_default().push(experiment);
    }
    let mut text: String = by_id.values().map(|columns| describe_experiment(columns, world)).collect();
    let s = &report.summary;
    let counts = |t: &paceline_lab::reproduce::Tally| {
        format!("{}: {} reproduced, {} in direction, {} not", t.cells, t.reproduced, t.direction, t.not)
    };
    text += &format!("  published values {}", counts(&s.published));
    text += &format!("; claims {}: {} hold\n", s.claims, s.claims_held);
    if s.all.not_run > 0 {
        text +=
            &format!("  cells that were not run: {}; the same command with the same --out goes on\n", s.all.not_run);
    }
    text
}

fn describe_experiment(columns: &[&ExperimentReport], world: &str) -> String {
    let first = columns[0];
    let mut text = format!("{}  {}\n\n", first.id, first.title);
    let headings = ["metric", "case", "flow", "window", "published", "sim", ""].map(str::to_owned);
    let each = (1..=columns.len()).flat_map(|n| [format!("{world} {n}"), String::new()]);
    let headings: Vec<String> = headings.into_iter().chain(each).collect();
    let mut table = Table::new(&headings.iter().map(String::as_str).collect::<Vec<_>>(), 4).with_prose();
    for (index, cell) in first.cells.iter().enumerate() {
        let wanted = match (cell.published, cell.bounds) {
            (None, Some((low, high))) => format!("{} to {}", value(Some(low), cell), value(Some(high), cell)),
            (published, _) => value(published, cell),
        };
        let [metric, case, flow, window] = place(cell);
        let claim = cell.claim.as_ref().filter(|_| cell.bounds.is_some());
        let metric = claim.map_or(metric.clone(), |claim| format!("{metric} ({claim})"));
        let simulated = cell.beside.as_ref().map_or(String::new(), |other| mark(other.verdict).to_owned());
        let mut row = vec![metric, case, flow, window, wanted, beside(cell), simulated];
        for column in columns {
            let cell: &Cell = &column.cells[index];
            row.extend([measured(cell), mark(cell.verdict).to_owned()]);
        }
        table.row(row);
    }
    text += &table.render();
    text.push('\n');
    for (n, column) in (1..).zip(columns) {
        let runs: Vec<String> = column.runs.iter().map(|runs| runs.n.to_string()).collect();
        let disturbed = match column.disturbed {
            0 => String::new(),
            some => format!("; the machine disturbed {some} of them, however often they were repeated"),
        };
        let under = column.under.as_deref().unwrap_or_default();
        text += &format!("  {world} {n}: {under}; runs of each case: {}{disturbed}\n", runs.join(", "));
        for cell in &column.cells {
            if let Some(note) = note(cell) {
                let what: Vec<String> = place(cell).into_iter().filter(|part| !part.is_empty()).collect();
                text += &format!("    · {}: {note}\n", what.join(", "));
            }
        }
    }
    text + "\n"
}

/// A verdict in a narrow column.
fn mark(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Reproduced => "✓",
        Verdict::Direction => "≈",
        Verdict::Not => "✗",
        Verdict::NotRun => "not run",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ahead_is_told() {
        assert_eq!(ahead("browser", 6, 6, 30.0), "browser: 6 runs; they take 30 s in real time");
        let told = "browser: 6 runs, 1 there already; the other 5 take 2 h 1 min in real time";
        assert_eq!(ahead("browser", 6, 5, 7260.0), told);
        assert_eq!(ahead("browser", 6, 0, 0.0), "browser: 6 runs, 6 there already");
    }
}
