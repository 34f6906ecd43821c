// SPDX-License-Identifier: MIT OR Apache-2.0
//! Unwrapping of 16-bit sequence numbers.

/// The first sequence number of a stream is unwrapped into the second cycle, so that packets that were reordered before
/// the first one have a number too.
pub const FIRST_CYCLE: u64 = 1 << 16;

/// Returns the lowest number with these low 16 bits that is at least `end - late`, where `end` is one past the highest
/// number so far. A number further back than `late` is thus taken for a new one after an outage.
#[inline]
pub fn unwrap_after(number: u16, end: u64, late: u64) -> u64 {
    let lowest = end.saturating_sub(late);
    lowest + number.wrapping_sub(lowest as u16) as u64
}
