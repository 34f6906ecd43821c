// SPDX-License-Identifier: MIT OR Apache-2.0
//! TCP segments. They are typed structs, and are encoded as bytes only in capture files.

use paceline_units::DataSize;

/// Size of the IPv4 and TCP headers without options.
pub const IP_TCP_HEADERS: DataSize = DataSize::from_bytes(20 + 20);
/// Size of the timestamp option, padded to whole words (RFC 7323, appendix A). Every segment carries it.
pub const TIMESTAMP_OPTION: DataSize = DataSize::from_bytes(12);
/// Size of the other options of a SYN: maximum segment size, SACK permitted, window scale (4 + 2 + 3 bytes, less the
/// two bytes of padding that the timestamps no longer need, rounded to words).
const SYN_OPTIONS: u64 = 8;
/// Size of kind, length and padding of a SACK option (RFC 2018, section 3).
const SACK_OPTION: u64 = 4;
/// Size of a block: two sequence numbers.
const SACK_BLOCK: u64 = 8;
/// The most blocks that fit into a segment with timestamps (RFC 2018, section 3).
pub const SACK_BLOCKS_MAX: usize = 3;

/// Control bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Flags {
    /// Opens a connection.
    pub syn: bool,
    /// `acknowledgment` is valid.
    pub ack: bool,
}

/// Ranges of data that arrived out of order, the most recent first (RFC 2018, section 4). Ends are exclusive. The
/// representation is compact: all ranges must lie within 2 GB of the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct SackBlocks {
    /// Start of the first range.
    base: u64,
    /// Starts relative to `base`, and lengths.
    blocks: [(i32, u32); SACK_BLOCKS_MAX],
    len: u8,
}

impl SackBlocks {
    /// Adds a range. Returns false if there is no room for it.
    pub fn push(&mut self, start: u64, end: u64) -> bool {
        let base = if self.is_empty() { start } else { self.base };
        let (Ok(offset), Ok(length)) = ((start.wrapping_sub(base) as i64).try_into(), (end - start).try_into()) else {
            return false;
        };
        let Some(block) = self.blocks.get_mut(self.len as usize) else { return false };
        *block = (offset, length);
        self.base = base;
        self.len += 1;
        true
    }
    /// Returns the number of ranges.
    pub fn len(&self) -> usize {
        self.len as usize
    }
    /// Returns whether there are no ranges, so that all data arrived in order.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// Returns the ranges, as `(start, end)`.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.blocks[..self.len()].iter().map(|(offset, length)| {
            let start = self.base.wrapping_add_signed(*offset as i64);
            (start, start + *length as u64)
        })
    }
}

/// A TCP segment. Sequence numbers are absolute and never wrap: the SYN has 0, the first byte of data 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Segment {
    /// The connection's number within the flow, counted from 1.
    pub connection: u32,
    /// Bytes of data.
    pub payload: u32,
    /// Sequence number of the first byte.
    pub sequence: u64,
    /// The next byte that the sender of the segment expects.
    pub acknowledgment: u64,
    /// Ranges received beyond that.
    pub sack: SackBlocks,
    /// Control bits.
    pub flags: Flags,
    /// Of an ACK: data arrived with a mark, and CWR did not arrive since (ECE).
    pub ece: bool,
    /// Of new data: the window was reduced (CWR).
    pub cwr: bool,
    /// Of an ACK with accurate feedback: the marked bytes of the connection, modulo 2^32.
    pub ce_bytes: u32,
}

impl Segment {
    /// Returns the size of the whole IP packet.
    #[inline]
    pub fn size(&self) -> DataSize {
        let sack = if self.sack.is_empty() { 0 } else { SACK_OPTION + SACK_BLOCK * self.sack.len as u64 };
        let syn = if self.flags.syn { SYN_OPTIONS } else { 0 };
        IP_TCP_HEADERS + TIMESTAMP_OPTION + DataSize::from_bytes(syn + sack + self.payload as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_segment_fills_an_ethernet_frame() {
        let full = Segment { payload: 1448, ..Segment::default() };
        assert_eq!(full.size(), DataSize::from_bytes(1500));
        assert_eq!(Segment::default().size(), DataSize::from_bytes(52));
        let syn = Segment { flags: Flags { syn: true, ack: false }, ..Segment::default() };
        assert_eq!(syn.size(), DataSize::from_bytes(60));
        let mut ack = Segment::default();
        for (n, size) in [(1, 64), (2, 72), (3, 80)] {
            assert!(ack.sack.push(n, n + 1));
            assert_eq!(ack.size(), DataSize::from_bytes(size));
        }
        assert!(!ack.sack.push(9, 10));
        assert!(size_of::<Segment>() <= 72, "{}", size_of::<Segment>());
    }

    #[test]
    fn ranges_are_returned_as_they_were_added() {
        let far = 1 << 40;
        let ranges =
            [(far, far + 3_000_000_000), (far - 2_000_000_000, far - 1), (far + 2_000_000_000, far + 2_000_000_001)];
        let mut sack = SackBlocks::default();
        assert!(ranges.iter().all(|(start, end)| sack.push(*start, *end)));
        assert!(sack.iter().eq(ranges));
        let mut sack = SackBlocks::default();
        assert!(sack.push(far, far + 1));
        assert!(!sack.push(far + (1 << 31), far + (1 << 31) + 1), "too far");
        assert!(sack.iter().eq([(far, far + 1)]));
    }
}
