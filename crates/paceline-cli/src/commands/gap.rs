//! `paceline gap`.

use super::compare::told;
use super::report::report_within;
use super::stored::{command, inputs};
use super::{Selection, Variation, controllers, not_kept, time};
use crate::output;
use crate::progress::Progress;
use crate::table::Table;
use crate::worlds::world;
use miette::{IntoDiagnostic, Result, miette};
use paceline::Registry;
use paceline_lab::gap::{GAP_FILE, Gap, GapRun, Gaps};
use paceline_lab::plan::Plan;
use paceline_lab::run::Runner;
use paceline_lab::sim::Simulator;
use paceline_lab::store::{RunManifest, Store, write_whole};
use paceline_lab::world::World;
use paceline_report::gaps;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

/// Arguments of `gap`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Scenario ids (see `paceline list scenarios`) or TOML files.
    #[arg(required = true, value_name = "SCENARIO")]
    scenarios: Vec<String>,
    #[command(flatten)]
    variation: Variation,
    /// Controllers to put every flow under, one after the other; each scenario's own if absent.
    #[arg(long, value_delimiter = ',', value_name = "NAME[,NAME…]")]
    controller: Vec<String>,
    /// World that the simulator is compared with.
    #[arg(long, default_value = "testbed")]
    world: String,
    /// First seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many runs in each world, on the same consecutive seeds.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    repeats: u32,
    /// Keeps every finished run in this folder, with its rows; what is there already and was made from the same is not
    /// made again.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Prints one JSON document.
    #[arg(long)]
    json: bool,
}

/// What is run in both worlds.
struct Job {
    plan: Plan,
    changes: Vec<String>,
    command: String,
    inputs: RunManifest,
}

/// Runs each scenario in both worlds and prints how far they lie apart.
pub fn gap(arguments: &Arguments) -> Result<ExitCode> {
    let registry = Registry::standard();
    let other = match world(&arguments.world)? {
        Ok(other) => other,
        Err(code) => return Ok(code),
    };
    if other.name() == Simulator.name() {
        return Err(miette!(help = "--world testbed", "a gap lies between the simulator and another world"));
    }
    let (jobs, seeds) = (jobs(arguments, &registry)?, seeds(arguments));
    let store = arguments.out.as_deref().map(Store::create).transpose().into_diagnostic()?;
    let found = compared([&Simulator, &*other], &registry, &jobs, &seeds, store.as_ref())?;
    if let Some(dir) = &arguments.out {
        write_gaps(dir, &found)?;
        eprintln!("rows and results are in {}", dir.display());
    }
    match arguments.json {
        true => output::print_json(&found)?,
        false => output::print(found.gaps.iter().map(describe).collect::<Vec<_>>().join("\n").trim_end())?,
    }
    if let Some(dir) = &arguments.out {
        report_within(dir);
    }
    Ok(ExitCode::from(if found.gaps.iter().all(Gap::is_within) { 0 } else { 1 }))
}

fn write_gaps(dir: &Path, gaps: &Gaps) -> Result<()> {
    let mut text = serde_json::to_vec_pretty(gaps).into_diagnostic()?;
    text.push(b'\n');
    write_whole(dir, GAP_FILE, &text).into_diagnostic()
}

fn seeds(arguments: &Arguments) -> Vec<u64> {
    (0..u64::from(arguments.repeats)).map(|i| arguments.seed.wrapping_add(i)).collect()
}

/// Each scenario under each controller.
fn jobs(arguments: &Arguments, registry: &Registry) -> Result<Vec<Job>> {
    let chosen: Vec<Option<String>> = match controllers(&arguments.controller, registry)? {
        none if none.is_empty() => vec![None],
        some => some.into_iter().map(Some).collect(),
    };
    let mut jobs: Vec<Job> = Vec::new();
    for scenario in &arguments.scenarios {
        let selection = Selection {
            scenario: scenario.clone(),
            variation: arguments.variation.clone(),
            world: arguments.world.clone(),
            seed: arguments.seed,
            json: arguments.json,
        };
        for controller in &chosen {
            let plan = selection.plan(controller.as_deref(), registry)?;
            let inputs = inputs(&selection, &plan, registry)?;
            let controls = |plan: &Plan| plan.flows.iter().map(|f| f.control().to_owned()).collect::<Vec<_>>();
            let is_same = |job: &Job| job.plan.id == plan.id && controls(&job.plan) == controls(&plan);
            if jobs.iter().any(is_same) {
                return Err(miette!(help = "each needs an id of its own", "`{}` is asked for twice", plan.id));
            }
            let command = command("gap", &selection, controller.as_deref(), arguments.repeats as usize);
            jobs.push(Job { plan, changes: selection.changes(), command, inputs });
        }
    }
    Ok(jobs)
}

