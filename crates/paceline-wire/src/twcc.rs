// SPDX-License-Identifier: MIT OR Apache-2.0
//! Transport-wide feedback (draft-holmer-rmcat-transport-wide-cc-extensions-01): a status for each packet of the transport
//! from a base sequence number on, and a time delta for each packet that arrived.
//!
//! Times are in ticks of 250 us on the receiver's clock. The reference time is a signed 24-bit multiple of 256 ticks (64
//! ms). The first delta is relative to it, each other delta to the arrival before. Ticks are therefore known modulo 2^32
//! (12.4 days); [`unwrap_ticks`] extends them near a known time.
//!
//! Statuses are encoded in 16-bit chunks, as in libwebrtc and pion. The writer keeps symbols while one chunk can hold all
//! of them: a run of equal symbols, 14 one-bit symbols (no large delta), or 7 two-bit symbols. Then it writes the run, the
//! 14 symbols, or the first 7.
//!
//! There is one difference: arrivals are whole ticks here. libwebrtc first rounds to 64 ms and then to ticks, so just
//! before a multiple of 64 ms its reference time may be one lower and its first delta 64 ms.
//!
//! The reader is as strict as libwebrtc (a status count of zero or the reserved symbol is an error). It is stricter in one
//! point: missing deltas are an error, because version 1 of the extension has no reports without times.

use crate::bytes::{be16, be24, put};
use crate::compound_writer::{CompoundWriter, PADDED, TRANSPORT_FEEDBACK};
use crate::{WireError, WriteError};
use paceline_units::TimeDelta;

/// The unit of arrival times: 250 us.
pub const TWCC_TICK: TimeDelta = TimeDelta::from_micros(250);

const TICKS_PER_REFERENCE: i64 = 256;
const FIXED_LEN: usize = 8;
const MAX_STATUSES: usize = u16::MAX as usize;

/// A report on consecutive packets of a transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransportFeedback<'a> {
    /// The SSRC of the reporting receiver.
    pub sender_ssrc: u32,
    /// The SSRC of any stream of the transport.
    pub media_ssrc: u32,
    /// The transport-wide sequence number of the first status. After reordering it may be lower than before.
    pub base_sequence: u16,
    /// The number of packets with a status.
    pub status_count: u16,
    /// The time on the receiver's clock in units of 64 ms, a signed 24-bit number.
    pub reference_time: i32,
    /// A counter of reports, modulo 256. A gap means that feedback was lost.
    pub feedback_count: u8,
    chunks: &'a [u8],
    deltas: &'a [u8],
}

/// An iterator over the statuses of a report: the sequence number, and the arrival in ticks of 250 us or `None` if not
/// received.
#[derive(Clone, Copy, Debug)]
pub struct PacketStatuses<'a> {
    chunks: &'a [u8],
    deltas: &'a [u8],
    chunk: Chunk,
    sequence: u16,
    left: u16,
    ticks: i64,
}

/// Returns the number that equals `ticks` modulo 2^32 and is nearest to `previous`.
pub const fn unwrap_ticks(previous: i64, ticks: i64) -> i64 {
    previous.wrapping_add(ticks.wrapping_sub(previous) as i32 as i64)
}

impl<'a> TransportFeedback<'a> {
    pub(crate) const FORMAT: u8 = 15;

    /// Returns the status of each packet, in sequence order.
    pub fn packets(&self) -> PacketStatuses<'a> {
        PacketStatuses {
            chunks: self.chunks,
            deltas: self.deltas,
            chunk: Chunk::default(),
            sequence: self.base_sequence,
            left: self.status_count,
            ticks: i64::from(self.reference_time) * TICKS_PER_REFERENCE,
        }
    }

    pub(crate) fn read(sender_ssrc: u32, media_ssrc: u32, fci: &'a [u8]) -> Result<Self, WireError> {
        let (fixed, chunks) = fci.split_first_chunk::<FIXED_LEN>().ok_or(WireError::TwccTruncated)?;
        let status_count = be16(fixed, 2);
        if status_count == 0 {
            return Err(WireError::TwccEmpty);
        }
        let (mut left, mut rest, mut delta_len) = (status_count, chunks, 0);
        while left > 0 {
            let (chunk, after) = rest.split_first_chunk::<2>().ok_or(WireError::TwccChunksMissing)?;
            let chunk = Chunk::read(u16::from_be_bytes(*chunk)).first(left);
            delta_len += chunk.delta_len().ok_or(WireError::TwccReservedSymbol)?;
            left -= chunk.len;
            rest = after;
        }
        Ok(Self {
            sender_ssrc,
            media_ssrc,
            base_sequence: be16(fixed, 0),
            status_count,
            reference_time: (be24(fixed, 4) << 8) as i32 >> 8,
            feedback_count: fixed[7],
            chunks,
            deltas: rest.get(..delta_len).ok_or(WireError::TwccDeltasMissing)?,
        })
    }
}

