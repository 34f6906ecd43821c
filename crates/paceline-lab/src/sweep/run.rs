//! Jobs to rows: a batch at a time, on local threads or wherever [`Sweep::batch`] is called.

use super::job::address;
use super::result::Gather;
use super::{CONTROLLER, Job, JobRow, Sweep, SweepError, SweepFolder, SweepResult};
use crate::plan::Plan;
use crate::run::{Runner, windows};
use rayon::prelude::*;
use std::ops::Range;

/// Most jobs of a batch: of 45 ms each it is some 3 s, so that few files are made and few are waited for at the end.
const BATCH: u64 = 64;
/// Least batches for each thread, so that none waits long for the last.
const BATCHES: u64 = 16;

impl Sweep {
    /// What the jobs of a range come to, in order. It hangs on nothing but sweep, world and version.
    ///
    /// # Errors
    /// A point makes no plan, or the world does not run it.
    pub fn batch(&self, runner: &Runner<'_>, jobs: Range<u64>) -> Result<Vec<JobRow>, SweepError> {
        let mut rows = Vec::new();
        self.each(runner, jobs, |row| {
            rows.push(row);
            Ok(())
        })?;
        Ok(rows)
    }

    /// How many jobs should be done at a time by so many threads or processes.
    pub fn batch_size(&self, workers: u64) -> u64 {
        (self.jobs() / (workers.max(1) * BATCHES)).clamp(1, BATCH)
    }

    /// Every job on local threads, as many as rayon's current pool has, in memory. `finished` is called as each is over.
    ///
    /// # Errors
    /// A point makes no plan, or the world does not run it.
    pub fn run(&self, runner: &Runner<'_>, finished: &(dyn Fn() + Sync)) -> Result<SweepResult, SweepError> {
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
        let mut gather = Gather::new(self);
        rows.iter().flatten().for_each(|row| gather.row(row));
        Ok(gather.finish())
    }

    /// Runs again, of the jobs that the folder holds, the first of each controller and scenario. What a job hangs on is in its
    /// address, but for code: two builds of one version, or a controller of the caller's, may differ where addresses do not.
    /// An empty folder proves itself, and so does one of a world in real time, where no run can be made twice.
    ///
    /// # Errors
    /// A row comes out otherwise than it is stored; or as [`Sweep::batch`].
    pub fn prove(&self, runner: &Runner<'_>, folder: &SweepFolder) -> Result<(), SweepError> {
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
                    "its job {}, run again, comes to something else: the code of a controller, or of the program, has changed",
                    stored.job
                ))),
            }
        };
        stored.par_iter().try_for_each(each)
    }

    /// Every job that the folder lacks, on local threads, each finished one into the folder at once; then the merge. What
    /// the folder holds already is [proved](Sweep::prove) first.
    ///
    /// # Errors
    /// As [`Sweep::run`] and [`Sweep::prove`], or the operating system refuses. What is done by then stays done.
    pub fn run_into(
        &self,
        runner: &Runner<'_>,
        folder: &SweepFolder,
        finished: &(dyn Fn() + Sync),
    ) -> Result<SweepResult, SweepError> {
        self.prove(runner, folder)?;
        let batches = folder.batches(self.batch_size(rayon::current_num_threads() as u64));
        let each = |jobs: Range<u64>| {
            let mut part = folder.part(jobs.start)?;
            let done = self.each(runner, jobs, |row| {
                finished();
                Ok(part.row(&row)?)
            });
            // What came before an error is kept.
            folder.close(part)?;
            done
        };
        // In order, whoever is free: blocks of parts fill up one after the other.
        runner.on_threads(|| batches.into_iter().par_bridge().try_for_each(each))?;
        folder.merge(self)
    }

    fn each(
        &self,
        runner: &Runner<'_>,
        jobs: Range<u64>,
        mut done: impl FnMut(JobRow) -> Result<(), SweepError>,
    ) -> Result<(), SweepError> {
        let mut last: Option<(Job, Plan)> = None;
        for job in jobs.map(|number| self.job(number)) {
            let plan = match last.take() {
                Some((before, plan)) if (before.point, before.subject) == (job.point, job.subject) => plan,
                _ => self.plan(job.point, job.subject, runner.registry)?,
            };
            done(row(runner, &plan, &job)?)?;
            last = Some((job, plan));
        }
        Ok(())
    }
}

fn row(runner: &Runner<'_>, plan: &Plan, job: &Job) -> Result<JobRow, SweepError> {
    let (run, ()) = runner.undisturbed(|| Ok::<_, SweepError>((runner.run_asked(plan, job.seed)?, ())))?;
    let windows = windows(plan);
    // By key, which is by measure. What is no number is no value.
    let value = |quantity| run.value(plan, &windows, quantity).filter(|value| value.is_finite());
    Ok(JobRow {
        job: job.number,
        address: address(plan, runner.world.name(), job.seed),
        trace_hash: run.trace_hash.clone(),
        values: plan.references.values().map(value).collect(),
    })
}

/// A range in ranges of no more than this.
pub(super) fn in_batches(jobs: Range<u64>, size: u64) -> impl Iterator<Item = Range<u64>> {
    let Range { start, end } = jobs;
    (start..end).step_by(size as usize).map(move |from| from..(from + size).min(end))
}
