// SPDX-License-Identifier: MIT OR Apache-2.0
//! ULPFEC decoder (RFC 5109): media packets and FEC packets in, recovered media packets out.
//!
//! A packet is recovered once all others under one mask are present, whether received, retransmitted or recovered
//! themselves. Packets are passed in and out as their real bytes and their whole length, so that payload bytes may be
//! real or only counted.

use paceline_wire::WireError;
use paceline_wire::ulpfec::{FecMask, FecPacket};
use std::collections::VecDeque;

/// Number of stored packets: a key frame of half a megabyte with its FEC.
const CAPACITY: u64 = 1024;
/// The most pending FEC packets; beyond it the oldest is discarded.
const PENDING_MAX: usize = 128;
const PACKET_MAX: usize = 2048;

#[derive(Debug)]
pub(crate) struct FecDecoder {
    ssrc: u32,
    /// Media packets, by sequence number modulo [`CAPACITY`].
    stored: Vec<StoredPacket>,
    /// One past the highest stored sequence number.
    end: u64,
    /// FEC packets with more than one missing packet.
    pending: VecDeque<PendingFec>,
    /// Free entries, kept for their memory.
    spare: Vec<PendingFec>,
    scratch: Vec<u8>,
}

/// A media packet in the form that FEC protects.
#[derive(Clone, Debug, Default)]
struct StoredPacket {
    /// `None` if the entry is empty.
    sequence: Option<u64>,
    bytes: Vec<u8>,
    len: usize,
}

#[derive(Debug)]
pub(crate) struct RecoveredPacket<'a> {
    pub sequence: u64,
    pub bytes: &'a [u8],
    pub len: usize,
}

/// A FEC packet that waits for more of the packets that it protects.
#[derive(Debug)]
struct PendingFec {
    base: u64,
    protects: FecMask,
    bytes: Vec<u8>,
    len: usize,
}

/// The packets under a mask that are missing.
enum Missing {
    None,
    One(u64),
    More,
}

impl FecDecoder {
    /// Creates a decoder for the stream with this SSRC.
    pub fn new(ssrc: u32) -> Self {
        Self {
            ssrc,
            stored: vec![StoredPacket::default(); CAPACITY as usize],
            end: 0,
            pending: VecDeque::with_capacity(PENDING_MAX),
            spare: Vec::with_capacity(PENDING_MAX),
            scratch: vec![0; PACKET_MAX],
        }
    }

    /// Adds a received media packet, given as its real bytes in two parts and its whole length. `rewrite` restores the
    /// bytes of the packet that FEC protects. A duplicate is ignored.
    pub fn add_media(
        &mut self,
        sequence: u64,
        head: &[u8],
        payload: &[u8],
        len: usize,
        rewrite: impl FnOnce(&mut [u8]),
    ) {
        let stored = &mut self.stored[(sequence % CAPACITY) as usize];
        if stored.sequence.is_some_and(|s| s >= sequence) {
            return;
        }
        stored.bytes.clear();
        stored.bytes.extend_from_slice(head);
        stored.bytes.extend_from_slice(payload);
        rewrite(&mut stored.bytes);
        (stored.sequence, stored.len) = (Some(sequence), len);
        self.end = self.end.max(sequence + 1);
    }

    /// Adds a FEC packet, given as its sequence number and the real bytes and the whole length of its payload.
    pub fn add_fec(&mut self, sequence: u64, payload: &[u8], len: usize) -> Result<(), WireError> {
        let protects = FecPacket::parse(payload, len)?.protects();
        // A FEC packet follows the packets that it protects.
        let base = sequence.saturating_sub((sequence as u16).wrapping_sub(protects.base()) as u64);
        if self.pending.len() == PENDING_MAX {
            self.discard(0);
        }
        let mut pending =
            self.spare.pop().unwrap_or_else(|| PendingFec { base, protects, bytes: Vec::with_capacity(64), len });
        pending.bytes.clear();
        pending.bytes.extend_from_slice(payload);
        (pending.base, pending.protects, pending.len) = (base, protects, len);
        self.pending.push_back(pending);
        Ok(())
    }

