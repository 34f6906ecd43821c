// SPDX-License-Identifier: MIT OR Apache-2.0
//! The scoreboard of RFC 6675, section 3: which segments in flight are acknowledged, lost or retransmitted.
//!
//! All segments are full except the last of a transfer, so a segment's number is its offset divided by the segment
//! size. A segment is lost when three segments above it were acknowledged selectively. For such segments this is
//! `IsLost` of RFC 6675, because three discontiguous ranges hold three segments, and so do more than two segment sizes.
//! All segments below a lost one are lost or acknowledged, so one mark ([`lost_below`](Scoreboard::lost_below)) is
//! enough, and it only rises. `pipe` is updated incrementally, and no ACK iterates over the window.

mod ack;
mod retransmission;

use paceline_units::Time;
use std::collections::VecDeque;

pub(super) use ack::AckSummary;

/// DupThresh (RFC 5681, RFC 6675): the number of SACKED segments above that indicates a loss.
pub(super) const DUP_THRESH: usize = 3;

const SACKED: u8 = 1;
/// Counted in `lost`.
const LOST: u8 = 2;
/// Retransmitted in the current recovery; counted in `retransmitted`.
const RETRANSMITTED: u8 = 4;
/// Retransmitted at any time: gives no round-trip time (Karn's algorithm).
const AMBIGUOUS: u8 = 8;
/// Was SACKED before a timeout discarded that.
const FORGOTTEN: u8 = 16;

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// The time at which it was last sent.
    sent: Time,
    /// If SACKED: the next segment that may not be SACKED is at least this many segments further.
    skip: u32,
    marks: u8,
}

#[derive(Debug)]
pub(super) struct Scoreboard {
    /// Bytes in a full segment and in the last one, and the number of the last one.
    segment: u64,
    tail: u64,
    tail_number: u64,
    /// Number of the first entry, which is the first unacknowledged segment (HighACK + 1).
    base: u64,
    entries: VecDeque<Entry>,
    /// The three highest SACKED segments, highest first.
    highest: [Option<u64>; DUP_THRESH],
    /// Segments below are SACKED or LOST.
    lost_below: u64,
    /// Segments below are SACKED or RETRANSMITTED (HighRxt + 1).
    retransmitted_below: u64,
    detect_lost_retransmissions: bool,
    /// Send time and number of the retransmissions in flight, in order.
    in_flight: VecDeque<(Time, u64)>,
    /// Lost retransmissions that were not repeated yet.
    lost_again: VecDeque<u64>,
    /// Bytes in `entries`, and the part of them that is SACKED, LOST, RETRANSMITTED (the last two without SACKED).
    flight: u64,
    sacked: u64,
    lost: u64,
    retransmitted: u64,
}

impl Scoreboard {
    /// Creates a scoreboard for `total` bytes in segments of `segment` bytes. With `detect_lost_retransmissions`, a
    /// retransmission is lost once a segment sent after it has arrived (RFC 8985, without its reordering window).
    pub fn new(segment: u64, total: u64, detect_lost_retransmissions: bool) -> Self {
        let tail_number = total.div_ceil(segment).max(1) - 1;
        Self {
            segment,
            tail: total - tail_number * segment,
            tail_number,
            base: 0,
            entries: VecDeque::new(),
            highest: [None; DUP_THRESH],
            lost_below: 0,
            retransmitted_below: 0,
            detect_lost_retransmissions,
            in_flight: VecDeque::new(),
            lost_again: VecDeque::new(),
            flight: 0,
            sacked: 0,
            lost: 0,
            retransmitted: 0,
        }
    }

    /// Resets the scoreboard for a new connection. Allocated memory is kept.
    pub fn reset(&mut self, total: u64) {
        let mut entries = core::mem::take(&mut self.entries);
        entries.clear();
        self.clear_retransmissions();
        let (in_flight, lost_again) = (core::mem::take(&mut self.in_flight), core::mem::take(&mut self.lost_again));
        *self =
            Self { entries, in_flight, lost_again, ..Self::new(self.segment, total, self.detect_lost_retransmissions) };
    }

    #[inline]
    pub fn size(&self, number: u64) -> u64 {
        if number == self.tail_number { self.tail } else { self.segment }
    }

    /// Returns the offset of segment `number` in bytes.
    #[inline]
    pub fn offset(&self, number: u64) -> u64 {
        number * self.segment
    }

    /// Returns the bytes acknowledged since the connection began.
    pub fn acknowledged(&self) -> u64 {
        self.offset(self.base)
    }

    /// Returns the bytes sent since the connection began.
    pub fn sent(&self) -> u64 {
        self.offset(self.end())
    }

    /// Returns the number of the first unacknowledged segment.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// Returns the number of the next new segment (HighData + 1), or `None` if all were sent.
    #[inline]
    pub fn next_new(&self) -> Option<u64> {
        let next = self.end();
        (next <= self.tail_number).then_some(next)
    }

