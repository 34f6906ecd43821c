//! The sender's store of packets for retransmission.

use paceline_units::{Time, TimeDelta};

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
/// A packet may be retransmitted again a round-trip time and this margin after the last time (libwebrtc 2013).
const REPEAT_MARGIN: TimeDelta = TimeDelta::from_millis(5);

#[derive(Debug)]
pub(crate) struct RetransmissionStore {
    /// Each packet and the time of its last retransmission, by sequence number modulo [`CAPACITY`].
    packets: Vec<Option<(MediaPacket, Option<Time>)>>,
}

impl RetransmissionStore {
    pub fn new() -> Self {
        Self { packets: vec![None; CAPACITY] }
    }

    /// Stores a packet, in place of the one [`CAPACITY`] before.
    pub fn insert(&mut self, packet: MediaPacket) {
        self.packets[packet.sequence as usize % CAPACITY] = Some((packet, None));
    }

    /// Returns the packet, unless it is no longer stored or was retransmitted less than a round trip ago.
    pub fn find(&self, now: Time, sequence: u16, rtt: TimeDelta) -> Option<MediaPacket> {
        let (packet, resent) = self.packets[sequence as usize % CAPACITY]?;
        let again = resent.is_none_or(|at| now - at >= rtt + REPEAT_MARGIN);
        (packet.sequence == sequence && again).then_some(packet)
    }

    /// Marks the packet that [`find`](Self::find) returned as retransmitted.
    pub fn mark_resent(&mut self, now: Time, sequence: u16) {
        if let Some((_, resent)) = &mut self.packets[sequence as usize % CAPACITY] {
            *resent = Some(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_found_once_per_round_trip_until_overwritten() {
        let mut store = RetransmissionStore::new();
        let packet = |sequence| MediaPacket {
            sequence,
            timestamp: 0,
            payload: 9,
            offset: 0,
            picture: 0,
            start: true,
            marker: true,
            key: false,
        };
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
}
