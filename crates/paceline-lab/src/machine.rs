//! The machine that a run in real time shared with others: how much of it was left, and how late it made things.
//!
//! A world in virtual time has none: nothing there can be late.

use serde::{Deserialize, Serialize};

/// What a run in real time says of the machine that it ran on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Share of the machine's time, of all its processors, in which it was idle, 0 to 1.
    pub idle: f64,
    /// Share of it that other processes took, 0 to 1.
    pub others: f64,
    /// By how much the link sent packets after their time, µs.
    pub late_us: Percentiles,
    /// By how much the endpoints' timers woke after their time, µs.
    pub wake_us: Percentiles,
    /// Why the run shows the machine and not the path; none: it was not disturbed.
    pub disturbed: Option<String>,
    /// How often the run was made until it was not disturbed, or given up: 1 and more.
    pub attempts: u32,
}

/// How large most of them are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Percentiles {
    /// Median.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Largest.
    pub max: f64,
}
