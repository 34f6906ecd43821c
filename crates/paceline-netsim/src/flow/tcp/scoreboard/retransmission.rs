// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loss recovery on the scoreboard: the segment to retransmit next (`NextSeg` of RFC 6675), and timeouts.

use super::{AMBIGUOUS, DUP_THRESH, FORGOTTEN, LOST, RETRANSMITTED, SACKED, Scoreboard};
use paceline_units::Time;

impl Scoreboard {
    /// Begins a recovery. Retransmissions of an earlier recovery may be repeated (HighRxt becomes HighACK).
    pub fn begin_recovery(&mut self) {
        for number in self.base..self.retransmitted_below.min(self.end()) {
            self.entries[(number - self.base) as usize].marks &= !RETRANSMITTED;
        }
        self.retransmitted = 0;
        self.retransmitted_below = self.base;
        self.clear_retransmissions();
    }

    /// Handles a retransmission timeout: all segments that are not SACKED are lost.
    ///
    /// `forget` discards the selective acknowledgments, as RFC 2018 requires. They are discarded in any case if the
    /// first segment is SACKED: then the receiver has reneged or an ACK was lost (Linux: `tcp_check_sack_reneging`).
    pub fn handle_timeout(&mut self, forget: bool) {
        let forget = forget || self.entries.front().is_some_and(|entry| entry.marks & SACKED != 0);
        (self.sacked, self.lost, self.retransmitted) = (0, 0, 0);
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
        self.retransmitted_below = self.base;
        self.clear_retransmissions();
    }

    /// Returns the first lost segment that was not retransmitted (`NextSeg` rule 1), after the lost retransmissions.
    #[inline]
    pub fn next_lost(&mut self) -> Option<u64> {
        while let Some(&number) = self.lost_again.front() {
            if number >= self.base && self.entries[(number - self.base) as usize].marks & (SACKED | RETRANSMITTED) == 0
            {
                return Some(number);
            }
            self.lost_again.pop_front();
        }
        if self.retransmitted_below >= self.lost_below {
            return None;
        }
        self.retransmitted_below = self.unsacked_from(self.retransmitted_below);
        (self.retransmitted_below < self.lost_below).then_some(self.retransmitted_below)
    }

    /// Returns the first segment below the highest SACKED one that is not SACKED and was not retransmitted (`NextSeg`
    /// rule 3).
    pub fn next_unsacked(&mut self) -> Option<u64> {
        let highest = self.highest[0]?;
        self.retransmitted_below = self.unsacked_from(self.retransmitted_below);
        (self.retransmitted_below < highest).then_some(self.retransmitted_below)
    }

    /// Returns the last segment that is not SACKED (`NextSeg` rule 4).
    pub fn last_unsacked(&self) -> Option<u64> {
        let index = self.entries.iter().rposition(|entry| entry.marks & SACKED == 0)?;
        Some(self.base + index as u64)
    }

    /// Records that a segment was retransmitted. A `rescue` retransmission does not change HighRxt.
    pub fn handle_retransmitted(&mut self, now: Time, number: u64, rescue: bool) {
        let size = self.size(number);
        let entry = &mut self.entries[(number - self.base) as usize];
        entry.sent = now;
        entry.marks |= AMBIGUOUS;
        if !rescue {
            if entry.marks & RETRANSMITTED == 0 {
                self.retransmitted += size;
            }
            entry.marks |= RETRANSMITTED;
            if self.detect_lost_retransmissions {
                self.in_flight.push_back((now, number));
            }
            self.retransmitted_below = self.retransmitted_below.max(number + 1);
        }
    }
}
