//! The receiver's forward error correction: media packets and FEC packets in, lost media packets out.
//!
//! A packet is restored once all others under one mask are there, be it on the first way, by retransmission or restored
//! themselves. What is handed in is the bytes of a packet that exist and its length; what comes out is the same of the
//! lost one, so payloads may be lengths or real.

use paceline_wire::WireError;
use paceline_wire::ulpfec::{FecPacket, Protects};
use std::collections::VecDeque;

/// Packets kept, by sequence number: a key frame of half a megabyte with its FEC.
const KEPT: u64 = 1024;
/// FEC packets that wait for more of what they protect; beyond it the oldest are given up.
const WAITING_MAX: usize = 128;
/// No packet is longer.
const PACKET_MAX: usize = 2048;

#[derive(Debug)]
pub(crate) struct Repair {
    ssrc: u32,
    kept: Vec<Kept>,
    /// One past the highest sequence kept.
    end: u64,
    waiting: VecDeque<Waiting>,
    /// Emptied, to be filled again.
    spare: Vec<Waiting>,
    scratch: Vec<u8>,
}

/// A media packet as it is protected.
#[derive(Clone, Debug, Default)]
struct Kept {
    /// `None`: nothing is kept here.
    sequence: Option<u64>,
    bytes: Vec<u8>,
    len: usize,
}

/// A packet that was lost: its place in the sequence, the bytes of it that exist, its length.
#[derive(Debug)]
pub(crate) struct Restored<'a> {
    pub sequence: u64,
    pub bytes: &'a [u8],
    pub len: usize,
}

/// A FEC packet.
#[derive(Debug)]
struct Waiting {
    base: u64,
    protects: Protects,
    bytes: Vec<u8>,
    len: usize,
}

/// How many of those that a FEC packet protects are missing.
enum Missing {
    None,
    One(u64),
    More,
}

impl Repair {
    /// For the stream with this SSRC.
    pub fn new(ssrc: u32) -> Self {
        Self {
            ssrc,
            kept: vec![Kept::default(); KEPT as usize],
            end: 0,
            waiting: VecDeque::with_capacity(WAITING_MAX),
            spare: Vec::with_capacity(WAITING_MAX),
            scratch: vec![0; PACKET_MAX],
        }
    }

    /// A media packet came, first or again: its bytes in two parts, its whole length, and what makes it the packet that
    /// was protected.
    pub fn keep(&mut self, sequence: u64, head: &[u8], payload: &[u8], len: usize, rewrite: impl FnOnce(&mut [u8])) {
        let kept = &mut self.kept[(sequence % KEPT) as usize];
        if kept.sequence.is_some_and(|s| s >= sequence) {
            return;
        }
        kept.bytes.clear();
        kept.bytes.extend_from_slice(head);
        kept.bytes.extend_from_slice(payload);
        rewrite(&mut kept.bytes);
        (kept.sequence, kept.len) = (Some(sequence), len);
        self.end = self.end.max(sequence + 1);
    }

    /// A FEC packet came, with this place in the sequence, and these bytes and this whole length of its payload.
    pub fn add(&mut self, sequence: u64, payload: &[u8], len: usize) -> Result<(), WireError> {
        let protects = FecPacket::parse(payload, len)?.protects();
        // It comes behind what it protects.
        let base = sequence.saturating_sub((sequence as u16).wrapping_sub(protects.base()) as u64);
        if self.waiting.len() == WAITING_MAX {
            self.give_up(0);
        }
        let mut waiting =
            self.spare.pop().unwrap_or_else(|| Waiting { base, protects, bytes: Vec::with_capacity(64), len });
        waiting.bytes.clear();
        waiting.bytes.extend_from_slice(payload);
        (waiting.base, waiting.protects, waiting.len) = (base, protects, len);
        self.waiting.push_back(waiting);
        Ok(())
    }