    /// Returns one past the number of the last sent segment.
    #[inline]
    pub fn end(&self) -> u64 {
        self.base + self.entries.len() as u64
    }

    /// Returns whether all data was sent and acknowledged.
    pub fn is_done(&self) -> bool {
        self.base > self.tail_number
    }

    /// Returns the bytes sent and not cumulatively acknowledged (FlightSize).
    #[inline]
    pub fn flight(&self) -> u64 {
        self.flight
    }

    /// Returns the estimated bytes in the network (`SetPipe` of RFC 6675).
    #[inline]
    pub fn pipe(&self) -> u64 {
        self.flight - self.sacked - self.lost + self.retransmitted
    }

    /// Returns whether any data is acknowledged selectively.
    #[inline]
    pub fn has_holes(&self) -> bool {
        self.sacked > 0
    }

    /// Returns the first segment that is not acknowledged.
    pub fn first_unsacked(&mut self) -> Option<u64> {
        let number = self.unsacked_from(self.base);
        (number < self.end()).then_some(number)
    }

    /// Returns `IsLost` of the first segment that is not acknowledged.
    #[inline]
    pub fn first_is_lost(&mut self) -> bool {
        self.first_unsacked().is_some_and(|number| number < self.lost_below)
    }

    /// Records that the next new segment was sent.
    #[inline]
    pub fn handle_sent(&mut self, now: Time) {
        self.flight += self.size(self.end());
        self.entries.push_back(Entry { sent: now, skip: 0, marks: 0 });
    }

    /// Returns the first segment from `number` on that is not SACKED, or the end. Updates the skip distances on the
    /// way, so that later searches are shorter.
    #[inline]
    fn unsacked_from(&mut self, number: u64) -> u64 {
        let (base, end) = (self.base, self.end());
        let mut found = number;
        while found < end && self.entries[(found - base) as usize].marks & SACKED != 0 {
            found += self.entries[(found - base) as usize].skip as u64;
        }
        let mut at = number;
        while at < found {
            let entry = &mut self.entries[(at - base) as usize];
            let next = at + entry.skip as u64;
            entry.skip = (found - at) as u32;
            at = next;
        }
        found
    }

    fn clear_retransmissions(&mut self) {
        self.in_flight.clear();
        self.lost_again.clear();
    }

