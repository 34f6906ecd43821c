// SPDX-License-Identifier: MIT OR Apache-2.0
//! The number of a flow in its session, which both ends read from the SSRCs of its packets.
//!
//! The SSRCs are hashes of the identifier of the session, which its sender draws at random, so that somebody who does not see the
//! datagrams does not know them. Those of a session are distinct.

use crate::hosts::arrivals::PacketKey;
use crate::hosts::message::SessionId;
use crate::hosts::terms::{STREAMS_MAX, Terms};
use paceline_units::StreamId;
use paceline_wire::is_rtcp;
use std::collections::BTreeMap;

/// Position of the SSRC of the receiver among those of a flow: after media and retransmissions of all streams.
const RECEIVER: usize = 2 * STREAMS_MAX;

/// The SSRCs of the flows of a session.
pub struct Ssrcs {
    /// The identifier of the session.
    pub id: SessionId,
    flows: Vec<FlowSsrcs>,
    /// The number of the first stream of each flow; retransmissions are a stream of their own.
    first_streams: Vec<u16>,
    /// Number of the flow and position of each SSRC, in order of SSRCs.
    sorted: Vec<(u32, u16, u8)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowSsrcs {
    /// Media and retransmissions of each stream.
    pub streams: Vec<[u32; 2]>,
    pub receiver: u32,
}

impl Ssrcs {
    /// Returns those of the flows of a session: first those of the sender, then those of the receiver.
    pub fn of_session(id: SessionId, terms: &Terms) -> Self {
        Self::new(id, terms.streams_of_flows())
    }

    /// Returns those of flows with so many streams. Those of a flow do not depend on the flows that follow.
    ///
    /// # Panics
    /// A flow has more than [`STREAMS_MAX`] streams.
    pub fn new(id: SessionId, streams: impl IntoIterator<Item = usize>) -> Self {
        let mut known = BTreeMap::new();
        let mut draw = |number: usize, position: usize| {
            let mut hasher = blake3::Hasher::new_derive_key("paceline 2026 hosts ssrc");
            hasher.update(&id.0).update(&(number as u16).to_be_bytes()).update(&[position as u8]);
            let mut words = hasher.finalize_xof();
            loop {
                let mut word = [0; 4];
                words.fill(&mut word);
                let ssrc = u32::from_be_bytes(word);
                // One that an earlier flow has is passed over.
                if let std::collections::btree_map::Entry::Vacant(free) = known.entry(ssrc) {
                    free.insert((number as u16, position as u8));
                    return ssrc;
                }
            }
        };
        let (mut flows, mut first_streams, mut next) = (Vec::new(), Vec::new(), 0);
        for (number, count) in streams.into_iter().enumerate() {
            assert!(count <= STREAMS_MAX, "a flow has at most {STREAMS_MAX} streams");
            let streams = (0..count).map(|stream| [2 * stream, 2 * stream + 1].map(|position| draw(number, position)));
            flows.push(FlowSsrcs { streams: streams.collect(), receiver: draw(number, RECEIVER) });
            first_streams.push(next);
            next += 2 * count as u16;
        }
        let sorted = known.into_iter().map(|(ssrc, (number, position))| (ssrc, number, position)).collect();
        Self { id, flows, first_streams, sorted }
    }

    pub fn of(&self, number: usize) -> &FlowSsrcs {
        &self.flows[number]
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
        let stream = self.first_streams[number] + position as u16;
        (position != RECEIVER).then_some(PacketKey { stream, sequence })
    }

    /// Returns the number of the media packets of a stream in their keys.
    pub fn stream_number(&self, flow: usize, stream: StreamId) -> u16 {
        self.first_streams[flow] + 2 * u16::from(stream.0)
    }