/// Makes the runs that the store does not hold, first those of the first world, and compares.
fn compared(
    worlds: [&dyn World; 2],
    registry: &Registry,
    jobs: &[Job],
    seeds: &[u64],
    store: Option<&Store>,
) -> Result<Gaps> {
    // What is missing is known, and told, before anything runs.
    let found = |world: &dyn World| -> Result<Vec<Vec<Option<GapRun>>>> {
        let of = |job: &Job, seed: &u64| match store {
            None => Ok(None),
            Some(store) => GapRun::stored((store, &job.inputs), registry, world.name(), &job.plan, *seed),
        };
        let each = |job: &Job| seeds.iter().map(|seed| of(job, seed)).collect::<std::result::Result<_, _>>();
        jobs.iter().map(each).collect::<std::result::Result<_, _>>().into_diagnostic()
    };
    let found = [found(worlds[0])?, found(worlds[1])?];
    for (world, found) in worlds.iter().zip(&found) {
        eprintln!("{}", ahead(*world, jobs, found));
    }
    let mut made = Vec::new();
    for (world, found) in worlds.iter().zip(found) {
        made.push(complete(*world, registry, jobs, seeds, store, found)?);
    }
    let of = |(index, job): (usize, &Job)| {
        let runs = [0, 1].map(|world| made[world][index].as_slice());
        Gap::of(&job.plan, job.changes.clone(), job.command.clone(), worlds.map(World::name), runs)
    };
    Ok(Gaps { gaps: jobs.iter().enumerate().map(of).collect() })
}

/// What of these runs is missing, in words.
fn ahead(world: &dyn World, jobs: &[Job], found: &[Vec<Option<GapRun>>]) -> String {
    let (all, missing) = (found.iter().flatten().count(), found.iter().flatten().filter(|run| run.is_none()).count());
    let there = if missing < all { format!(", {} there already", all - missing) } else { String::new() };
    let takes = match world.real_time() && missing > 0 {
        true => format!("; the other {missing} take {} in real time", time(missing_seconds(jobs, found))),
        false => String::new(),
    };
    let takes = if there.is_empty() { takes.replacen("the other", "all", 1) } else { takes };
    format!("{}: {all} runs{there}{takes}", world.name())
}

fn missing_seconds(jobs: &[Job], found: &[Vec<Option<GapRun>>]) -> f64 {
    let of = |(job, found): (&Job, &Vec<Option<GapRun>>)| {
        job.plan.duration.as_secs_f64() * found.iter().filter(|run| run.is_none()).count() as f64
    };
    jobs.iter().zip(found).map(of).sum()
}

/// Makes what was not found, one run after the other.
fn complete(
    world: &dyn World,
    registry: &Registry,
    jobs: &[Job],
    seeds: &[u64],
    store: Option<&Store>,
    found: Vec<Vec<Option<GapRun>>>,
) -> Result<Vec<Vec<GapRun>>> {
    let progress = Progress::new(missing_seconds(jobs, &found) as u64, world);
    let began = Instant::now();
    let clock = || began.elapsed().as_secs_f64();
    let ticked = || progress.tick();
    let runner = Runner { world, registry, clock: &clock, ticked: &ticked };
    let made = |job: &Job, seed: u64| -> Result<GapRun> {
        let made = GapRun::made(&runner, &job.plan, seed, store.map(|store| (store, &job.inputs)));
        let run = made.map_err(not_kept)?;
        if world.real_time() {
            let disturbed = run.machine().and_then(|m| m.disturbed.as_ref());
            let how = disturbed.map_or("done".to_owned(), |why| format!("disturbed: {why}"));
            progress.say(&format!("{}: {}, seed {seed}: {how}", world.name(), job.plan.id));
        }
        Ok(run)
    };
    let each = |(job, found): (&Job, Vec<Option<GapRun>>)| {
        let runs = seeds.iter().zip(found);
        runs.map(|(seed, found)| found.map_or_else(|| made(job, *seed), Ok)).collect::<Result<Vec<_>>>()
    };
    jobs.iter().zip(found).map(each).collect()
}

