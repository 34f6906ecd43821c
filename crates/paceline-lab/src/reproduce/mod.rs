// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reproduction: every published value and every bound of an experiment, with the measured value and a verdict.
//!
//! ```text
//! experiments x cases x seeds, as written and with the null sender ─runs─▶ values ─judge─▶ cells ─▶ report
//! ```
//!
//! `runs.rs` makes the runs, and [`crate::judge`] judges them. `reproduction.rs` combines both: where an interval is too wide for
//! a verdict, it adds the next seeds.

mod complete;
mod conclusions;
mod formula;
mod realtime;
mod reproduction;
mod runs;
mod sensitivity;
mod targets;

pub use complete::Limits;
pub use conclusions::Conclusions;
pub use formula::{FORMULAS, Formula, FormulaTable};
pub use realtime::{FinishedRun, PendingRun, RealtimeExperiment, RealtimeReproduction};
pub use reproduction::reproduce;
pub use runs::{RunContext, SEEDS_MAX, Seeds};
pub(crate) use runs::{RunJob, restore, run_jobs, traffic};
pub use sensitivity::{ConstantEnd, ConstantReport, SensitivityReport, SensitivitySummary, VerdictChange, sensitivity};
pub use targets::{Targets, Verdicts};

#[cfg(test)]
mod tests;
