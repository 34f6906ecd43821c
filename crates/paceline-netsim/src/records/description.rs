// SPDX-License-Identifier: MIT OR Apache-2.0
//! Metadata of a run that its events do not carry. Reports read [`RunDescription`] from the stored results.

use serde::{Deserialize, Serialize};

/// The objects to which the events of a run refer by index.
#[derive(Clone, Debug, PartialEq)]
pub struct RunHeader {
    /// Scenario id.
    pub scenario: String,
    /// Name of the world that made the run.
    pub world: String,
    /// Seed of the run.
    pub seed: u64,
    /// Name of each hop, forward path first.
    pub hops: Vec<String>,
    /// Name of each flow.
    pub flows: Vec<String>,
    /// Controller of each media flow or congestion control of each TCP flow; `None` for a flow without control.
    pub controllers: Vec<Option<String>>,
    /// Signals (name, unit) of each flow's send half and receive half.
    pub signals: Vec<[Vec<(String, String)>; 2]>,
}

/// The scenario of a run, as plots need it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunDescription {
    /// Title of the scenario, in one line.
    pub title: String,
    /// Source of the scenario, such as a paper and a table.
    pub source: String,
    /// Duration of the run, s.
    pub duration_s: f64,
    /// Every hop, forward path first.
    pub hops: Vec<HopDescription>,
    /// Every flow.
    pub flows: Vec<FlowDescription>,
}

/// A hop, as plots need it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HopDescription {
    /// Name.
    pub id: String,
    /// Whether it is on the forward path.
    pub forward: bool,
    /// Capacity over time: start time (s) and rate (bit/s) of each step. A recorded trace is given as means over 100
    /// ms. `None` means unlimited.
    pub capacity: Option<Vec<(f64, f64)>>,
    /// Queue discipline.
    pub queue: String,
    /// Queue limit and its unit: `ms` (of drain time), `B` or `packets`.
    pub limit: (f64, String),
}

/// A flow, as plots need it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowDescription {
    /// Name.
    pub id: String,
    /// `media` or `tcp`.
    pub kind: String,
    /// Names of the hops on the data path, in order.
    pub route: Vec<String>,
    /// Earliest start and end of the flow, s.
    pub lives_s: (f64, f64),
    /// Round-trip propagation delay over time: start time (s) and delay (ms) of each step.
    pub propagation: Vec<(f64, f64)>,
    /// Name of each stream.
    pub streams: Vec<String>,
    /// Signals of the send half and of the receive half.
    pub signals: [Vec<SignalDescription>; 2],
}

/// A signal, as plots need it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SignalDescription {
    pub name: String,
    /// Unit of the values; empty for a plain number or a state.
    pub unit: String,
    /// Name of each value of a state; empty for a number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub states: Vec<String>,
}
