//! The sender's memory of what is in flight (RFC 6675, section 3), by segments.
//!
//! All segments are full but the last of a transfer, so a segment's number is its offset divided by the segment size.
//! A segment is lost when three above it were acknowledged selectively: that is `IsLost` of RFC 6675 for such segments,
//! since three discontiguous ranges hold three segments, and so do more than two segment sizes. All segments below one
//! that is lost are lost or acknowledged, so one mark ([`lost_below`](Scoreboard::lost_below)) tells them all, and it
//! only rises: `pipe` is kept by adding and taking away, and no ACK walks over the window.

use paceline_units::Time;
use std::collections::VecDeque;

/// DupThresh (RFC 5681, RFC 6675): so many segments above are the sign of a loss.
pub(super) const DUP_THRESH: usize = 3;

const SACKED: u8 = 1;
/// Counted in `lost`.
const LOST: u8 = 2;
/// Sent again in the present recovery: counted in `resent`.
const RESENT: u8 = 4;
/// Ever sent again: gives no round-trip time (Karn).
const AMBIGUOUS: u8 = 8;
/// Was SACKED, and a timeout made that forgotten.
const FORGOTTEN: u8 = 16;

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// When it was sent last.
    sent: Time,
    /// For a SACKED one: the next that may not be is at least so many further.
    skip: u32,
    marks: u8,
}

/// What an ACK told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Heard {
    /// Bytes newly acknowledged in order.
    pub acked: u64,
    /// Bytes newly acknowledged selectively.
    pub sacked: u64,
    /// Bytes of which the receiver was not known to have them.
    pub delivered: u64,
    /// Those of them that had been acknowledged selectively before a timeout made it forgotten.
    pub again: u64,
    /// Bytes newly found lost.
    pub lost: u64,
    /// When the segment left, and which, that left last of those in `delivered` and not in `again`.
    pub newest: Option<(Time, u64)>,
    /// Likewise of those that were sent once, so that it is certain which transmission arrived.
    witness: Option<(Time, u64)>,
    /// Sending times of the first and last segment that this ACK acknowledged in order, was not known to have arrived and
    /// was sent once. `None` when one of those acknowledged was sent twice.
    pub acked_sent: Option<(Time, Time)>,
    /// Likewise of those acknowledged selectively.
    pub sacked_sent: Option<(Time, Time)>,
}

impl Heard {
    /// The receiver has this segment, and was not known to.
    #[inline]
    fn deliver(&mut self, number: u64, entry: Entry, size: u64) {
        self.delivered += size;
        if entry.marks & FORGOTTEN != 0 {
            self.again += size;
        } else {
            self.newest = self.newest.max(Some((entry.sent, number)));
            if entry.marks & AMBIGUOUS == 0 {
                self.witness = self.witness.max(Some((entry.sent, number)));
            }
        }
    }
}

#[derive(Debug)]
pub(super) struct Scoreboard {
    /// Bytes in a full segment, in the last one, and the last one's number.
    segment: u64,
    tail: u64,
    tail_number: u64,
    /// Number of the first entry: the first segment not acknowledged (HighACK + 1).
    base: u64,
    entries: VecDeque<Entry>,
    /// The three highest SACKED segments, highest first.
    highest: [Option<u64>; DUP_THRESH],
    /// Segments below are SACKED or LOST.
    lost_below: u64,
    /// Segments below are SACKED or RESENT (HighRxt + 1).
    resent_below: u64,
    /// Retransmissions may be found lost.
    watches_resent: bool,
    /// Those in flight, when they left and which, in order; and the segments of those found lost that wait to leave.
    watched: VecDeque<(Time, u64)>,
    lost_again: VecDeque<u64>,
    /// Bytes in `entries`, and of these SACKED, LOST, RESENT (the last two not SACKED).
    flight: u64,
    sacked: u64,
    lost: u64,
    resent: u64,
}

impl Scoreboard {
    /// For `total` bytes in segments of `segment`. `watches_resent`: a retransmission is lost once something that left after
    /// it has arrived (RFC 8985, without its time for reordering).
    pub fn new(segment: u64, total: u64, watches_resent: bool) -> Self {
        let tail_number = total.div_ceil(segment).max(1) - 1;
        Self {
            segment,
            tail: total - tail_number * segment,
            tail_number,
            base: 0,
            entries: VecDeque::new(),
            highest: [None; DUP_THRESH],
            lost_below: 0,
            resent_below: 0,
            watches_resent,
            watched: VecDeque::new(),
            lost_again: VecDeque::new(),
            flight: 0,
            sacked: 0,
            lost: 0,
            resent: 0,
        }
    }