    /// Restores the next packet that can be, and keeps it. Call until `None`.
    pub fn poll(&mut self) -> Option<Result<Restored<'_>, WireError>> {
        let mut index = 0;
        let (sequence, waiting) = loop {
            let waiting = self.waiting.get(index)?;
            if waiting.base + KEPT < self.end {
                self.give_up(index); // what it protects may be overwritten
                continue;
            }
            match self.missing(waiting) {
                Missing::One(sequence) => break (sequence, self.waiting.remove(index)?),
                Missing::None => self.give_up(index),
                Missing::More => index += 1,
            }
        };
        let restored = self.restore(&waiting, sequence);
        self.spare.push(waiting);
        match restored {
            Ok(len) => {
                let kept = &self.kept[(sequence % KEPT) as usize];
                Some(Ok(Restored { sequence, bytes: &kept.bytes, len }))
            }
            Err(error) => Some(Err(error)),
        }
    }

    fn give_up(&mut self, index: usize) {
        self.spare.extend(self.waiting.remove(index));
    }

    fn kept(&self, sequence: u64) -> Option<&Kept> {
        Some(&self.kept[(sequence % KEPT) as usize]).filter(|kept| kept.sequence == Some(sequence))
    }

    fn missing(&self, waiting: &Waiting) -> Missing {
        let mut missing = protected(waiting).filter(|s| self.kept(*s).is_none());
        match (missing.next(), missing.next()) {
            (None, _) => Missing::None,
            (Some(sequence), None) => Missing::One(sequence),
            (Some(_), Some(_)) => Missing::More,
        }
    }

    /// Restores a packet to where it is kept. Answers its length.
    fn restore(&mut self, waiting: &Waiting, sequence: u64) -> Result<usize, WireError> {
        let mut scratch = core::mem::take(&mut self.scratch);
        let restored = self.restore_into(waiting, sequence, &mut scratch);
        if let Ok((written, len)) = restored {
            self.keep(sequence, &scratch[..written], &[], len, |_| {});
        }
        self.scratch = scratch;
        restored.map(|(_, len)| len)
    }

    fn restore_into(&self, waiting: &Waiting, sequence: u64, out: &mut [u8]) -> Result<(usize, usize), WireError> {
        let fec = FecPacket::parse(&waiting.bytes, waiting.len)?;
        let mut recovery = fec.recovery(out)?;
        for other in protected(waiting).filter(|s| *s != sequence) {
            let kept = &self.kept[(other % KEPT) as usize];
            recovery.add(&kept.bytes, kept.len)?;
        }
        recovery.finish(sequence as u16, self.ssrc)
    }
}

fn protected(waiting: &Waiting) -> impl Iterator<Item = u64> + use<> {
    let base = waiting.base;
    waiting.protects.offsets().map(move |offset| base + offset as u64)
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
        let mut protects = Protects::from_first(sequences[0] as u16);
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

    fn came(repair: &mut Repair, sequence: u64) -> Vec<u64> {
        let packet = packet(sequence, &media(sequence));
        repair.keep(sequence, &packet, &[], packet.len(), |_| {});
        restored(repair)
    }

    fn add(repair: &mut Repair, place: u64, sequences: &[u64]) -> Vec<u64> {
        let fec = fec(sequences);
        repair.add(place, &fec, fec.len()).unwrap();
        restored(repair)
    }

    /// What is restored now, each checked byte for byte.
    fn restored(repair: &mut Repair) -> Vec<u64> {
        let mut out = Vec::new();
        while let Some(one) = repair.poll() {
            let Restored { sequence, bytes, len } = one.unwrap();
            assert_eq!((bytes, len), (&packet(sequence, &media(sequence))[..], bytes.len()));
            out.push(sequence);
        }
        out
    }

    #[test]
    fn one_loss_under_a_mask_is_restored_and_two_are_not() {
        let mut repair = Repair::new(SSRC);
        assert_eq!(came(&mut repair, 65_535), NONE);
        assert_eq!(came(&mut repair, 65_537), NONE);
        assert_eq!(add(&mut repair, 65_539, &[65_535, 65_536, 65_537]), [65_536], "across the wrap");
        assert_eq!(add(&mut repair, 65_540, &[65_535, 65_536]), NONE, "both are there");
        for s in [65_541, 65_542] {
            came(&mut repair, s);
        }
        assert_eq!(add(&mut repair, 65_545, &[65_541, 65_543, 65_544]), NONE, "two are missing");
        assert_eq!(came(&mut repair, 65_544), [65_543], "one of them came again");
        assert!(repair.waiting.is_empty());
    }

    #[test]
    fn what_is_restored_helps_to_restore_more() {
        let mut repair = Repair::new(SSRC);
        came(&mut repair, 100);
        assert_eq!(add(&mut repair, 105, &[101, 102]), NONE);
        assert_eq!(add(&mut repair, 106, &[102, 103]), NONE);
        assert_eq!(add(&mut repair, 107, &[100, 101]), [101, 102, 103]);
    }

    #[test]
    fn fec_waits_as_long_as_what_it_protects_is_kept() {
        let mut repair = Repair::new(SSRC);
        came(&mut repair, 10);
        assert_eq!(add(&mut repair, 13, &[10, 11, 12]), NONE);
        came(&mut repair, 10 + KEPT - 1);
        assert_eq!(repair.waiting.len(), 1);
        assert_eq!(came(&mut repair, 10 + KEPT), NONE, "10 is overwritten");
        assert!(repair.waiting.is_empty());
        assert_eq!(came(&mut repair, 12), NONE, "too late");
        for place in 0..2 * WAITING_MAX as u64 {
            add(&mut repair, 5000, &[4000 + 2 * place, 4001 + 2 * place]);
        }
        assert_eq!(repair.waiting.len(), WAITING_MAX);
    }

    #[test]
    fn what_contradicts_itself_is_refused_once() {
        let mut repair = Repair::new(SSRC);
        let mut wrong = fec(&[20, 21]);
        wrong[8] ^= 0x40; // length recovery
        came(&mut repair, 20);
        repair.add(22, &wrong, wrong.len()).unwrap();
        assert_eq!(repair.poll().map(|r| r.err()), Some(Some(WireError::FecRecovery)));
        assert!(repair.poll().is_none());
        assert_eq!(repair.add(22, &wrong[..5], 5), Err(WireError::FecTruncated));
    }
}
