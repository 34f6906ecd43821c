// SPDX-License-Identifier: MIT OR Apache-2.0
//! Forward error correction by parity, ULPFEC (RFC 5109). A FEC packet is the exclusive or of the media packets in its mask,
//! so that any one of them can be recovered from the others.
//!
//! ```text
//!  E L P X CC   M PT rec   SN base          TS rec           length rec       protection len   mask
//! |. . . . ....|. .......|................|................|................|................|16 or 48 bits| parity
//! ```
//!
//! There is one protection level. A packet is protected up to the protection length, which is the length of the longest
//! packet. P, X, CC, M, PT, timestamp and length are the exclusive or of those of the packets (sections 7.3 and 8.1). The
//! parity is the exclusive or of the bytes after the fixed headers (section 8.2). Higher levels are ignored, and a packet that
//! level 0 protects only in part is not recovered.
//!
//! Functions take the length of a packet in addition to its bytes. Missing bytes count as zeros: in the simulator a payload
//! is only a length. On a real path all bytes exist.

use crate::bytes::{be16, put};
use crate::{WireError, WriteError};

/// The maximum span of a mask in packets.
pub const SPAN: u16 = 48;
/// The maximum length of the headers before the parity.
pub const MAX_HEADER_LEN: usize = FEC_HEADER_LEN + 8;

const FEC_HEADER_LEN: usize = 10;
const RTP_FIXED_LEN: usize = 12;
const LONG_MASK: u8 = 0x40; // L
const RECOVERED: u8 = 0x3F; // P, X and CC of the first octet
const SHORT_SPAN: u32 = 16;

/// The packets that a FEC packet protects: a base sequence number and a bit for each packet from there on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FecMask {
    base: u16,
    /// Bit `i` stands for `base + i`; bits from [`SPAN`] on are 0.
    mask: u64,
}

impl FecMask {
    /// Returns the mask of this packet. Packets that are added later must be after it.
    pub fn from_first(base: u16) -> Self {
        Self { base, mask: 1 }
    }

    /// Adds a packet. Returns false if it is outside the span.
    pub fn add(&mut self, sequence: u16) -> bool {
        let index = sequence.wrapping_sub(self.base);
        if index < SPAN {
            self.mask |= 1 << index;
        }
        index < SPAN
    }

    /// Returns the base sequence number.
    pub fn base(&self) -> u16 {
        self.base
    }

    /// Returns the offset of each packet from the base, in order.
    pub fn offsets(&self) -> impl Iterator<Item = u16> + use<> {
        let mask = self.mask;
        (0..SPAN).filter(move |i| mask >> i & 1 == 1)
    }

    /// Returns the bytes of FEC header and level header with this mask.
    pub fn header_len(&self) -> usize {
        FEC_HEADER_LEN + if self.is_long() { 8 } else { 4 }
    }

    fn is_long(&self) -> bool {
        self.mask >> SHORT_SPAN != 0
    }
}

/// Writes a FEC packet, which is the payload of a RED block.
#[derive(Debug)]
pub struct FecWriter<'a> {
    protects: FecMask,
    header: &'a mut [u8],
    parity: Parity<'a>,
}

impl<'a> FecWriter<'a> {
    /// Begins a FEC packet in `out`. The caller adds each protected packet.
    pub fn new(protects: FecMask, out: &'a mut [u8]) -> Result<Self, WriteError> {
        if out.len() < protects.header_len() {
            return Err(WriteError::BufferFull);
        }
        let (header, body) = out.split_at_mut(protects.header_len());
        Ok(Self { protects, header, parity: Parity::new(body) })
    }

    /// Adds a protected packet with its RTP header. `len` is its length with missing bytes.
    pub fn add(&mut self, packet: &[u8], len: usize) -> Result<(), WriteError> {
        self.parity.add(packet, len).map_err(|_| WriteError::BufferFull)
    }

    /// Writes the headers. Returns the number of bytes written, and the length of the FEC packet with missing bytes.
    pub fn finish(self) -> (usize, usize) {
        let Self { protects, header, parity } = self;
        let mask = protects.mask.reverse_bits();
        header[..FEC_HEADER_LEN].copy_from_slice(&parity.fields);
        header[0] = parity.fields[0] & RECOVERED | if protects.is_long() { LONG_MASK } else { 0 };
        put(header, 2, protects.base.to_be_bytes());
        put(header, 10, (parity.longest as u16).to_be_bytes());
        if protects.is_long() {
            header[12..].copy_from_slice(&mask.to_be_bytes()[..6]);
        } else {
            header[12..].copy_from_slice(&mask.to_be_bytes()[..2]);
        }
        (protects.header_len() + parity.filled, protects.header_len() + parity.longest)
    }
}

