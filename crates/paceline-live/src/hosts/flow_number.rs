//! The number of a flow in its session, which both ends read from the SSRCs of its packets.
//!
//! The SSRCs of a session follow each other. The first one is a hash of the identifier of the session, which its sender draws at random, so
//! that somebody who does not see the datagrams does not know them.

use crate::hosts::arrivals::PacketKey;
use crate::hosts::message::SessionId;
use crate::hosts::terms::{STREAMS_MAX, Terms};
use paceline_units::StreamId;
use paceline_wire::is_rtcp;

/// Position of the SSRC of the receiver among those of a flow: after media and retransmissions of as many streams as possible.
const RECEIVER: usize = 2 * STREAMS_MAX;

/// Number of SSRCs of a flow. Some are not in use.
const COUNT: usize = RECEIVER + 1;

/// The SSRCs of the flows of a session.
pub struct Ssrcs {
    /// The identifier of the session.
    pub id: SessionId,
    first: u32,
    /// Number of streams of each flow.
    streams: Vec<usize>,
}

/// The SSRCs of a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowSsrcs {
    /// Media and retransmissions of each stream.
    pub streams: Vec<[u32; 2]>,
    /// The receiver.
    pub receiver: u32,
}

impl Ssrcs {
    /// Returns those of the flows of a session: first those of the sender, then those of the receiver.
    pub fn of_session(id: SessionId, terms: &Terms) -> Self {
        Self::new(id, terms.streams_of_flows())
    }

    /// Returns those of flows with so many streams.
    ///
    /// # Panics
    /// A flow has more than [`STREAMS_MAX`] streams.
    pub fn new(id: SessionId, streams: impl IntoIterator<Item = usize>) -> Self {
        let streams: Vec<usize> = streams.into_iter().collect();
        assert!(streams.iter().all(|count| *count <= STREAMS_MAX), "a flow has at most {STREAMS_MAX} streams");
        let hash = blake3::derive_key("paceline 2026 hosts ssrc", &id.0);
        Self { id, first: u32::from_be_bytes([hash[0], hash[1], hash[2], hash[3]]), streams }
    }

    /// Returns the SSRCs of a flow.
    pub fn of(&self, number: usize) -> FlowSsrcs {
        let ssrc = |position: usize| self.first.wrapping_add((number * COUNT + position) as u32);
        let streams = (0..self.streams[number]).map(|stream| [2 * stream, 2 * stream + 1].map(ssrc));
        FlowSsrcs { streams: streams.collect(), receiver: ssrc(RECEIVER) }
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
        (position != RECEIVER).then_some(PacketKey { stream: (number * COUNT + position) as u16, sequence })
    }

    /// Returns the number of the media packets of a stream in their keys.
    pub fn stream_number(&self, flow: usize, stream: StreamId) -> u16 {
        (flow * COUNT) as u16 + 2 * u16::from(stream.0)
    }

    /// Returns the flow and the stream of media packets of this number; `None` of retransmissions, and beyond the session.
    pub fn stream_of(&self, number: u16) -> Option<(usize, StreamId)> {
        let (flow, position) = self.place(number.into())?;
        let is_media = position != RECEIVER && position.is_multiple_of(2);
        is_media.then_some((flow, StreamId((position / 2) as u8)))
    }

    /// Returns number and position of the SSRC at this offset.
    fn find(&self, bytes: &[u8], offset: usize) -> Option<(usize, usize)> {
        let ssrc = u32::from_be_bytes(*bytes.get(offset..)?.first_chunk()?);
        self.place(ssrc.wrapping_sub(self.first) as usize).filter(|_| bytes[0] >> 6 == 2)
    }

    /// Returns the number of the flow and the position in it of an SSRC that is in use, counted from the first one.
    fn place(&self, index: usize) -> Option<(usize, usize)> {
        let (flow, position) = (index / COUNT, index % COUNT);
        (position < 2 * self.streams.get(flow)? || position == RECEIVER).then_some((flow, position))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosts::terms::FLOWS_MAX;
    use std::collections::BTreeSet;

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
            let FlowSsrcs { streams, receiver } = ours.of(number);
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
            for bit in 14..32 {
                assert_eq!(ours.of_media(&rtp(streams[0][0] ^ 1 << bit)), None);
                assert_eq!(ours.of_feedback(&rtcp(receiver ^ 1 << bit)), None);
            }
            let free = streams[0][0].wrapping_add(2 * count as u32);
            assert!(count == STREAMS_MAX || ours.of_media(&rtp(free)).is_none());
        }
        assert!(keys.iter().all(|key| key.sequence == 7 && key.stream < 1 << 14));
        let distinct: BTreeSet<u16> = keys.iter().map(|key| key.stream).collect();
        assert_eq!(distinct.len(), keys.len());
        let numbers = most().enumerate().flat_map(|(flow, count)| (0..count as u8).map(move |s| (flow, StreamId(s))));
        for (index, (flow, stream)) in numbers.enumerate() {
            let number = ours.stream_number(flow, stream);
            assert_eq!((keys[2 * index].stream, keys[2 * index + 1].stream), (number, number + 1));
            assert_eq!([number, number + 1].map(|number| ours.stream_of(number)), [Some((flow, stream)), None]);
        }
        assert_eq!((ours.stream_of(512 * COUNT as u16), ours.stream_of(u16::MAX)), (None, None));
        assert_eq!((ours.of_media(&[]), ours.of_feedback(&[0x80, 200])), (None, None));
        let few = Ssrcs::new(SessionId([1; 8]), most().take(4));
        assert!((0..4).all(|number| few.of(number) == ours.of(number)), "flows that follow change nothing");
        assert_eq!(few.of_media(&rtp(ours.of(4).streams[0][0])), None);
    }
}
