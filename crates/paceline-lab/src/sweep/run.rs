// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs jobs in batches, on local threads or in any process that calls [`Sweep::batch`].

use super::aggregate::Aggregator;
use super::folder::RunColumns;
use super::job::in_batches;
use super::{CONTROLLER, Job, JobRow, Sweep, SweepError, SweepFolder, SweepResult};
use crate::results::database::MeasuredRun;
use crate::run::{Runner, windows};
use crate::run_identity::ScenarioHashes;
use paceline::Registry;
use paceline_scenario::Scenario;
use rayon::prelude::*;
use std::ops::Range;
use std::sync::mpsc;
use std::thread;

/// Largest number of jobs of a batch. With 45 ms each it lasts about 3 s, so there are few files and a short wait at the end.
const BATCH: u64 = 64;
/// Least number of batches for each thread, so that the last ones do not take long.
const BATCHES: u64 = 16;

impl Sweep {
    /// Returns the rows of a range of jobs, in order. They depend only on sweep, world and version.
    pub fn batch(&self, runner: &Runner<'_>, jobs: Range<u64>) -> Result<Vec<JobRow>, SweepError> {
        let mut rows = Vec::new();
        self.each(runner, jobs, |row| {
            rows.push(row);
            Ok(())
        })?;
        Ok(rows)
    }

    /// Returns the suitable number of jobs of a batch for this number of threads or processes.
    pub fn batch_size(&self, workers: u64) -> u64 {
        (self.jobs() / (workers.max(1) * BATCHES)).clamp(1, BATCH)
    }

    /// Runs every job on the threads of rayon's current pool, in memory. Calls `finished` after each.
    pub fn run(&self, runner: &Runner<'_>, finished: &(dyn Fn() + Sync)) -> Result<SweepResult, SweepError> {
        Ok(self.result(&self.rows(runner, finished)?))
    }

    /// Runs every job as [`Sweep::run`] does, and returns the rows.
    pub fn rows(&self, runner: &Runner<'_>, finished: &(dyn Fn() + Sync)) -> Result<Vec<JobRow>, SweepError> {
        let size = self.batch_size(rayon::current_num_threads() as u64);
        let batches: Vec<Range<u64>> = in_batches(0..self.jobs(), size).collect();
        let each = |jobs: &Range<u64>| {
            let mut rows = Vec::new();
            self.each(runner, jobs.clone(), |row| {
                finished();
                rows.push(row);
                Ok(())
            })?;
            Ok(rows)
        };
        let rows: Vec<Vec<JobRow>> =
            runner.on_threads(|| batches.par_iter().with_max_len(1).map(each).collect::<Result<_, SweepError>>())?;
        Ok(rows.into_iter().flatten().collect())
    }

    pub fn result(&self, rows: &[JobRow]) -> SweepResult {
        let mut aggregator = Aggregator::new(self);
        rows.iter().for_each(|row| aggregator.row(row));
        aggregator.finish()
    }

    /// Returns the runs of rows, as they are stored.
    pub fn measured(&self, rows: &[JobRow], world: &str, registry: &Registry) -> Result<Vec<MeasuredRun>, SweepError> {
        let columns = RunColumns::of(self, world, registry)?;
        Ok(rows.iter().map(|row| columns.run(row).run).collect())
    }

    /// Verifies that the code gives the rows in the folder: repeats the first stored job of each controller and scenario. The
    /// address of a job does not cover the code, so two builds of one version, or a controller of the caller, may differ. Does
    /// nothing for an empty folder and in real time, where runs cannot be repeated.
    ///
    /// # Errors
    /// A row differs from the stored one, or those of [`Sweep::batch`].
    pub fn verify(&self, runner: &Runner<'_>, folder: &SweepFolder) -> Result<(), SweepError> {
        if runner.world.real_time() || folder.done_jobs() == 0 {
            return Ok(());
        }
        let controller = self.keys().position(|key| key == CONTROLLER);
        let kind = |row: &JobRow| {
            let Job { point, subject, .. } = self.job(row.job);
            (controller.map(|key| self.at(point)[key].to_string()), subject)
        };
        let stored = folder.first_of_each(kind)?;
        let each = |stored: &JobRow| {
            let made = self.batch(runner, stored.job..stored.job + 1)?;
            match made == std::slice::from_ref(stored) {
                true => Ok(()),
                false => Err(folder.foreign(format!(
                    "its job {}, run again, has another result: the code of a controller, or of the program, has changed",
                    stored.job
                ))),
            }
        };
        stored.par_iter().try_for_each(each)
    }

    /// [Verifies](Sweep::verify) the folder, runs every missing job on local threads, stores each result immediately, and returns the
    /// result of all. [`SweepFolder::write_tables`] writes the tables.
    ///
    /// # Errors
    /// Those of [`Sweep::run`] and [`Sweep::verify`], or an operation of the file system fails. Finished jobs stay stored.
    pub fn run_into(
        &self,
        runner: &Runner<'_>,
        folder: &SweepFolder,
        finished: &(dyn Fn() + Sync),
    ) -> Result<SweepResult, SweepError> {
        self.verify(runner, folder)?;
        let batches = folder.batches(self.batch_size(rayon::current_num_threads() as u64));
        // One thread stores what the others finish: rows that end meanwhile share a transaction.
        let (sender, receiver) = mpsc::channel();
        let each = move |jobs: Range<u64>| {
            self.each(runner, jobs, |row| {
                finished();
                // It fails if the writer has failed, whose error is returned below.
                sender.send(row).map_err(|_| SweepError::Incomplete { path: folder.path().to_path_buf(), job: 0 })
            })
        };
        let (done, stored) = thread::scope(|scope| {
            let writer = scope.spawn(|| folder.write_each(receiver));
            let done = runner.on_threads(|| batches.into_iter().par_bridge().try_for_each(each));
            (done, writer.join().expect("the writer does not panic"))
        });
        stored.and(done)?;
        folder.result(self)
    }

    fn each(
        &self,
        runner: &Runner<'_>,
        jobs: Range<u64>,
        mut done: impl FnMut(JobRow) -> Result<(), SweepError>,
    ) -> Result<(), SweepError> {
        let mut last: Option<(Job, (Scenario, ScenarioHashes))> = None;
        for job in jobs.map(|number| self.job(number)) {
            let (scenario, hashes) = match last.take() {
                Some((before, loaded)) if (before.point, before.subject) == (job.point, job.subject) => loaded,
                _ => {
                    let scenario = self.scenario(job.point, job.subject, runner.registry)?;
                    let hashes = ScenarioHashes::of(&scenario);
                    (scenario, hashes)
                }
            };
            done(row(runner, &scenario, &hashes, &job)?)?;
            last = Some((job, (scenario, hashes)));
        }
        Ok(())
    }
}

fn row(runner: &Runner<'_>, scenario: &Scenario, hashes: &ScenarioHashes, job: &Job) -> Result<JobRow, SweepError> {
    let (run, ()) =
        runner.retry_if_disturbed(|| Ok::<_, SweepError>((runner.run_requested(scenario, job.seed)?, ())))?;
    let windows = windows(scenario);
    // In the order of the measures. Values that are not finite are omitted.
    let value = |quantity| run.value(scenario, &windows, quantity).filter(|value| value.is_finite());
    Ok(JobRow {
        job: job.number,
        address: hashes.inputs(runner.world.name(), job.seed),
        scenario_hash: hashes.scenario.clone(),
        duration_s: scenario.plan.duration.as_secs_f64(),
        trace_hash: run.trace_hash.clone(),
        values: scenario.references.values().map(value).collect(),
    })
}
