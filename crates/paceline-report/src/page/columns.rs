//! Numbers as a page carries them: columns, one after the other, deflated, as base64.
//!
//! Times become multiples of [`TIME_QUANTUM_S`](super::TIME_QUANTUM_S), and each the zigzag varint of its difference
//! from the one before. Values become 32-bit floats, all first bytes of a column before all second bytes and so on: equal
//! bytes come together, and the column deflates to half.

use super::TIME_QUANTUM_S;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use serde::Serialize;
use std::io::Write;

/// Columns, as they come.
#[derive(Default)]
pub(super) struct Columns {
    bytes: Vec<u8>,
}

/// Where a column stands among the bytes, and how it is coded.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Place {
    at: usize,
    length: usize,
    code: &'static str,
}

impl Columns {
    /// Adds times, s.
    pub(super) fn times(&mut self, seconds: &[f64]) -> Place {
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
        Place { at, length: self.bytes.len() - at, code: "times" }
    }

    /// Adds values.
    pub(super) fn floats(&mut self, values: &[f64]) -> Place {
        let at = self.bytes.len();
        for byte in 0..4 {
            self.bytes.extend(values.iter().map(|value| (*value as f32).to_le_bytes()[byte]));
        }
        Place { at, length: self.bytes.len() - at, code: "floats" }
    }

    /// All of them, as text.
    pub(super) fn packed(&self) -> String {
        let mut deflate = ZlibEncoder::new(Vec::new(), Compression::default());
        let packed = deflate.write_all(&self.bytes).and_then(|()| deflate.finish());
        STANDARD.encode(packed.expect("memory takes what is written"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_differences_and_floats_planes() {
        let mut columns = Columns::default();
        // 0, +1, +64 (two bytes as zigzag 128), -1.
        assert_eq!(columns.times(&[0.0, 1e-6, 65e-6, 64e-6]), Place { at: 0, length: 5, code: "times" });
        assert_eq!(columns.bytes, [0, 2, 0x80, 1, 1]);
        assert_eq!(columns.floats(&[1.0, -2.0]), Place { at: 5, length: 8, code: "floats" });
        assert_eq!(columns.bytes[5..], [0, 0, 0, 0, 0x80, 0, 0x3f, 0xc0]);
    }

    #[test]
    fn packed_columns_come_back() {
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