/// A parsed FEC packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FecPacket<'a> {
    protects: FecMask,
    protection_len: usize,
    fields: [u8; FEC_HEADER_LEN],
    parity: &'a [u8],
}

impl<'a> FecPacket<'a> {
    /// Parses a FEC packet. `len` is its length with missing bytes.
    pub fn parse(payload: &'a [u8], len: usize) -> Result<Self, WireError> {
        let (fields, level) = payload.split_first_chunk::<FEC_HEADER_LEN>().ok_or(WireError::FecTruncated)?;
        let mask_len = if fields[0] & LONG_MASK != 0 { 6 } else { 2 };
        let (level, parity) = level.split_at_checked(2 + mask_len).ok_or(WireError::FecTruncated)?;
        let mut mask = [0; 8];
        mask[..mask_len].copy_from_slice(&level[2..]);
        let protects = FecMask { base: be16(fields, 2), mask: u64::from_be_bytes(mask).reverse_bits() };
        let protection_len = be16(level, 0) as usize;
        if protects.mask == 0 {
            return Err(WireError::FecEmpty);
        }
        if FEC_HEADER_LEN + 2 + mask_len + protection_len > len {
            return Err(WireError::FecTruncated);
        }
        let parity = &parity[..parity.len().min(protection_len)];
        Ok(Self { protects, protection_len, fields: *fields, parity })
    }

    /// Returns the protected packets.
    pub fn protects(&self) -> FecMask {
        self.protects
    }

    /// Begins to recover a packet into `out`. The caller adds all other protected packets.
    pub fn recovery<'b>(&self, out: &'b mut [u8]) -> Result<FecRecovery<'b>, WireError> {
        let (header, body) = out.split_at_mut_checked(RTP_FIXED_LEN).ok_or(WireError::FecRecovery)?;
        let mut parity = Parity::new(body);
        parity.fields = self.fields;
        parity.mix(self.parity)?;
        Ok(FecRecovery { header, parity, protection_len: self.protection_len })
    }
}

/// Recovers one packet (RFC 5109, section 9).
#[derive(Debug)]
pub struct FecRecovery<'a> {
    header: &'a mut [u8],
    parity: Parity<'a>,
    protection_len: usize,
}

impl FecRecovery<'_> {
    /// Adds another protected packet with its RTP header. `len` is its length with missing bytes.
    pub fn add(&mut self, packet: &[u8], len: usize) -> Result<(), WireError> {
        self.parity.add(packet, len)
    }

    /// Writes the header. Returns the number of bytes written, and the length of the packet with missing bytes.
    ///
    /// Returns an error if the added packets cannot be those that the FEC packet protects.
    pub fn finish(self, sequence: u16, ssrc: u32) -> Result<(usize, usize), WireError> {
        let Self { header, parity, protection_len } = self;
        let body = be16(&parity.fields, 8) as usize;
        if body > protection_len {
            return Err(WireError::FecRecovery);
        }
        header[..8].copy_from_slice(&parity.fields[..8]);
        header[0] = 0x80 | parity.fields[0] & RECOVERED;
        put(header, 2, sequence.to_be_bytes());
        put(header, 8, ssrc.to_be_bytes());
        Ok((RTP_FIXED_LEN + body.min(parity.filled), RTP_FIXED_LEN + body))
    }
}

/// The exclusive or of packets: of the first 64 bits of their headers and their length after the fixed header (section 8.1),
/// and of the bytes after the fixed header (section 8.2).
#[derive(Debug)]
struct Parity<'a> {
    fields: [u8; FEC_HEADER_LEN],
    body: &'a mut [u8],
    /// The bytes of `body` that a packet has reached.
    filled: usize,
    /// The length of the longest packet after its fixed header.
    longest: usize,
}

impl<'a> Parity<'a> {
    fn new(body: &'a mut [u8]) -> Self {
        body.fill(0);
        Self { fields: [0; FEC_HEADER_LEN], body, filled: 0, longest: 0 }
    }

    fn add(&mut self, packet: &[u8], len: usize) -> Result<(), WireError> {
        let (header, body) = packet.split_first_chunk::<RTP_FIXED_LEN>().ok_or(WireError::RtpTruncated)?;
        let body_len = u16::try_from(len.max(packet.len()) - RTP_FIXED_LEN).map_err(|_| WireError::FecRecovery)?;
        self.mix(body)?;
        self.fields.iter_mut().zip(&header[..8]).for_each(|(to, from)| *to ^= from);
        self.fields[8..].iter_mut().zip(body_len.to_be_bytes()).for_each(|(to, from)| *to ^= from);
        self.longest = self.longest.max(body_len as usize);
        Ok(())
    }

