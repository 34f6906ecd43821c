//! Results: the documents that commands print, and the folders that `--out DIR` writes.
//!
//! ```text
//! DIR/manifest.json                     the list of runs (directory, scenario, world, controllers, seed, hash, files, rows)
//!                                       and of groups (file, scenario, world, controllers, case, changes, seeds, runs)
//! DIR/results/<scenario>_<case>-<controllers>.json
//!                                       the summary of several runs of one scenario, a [`Group`]
//! DIR/comparison.json                   what `compare` found: its table and verdict
//! DIR/runs/<scenario>-<controllers>-seed<N>/       the world's name precedes the seed, except for the simulator
//!     packets.parquet                   one row per datagram sent, across a hop, dropped, arrived
//!     flows.parquet                     round-trip times, loss reports, targets, pacing rates, REMBs
//!     frames.parquet                    frames rendered and frames refused at the sender
//!     signals.parquet                   the signals of the controllers
//!     run.json                          the result, as `run --json` prints it; `validate` adds `waiting`: the number of
//!                                       packets at the bottleneck by queuing delay, in steps of `step_us`
//!     about.json                        the inputs of the run: scenario text, changes, version, path and signals
//! ```
//!
//! Any program that reads Parquet can read the tables. Strings are UTF-8 with dictionary encoding. The name of a column ends
//! in the unit of its values; a `value` column has its unit in the column `unit` (empty for a plain number).
//!
#![doc = include_str!("tables/columns.md")]
//!
//! Row groups have the smallest and the largest value of integers without nulls, such as `time_ns`, so that readers skip
//! the others.
//!
//! Each file's metadata contains `scenario`, `world`, `seed`, `controllers`, `version`, `table` and `units`.
//!
//! A run is written under a temporary name, flushed to the disk, and renamed when it is complete. A folder with a final name
//! is therefore always complete. The rows of a run in real time are also closed every 10 s, in `<run>.parts-<process>-<n>`.
//! If its process is killed, the next start assembles these parts to `<run>-cut`: tables and `about.json`, but no result. The
//! manifest lists it with `cut_at_s`, and a complete run with the same inputs removes it.
//! Memory is bounded for any length of run: rows are written in groups of [`ROW_GROUP`](tables::ROW_GROUP).
//! Several threads and, on Unix, several processes may write to a folder at the same time.

// Without tables nothing writes a manifest.
#![cfg_attr(not(feature = "tables"), allow(dead_code, unused_imports))]

mod cells;
mod comparison;
mod error;
pub mod files;
mod group;
mod kept_rows;
mod manifest;
mod matrix;
#[cfg(feature = "tables")]
mod parts;
#[cfg(feature = "tables")]
mod run_store;
#[cfg(feature = "tables")]
mod store;
mod suite;
mod sweep;
#[cfg(feature = "tables")]
pub mod tables;
pub mod validation;

pub use cells::{
    Assumed, CaseRuns, Cell, ChangeResult, Denominator, EachWindow, ExperimentReport, OtherWorldCell, Report,
    SCOREBOARD_FILE, Scoreboard, Verdict, VerdictCounts, VerdictSummary, count_verdicts,
};
pub use comparison::{
    ComparedDifference, ComparisonRow, ComparisonTable, Comparisons, DifferenceVerdict, Role, Subject,
};
pub use error::StoreError;
pub use files::write_whole;
pub use group::{Assertion, Differences, Group, RunMetrics};
pub use kept_rows::KeptRows;
pub use manifest::{About, MANIFEST_FILE, Manifest, RUNS, RunInputs, StoredFile, StoredGroup, StoredRun};
pub use matrix::{Counts, ExperimentCounts, PaperCounts, papers};
#[cfg(feature = "tables")]
pub use run_store::RunStore;
#[cfg(feature = "tables")]
pub use store::Store;
pub use suite::{
    BoundResult, ChangedVerdict, Held, RowKind, SUITES_FILE, SuiteBound, SuiteReport, SuiteRow, SuiteTest,
    SuitesReport, TestResult, ValueFormat,
};
pub use sweep::{Axis, AxisValues, ConstantEffect, Measure, OrderingClaim, Point, RankedPoint, SweepResult};
pub use validation::{ComparedMetric, ComparedRun, QueueDelay, Validation, ValidationVerdict, Validations};

#[cfg(all(test, feature = "tables"))]
mod tests;