impl Iterator for PacketStatuses<'_> {
    type Item = (u16, Option<i64>);

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        while self.chunk.len == 0 {
            let (chunk, rest) = self.chunks.split_first_chunk::<2>()?;
            self.chunk = Chunk::read(u16::from_be_bytes(*chunk));
            self.chunks = rest;
        }
        let delta = match self.chunk.next_symbol() {
            SMALL => {
                let (&delta, rest) = self.deltas.split_first()?;
                self.deltas = rest;
                Some(i64::from(delta))
            }
            LARGE => {
                let (&delta, rest) = self.deltas.split_first_chunk()?;
                self.deltas = rest;
                Some(i64::from(i16::from_be_bytes(delta)))
            }
            _ => None,
        };
        let sequence = self.sequence;
        self.sequence = sequence.wrapping_add(1);
        Some((
            sequence,
            delta.map(|delta| {
                self.ticks += delta;
                self.ticks
            }),
        ))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (usize::from(self.left), Some(usize::from(self.left)))
    }
}
impl ExactSizeIterator for PacketStatuses<'_> {}

// Status symbols. Each is also the length of its delta in bytes, except the reserved 3.
const MISSING: u8 = 0;
const SMALL: u8 = 1; // unsigned 8 bits: 0 to 63.75 ms
const LARGE: u8 = 2; // signed 16 bits: -8192 to 8191.75 ms

/// A status chunk being read.
#[derive(Clone, Copy, Debug, Default)]
struct Chunk {
    /// The remaining statuses.
    len: u16,
    /// The bits of a symbol; 0 for a run, which repeats the symbol in `bits`.
    width: u16,
    /// The remaining symbols; the last one has the lowest bits.
    bits: u16,
}

impl Chunk {
    fn read(chunk: u16) -> Self {
        match chunk >> 14 {
            0b11 => Self { len: 7, width: 2, bits: chunk & 0x3FFF },
            0b10 => Self { len: 14, width: 1, bits: chunk & 0x3FFF },
            _ => Self { len: chunk & 0x1FFF, width: 0, bits: chunk >> 13 },
        }
    }

    /// Returns the chunk with the first `n` symbols.
    fn first(self, n: u16) -> Self {
        let surplus = self.len.saturating_sub(n);
        Self { len: self.len - surplus, bits: self.bits >> (surplus * self.width).min(15), ..self }
    }

    fn next_symbol(&mut self) -> u8 {
        self.len -= 1;
        let mask = if self.width == 1 { 1 } else { 3 };
        ((self.bits >> (self.len * self.width)) & mask) as u8
    }

    /// Returns the bytes of the deltas of all symbols; `None` if one is the reserved symbol.
    fn delta_len(self) -> Option<usize> {
        let ones = |bits: u16| bits.count_ones() as usize;
        match self.width {
            0 if self.bits == 3 && self.len > 0 => None,
            0 => Some(usize::from(self.bits) * usize::from(self.len)),
            1 => Some(ones(self.bits)),
            _ => {
                let (small, large) = (self.bits & 0x1555, self.bits >> 1 & 0x1555);
                (small & large == 0).then(|| ones(small) + 2 * ones(large))
            }
        }
    }
}

/// Symbols that are not written yet (libwebrtc `TransportFeedback::LastChunk`).
#[derive(Clone, Copy)]
struct Pending {
    /// The first 14 symbols. There are more only in a run.
    symbols: [u8; 14],
    len: u16,
    same: bool,
    large: bool,
}

impl Pending {
    const EMPTY: Self = Self { symbols: [0; 14], len: 0, same: true, large: false };

    /// Adds a symbol. If the symbols before it must be written first, returns their chunk.
    #[inline]
    fn push(&mut self, symbol: u8) -> Option<u16> {
        let room = self.len < 7
            || self.len < 14 && !self.large && symbol != LARGE
            || self.len < 0x1FFF && self.same && self.symbols[0] == symbol;
        let chunk = (!room).then(|| self.emit());
        self.add(symbol);
        chunk
    }

    fn add(&mut self, symbol: u8) {
        if let Some(slot) = self.symbols.get_mut(usize::from(self.len)) {
            *slot = symbol;
        }
        self.len += 1;
        self.same &= symbol == self.symbols[0];
        self.large |= symbol == LARGE;
    }

    fn emit(&mut self) -> u16 {
        let all = core::mem::replace(self, Self::EMPTY);
        if all.same {
            return all.run();
        }
        if all.len == 14 {
            return all.one_bit();
        }
        for &symbol in &all.symbols[7..usize::from(all.len)] {
            self.add(symbol);
        }
        Self { len: 7, ..all }.two_bit()
    }

    /// Returns the last chunk.
    fn finish(self) -> u16 {
        match self.len {
            _ if self.same => self.run(),
            ..=7 => self.two_bit(),
            _ => self.one_bit(),
        }
    }