    /// Returns the flow and the stream of media packets of this number; `None` of retransmissions, and beyond the session.
    pub fn stream_of(&self, number: u16) -> Option<(usize, StreamId)> {
        let flow = self.first_streams.partition_point(|first| *first <= number).checked_sub(1)?;
        let position = number - self.first_streams[flow];
        let is_media = position.is_multiple_of(2) && usize::from(position) < 2 * self.flows[flow].streams.len();
        is_media.then_some((flow, StreamId((position / 2) as u8)))
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
    use crate::hosts::terms::FLOWS_MAX;

    /// Numbers of streams of a session with as many flows as possible.
    fn most() -> impl Iterator<Item = usize> {
        [1; 2 * FLOWS_MAX as usize - 2 * STREAMS_MAX].into_iter().chain([STREAMS_MAX; 2])
    }

    fn rtp(ssrc: u32) -> Vec<u8> {
        [vec![0x80, 96, 0, 7, 0, 0, 0, 0], ssrc.to_be_bytes().to_vec()].concat()
    }

    fn rtcp(ssrc: u32) -> Vec<u8> {
        [vec![0x80, 200, 0, 1], ssrc.to_be_bytes().to_vec()].concat()
    }

    #[test]
    fn the_ssrcs_of_a_flow_give_its_number_in_its_session_and_in_no_other() {
        let (ours, other) = (Ssrcs::new(SessionId([1; 8]), most()), Ssrcs::new(SessionId([2; 8]), most()));
        let mut keys = Vec::new();
        for (number, count) in most().enumerate() {
            let FlowSsrcs { streams, receiver } = ours.of(number).clone();
            assert_eq!(streams.len(), count);
            for [media, rtx] in &streams {
                for bytes in [rtp(*media), rtp(*rtx), rtcp(*media)] {
                    assert_eq!((ours.of_media(&bytes), ours.of_feedback(&bytes)), (Some(number), None));
                    assert_eq!((other.of_media(&bytes), other.key(&bytes)), (None, None));
                }
                keys.extend([media, rtx].map(|ssrc| ours.key(&rtp(*ssrc)).unwrap()));
            }
            let feedback = rtcp(receiver);
            assert_eq!((ours.of_media(&feedback), ours.of_feedback(&feedback)), (None, Some(number)));
            assert_eq!((other.of_feedback(&feedback), ours.key(&rtcp(receiver))), (None, None));
            // Others are not known.
            for bit in 0..32 {
                assert_eq!(ours.of_media(&rtp(streams[0][0] ^ 1 << bit)), None);
                assert_eq!(ours.of_feedback(&rtcp(receiver ^ 1 << bit)), None);
            }
        }
        assert!(keys.iter().enumerate().all(|(stream, key)| key.stream == stream as u16 && key.sequence == 7));
        let numbers = most().enumerate().flat_map(|(flow, count)| (0..count as u8).map(move |s| (flow, StreamId(s))));
        for (index, (flow, stream)) in numbers.enumerate() {
            assert_eq!(usize::from(ours.stream_number(flow, stream)), 2 * index);
            let found = [2 * index, 2 * index + 1].map(|number| ours.stream_of(number as u16));
            assert_eq!(found, [Some((flow, stream)), None]);
        }
        assert_eq!((ours.stream_of(keys.len() as u16), ours.stream_of(u16::MAX)), (None, None));
        assert_eq!((ours.of_media(&[]), ours.of_feedback(&[0x80, 200])), (None, None));
    }

    #[test]
    fn flows_that_follow_do_not_change_the_ssrcs_of_a_flow() {
        let (few, many) = (Ssrcs::new(SessionId([3; 8]), most().take(4)), Ssrcs::new(SessionId([3; 8]), most()));
        assert!((0..4).all(|number| few.of(number) == many.of(number)));
        assert_eq!(few.of_media(&rtp(many.of(4).streams[0][0])), None);
        let count: usize = most().map(|streams| 2 * streams + 1).sum();
        assert_eq!(many.sorted.len(), count, "all are distinct");
    }
}
