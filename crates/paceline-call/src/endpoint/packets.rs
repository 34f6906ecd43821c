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
