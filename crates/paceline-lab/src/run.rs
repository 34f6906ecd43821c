// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs: one or several of a scenario, on all threads, and their summary.

use crate::judge::judge;
use crate::metrics::{Collector, METRICS};
use core::any::Any;
use paceline::Registry;
use paceline_netsim::records::{EventObserver, RunHeader, Summary};
use paceline_netsim::sim::Simulator;
use paceline_netsim::world::{World, WorldError};
use paceline_scenario::{IncludeIf, Scenario};
use paceline_units::{Time, TimeDelta};
use rayon::prelude::*;

pub use crate::run_result::{Expectation, RunResult, RunsResult, windows};

/// Everything that runs need besides their scenario.
pub struct Runner<'a> {
    /// Where they run.
    pub world: &'a dyn World,
    /// The controllers that they may use.
    pub registry: &'a Registry,
    /// Returns the seconds that have passed on any clock. This crate reads none itself.
    pub clock: &'a (dyn Fn() -> f64 + Sync),
    /// Called when each second of each run is over.
    pub ticked: &'a (dyn Fn() + Sync),
}

/// How often a run is made at most, if load on the host disturbs it.
pub const ATTEMPTS: u32 = 3;

impl<'a> Runner<'a> {
    /// Creates a runner of the packet simulator that measures no time and shows no progress.
    pub fn simulator(registry: &'a Registry) -> Self {
        Self::new(&Simulator, registry)
    }

    /// Creates a runner of this world that measures no time and shows no progress.
    pub fn new(world: &'a dyn World, registry: &'a Registry) -> Self {
        Self { world, registry, clock: &|| 0.0, ticked: &|| () }
    }

    /// Makes one run. Its events also go to `observer`.
    pub fn run(
        &self,
        scenario: &Scenario,
        seed: u64,
        observer: Option<&mut dyn EventObserver>,
    ) -> Result<RunResult, WorldError> {
        self.run_to(scenario, seed, observer, &|| scenario.plan.duration)
    }

    /// Makes one run that may be ended early. `lasted` is called when it is over and returns how long it was.
    pub fn run_to(
        &self,
        scenario: &Scenario,
        seed: u64,
        observer: Option<&mut dyn EventObserver>,
        lasted: &dyn Fn() -> TimeDelta,
    ) -> Result<RunResult, WorldError> {
        let collector = Collector::new(scenario, &windows(scenario), self.ticked);
        self.collect(scenario, seed, collector, observer, lasted)
    }

    /// Makes one run and measures only what the scenario requests: its windows have values, the whole run has none.
    pub(crate) fn run_requested(&self, scenario: &Scenario, seed: u64) -> Result<RunResult, WorldError> {
        let collector = Collector::of_requested(scenario, &windows(scenario), self.ticked);
        self.collect(scenario, seed, collector, None, &|| scenario.plan.duration)
    }

    fn collect(
        &self,
        scenario: &Scenario,
        seed: u64,
        mut collector: Collector<'_>,
        observer: Option<&mut dyn EventObserver>,
        lasted: &dyn Fn() -> TimeDelta,
    ) -> Result<RunResult, WorldError> {
        let began = (self.clock)();
        let (plan, registry) = (&scenario.plan, self.registry);
        let simulator = (self.world as &dyn Any).downcast_ref::<Simulator>();
        let outcome = match (observer, simulator) {
            (None, Some(simulator)) => simulator.simulate(plan, registry, seed, &mut collector)?,
            (None, None) => self.world.run(plan, registry, seed, &mut collector)?,
            (Some(observer), _) => self.world.run(plan, registry, seed, &mut (&mut collector, observer))?,
        };
        let lasted = lasted();
        let (results, seconds) = collector.finish_at(Time::ZERO + lasted);
        let mut results = results.into_iter();
        let whole = results.next().expect("the whole run is always measured");
        Ok(RunResult {
            world: self.world.name().to_owned(),
            seed,
            duration_s: lasted.as_secs_f64(),
            trace_hash: format!("{:016x}", outcome.trace_hash),
            wall_s: (self.clock)() - began,
            events: outcome.events,
            machine: outcome.machine,
            programs: outcome.programs,
            whole,
            windows: results.collect(),
            seconds,
            delivered: outcome.delivered,
        })
    }

