// SPDX-License-Identifier: MIT OR Apache-2.0
//! Computes the verdict on each published value and each bound from the values of the runs.
//!
//! `experiment.rs` has the cases of a scenario, `values.rs` the measured values of their runs, and `cells.rs` makes a cell with a
//! verdict of each published value and each bound.

mod cells;
mod experiment;
mod null_sender;
mod tolerance;
mod values;

pub use cells::{CAUSE_NOT_FOUND, assumed, cells_of};
pub use experiment::Experiment;
pub use null_sender::null_sender;
pub use tolerance::{Tolerance, tolerance};

pub(crate) use cells::{judge, kind_of};
pub(crate) use values::{ExperimentRuns, RunValues};
