//! Reproduction: every published value and every bound of an experiment, with the measured value and a verdict.
//!
//! ```text
//! experiments x cases x seeds, as written and with the null sender ─runs─▶ values ─judge─▶ cells ─▶ report
//! ```
//!
//! `experiment.rs` has the scenarios, `runs.rs` makes the runs, and `cells.rs` judges them. `reproduction.rs` combines these:
//! where an interval is too wide for a verdict, it adds the next seeds.

mod cells;
mod complete;
mod experiment;
mod formula;
mod null_sender;
mod realtime;
mod reproduction;
mod runs;
mod sensitivity;
mod targets;
mod tolerance;
mod verdict;

pub(crate) use cells::judge;
pub use cells::{assumed, cells_of};
pub use complete::Limits;
pub use experiment::Experiment;
pub use formula::{FORMULAS, Formula, FormulaTable};
pub use null_sender::null_sender;
pub use realtime::{FinishedRun, PendingRun, RealtimeExperiment, RealtimeReproduction};
pub use reproduction::reproduce;
pub use runs::{SEEDS_MAX, Seeds};
pub use sensitivity::{ConstantEnd, ConstantReport, SensitivityReport, SensitivitySummary, VerdictChange, sensitivity};
pub use targets::{Targets, Verdicts};
pub use tolerance::{Tolerance, tolerance};

#[cfg(test)]
mod tests;
