// SPDX-License-Identifier: MIT OR Apache-2.0
//! Converts packets between the media endpoint's bytes and the WebRTC library's types.

use super::frame_cache::FrameCache;
use bytes::{Bytes, BytesMut};
use paceline_netsim::flow::Datagram;
use rtc::interceptor::Packet;
use rtc::rtcp;
use rtc::rtcp::raw_packet::RawPacket;
use rtc::rtp;
use rtc::rtp::header::{EXTENSION_PROFILE_TWO_BYTE, Extension};
use rtc::shared::error::Error;
use rtc::shared::marshal::{Marshal, MarshalSize, Unmarshal};

/// Converts an RTP datagram. Payload bytes that the datagram only counts come from the cache, or are zeros without one.
/// Returns `None` if the frame is no longer cached.
pub(super) fn rtp(datagram: &Datagram, cache: Option<&FrameCache>) -> Option<Packet> {
    let mut bytes = datagram.bytes();
    let header = rtp::Header::unmarshal(&mut bytes).ok()?;
    if header.padding {
        return Some(padding(header, bytes.len() + datagram.tail()));
    }
    let mut payload = BytesMut::from(bytes);
    payload.resize(bytes.len() + datagram.tail(), 0);
    if let (Some(cache), Some(piece)) = (cache, datagram.piece()) {
        let (head, tail) = payload.split_at_mut(bytes.len());
        let first = cache.read(piece, tail)?;
        if let (0, Some(last)) = (piece.offset, head.last_mut()) {
            *last = first;
        }
    }
    Some(Packet::Rtp(rtp::Packet { header, payload: payload.freeze() }))
}

/// Bytes of padding that the library adds to an empty packet.
const PADDED: usize = 4;

/// An extension id that is not negotiated: the library assigns ids from 1.
const FILLER: u8 = 200;

/// Creates a padding-only packet. The library pads only to a multiple of four bytes, so an unnegotiated extension element
/// of the two-byte form (RFC 8285, section 4.3) fills the rest. The packet size does not change.
fn padding(mut header: rtp::Header, padding: usize) -> Packet {
    let wanted = header.marshal_size() + padding;
    header.extension = true;
    header.extension_profile = EXTENSION_PROFILE_TWO_BYTE;
    header.extensions_padding = 0;
    header.extensions.push(Extension { id: FILLER, payload: Bytes::new() });
    let room = wanted.saturating_sub(header.get_extension_payload_len() + 12 + 4 + PADDED).min(255);
    if let Some(filler) = header.extensions.last_mut() {
        filler.payload = Bytes::from(vec![0; room]);
    }
    Packet::Rtp(rtp::Packet { header, payload: Bytes::new() })
}

/// Converts an RTCP compound.
pub(super) fn rtcp(compound: Vec<u8>) -> Packet {
    Packet::Rtcp(vec![Box::new(RawPacket(Bytes::from(compound)))])
}

