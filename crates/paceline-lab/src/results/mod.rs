// SPDX-License-Identifier: MIT OR Apache-2.0
//! Results: the documents that commands print, and the folders that `--out DIR` writes.
//!
//! ```text
//! DIR/results.sqlite                    every run with its inputs, result and values; summaries, comparisons, validations
//! DIR/runs/<scenario>-<controllers>-seed<N>/       the world's name precedes the seed, except for the simulator
//!     packets.parquet                   one row per datagram sent, across a hop, dropped, arrived
//!     flows.parquet                     round-trip times, loss reports, targets, pacing rates, REMBs
//!     frames.parquet                    frames rendered and frames refused at the sender
//!     signals.parquet                   the signals of the controllers
//! ```
//!
//! The tables of [`database`] are documented there. Any program that reads SQLite or Parquet can read them. Strings are UTF-8
//! with dictionary encoding. The name of a column ends in the unit of its values; a `value` column has its unit in the column
//! `unit` (empty for a plain number).
//!
#![doc = include_str!("tables/columns.md")]
//!
//! Row groups have the smallest and the largest value of integers without nulls, such as `time_ns`, so that readers skip
//! the others.
//!
//! Each file's metadata contains `scenario`, `world`, `seed`, `controllers`, `version`, `table` and `units`.
//!
//! A run is written under a temporary name, flushed to the disk, and renamed in the transaction that lists it. The rows of a run
//! in real time are also closed every 10 s, in `<run>.parts-<process>-<n>`. If its process is killed, the next start assembles
//! these parts to `<run>-cut`: tables, but no result. It is listed with `cut_at_s`, and a complete run with the same inputs
//! removes it. Memory is bounded for any length of run: rows are written in groups of [`ROW_GROUP`](tables::ROW_GROUP).
//! Several threads, processes and containers may write to a folder at the same time.

// Without tables nothing is stored.
#![cfg_attr(not(feature = "storage"), allow(dead_code, unused_imports))]

mod agreement;
pub mod baseline;
mod cells;
pub mod check;
mod comparison;
mod conclusions;
#[cfg(feature = "storage")]
pub mod database;
mod error;
pub mod files;
mod group;
mod matrix;
#[cfg(feature = "storage")]
mod names;
#[cfg(feature = "storage")]
mod parts;
mod possible;
#[cfg(feature = "storage")]
mod run_store;
mod sequential;
#[cfg(feature = "storage")]
mod store;
#[cfg(feature = "storage")]
mod store_folder;
mod stored;
mod suite;
mod sweep;
#[cfg(feature = "storage")]
pub mod tables;
pub mod validation;

pub use cells::{
    Assumed, CaseRuns, Cell, CellVerdict, ChangeResult, Denominator, EachWindow, ExperimentReport, OtherWorldCell,
    Report, SCOREBOARD_FILE, Scoreboard, VerdictCounts, VerdictSummary, count_verdicts,
};
pub use check::{Check, Judgement, Verdict};
pub use comparison::{ComparedDifference, ComparisonRow, ComparisonTable, RankedController, Role, Subject};
pub use conclusions::{Conclusion, ConclusionVerdict, Evidence, EvidenceOf, EvidenceResult};
pub use error::StoreError;
pub use files::write_whole;
pub use group::{Assertion, Differences, Group, RunMetrics};
pub use matrix::{Counts, ExperimentCounts, PaperCounts, papers};
pub use possible::{HUNDRED, Possible, RankedRow, Rankings, ZERO};
#[cfg(feature = "storage")]
pub use run_store::RunStore;
pub use sequential::Looks;
#[cfg(feature = "storage")]
pub use store::{Contents, Store, StoredRunData};
pub use stored::{About, RUNS, RunInputs, StoredFile, StoredRun};
pub use suite::{
    Agreement, BoundResult, ChangedVerdict, Passed, RowKind, SUITES_FILE, Scale, SuiteBound, SuiteReport, SuiteRow,
    SuiteTest, SuitesReport, TestResult, ValueFormat, repeats_text,
};
pub use sweep::{Axis, AxisValues, ConstantEffect, Measure, OrderingClaim, Point, RankedPoint, SweepResult};
pub use validation::{ComparedMetric, ComparedRun, QueueDelay, Validation, ValidationCheck, Validations};

#[cfg(all(test, feature = "storage"))]
mod tests;