    /// Starts anew, keeping memory.
    pub fn reset(&mut self, total: u64) {
        let mut entries = core::mem::take(&mut self.entries);
        entries.clear();
        self.forget_resent();
        let (watched, lost_again) = (core::mem::take(&mut self.watched), core::mem::take(&mut self.lost_again));
        *self = Self { entries, watched, lost_again, ..Self::new(self.segment, total, self.watches_resent) };
    }

    /// Bytes in segment `number`.
    #[inline]
    pub fn size(&self, number: u64) -> u64 {
        if number == self.tail_number { self.tail } else { self.segment }
    }

    /// Bytes from the first to segment `number`.
    #[inline]
    pub fn offset(&self, number: u64) -> u64 {
        number * self.segment
    }

    /// Number of the first segment not acknowledged.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// Number of the next new segment (HighData + 1); `None` when all were sent.
    #[inline]
    pub fn next_new(&self) -> Option<u64> {
        let next = self.end();
        (next <= self.tail_number).then_some(next)
    }

    /// One past the last segment sent.
    #[inline]
    pub fn end(&self) -> u64 {
        self.base + self.entries.len() as u64
    }

    /// True when all of it was sent and acknowledged.
    pub fn is_done(&self) -> bool {
        self.base > self.tail_number
    }

    /// Bytes sent and not acknowledged in order: FlightSize.
    #[inline]
    pub fn flight(&self) -> u64 {
        self.flight
    }

    /// Bytes thought to be in the network (RFC 6675, `SetPipe`).
    #[inline]
    pub fn pipe(&self) -> u64 {
        self.flight - self.sacked - self.lost + self.resent
    }

    /// Any byte acknowledged selectively.
    #[inline]
    pub fn has_holes(&self) -> bool {
        self.sacked > 0
    }

    /// The first segment that is missing.
    pub fn first_unsacked(&mut self) -> Option<u64> {
        let number = self.unsacked_from(self.base);
        (number < self.end()).then_some(number)
    }

    /// `IsLost` of the first segment that is missing.
    #[inline]
    pub fn first_is_lost(&mut self) -> bool {
        self.first_unsacked().is_some_and(|number| number < self.lost_below)
    }

    /// A new segment leaves.
    #[inline]
    pub fn handle_sent(&mut self, now: Time) {
        self.flight += self.size(self.end());
        self.entries.push_back(Entry { sent: now, skip: 0, marks: 0 });
    }

    /// An ACK up to byte `acknowledged` (counted from the first of data) came, with these ranges of bytes beyond.
    #[inline]
    pub fn handle_ack(&mut self, acknowledged: u64, ranges: impl Iterator<Item = (u64, u64)>) -> Heard {
        let mut heard = Heard::default();
        self.acknowledge(acknowledged, &mut heard);
        for (start, end) in ranges {
            let first = start.div_ceil(self.segment);
            self.acknowledge_selectively(first, self.whole_segments(end), &mut heard);
        }
        if heard.sacked > 0 {
            self.find_lost(&mut heard);
        }
        if let Some(witness) = heard.witness {
            self.find_lost_again(witness, &mut heard);
        }
        heard
    }

    /// How many segments end at or before this byte.
    #[inline]
    fn whole_segments(&self, byte: u64) -> u64 {
        let tail = byte >= self.offset(self.tail_number).saturating_add(self.tail);
        if tail { self.tail_number + 1 } else { byte / self.segment }
    }

    #[inline]
    fn acknowledge(&mut self, acknowledged: u64, heard: &mut Heard) {
        let up_to = self.whole_segments(acknowledged).min(self.end());
        let mut ambiguous = false;
        while self.base < up_to {
            let Some(entry) = self.entries.pop_front() else { break };
            let size = self.size(self.base);
            self.flight -= size;
            heard.acked += size;
            if entry.marks & SACKED != 0 {
                self.sacked -= size;
            } else {
                heard.deliver(self.base, entry, size);
                self.uncount(entry.marks, size);
                ambiguous |= entry.marks & AMBIGUOUS != 0;
                let first = heard.acked_sent.map_or(entry.sent, |(first, _)| first);
                heard.acked_sent = Some((first, entry.sent));
            }
            self.base += 1;
        }
        if ambiguous {
            heard.acked_sent = None;
        }
        self.lost_below = self.lost_below.max(self.base);
        self.resent_below = self.resent_below.max(self.base);
    }

