// SPDX-License-Identifier: MIT OR Apache-2.0
//! The answers of a program.

use super::input::Ecn;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A line of the program: the decision, until the next answer.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Answer<'a> {
    /// The sending rate of the flow, IP and UDP headers included.
    pub target_bps: u64,
    /// A rate up to the target that changes more slowly; the target if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stable_target_bps: Option<u64>,
    /// The rate at which the pacer empties its queue; the target if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pacing_bps: Option<u64>,
    /// If above 0, packets leave in bursts of this length.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub burst_ns: u64,
    /// If above 0, packets leave at multiples of this time only.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tick_ns: u64,
    /// The bound on bytes in flight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<Window>,
    /// Padding fills what media leaves free up to this rate.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub padding_bps: u64,
    /// The ECN codepoint of RTP packets: `not-ect`, `ect0` or `ect1`.
    #[serde(default)]
    pub ecn: Ecn,
    /// The longest wait of a frame in the pacer's queue; the flow's limit if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_max_ns: Option<u64>,
    /// The time of the next `timeout` event; none if absent. A time in the past is due at once. After a timeout it must be later
    /// than the time that has come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ns: Option<i64>,
    /// Probe clusters to send, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub probes: Vec<Probe>,
    /// The rate of each stream by its number, if the program divides the target itself.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub stream_rates_bps: BTreeMap<u8, u64>,
    /// Values of declared signals. They are kept in answers to feedback, rtt, report, message, bounds, route and timeout.
    #[serde(default, borrow, skip_serializing_if = "BTreeMap::is_empty")]
    pub signals: BTreeMap<Cow<'a, str>, f64>,
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}

/// A bound on bytes in flight.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Window {
    /// On the bytes that are neither acknowledged nor lost.
    OutstandingBytes(u64),
    /// On the bytes sent after the highest acknowledged packet.
    AfterHighestBytes(u64),
}

/// A probe cluster.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Probe {
    /// A number of the program's choice. The packets of the cluster have it.
    pub id: u16,
    /// The rate of its packets.
    pub rate_bps: u64,
    /// The cluster ends when this much time's worth of bytes at its rate has left.
    pub duration_ns: u64,
    /// The least number of packets.
    pub packets: u16,
}
