//! Experiments, and the finished jobs of a sweep.

use super::{Database, MeasuredRun, QuantityKey, checksum};
use crate::results::StoreError;
use rusqlite::{OptionalExtension, params};

/// What was started in a folder, and must be the same when it is resumed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Experiment {
    /// Row number in the table `experiment`.
    id: i64,
    /// Its kind, such as `sweep`.
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
            let read = |row: &rusqlite::Row<'_>| {
                let found = Experiment {
                    id: row.get(0)?,
                    kind: row.get(1)?,
                    name: row.get(2)?,
                    digest: row.get(3)?,
                    document: row.get(4)?,
                };
                Ok((found, row.get::<_, String>(5)?))
            };
            let found = transaction.query_row(sql, [kind], read).optional().map_err(self.error())?;
            match found {
                Some((found, expected)) if found.checksum() != expected => Err(self.damaged("an experiment")),
                found => Ok(found.map(|(found, _)| found)),
            }
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
            let added = transaction.execute(sql, columns).map_err(self.error())?;
            Ok((added == 1).then(|| of(transaction.last_insert_rowid())))
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
                let mut statement = transaction.prepare_cached(known).map_err(self.error())?;
                if statement.exists(params![experiment.id, job as i64]).map_err(self.error())? {
                    continue;
                }
                let id = self.insert_run(transaction, &run, None)?;
                let sql = "INSERT INTO job (experiment, job, run, checksum) VALUES (?1, ?2, ?3, ?4)";
                let columns = params![experiment.id, job as i64, id, experiment.job_checksum(job, &run.inputs)];
                transaction.prepare_cached(sql).and_then(|mut s| s.execute(columns)).map_err(self.error())?;
            }
            Ok(())
        })
    }

    /// Returns the numbers of the finished jobs, in order.
    pub fn jobs(&self, experiment: &Experiment) -> Result<Vec<u64>, StoreError> {
        self.read(|transaction| {
            let mut statement = transaction
                .prepare_cached("SELECT job FROM job WHERE experiment = ?1 ORDER BY job")
                .map_err(self.error())?;
            let rows = statement.query_map([experiment.id], |row| row.get::<_, i64>(0)).map_err(self.error())?;
            rows.map(|job| Ok(job.map_err(self.error())? as u64)).collect()
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
            let mut statement = transaction.prepare_cached(sql).map_err(self.error())?;
            let columns = |row: &rusqlite::Row<'_>| -> Result<(i64, i64, String), rusqlite::Error> {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            };
            let rows = statement.query_map([experiment.id], columns).map_err(self.error())?;
            for row in rows {
                let (job, run, expected) = row.map_err(|_| self.damaged("a job"))?;
                let (job, row) = (job as u64, self.run_row(transaction, run)?);
                if experiment.job_checksum(job, &row.run.inputs) != expected {
                    return Err(self.damaged(&format!("job {job}")));
                }
                let values: Vec<(QuantityKey, Option<f64>)> = self.values_of(transaction, &row)?;
                match each(JobRun { job, run: MeasuredRun { values, ..row.run } }) {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(error) => {
                        failed = Some(error);
                        break;
                    }
                }
            }
            Ok(())
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
