//! The receiver's list of missing packets: asked for at once, then again and again, but not for ever.

use paceline_units::{RemoteTime, TimeDelta};

/// Requests for one packet (libwebrtc: 10).
const TRIES: u8 = 10;
/// Time between two requests for one packet. A receiver without extended reports does not know the round-trip time;
/// libwebrtc assumes 100 ms until it does.
const RETRY: TimeDelta = TimeDelta::from_millis(100);
/// Longest list; beyond it the oldest are given up.
const LIST_MAX: usize = 500;
/// Most requests in one message, so that it fits a datagram's head.
pub(crate) const REQUEST_MAX: usize = 40;

#[derive(Debug)]
pub(crate) struct NackList {
    /// Missing packets, lowest first.
    missing: Vec<Missing>,
    highest: Option<u64>,
    /// With forward error correction, only packets below this are asked for: what would restore those above may still
    /// be on its way.
    released: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Missing {
    sequence: u64,
    tries: u8,
    next: RemoteTime,
}

impl NackList {
    pub fn new() -> Self {
        Self { missing: Vec::new(), highest: None, released: None }
    }

    /// A packet came, first or again: `sequence` is unwrapped.
    #[inline]
    pub fn handle_packet(&mut self, now: RemoteTime, sequence: u64) {
        let Some(highest) = self.highest else {
            self.highest = Some(sequence);
            return;
        };
        if sequence <= highest {
            self.missing.retain(|m| m.sequence != sequence);
            return;
        }
        for lost in (highest + 1).max(sequence.saturating_sub(LIST_MAX as u64))..sequence {
            if self.missing.len() == LIST_MAX {
                self.missing.remove(0);
            }
            self.missing.push(Missing { sequence: lost, tries: 0, next: now });
        }
        self.highest = Some(sequence);
    }

    /// Packets from here on wait for forward error correction; those below have waited for all that there was.
    pub fn release_below(&mut self, sequence: u64) {
        self.released = Some(self.released.unwrap_or(0).max(sequence));
    }

    /// Nobody waits for packets below this any more.
    pub fn give_up_below(&mut self, sequence: u64) {
        self.missing.retain(|m| m.sequence >= sequence);
    }

    /// Requests that are due, into `out`; answers how many.
    pub fn poll(&mut self, now: RemoteTime, out: &mut [u16; REQUEST_MAX]) -> usize {
        let mut n = 0;
        let end = self.released.unwrap_or(u64::MAX);
        for m in self.missing.iter_mut().filter(|m| m.next <= now && m.sequence < end).take(REQUEST_MAX) {
            out[n] = m.sequence as u16;
            n += 1;
            m.tries += 1;
            m.next = if m.tries < TRIES { now + RETRY } else { RemoteTime::MAX };
        }
        n
    }

    pub fn poll_timeout(&self) -> RemoteTime {
        let end = self.released.unwrap_or(u64::MAX);
        self.missing.iter().filter(|m| m.sequence < end).map(|m| m.next).min().unwrap_or(RemoteTime::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asks_at_once_then_ten_times_in_all() {
        let mut list = NackList::new();
        list.handle_packet(RemoteTime::ZERO, 100);
        list.handle_packet(RemoteTime::ZERO, 104);
        list.handle_packet(RemoteTime::ZERO, 102);
        let mut out = [0; REQUEST_MAX];
        let mut asked = Vec::new();
        while list.poll_timeout() < RemoteTime::MAX {
            let now = list.poll_timeout();
            let n = list.poll(now, &mut out);
            asked.push((now.as_nanos() / 1_000_000, out[..n].to_vec()));
        }
        assert_eq!(asked.len(), 10);
        assert_eq!((asked[0].clone(), asked[9].0), ((0, vec![101, 103]), 900));
    }

    #[test]
    fn what_may_be_restored_is_not_asked_for_yet() {
        let mut list = NackList::new();
        let mut out = [0; REQUEST_MAX];
        list.release_below(0);
        list.handle_packet(RemoteTime::ZERO, 10);
        list.handle_packet(RemoteTime::ZERO, 13);
        list.handle_packet(RemoteTime::ZERO, 20);
        assert_eq!((list.poll_timeout(), list.poll(RemoteTime::ZERO, &mut out)), (RemoteTime::MAX, 0));
        list.handle_packet(RemoteTime::from_millis(1), 11); // restored
        list.release_below(13);
        assert_eq!(list.poll_timeout(), RemoteTime::ZERO);
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
