// SPDX-License-Identifier: MIT OR Apache-2.0
//! The load of the host during a run in real time, and how late it made packets and timers. The simulator has neither.

use serde::{Deserialize, Serialize};

/// Load and lateness of the host during a run in real time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostStats {
    /// Share of processor time, over all processors, that was idle, 0 to 1.
    pub idle: f64,
    /// Share of processor time that other processes used, 0 to 1.
    pub others: f64,
    /// The lateness with which the link sent packets, µs.
    pub late_us: Percentiles,
    /// The lateness with which the endpoints' timers fired, µs.
    pub wake_us: Percentiles,
    /// The reason why the measurement is disturbed; `None` if it is not.
    pub disturbed: Option<String>,
    /// Number of attempts until a run was not disturbed or the limit was reached; at least 1.
    pub attempts: u32,
}

/// Percentiles of a distribution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Percentiles {
    /// Median.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Maximum.
    pub max: f64,
}
