//! A flow of a session, and when it is active.

use paceline_netsim::media_flow::MediaFlow;
use paceline_units::TimeDelta;

/// A flow, built to start at its time.
pub struct SessionFlow {
    /// Its endpoints.
    pub flow: MediaFlow,
    /// Its start, from that of the session on.
    pub start: TimeDelta,
    /// Its end, from the start of the session on.
    pub stop: TimeDelta,
}
