//! Encodes columns of numbers for the page: concatenated, compressed with zlib, as base64.
//!
//! Times are stored as multiples of [`TIME_QUANTUM_S`](super::TIME_QUANTUM_S): zigzag varints of their differences. Values
//! are stored as 32-bit floats, with all first bytes of a column before all second bytes and so on. This groups similar bytes
//! and halves the compressed size.

use super::TIME_QUANTUM_S;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use serde::Serialize;
use std::io::Write;

#[derive(Default)]
pub(super) struct Columns {
    bytes: Vec<u8>,
}

/// Position and encoding of a column.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Column {
    at: usize,
    length: usize,
    code: &'static str,
}

impl Columns {
    /// Appends times, s.
    pub(super) fn times(&mut self, seconds: &[f64]) -> Column {
        let at = self.bytes.len();
        let mut last = 0;
        for second in seconds {
            let now = (second / TIME_QUANTUM_S).round() as i64;
            let difference = now - last;
            last = now;
            let mut rest = ((difference << 1) ^ (difference >> 63)) as u64;
            while rest >= 0x80 {
                self.bytes.push((rest & 0x7f) as u8 | 0x80);
                rest >>= 7;
            }
            self.bytes.push(rest as u8);
        }
        Column { at, length: self.bytes.len() - at, code: "times" }
    }

    pub(super) fn floats(&mut self, values: &[f64]) -> Column {
        let at = self.bytes.len();
        for byte in 0..4 {
            self.bytes.extend(values.iter().map(|value| (*value as f32).to_le_bytes()[byte]));
        }
        Column { at, length: self.bytes.len() - at, code: "floats" }
    }

    /// Returns all columns, compressed, as base64.
    pub(super) fn packed(&self) -> String {
        let mut deflate = ZlibEncoder::new(Vec::new(), Compression::default());
        let packed = deflate.write_all(&self.bytes).and_then(|()| deflate.finish());
        STANDARD.encode(packed.expect("writing to memory does not fail"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodes_times_as_differences_and_floats_as_byte_planes() {
        let mut columns = Columns::default();
        // 0, +1, +64 (two bytes as zigzag 128), -1.
        assert_eq!(columns.times(&[0.0, 1e-6, 65e-6, 64e-6]), Column { at: 0, length: 5, code: "times" });
        assert_eq!(columns.bytes, [0, 2, 0x80, 1, 1]);
        assert_eq!(columns.floats(&[1.0, -2.0]), Column { at: 5, length: 8, code: "floats" });
        assert_eq!(columns.bytes[5..], [0, 0, 0, 0, 0x80, 0, 0x3f, 0xc0]);
    }

    #[test]
    fn compression_is_reversible() {
        let mut columns = Columns::default();
        columns.floats(&vec![0.25; 10_000]);
        let text = columns.packed();
        assert!(text.len() < 1000, "{} bytes", text.len());
        let bytes = STANDARD.decode(text).unwrap();
        let mut back = Vec::new();
        std::io::Read::read_to_end(&mut flate2::read::ZlibDecoder::new(&bytes[..]), &mut back).unwrap();
        assert_eq!(back, columns.bytes);
    }
}
