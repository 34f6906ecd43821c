//! Names for the things a run is made of, small enough to copy.

/// A flow: one transport (5-tuple) with one controller, numbered in scenario order from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(pub u16);

/// A stream of a flow (one video or audio source), numbered in scenario order from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u8);
