// SPDX-License-Identifier: MIT OR Apache-2.0
//! `paceline validate`.

use super::compare::direction;
use super::options::{ControllerOptions, Names, scenarios, seeds_text};
use super::report::finish_folder;
use super::{RunOptions, Selection, missing_text, with_progress};
use crate::errors::cached_run_error;
use crate::external;
use crate::interrupt::{self, Continues};
use crate::output;
use crate::table::Table;
use crate::worlds;
use miette::{IntoDiagnostic, Result, miette};
use paceline::Registry;
use paceline_lab::report::check_text::CheckLine;
use paceline_lab::report::validation_text;
use paceline_lab::results::{RunInputs, Store, Validation, Validations, Verdict};
use paceline_lab::storage::Inputs;
use paceline_lab::validate::{ValidationRun, validation_of};
use paceline_netsim::sim::Simulator;
use paceline_netsim::world::World;
use paceline_scenario::{Catalogue, Scenario};
use std::path::PathBuf;
use std::process::ExitCode;

/// Arguments of `validate`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Scenario ids (see `paceline list scenarios`) or TOML files.
    #[arg(required = true, value_name = "SCENARIO", value_parser = Names(scenarios), hide_possible_values = true)]
    scenarios: Vec<String>,
    #[command(flatten)]
    options: RunOptions,
    #[command(flatten)]
    controllers: ControllerOptions,
    /// Stores every finished run in this folder, with its events. Stored runs of the same scenario are not repeated.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Runs in each world if the arguments do not say.
const REPEATS: u32 = 3;

/// A scenario that is run in both worlds.
struct Job {
    scenario: Scenario,
    inputs: Inputs,
    manifest: RunInputs,
}

/// Runs each scenario in both worlds and prints the differences.
pub fn validate(arguments: &Arguments) -> Result<ExitCode> {
    let options = &arguments.options;
    let other = worlds::open(&options.world, None)?;
    if other.name() == Simulator.name() {
        let help = "use --world testbed";
        return Err(miette!(help = help, "`validate` compares the simulator with another world, not with itself"));
    }
    let registry = registry(arguments)?;
    let (jobs, seeds) = (jobs(arguments, &registry)?, options.seeds.list(REPEATS)?);
    let store = arguments.out.as_deref().map(Store::create).transpose().into_diagnostic()?;
    interrupt::announce(arguments.out.as_deref(), Continues::Again);
    let found = compare_worlds([&Simulator, &*other], &registry, &jobs, &seeds, store.as_ref())?;
    let store_each = |store: &Store| found.validations.iter().try_for_each(|validation| store.validation(validation));
    let stored = store.as_ref().map_or(Ok(()), store_each).into_diagnostic();
    let text = || found.validations.iter().map(describe).collect::<Vec<_>>().join("\n");
    output::print_results(options.json, &found, text)?;
    stored?;
    finish_folder(arguments.out.as_deref())?;
    output::exit_code(found.validations.iter().all(|validation| validation.verdict() != Verdict::Fails))
}

/// Returns the controllers of the library, and the external ones that the arguments name; with `--allow-exec` also those of the
/// scenarios.
fn registry(arguments: &Arguments) -> Result<Registry> {
    let registry = external::add(Registry::standard(), &arguments.controllers.names, &arguments.options.changes(), "")?;
    let files: std::result::Result<Vec<_>, _> = arguments.scenarios.iter().map(|name| Catalogue.find(name)).collect();
    external::add_of_files(registry, arguments.options.allow_exec, &files?)
}

/// Loads each scenario under each controller.
fn jobs(arguments: &Arguments, registry: &Registry) -> Result<Vec<Job>> {
    let controllers = arguments.controllers.without_oracles(registry)?;
    let seeds = arguments.options.seeds.list(REPEATS)?;
    let mut jobs: Vec<Job> = Vec::new();
    for scenario in &arguments.scenarios {
        let selection = Selection { scenario: scenario.clone(), options: arguments.options.clone() };
        for controller in &controllers {
            let scenario = selection.load(controller.as_deref(), registry)?;
            let controls = |s: &Scenario| s.plan.flows.iter().map(|f| f.control().to_owned()).collect::<Vec<_>>();
            let is_same =
                |job: &Job| job.scenario.plan.id == scenario.plan.id && controls(&job.scenario) == controls(&scenario);
            if jobs.iter().any(is_same) {
                let help = "name each scenario once; scenarios in files need different ids";
                return Err(miette!(help = help, "`{}` is given twice", scenario.plan.id));
            }
            let inputs = selection.inputs("validate", controller.as_deref(), &seeds)?;
            jobs.push(Job { manifest: inputs.manifest(&scenario, registry), scenario, inputs });
        }
    }
    Ok(jobs)
}