    /// A segment that was not SACKED is no longer in doubt.
    #[inline]
    fn uncount(&mut self, marks: u8, size: u64) {
        if marks & LOST != 0 {
            self.lost -= size;
        }
        if marks & RESENT != 0 {
            self.resent -= size;
        }
    }

    /// Marks the segments from `first` to before `end`; passes over runs that are marked in a step or two.
    fn acknowledge_selectively(&mut self, first: u64, end: u64, heard: &mut Heard) {
        let end = end.min(self.end());
        let mut number = self.unsacked_from(first.max(self.base));
        while number < end {
            let size = self.size(number);
            let index = (number - self.base) as usize;
            let entry = self.entries[index];
            let Entry { sent, marks, .. } = entry;
            self.uncount(marks, size);
            self.entries[index].marks = (marks & AMBIGUOUS) | SACKED;
            self.entries[index].skip = 1;
            self.sacked += size;
            heard.sacked += size;
            heard.deliver(number, entry, size);
            if marks & AMBIGUOUS == 0 {
                let first = heard.sacked_sent.map_or(sent, |(first, _)| first);
                heard.sacked_sent = Some((first, sent));
            }
            self.rank(number);
            number = self.unsacked_from(number + 1);
        }
    }

    /// The first segment at or after `number` that is not SACKED, or the end. Shortens the way for the next who asks.
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

    /// Keeps the three highest SACKED segments.
    #[inline]
    fn rank(&mut self, number: u64) {
        let mut number = Some(number);
        for place in &mut self.highest {
            if number > *place {
                core::mem::swap(&mut number, place);
            }
        }
    }

    /// Marks what has three SACKED segments above it.
    fn find_lost(&mut self, heard: &mut Heard) {
        let Some(third) = self.highest[DUP_THRESH - 1] else { return };
        let mut number = self.unsacked_from(self.lost_below.max(self.base));
        while number < third {
            let index = (number - self.base) as usize;
            let size = self.size(number);
            self.entries[index].marks |= LOST;
            self.lost += size;
            heard.lost += size;
            number = self.unsacked_from(number + 1);
        }
        self.lost_below = self.lost_below.max(third);
    }

    /// Finds the retransmissions that left before `witness`, which arrived.
    #[inline]
    fn find_lost_again(&mut self, witness: (Time, u64), heard: &mut Heard) {
        while let Some(&(sent, number)) = self.watched.front().filter(|left| **left < witness) {
            self.watched.pop_front();
            if number < self.base {
                continue;
            }
            let size = self.size(number);
            let entry = &mut self.entries[(number - self.base) as usize];
            if entry.marks & RESENT != 0 && entry.sent == sent {
                entry.marks &= !RESENT;
                self.resent -= size;
                heard.lost += size;
                self.lost_again.push_back(number);
            }
        }
    }

    fn forget_resent(&mut self) {
        self.watched.clear();
        self.lost_again.clear();
    }

    /// A recovery begins: what an earlier one sent again may be sent again (HighRxt becomes HighACK).
    pub fn begin_recovery(&mut self) {
        for number in self.base..self.resent_below.min(self.end()) {
            self.entries[(number - self.base) as usize].marks &= !RESENT;
        }
        self.resent = 0;
        self.resent_below = self.base;
        self.forget_resent();
    }