/// A gap for people.
fn describe(gap: &Gap) -> String {
    let [first, second] = &gap.worlds;
    let case = if gap.case.is_empty() { String::new() } else { format!("  [{}]", gap.case) };
    let mut text = format!("{}{case}  {}\n", gap.scenario, gap.title);
    let under = [vec![gaps::controllers(gap)], gap.changes.clone()].concat();
    text += &format!("  {}\n", under.join(", "));
    text += &match gap.seeds[..] {
        [seed] => format!("  one run in each world, seed {seed}; difference: {second} less {first}\n\n"),
        _ => format!(
            "  {} runs in each world, the same seeds from {}; mean ± half the 95 % interval; difference: {second} less \
             {first}, seed by seed\n\n",
            gap.seeds.len(),
            gap.seeds[0]
        ),
    };
    text += &table(gap);
    let lines = |lines: Vec<String>| lines.iter().map(|line| format!("  {line}\n")).collect::<String>();
    text += &format!("\n{}\n", lines(gaps::distance(gap).into_iter().chain(gaps::between_seeds(gap)).collect()));
    text += &lines(gap.verdicts.iter().map(gaps::verdict).collect());
    text + &lines(gaps::machines(gap))
}

fn table(gap: &Gap) -> String {
    let [first, second] = &gap.worlds;
    let mut table = Table::new(&["", first, second, "difference", "± 95 %", ""], 1).with_prose();
    let (rows, hidden) = gaps::rows(gap);
    for (measured, row) in rows {
        let told = measured.difference.as_ref().map_or("", told);
        table.row([row.to_vec(), vec![told.to_owned()]].concat());
    }
    match hidden {
        0 => table.render(),
        more => format!("{}  and {more} more flows: --json\n", table.render()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use paceline_lab::machine::{Machine, Percentiles};
    use paceline_lab::rows::{Row, RowSink};
    use paceline_lab::store::Manifest;
    use paceline_lab::world::{Outcome, WorldError};
    use paceline_units::TimeDelta;
    use std::fs;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// The simulator with packets that wait longer, on a machine that is sometimes disturbed; it counts its runs.
    #[derive(Default)]
    struct Path40ms {
        runs: AtomicUsize,
    }

    struct Longer<'a>(&'a mut dyn RowSink);

    impl RowSink for Longer<'_> {
        fn row(&mut self, row: &Row) {
            let mut row = *row;
            if let Row::Crossed { hop: 0, waited, .. } = &mut row {
                *waited += TimeDelta::from_millis(40);
            }
            self.0.row(&row);
        }
        fn wants_signals(&self) -> bool {
            self.0.wants_signals()
        }
    }

    impl World for Path40ms {
        fn name(&self) -> &'static str {
            "path"
        }
        fn real_time(&self) -> bool {
            true
        }
        fn run(
            &self,
            plan: &Plan,
            registry: &Registry,
            seed: u64,
            rows: &mut dyn RowSink,
        ) -> std::result::Result<Outcome, WorldError> {
            self.runs.fetch_add(1, Ordering::SeqCst);
            let lateness = Percentiles { p50: 30.0, p99: 90.0, max: 700.0 };
            let machine = Machine {
                idle: 0.5 + seed as f64 / 100.0,
                others: 0.125,
                late_us: lateness,
                wake_us: lateness,
                disturbed: (seed == 2).then(|| "another process was busy".to_owned()),
                attempts: seed as u32,
            };
            let outcome = Simulator.run(plan, registry, seed, &mut Longer(rows))?;
            Ok(Outcome { machine: Some(machine), ..outcome })
        }
    }

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    const SCENARIOS: [&str; 6] = ["gap", "mmsys16/table1", "mmsys16/table3", "--set", "duration=5s", "--repeats"];

    fn parsed(repeats: &str) -> Arguments {
        Line::parse_from(SCENARIOS.iter().chain([&repeats])).arguments
    }

    /// What the command makes, and in how many runs of the path.
    fn made(repeats: &str, dir: Option<&Path>) -> (Gaps, usize) {
        let (registry, path) = (Registry::standard(), Path40ms::default());
        let arguments = parsed(repeats);
        let (jobs, seeds) = (jobs(&arguments, &registry).unwrap(), seeds(&arguments));
        let store = dir.map(|dir| Store::create(dir).unwrap());
        let gaps = compared([&Simulator, &path], &registry, &jobs, &seeds, store.as_ref()).unwrap();
        (gaps, path.runs.load(Ordering::SeqCst))
    }

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("paceline-gap-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        folder
    }

    #[test]
    fn a_gap_that_was_cut_goes_on_to_the_same_document() {
        let (whole, runs) = made("3", None);
        // Seed 2 is disturbed whatever is done, and made three times: of each scenario 1 + 3 + 1.
        assert_eq!((whole.gaps.len(), runs), (2, 10));
        assert_ne!(whole.gaps[0].measured, whole.gaps[1].measured);
        let dir = folder("cut");
        let (first, runs) = made("1", Some(&dir));
        assert_eq!((runs, first.gaps[0].seeds.as_slice()), (2, &[1][..]));
        // Killed while it wrote the second run, and before its last run was listed.
        let left = dir.join(format!("runs/mmsys16_table1-gcc-2016-path-seed2.tmp-{}-0", u32::MAX));
        fs::create_dir(&left).unwrap();
        fs::write(left.join("packets.parquet"), b"PAR1").unwrap();
        assert_eq!(Manifest::read(&dir).unwrap().runs.len(), 4);
        let (going_on, runs) = made("3", Some(&dir));
        assert!(runs == 8 && going_on == whole && !left.exists(), "{runs} runs");
        assert_eq!(Manifest::read(&dir).unwrap().runs.len(), 12);
        let (again, runs) = made("3", Some(&dir));
        assert!(runs == 0 && again == whole, "{runs} runs");
        // A run that is gone, of either world, is made again; so is one of another text.
        fs::remove_dir_all(dir.join("runs/mmsys16_table1-gcc-2016-path-seed3")).unwrap();
        let about = dir.join("runs/mmsys16_table1-gcc-2016-path-seed1/about.json");
        let text = fs::read_to_string(&about).unwrap();
        fs::write(&about, text.replace("\"scenario_text\": \"", "\"scenario_text\": \"# ")).unwrap();
        let (again, runs) = made("3", Some(&dir));
        assert!(runs == 2 && again == whole, "{runs} runs");
        // The page has both worlds, by name, and how far they lie apart.
        write_gaps(&dir, &again).unwrap();
        let page = paceline_report::page::render(&paceline_report::Results::open(&dir).unwrap()).unwrap();
        let distance = gaps::distance(&whole.gaps[0]).unwrap();
        for wanted in ["The gap between sim and path", "\"kind\":\"video · sim\"", "video · path", &distance] {
            assert!(page.contains(wanted), "no `{wanted}`");
        }
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn people_read_both_worlds_their_difference_and_the_machine() {
        let (gaps, _) = made("2", None);
        let text = describe(&gaps.gaps[0]);
        for wanted in [
            "2 runs in each world, the same seeds from 1",
            "difference: path less sim, seed by seed",
            "utilization of forward",
            "queue_ms.p95 of forward",
            "rtt_ms.p99 of video",
            "within  utilization of forward: 0.0 points, wanted ± 5.0 points\n",
            "BEYOND  queue_ms.p95 of forward: +40.0 ms, wanted ± 30.0 ms\n",
            "Kolmogorov-Smirnov distance of queuing delays at forward, path from sim: 1.000, largest at ",
            "path: the machine was idle for 51.0 % to 52.0 %, other processes took up to 12.5 %; 99 % of packets left the \
             link within 90 µs of their time",
            "path, seed 2 was disturbed, attempts: 3; another process was busy\n",
        ] {
            assert!(text.contains(wanted), "no `{wanted}` in:\n{text}");
        }
        assert!(!text.contains("share of video") && !text.contains("seed 1 ") && !text.contains("sim: the machine"));
        assert!(!gaps.gaps[0].is_within());
    }

    #[test]
    fn what_is_ahead_is_told_in_real_time() {
        let (registry, path) = (Registry::standard(), Path40ms::default());
        let jobs = jobs(&parsed("3"), &registry).unwrap();
        let mut found = vec![vec![None; 3]; 2];
        assert_eq!(ahead(&path, &jobs, &found), "path: 6 runs; all 6 take 30 s in real time");
        assert_eq!(ahead(&Simulator, &jobs, &found), "sim: 6 runs");
        let runner = Runner { world: &path, registry: &registry, clock: &|| 0.0, ticked: &|| () };
        found[1][2] = Some(GapRun::made(&runner, &jobs[1].plan, 3, None).unwrap());
        let told = "path: 6 runs, 1 there already; the other 5 take 25 s in real time";
        assert_eq!(ahead(&path, &jobs, &found), told);
        for (seconds, told) in [(0.0, "0 s"), (59.2, "1 min 0 s"), (600.0, "10 min 0 s"), (7260.0, "2 h 1 min")] {
            assert_eq!(time(seconds), told);
        }
    }

    #[test]
    fn what_is_asked_for_twice_is_refused() {
        let registry = Registry::standard();
        let line = ["gap", "mmsys16/table1", "mmsys16/table1"];
        let problem = jobs(&Line::parse_from(line).arguments, &registry).err().unwrap();
        assert_eq!(problem.to_string(), "`mmsys16/table1` is asked for twice");
        let line = ["gap", "mmsys16/table1", "--controller", "gcc-2016,fixed"];
        assert_eq!(jobs(&Line::parse_from(line).arguments, &registry).unwrap().len(), 2);
    }
}
