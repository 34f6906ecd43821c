//! The result of a run.

use paceline_records::HostStats;

/// The result of a run, besides its events.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The trace hash over every decision of links and endpoints; equal runs have equal hashes.
    pub trace_hash: u64,
    /// Number of events handled.
    pub events: u64,
    /// Maximum length of the event queue.
    pub pending_max: usize,
    /// Number of packets that reached their endpoint.
    pub delivered: u64,
    /// Statistics of the host; `None` in virtual time.
    pub machine: Option<HostStats>,
}
