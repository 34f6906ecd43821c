// SPDX-License-Identifier: MIT OR Apache-2.0
//! Encodes columns of numbers for the page: concatenated, compressed with zlib, as base64.
//!
//! Times are stored as multiples of a fraction of a second: zigzag varints of their differences. Values are stored as 32-bit
//! floats, with all first bytes of a column before all second bytes and so on. This groups similar bytes and halves the
//! compressed size.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use serde::Serialize;
use std::io::Write;

/// Resolution of the times of a series with all points: 1 µs.
pub(super) const TICKS_PER_SECOND: u32 = 1_000_000;

/// Bits by which the values of a down-sampled series are shorter: four significant digits are left.
const BITS_DROPPED: u32 = 11;

#[derive(Default)]
pub(super) struct Columns {
    bytes: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Column {
    at: usize,
    length: usize,
    code: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    ticks_per_second: Option<u32>,
}

impl Columns {
    /// Appends times, s.
    pub(super) fn times(&mut self, seconds: &[f64], ticks_per_second: u32) -> Column {
        let at = self.bytes.len();
        let mut last = 0;
        for second in seconds {
            let now = (second * f64::from(ticks_per_second)).round() as i64;
            let difference = now - last;
            last = now;
            let mut rest = ((difference << 1) ^ (difference >> 63)) as u64;
            while rest >= 0x80 {
                self.bytes.push((rest & 0x7f) as u8 | 0x80);
                rest >>= 7;
            }
            self.bytes.push(rest as u8);
        }
        Column { ticks_per_second: Some(ticks_per_second), ..self.column(at, "times") }
    }

    pub(super) fn floats(&mut self, values: impl Iterator<Item = f32> + Clone) -> Column {
        let at = self.bytes.len();
        for byte in 0..4 {
            self.bytes.extend(values.clone().map(|value| value.to_le_bytes()[byte]));
        }
        self.column(at, "floats")
    }

    fn column(&self, at: usize, code: &'static str) -> Column {
        Column { at, length: self.bytes.len() - at, code, ticks_per_second: None }
    }

    /// Returns all columns, compressed, as base64.
    pub(super) fn packed(&self) -> String {
        let mut deflate = ZlibEncoder::new(Vec::new(), Compression::default());
        let packed = deflate.write_all(&self.bytes).and_then(|()| deflate.finish());
        STANDARD.encode(packed.expect("writing to memory does not fail"))
    }
}

/// Returns a resolution with 100 to 1000 ticks in an interval of this length, s, and at most [`TICKS_PER_SECOND`].
pub(super) fn ticks_per_second(interval_s: f64) -> u32 {
    let mut ticks = 1;
    while f64::from(ticks) * interval_s < 100.0 && ticks < TICKS_PER_SECOND {
        ticks *= 10;
    }
    ticks
}

/// Returns the nearest value with four significant digits, in which the lowest bits are zero. Such values compress well.
pub(super) fn shortened(value: f64) -> f32 {
    let bits = (value as f32).to_bits();
    let rounded = ((bits + (1 << (BITS_DROPPED - 1))) >> BITS_DROPPED) << BITS_DROPPED;
    if value.is_finite() { f32::from_bits(rounded) } else { value as f32 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodes_times_as_differences_and_floats_as_byte_planes() {
        let mut columns = Columns::default();
        // 0, +1, +64 (two bytes as zigzag 128), -1.
        let times = columns.times(&[0.0, 1e-6, 65e-6, 64e-6], TICKS_PER_SECOND);
        assert_eq!(times, Column { at: 0, length: 5, code: "times", ticks_per_second: Some(1_000_000) });
        assert_eq!(columns.bytes, [0, 2, 0x80, 1, 1]);
        let floats = columns.floats([1.0, -2.0].into_iter());
        assert_eq!(floats, Column { at: 5, length: 8, code: "floats", ticks_per_second: None });
        assert_eq!(columns.bytes[5..], [0, 0, 0, 0, 0x80, 0, 0x3f, 0xc0]);
    }

    #[test]
    fn shortened_values_have_four_digits() {
        for value in [0.0, 1.0, -7.0, 250.0, 1e-30, -123.456, 0.1, 1e38, 4095.0] {
            let short = f64::from(shortened(value));
            assert!((short - value).abs() <= 1.3e-4 * value.abs(), "{value}: {short}");
            assert_eq!(shortened(value).to_bits() % (1 << BITS_DROPPED), 0);
        }
        assert!(shortened(f64::NAN).is_nan());
        assert!((0..=4096).all(|state| shortened(f64::from(state)) == state as f32), "small integers are exact");
    }

    #[test]
    fn intervals_have_at_least_a_hundred_ticks() {
        for (interval_s, ticks) in [(200.0, 1), (2.0, 100), (0.99, 1000), (0.1, 1000), (1e-6, 1_000_000)] {
            assert_eq!(ticks_per_second(interval_s), ticks, "{interval_s} s");
        }
    }

    #[test]
    fn compression_is_reversible() {
        let mut columns = Columns::default();
        columns.floats([0.25; 10_000].into_iter());
        let text = columns.packed();
        assert!(text.len() < 1000, "{} bytes", text.len());
        let bytes = STANDARD.decode(text).unwrap();
        let mut back = Vec::new();
        std::io::Read::read_to_end(&mut flate2::read::ZlibDecoder::new(&bytes[..]), &mut back).unwrap();
        assert_eq!(back, columns.bytes);
    }
}
