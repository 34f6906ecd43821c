//! The number of a flow in its session, which both ends read from the SSRCs of its packets.
//!
//! The SSRCs are hashes of the identifier of the session, which its sender draws at random, so that somebody who does not see the
//! datagrams does not know them. Those of a session are distinct.

use crate::arrivals::PacketKey;
use crate::message::SessionId;
use paceline_wire::is_rtcp;
use std::collections::BTreeMap;

/// Position of the SSRC of the receiver among those of a flow, after media and retransmissions.
const RECEIVER: usize = 2;

/// The SSRCs of the first flows of a session.
pub struct Ssrcs {
    /// Media, retransmissions and receiver of each flow.
    flows: Vec<[u32; 3]>,
    /// Number and position of each SSRC, in order of SSRCs.
    sorted: Vec<(u32, u16, u8)>,
}

impl Ssrcs {
    /// Returns those of so many flows. Those of a flow do not depend on how many follow.
    pub fn new(id: SessionId, count: usize) -> Self {
        let mut sorted = BTreeMap::new();
        let mut draw = |number: usize, position: usize| {
            let mut hasher = blake3::Hasher::new_derive_key("paceline 2026 hosts ssrc");
            hasher.update(&id.0).update(&(number as u16).to_be_bytes()).update(&[position as u8]);
            let mut words = hasher.finalize_xof();
            loop {
                let mut word = [0; 4];
                words.fill(&mut word);
                let ssrc = u32::from_be_bytes(word);
                // One that an earlier flow has is passed over.
                if let std::collections::btree_map::Entry::Vacant(free) = sorted.entry(ssrc) {
                    free.insert((number as u16, position as u8));
                    return ssrc;
                }
            }
        };
        let flows = (0..count).map(|number| [0, 1, RECEIVER].map(|position| draw(number, position))).collect();
        let sorted = sorted.into_iter().map(|(ssrc, (number, position))| (ssrc, number, position)).collect();
        Self { flows, sorted }
    }

    /// Returns the SSRCs of a flow: media, retransmissions, receiver.
    pub fn of(&self, number: usize) -> [u32; 3] {
        self.flows[number]
    }

    /// Returns the flow of RTCP of a receiver; `None` of other datagrams, and of those of other sessions.
    pub fn of_feedback(&self, bytes: &[u8]) -> Option<usize> {
        let (number, position) = self.find(bytes, 4).filter(|_| is_rtcp(bytes))?;
        (position == RECEIVER).then_some(number)
    }

    /// Returns the flow of RTP or RTCP of a media sender; `None` of other datagrams, and of those of other sessions.
    pub fn of_media(&self, bytes: &[u8]) -> Option<usize> {
        let (number, position) = self.find(bytes, if is_rtcp(bytes) { 4 } else { 8 })?;
        (position != RECEIVER).then_some(number)
    }

    /// Returns the key of an RTP packet; `None` for RTCP, for other bytes, and for packets of other sessions.
    pub fn key(&self, bytes: &[u8]) -> Option<PacketKey> {
        let (number, position) = self.find(bytes, 8).filter(|_| !is_rtcp(bytes))?;
        let sequence = u16::from_be_bytes([*bytes.get(2)?, *bytes.get(3)?]);
        (position != RECEIVER).then_some(PacketKey { stream: (2 * number + position) as u16, sequence })
    }

    /// Returns number and position of the SSRC at this offset.
    fn find(&self, bytes: &[u8], offset: usize) -> Option<(usize, usize)> {
        let ssrc = u32::from_be_bytes(*bytes.get(offset..)?.first_chunk()?);
        let index = self.sorted.binary_search_by_key(&ssrc, |(ssrc, ..)| *ssrc).ok().filter(|_| bytes[0] >> 6 == 2)?;
        let (_, number, position) = self.sorted[index];
        Some((number.into(), position.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terms::FLOWS_MAX;

    const COUNT: usize = 2 * FLOWS_MAX as usize;

    fn rtp(ssrc: u32) -> Vec<u8> {
        [vec![0x80, 96, 0, 7, 0, 0, 0, 0], ssrc.to_be_bytes().to_vec()].concat()
    }

    fn rtcp(ssrc: u32) -> Vec<u8> {
        [vec![0x80, 200, 0, 1], ssrc.to_be_bytes().to_vec()].concat()
    }

    #[test]
    fn the_ssrcs_of_a_flow_give_its_number_in_its_session_and_in_no_other() {
        let (ours, other) = (Ssrcs::new(SessionId([1; 8]), COUNT), Ssrcs::new(SessionId([2; 8]), COUNT));
        let mut keys = Vec::new();
        for number in 0..COUNT {
            let [media, rtx, receiver] = ours.of(number);
            for bytes in [rtp(media), rtp(rtx), rtcp(media)] {
                assert_eq!((ours.of_media(&bytes), ours.of_feedback(&bytes)), (Some(number), None));
                assert_eq!((other.of_media(&bytes), other.key(&bytes)), (None, None));
            }
            keys.extend([media, rtx].map(|ssrc| ours.key(&rtp(ssrc)).unwrap()));
            let feedback = rtcp(receiver);
            assert_eq!((ours.of_media(&feedback), ours.of_feedback(&feedback)), (None, Some(number)));
            assert_eq!((other.of_feedback(&feedback), ours.key(&rtcp(media))), (None, None));
            // Others are not known.
            for bit in 0..32 {
                assert_eq!(ours.of_media(&rtp(media ^ 1 << bit)), None);
                assert_eq!(ours.of_feedback(&rtcp(receiver ^ 1 << bit)), None);
            }
        }
        assert!(keys.iter().enumerate().all(|(stream, key)| key.stream == stream as u16 && key.sequence == 7));
        assert_eq!((ours.of_media(&[]), ours.of_feedback(&[0x80, 200])), (None, None));
    }

    #[test]
    fn flows_that_follow_do_not_change_the_ssrcs_of_a_flow() {
        let (few, many) = (Ssrcs::new(SessionId([3; 8]), 4), Ssrcs::new(SessionId([3; 8]), COUNT));
        assert!((0..4).all(|number| few.of(number) == many.of(number)));
        assert_eq!((few.of_media(&rtp(many.of(4)[0])), many.sorted.len()), (None, 3 * COUNT), "all are distinct");
    }
}
