//! Our bytes as the WebRTC library's packets, and back.

use super::shelf::Shelf;
use bytes::{Bytes, BytesMut};
use paceline_flow::Datagram;
use rtc::interceptor::Packet;
use rtc::rtcp;
use rtc::rtcp::raw_packet::RawPacket;
use rtc::rtp;
use rtc::rtp::header::{EXTENSION_PROFILE_TWO_BYTE, Extension};
use rtc::shared::error::Error;
use rtc::shared::marshal::{Marshal, MarshalSize, Unmarshal};

/// An RTP packet of ours, with the bytes that are only counted from the shelf; zeros without one. `None`: the frame is on
/// the shelf no longer.
pub(super) fn rtp(datagram: &Datagram, shelf: Option<&Shelf>) -> Option<Packet> {
    let mut bytes = datagram.bytes();
    let header = rtp::Header::unmarshal(&mut bytes).ok()?;
    if header.padding {
        return Some(padding(header, bytes.len() + datagram.tail()));
    }
    let mut payload = BytesMut::from(bytes);
    payload.resize(bytes.len() + datagram.tail(), 0);
    if let (Some(shelf), Some(piece)) = (shelf, datagram.piece()) {
        let (head, tail) = payload.split_at_mut(bytes.len());
        let first = shelf.read(piece, tail)?;
        if let (0, Some(last)) = (piece.offset, head.last_mut()) {
            *last = first;
        }
    }
    Some(Packet::Rtp(rtp::Packet { header, payload: payload.freeze() }))
}

/// Bytes that the library pads an empty packet with.
const PADDED: usize = 4;

/// An id that no extension has: the library offers ours from 1 on.
const FILLER: u8 = 200;

/// A packet of padding only. The library pads to whole words and no further, so the rest is an extension element that
/// nobody knows, in the form with two bytes (RFC 8285, section 4.3): the size is the same, and what it means.
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

/// A compound of ours.
pub(super) fn rtcp(datagram: &Datagram) -> Packet {
    Packet::Rtcp(vec![Box::new(RawPacket(Bytes::copy_from_slice(datagram.bytes())))])
}

/// What a packet of the library is in bytes.
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
    use paceline_flow::source::{Ideal, IdealConfig};
    use paceline_flow::{
        IP_UDP_HEADERS, MediaKind, MediaSender, RtcpTiming, SenderConfig, Sent, StreamConfig, StreamNames,
    };
    use paceline_units::{Rate, StreamId, Streams, Time, TimeDelta};
    use paceline_wire::{ExtensionIds, RtpHeader, parse_compound};
    use proptest::prelude::*;

    const IDS: ExtensionIds = ExtensionIds { abs_send_time: 1, transport_sequence: 2 };

    /// What a sender sends in its first seconds: media, padding up to the target, reports.
    fn datagrams() -> Vec<(Sent, Datagram)> {
        let rate = Rate::from_kbps(900);
        let setup = Setup { start: rate, min: rate, max: rate };
        let mut controller = Registry::standard().get("fixed").unwrap().build(&setup, &[]).unwrap();
        let names = StreamNames { id: StreamId(0), kind: MediaKind::Video, ssrc: 5, rtx_ssrc: 6, clock_rate: 90_000 };
        let source = IdealConfig { fps: 30.0, min: rate.scale(0.5), max: rate.scale(0.6), start: rate.scale(0.6) };
        let config = SenderConfig {
            extensions: IDS,
            streams: vec![StreamConfig {
                names,
                source: Box::new(Ideal::new(source, Time::ZERO).unwrap()),
                priority: 1.0,
                first_sequence: 65_500,
                timestamp_offset: 9,
            }],
            start: Time::ZERO,
            rtcp: RtcpTiming { min_interval: TimeDelta::from_secs(1), session: rate },
            pacer_limit: TimeDelta::from_secs(2),
            retransmit: true,
            protection: Default::default(),
            ntp_origin: 0,
        };
        let random = Streams::new(1).stream("rtcp");
        let mut sender = MediaSender::new(config, &mut controller, random, Signals::unheard());
        let mut sent = Vec::new();
        while sender.poll_timeout() < Time::from_secs(3) {
            let now = sender.poll_timeout();
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
    fn packets_go_as_they_are() {
        let sent = datagrams();
        for (what, datagram) in &sent {
            let Sent::Media { kind, .. } = what else {
                let out = bytes(&rtcp(datagram)).unwrap();
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
        let is = |wanted: fn(&Sent) -> bool| sent.iter().filter(|(what, _)| wanted(what)).count();
        assert!(is(|what| *what == Sent::Control) >= 1);
        let padded = sent.iter().filter(|(_, d)| d.bytes()[0] & 0x20 != 0).count();
        assert!(padded > 20 && padded < sent.len() / 2, "{padded} of {}", sent.len());
    }

    #[test]
    fn frames_go_whole() {
        let shelf = Shelf::default();
        let sent = datagrams();
        let of = |datagram: &Datagram| datagram.piece().map(|piece| (piece.timestamp, piece.offset, datagram.tail()));
        let (timestamp, ..) = sent.iter().find_map(|(_, datagram)| of(datagram)).unwrap();
        let pieces = || sent.iter().filter(|(_, d)| of(d).is_some_and(|(of, ..)| of == timestamp)).map(|(_, d)| d);
        let whole: usize = pieces().map(Datagram::tail).sum();
        assert!(pieces().count() > 1, "a frame of several packets");
        assert!(rtp(pieces().next().unwrap(), Some(&shelf)).is_none(), "not on the shelf");

        let frame: Vec<u8> = (0..=whole).map(|i| (i * 7) as u8).collect();
        shelf.put(timestamp, frame.clone());
        let mut came = Vec::new();
        for datagram in pieces() {
            let out = bytes(&rtp(datagram, Some(&shelf)).unwrap()).unwrap();
            // The first packet's head ends with the frame's first byte.
            let from = datagram.bytes().len() - usize::from(came.is_empty());
            came.extend_from_slice(&out[from..]);
        }
        assert_eq!(came, frame);
    }

    proptest! {
        /// What the library reads of any packet is bytes again, which our ends read or refuse.
        #[test]
        fn any_packet_becomes_bytes(raw in proptest::collection::vec(any::<u8>(), 0..200), first in 0usize..4) {
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