    /// Recomputes all counts from the marks and panics if they differ. For tests.
    pub fn check(&self) {
        let mut sums = [0; 4];
        let (mut above, mut first_lost) = (0, None);
        for (index, entry) in self.entries.iter().enumerate().rev() {
            let number = self.base + index as u64;
            let size = self.size(number);
            let sacked = entry.marks & SACKED != 0;
            sums[0] += size;
            sums[1] += if sacked { size } else { 0 };
            sums[2] += if entry.marks & LOST != 0 { size } else { 0 };
            sums[3] += if entry.marks & RETRANSMITTED != 0 { size } else { 0 };
            assert!(
                !sacked || entry.marks & (LOST | RETRANSMITTED) == 0,
                "a SACKED segment is neither lost nor retransmitted"
            );
            assert!(!sacked || entry.skip >= 1);
            assert!(
                sacked || (entry.marks & LOST != 0) == (number < self.lost_below),
                "LOST must agree with lost_below"
            );
            if above >= DUP_THRESH && first_lost.is_none() {
                first_lost = Some(number);
            }
            above += sacked as usize;
        }
        assert_eq!(sums, [self.flight, self.sacked, self.lost, self.retransmitted]);
        assert!(self.flight + self.retransmitted >= self.sacked + self.lost, "pipe is negative");
        if let Some(number) = first_lost {
            assert!(number < self.lost_below, "IsLost({number}) but the mark is at {}", self.lost_below);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1000;

    fn sent(count: u64) -> Scoreboard {
        let mut scoreboard = Scoreboard::new(MSS, u64::MAX, false);
        for n in 0..count {
            scoreboard.handle_sent(Time::from_millis(n as i64));
        }
        scoreboard
    }

    fn sack(scoreboard: &mut Scoreboard, acknowledged: u64, ranges: &[(u64, u64)]) -> AckSummary {
        let summary = scoreboard.handle_ack(acknowledged * MSS, ranges.iter().map(|(a, b)| (a * MSS, b * MSS)));
        scoreboard.check();
        summary
    }

    #[test]
    fn a_segment_is_lost_with_three_sacked_above_it() {
        let mut scoreboard = sent(10);
        sack(&mut scoreboard, 2, &[(3, 4)]);
        sack(&mut scoreboard, 2, &[(3, 5)]);
        assert!(!scoreboard.first_is_lost());
        assert_eq!(scoreboard.pipe(), 6 * MSS);
        let summary = sack(&mut scoreboard, 2, &[(3, 6)]);
        assert!(scoreboard.first_is_lost());
        assert_eq!((summary.sacked, summary.lost, summary.delivered), (MSS, MSS, MSS));
        assert_eq!(scoreboard.pipe(), 4 * MSS);
        // Three ranges of one segment each also count; the segments between them are not lost yet.
        let mut scoreboard = sent(10);
        sack(&mut scoreboard, 0, &[(6, 7), (4, 5), (2, 3)]);
        assert_eq!((scoreboard.next_lost(), scoreboard.lost), (Some(0), 2 * MSS));
        scoreboard.handle_retransmitted(Time::ZERO, 0, false);
        scoreboard.handle_retransmitted(Time::ZERO, 1, false);
        assert_eq!((scoreboard.next_lost(), scoreboard.next_unsacked()), (None, Some(3)));
        assert_eq!(scoreboard.last_unsacked(), Some(9));
        scoreboard.check();
    }

    #[test]
    fn retransmitted_segments_give_no_round_trip_time() {
        let mut scoreboard = sent(10);
        let summary = sack(&mut scoreboard, 2, &[]);
        assert_eq!(summary.acked_sent, Some((Time::from_millis(0), Time::from_millis(1))));
        sack(&mut scoreboard, 2, &[(3, 7)]);
        scoreboard.handle_retransmitted(Time::from_millis(50), 2, false);
        let summary = sack(&mut scoreboard, 8, &[]);
        assert_eq!((summary.acked, summary.delivered, summary.acked_sent), (6 * MSS, 2 * MSS, None));
        assert_eq!(sack(&mut scoreboard, 9, &[]).acked_sent, Some((Time::from_millis(8), Time::from_millis(8))));
    }

    #[test]
    fn retransmissions_are_lost_when_a_later_segment_arrives_if_detection_is_on() {
        for detected in [true, false] {
            let mut scoreboard = Scoreboard { detect_lost_retransmissions: detected, ..sent(10) };
            sack(&mut scoreboard, 0, &[(2, 8)]);
            let at = Time::from_millis(50);
            for number in [0, 1] {
                scoreboard.handle_retransmitted(at, number, false);
            }
            scoreboard.handle_sent(at); // 10
            scoreboard.handle_sent(at); // 11
            assert_eq!(scoreboard.pipe(), 6 * MSS);
            // 8 and 9 were sent before the retransmissions, and 1 was sent twice: none of them shows a loss.
            sack(&mut scoreboard, 0, &[(2, 10)]);
            assert_eq!(sack(&mut scoreboard, 0, &[(1, 10)]).lost, 0);
            assert_eq!((scoreboard.next_lost(), scoreboard.pipe()), (None, 3 * MSS));
            let summary = sack(&mut scoreboard, 0, &[(1, 11)]);
            if !detected {
                assert_eq!((summary.lost, scoreboard.next_lost(), scoreboard.pipe()), (0, None, 2 * MSS));
                continue;
            }
            assert_eq!((summary.lost, scoreboard.next_lost(), scoreboard.pipe()), (MSS, Some(0), MSS));
            scoreboard.handle_retransmitted(Time::from_millis(100), 0, false);
            assert_eq!((scoreboard.next_lost(), scoreboard.pipe()), (None, 2 * MSS));
            // 11 was sent before the third transmission.
            assert_eq!(sack(&mut scoreboard, 0, &[(1, 12)]).lost, 0);
            sack(&mut scoreboard, 12, &[]);
            assert_eq!((scoreboard.next_lost(), scoreboard.pipe()), (None, 0));
        }
    }

    #[test]
    fn a_timeout_discards_or_keeps_selective_acknowledgments() {
        for (forget, order) in [(true, vec![0, 1, 2, 3]), (false, vec![0, 2])] {
            let mut scoreboard = sent(4);
            sack(&mut scoreboard, 0, &[(1, 2), (3, 4)]);
            scoreboard.handle_timeout(forget);
            scoreboard.check();
            assert_eq!(scoreboard.pipe(), 0);
            let mut seen = Vec::new();
            while let Some(number) = scoreboard.next_lost() {
                scoreboard.handle_retransmitted(Time::ZERO, number, false);
                seen.push(number);
            }
            assert_eq!(seen, order);
        }
    }

    #[test]
    fn the_last_segment_may_be_short() {
        let mut scoreboard = Scoreboard::new(MSS, 2 * MSS + 1, false);
        for size in [MSS, MSS, 1] {
            let number = scoreboard.next_new().unwrap();
            assert_eq!(scoreboard.size(number), size);
            scoreboard.handle_sent(Time::ZERO);
        }
        assert_eq!((scoreboard.next_new(), scoreboard.flight()), (None, 2 * MSS + 1));
        scoreboard.handle_ack(2 * MSS, [(2 * MSS, 2 * MSS + 1)].into_iter());
        scoreboard.check();
        assert_eq!((scoreboard.flight(), scoreboard.pipe(), scoreboard.is_done()), (1, 0, false));
        scoreboard.handle_ack(2 * MSS + 1, [].into_iter());
        assert!(scoreboard.is_done());
    }
}