    /// Calls `make` until load on the host did not disturb its run, at most [`ATTEMPTS`] times; in virtual time, once.
    pub fn retry_if_disturbed<T, E>(
        &self,
        mut make: impl FnMut() -> Result<(RunResult, T), E>,
    ) -> Result<(RunResult, T), E> {
        let mut attempt = 1;
        loop {
            let (mut result, made) = make()?;
            let Some(machine) = &mut result.machine else { return Ok((result, made)) };
            machine.attempts = attempt;
            if machine.disturbed.is_none() || attempt == ATTEMPTS {
                return Ok((result, made));
            }
            attempt += 1;
        }
    }

    /// Runs with these seeds, in parallel. The result does not depend on the number of threads.
    pub fn run_all(&self, scenario: &Scenario, seeds: &[u64]) -> Result<RunsResult, WorldError> {
        let once = |seed: &u64| Ok(self.retry_if_disturbed(|| Ok((self.run(scenario, *seed, None)?, ())))?.0);
        let all = || seeds.par_iter().map(once).collect::<Result<Vec<_>, _>>();
        Ok(summarise(scenario, self.on_threads(all)?))
    }

    /// Runs with these seeds, in parallel, each with an observer of its own, which `observer` makes. Returns the observers in the
    /// order of the seeds.
    pub fn run_all_observed<O: EventObserver + Send>(
        &self,
        scenario: &Scenario,
        seeds: &[u64],
        observer: impl Fn(&RunHeader) -> O + Sync,
    ) -> Result<(RunsResult, Vec<O>), WorldError> {
        let once = |seed: &u64| {
            let header = scenario.plan.header(self.registry, self.world.name(), *seed);
            self.retry_if_disturbed(|| {
                let mut observer = observer(&header);
                Ok((self.run(scenario, *seed, Some(&mut observer))?, observer))
            })
        };
        let all = || seeds.par_iter().map(once).collect::<Result<Vec<_>, WorldError>>();
        let (runs, observers) = self.on_threads(all)?.into_iter().unzip();
        Ok((summarise(scenario, runs), observers))
    }

    /// Calls `work`, which makes runs in parallel, on as many threads as the world allows: all, or one in real time.
    pub(crate) fn on_threads<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        match self.world.real_time() {
            false => work(),
            true => {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
                pool.expect("a thread can be started").install(work)
            }
        }
    }
}

