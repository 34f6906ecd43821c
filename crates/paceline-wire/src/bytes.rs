// SPDX-License-Identifier: MIT OR Apache-2.0
//! Big-endian integers at fixed offsets, and iterators over records of one size.

#[inline]
pub(crate) fn be16(b: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([b[at], b[at + 1]])
}

#[inline]
pub(crate) fn be24(b: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([0, b[at], b[at + 1], b[at + 2]])
}

#[inline]
pub(crate) fn be32(b: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([b[at], b[at + 1], b[at + 2], b[at + 3]])
}

#[inline]
pub(crate) fn be64(b: &[u8], at: usize) -> u64 {
    (be32(b, at) as u64) << 32 | be32(b, at + 4) as u64
}

/// Writes an integer (an array from `to_be_bytes`) at an offset.
#[inline]
pub(crate) fn put<const N: usize>(b: &mut [u8], at: usize, value: [u8; N]) {
    b[at..at + N].copy_from_slice(&value);
}

/// Defines an iterator over the records of `$len` bytes in a slice. It ignores a shorter remainder.
macro_rules! records {
    ($(#[$doc:meta])+ $name:ident, $item:ty, $len:literal, $read:expr) => {
        $(#[$doc])+
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name<'a>(pub(crate) &'a [u8]);

        impl Iterator for $name<'_> {
            type Item = $item;
            fn next(&mut self) -> Option<$item> {
                let (record, rest) = self.0.split_first_chunk::<$len>()?;
                self.0 = rest;
                let read: fn(&[u8; $len]) -> $item = $read;
                Some(read(record))
            }
            fn size_hint(&self) -> (usize, Option<usize>) {
                (self.0.len() / $len, Some(self.0.len() / $len))
            }
        }
        impl ExactSizeIterator for $name<'_> {}
    };
}
pub(crate) use records;
