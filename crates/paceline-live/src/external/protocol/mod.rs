// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lines that the laboratory and a program exchange, as types. `paceline schema controller` prints their JSON schema.
//!
//! ```text
//! program -> laboratory   hello      once, at the start
//! laboratory -> program   start      the limits of a flow; then `events`, again and again
//! program -> laboratory   answer     one for each of them
//! ```
//!
//! Times are nanoseconds, rates bits per second, sizes bytes, all as integers, so a line contains exactly what a controller
//! in Rust receives.

mod answer;
mod convert;
mod hello;
mod input;

pub use answer::{Answer, Probe, Window};
pub use hello::{Delivery, EventKind, FeedbackFormat, Hello, ParameterDeclaration, SignalDeclaration};
pub use input::{Ecn, Event, Input, Kind, Packet, ReceiverMessage, RoundTrip, Sent, Setup, Stream, TimedEvent};

use schemars::JsonSchema;
use serde::Serialize;

/// The version of the protocol.
pub const PROTOCOL: u32 = 1;

/// Every line of the protocol, for the schema.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "the schema alone is used")]
enum Line<'a> {
    /// From the program: its first line.
    Hello(Box<Hello>),
    /// To the program.
    Input(Box<Input<'a>>),
    /// From the program: one after each line that it receives.
    Answer(Box<Answer<'a>>),
}

/// Returns the JSON schema of the lines. `$defs` has one entry for each type.
pub fn schema() -> serde_json::Value {
    let mut schema = schemars::schema_for!(Line<'static>).to_value();
    schema["title"] = "Lines between Paceline and an external controller".into();
    schema
}