    /// Recovers the next packet and stores it. Call until it returns `None`.
    pub fn poll(&mut self) -> Option<Result<RecoveredPacket<'_>, WireError>> {
        let mut index = 0;
        let (sequence, pending) = loop {
            let pending = self.pending.get(index)?;
            if pending.base + CAPACITY < self.end {
                self.discard(index); // the packets it protects may be overwritten
                continue;
            }
            match self.missing(pending) {
                Missing::One(sequence) => break (sequence, self.pending.remove(index)?),
                Missing::None => self.discard(index),
                Missing::More => index += 1,
            }
        };
        let recovered = self.recover(&pending, sequence);
        self.spare.push(pending);
        match recovered {
            Ok(len) => {
                let stored = &self.stored[(sequence % CAPACITY) as usize];
                Some(Ok(RecoveredPacket { sequence, bytes: &stored.bytes, len }))
            }
            Err(error) => Some(Err(error)),
        }
    }

    fn discard(&mut self, index: usize) {
        self.spare.extend(self.pending.remove(index));
    }

    fn stored(&self, sequence: u64) -> Option<&StoredPacket> {
        Some(&self.stored[(sequence % CAPACITY) as usize]).filter(|stored| stored.sequence == Some(sequence))
    }

    fn missing(&self, pending: &PendingFec) -> Missing {
        let mut missing = protected(pending).filter(|s| self.stored(*s).is_none());
        match (missing.next(), missing.next()) {
            (None, _) => Missing::None,
            (Some(sequence), None) => Missing::One(sequence),
            (Some(_), Some(_)) => Missing::More,
        }
    }

    /// Recovers a packet and stores it. Returns its whole length.
    fn recover(&mut self, pending: &PendingFec, sequence: u64) -> Result<usize, WireError> {
        let mut scratch = core::mem::take(&mut self.scratch);
        let recovered = self.recover_into(pending, sequence, &mut scratch);
        if let Ok((written, len)) = recovered {
            self.add_media(sequence, &scratch[..written], &[], len, |_| {});
        }
        self.scratch = scratch;
        recovered.map(|(_, len)| len)
    }

    fn recover_into(&self, pending: &PendingFec, sequence: u64, out: &mut [u8]) -> Result<(usize, usize), WireError> {
        let fec = FecPacket::parse(&pending.bytes, pending.len)?;
        let mut recovery = fec.recovery(out)?;
        for other in protected(pending).filter(|s| *s != sequence) {
            let stored = &self.stored[(other % CAPACITY) as usize];
            recovery.add(&stored.bytes, stored.len)?;
        }
        recovery.finish(sequence as u16, self.ssrc)
    }
}

