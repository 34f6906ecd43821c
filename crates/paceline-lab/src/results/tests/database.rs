// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs, values and jobs in the database.

use super::*;
use crate::results::database::{Database, Experiment, FoundRun, JobRun, MeasuredRun, QuantityKey};

fn key(metric: &str, window_s: (f64, f64)) -> QuantityKey {
    QuantityKey { metric: metric.to_owned(), window_s, ..QuantityKey::default() }
}

/// A run whose values follow from its inputs.
fn measured(inputs: u64, metrics: &[&str]) -> MeasuredRun {
    let value = |metric: &&str| (key(metric, (0.0, 10.0)), Some(inputs as f64 + metric.len() as f64 / 7.0));
    MeasuredRun {
        inputs: format!("{inputs:016x}"),
        scenario: "a".to_owned(),
        scenario_hash: "s".to_owned(),
        controllers: vec![Some("nada".to_owned())],
        world: "sim".to_owned(),
        seed: inputs,
        code: "1".to_owned(),
        trace_hash: format!("hash {inputs}"),
        duration_s: 10.0,
        values: metrics.iter().map(value).collect(),
        ..MeasuredRun::default()
    }
}

fn jobs(database: &Database, experiment: &Experiment) -> Result<Vec<JobRun>, StoreError> {
    let mut jobs = Vec::new();
    database.each_job(experiment, |job| -> Result<bool, StoreError> {
        jobs.push(job);
        Ok(true)
    })?;
    Ok(jobs)
}

#[test]
fn values_of_one_run_are_joined_and_those_of_other_code_are_removed() {
    let scratch = Scratch::new();
    let database = Database::create(&scratch.dir()).unwrap();
    database.add_run(&measured(1, &["loss", "rate"])).unwrap();
    database.add_run(&measured(1, &["jain", "rate"])).unwrap();
    let find = |metrics: &[&str]| {
        let keys: Vec<QuantityKey> = metrics.iter().map(|metric| key(metric, (0.0, 10.0))).collect();
        database.find_run(&measured(1, &[]).inputs, &keys).unwrap().map(|found| (found.trace_hash, found.values))
    };
    let value = |metric: &str| Some(1.0 + metric.len() as f64 / 7.0);
    let all = Some(("hash 1".to_owned(), vec![value("rate"), value("jain"), value("loss")]));
    assert_eq!(find(&["rate", "jain", "loss"]), all);
    assert_eq!(find(&["rate", "other"]), None);
    assert_eq!(database.run_count().unwrap(), 1);
    // Absent and infinite values and zeros of both signs are kept; NaN becomes absent.
    let mut odd = measured(2, &["rate", "loss", "jain", "share"]);
    let values = [None, Some(-0.0), Some(f64::NAN), Some(f64::INFINITY)];
    odd.values.iter_mut().zip(values).for_each(|(of, value)| of.1 = value);
    database.add_run(&odd).unwrap();
    let keys = ["loss", "rate", "jain", "share"].map(|metric| key(metric, (0.0, 10.0)));
    let found = database.find_run(&odd.inputs, &keys).unwrap();
    let values = vec![Some(0.0), None, None, Some(f64::INFINITY)];
    assert_eq!(found, Some(FoundRun { trace_hash: "hash 2".to_owned(), values }));

    let other = MeasuredRun { trace_hash: "other code".to_owned(), ..measured(1, &["jain"]) };
    database.add_run(&other).unwrap();
    assert_eq!(find(&["loss"]), None);
    assert_eq!(find(&["jain"]), Some(("other code".to_owned(), vec![value("jain")])));
}

#[test]
fn experiments_are_the_first_of_their_kind() {
    let scratch = Scratch::new();
    let database = Database::create(&scratch.dir()).unwrap();
    let first = database.begin_experiment("sweep", "gains", "d1", "{}").unwrap();
    let again = Database::open(&scratch.dir()).unwrap().begin_experiment("sweep", "other", "d2", "{}").unwrap();
    assert_eq!(again, first);
    assert_eq!(database.experiment("suite").unwrap(), None);
    database
        .add_jobs(&first, [(3, 30), (1, 10)].map(|(job, run)| JobRun { job, run: measured(run, &["rate"]) }))
        .unwrap();
    // A job that is stored is ignored.
    database.add_jobs(&first, [JobRun { job: 3, run: measured(31, &["rate"]) }]).unwrap();
    assert_eq!(database.jobs(&first).unwrap(), [1, 3]);
    let stored: Vec<u64> = jobs(&database, &first).unwrap().into_iter().map(|job| job.run.seed).collect();
    assert_eq!(stored, [10, 30]);
}

