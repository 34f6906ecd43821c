//! `paceline reproduce`.

use super::beside::in_real_time;
use super::{refused, scoreboard};
use crate::output;
use crate::progress::Progress;
use crate::table::{Table, kind_of, maybe};
use crate::worlds::{registry, world};
use miette::{IntoDiagnostic, Result, miette};
use paceline_lab::reproduce::{
    Cell, ConstantEnd, Counts, Experiment, ExperimentReport, FormulaTable, PaperCounts, Report, Seeds,
    SensitivityReport, Tallies, Tally, Verdict, papers, reproduce as reproduce_all, sensitivity,
};
use paceline_lab::run::Runner;
use paceline_lab::scenario::{Catalogue, Origin, is_formula_table, is_scenario, suggestion};
use paceline_report::cells::{measured, note, null, place, runs, value};
use paceline_units::TimeDelta;
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

/// Arguments of `reproduce`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Papers (`mmsys16`), experiments (`mmsys16/table1`), `all`, or TOML files or folders of them.
    #[arg(required = true, value_name = "TARGET")]
    pub targets: Vec<String>,
    /// World to run in. Of one in real time, its verdicts stand beside the simulator's.
    #[arg(long, default_value = "sim")]
    world: String,
    /// Controllers to put every media flow under, one after the other; the scenario's own, and those that the world brings,
    /// if absent. Of a world in real time.
    #[arg(long, value_delimiter = ',', value_name = "NAME[,NAME…]")]
    pub controller: Vec<String>,
    /// Exactly this many runs of each case; else as many as each scenario says, and more (up to 40) where an interval is
    /// too wide for a verdict; in real time, 3.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub seeds: Option<u64>,
    /// Begins no run that would not be over in this time, such as `40min`: what is left reads `not run`, and the same
    /// command with the same --out goes on. Of a world in real time.
    #[arg(long, value_name = "TIME")]
    pub within: Option<TimeDelta>,
    /// So many runs at the same time, if the machine can bear them. Of a world in real time; one after the other if absent.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=64))]
    pub at_once: Option<u64>,
    /// Puts every assumed constant at both ends of its range and reports which verdicts change.
    #[arg(long, conflicts_with = "out")]
    sensitivity: bool,
    /// Writes the verdicts into this folder: scoreboard.json for `paceline diff`, scoreboard.md to read, scoreboard.html to
    /// look at. In real time it also keeps every run, with its rows, and runs that are there are not made again.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Prints one JSON document.
    #[arg(long)]
    pub json: bool,
}

/// The verdicts as JSON, and the matrix of them.
#[derive(Serialize)]
pub struct Printed<'a> {
    #[serde(flatten)]
    pub report: &'a Report,
    pub papers: Vec<PaperCounts>,
}

