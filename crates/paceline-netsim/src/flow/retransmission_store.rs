// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sender's store of packets for retransmission.

use paceline_units::{Time, TimeDelta};
use std::collections::BTreeMap;

/// The fields from which a media packet is built, when it is sent and when it is retransmitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MediaPacket {
    pub sequence: u16,
    pub timestamp: u32,
    /// Media bytes after the payload descriptor.
    pub payload: u16,
    /// Offset of these bytes in the frame.
    pub offset: u32,
    pub picture: u16,
    pub start: bool,
    pub marker: bool,
    pub key: bool,
}

/// Packets stored per stream: 3.4 s at 300 packets per second.
const CAPACITY: usize = 1024;
/// The store grows to its capacity in steps that double, from this size.
const FIRST_SIZE: usize = 64;
/// A packet may be retransmitted again a round-trip time and this margin after the last time (libwebrtc 2013).
const REPEAT_MARGIN: TimeDelta = TimeDelta::from_millis(5);

#[derive(Debug)]
pub(crate) struct RetransmissionStore {
    /// The last packets, by sequence number modulo the length, which is a power of two.
    packets: Vec<Option<MediaPacket>>,
    /// The time of the last retransmission of each stored packet that was retransmitted.
    resent: BTreeMap<u16, Time>,
}

impl RetransmissionStore {
    pub fn new() -> Self {
        Self { packets: Vec::new(), resent: BTreeMap::new() }
    }

    /// Stores a packet, in place of the one [`CAPACITY`] before. Sequence numbers may have gaps.
    pub fn insert(&mut self, packet: MediaPacket) {
        let slot = packet.sequence as usize % self.packets.len().max(1);
        let is_taken = self.packets.get(slot).is_none_or(Option::is_some);
        if is_taken && self.packets.len() < CAPACITY {
            self.grow();
            return self.insert(packet);
        }
        let slot = &mut self.packets[slot];
        if !self.resent.is_empty()
            && let Some(old) = slot
        {
            self.resent.remove(&old.sequence);
        }
        *slot = Some(packet);
    }

    #[cold]
    fn grow(&mut self) {
        let len = (2 * self.packets.len()).max(FIRST_SIZE);
        let old = std::mem::replace(&mut self.packets, vec![None; len]);
        for packet in old.into_iter().flatten() {
            self.packets[packet.sequence as usize % len] = Some(packet);
        }
    }

    /// Returns the packet, unless it is no longer stored or was retransmitted less than a round trip ago.
    pub fn find(&self, now: Time, sequence: u16, rtt: TimeDelta) -> Option<MediaPacket> {
        let packet = (*self.packets.get(sequence as usize % self.packets.len().max(1))?)?;
        let resent = self.resent.get(&sequence);
        let again = resent.is_none_or(|at| now - *at >= rtt + REPEAT_MARGIN);
        (packet.sequence == sequence && again).then_some(packet)
    }

    /// Marks the packet that [`find`](Self::find) returned as retransmitted.
    pub fn mark_resent(&mut self, now: Time, sequence: u16) {
        self.resent.insert(sequence, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(sequence: u16) -> MediaPacket {
        let (start, marker, key) = (true, true, false);
        MediaPacket { sequence, timestamp: 0, payload: 9, offset: 0, picture: 0, start, marker, key }
    }

    #[test]
    fn packets_are_found_once_per_round_trip_until_overwritten() {
        let mut store = RetransmissionStore::new();
        store.insert(packet(65_535));
        let rtt = TimeDelta::from_millis(50);
        assert!(store.find(Time::from_millis(0), 65_535, rtt).is_some());
        store.mark_resent(Time::from_millis(0), 65_535);
        assert!(store.find(Time::from_millis(54), 65_535, rtt).is_none());
        assert!(store.find(Time::from_millis(55), 65_535, rtt).is_some());
        assert!(store.find(Time::from_millis(500), 511, rtt).is_none(), "another packet is stored there");
        store.insert(packet(65_535u16.wrapping_add(1024)));
        assert!(store.find(Time::from_secs(9), 65_535, rtt).is_none(), "overwritten");
    }

    #[test]
    fn last_packets_are_found_while_the_store_grows() {
        // Every third number is missing, and the numbers wrap.
        let sent: Vec<u16> = (65_000..67_000u32).filter(|n| n % 3 > 0).map(|n| n as u16).collect();
        let is_found = |store: &RetransmissionStore, s| {
            store.find(Time::ZERO, s, TimeDelta::ZERO).is_some_and(|found| found.sequence == s)
        };
        let mut store = RetransmissionStore::new();
        for (count, sequence) in sent.iter().enumerate() {
            store.insert(packet(*sequence));
            let mut recent = sent[..=count].iter().filter(|s| usize::from(sequence.wrapping_sub(**s)) < CAPACITY);
            assert!(recent.all(|s| is_found(&store, *s)), "after {sequence}");
        }
        let newer = || (67_000..67_000 + CAPACITY as u32).map(|n| n as u16);
        newer().for_each(|s| store.insert(packet(s)));
        assert!(!sent.iter().any(|s| is_found(&store, *s)), "each slot has a newer packet");
        assert!(newer().all(|s| is_found(&store, s)));
        assert_eq!(store.packets.len(), CAPACITY);
    }
}
