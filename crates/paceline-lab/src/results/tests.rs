// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of folders of results. The fixtures are here.

mod damaged_tables;
mod database;
mod folders;
mod groups;
mod parts;
mod tables;

use crate::results::database::DATABASE_FILE;
use crate::results::*;
use paceline_netsim::records::{
    DropReason, Environment, EventObserver, EventRecord, HalfName, PacketClass, PacketRecord, RunHeader,
};
use paceline_units::{DataSize, Ecn, FlowId, Rate, StreamId, Time, TimeDelta};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use serde_json::json;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const TABLES: [&str; 4] = ["packets.parquet", "flows.parquet", "frames.parquet", "signals.parquet"];

/// A temporary folder, removed on drop.
struct Scratch(TempDir);

impl Scratch {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }
    fn with_store() -> (Self, Store) {
        let scratch = Self::new();
        let store = scratch.open();
        (scratch, store)
    }
    fn dir(&self) -> PathBuf {
        self.0.path().join("out")
    }
    fn open(&self) -> Store {
        Store::create(&self.dir()).unwrap()
    }
    fn runs(&self) -> Vec<String> {
        files::names(&self.dir().join(RUNS)).unwrap()
    }
    fn stored(&self) -> Vec<StoredRun> {
        Store::read(&self.dir()).unwrap().runs.into_iter().map(|run| run.about.run).collect()
    }
    fn hashes(&self) -> Vec<String> {
        self.stored().into_iter().map(|run| run.trace_hash.unwrap()).collect()
    }
}

fn header(scenario: &str, seed: u64) -> RunHeader {
    let signals = |names: &[(&str, &str)]| names.iter().map(|(n, u)| ((*n).to_owned(), (*u).to_owned())).collect();
    RunHeader {
        scenario: scenario.to_owned(),
        world: "sim".to_owned(),
        seed,
        hops: vec!["forward".to_owned(), "back".to_owned()],
        flows: vec!["video".to_owned(), "tcp".to_owned()],
        controllers: vec![Some("gcc-2016".to_owned()), None],
        signals: vec![
            [signals(&[("A_s", "bit/s"), ("f_l", "")]), signals(&[("gamma", "ms")])],
            [Vec::new(), Vec::new()],
        ],
    }
}

fn inputs() -> RunInputs {
    RunInputs {
        environment: Environment {
            version: "1.2.3".to_owned(),
            commit: Some("0123456789ab".to_owned()),
            machine: Some("a processor, 2 processors".to_owned()),
            system: Some("linux 6, x86_64".to_owned()),
        },
        created: Some("2026-11-20T12:00:00Z".to_owned()),
        plan_hash: "plan".to_owned(),
        scenario_hash: "scenario".to_owned(),
        scenario_text: "id = \"x\"\n".to_owned(),
        changes: vec!["path.rtt=80ms".to_owned()],
        more: [("revision".to_owned(), json!("abc"))].into(),
        setting: None,
    }
}

fn packet(packet: u64, class: PacketClass) -> PacketRecord {
    PacketRecord { packet, flow: FlowId(0), class, size: DataSize::from_bytes(1228) }
}

fn at(ns: i64) -> Time {
    Time::from_nanos(ns)
}

fn sent(ns: i64) -> EventRecord {
    EventRecord::Sent { at: at(ns), packet: packet(0, PacketClass::Media) }
}

fn open(path: &Path) -> SerializedFileReader<File> {
    SerializedFileReader::new(File::open(path).unwrap()).unwrap()
}

/// Each row as `column=value` of the columns that are not null.
fn read(path: &Path) -> Vec<String> {
    open(path)
        .get_row_iter(None)
        .unwrap()
        .map(|row| {
            let row = row.unwrap();
            let fields = row.get_column_iter().filter(|(_, field)| !matches!(field, Field::Null));
            let text = fields.map(|(name, field)| format!("{name}={}", field.to_string().trim_matches('"')));
            text.collect::<Vec<_>>().join(" ")
        })
        .collect()
}

fn write(store: &Store, header: &RunHeader, events: &[EventRecord], hash: &str) -> PathBuf {
    let mut run = store.run(header, inputs()).unwrap();
    assert!(run.wants_signals());
    events.iter().for_each(|event| run.on_event(event));
    assert!(run.failed().is_none());
    run.finish(&json!({"trace_hash": hash, "jain": 1.0}), Vec::new()).unwrap()
}

/// Returns the description of the run in a folder.
fn about(run: &Path) -> About {
    Store::read_run(run).unwrap().about
}

/// Rows in `packets` of each listed run.
fn packet_counts(scratch: &Scratch) -> Vec<u64> {
    scratch.stored().iter().map(|run| run.files[0].rows).collect()
}
