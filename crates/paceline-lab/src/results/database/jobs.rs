// SPDX-License-Identifier: MIT OR Apache-2.0
//! Experiments, and the finished jobs of a sweep.

use super::{Database, MeasuredRun, checksum};
use crate::results::StoreError;
use rusqlite::{Row, params};

/// What was started in a folder, and must be the same when it is resumed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Experiment {
    id: i64,
    pub kind: String,
    /// Its id.
    pub name: String,
    /// Hash of everything that determines its runs.
    pub digest: String,
    /// JSON.
    pub document: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct JobRun {
    pub job: u64,
    pub run: MeasuredRun,
}

impl Database {
    /// Returns the experiment of a kind, if the folder has one; with several, the first.
    pub fn experiment(&self, kind: &str) -> Result<Option<Experiment>, StoreError> {
        self.read(|transaction| {
            let sql =
                "SELECT id, kind, name, digest, document, checksum FROM experiment WHERE kind = ?1 ORDER BY id LIMIT 1";
            let columns = |row: &Row<'_>| -> Result<_, rusqlite::Error> {
                let [kind, name, digest, document] = [row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?];
                Ok((Experiment { id: row.get(0)?, kind, name, digest, document }, row.get::<_, String>(5)?))
            };
            self.find_row(transaction, sql, [kind], |row| match columns(row).map_err(self.error())? {
                (found, expected) if found.checksum() != expected => Err(self.damaged("an experiment")),
                (found, _) => Ok(Some(found)),
            })
        })
    }

    /// Returns the experiment of a kind, after it is added if the folder has none of the kind. The caller compares the digests.
    pub fn begin_experiment(
        &self,
        kind: &str,
        name: &str,
        digest: &str,
        document: &str,
    ) -> Result<Experiment, StoreError> {
        let of = |id| Experiment {
            id,
            kind: kind.to_owned(),
            name: name.to_owned(),
            digest: digest.to_owned(),
            document: document.to_owned(),
        };
        let added = self.write(|transaction| {
            let sql = "INSERT INTO experiment (kind, name, digest, document, checksum) SELECT ?1, ?2, ?3, ?4, ?5 \
                       WHERE NOT EXISTS (SELECT 1 FROM experiment WHERE kind = ?1)";
            let columns = params![kind, name, digest, document, of(0).checksum()];
            Ok((self.execute(transaction, sql, columns)? == 1).then(|| of(transaction.last_insert_rowid())))
        })?;
        match added {
            Some(experiment) => Ok(experiment),
            None => self.experiment(kind)?.ok_or_else(|| self.damaged("the list of experiments")),
        }
    }

    /// Adds finished jobs. Jobs that are stored already are ignored.
    pub fn add_jobs(&self, experiment: &Experiment, jobs: impl IntoIterator<Item = JobRun>) -> Result<(), StoreError> {
        self.write(|transaction| {
            for JobRun { job, run } in jobs {
                let known = "SELECT 1 FROM job WHERE experiment = ?1 AND job = ?2";
                if self.find_number(transaction, known, params![experiment.id, job as i64])?.is_some() {
                    continue;
                }
                let id = self.insert_run(transaction, &run, None)?;
                let sql = "INSERT INTO job (experiment, job, run, checksum) VALUES (?1, ?2, ?3, ?4)";
                let columns = params![experiment.id, job as i64, id, experiment.job_checksum(job, &run.inputs)];
                self.execute(transaction, sql, columns)?;
            }
            Ok(())
        })
    }

    /// Returns the numbers of the finished jobs, in order.
    pub fn jobs(&self, experiment: &Experiment) -> Result<Vec<u64>, StoreError> {
        self.read(|transaction| {
            let sql = "SELECT job FROM job WHERE experiment = ?1 ORDER BY job";
            let read = |row: &Row<'_>| row.get::<_, i64>(0).map(|job| job as u64).map_err(self.error());
            self.rows(transaction, sql, [experiment.id], read)
        })
    }

    /// Calls `each` with the finished jobs, in order, until it returns `false`.
    pub fn each_job<E: From<StoreError>>(
        &self,
        experiment: &Experiment,
        mut each: impl FnMut(JobRun) -> Result<bool, E>,
    ) -> Result<(), E> {
        let mut failed = None;
        let read = self.read(|transaction| {
            let sql = "SELECT job, run, checksum FROM job WHERE experiment = ?1 ORDER BY job";
            let columns = |row: &Row<'_>| -> Result<(i64, i64, String), rusqlite::Error> {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            };
            self.find_row(transaction, sql, [experiment.id], |row| {
                let (job, run, expected) = columns(row).map_err(|_| self.damaged("a job"))?;
                let (job, row) = (job as u64, self.run_row(transaction, run)?);
                if experiment.job_checksum(job, &row.run.inputs) != expected {
                    return Err(self.damaged(&format!("job {job}")));
                }
                let values = self.values_of(transaction, &row)?;
                let goes_on = each(JobRun { job, run: MeasuredRun { values, ..row.run } });
                let ended = !goes_on.as_ref().is_ok_and(|goes_on| *goes_on);
                failed = goes_on.err();
                Ok(ended.then_some(()))
            })
        });
        read.map_err(E::from)?;
        failed.map_or(Ok(()), Err)
    }
}

impl Experiment {
    fn checksum(&self) -> String {
        checksum([&self.kind, &self.name, &self.digest, &self.document].map(|text| text.as_bytes()))
    }

    fn job_checksum(&self, job: u64, inputs: &str) -> String {
        checksum([self.digest.as_bytes(), &job.to_le_bytes(), inputs.as_bytes()])[..16].to_owned()
    }
}
