//! A line: one packet after the other, each for its serialisation time.

use super::{CapacityNeed, ServerEntry, Service};

pub(super) const ENTRY: ServerEntry = ServerEntry {
    name: "line",
    summary: "one packet after the other, each for its own time",
    parameters: &[],
    implied_by: None,
    needs: CapacityNeed::Any,
    build: |_| Ok(Service::default()),
};