    fn run(&self) -> u16 {
        u16::from(self.symbols[0]) << 13 | self.len
    }
    fn one_bit(&self) -> u16 {
        0x8000 | self.vector(1, 14)
    }
    fn two_bit(&self) -> u16 {
        0xC000 | self.vector(2, 7)
    }
    fn vector(&self, width: u16, capacity: u16) -> u16 {
        (0..self.len).fold(0, |bits, i| bits | u16::from(self.symbols[usize::from(i)]) << (width * (capacity - 1 - i)))
    }
}

/// An iterator over symbol and delta of each packet. It ends before the first packet whose delta is too large.
#[derive(Clone)]
struct Deltas<'a> {
    arrivals: core::slice::Iter<'a, Option<i64>>,
    last: i64,
}

impl Iterator for Deltas<'_> {
    type Item = (u8, i16);
    #[inline]
    fn next(&mut self) -> Option<(u8, i16)> {
        let Some(ticks) = *self.arrivals.next()? else {
            return Some((MISSING, 0));
        };
        let delta = i16::try_from(ticks.wrapping_sub(self.last)).ok()?;
        self.last = ticks;
        Some((if (0..256).contains(&delta) { SMALL } else { LARGE }, delta))
    }
}

impl CompoundWriter<'_> {
    /// Writes a report about the packets from `base_sequence` on. An arrival is in ticks of 250 us on the receiver's clock,
    /// or `None` if the packet was not received. The reference time is the first arrival, rounded down to 64 ms.
    ///
    /// Returns the number of packets that the report covers. It ends early if the buffer is full, or if a delta needs more
    /// than 16 bits (then after the last received packet before it). The caller writes the other packets, from
    /// `base_sequence` plus the returned number on, to a new report with the next count.
    ///
    /// Returns [`WriteError::Empty`] if no packet was received, and [`WriteError::BufferFull`] if the first arrival does
    /// not fit.
    pub fn transport_feedback(
        &mut self,
        sender_ssrc: u32,
        media_ssrc: u32,
        base_sequence: u16,
        feedback_count: u8,
        arrivals: &[Option<i64>],
    ) -> Result<usize, WriteError> {
        let arrivals = &arrivals[..arrivals.len().min(MAX_STATUSES)];
        let first = arrivals.iter().find_map(|&a| a).ok_or(WriteError::Empty)?;
        let reference = first.div_euclid(TICKS_PER_REFERENCE);
        let deltas = Deltas { arrivals: arrivals.iter(), last: reference * TICKS_PER_REFERENCE };

        // Whole 32-bit words.
        let room = (self.free() & !3).saturating_sub(4 + 8);
        let mut pending = Pending::EMPTY;
        let mut next = Extent { statuses: 0, chunks: 1, delta_len: 0 };
        let (mut covered, mut to_received, mut full) = (next, next, false);
        for (symbol, _) in deltas.clone() {
            next.statuses += 1;
            next.chunks += usize::from(pending.push(symbol).is_some());
            next.delta_len += usize::from(symbol);
            full = next.len() > room;
            if full {
                break;
            }
            covered = next;
            if symbol != MISSING {
                to_received = next;
            }
        }
        if to_received.statuses == 0 {
            return Err(WriteError::BufferFull);
        }
        if !full && covered.statuses < arrivals.len() {
            covered = to_received; // the next delta needs more than 16 bits
        }

        let fci_len = covered.len().next_multiple_of(4);
        let fill = fci_len - covered.len();
        let format = TransportFeedback::FORMAT | if fill > 0 { PADDED } else { 0 };
        let fci = self.feedback(TRANSPORT_FEEDBACK, format, (sender_ssrc, media_ssrc), fci_len)?;
        put(fci, 0, base_sequence.to_be_bytes());
        put(fci, 2, (covered.statuses as u16).to_be_bytes());
        put(fci, 4, ((reference as u32) << 8 | u32::from(feedback_count)).to_be_bytes());

        let (mut chunk_at, mut delta_at) = (FIXED_LEN, FIXED_LEN + 2 * covered.chunks);
        let mut pending = Pending::EMPTY;
        for (symbol, delta) in deltas.take(covered.statuses) {
            if let Some(chunk) = pending.push(symbol) {
                put(fci, chunk_at, chunk.to_be_bytes());
                chunk_at += 2;
            }
            match (symbol, delta.to_be_bytes()) {
                (SMALL, [_, low]) => fci[delta_at] = low,
                (LARGE, both) => put(fci, delta_at, both),
                _ => {}
            }
            delta_at += usize::from(symbol);
        }
        put(fci, chunk_at, pending.finish().to_be_bytes());
        if fill > 0 {
            fci[delta_at..].fill(0);
            fci[fci_len - 1] = fill as u8;
        }
        Ok(covered.statuses)
    }
}

/// The size of a report without the common header and the SSRCs.
#[derive(Clone, Copy)]
struct Extent {
    statuses: usize,
    chunks: usize,
    delta_len: usize,
}

impl Extent {
    fn len(&self) -> usize {
        FIXED_LEN + 2 * self.chunks + self.delta_len
    }
}