pub(super) fn bytes(packet: &Packet) -> Result<Bytes, Error> {
    Ok(match packet {
        Packet::Rtp(packet) => packet.marshal()?.freeze(),
        Packet::Rtcp(packets) => rtcp::packet::marshal(packets)?.freeze(),
        _ => Bytes::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline::{Registry, Setup, Signals};
    use paceline_netsim::flow::source::{Frame, Ideal, Source, VideoConfig};
    use paceline_netsim::flow::{
        DatagramKind, IP_UDP_HEADERS, MediaKind, MediaSender, PACKET_SIZE_DEFAULT, RtcpTiming, SenderConfig,
        StreamConfig, StreamInfo,
    };
    use paceline_units::{RandomStreams, Rate, StreamId, Time, TimeDelta};
    use paceline_wire::{ExtensionIds, RtpHeader, parse_compound};
    use proptest::prelude::*;

    const IDS: ExtensionIds = ExtensionIds { abs_send_time: 1, transport_sequence: 2 };

    /// A source whose rate is below its declared maximum, so that the sender adds padding.
    struct BelowMaximum(Ideal, Rate);

    impl Source for BelowMaximum {
        fn set_target(&mut self, _: Time, _: Rate) {}
        fn poll_frame(&mut self, now: Time) -> Option<Frame> {
            self.0.poll_frame(now)
        }
        fn poll_timeout(&self) -> Option<Time> {
            self.0.poll_timeout()
        }
        fn range(&self) -> (Rate, Rate) {
            (self.0.range().0, self.1)
        }
    }

    /// Returns the datagrams of a sender in its first three seconds: media, padding up to the target, and reports.
    fn datagrams() -> Vec<(DatagramKind, Datagram)> {
        let rate = Rate::from_kbps(900);
        let setup = Setup::new(rate, rate, rate);
        let mut controller = Registry::standard().get("fixed").unwrap().build(&setup, &[]).unwrap();
        let names = StreamInfo { id: StreamId(0), kind: MediaKind::Video, ssrc: 5, rtx_ssrc: 6, clock_rate: 90_000 };
        let part = rate.scale(0.6);
        let ideal = VideoConfig { fps: 30.0, min: part, max: part, start: part };
        let source = BelowMaximum(Ideal::new(ideal, Time::ZERO).unwrap(), rate);
        let config = SenderConfig {
            extensions: IDS,
            streams: vec![StreamConfig {
                info: names,
                source: Box::new(source),
                priority: 1.0,
                suspends: false,
                first_sequence: 65_500,
                timestamp_offset: 9,
            }],
            start: Time::ZERO,
            packet_size: PACKET_SIZE_DEFAULT,
            packet_time: TimeDelta::ZERO,
            rtcp: RtcpTiming { min_interval: TimeDelta::from_secs(1), session: rate },
            pacer_limit: TimeDelta::from_secs(2),
            retransmit: true,
            protection: Default::default(),
            feedback_formats: Default::default(),
            ntp_origin: 0,
        };
        let random = RandomStreams::new(1).stream("rtcp");
        let mut sender = MediaSender::new(config, &mut controller, random, Signals::disabled());
        let mut sent = Vec::new();
        while let Some(now) = sender.poll_timeout().filter(|due| *due < Time::from_secs(3)) {
            sender.handle_timeout(now);
            let mut datagram = Datagram::new();
            while let Some(what) = sender.poll_transmit(now, &mut datagram) {
                sent.push((what, datagram.clone()));
            }
        }
        sent
    }

    fn len(datagram: &Datagram) -> usize {
        (datagram.size() - IP_UDP_HEADERS).as_bytes() as usize
    }

    #[test]
    fn conversion_keeps_headers_and_sizes() {
        let sent = datagrams();
        for (what, datagram) in &sent {
            let DatagramKind::Rtp { kind, .. } = what else {
                let out = bytes(&rtcp(datagram.bytes().to_vec())).unwrap();
                assert_eq!(out, datagram.bytes());
                assert!(parse_compound(&out).is_ok());
                continue;
            };
            let out = bytes(&rtp(datagram, None).unwrap()).unwrap();
            assert_eq!(out.len(), len(datagram), "{kind:?}");
            let read = |bytes: &[u8]| RtpHeader::parse(bytes, &IDS).unwrap();
            let ((ours, _), (theirs, payload)) = (read(datagram.bytes()), read(&out));
            assert_eq!(ours, theirs);
            match theirs.padding {
                true => assert_eq!((out.len() - payload, out.last()), (PADDED, Some(&(PADDED as u8))), "padding only"),
                false => assert_eq!(out[..datagram.bytes().len()], *datagram.bytes()),
            }
        }
        let is = |wanted: fn(&DatagramKind) -> bool| sent.iter().filter(|(what, _)| wanted(what)).count();
        assert!(is(|what| *what == DatagramKind::Rtcp) >= 1);
        let padded = sent.iter().filter(|(_, d)| d.bytes()[0] & 0x20 != 0).count();
        assert!(padded > 20 && padded < sent.len() * 9 / 10, "{padded} of {}", sent.len());
    }

    #[test]
    fn packets_contain_the_whole_frame() {
        let cache = FrameCache::default();
        let sent = datagrams();
        let of = |datagram: &Datagram| datagram.piece().map(|piece| (piece.timestamp, piece.offset, datagram.tail()));
        let (timestamp, ..) = sent.iter().find_map(|(_, datagram)| of(datagram)).unwrap();
        let pieces = || sent.iter().filter(|(_, d)| of(d).is_some_and(|(of, ..)| of == timestamp)).map(|(_, d)| d);
        let whole: usize = pieces().map(Datagram::tail).sum();
        assert!(pieces().count() > 1, "a frame of several packets");
        assert!(rtp(pieces().next().unwrap(), Some(&cache)).is_none(), "not in the cache");

        let frame: Vec<u8> = (0..=whole).map(|i| (i * 7) as u8).collect();
        cache.put(timestamp, frame.clone());
        let mut came = Vec::new();
        for datagram in pieces() {
            let out = bytes(&rtp(datagram, Some(&cache)).unwrap()).unwrap();
            // The header of the first packet ends with the first byte of the frame.
            let from = datagram.bytes().len() - usize::from(came.is_empty());
            came.extend_from_slice(&out[from..]);
        }
        assert_eq!(came, frame);
    }

    proptest! {
        /// Any packet that the library parses can be serialised and parsed again.
        #[test]
        fn serialises_any_parsed_packet(raw in proptest::collection::vec(any::<u8>(), 0..200), first in 0usize..4) {
            let mut raw = raw;
            if let Some(byte) = raw.first_mut() {
                *byte = [0x80, 0x90, 0xB2, *byte][first];
            }
            let media = rtp::Packet::unmarshal(&mut &raw[..]).and_then(|packet| bytes(&Packet::Rtp(packet)));
            let _ = media.map(|bytes| RtpHeader::parse(&bytes, &IDS).is_ok());
            let reports = rtcp::packet::unmarshal(&mut &raw[..]).and_then(|packets| bytes(&Packet::Rtcp(packets)));
            let _ = reports.map(|bytes| parse_compound(&bytes).is_ok());
        }
    }
}
