//! The sender's store of packets that may be asked for again.

use paceline_units::{Time, TimeDelta};

/// What it takes to build a media packet, again if need be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MediaPacket {
    pub sequence: u16,
    pub timestamp: u32,
    /// Media bytes after the payload descriptor.
    pub payload: u16,
    /// Where in the frame they begin.
    pub offset: u32,
    pub picture: u16,
    pub start: bool,
    pub marker: bool,
    pub key: bool,
}

/// Packets remembered for each stream: at 300 packets a second, 3.4 s.
const REMEMBERED: usize = 1024;
/// Besides the round-trip time, how long a resend is given before it may be repeated (libwebrtc 2013).
const GRACE: TimeDelta = TimeDelta::from_millis(5);

#[derive(Debug)]
pub(crate) struct ResendStore {
    packets: Vec<Option<(MediaPacket, Option<Time>)>>,
}

impl ResendStore {
    pub fn new() -> Self {
        Self { packets: vec![None; REMEMBERED] }
    }

    pub fn remember(&mut self, packet: MediaPacket) {
        self.packets[packet.sequence as usize % REMEMBERED] = Some((packet, None));
    }

    /// The packet, unless it is forgotten or was resent less than a round trip ago.
    pub fn find(&self, now: Time, sequence: u16, rtt: TimeDelta) -> Option<MediaPacket> {
        let (packet, resent) = self.packets[sequence as usize % REMEMBERED]?;
        let again = resent.is_none_or(|at| now - at >= rtt + GRACE);
        (packet.sequence == sequence && again).then_some(packet)
    }

    /// The packet that [`find`](Self::find) answered is resent now.
    pub fn mark_resent(&mut self, now: Time, sequence: u16) {
        if let Some((_, resent)) = &mut self.packets[sequence as usize % REMEMBERED] {
            *resent = Some(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn once_a_round_trip_and_not_for_ever() {
        let mut store = ResendStore::new();
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
        store.remember(packet(65_535));
        let rtt = TimeDelta::from_millis(50);
        assert!(store.find(Time::from_millis(0), 65_535, rtt).is_some());
        store.mark_resent(Time::from_millis(0), 65_535);
        assert!(store.find(Time::from_millis(54), 65_535, rtt).is_none());
        assert!(store.find(Time::from_millis(55), 65_535, rtt).is_some());
        assert!(store.find(Time::from_millis(500), 511, rtt).is_none(), "same place, another packet");
        store.remember(packet(65_535u16.wrapping_add(1024)));
        assert!(store.find(Time::from_secs(9), 65_535, rtt).is_none(), "overwritten");
    }
}
