//! Records on their way to the file. One that shows a packet coming to a hop waits until it is known what becomes of it
//! there, and all that come after it wait behind it, so that the file is in order of time.

use super::taps::Way;
use paceline_units::Time;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;

/// Most records that wait, some tens of megabytes. Beyond that the first goes without its fate.
const LIMIT: usize = 1 << 16;

/// A packet at a place, as the file will have it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Record {
    pub at: Time,
    pub interface: u32,
    pub way: Way,
    /// What there is of the packet.
    pub bytes: Vec<u8>,
    /// How long the packet is, bytes.
    pub size: u32,
    pub comment: String,
}

impl Record {
    /// Adds a word to the comment.
    pub fn add(&mut self, word: fmt::Arguments<'_>) {
        self.comment += &format!(" {word}");
    }
}

/// Records in order of time.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// With each: whether its fate is open.
    records: VecDeque<(Record, bool)>,
    /// How many have gone.
    gone: u64,
    /// The record of each packet whose fate is open, counted from the first ever.
    open: BTreeMap<u64, u64>,
    closed: bool,
}

impl Waiting {
    /// Takes a record; with a packet's number it waits for that packet's fate.
    pub fn push(&mut self, record: Record, packet: Option<u64>) {
        if let Some(packet) = packet {
            self.open.insert(packet, self.gone + self.records.len() as u64);
        }
        self.records.push_back((record, packet.is_some()));
    }

    /// What became of a packet, if its record still waits.
    pub fn settle(&mut self, packet: u64, fate: fmt::Arguments<'_>) {
        let Some(index) = self.open.remove(&packet) else { return };
        let Some(index) = index.checked_sub(self.gone) else { return };
        let (record, open) = &mut self.records[index as usize];
        record.add(fate);
        *open = false;
    }

    /// No fate will be known any more.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// The next record that waits for nothing.
    pub fn next(&mut self) -> Option<Record> {
        let (_, open) = self.records.front()?;
        if *open && !self.closed && self.records.len() <= LIMIT {
            return None;
        }
        self.gone += 1;
        self.records.pop_front().map(|(record, _)| record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(n: u64) -> Record {
        let at = Time::from_nanos(n as i64);
        Record { at, interface: 0, way: Way::In, bytes: Vec::new(), size: 0, comment: format!("packet={n}") }
    }

    fn gone(waiting: &mut Waiting) -> Vec<String> {
        std::iter::from_fn(|| waiting.next()).map(|r| r.comment).collect()
    }

    #[test]
    fn all_wait_behind_the_first_whose_fate_is_open() {
        let mut waiting = Waiting::default();
        waiting.push(record(1), None);
        waiting.push(record(2), Some(2));
        waiting.push(record(3), Some(3));
        waiting.push(record(4), None);
        assert_eq!(gone(&mut waiting), ["packet=1"]);
        waiting.settle(3, format_args!("dropped=loss"));
        waiting.settle(9, format_args!("never seen"));
        assert_eq!(gone(&mut waiting), [""; 0]);
        waiting.settle(2, format_args!("queued_ms=0.000"));
        assert_eq!(gone(&mut waiting), ["packet=2 queued_ms=0.000", "packet=3 dropped=loss", "packet=4"]);
        waiting.push(record(5), Some(5));
        waiting.push(record(2), Some(2));
        waiting.settle(2, format_args!("at the next hop"));
        assert_eq!(gone(&mut waiting), [""; 0]);
        waiting.close();
        assert_eq!(gone(&mut waiting), ["packet=5", "packet=2 at the next hop"]);
    }

    #[test]
    fn no_more_wait_than_the_limit() {
        let mut waiting = Waiting::default();
        for n in 0..LIMIT as u64 {
            waiting.push(record(n), Some(n));
            assert_eq!(waiting.next(), None);
        }
        waiting.push(record(LIMIT as u64), None);
        assert_eq!(waiting.next(), Some(record(0)));
        assert_eq!(waiting.next(), None);
        waiting.settle(0, format_args!("too late"));
        waiting.settle(1, format_args!("queued_ms=1.000"));
        assert_eq!(waiting.next().unwrap().comment, "packet=1 queued_ms=1.000");
        assert_eq!(waiting.next(), None);
    }
}