/// Makes the runs that are not stored, in one world after the other, and compares the worlds.
fn compare_worlds(
    worlds: [&dyn World; 2],
    registry: &Registry,
    jobs: &[Job],
    seeds: &[u64],
    store: Option<&Store>,
) -> Result<Validations> {
    let stored = |world: &dyn World| -> Result<Vec<Vec<Option<ValidationRun>>>> {
        let run = |job: &Job, seed: &u64| match store {
            None => Ok(None),
            Some(store) => {
                paceline_lab::run_cache::find((store, &job.manifest), registry, world.name(), &job.scenario, *seed)
            }
        };
        let all = jobs.iter().map(|job| seeds.iter().map(|seed| run(job, seed)).collect());
        all.collect::<std::result::Result<_, _>>().into_diagnostic()
    };
    // Prints what is missing in both worlds before the first run starts.
    let stored = [stored(worlds[0])?, stored(worlds[1])?];
    for (world, stored) in worlds.iter().zip(&stored) {
        let (runs, missing) = (jobs.len() * seeds.len(), stored.iter().flatten().filter(|run| run.is_none()).count());
        let seconds = world.real_time().then(|| missing_seconds(jobs, stored));
        eprintln!("{}", missing_text(world.name(), runs, missing, seconds));
    }
    let mut made = Vec::new();
    for (world, stored) in worlds.iter().zip(stored) {
        made.push(complete(*world, registry, jobs, seeds, store, stored)?);
    }
    let validation = |(index, job): (usize, &Job)| {
        let runs = [0, 1].map(|world| made[world][index].as_slice());
        let Inputs { changes, command, .. } = job.inputs.clone();
        validation_of(&job.scenario, changes, command, worlds.map(World::name), runs)
    };
    Ok(Validations { validations: jobs.iter().enumerate().map(validation).collect() })
}

fn missing_seconds(jobs: &[Job], stored: &[Vec<Option<ValidationRun>>]) -> f64 {
    let of_job = |(job, stored): (&Job, &Vec<Option<ValidationRun>>)| {
        job.scenario.plan.duration.as_secs_f64() * stored.iter().filter(|run| run.is_none()).count() as f64
    };
    jobs.iter().zip(stored).map(of_job).sum()
}

/// Makes the runs that are not stored, one after the other.
fn complete(
    world: &dyn World,
    registry: &Registry,
    jobs: &[Job],
    seeds: &[u64],
    store: Option<&Store>,
    stored: Vec<Vec<Option<ValidationRun>>>,
) -> Result<Vec<Vec<ValidationRun>>> {
    with_progress(world, registry, missing_seconds(jobs, &stored), |runner, progress| {
        let make = |job: &Job, seed: u64| -> Result<ValidationRun> {
            let run: std::result::Result<ValidationRun, _> =
                paceline_lab::run_cache::make(runner, &job.scenario, seed, store.map(|store| (store, &job.manifest)));
            let run = run.map_err(cached_run_error)?;
            if world.real_time() {
                let disturbed = run.machine().and_then(|m| m.disturbed.as_ref());
                let outcome = disturbed.map_or("done".to_owned(), |why| format!("disturbed: {why}"));
                progress.println(&format!("{}: {}, seed {seed}: {outcome}", world.name(), job.scenario.plan.id));
            }
            Ok(run)
        };
        let each = jobs.iter().zip(stored).map(|(job, stored)| {
            let runs = seeds.iter().zip(stored);
            runs.map(|(seed, run)| run.map_or_else(|| make(job, *seed), Ok)).collect::<Result<Vec<_>>>()
        });
        each.collect()
    })
}

