// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ids of flows and streams.

/// The id of a flow, which is one transport (5-tuple) with one controller. Flows are numbered from 0; in a simulation in the
/// order of the scenario.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(pub u16);

/// The id of a stream, which is one video or audio source of a flow. Streams are numbered from 0; in a simulation in
/// the order of the scenario.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u8);