    fn mix(&mut self, bytes: &[u8]) -> Result<(), WireError> {
        let body = self.body.get_mut(..bytes.len()).ok_or(WireError::FecRecovery)?;
        body.iter_mut().zip(bytes).for_each(|(to, from)| *to ^= from);
        self.filled = self.filled.max(bytes.len());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// RTP packets of one stream from their payloads, with consecutive numbers.
    fn packets(first: u16, payloads: &[(u8, u32, Vec<u8>)]) -> Vec<Vec<u8>> {
        let one = |(n, (marker_and_type, timestamp, payload)): (usize, &(u8, u32, Vec<u8>))| {
            let mut packet = vec![0x80, *marker_and_type];
            packet.extend(first.wrapping_add(n as u16).to_be_bytes());
            packet.extend(timestamp.to_be_bytes());
            packet.extend(7u32.to_be_bytes());
            packet.extend(payload);
            packet
        };
        payloads.iter().enumerate().map(one).collect()
    }

    fn fec_of(protects: FecMask, packets: &[&[u8]]) -> Vec<u8> {
        let mut out = vec![0xEE; 2000];
        let mut writer = FecWriter::new(protects, &mut out).unwrap();
        packets.iter().for_each(|p| writer.add(p, p.len()).unwrap());
        let (written, len) = writer.finish();
        assert_eq!(written, len, "all bytes are there");
        out.truncate(len);
        out
    }

    fn recover(fec: &[u8], others: &[&[u8]], sequence: u16) -> Result<Vec<u8>, WireError> {
        let mut out = vec![0xEE; 2000];
        let fec = FecPacket::parse(fec, fec.len())?;
        let mut recovery = fec.recovery(&mut out)?;
        others.iter().try_for_each(|p| recovery.add(p, p.len()))?;
        let (written, len) = recovery.finish(sequence, 7)?;
        assert_eq!(written, len);
        out.truncate(len);
        Ok(out)
    }

    /// RFC 5109, section 10.1: packets A (SN 8, PT 11, TS 3, 200 bytes), B (9, PT 18, TS 5, 140), C (10, PT 11, TS 7,
    /// 100) and D (11, PT 18, TS 9, 340, M set in A and C), all under one mask.
    #[test]
    fn matches_the_example_of_rfc_5109() {
        let of = |marker: u8, payload_type: u8, timestamp: u32, len: usize| {
            (marker << 7 | payload_type, timestamp, vec![timestamp as u8; len])
        };
        let media = packets(8, &[of(1, 11, 3, 200), of(0, 18, 5, 140), of(1, 11, 7, 100), of(0, 18, 9, 340)]);
        let media: Vec<&[u8]> = media.iter().map(Vec::as_slice).collect();
        let mut protects = FecMask::from_first(8);
        assert!((9..=11).all(|s| protects.add(s)));
        let fec = fec_of(protects, &media);
        assert_eq!(fec.len(), 14 + 340);
        // "The FEC header": E = L = P = X = CC = M = 0, PT recovery 0, SN base 8, TS recovery 8, length recovery 372.
        assert_eq!(fec[..10], [0, 0, 0, 8, 0, 0, 0, 8, 0x01, 0x74]);
        // "The FEC level header": protection length 340, mask 1111 0000 0000 0000.
        assert_eq!(fec[10..14], [0x01, 0x54, 0xF0, 0x00]);
        assert_eq!((fec[14], fec[14 + 100], fec[14 + 150], fec[14 + 339]), (3 ^ 5 ^ 7 ^ 9, 3 ^ 5 ^ 9, 3 ^ 9, 9));
        assert_eq!(FecPacket::parse(&fec, fec.len()).unwrap().protects(), protects);
        for lost in 0..4 {
            let others: Vec<&[u8]> = (0..4).filter(|n| *n != lost).map(|n| media[n]).collect();
            assert_eq!(recover(&fec, &others, 8 + lost as u16).unwrap(), media[lost]);
        }
    }

    #[test]
    fn masks_reach_48_packets_across_the_wrap() {
        let mut protects = FecMask::from_first(65_530);
        assert!(protects.add(65_530u16.wrapping_add(15)));
        assert_eq!(protects.header_len(), 14);
        assert!(protects.add(65_530u16.wrapping_add(47)) && !protects.add(65_530u16.wrapping_add(48)));
        assert!(!protects.add(65_529), "below the base");
        assert_eq!((protects.header_len(), protects.offsets().collect::<Vec<_>>()), (18, vec![0, 15, 47]));
        let media = packets(65_530, &[(96, 1, vec![1, 2, 3])]);
        let fec = fec_of(protects, &[&media[0]]);
        assert_eq!((fec[0], &fec[12..18]), (LONG_MASK, &[0x80, 0x01, 0, 0, 0, 0x01][..]));
        assert_eq!(FecPacket::parse(&fec, fec.len()).unwrap().protects(), protects);
    }

    #[test]
    fn truncated_and_inconsistent_packets_are_errors() {
        let media = packets(1, &[(96, 1, vec![1; 5]), (96, 1, vec![2; 9])]);
        let mut protects = FecMask::from_first(1);
        protects.add(2);
        let fec = fec_of(protects, &[&media[0], &media[1]]);
        for cut in 0..fec.len() {
            assert_eq!(FecPacket::parse(&fec[..cut], cut), Err(WireError::FecTruncated), "{cut}");
        }
        let mut empty = fec.clone();
        empty[12] = 0;
        assert_eq!(FecPacket::parse(&empty, empty.len()), Err(WireError::FecEmpty));
        let stranger = packets(1, &[(96, 1, vec![1; 300])]);
        assert_eq!(
            recover(&fec, &[&stranger[0]], 2),
            Err(WireError::FecRecovery),
            "300 ^ 5 ^ 9 bytes were not protected"
        );
        let parsed = FecPacket::parse(&fec, fec.len()).unwrap();
        assert_eq!(parsed.recovery(&mut [0; 20]).unwrap_err(), WireError::FecRecovery, "no room for 9 bytes");
        assert!(FecWriter::new(protects, &mut [0; 13]).is_err());
    }

    /// In the simulator only the first bytes of a packet exist.
    #[test]
    fn missing_bytes_are_zeros() {
        let media = packets(1, &[(96, 1, vec![1; 5]), (0xE0, 2, vec![2; 7])]);
        let mut out = [0; 64];
        let mut protects = FecMask::from_first(1);
        protects.add(2);
        let mut writer = FecWriter::new(protects, &mut out).unwrap();
        writer.add(&media[0], 1000).unwrap();
        writer.add(&media[1], 1100).unwrap();
        let (written, len) = writer.finish();
        assert_eq!((written, len), (14 + 7, 14 + 1088));
        let fec = FecPacket::parse(&out[..written], len).unwrap();
        let mut restored = [0; 64];
        let mut recovery = fec.recovery(&mut restored).unwrap();
        recovery.add(&media[0], 1000).unwrap();
        let (written, len) = recovery.finish(2, 7).unwrap();
        assert_eq!((&restored[..written], len), (&media[1][..], 1100));
    }

    proptest! {
        /// Any packets under any mask.
        #[test]
        fn any_single_loss_is_recovered(
            first in any::<u16>(),
            payloads in vec((any::<u8>(), any::<u32>(), vec(any::<u8>(), 0..1200)), 1..48),
            chosen in any::<u64>(),
            lost in any::<prop::sample::Index>(),
        ) {
            let media = packets(first, &payloads);
            let chosen: Vec<usize> = (0..media.len()).filter(|n| *n == 0 || chosen >> n & 1 == 1).collect();
            let mut protects = FecMask::from_first(first);
            prop_assert!(chosen.iter().all(|n| protects.add(first.wrapping_add(*n as u16))));
            prop_assert!(protects.offsets().eq(chosen.iter().map(|n| *n as u16)));
            let under: Vec<&[u8]> = chosen.iter().map(|n| &media[*n][..]).collect();
            let fec = fec_of(protects, &under);
            prop_assert_eq!(FecPacket::parse(&fec, fec.len()).unwrap().protects(), protects);
            let lost = lost.index(chosen.len());
            let others: Vec<&[u8]> = (0..under.len()).filter(|n| *n != lost).map(|n| under[n]).collect();
            let restored = recover(&fec, &others, first.wrapping_add(chosen[lost] as u16));
            prop_assert_eq!(restored.as_deref(), Ok(under[lost]));
        }

        #[test]
        fn any_bytes_parse_or_fail(
            bytes in vec(any::<u8>(), 0..40),
            more in 0usize..70_000,
            other in vec(any::<u8>(), 0..40),
        ) {
            if let Ok(fec) = FecPacket::parse(&bytes, bytes.len() + more) {
                prop_assert!(fec.protects().offsets().next().is_some());
                let mut out = [0; 64];
                if let Ok(mut recovery) = fec.recovery(&mut out)
                    && recovery.add(&other, other.len() + more).is_ok()
                    && let Ok((written, len)) = recovery.finish(1, 2)
                {
                    prop_assert!((RTP_FIXED_LEN..=len).contains(&written) && written <= 64);
                    prop_assert_eq!(out[0] >> 6, 2);
                }
            }
        }
    }
}