/// A changed byte anywhere in the file is refused or changes nothing.
#[test]
fn a_changed_byte_is_refused_or_changes_nothing() {
    let scratch = Scratch::new();
    let place = write(&scratch.open(), &header("a", 1), &[sent(1)], "hash");
    let store = scratch.open();
    store.group(&groups::group_of_run("a", "gcc-2016", "a-gcc-2016-seed1")).unwrap();
    drop(store);
    let database = Database::create(&scratch.dir()).unwrap();
    let experiment = database.begin_experiment("sweep", "gains", "d1", "{\"text\": \"some text\"}").unwrap();
    let rows = (0..40).map(|job| JobRun { job, run: measured(job, &["rate", "loss", "jain"]) });
    database.add_jobs(&experiment, rows).unwrap();
    drop(database);
    let path = scratch.dir().join(DATABASE_FILE);
    let whole = fs::read(&path).unwrap();
    assert!(!scratch.dir().join("results.sqlite-wal").exists(), "all is in one file");
    // Everything that a program reads of the folder.
    let contents = || -> Result<String, StoreError> {
        let database = Database::open(&scratch.dir())?;
        let found = database.experiment("sweep")?;
        let jobs = found.as_ref().map(|experiment| jobs(&database, experiment)).transpose()?;
        let keys = [key("loss", (0.0, 10.0))];
        let one = database.find_run(&measured(7, &[]).inputs, &keys)?;
        drop(database);
        let contents = Store::read(&scratch.dir())?;
        let runs: Vec<_> = contents.runs.iter().map(|run| (&run.about, &run.result)).collect();
        Ok(format!("{found:?} {jobs:?} {one:?} {runs:?} {:?}", contents.groups))
    };
    let wanted = contents().unwrap();
    let (mut refused, mut equal) = (0, 0);
    let mut random = 12345_u64;
    let mut next = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        random >> 33
    };
    for n in 0..500 {
        let mut bytes = whole.clone();
        let at = (next() % bytes.len() as u64) as usize;
        bytes[at] ^= 1 << (next() % 8);
        fs::write(&path, &bytes).unwrap();
        match contents() {
            Err(_) => refused += 1,
            Ok(found) => {
                assert_eq!(found, wanted, "damage {n} at byte {at}");
                equal += 1;
            }
        }
    }
    // Much of the file is free space.
    assert!(refused > 50 && equal > 50, "{refused} refused, {equal} equal");
    fs::write(&path, &whole).unwrap();
    assert_eq!(contents().unwrap(), wanted);
    assert!(place.is_dir());
}

/// Threads that each open the folder, as processes do.
#[test]
fn writers_share_a_database() {
    let scratch = Scratch::new();
    let dir = scratch.dir();
    let work = |writer: u64| {
        let database = Database::create(&dir).unwrap();
        let experiment = database.begin_experiment("sweep", "gains", "d", "{}").unwrap();
        for job in 0..50 {
            database.add_jobs(&experiment, [JobRun { job, run: measured(job, &["rate"]) }]).unwrap();
            database.add_run(&measured(1000 + writer * 50 + job, &["loss"])).unwrap();
        }
    };
    std::thread::scope(|scope| (0..4).for_each(|writer| drop(scope.spawn(move || work(writer)))));
    let database = Database::open(&dir).unwrap();
    let experiment = database.experiment("sweep").unwrap().unwrap();
    let stored = jobs(&database, &experiment).unwrap();
    assert_eq!(stored, (0..50).map(|job| JobRun { job, run: measured(job, &["rate"]) }).collect::<Vec<_>>());
    assert_eq!(database.run_count().unwrap(), 250);
}