/// Describes the difference between the worlds in one scenario.
fn describe(validation: &Validation) -> String {
    let [first, second] = &validation.worlds;
    let case = if validation.case.is_empty() { String::new() } else { format!("  [{}]", validation.case) };
    let heading = format!("{}{case}  {}", output::bold(&validation.scenario), validation.title);
    let mut text = format!("{}\n", output::wrap(&heading).trim_start());
    let under = [vec![validation_text::controllers(validation)], validation.changes.clone()].concat();
    text += &format!("{}\n", output::wrap(&under.join(", ")));
    let runs = match validation.seeds[..] {
        [seed] => format!("one run in each world, seed {seed}; difference: {second} minus {first}"),
        _ => format!(
            "{} runs in each world, {}; mean ± half the 95 % interval; difference: {second} minus \
             {first}, seed by seed",
            validation.seeds.len(),
            seeds_text(&validation.seeds)
        ),
    };
    text += &format!("{}\n\n", output::wrap(&runs));
    text += &table(validation);
    let lines = |lines: Vec<String>| lines.iter().map(|line| output::wrap(line) + "\n").collect::<String>();
    text += &format!(
        "\n{}\n",
        lines(
            validation_text::distance(validation)
                .into_iter()
                .chain(validation_text::between_seeds(validation))
                .collect()
        )
    );
    text +=
        &lines(validation.verdicts.iter().map(|check| output::check_line(&CheckLine::of_validation(check))).collect());
    text + &lines(validation_text::machines(validation))
}

