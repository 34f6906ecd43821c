// SPDX-License-Identifier: MIT OR Apache-2.0
//! The effect of an ACK on the scoreboard: the acknowledged segments, and those that are thereby found lost.

use super::{AMBIGUOUS, DUP_THRESH, Entry, FORGOTTEN, LOST, RETRANSMITTED, SACKED, Scoreboard};
use paceline_units::Time;

/// The changes that an ACK made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::flow::tcp) struct AckSummary {
    /// Bytes newly acknowledged in order.
    pub acked: u64,
    /// Bytes newly acknowledged selectively.
    pub sacked: u64,
    /// Bytes newly known to be received, in order or selectively.
    pub delivered: u64,
    /// Part of `delivered` that had been acknowledged selectively before a timeout discarded that.
    pub repeated: u64,
    /// Bytes newly found lost.
    pub lost: u64,
    /// Send time and number of the most recently sent segment in `delivered`, without those in `repeated`.
    pub newest: Option<(Time, u64)>,
    /// The same for segments that were sent once, so that it is certain which transmission arrived.
    newest_unambiguous: Option<(Time, u64)>,
    /// Send times of the first and last segment that was newly acknowledged in order and was sent once. `None` if one
    /// of those acknowledged was sent twice.
    pub acked_sent: Option<(Time, Time)>,
    /// Send times of the first and last segment that was newly acknowledged selectively and was sent once.
    pub sacked_sent: Option<(Time, Time)>,
}

impl AckSummary {
    /// Counts a segment that is newly known to be received.
    #[inline]
    fn add_delivered(&mut self, number: u64, entry: Entry, size: u64) {
        self.delivered += size;
        if entry.marks & FORGOTTEN != 0 {
            self.repeated += size;
        } else {
            raise(&mut self.newest, (entry.sent, number));
            if entry.marks & AMBIGUOUS == 0 {
                raise(&mut self.newest_unambiguous, (entry.sent, number));
            }
        }
    }
}

/// Replaces the most recently sent segment by one that was sent later.
#[inline]
fn raise(newest: &mut Option<(Time, u64)>, segment: (Time, u64)) {
    if newest.is_none_or(|newest| newest < segment) {
        *newest = Some(segment);
    }
}

impl Scoreboard {
    /// Handles an ACK up to byte `acknowledged`, counted from the first byte of data, with these SACK ranges of bytes.
    #[inline]
    pub fn handle_ack(&mut self, acknowledged: u64, ranges: impl Iterator<Item = (u64, u64)>) -> AckSummary {
        let mut summary = AckSummary::default();
        self.acknowledge(acknowledged, &mut summary);
        for (start, end) in ranges {
            let first = start.div_ceil(self.segment);
            self.acknowledge_selectively(first, self.whole_segments(end), &mut summary);
        }
        if summary.sacked > 0 {
            self.detect_losses(&mut summary);
        }
        if let Some(newest) = summary.newest_unambiguous {
            self.detect_lost_retransmissions(newest, &mut summary);
        }
        summary
    }

    /// Returns the number of segments that end at or before this byte.
    #[inline]
    fn whole_segments(&self, byte: u64) -> u64 {
        let tail = byte >= self.offset(self.tail_number).saturating_add(self.tail);
        if tail { self.tail_number + 1 } else { byte / self.segment }
    }

    #[inline]
    fn acknowledge(&mut self, acknowledged: u64, summary: &mut AckSummary) {
        let mut ambiguous = false;
        let mut offset = self.offset(self.base);
        while let size = self.size(self.base)
            && offset.saturating_add(size) <= acknowledged
            && let Some(entry) = self.entries.pop_front()
        {
            offset += size;
            self.flight -= size;
            summary.acked += size;
            if entry.marks & SACKED != 0 {
                self.sacked -= size;
            } else {
                summary.add_delivered(self.base, entry, size);
                self.remove_from_counts(entry.marks, size);
                ambiguous |= entry.marks & AMBIGUOUS != 0;
                let first = summary.acked_sent.map_or(entry.sent, |(first, _)| first);
                summary.acked_sent = Some((first, entry.sent));
            }
            self.base += 1;
        }
        if ambiguous {
            summary.acked_sent = None;
        }
        self.lost_below = self.lost_below.max(self.base);
        self.retransmitted_below = self.retransmitted_below.max(self.base);
    }

    /// Removes a segment that was not SACKED from the counts of lost and retransmitted bytes.
    #[inline]
    fn remove_from_counts(&mut self, marks: u8, size: u64) {
        if marks & LOST != 0 {
            self.lost -= size;
        }
        if marks & RETRANSMITTED != 0 {
            self.retransmitted -= size;
        }
    }

    /// Marks the segments from `first` to before `end` as SACKED. Runs that are already marked are skipped in a few
    /// steps.
    fn acknowledge_selectively(&mut self, first: u64, end: u64, summary: &mut AckSummary) {
        let end = end.min(self.end());
        let mut number = self.unsacked_from(first.max(self.base));
        while number < end {
            let size = self.size(number);
            let index = (number - self.base) as usize;
            let entry = self.entries[index];
            let Entry { sent, marks, .. } = entry;
            self.remove_from_counts(marks, size);
            self.entries[index].marks = (marks & AMBIGUOUS) | SACKED;
            self.entries[index].skip = 1;
            self.sacked += size;
            summary.sacked += size;
            summary.add_delivered(number, entry, size);
            if marks & AMBIGUOUS == 0 {
                let first = summary.sacked_sent.map_or(sent, |(first, _)| first);
                summary.sacked_sent = Some((first, sent));
            }
            self.update_highest(number);
            number = self.unsacked_from(number + 1);
        }
    }

    #[inline]
    fn update_highest(&mut self, number: u64) {
        let mut number = Some(number);
        for place in &mut self.highest {
            if number > *place {
                core::mem::swap(&mut number, place);
            }
        }
    }

    /// Marks the segments with three SACKED segments above them as lost.
    fn detect_losses(&mut self, summary: &mut AckSummary) {
        let Some(third) = self.highest[DUP_THRESH - 1] else { return };
        let mut number = self.unsacked_from(self.lost_below.max(self.base));
        while number < third {
            let index = (number - self.base) as usize;
            let size = self.size(number);
            self.entries[index].marks |= LOST;
            self.lost += size;
            summary.lost += size;
            number = self.unsacked_from(number + 1);
        }
        self.lost_below = self.lost_below.max(third);
    }

    /// Marks the retransmissions that were sent before the received segment `newest` as lost (RFC 8985).
    #[inline]
    fn detect_lost_retransmissions(&mut self, newest: (Time, u64), summary: &mut AckSummary) {
        while let Some(&(sent, number)) = self.in_flight.front().filter(|sent| **sent < newest) {
            self.in_flight.pop_front();
            if number < self.base {
                continue;
            }
            let size = self.size(number);
            let entry = &mut self.entries[(number - self.base) as usize];
            if entry.marks & RETRANSMITTED != 0 && entry.sent == sent {
                entry.marks &= !RETRANSMITTED;
                self.retransmitted -= size;
                summary.lost += size;
                self.lost_again.push_back(number);
            }
        }
    }
}
