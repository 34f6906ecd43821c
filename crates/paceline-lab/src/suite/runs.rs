// SPDX-License-Identifier: MIT OR Apache-2.0
//! The runs of suites, made here or in other processes.

use super::file::Suite;
use super::run::{Loaded, Subject, check, report};
use crate::done_runs::DoneRuns;
use crate::judge::{Experiment, ExperimentRuns, RunValues};
use crate::reproduce::{RunContext, RunJob, restore, run_jobs, traffic};
use crate::results::database::MeasuredRun;
use crate::results::{Looks, StoreError, SuitesReport};
use crate::run::Runner;
use paceline::Registry;
use paceline_netsim::world::WorldError;
use paceline_scenario::ScenarioError;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Largest number of seeds of a job.
const SEEDS_MAX: usize = 64;
/// Least number of jobs for each worker, so that the last ones do not take long.
const JOBS: usize = 16;

/// The tests of suites under subjects, and their finished runs.
pub struct SuiteRuns {
    suites: Vec<Suite>,
    subjects: Vec<Subject>,
    /// The seeds of each test; `None`: as many as its verdicts need.
    seeds: Option<Vec<u64>>,
    /// By suite, subject and scenario, in this order.
    experiments: Vec<Experiment>,
    /// Whether each experiment is run.
    applies: Vec<bool>,
    runs: Vec<ExperimentRuns>,
}

/// Runs that a worker makes: cases of one scenario under one subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuiteJob {
    pub suite: usize,
    pub subject: usize,
    pub scenario: usize,
    pub cases: Vec<usize>,
    pub seeds: Vec<u64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SuiteRun {
    pub case: usize,
    pub seed: u64,
    /// Hash over every decision of links and endpoints.
    pub trace_hash: String,
    pub values: Vec<Option<f64>>,
}

impl SuiteRuns {
    /// Loads each scenario under each subject. `seeds` are those of each test; `None`: as many from 1 as its verdicts need, up to the
    /// number of the suite.
    ///
    /// # Errors
    /// A scenario is invalid, has no bounds, or a bound has no reason.
    pub fn load(
        suites: Vec<Suite>,
        subjects: Vec<Subject>,
        seeds: Option<&[u64]>,
        registry: &Registry,
    ) -> Result<Self, ScenarioError> {
        let (mut experiments, mut applies, mut runs) = (Vec::new(), Vec::new(), Vec::new());
        for suite in &suites {
            for subject in &subjects {
                for origin in &suite.scenarios {
                    let Loaded { experiment, applies: is_run } = subject.load(origin, suite, registry)?;
                    check(origin, &experiment)?;
                    let looks = seeds.is_none().then(|| Looks::up_to(suite.repeats));
                    runs.push(ExperimentRuns { looks, ..ExperimentRuns::none(&experiment) });
                    experiments.push(experiment);
                    applies.push(is_run);
                }
            }
        }
        Ok(Self { suites, subjects, seeds: seeds.map(<[u64]>::to_vec), experiments, applies, runs })
    }

    pub fn suites(&self) -> &[Suite] {
        &self.suites
    }

    pub fn subjects(&self) -> &[Subject] {
        &self.subjects
    }

    /// Makes the runs that are missing, on all threads. With `done`, it reads those that were done before and stores each new one.
    /// `announce` receives the simulated seconds before they are run.
    pub fn run(
        &mut self,
        runner: &Runner<'_>,
        done: Option<&DoneRuns>,
        announce: &dyn Fn(f64),
    ) -> Result<(), WorldError> {
        loop {
            let missing = self.missing();
            if missing.is_empty() {
                return Ok(());
            }
            run_jobs(RunContext { runner, done, announce }, &self.experiments, missing, &mut self.runs)?;
        }
    }

    /// Reads the runs that were done before.
    pub fn restore(&mut self, world: &str, done: &DoneRuns) -> Result<(), StoreError> {
        loop {
            let missing = self.missing();
            let all = missing.len();
            // Restored runs may show that more are needed.
            if restore(world, &self.experiments, missing, &mut self.runs, done)?.len() == all {
                return Ok(());
            }
        }
    }

