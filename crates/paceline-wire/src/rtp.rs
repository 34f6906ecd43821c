// SPDX-License-Identifier: MIT OR Apache-2.0
//! The RTP header with the two extension elements for congestion control: abs-send-time and the transport-wide sequence
//! number, with the names and formats of Chromium.
//!
//! RFC 3550, section 5.1 (header); RFC 8285, sections 4.2 and 4.3 (one- and two-byte extension forms).
//!
//! The crate `rtp-types` is used only in tests. It reads the padding count from the last byte of the packet, which does not
//! exist in the simulator, where a payload is only a length; and it does not read extension elements.

use crate::WireError;
use crate::bytes::{be16, be24, be32};
use core::ops::Range;
use paceline_units::{Time, TimeDelta};

/// The negotiated ids of the extension elements; 0 means "not negotiated".
///
/// Elements are written in the one-byte form, whose ids are 1 to 14. An element with another id is not written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExtensionIds {
    /// The id of `http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time`.
    pub abs_send_time: u8,
    /// The id of `http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01`.
    pub transport_sequence: u8,
}

/// A send time as encoded in the header: seconds in unsigned 6.18 fixed point, which wraps every 64 s.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub struct AbsSendTime(u32);

/// The fields of an RTP header that congestion control reads or writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RtpHeader {
    /// Video: the last packet of a frame. Audio: the first packet after silence.
    pub marker: bool,
    /// 0 to 127; higher bits are not written.
    pub payload_type: u8,
    /// The sequence number of the stream; wraps.
    pub sequence: u16,
    /// The media time in units of the RTP clock (90 kHz for video); wraps.
    pub timestamp: u32,
    /// The SSRC of the stream.
    pub ssrc: u32,
    /// The send time, if the element is present.
    pub abs_send_time: Option<AbsSendTime>,
    /// The transport-wide sequence number, if the element is present; wraps.
    pub transport_sequence: Option<u16>,
    /// The P bit: the last octet of the packet is the number of padding octets, including itself.
    pub padding: bool,
}

impl Default for ExtensionIds {
    /// Returns the ids 2 and 3, as Chromium offers.
    fn default() -> Self {
        Self { abs_send_time: 2, transport_sequence: 3 }
    }
}

impl AbsSendTime {
    const MASK: u32 = 0xFF_FFFF;
    /// The unit in nanoseconds, as a reduced fraction: 10^9 / 2^18 = 1953125 / 512.
    const UNIT_NUMERATOR: i64 = 1_953_125;
    const UNIT_DENOMINATOR: i64 = 512;

    /// Returns the time modulo 64 s, to the nearest 2^-18 s (3.8 us).
    #[inline]
    pub fn from_time(t: Time) -> Self {
        let ns = t.as_nanos().rem_euclid(64_000_000_000); // below 2^36
        let units = (ns * Self::UNIT_DENOMINATOR + Self::UNIT_NUMERATOR / 2) / Self::UNIT_NUMERATOR;
        Self(units as u32 & Self::MASK)
    }

    /// Returns the time of the 24 bits of the element. Higher bits are ignored.
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits & Self::MASK)
    }

    /// Returns the 24 bits of the element, in units of 2^-18 s.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Returns `self - earlier` to the nearest nanosecond, if the two are at most 32 s apart. The result is in
    /// (-32 s, 32 s].
    #[inline]
    pub fn since(self, earlier: Self) -> TimeDelta {
        let forward = (self.0.wrapping_sub(earlier.0) & Self::MASK) as i64;
        let units = if forward > 1 << 23 { forward - (1 << 24) } else { forward };
        let n = units * Self::UNIT_NUMERATOR;
        // Ties away from zero, so that a.since(b) == -b.since(a).
        TimeDelta::from_nanos((n + Self::UNIT_DENOMINATOR / 2 - i64::from(n < 0)).div_euclid(Self::UNIT_DENOMINATOR))
    }
}

const FIXED_LEN: usize = 12;
const ONE_BYTE_PROFILE: u16 = 0xBEDE;
const TWO_BYTE_PROFILE: u16 = 0x1000; // the low 4 bits are "appbits", ignored

