// SPDX-License-Identifier: MIT OR Apache-2.0
//! Source descriptions, SDES (RFC 3550, section 6.5). Only the canonical name is read.

use crate::bytes::put;
use crate::compound_writer::{CompoundWriter, SOURCE_DESCRIPTION};
use crate::{WireError, WriteError};

/// The description of one source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SdesChunk<'a> {
    /// The SSRC of the source.
    pub ssrc: u32,
    /// The canonical name, which is the same for all streams of an endpoint. It should be UTF-8, but is not checked.
    pub cname: Option<&'a [u8]>,
}

/// An iterator over the chunks of a source description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SdesChunks<'a> {
    rest: &'a [u8],
    left: u8,
}

const CNAME: u8 = 1;

pub(crate) fn read(count: u8, body: &[u8]) -> Result<SdesChunks<'_>, WireError> {
    let chunks = SdesChunks { rest: body, left: count };
    if chunks.count() != usize::from(count) {
        return Err(WireError::SdesMalformed);
    }
    Ok(chunks)
}

impl<'a> Iterator for SdesChunks<'a> {
    type Item = SdesChunk<'a>;
    fn next(&mut self) -> Option<SdesChunk<'a>> {
        self.left = self.left.checked_sub(1)?;
        let chunk;
        (chunk, self.rest) = split_chunk(self.rest)?;
        Some(chunk)
    }
}

/// Splits off a chunk: SSRC, items, and 1 to 4 zero bytes up to the next 32-bit boundary.
fn split_chunk(bytes: &[u8]) -> Option<(SdesChunk<'_>, &[u8])> {
    let (&ssrc, _) = bytes.split_first_chunk()?;
    let mut chunk = SdesChunk { ssrc: u32::from_be_bytes(ssrc), cname: None };
    let mut at = 4;
    while *bytes.get(at)? != 0 {
        let len = usize::from(*bytes.get(at + 1)?);
        let value = bytes.get(at + 2..at + 2 + len)?;
        if bytes[at] == CNAME {
            chunk.cname = Some(value);
        }
        at += 2 + len;
    }
    Some((chunk, bytes.get((at + 1).next_multiple_of(4)..)?))
}

impl CompoundWriter<'_> {
    /// Writes a source description with the canonical name (at most 255 bytes) of one source.
    pub fn sdes_cname(&mut self, ssrc: u32, cname: &str) -> Result<(), WriteError> {
        let len = u8::try_from(cname.len()).map_err(|_| WriteError::TooMany)?;
        let end = 4 + 2 + cname.len();
        let body = self.packet(SOURCE_DESCRIPTION, 1, (end + 1).next_multiple_of(4))?;
        put(body, 0, ssrc.to_be_bytes());
        put(body, 4, [CNAME, len]);
        body[6..end].copy_from_slice(cname.as_bytes());
        body[end..].fill(0);
        Ok(())
    }
}