    /// The timer fired: all that is not SACKED is lost. `forget` what was acknowledged selectively, as RFC 2018 asks. It
    /// is forgotten in any case when the first segment is SACKED, which tells of a receiver that went back on its word
    /// or of an ACK that was lost (Linux: `tcp_check_sack_reneging`).
    pub fn handle_timeout(&mut self, forget: bool) {
        let forget = forget || self.entries.front().is_some_and(|entry| entry.marks & SACKED != 0);
        (self.sacked, self.lost, self.resent) = (0, 0, 0);
        for index in 0..self.entries.len() {
            let size = self.size(self.base + index as u64);
            let marks = &mut self.entries[index].marks;
            if *marks & SACKED != 0 && !forget {
                self.sacked += size;
            } else {
                let forgotten = if *marks & SACKED != 0 { FORGOTTEN } else { 0 };
                *marks = (*marks & (AMBIGUOUS | FORGOTTEN)) | forgotten | LOST;
                self.lost += size;
            }
        }
        if forget {
            self.highest = [None; DUP_THRESH];
        }
        self.lost_below = self.end();
        self.resent_below = self.base;
        self.forget_resent();
    }

    /// `NextSeg` rule 1: the first lost segment that was not sent again, after those that were and are lost again.
    #[inline]
    pub fn next_lost(&mut self) -> Option<u64> {
        while let Some(&number) = self.lost_again.front() {
            if number >= self.base && self.entries[(number - self.base) as usize].marks & (SACKED | RESENT) == 0 {
                return Some(number);
            }
            self.lost_again.pop_front();
        }
        if self.resent_below >= self.lost_below {
            return None;
        }
        self.resent_below = self.unsacked_from(self.resent_below);
        (self.resent_below < self.lost_below).then_some(self.resent_below)
    }

    /// `NextSeg` rule 3: the first segment below the highest SACKED that is in doubt and was not sent again.
    pub fn next_doubtful(&mut self) -> Option<u64> {
        let highest = self.highest[0]?;
        self.resent_below = self.unsacked_from(self.resent_below);
        (self.resent_below < highest).then_some(self.resent_below)
    }

    /// `NextSeg` rule 4: the last segment that is not SACKED.
    pub fn last_unsacked(&self) -> Option<u64> {
        let index = self.entries.iter().rposition(|entry| entry.marks & SACKED == 0)?;
        Some(self.base + index as u64)
    }

    /// A segment leaves again. A `rescue` does not count as HighRxt.
    pub fn handle_resent(&mut self, now: Time, number: u64, rescue: bool) {
        let size = self.size(number);
        let entry = &mut self.entries[(number - self.base) as usize];
        entry.sent = now;
        entry.marks |= AMBIGUOUS;
        if !rescue {
            if entry.marks & RESENT == 0 {
                self.resent += size;
            }
            entry.marks |= RESENT;
            if self.watches_resent {
                self.watched.push_back((now, number));
            }
            self.resent_below = self.resent_below.max(number + 1);
        }
    }