/// Runs experiments and prints a verdict on each published value and each bound.
pub fn reproduce(arguments: &Arguments) -> Result<ExitCode> {
    let registry = registry(&arguments.world);
    let world = match world(&arguments.world)? {
        Ok(world) => world,
        Err(code) => return Ok(code),
    };
    if world.real_time() {
        if arguments.sensitivity {
            return Err(miette!(help = "leave out --world", "what verdicts depend on is asked of the simulator"));
        }
        return in_real_time(arguments, &*world, &registry);
    }
    let only_real = [("--controller", !arguments.controller.is_empty()), ("--within", arguments.within.is_some())];
    if let Some((option, _)) = only_real.iter().find(|(_, given)| *given) {
        let help = "`paceline compare` puts a scenario under several controllers";
        return Err(miette!(help = help, "{option} is for worlds in real time, and `{}` is none", world.name()));
    }
    let (mut origins, mut experiments, mut tables) = (Vec::new(), Vec::new(), Vec::new());
    for origin in origins_of_all(&arguments.targets)? {
        if is_formula_table(&origin.name) {
            tables.push(FormulaTable::load(&origin)?.report);
            continue;
        }
        let experiment = Experiment::load(&origin, &[], &registry)?;
        if experiment.says_something() {
            experiments.push(experiment.beside_null_sender().with_changes(&origin, &registry)?);
            origins.push(origin);
        }
    }
    if experiments.is_empty() && tables.is_empty() {
        let help = "a scenario says them in [[expect]] and [[assert]]; `paceline run` runs it without";
        return Err(miette!(help = help, "{} has no published value and no bound", arguments.targets.join(", ")));
    }

    let progress = Progress::new(0, &*world);
    let began = Instant::now();
    let clock = || began.elapsed().as_secs_f64();
    let ticked = || progress.tick();
    let runner = Runner { world: &*world, registry: &registry, clock: &clock, ticked: &ticked };
    let announce = |seconds: f64| progress.expect(seconds as u64);
    if arguments.sensitivity {
        let report = sensitivity(&runner, &origins, arguments.seeds, &announce)?.map_err(refused)?;
        drop(progress);
        match arguments.json {
            true => output::print_json(&report)?,
            false => output::print(describe_sensitivity(&report).trim_end())?,
        }
        return Ok(ExitCode::SUCCESS);
    }
    let seeds = arguments.seeds.map_or(Seeds::AsNeeded, Seeds::Exactly);
    let run = reproduce_all(&runner, &experiments, seeds, &announce).map_err(refused)?;
    let report = Report::of(run.experiments.into_iter().chain(tables).collect());
    drop(progress);
    if let Some(folder) = &arguments.out {
        scoreboard::write(folder, &report)?;
    }
    match arguments.json {
        true => output::print_json(&Printed { papers: papers(&report.experiments), report: &report })?,
        false => output::print(describe(&report).trim_end())?,
    }
    let held = report.summary.claims_held == report.summary.claims;
    Ok(ExitCode::from(if held { 0 } else { 1 }))
}

/// The scenarios that targets mean, each once.
pub fn origins_of_all(targets: &[String]) -> Result<Vec<Origin>> {
    let mut all: Vec<Origin> = Vec::new();
    for target in targets {
        for origin in origins_of(target)? {
            if all.iter().all(|other| other.name != origin.name) {
                all.push(origin);
            }
        }
    }
    Ok(all)
}

/// The scenarios that a target means.
fn origins_of(target: &str) -> Result<Vec<Origin>> {
    let folder = Path::new(target);
    if folder.is_dir() {
        let mut files = Vec::new();
        for entry in folder.read_dir().into_diagnostic()? {
            let path = entry.into_diagnostic()?.path().display().to_string();
            let name = path.replace('\\', "/");
            files.extend((is_scenario(&name) || is_formula_table(&name)).then_some(path));
        }
        files.sort();
        return Ok(files.iter().map(|file| Catalogue.find(file)).collect::<std::result::Result<_, _>>()?);
    }
    let is_meant =
        |id: &str| target == "all" || id == target || id.strip_prefix(target).is_some_and(|rest| rest.starts_with('/'));
    let scenarios = Catalogue.ids().filter(|id| is_meant(id)).map(|id| Catalogue.find(id));
    let tables = Catalogue.formula_tables().filter(|id| is_meant(id)).map(|id| Catalogue.find_formula_table(id));
    let meant: Vec<Origin> = scenarios.chain(tables).collect::<std::result::Result<_, _>>()?;
    if !meant.is_empty() {
        return Ok(meant);
    }
    let papers: BTreeSet<&str> = Catalogue.ids().filter_map(|id| Some(id.split_once('/')?.0)).collect();
    if target.contains(['/', '.']) {
        return Ok(vec![Catalogue.find(target)?]);
    }
    let papers: Vec<&str> = papers.into_iter().chain(["all"]).collect();
    let help = format!("{}; or an experiment, see `paceline list scenarios`", suggestion(target, &papers));
    Err(miette!(help = help, "there is no paper `{target}`"))
}