    /// Makes the first finished run of this subject again, and returns whether it is the same. For controllers of the caller, whose
    /// code the identity of a run does not cover.
    pub fn is_repeatable(&self, runner: &Runner<'_>, subject: usize) -> Result<bool, WorldError> {
        let own = self.places().enumerate().filter(|(_, (_, of, _))| *of == subject);
        let mut finished = own.flat_map(|(index, _)| {
            let cases = self.experiments[index].cases.iter().zip(self.runs[index].of(false));
            cases.filter_map(|(case, runs)| runs.first_key_value().map(|run| (case, run)))
        });
        let Some((case, (seed, stored))) = finished.next() else { return Ok(true) };
        Ok(runner.run_requested(case, *seed)?.trace_hash == stored.trace_hash)
    }

    /// Returns the missing runs as jobs for this number of workers, the longest first. The finished runs may show that more are needed:
    /// no run is missing when there are no jobs. `batch` is the number of seeds of a job; `None`: one that keeps all workers busy.
    pub fn jobs(&self, workers: usize, batch: Option<usize>) -> Vec<SuiteJob> {
        let mut missing: BTreeMap<(usize, usize), Vec<u64>> = BTreeMap::new();
        for RunJob { experiment, case, seed, .. } in self.missing() {
            missing.entry((experiment, case)).or_default().push(seed);
        }
        // Cases that need the same seeds.
        let mut groups: BTreeMap<(usize, Vec<u64>), Vec<usize>> = BTreeMap::new();
        for ((experiment, case), seeds) in missing {
            groups.entry((experiment, seeds)).or_default().push(case);
        }
        let count: usize = groups.keys().map(|(_, seeds)| seeds.len()).sum();
        let size = batch.unwrap_or_else(|| (count / (workers.max(1) * JOBS)).min(SEEDS_MAX)).max(1);
        let places: Vec<_> = self.places().collect();
        let mut jobs = Vec::new();
        for ((experiment, seeds), cases) in groups {
            let (suite, subject, scenario) = places[experiment];
            let of = |case: &usize| u128::from(traffic(&self.experiments[experiment].cases[*case]));
            let length: u128 = cases.iter().map(of).sum();
            jobs.extend(seeds.chunks(size).map(|seeds| {
                let job = SuiteJob { suite, subject, scenario, cases: cases.clone(), seeds: seeds.to_vec() };
                (length * seeds.len() as u128, job)
            }));
        }
        jobs.sort_by_key(|(length, _)| Reverse(*length));
        jobs.into_iter().map(|(_, job)| job).collect()
    }

    /// Makes the runs of a job, on all threads.
    pub fn run_job(
        runner: &Runner<'_>,
        suite: &Suite,
        subject: &Subject,
        job: &SuiteJob,
    ) -> Result<Result<Vec<SuiteRun>, WorldError>, ScenarioError> {
        let Loaded { experiment, .. } = subject.load(&suite.scenarios[job.scenario], suite, runner.registry)?;
        let mut runs = [ExperimentRuns::none(&experiment)];
        let experiments = [experiment];
        let of_case = |case: &usize| missing_of(0, *case, &runs[0], job.seeds.iter().copied());
        let missing = job.cases.iter().flat_map(of_case).collect();
        if let Err(error) = run_jobs(RunContext::all(runner), &experiments, missing, &mut runs) {
            return Ok(Err(error));
        }
        let cases = runs[0].of(false).iter().enumerate();
        let each = |(case, runs): (usize, &BTreeMap<u64, RunValues>)| {
            let run = |(seed, run): (&u64, &RunValues)| SuiteRun {
                case,
                seed: *seed,
                trace_hash: run.trace_hash.clone(),
                values: run.values.clone(),
            };
            runs.iter().map(run).collect::<Vec<_>>()
        };
        Ok(Ok(cases.flat_map(each).collect()))
    }

    /// Adds the finished runs of a job, and stores them in `done`.
    ///
    /// # Panics
    /// They are not of this job.
    pub fn add(
        &mut self,
        job: &SuiteJob,
        finished: Vec<SuiteRun>,
        (world, done): (&str, Option<&DoneRuns>),
    ) -> Result<(), StoreError> {
        let place = (job.suite, job.subject, job.scenario);
        let index = self.places().position(|other| other == place).expect("the job is of these suites");
        for SuiteRun { case, seed, trace_hash, values } in finished {
            let run = RunValues { trace_hash, values };
            if let Some(done) = done {
                done.add(&self.experiments[index].cases[case], world, seed, &run)?;
            }
            self.runs[index].runs[0][case].insert(seed, run);
        }
        Ok(())
    }