impl RtpHeader {
    /// The maximum length that [`write`](Self::write) returns, in bytes: 12 fixed, 4 for the header of the extension, 8 for
    /// both elements with padding.
    pub const MAX_LEN: usize = FIXED_LEN + 4 + 8;

    /// Writes the header, without CSRCs, and returns its length in bytes. Extension elements take the one-byte form.
    ///
    /// # Panics
    /// If `out` is shorter than [`MAX_LEN`](Self::MAX_LEN).
    #[inline]
    pub fn write(&self, ids: &ExtensionIds, out: &mut [u8]) -> usize {
        let out: &mut [u8; Self::MAX_LEN] =
            out.first_chunk_mut().expect("the buffer holds at least RtpHeader::MAX_LEN bytes");
        let abs_send_time = self.abs_send_time.filter(|_| one_byte_id(ids.abs_send_time));
        let transport_sequence = self.transport_sequence.filter(|_| one_byte_id(ids.transport_sequence));
        let extended = abs_send_time.is_some() | transport_sequence.is_some();

        out[0] = 0x80 | u8::from(self.padding) << 5 | u8::from(extended) << 4;
        out[1] = u8::from(self.marker) << 7 | (self.payload_type & 0x7F);
        out[2..4].copy_from_slice(&self.sequence.to_be_bytes());
        out[4..8].copy_from_slice(&self.timestamp.to_be_bytes());
        out[8..12].copy_from_slice(&self.ssrc.to_be_bytes());
        if !extended {
            return FIXED_LEN;
        }

        // The elements as the top bits of one 64-bit word: `id:4 length-1:4 data`, in this order, zeros after.
        let (mut elements, mut used) = (0u64, 0u32);
        if let Some(time) = abs_send_time {
            elements = (u64::from(ids.abs_send_time << 4 | 2) << 24 | u64::from(time.0)) << 32;
            used = 32;
        }
        if let Some(sequence) = transport_sequence {
            elements |= (u64::from(ids.transport_sequence << 4 | 1) << 16 | u64::from(sequence)) << (40 - used);
            used += 24;
        }
        let words = used.div_ceil(32);
        out[12..16].copy_from_slice(&(u32::from(ONE_BYTE_PROFILE) << 16 | words).to_be_bytes());
        out[16..24].copy_from_slice(&elements.to_be_bytes());
        FIXED_LEN + 4 + 4 * words as usize
    }

    /// Reads both elements in the form of [`write`](Self::write), which most packets have. Returns false, and reads nothing,
    /// if the elements have another form.
    #[inline(always)]
    fn read_own_elements(&mut self, elements: &[u8], ids: &ExtensionIds) -> bool {
        let &[time, t1, t2, t3, sequence, s1, s2, 0] = elements else { return false };
        let (time_id, sequence_id) = (ids.abs_send_time, ids.transport_sequence);
        let is_own = u16::from(time) == u16::from(time_id) << 4 | 2
            && u16::from(sequence) == u16::from(sequence_id) << 4 | 1
            && one_byte_id(time_id)
            && one_byte_id(sequence_id)
            && time_id != sequence_id;
        if is_own {
            self.abs_send_time = Some(AbsSendTime(u32::from_be_bytes([0, t1, t2, t3])));
            self.transport_sequence = Some(u16::from_be_bytes([s1, s2]));
        }
        is_own
    }

