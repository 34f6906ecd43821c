// SPDX-License-Identifier: MIT OR Apache-2.0
//! The first line of a program: what it needs and what it declares.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The first line of a program.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    /// The version of the protocol: 1.
    pub protocol: u32,
    /// One line of description.
    #[serde(default)]
    pub summary: String,
    /// The document that the controller follows.
    #[serde(default)]
    pub source: String,
    /// A controller of the library, such as `gcc-2016`: its receive half runs at the receiver, and its feedback is used. The
    /// flow has no receive half if this is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_of: Option<String>,
    /// The per-packet feedback, unless `receive_of` is present.
    #[serde(default)]
    pub feedback: FeedbackFormat,
    /// The time between two feedback messages, ms.
    #[serde(default = "interval")]
    pub feedback_interval_ms: u32,
    /// The longest time between two feedback messages, ms. It applies when they would take more than 5 % of the received
    /// rate.
    #[serde(default = "longest")]
    pub feedback_longest_ms: u32,
    /// The delivery of each kind of event, where it differs from the default.
    #[serde(default)]
    pub events: BTreeMap<EventKind, Delivery>,
    /// The signals that answers may contain. Plots and result tables show them.
    #[serde(default)]
    pub signals: Vec<SignalDeclaration>,
    /// The parameters that `--set flow.ID.config.NAME=VALUE` changes.
    #[serde(default)]
    pub parameters: Vec<ParameterDeclaration>,
    /// Whether the laboratory lowers the rate when feedback stops, as for its own controllers. A program that does so itself
    /// sets this to false.
    #[serde(default = "yes")]
    pub guard: bool,
    /// The longest time until an answer, ms of real time, up to 600,000.
    #[serde(default = "answer_timeout")]
    pub answer_timeout_ms: u32,
}

fn interval() -> u32 {
    50
}
fn longest() -> u32 {
    250
}
fn yes() -> bool {
    true
}
fn answer_timeout() -> u32 {
    10_000
}

/// A format of per-packet feedback.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum FeedbackFormat {
    /// No per-packet feedback.
    None,
    /// Transport-wide feedback: arrival times, without ECN.
    #[default]
    TransportWide,
    /// RFC 8888: arrival times and ECN.
    Rfc8888,
}

/// A kind of event.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// A packet left the pacer; default `never`.
    Sent,
    /// Per-packet feedback; default `now`.
    Feedback,
    /// A sample of the round-trip time; default `later`.
    Rtt,
    /// The loss in receiver reports; default `now`.
    Report,
    /// A message of the receive half; default `now`.
    Message,
    /// Proof that packets arrive; default `later`.
    Liveness,
    /// The state of a stream, before each of its frames; default `never`.
    Stream,
    /// A frame was queued in the pacer; default `never`.
    Frame,
    /// The application began or ceased to limit the flow; default `later`.
    ApplicationLimit,
    /// A stream ended; default `later`.
    StreamRemoved,
    /// The limits of the target changed; default `now`.
    Bounds,
    /// The network route changed; default `now`.
    Route,
    /// The network was lost or returned; default `now`.
    Availability,
    /// The time that the last answer requested has come; default `now`.
    Timeout,
}

impl EventKind {
    /// Returns the delivery of a kind that a hello does not list.
    pub fn default_delivery(self) -> Delivery {
        match self {
            Self::Sent | Self::Stream | Self::Frame => Delivery::Never,
            Self::Rtt | Self::Liveness | Self::ApplicationLimit | Self::StreamRemoved => Delivery::Later,
            _ => Delivery::Now,
        }
    }
}

/// When an event is sent to the program.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    /// At once, together with all events that wait. The program answers.
    Now,
    /// With the next line.
    Later,
    /// Not at all.
    Never,
}

/// A signal: a variable of the controller over time.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct SignalDeclaration {
    /// The name in answers, plots and tables.
    pub name: String,
    /// The unit; empty for pure numbers and states.
    #[serde(default)]
    pub unit: String,
    /// The names of the states, if the value is the index of one.
    #[serde(default)]
    pub states: Vec<String>,
}

/// A number of the controller that can be set.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct ParameterDeclaration {
    /// The name.
    pub name: String,
    /// The value if none is set.
    pub default: f64,
    /// The lowest value.
    pub min: f64,
    /// The highest value.
    pub max: f64,
    /// The unit.
    #[serde(default)]
    pub unit: String,
    /// One line of description.
    #[serde(default)]
    pub description: String,
}
