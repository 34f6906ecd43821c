// SPDX-License-Identifier: MIT OR Apache-2.0
//! The receiver's list of lost packets. Each is requested at once and then repeatedly, up to a limit.

use paceline_units::{RemoteTime, TimeDelta};

/// The most requests for one packet (libwebrtc: 10).
const TRIES_MAX: u8 = 10;
/// Time between two requests for one packet. A receiver without extended reports does not know the round-trip time, and
/// libwebrtc assumes 100 ms in that case.
const RETRY_INTERVAL: TimeDelta = TimeDelta::from_millis(100);
/// The most packets in the list; beyond it the oldest is given up.
const LIST_MAX: usize = 500;
/// The most requests in one message, so that it fits the real bytes of a datagram.
pub(crate) const REQUEST_MAX: usize = 40;

#[derive(Debug)]
pub(crate) struct NackList {
    /// Lowest sequence number first.
    missing: Vec<LostPacket>,
    highest: Option<u64>,
    /// With forward error correction, only packets below this are requested, because FEC for those above may still
    /// arrive.
    released: Option<u64>,
    /// The time at which the next request is due; [`RemoteTime::MAX`] for never.
    due: RemoteTime,
}

#[derive(Clone, Copy, Debug)]
struct LostPacket {
    sequence: u64,
    tries: u8,
    /// The time at which the next request is due; [`RemoteTime::MAX`] after the last one.
    next: RemoteTime,
}

impl NackList {
    pub fn new() -> Self {
        Self { missing: Vec::new(), highest: None, released: None, due: RemoteTime::MAX }
    }

    /// Handles a packet that arrived or was recovered; `sequence` is unwrapped.
    #[inline]
    pub fn handle_packet(&mut self, now: RemoteTime, sequence: u64) {
        let Some(highest) = self.highest else {
            self.highest = Some(sequence);
            return;
        };
        if sequence == highest + 1 {
            self.highest = Some(sequence);
            return;
        }
        if sequence <= highest {
            self.missing.retain(|m| m.sequence != sequence);
            self.update_due();
            return;
        }
        for lost in (highest + 1).max(sequence.saturating_sub(LIST_MAX as u64))..sequence {
            if self.missing.len() == LIST_MAX {
                self.missing.remove(0);
            }
            self.missing.push(LostPacket { sequence: lost, tries: 0, next: now });
        }
        self.highest = Some(sequence);
        self.update_due();
    }

    /// Allows requests for packets below `sequence`: all FEC for them has been sent. Those above still wait for FEC.
    pub fn release_below(&mut self, sequence: u64) {
        let released = Some(self.released.unwrap_or(0).max(sequence));
        if released != self.released {
            self.released = released;
            self.update_due();
        }
    }

    /// Removes the packets below `sequence`, which are no longer needed.
    #[inline]
    pub fn give_up_below(&mut self, sequence: u64) {
        if self.missing.first().is_some_and(|first| first.sequence < sequence) {
            self.missing.retain(|m| m.sequence >= sequence);
            self.update_due();
        }
    }

    /// Writes the requests that are due into `out` and returns their number.
    pub fn poll(&mut self, now: RemoteTime, out: &mut [u16; REQUEST_MAX]) -> usize {
        if now < self.due {
            return 0;
        }
        let mut n = 0;
        let end = self.released.unwrap_or(u64::MAX);
        for m in self.missing.iter_mut().filter(|m| m.next <= now && m.sequence < end).take(REQUEST_MAX) {
            out[n] = m.sequence as u16;
            n += 1;
            m.tries += 1;
            m.next = if m.tries < TRIES_MAX { now + RETRY_INTERVAL } else { RemoteTime::MAX };
        }
        self.update_due();
        n
    }

    /// Returns the time at which the next request is due.
    #[inline]
    pub fn poll_timeout(&self) -> Option<RemoteTime> {
        debug_assert_eq!(self.due, self.find_due());
        (self.due != RemoteTime::MAX).then_some(self.due)
    }

    fn update_due(&mut self) {
        self.due = self.find_due();
    }

    fn find_due(&self) -> RemoteTime {
        let end = self.released.unwrap_or(u64::MAX);
        let due = self.missing.iter().filter(|m| m.sequence < end).map(|m| m.next).min();
        due.unwrap_or(RemoteTime::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_at_once_and_ten_times_in_all() {
        let mut list = NackList::new();
        list.handle_packet(RemoteTime::ZERO, 100);
        list.handle_packet(RemoteTime::ZERO, 104);
        list.handle_packet(RemoteTime::ZERO, 102);
        let mut out = [0; REQUEST_MAX];
        let mut requests = Vec::new();
        while let Some(now) = list.poll_timeout() {
            let n = list.poll(now, &mut out);
            requests.push((now.as_nanos() / 1_000_000, out[..n].to_vec()));
        }
        assert_eq!(requests.len(), 10);
        assert_eq!((requests[0].clone(), requests[9].0), ((0, vec![101, 103]), 900));
    }

    #[test]
    fn packets_that_fec_may_recover_are_not_requested_yet() {
        let mut list = NackList::new();
        let mut out = [0; REQUEST_MAX];
        list.release_below(0);
        list.handle_packet(RemoteTime::ZERO, 10);
        list.handle_packet(RemoteTime::ZERO, 13);
        list.handle_packet(RemoteTime::ZERO, 20);
        assert_eq!((list.poll_timeout(), list.poll(RemoteTime::ZERO, &mut out)), (None, 0));
        list.handle_packet(RemoteTime::from_millis(1), 11); // recovered
        list.release_below(13);
        assert_eq!(list.poll_timeout(), Some(RemoteTime::ZERO));
        assert_eq!((list.poll(RemoteTime::from_millis(1), &mut out), out[0]), (1, 12));
        assert_eq!(list.poll(RemoteTime::from_millis(1), &mut out), 0, "14 to 19 are not released");
    }

    #[test]
    fn the_list_is_bounded() {
        let mut list = NackList::new();
        list.handle_packet(RemoteTime::ZERO, 0);
        list.handle_packet(RemoteTime::ZERO, 60_000);
        list.handle_packet(RemoteTime::ZERO, 60_010);
        assert_eq!(list.missing.len(), LIST_MAX);
        assert_eq!(list.missing[LIST_MAX - 1].sequence, 60_009);
        list.give_up_below(60_008);
        assert_eq!(list.missing.len(), 2);
    }
}