    /// Reads a header and returns it with the offset of the payload.
    ///
    /// `bytes` is the part of the packet that exists in memory: the whole packet on a real path, at least the header in
    /// the simulator. CSRCs are skipped. Both extension forms are read; an unknown element or profile is skipped by its
    /// length, an element of one of the two ids with an impossible length counts as absent.
    #[inline(always)]
    pub fn parse(bytes: &[u8], ids: &ExtensionIds) -> Result<(Self, usize), WireError> {
        let fixed: &[u8; FIXED_LEN] = bytes.first_chunk().ok_or(WireError::RtpTruncated)?;
        if fixed[0] >> 6 != 2 {
            return Err(WireError::BadVersion);
        }
        let mut header = Self {
            marker: fixed[1] & 0x80 != 0,
            payload_type: fixed[1] & 0x7F,
            sequence: be16(fixed, 2),
            timestamp: be32(fixed, 4),
            ssrc: be32(fixed, 8),
            abs_send_time: None,
            transport_sequence: None,
            padding: fixed[0] & 0x20 != 0,
        };
        let after_csrcs = FIXED_LEN + 4 * usize::from(fixed[0] & 0x0F);
        let rest = bytes.get(after_csrcs..).ok_or(WireError::RtpTruncated)?;
        if fixed[0] & 0x10 == 0 {
            return Ok((header, after_csrcs));
        }
        let (block, rest) = rest.split_first_chunk::<4>().ok_or(WireError::RtpTruncated)?;
        let len = 4 * usize::from(be16(block, 2));
        let elements = rest.get(..len).ok_or(WireError::RtpTruncated)?;
        match be16(block, 0) {
            ONE_BYTE_PROFILE if header.read_own_elements(elements, ids) => {}
            ONE_BYTE_PROFILE => header.read_elements::<1>(elements, ids)?,
            profile if profile & 0xFFF0 == TWO_BYTE_PROFILE => header.read_elements::<2>(elements, ids)?,
            _ => {}
        }
        Ok((header, after_csrcs + 4 + len))
    }

    /// Reads elements whose own header has `FORM` bytes.
    #[inline(never)]
    fn read_elements<const FORM: usize>(&mut self, elements: &[u8], ids: &ExtensionIds) -> Result<(), WireError> {
        each_element::<FORM>(elements, |id, place| {
            let data = &elements[place];
            if id == ids.abs_send_time && data.len() == 3 {
                self.abs_send_time = Some(AbsSendTime(be24(data, 0)));
            } else if id == ids.transport_sequence && (data.len() == 2 || data.len() == 4) {
                // Length 4 is version 2 of the element: the same number, then a feedback request.
                self.transport_sequence = Some(be16(data, 0));
            }
        })
    }
}

/// Calls `visit` with the id and the data range of each element of an extension block. The header of an element has `FORM`
/// bytes.
#[inline]
fn each_element<const FORM: usize>(block: &[u8], mut visit: impl FnMut(u8, Range<usize>)) -> Result<(), WireError> {
    let mut at = 0;
    while let Some(&first) = block.get(at) {
        if first == 0 {
            at += 1; // padding between elements
            continue;
        }
        let (id, len) = if FORM == 1 {
            let id = first >> 4;
            if id == 0 || id == 15 {
                return Ok(()); // RFC 8285, section 4.2: ignore the rest
            }
            (id, usize::from(first & 0x0F) + 1)
        } else {
            (first, usize::from(*block.get(at + 1).ok_or(WireError::ExtensionOverrun)?))
        };
        let place = at + FORM..at + FORM + len;
        if place.end > block.len() {
            return Err(WireError::ExtensionOverrun);
        }
        at = place.end;
        visit(id, place);
    }
    Ok(())
}

/// Sets the send time and the transport-wide sequence number to zero. A FEC packet is computed before they are known, so
/// both endpoints use the protected packets without them, as libwebrtc does.
pub fn clear_stamps(packet: &mut [u8], ids: &ExtensionIds) -> Result<(), WireError> {
    RtpHeader::parse(packet, ids)?;
    if packet[0] & 0x10 == 0 {
        return Ok(());
    }
    let after_csrcs = FIXED_LEN + 4 * usize::from(packet[0] & 0x0F);
    let (profile, block) = packet[after_csrcs..].split_at_mut(4);
    let len = 4 * usize::from(be16(profile, 2));
    let block = &mut block[..len];
    let mut stamps = [0..0, 0..0];
    let note = |id: u8, place: Range<usize>| {
        if id == ids.abs_send_time && place.len() == 3 {
            stamps[0] = place;
        } else if id == ids.transport_sequence && (place.len() == 2 || place.len() == 4) {
            stamps[1] = place.start..place.start + 2;
        }
    };
    match be16(profile, 0) {
        ONE_BYTE_PROFILE => each_element::<1>(block, note)?,
        profile if profile & 0xFFF0 == TWO_BYTE_PROFILE => each_element::<2>(block, note)?,
        _ => {}
    }
    stamps.into_iter().for_each(|place| block[place].fill(0));
    Ok(())
}