    /// Counts everything again from the marks and panics where it differs; for tests.
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
            sums[3] += if entry.marks & RESENT != 0 { size } else { 0 };
            assert!(!sacked || entry.marks & (LOST | RESENT) == 0, "SACKED is neither lost nor sent again");
            assert!(!sacked || entry.skip >= 1);
            assert!(sacked || (entry.marks & LOST != 0) == (number < self.lost_below), "one mark tells the lost");
            if above >= DUP_THRESH && first_lost.is_none() {
                first_lost = Some(number);
            }
            above += sacked as usize;
        }
        assert_eq!(sums, [self.flight, self.sacked, self.lost, self.resent]);
        assert!(self.flight + self.resent >= self.sacked + self.lost, "pipe is negative");
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
        let mut board = Scoreboard::new(MSS, u64::MAX, false);
        for n in 0..count {
            board.handle_sent(Time::from_millis(n as i64));
        }
        board
    }

    fn sack(board: &mut Scoreboard, acknowledged: u64, ranges: &[(u64, u64)]) -> Heard {
        let heard = board.handle_ack(acknowledged * MSS, ranges.iter().map(|(a, b)| (a * MSS, b * MSS)));
        board.check();
        heard
    }

    #[test]
    fn three_segments_above_are_a_loss_and_two_are_not() {
        let mut board = sent(10);
        sack(&mut board, 2, &[(3, 4)]);
        sack(&mut board, 2, &[(3, 5)]);
        assert!(!board.first_is_lost());
        assert_eq!(board.pipe(), 6 * MSS);
        let heard = sack(&mut board, 2, &[(3, 6)]);
        assert!(board.first_is_lost());
        assert_eq!((heard.sacked, heard.lost, heard.delivered), (MSS, MSS, MSS));
        assert_eq!(board.pipe(), 4 * MSS);
        // Three ranges of one segment each do as well, and what lies among them is not lost yet.
        let mut board = sent(10);
        sack(&mut board, 0, &[(6, 7), (4, 5), (2, 3)]);
        assert_eq!((board.next_lost(), board.lost), (Some(0), 2 * MSS));
        board.handle_resent(Time::ZERO, 0, false);
        board.handle_resent(Time::ZERO, 1, false);
        assert_eq!((board.next_lost(), board.next_doubtful()), (None, Some(3)));
        assert_eq!(board.last_unsacked(), Some(9));
        board.check();
    }

    #[test]
    fn a_segment_sent_twice_gives_no_round_trip_time() {
        let mut board = sent(10);
        let heard = sack(&mut board, 2, &[]);
        assert_eq!(heard.acked_sent, Some((Time::from_millis(0), Time::from_millis(1))));
        sack(&mut board, 2, &[(3, 7)]);
        board.handle_resent(Time::from_millis(50), 2, false);
        let heard = sack(&mut board, 8, &[]);
        assert_eq!((heard.acked, heard.delivered, heard.acked_sent), (6 * MSS, 2 * MSS, None));
        assert_eq!(sack(&mut board, 9, &[]).acked_sent, Some((Time::from_millis(8), Time::from_millis(8))));
    }

    #[test]
    fn a_retransmission_is_lost_when_what_left_after_it_arrives_and_only_where_it_is_watched() {
        for watched in [true, false] {
            let mut board = Scoreboard { watches_resent: watched, ..sent(10) };
            sack(&mut board, 0, &[(2, 8)]);
            let at = Time::from_millis(50);
            for number in [0, 1] {
                board.handle_resent(at, number, false);
            }
            board.handle_sent(at); // 10
            board.handle_sent(at); // 11
            assert_eq!(board.pipe(), 6 * MSS);
            // 8 and 9 left before the retransmissions; that they arrive says nothing, and neither does 1, which left twice.
            sack(&mut board, 0, &[(2, 10)]);
            assert_eq!(sack(&mut board, 0, &[(1, 10)]).lost, 0);
            assert_eq!((board.next_lost(), board.pipe()), (None, 3 * MSS));
            let heard = sack(&mut board, 0, &[(1, 11)]);
            if !watched {
                assert_eq!((heard.lost, board.next_lost(), board.pipe()), (0, None, 2 * MSS));
                continue;
            }
            assert_eq!((heard.lost, board.next_lost(), board.pipe()), (MSS, Some(0), MSS));
            board.handle_resent(Time::from_millis(100), 0, false);
            assert_eq!((board.next_lost(), board.pipe()), (None, 2 * MSS));
            // 11 left before the third time.
            assert_eq!(sack(&mut board, 0, &[(1, 12)]).lost, 0);
            sack(&mut board, 12, &[]);
            assert_eq!((board.next_lost(), board.pipe()), (None, 0));
        }
    }

    #[test]
    fn a_timeout_forgets_or_keeps_what_was_sacked() {
        for (forget, order) in [(true, vec![0, 1, 2, 3]), (false, vec![0, 2])] {
            let mut board = sent(4);
            sack(&mut board, 0, &[(1, 2), (3, 4)]);
            board.handle_timeout(forget);
            board.check();
            assert_eq!(board.pipe(), 0);
            let mut seen = Vec::new();
            while let Some(number) = board.next_lost() {
                board.handle_resent(Time::ZERO, number, false);
                seen.push(number);
            }
            assert_eq!(seen, order);
        }
    }

    #[test]
    fn the_last_segment_may_be_short() {
        let mut board = Scoreboard::new(MSS, 2 * MSS + 1, false);
        for size in [MSS, MSS, 1] {
            let number = board.next_new().unwrap();
            assert_eq!(board.size(number), size);
            board.handle_sent(Time::ZERO);
        }
        assert_eq!((board.next_new(), board.flight()), (None, 2 * MSS + 1));
        board.handle_ack(2 * MSS, [(2 * MSS, 2 * MSS + 1)].into_iter());
        board.check();
        assert_eq!((board.flight(), board.pipe(), board.is_done()), (1, 0, false));
        board.handle_ack(2 * MSS + 1, [].into_iter());
        assert!(board.is_done());
    }
}
