// SPDX-License-Identifier: MIT OR Apache-2.0
//! Extended reports, XR (RFC 3611). Two blocks measure the round-trip time for an endpoint that sends no media: receiver
//! reference time (section 4.4) and delay since the last receiver report (DLRR, section 4.5).

use crate::bytes::{be16, be32, be64, put, records};
use crate::compound_writer::{CompoundWriter, EXTENDED_REPORT};
use crate::{WireError, WriteError};

/// One block of an extended report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum XrBlock<'a> {
    /// The time when the report was sent.
    ReferenceTime {
        /// 32.32 fixed-point seconds of the reporter's NTP clock.
        ntp: u64,
    },
    /// The answers to reference times.
    DelaySinceLast(DelayEntries<'a>),
    /// Another block type.
    Other {
        /// The block type.
        block_type: u8,
    },
}

/// The answer to the last reference time of one receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DelayEntry {
    /// The SSRC of the receiver.
    pub ssrc: u32,
    /// The middle 32 bits of its last reference time; 0 if there was none.
    pub last_rr: u32,
    /// The time from the arrival of that reference time to this report, in 1/65536 s.
    pub delay_since_last_rr: u32,
}

records! {
    /// An iterator over answers to reference times.
    DelayEntries, DelayEntry, 12, |b| DelayEntry {
        ssrc: be32(b, 0),
        last_rr: be32(b, 4),
        delay_since_last_rr: be32(b, 8),
    }
}

/// An iterator over the blocks of an extended report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct XrBlocks<'a>(&'a [u8]);

const REFERENCE_TIME: u8 = 4;
const DELAY_SINCE_LAST: u8 = 5;

pub(crate) fn read(blocks: &[u8]) -> Result<XrBlocks<'_>, WireError> {
    let mut rest = blocks;
    while !rest.is_empty() {
        (_, rest) = split_block(rest).ok_or(WireError::XrMalformed)?;
    }
    Ok(XrBlocks(blocks))
}

impl<'a> Iterator for XrBlocks<'a> {
    type Item = XrBlock<'a>;
    fn next(&mut self) -> Option<XrBlock<'a>> {
        let block;
        (block, self.0) = split_block(self.0)?;
        Some(block)
    }
}

fn split_block(bytes: &[u8]) -> Option<(XrBlock<'_>, &[u8])> {
    let (header, rest) = bytes.split_first_chunk::<4>()?;
    let (content, rest) = rest.split_at_checked(4 * usize::from(be16(header, 2)))?;
    let block = match header[0] {
        REFERENCE_TIME if content.len() == 8 => XrBlock::ReferenceTime { ntp: be64(content, 0) },
        DELAY_SINCE_LAST if content.len() % 12 == 0 => XrBlock::DelaySinceLast(DelayEntries(content)),
        REFERENCE_TIME | DELAY_SINCE_LAST => return None,
        block_type => XrBlock::Other { block_type },
    };
    Some((block, rest))
}

impl CompoundWriter<'_> {
    /// Writes an extended report with a reference time in 32.32 fixed-point seconds.
    pub fn xr_reference_time(&mut self, ssrc: u32, ntp: u64) -> Result<(), WriteError> {
        let body = self.packet(EXTENDED_REPORT, 0, 4 + 4 + 8)?;
        put(body, 0, ssrc.to_be_bytes());
        put(body, 4, [REFERENCE_TIME, 0, 0, 2]);
        put(body, 8, ntp.to_be_bytes());
        Ok(())
    }

    /// Writes an extended report with answers to reference times.
    pub fn xr_delay_since_last(&mut self, ssrc: u32, entries: &[DelayEntry]) -> Result<(), WriteError> {
        let words = u16::try_from(3 * entries.len()).map_err(|_| WriteError::TooMany)?;
        let body = self.packet(EXTENDED_REPORT, 0, 4 + 4 + 12 * entries.len())?;
        put(body, 0, ssrc.to_be_bytes());
        put(body, 4, [DELAY_SINCE_LAST, 0]);
        put(body, 6, words.to_be_bytes());
        for (out, entry) in body[8..].chunks_exact_mut(12).zip(entries) {
            put(out, 0, entry.ssrc.to_be_bytes());
            put(out, 4, entry.last_rr.to_be_bytes());
            put(out, 8, entry.delay_since_last_rr.to_be_bytes());
        }
        Ok(())
    }
}