/// Verdicts for people.
fn describe(report: &Report) -> String {
    let mut text = String::new();
    if report.experiments.len() > 1 {
        text += &matrix(report);
    }
    for experiment in &report.experiments {
        text += &describe_experiment(experiment);
    }
    if report.experiments.iter().flat_map(|e| &e.cells).any(|c| c.null_reproduces) {
        text += "  * the null sender (constant rate, no congestion control) reproduces it too: it proves nothing\n";
    }
    text + &describe_assumed(&report.experiments) + &describe_summary(&report.summary)
}

/// How many of which: an experiment a row, below its paper.
fn matrix(report: &Report) -> String {
    let half = ["cells", "✓", "≈", "✗", "claims"];
    let headings = [&["experiment"], &half[..], &["│"], &half, &["│", "runs", "time"]].concat();
    let mut table = Table::new(&headings, 1);
    let mut row = |name: String, counts: &Counts| {
        let Counts { tallies, runs, wall_s } = counts;
        let half = |tally: &Tally, held: usize, claims: usize| {
            let Tally { cells, reproduced, direction, not, .. } = tally;
            let claims = if claims > 0 { format!("{held}/{claims}") } else { String::new() };
            [cells, reproduced, direction, not].map(usize::to_string).into_iter().chain([claims])
        };
        let bar = || ["│".to_owned()];
        let all = half(&tallies.all, tallies.claims_held, tallies.claims);
        let without = half(&tallies.without_null, tallies.claims_held_without_null, tallies.claims_without_null);
        let runs = [runs.to_string(), format!("{wall_s:.1} s")];
        table.row([name].into_iter().chain(all).chain(bar()).chain(without).chain(bar()).chain(runs).collect());
    };
    let papers = papers(&report.experiments);
    for paper in &papers {
        row(paper.paper.clone(), &paper.counts);
        for experiment in &paper.experiments {
            row(format!("  {}", experiment.id), &experiment.counts);
        }
    }
    if papers.len() > 1 {
        row("all".to_owned(), &Counts::of(&report.experiments));
    }
    table.render()
        + "\n  cells: published values and bounds; ✓ reproduced, ≈ in direction, ✗ neither; claims: held/all\n  second \
           half: without what the null sender gives away; time: of all runs, one after the other\n\n"
}

/// What the experiments assume, each constant once.
fn describe_assumed(experiments: &[ExperimentReport]) -> String {
    let mut list: Vec<String> = Vec::new();
    for constant in experiments.iter().flat_map(|e| &e.assumed) {
        let line = format!("{} = {}", constant.key, constant.value);
        if !list.contains(&line) {
            list.push(line);
        }
    }
    match list.is_empty() {
        true => String::new(),
        false => {
            format!("  assumed, for no source gives it (--sensitivity asks what it matters): {}\n", list.join(", "))
        }
    }
}

fn describe_experiment(experiment: &ExperimentReport) -> String {
    let mut text = format!("{}  {}\n\n", experiment.id, experiment.title);
    let keeps = experiment.cells.iter().any(|cell| cell.left_out.is_some());
    let (published, claims): (Vec<&Cell>, Vec<&Cell>) = experiment.cells.iter().partition(|c| c.published.is_some());
    if !published.is_empty() {
        let mut headings = vec!["metric", "case", "flow", "window", "published", "measured", "±", "null", "verdict"];
        if keeps {
            headings.insert(6, "kept");
        }
        let mut table = Table::new(&headings, 4).with_prose();
        for cell in published {
            let mut row = place(cell).to_vec();
            row.push(value(cell.published, cell));
            row.push(measured(cell));
            row.extend(keeps.then(|| runs(cell)));
            row.push(value(cell.tolerance, cell));
            row.push(null(cell));
            row.push(cell.verdict.name().to_owned());
            table.row(row);
        }
        text += &table.render();
        text.push('\n');
    }
    if !claims.is_empty() {
        let mut headings = vec!["claim", "metric", "case", "flow", "window", "wanted", "measured", "null", ""];
        if keeps {
            headings.insert(7, "kept");
        }
        let mut table = Table::new(&headings, 5).with_prose();
        for cell in claims {
            let (from, to) = cell.bounds.unwrap_or((f64::NEG_INFINITY, f64::INFINITY));
            let mut row = vec![cell.claim.clone().unwrap_or_default()];
            row.extend(place(cell));
            row.push(format!("{} to {}", value(Some(from), cell), value(Some(to), cell)));
            row.push(measured(cell));
            row.extend(keeps.then(|| runs(cell)));
            row.push(null(cell));
            row.push(if cell.verdict == Verdict::Reproduced { "holds" } else { "FAILS" }.to_owned());
            table.row(row);
        }
        text += &table.render();
        text.push('\n');
    }
    for cell in &experiment.cells {
        if let Some(note) = note(cell) {
            let what: Vec<String> = place(cell).into_iter().filter(|part| !part.is_empty()).collect();
            text += &format!("  · {}: {note}\n", what.join(", "));
        }
    }
    if experiment.cells.iter().any(|c| c.note.is_some()) {
        text.push('\n');
    }
    text
}