fn protected(pending: &PendingFec) -> impl Iterator<Item = u64> + use<> {
    let base = pending.base;
    pending.protects.offsets().map(move |offset| base + offset as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_wire::ulpfec::FecWriter;

    const SSRC: u32 = 7;
    const NONE: [u64; 0] = [];

    fn packet(sequence: u64, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x80, 118];
        packet.extend((sequence as u16).to_be_bytes());
        packet.extend([0, 0, 0, sequence as u8]);
        packet.extend(SSRC.to_be_bytes());
        packet.extend(payload);
        packet
    }

    fn fec(sequences: &[u64]) -> Vec<u8> {
        let mut protects = FecMask::from_first(sequences[0] as u16);
        sequences.iter().for_each(|s| assert!(protects.add(*s as u16)));
        let mut out = vec![0; 100];
        let mut writer = FecWriter::new(protects, &mut out).unwrap();
        for s in sequences {
            let packet = packet(*s, &media(*s));
            writer.add(&packet, packet.len()).unwrap();
        }
        let (written, _) = writer.finish();
        out.truncate(written);
        out
    }

    fn media(sequence: u64) -> Vec<u8> {
        vec![sequence as u8; 3 + sequence as usize % 5]
    }

    fn receive(decoder: &mut FecDecoder, sequence: u64) -> Vec<u64> {
        let packet = packet(sequence, &media(sequence));
        decoder.add_media(sequence, &packet, &[], packet.len(), |_| {});
        recovered(decoder)
    }

    fn add(decoder: &mut FecDecoder, place: u64, sequences: &[u64]) -> Vec<u64> {
        let fec = fec(sequences);
        decoder.add_fec(place, &fec, fec.len()).unwrap();
        recovered(decoder)
    }

    /// The packets that are recovered now, each compared byte by byte.
    fn recovered(decoder: &mut FecDecoder) -> Vec<u64> {
        let mut out = Vec::new();
        while let Some(one) = decoder.poll() {
            let RecoveredPacket { sequence, bytes, len } = one.unwrap();
            assert_eq!((bytes, len), (&packet(sequence, &media(sequence))[..], bytes.len()));
            out.push(sequence);
        }
        out
    }

    #[test]
    fn one_loss_under_a_mask_is_recovered_and_two_are_not() {
        let mut decoder = FecDecoder::new(SSRC);
        assert_eq!(receive(&mut decoder, 65_535), NONE);
        assert_eq!(receive(&mut decoder, 65_537), NONE);
        assert_eq!(add(&mut decoder, 65_539, &[65_535, 65_536, 65_537]), [65_536], "across the wrap");
        assert_eq!(add(&mut decoder, 65_540, &[65_535, 65_536]), NONE, "both are present");
        for s in [65_541, 65_542] {
            receive(&mut decoder, s);
        }
        assert_eq!(add(&mut decoder, 65_545, &[65_541, 65_543, 65_544]), NONE, "two are missing");
        assert_eq!(receive(&mut decoder, 65_544), [65_543], "one was retransmitted");
        assert!(decoder.pending.is_empty());
    }

    #[test]
    fn recovered_packets_help_to_recover_others() {
        let mut decoder = FecDecoder::new(SSRC);
        receive(&mut decoder, 100);
        assert_eq!(add(&mut decoder, 105, &[101, 102]), NONE);
        assert_eq!(add(&mut decoder, 106, &[102, 103]), NONE);
        assert_eq!(add(&mut decoder, 107, &[100, 101]), [101, 102, 103]);
    }

    #[test]
    fn fec_is_pending_while_its_packets_are_stored() {
        let mut decoder = FecDecoder::new(SSRC);
        receive(&mut decoder, 10);
        assert_eq!(add(&mut decoder, 13, &[10, 11, 12]), NONE);
        receive(&mut decoder, 10 + CAPACITY - 1);
        assert_eq!(decoder.pending.len(), 1);
        assert_eq!(receive(&mut decoder, 10 + CAPACITY), NONE, "10 is overwritten");
        assert!(decoder.pending.is_empty());
        assert_eq!(receive(&mut decoder, 12), NONE, "too late");
        for place in 0..2 * PENDING_MAX as u64 {
            add(&mut decoder, 5000, &[4000 + 2 * place, 4001 + 2 * place]);
        }
        assert_eq!(decoder.pending.len(), PENDING_MAX);
    }

    #[test]
    fn inconsistent_fec_is_rejected_once() {
        let mut decoder = FecDecoder::new(SSRC);
        let mut wrong = fec(&[20, 21]);
        wrong[8] ^= 0x40; // length recovery
        receive(&mut decoder, 20);
        decoder.add_fec(22, &wrong, wrong.len()).unwrap();
        assert_eq!(decoder.poll().map(|r| r.err()), Some(Some(WireError::FecRecovery)));
        assert!(decoder.poll().is_none());
        assert_eq!(decoder.add_fec(22, &wrong[..5], 5), Err(WireError::FecTruncated));
    }
}