fn table(validation: &Validation) -> String {
    let [first, second] = &validation.worlds;
    let mut table = Table::new(["", first, second, "difference", "± 95 %", ""], 1).with_text_last();
    let (rows, hidden) = validation_text::rows(validation);
    for (measured, row) in rows {
        let direction = measured.difference.as_ref().map_or("", direction);
        table.row([row.to_vec(), vec![direction.to_owned()]].concat());
    }
    match hidden {
        0 => table.render(),
        more => format!("{}  … and {more} more flows; --json has them all\n", table.render()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::altered_simulator::AlteredSimulator;
    use clap::Parser;
    use paceline_netsim::records::{HostStats, Percentiles};
    use paceline_units::TimeDelta;
    use std::fs;
    use std::path::Path;

    /// The simulator with 40 ms more queuing delay, on a machine that disturbs seed 2.
    fn path_with_40_ms() -> AlteredSimulator {
        let machine = |seed| {
            let late = Percentiles { p50: 30.0, p99: 90.0, max: 700.0 };
            Some(HostStats {
                idle: 0.5 + seed as f64 / 100.0,
                others: 0.125,
                late_us: late,
                wake_us: late,
                disturbed: (seed == 2).then(|| "another process was busy".to_owned()),
                attempts: seed as u32,
            })
        };
        AlteredSimulator { longer: TimeDelta::from_millis(40), machine, ..AlteredSimulator::named("path") }
    }

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    /// Without the start-up probe, which fills the queue for most of 5 s.
    fn scenarios(repeats: &str) -> Arguments {
        parse(&format!(
            "validate mmsys16/table1 mmsys16/table3 --set duration=5s --set media.config.start_probes=0 --set \
             media.start_rate=900kbps --repeats {repeats}"
        ))
    }

    fn parse(line: &str) -> Arguments {
        Line::parse_from(line.split(' ')).arguments
    }

    /// Returns the result of the command, and how many runs were made on the path.
    fn run(repeats: &str, dir: Option<&Path>) -> (Validations, usize) {
        let (registry, path) = (Registry::standard(), path_with_40_ms());
        let arguments = scenarios(repeats);
        let (jobs, seeds) = (jobs(&arguments, &registry).unwrap(), arguments.options.seeds.list(REPEATS).unwrap());
        let store = dir.map(|dir| Store::create(dir).unwrap());
        let validations = compare_worlds([&Simulator, &path], &registry, &jobs, &seeds, store.as_ref()).unwrap();
        (validations, path.run_count())
    }

    /// A controller on the command line loads its library; one in a file does so with the option only.
    #[cfg(unix)]
    #[test]
    fn own_controllers_are_loaded_where_they_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        let program = dir.join("program");
        fs::write(&program, "echo '{\"protocol\":1}'").unwrap();
        let name = format!("exec:sh {}", program.display());
        let file = dir.join("own.toml");
        let text = format!(
            "id = \"my/own\"\ntitle = \"Own\"\nduration = \"5s\"\n[path.forward]\ncapacity = \"1Mbps\"\n[[flow]]\n\
             id = \"media\"\ncontroller = \"{name}\"\n"
        );
        fs::write(&file, text).unwrap();
        let has = |words: &[&str]| {
            let arguments = Line::parse_from([&["validate"], words].concat()).arguments;
            registry(&arguments).unwrap().get(&name).is_some()
        };
        assert!(has(&["mmsys16/table1", "--controllers", &format!("fixed,{name}")]));
        assert!(!has(&[&file.display().to_string()]));
        assert!(has(&[&file.display().to_string(), "--allow-exec"]));
    }

    #[test]
    fn resumes_to_the_same_document() {
        let (whole, runs) = run("3", None);
        // Seed 2 is disturbed in each of three attempts: 1 + 3 + 1 runs of each scenario.
        assert_eq!((whole.validations.len(), runs), (2, 10));
        assert_ne!(whole.validations[0].measured, whole.validations[1].measured);
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        let (first, runs) = run("1", Some(dir));
        assert_eq!((runs, first.validations[0].seeds.as_slice()), (2, &[1][..]));
        // Killed while it wrote the second run.
        let left = dir.join("runs/mmsys16_table1-gcc-2016-path-seed2.tmp-1-0");
        fs::create_dir_all(left.join("data")).unwrap();
        fs::write(left.join("lock"), "").unwrap();
        fs::write(left.join("data/packets.parquet"), b"PAR1").unwrap();
        assert_eq!(Store::read(dir).unwrap().runs.len(), 4);
        let (resumed, runs) = run("3", Some(dir));
        assert!(runs == 8 && resumed == whole && !left.exists(), "{runs} runs");
        assert_eq!(Store::read(dir).unwrap().runs.len(), 12);
        let (again, runs) = run("3", Some(dir));
        assert!(runs == 0 && again == whole, "{runs} runs");
        // A deleted run is repeated.
        fs::remove_dir_all(dir.join("runs/mmsys16_table1-gcc-2016-path-seed3")).unwrap();
        let (again, runs) = run("3", Some(dir));
        assert!(runs == 1 && again == whole, "{runs} runs");
        // The page names both worlds and states their distance.
        let store = Store::create(dir).unwrap();
        again.validations.iter().for_each(|validation| store.validation(validation).unwrap());
        let page = paceline_lab::report::page::render(
            &paceline_lab::report::Results::open(dir).unwrap(),
            paceline_lab::metrics::catalogue(),
        )
        .unwrap();
        let distance = validation_text::distance(&whole.validations[0]).unwrap();
        for wanted in ["Validation: sim and path", "\"kind\":\"video · sim\"", "video · path", &distance] {
            assert!(page.contains(wanted), "no `{wanted}`");
        }
    }

    #[test]
    fn text_shows_both_worlds_their_difference_and_the_machine() {
        let (validations, _) = run("2", None);
        let text = anstream::adapter::strip_str(&describe(&validations.validations[0])).to_string();
        assert!(text.lines().all(|line| textwrap::core::display_width(line) <= output::width()), "{text}");
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for wanted in [
            "2 runs in each world, seeds 1 to 2",
            "difference: path minus sim, seed by seed",
            "utilization of forward",
            "queue_ms.p95 of forward",
            "rtt_ms.p99 of video",
            "utilization of forward: 0.0 points ± 0.0 points, allowed ± 5.0 points: holds",
            "queue_ms.p95 of forward: +40.0 ms ± 0.0 ms, allowed ± 30.0 ms: fails",
            "Kolmogorov-Smirnov distance of queuing delays at forward, path from sim: 1.000, largest at ",
            "path: the machine was idle for 51.0 % to 52.0 %, other processes took up to 12.5 %; 99 % of packets left the \
             link within 90 µs of their time",
            "path, seed 2 was disturbed, attempts: 3; another process was busy",
        ] {
            assert!(text.contains(wanted), "no `{wanted}` in:\n{text}");
        }
        assert!(!text.contains("share of video") && !text.contains("seed 1 ") && !text.contains("sim: the machine"));
        assert_eq!(validations.validations[0].verdict(), Verdict::Fails);
    }

    #[test]
    fn counts_the_seconds_of_missing_runs() {
        let jobs = jobs(&scenarios("3"), &Registry::standard()).unwrap();
        assert_eq!(missing_seconds(&jobs, &[vec![None; 3], vec![None; 2]]), 25.0);
    }

    #[test]
    fn rejects_a_scenario_given_twice() {
        let registry = Registry::standard();
        let problem = jobs(&parse("validate mmsys16/table1 mmsys16/table1"), &registry).err().unwrap();
        assert_eq!(problem.to_string(), "`mmsys16/table1` is given twice");
        let controllers = parse("validate mmsys16/table1 --controllers gcc-2016,fixed");
        assert_eq!(jobs(&controllers, &registry).unwrap().len(), 2);
    }
}