fn describe_summary(tallies: &Tallies) -> String {
    let counts = |tally: &Tally| {
        let Tally { cells, reproduced, direction, not, .. } = tally;
        format!("{cells}: {reproduced} reproduced, {direction} in direction, {not} not")
    };
    let mut text = format!("  published values {}\n", counts(&tallies.published));
    if tallies.claims > 0 {
        text += &format!("  claims {}: {} hold", tallies.claims, tallies.claims_held);
        let (held, claims) = (tallies.claims_held_without_null, tallies.claims_without_null);
        text += &format!("; of the {claims} that do not hold under the null sender, {held}\n");
    }
    let Tally { cells, reproduced, .. } = tallies.published_without_null;
    let part = match cells {
        0 => String::new(),
        _ => format!(" ({:.0} %)", reproduced as f64 / cells as f64 * 100.0),
    };
    text + &format!(
        "  of the {cells} published values that the null sender does not reproduce, {reproduced}{part} are reproduced\n"
    )
}

/// What depends on assumptions, for people.
fn describe_sensitivity(report: &SensitivityReport) -> String {
    if report.constants.is_empty() {
        return "  nothing is assumed: no scenario of these names a file of constants that applies".to_owned();
    }
    let mut table = Table::new(&["constant", "key", "assumed", "instead", "cells", "change verdict"], 2);
    let ends = || report.constants.iter().flat_map(|c| c.ends.iter().map(move |e| (c, e)));
    for (constant, end) in ends() {
        table.row(vec![
            format!("{}/{}", constant.paper, constant.id),
            constant.key.clone(),
            constant.value.clone(),
            end.value.clone(),
            end.cells.to_string(),
            end.changed.to_string(),
        ]);
    }
    let mut text = table.render() + "\n";
    for (constant, end) in ends().filter(|(_, e)| e.changed > 0) {
        text += &format!("  {} = {} instead of {}\n{}\n", constant.key, end.value, constant.value, flips(end));
    }
    let s = &report.summary;
    text + &format!(
        "  {} of {} constants change a verdict; {} of {} cells depend on one\n",
        s.constants_that_matter, s.constants, s.cells_that_change, s.cells
    )
}

fn flips(end: &ConstantEnd) -> String {
    let mut table =
        Table::new(&["experiment", "metric", "case", "flow", "window", "measured", "then", "from", "to"], 5)
            .with_prose();
    for flip in &end.changes {
        let value = |v: Option<f64>| maybe(v, kind_of(&flip.metric));
        table.row(vec![
            flip.experiment.clone(),
            flip.claim.as_ref().map_or(flip.metric.clone(), |claim| format!("{} ({claim})", flip.metric)),
            flip.case.to_string(),
            flip.flow.clone().unwrap_or_default(),
            format!("{} to {} s", flip.window_s.0, flip.window_s.1),
            value(flip.measured),
            value(flip.measured_then),
            flip.from.name().to_owned(),
            flip.to.name().to_owned(),
        ]);
    }
    table.render()
}