    pub fn report(&self, world: &str) -> SuitesReport {
        let mut from = 0;
        let each = |suite: &Suite| {
            let range = from..from + self.subjects.len() * suite.scenarios.len();
            from = range.end;
            let loaded = (&self.experiments[range.clone()], &self.applies[range.clone()]);
            report((suite, self.seeds.as_deref()), &self.subjects, loaded, &self.runs[range], world)
        };
        SuitesReport { suites: self.suites.iter().map(each).collect() }
    }

    /// Returns every finished run with its suite and its subject, as it is stored.
    pub fn measured<'a>(&'a self, world: &'a str) -> impl Iterator<Item = (&'a Suite, &'a Subject, MeasuredRun)> {
        self.places().enumerate().flat_map(move |(index, (suite, subject, _))| {
            let runs = self.runs[index].measured(&self.experiments[index], world);
            runs.map(move |run| (&self.suites[suite], &self.subjects[subject], run))
        })
    }

    /// Returns the indices of suite, subject and scenario of each experiment.
    fn places(&self) -> impl Iterator<Item = (usize, usize, usize)> {
        self.suites.iter().enumerate().flat_map(|(suite, of)| {
            let scenarios = of.scenarios.len();
            (0..self.subjects.len()).flat_map(move |subject| (0..scenarios).map(move |n| (suite, subject, n)))
        })
    }

    /// Returns the runs up to the next look, or all of them.
    fn missing(&self) -> Vec<RunJob> {
        let indices = (0..self.experiments.len()).filter(|index| self.applies[*index]);
        indices.flat_map(|index| self.missing_in(index)).collect()
    }

    fn missing_in(&self, index: usize) -> Vec<RunJob> {
        let (experiment, runs) = (&self.experiments[index], &self.runs[index]);
        let all = 0..experiment.cases.len();
        let (Some(looks), None) = (runs.looks, &self.seeds) else {
            let seeds = || self.seeds.iter().flatten().copied();
            return all.flat_map(|case| missing_of(index, case, runs, seeds())).collect();
        };
        let wanted = |case: usize| {
            let done = (1..).take_while(|seed| runs.of(false)[case].contains_key(seed)).count() as u64;
            let is_look = looks.after(done.saturating_sub(1)) == Some(done);
            let needs_more = !is_look || experiment.needs_runs(runs, case);
            looks.after(done).filter(|_| needs_more).unwrap_or(done)
        };
        let mut seeds: Vec<u64> = all.clone().map(wanted).collect();
        // A case to which others refer has their seeds, and may refer to another one.
        let mut is_changed = true;
        while core::mem::take(&mut is_changed) {
            for case in all.clone() {
                for referenced in experiment.referenced_cases(case) {
                    is_changed |= seeds[referenced] < seeds[case];
                    seeds[referenced] = seeds[referenced].max(seeds[case]);
                }
            }
        }
        all.flat_map(|case| missing_of(index, case, runs, 1..=seeds[case])).collect()
    }
}

fn missing_of(
    experiment: usize,
    case: usize,
    runs: &ExperimentRuns,
    seeds: impl Iterator<Item = u64>,
) -> impl Iterator<Item = RunJob> {
    let missing = seeds.filter(move |seed| !runs.of(false)[case].contains_key(seed));
    missing.map(move |seed| RunJob { experiment, null: false, case, seed })
}

/// Runs suites under each subject, except the runs that were done before. `repeats` is the number of runs of each test; `None`: as many
/// as its verdicts need, up to the number of the suite.
/// `announce` receives the simulated seconds before they are run.
///
/// # Errors
/// A scenario is invalid, has no bounds, or a bound has no reason; or the world cannot make a run.
pub fn run(
    runner: &Runner<'_>,
    suites: &[Suite],
    subjects: &[Subject],
    repeats: Option<u64>,
    done: Option<&DoneRuns>,
    announce: &dyn Fn(f64),
) -> Result<Result<SuitesReport, WorldError>, ScenarioError> {
    let seeds: Option<Vec<u64>> = repeats.map(|repeats| (1..=repeats).collect());
    let mut runs = SuiteRuns::load(suites.to_vec(), subjects.to_vec(), seeds.as_deref(), runner.registry)?;
    Ok(runs.run(runner, done, announce).map(|()| runs.report(runner.world.name())))
}