/// Returns the number of padding octets at the end of a packet whose P bit is set.
pub fn padding_len(packet: &[u8], payload_offset: usize) -> Result<usize, WireError> {
    let payload = packet.get(payload_offset..).ok_or(WireError::RtpPadding)?;
    let count = usize::from(*payload.last().ok_or(WireError::RtpPadding)?);
    if count == 0 || count > payload.len() { Err(WireError::RtpPadding) } else { Ok(count) }
}

/// Returns whether a packet on a port shared by RTP and RTCP is RTCP: its second byte is 192 to 223 (RFC 5761, section 4).
#[inline]
pub fn is_rtcp(bytes: &[u8]) -> bool {
    matches!(bytes.get(1), Some(192..=223))
}

#[inline]
fn one_byte_id(id: u8) -> bool {
    (1..=14).contains(&id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    const IDS: ExtensionIds = ExtensionIds { abs_send_time: 2, transport_sequence: 3 };

    #[test]
    fn send_times_are_rounded_and_wrap() {
        // 1193046 / 2^18 s = 4.551109313... s; half a unit either side is 1907 ns.
        let t = Time::from_nanos(4_551_109_314);
        assert_eq!(AbsSendTime::from_time(t).bits(), 0x123456);
        assert_eq!(AbsSendTime::from_time(t + TimeDelta::from_nanos(1_900)).bits(), 0x123456);
        assert_eq!(AbsSendTime::from_time(t + TimeDelta::from_nanos(1_920)).bits(), 0x123457);
        assert_eq!(AbsSendTime::from_time(t + TimeDelta::from_secs(64)).bits(), 0x123456);
        assert_eq!(AbsSendTime::from_time(Time::from_nanos(63_999_999_999)).bits(), 0, "rounds up into the wrap");
        // 2^63 - 1 ns = 4.854775807 s modulo 64 s: 1272650.35 units.
        assert_eq!(AbsSendTime::from_time(Time::MAX).bits(), 1_272_650);
    }

    #[test]
    fn differences_are_signed() {
        let at = AbsSendTime::from_bits;
        assert_eq!(at(1).since(at(0)), TimeDelta::from_nanos(3815)); // 3814.7
        assert_eq!(at(0).since(at(0xFF_FFFF)), TimeDelta::from_nanos(3815), "across the wrap");
        assert_eq!(at(0xFF_FFFF).since(at(0)), TimeDelta::from_nanos(-3815));
        assert_eq!(at(1 << 23).since(at(0)), TimeDelta::from_secs(32));
        assert_eq!(at(0).since(at(1 << 23)), TimeDelta::from_secs(32), "exactly half way counts as later");
        assert_eq!(at((1 << 23) + 1).since(at(0)), TimeDelta::from_nanos(-31_999_996_185));
        assert_eq!(at(256).since(at(0)), -at(0).since(at(256)), "ties are symmetric");
    }

    #[test]
    fn only_send_time_and_transport_sequence_are_cleared() {
        let at_zero = RtpHeader {
            abs_send_time: Some(AbsSendTime::default()),
            transport_sequence: Some(0),
            sequence: 9,
            ..RtpHeader::default()
        };
        let left =
            RtpHeader { abs_send_time: Some(AbsSendTime(0xABCDEF)), transport_sequence: Some(0x1234), ..at_zero };
        let (mut cleared, mut stamped) = ([7; RtpHeader::MAX_LEN + 3], [7; RtpHeader::MAX_LEN + 3]);
        assert_eq!((at_zero.write(&IDS, &mut cleared), left.write(&IDS, &mut stamped)), (24, 24));
        assert_ne!(stamped, cleared);
        assert_eq!(clear_stamps(&mut stamped, &IDS), Ok(()));
        assert_eq!(stamped, cleared);
        let plain = [0x80, 0x60, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0x32, 1];
        let mut same = plain;
        assert_eq!((clear_stamps(&mut same, &IDS), same), (Ok(()), plain), "no extension");
        assert_eq!(clear_stamps(&mut same[..5], &IDS), Err(WireError::RtpTruncated));
    }

    #[test]
    fn padding_count_must_fit_the_payload() {
        assert_eq!(padding_len(&[0, 0, 7, 0, 2], 2), Ok(2));
        assert_eq!(padding_len(&[0, 0, 0, 0, 3], 2), Ok(3), "nothing but padding");
        for (packet, offset) in [(&[0u8, 0, 0, 0, 4][..], 2), (&[0, 0, 0], 2), (&[0, 0], 2), (&[0], 2)] {
            assert_eq!(padding_len(packet, offset), Err(WireError::RtpPadding));
        }
    }

    #[test]
    fn payload_type_does_not_set_the_marker() {
        let mut out = [0; RtpHeader::MAX_LEN];
        RtpHeader { payload_type: 0xE0, ..RtpHeader::default() }.write(&IDS, &mut out);
        assert_eq!(out[1], 0x60);
    }

    #[test]
    fn second_byte_tells_rtcp_from_rtp() {
        assert!(is_rtcp(&[0x80, 192]) && is_rtcp(&[0x80, 223]));
        assert!(!is_rtcp(&[0x80, 191]) && !is_rtcp(&[0x80, 224]) && !is_rtcp(&[0x80]));
    }

    /// A packet with CSRCs and this extension block.
    fn with_block(csrcs: u8, profile: u16, elements: &[u8]) -> Vec<u8> {
        let mut p = vec![0x90 | csrcs, 96, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3];
        p.extend(vec![0xEE; 4 * usize::from(csrcs)]);
        p.extend(profile.to_be_bytes());
        assert_eq!(elements.len() % 4, 0);
        p.extend((elements.len() as u16 / 4).to_be_bytes());
        p.extend(elements);
        p
    }

    #[test]
    fn both_extension_forms_are_read() {
        let read = |csrcs, profile, elements: &[u8]| {
            RtpHeader::parse(&with_block(csrcs, profile, elements), &IDS)
                .map(|(h, offset)| (h.abs_send_time.map(AbsSendTime::bits), h.transport_sequence, offset))
        };
        // CSRCs, padding before and between, unknown id 7 of 1 byte.
        let one = [0, 0x22, 1, 2, 3, 0, 0x70, 9, 0x31, 4, 5, 0];
        assert_eq!(read(15, 0xBEDE, &one), Ok((Some(0x010203), Some(0x0405), 12 + 60 + 4 + 12)));
        // Two-byte form, any appbits; version-2 element of 4 bytes.
        let two = [2, 3, 1, 2, 3, 0, 99, 0, 3, 4, 4, 5, 0x80, 1, 0, 0];
        assert_eq!(read(0, 0x1000, &two), Ok((Some(0x010203), Some(0x0405), 32)));
        assert_eq!(read(0, 0x100F, &two), Ok((Some(0x010203), Some(0x0405), 32)));
        // Another profile is skipped whole.
        assert_eq!(read(0, 0x1234, &two), Ok((None, None, 32)));
        // Id 15, and id 0 with a length, stop the one-byte form.
        for stop in [0xF0, 0x01] {
            assert_eq!(read(0, 0xBEDE, &[0x31, 4, 5, stop, 0x22, 1, 2, 3]), Ok((None, Some(0x0405), 24)));
        }
        // An impossible length for the id: absent.
        assert_eq!(read(0, 0xBEDE, &[0x21, 1, 2, 0x32, 1, 2, 3, 0]), Ok((None, None, 24)));
        // Longer than the block, both forms; a two-byte id without its length byte.
        assert_eq!(read(0, 0xBEDE, &[0x24, 1, 2, 3]), Err(WireError::ExtensionOverrun));
        assert_eq!(read(0, 0x1000, &[2, 3, 1, 2]), Err(WireError::ExtensionOverrun));
        assert_eq!(read(0, 0x1000, &[0, 0, 0, 2]), Err(WireError::ExtensionOverrun));
    }

    #[test]
    fn elements_with_invalid_ids_are_not_written() {
        let h = RtpHeader { abs_send_time: Some(AbsSendTime(1)), transport_sequence: Some(9), ..RtpHeader::default() };
        let mut out = [0; RtpHeader::MAX_LEN];
        for id in [0, 15, 255] {
            let ids = ExtensionIds { abs_send_time: id, transport_sequence: 14 };
            assert_eq!(h.write(&ids, &mut out), 20);
            let (back, _) = RtpHeader::parse(&out, &ids).unwrap();
            assert_eq!((back.abs_send_time, back.transport_sequence), (None, Some(9)));
            let neither = ExtensionIds { abs_send_time: id, transport_sequence: id };
            assert_eq!(h.write(&neither, &mut out), 12);
        }
    }

    fn header() -> impl Strategy<Value = RtpHeader> {
        (
            any::<(bool, u16, u32, u32, bool)>(),
            0u8..128,
            proptest::option::of(0u32..1 << 24),
            proptest::option::of(any::<u16>()),
        )
            .prop_map(
                |((marker, sequence, timestamp, ssrc, padding), payload_type, time, transport_sequence)| RtpHeader {
                    marker,
                    payload_type,
                    sequence,
                    timestamp,
                    ssrc,
                    abs_send_time: time.map(AbsSendTime),
                    transport_sequence,
                    padding,
                },
            )
    }

    proptest! {
        #[test]
        fn write_then_parse_is_identity(h in header(), a in 1u8..15, b in 1u8..15, dirt in any::<u8>()) {
            prop_assume!(a != b);
            let ids = ExtensionIds { abs_send_time: a, transport_sequence: b };
            let mut out = [dirt; RtpHeader::MAX_LEN];
            let len = h.write(&ids, &mut out);
            prop_assert_eq!(RtpHeader::parse(&out[..len], &ids), Ok((h, len)));
            for cut in 0..len {
                prop_assert_eq!(RtpHeader::parse(&out[..cut], &ids), Err(WireError::RtpTruncated));
            }
            // `rtp-types` requires a payload that ends with the padding count.
            let mut packet = out[..len].to_vec();
            packet.extend([0xAA, 1]);
            let other = rtp_types::RtpPacket::parse(&packet).unwrap();
            prop_assert_eq!(
                (other.marker_bit(), other.payload_type(), other.sequence_number(), other.timestamp(), other.ssrc()),
                (h.marker, h.payload_type, h.sequence, h.timestamp, h.ssrc)
            );
            prop_assert_eq!((other.payload_offset(), other.padding()), (len, h.padding.then_some(1)));
        }

        #[test]
        fn any_bytes_parse_or_fail(bytes in proptest::collection::vec(any::<u8>(), 0..80), x in any::<bool>()) {
            let mut bytes = bytes;
            if let Some(b) = bytes.first_mut() {
                *b = 0x80 | (*b & 0x3F) | u8::from(x) << 4;
            }
            if x && bytes.len() > 16 {
                let at = 12 + 4 * usize::from(bytes[0] & 15);
                if bytes.len() > at + 4 {
                    let profile = if bytes[1] & 1 == 0 { 0xBEDE_u16 } else { 0x1000 };
                    bytes[at..at + 2].copy_from_slice(&profile.to_be_bytes());
                    let words = (bytes.len() - at - 4) / 4;
                    bytes[at + 2..at + 4].copy_from_slice(&(words as u16).to_be_bytes());
                }
            }
            if let Ok((h, offset)) = RtpHeader::parse(&bytes, &IDS) {
                prop_assert!((12..=bytes.len()).contains(&offset));
                let mut out = [0; RtpHeader::MAX_LEN];
                let len = h.write(&IDS, &mut out);
                prop_assert_eq!(RtpHeader::parse(&out[..len], &IDS), Ok((h, len)));
            }
        }

        #[test]
        fn send_times_are_within_half_a_unit(ns in 0i64..1_000_000_000_000, later in 0i64..31_000_000_000) {
            let at = |ns| AbsSendTime::from_time(Time::from_nanos(ns));
            let error = at(ns + later).since(at(ns)).as_nanos() - later;
            prop_assert!(error.abs() <= 3815, "{} ns", error);
        }
    }
}
