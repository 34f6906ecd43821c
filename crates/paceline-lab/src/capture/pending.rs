// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records that are not written yet. The record of a packet that enters a hop waits until the outcome at that hop is known.
//! Later records wait behind it, so that the file is in order of time.

use super::taps::Direction;
use paceline_units::Time;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;

/// Maximum number of pending records, some tens of megabytes. Beyond it the first is written without its outcome.
const LIMIT: usize = 1 << 16;

/// A packet at a tap, as the file represents it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Record {
    pub at: Time,
    pub interface: u32,
    pub direction: Direction,
    /// The bytes of the packet, as far as they exist.
    pub bytes: Vec<u8>,
    /// Full length of the packet, bytes.
    pub size: u32,
    pub comment: String,
}

impl Record {
    pub fn add(&mut self, word: fmt::Arguments<'_>) {
        self.comment += &format!(" {word}");
    }
}

#[derive(Debug, Default)]
pub(super) struct PendingRecords {
    /// Each record, and whether its outcome is unknown.
    records: VecDeque<(Record, bool)>,
    written: u64,
    /// Number of the record of each packet whose outcome is unknown, counted from the first of the file.
    open: BTreeMap<u64, u64>,
    closed: bool,
}

impl PendingRecords {
    pub fn push(&mut self, record: Record, packet: Option<u64>) {
        if let Some(packet) = packet {
            self.open.insert(packet, self.written + self.records.len() as u64);
        }
        self.records.push_back((record, packet.is_some()));
    }

    /// Adds the outcome of a packet to its record, if that is still pending.
    pub fn resolve(&mut self, packet: u64, outcome: fmt::Arguments<'_>) {
        let Some(index) = self.open.remove(&packet) else { return };
        let Some(index) = index.checked_sub(self.written) else { return };
        let (record, open) = &mut self.records[index as usize];
        record.add(outcome);
        *open = false;
    }

    /// Releases all records: no outcome follows.
    pub fn close(&mut self) {
        self.closed = true;
    }

    pub fn next(&mut self) -> Option<Record> {
        let (_, open) = self.records.front()?;
        if *open && !self.closed && self.records.len() <= LIMIT {
            return None;
        }
        self.written += 1;
        self.records.pop_front().map(|(record, _)| record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(n: u64) -> Record {
        let at = Time::from_nanos(n as i64);
        Record {
            at,
            interface: 0,
            direction: Direction::In,
            bytes: Vec::new(),
            size: 0,
            comment: format!("packet={n}"),
        }
    }

    fn ready(pending: &mut PendingRecords) -> Vec<String> {
        std::iter::from_fn(|| pending.next()).map(|r| r.comment).collect()
    }

    #[test]
    fn records_wait_behind_the_first_without_outcome() {
        let mut pending = PendingRecords::default();
        pending.push(record(1), None);
        pending.push(record(2), Some(2));
        pending.push(record(3), Some(3));
        pending.push(record(4), None);
        assert_eq!(ready(&mut pending), ["packet=1"]);
        pending.resolve(3, format_args!("dropped=loss"));
        pending.resolve(9, format_args!("never seen"));
        assert_eq!(ready(&mut pending), [""; 0]);
        pending.resolve(2, format_args!("queued_ms=0.000"));
        assert_eq!(ready(&mut pending), ["packet=2 queued_ms=0.000", "packet=3 dropped=loss", "packet=4"]);
        pending.push(record(5), Some(5));
        pending.push(record(2), Some(2));
        pending.resolve(2, format_args!("at the next hop"));
        assert_eq!(ready(&mut pending), [""; 0]);
        pending.close();
        assert_eq!(ready(&mut pending), ["packet=5", "packet=2 at the next hop"]);
    }

    #[test]
    fn pending_records_are_bounded() {
        let mut pending = PendingRecords::default();
        for n in 0..LIMIT as u64 {
            pending.push(record(n), Some(n));
            assert_eq!(pending.next(), None);
        }
        pending.push(record(LIMIT as u64), None);
        assert_eq!(pending.next(), Some(record(0)));
        assert_eq!(pending.next(), None);
        pending.resolve(0, format_args!("too late"));
        pending.resolve(1, format_args!("queued_ms=1.000"));
        assert_eq!(pending.next().unwrap().comment, "packet=1 queued_ms=1.000");
        assert_eq!(pending.next(), None);
    }
}