pub fn summarise(scenario: &Scenario, runs: Vec<RunResult>) -> RunsResult {
    let each: Vec<_> = runs.iter().map(|r| r.metrics(scenario)).collect();
    let summary = METRICS.iter().filter_map(|m| {
        let values = each.iter().map(|metrics| metrics.get(m.id).copied()).collect::<Option<Vec<_>>>()?;
        Some((m.id.to_owned(), Summary::from_values(&values)?))
    });
    let summary = summary.collect();
    let (assertions, expectations) = judge(scenario, &runs);
    let windows = windows(scenario);
    let included = runs.iter().filter(|run| scenario.includes_run(|of| run.value(scenario, &windows, of))).count();
    let counts = scenario.include_if.as_ref().map(|condition| {
        let counts = condition.describe(included, runs.len());
        match IncludeIf::too_few(included, runs.len()) {
            false => format!("{counts}; bounds and published values are of these, all else is of every run"),
            true => format!("{counts}; fewer than half of the runs, so no bound passes"),
        }
    });
    RunsResult {
        scenario: scenario.plan.id.clone(),
        case: scenario.plan.case.clone(),
        runs,
        summary,
        assertions,
        expectations,
        notes: scenario.notes.iter().cloned().chain(counts).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_netsim::records::{HostStats, Percentiles};
    use paceline_scenario::{Changes, Origin, Quantity, Window, load};

    const WITH_CONDITION: &str = r#"
id = "test/keep"
title = "A rate that frames of random size move"
duration = "5s"
[path.forward]
capacity = "1Mbps"
[[flow]]
id = "video"
controller = "gcc-2016"
[measure]
include_if = { metric = "utilization", at_least = 0 }
[[assert]]
id = "some"
metric = "utilization"
bounds = [0, 1]
[[expect]]
metric = "utilization"
published = 0.5
"#;

    fn scenario(text: &str) -> Scenario {
        let registry = Registry::standard();
        load(&Origin::from_text("keep.toml", text), &Changes::default(), crate::registries(&registry)).unwrap()
    }

    #[test]
    fn only_runs_that_count_are_judged() {
        let registry = Registry::standard();
        let scenario = scenario(WITH_CONDITION);
        let mut by_value = Runner::simulator(&registry).run_all(&scenario, &[1, 2, 3, 4]).unwrap().runs;
        let value = |run: &RunResult| run.metrics(&scenario)["utilization"];
        by_value.sort_by(|a, b| value(b).total_cmp(&value(a)));
        assert!(value(&by_value[0]) > value(&by_value[3]), "the seeds differ");
        for kept in 1..=4 {
            let mut scenario = scenario.clone();
            scenario.include_if.as_mut().unwrap().at_least = value(&by_value[kept - 1]);
            let result = summarise(&scenario, by_value.clone());
            let mean = by_value[..kept].iter().map(value).sum::<f64>() / kept as f64;
            let (bound, expectation) = (&result.assertions[0], &result.expectations[0]);
            assert!((bound.measured.unwrap() - mean).abs() < 1e-12, "{bound:?}");
            assert_eq!((bound.holds, expectation.measured.unwrap().n), (kept >= 2, kept));
            assert_eq!(result.summary["utilization"].n, 4, "the summary is of every run");
            let note = result.notes.last().unwrap();
            assert!(note.starts_with(&format!("{kept} of 4 runs included, those with utilization of ")), "{note}");
            assert_eq!(note.contains("fewer than half"), kept < 2, "{note}");
        }
    }

    #[test]
    fn requested_values_equal_those_of_a_whole_run() {
        let registry = Registry::standard();
        let runner = Runner::simulator(&registry);
        let scenario = scenario(WITH_CONDITION);
        let mut with_values = 0;
        for metric in METRICS {
            let mut scenario = scenario.clone();
            (scenario.expects, scenario.asserts, scenario.include_if) = (Vec::new(), Vec::new(), None);
            for (key, (flow, from, to)) in [(None, 0, 5), (Some(0), 1, 4)].into_iter().enumerate() {
                let window = Window { from: Time::from_secs(from), to: Time::from_secs(to) };
                scenario.references.insert(key, Quantity::new(metric.id, flow, window));
            }
            let whole = runner.run(&scenario, 3, None).unwrap();
            let requested = runner.run_requested(&scenario, 3).unwrap();
            let values = |run: &RunResult| -> Vec<Option<f64>> {
                scenario.references.values().map(|of| run.value(&scenario, &windows(&scenario), of)).collect()
            };
            assert_eq!(values(&whole), values(&requested), "{}", metric.id);
            assert_eq!(whole.trace_hash, requested.trace_hash);
            with_values += values(&whole).iter().flatten().count();
        }
        assert!(with_values > METRICS.len(), "{with_values} values");
    }

    #[test]
    fn a_disturbed_run_is_retried_and_the_last_attempt_is_kept() {
        let registry = Registry::standard();
        let runner = Runner::simulator(&registry);
        let once = runner.run(&scenario(WITH_CONDITION), 1, None).unwrap();
        // How many runs are disturbed, how many are made, and whether the last is marked as disturbed.
        for (disturbed, made, is_marked) in [(0, 1, false), (1, 2, false), (2, 3, false), (3, 3, true), (9, 3, true)] {
            let mut count = 0;
            let make = || {
                count += 1;
                let why = (count <= disturbed).then(|| "busy".to_owned());
                let late = Percentiles::default();
                let machine =
                    HostStats { idle: 0.5, others: 0.0, late_us: late, wake_us: late, disturbed: why, attempts: 1 };
                Ok::<_, WorldError>((RunResult { machine: Some(machine), ..once.clone() }, count))
            };
            let (result, last) = runner.retry_if_disturbed(make).unwrap();
            let machine = result.machine.unwrap();
            assert_eq!((last, machine.attempts, machine.disturbed.is_some()), (made, made, is_marked));
        }
        let mut count = 0;
        let make = || {
            count += 1;
            Ok::<_, WorldError>((once.clone(), ()))
        };
        assert!(runner.retry_if_disturbed(make).unwrap().0.machine.is_none());
        assert_eq!(count, 1, "in virtual time, once");
    }

    #[test]
    fn a_scenario_without_condition_has_no_note() {
        let registry = Registry::standard();
        let scenario = scenario(&WITH_CONDITION.replace("include_if = {", "# {"));
        let result = Runner::simulator(&registry).run_all(&scenario, &[1, 2]).unwrap();
        assert_eq!((&result.notes, result.assertions[0].holds), (&scenario.notes, true));
    }
}
