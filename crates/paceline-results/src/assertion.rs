//! A bound of a scenario and the measured value.

use paceline_records::Statistic;
use serde::{Deserialize, Serialize};

/// A bound and its result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Assertion {
    /// Its name.
    pub id: String,
    /// Metric.
    pub metric: String,
    /// Flow, for a metric of a flow.
    pub flow: Option<String>,
    /// Time window, s.
    pub window_s: (f64, f64),
    /// Whether it is a ratio to a reference.
    pub ratio: bool,
    /// The bounded statistic over the runs.
    #[serde(default)]
    pub runs: Statistic,
    /// Lowest and highest allowed value.
    #[serde(deserialize_with = "paceline_records::json::bounds")]
    pub bounds: (f64, f64),
    /// The measured statistic; `None` if a run has no value.
    pub measured: Option<f64>,
    /// Whether the measured value is within the bounds.
    pub holds: bool,
}
