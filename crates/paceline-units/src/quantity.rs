// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rates, data sizes and fractions, and their arithmetic with time.
//!
//! Sums and products saturate at the maximum. `a - b` requires `a >= b`: in debug builds a negative difference panics,
//! because it is an error of the caller; in release builds the difference is zero. Where `b` may be larger, use
//! `saturating_sub`.

use crate::parse::{self, ParseError};
use crate::{TimeDelta, round_to_u64};
use core::fmt;
use core::iter::Sum;
use core::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};
use core::str::FromStr;

/// A data rate in bits per second. 1 kbps is 1000 bps. Text: `"2.5 Mbps"`, `"500kbps"`, `"64000 bps"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

/// An amount of data in bytes. Text: `"60 KB"` (60,000 bytes), `"64 KiB"` (65,536 bytes), `"1500 B"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DataSize(u64);

/// A fraction from 0 to 1. Text: `"5 %"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Fraction(f64);

impl Rate {
    /// 0 bit/s.
    pub const ZERO: Self = Self(0);
    /// The highest rate; stands for "unlimited".
    pub const MAX: Self = Self(u64::MAX);

    /// Returns a rate in bits per second.
    #[inline]
    pub const fn from_bps(bps: u64) -> Self {
        Self(bps)
    }
    /// Returns a rate in kilobits (1000 bits) per second.
    #[inline]
    pub const fn from_kbps(kbps: u64) -> Self {
        Self(kbps * 1000)
    }
    /// Returns a rate in bits per second, rounded. Negative values and NaN become zero.
    #[inline]
    pub fn from_bps_f64(bps: f64) -> Self {
        Self(round_to_u64(bps))
    }
    /// Returns the rate in bits per second.
    #[inline]
    pub const fn as_bps(self) -> u64 {
        self.0
    }
    /// Returns the rate in bits per second.
    #[inline]
    pub fn as_bps_f64(self) -> f64 {
        self.0 as f64
    }
    /// Returns this rate times a factor, rounded to 1 bit/s.
    #[inline]
    pub fn scale(self, factor: f64) -> Self {
        Self(round_to_u64(self.0 as f64 * factor))
    }
    /// Returns whether the rate is zero.
    #[inline]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
    /// Returns the rate that transfers `size` in `span`. It is zero if `span` is not positive.
    pub fn from_size_and_time(size: DataSize, span: TimeDelta) -> Self {
        if !span.is_positive() {
            return Self::ZERO;
        }
        let ns = span.as_nanos() as u64;
        // Below 2^30 bytes the sum fits 64 bits.
        if size.0 < (1 << 30) {
            return Self((size.0 * 8_000_000_000 + ns / 2) / ns);
        }
        Self(quotient(size.0, 8_000_000_000, ns))
    }
    /// Returns the difference, or zero if `other` is larger.
    #[inline]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl DataSize {
    /// 0 bytes.
    pub const ZERO: Self = Self(0);

    /// Returns a size in bytes.
    #[inline]
    pub const fn from_bytes(bytes: u64) -> Self {
        Self(bytes)
    }
    /// Returns the size in bytes.
    #[inline]
    pub const fn as_bytes(self) -> u64 {
        self.0
    }
    /// Returns the size in bits.
    #[inline]
    pub const fn as_bits(self) -> u64 {
        self.0 * 8
    }
    /// Returns the difference, or zero if `other` is larger.
    #[inline]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Fraction {
    /// 0 %.
    pub const ZERO: Self = Self(0.0);
    /// 100 %.
    pub const ONE: Self = Self(1.0);

    /// Returns `x` as a fraction; `None` if it is NaN or outside 0 to 1.
    pub fn new(x: f64) -> Option<Self> {
        (0.0..=1.0).contains(&x).then_some(Self(x))
    }
    /// Returns `n / 256`: the fixed-point format of an RTCP report block (RFC 3550, section 6.4.1).
    pub fn from_q8(n: u8) -> Self {
        Self(n as f64 / 256.0)
    }
    /// Returns the fraction as a number from 0 to 1.
    #[inline]
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl Div<Rate> for DataSize {
    type Output = TimeDelta;
    /// Returns the time that the data takes at this rate, to the nearest nanosecond. At rate zero it is [`TimeDelta::MAX`].
    #[inline]
    fn div(self, rate: Rate) -> TimeDelta {
        if rate.0 == 0 {
            return TimeDelta::MAX;
        }
        let half = rate.0 / 2;
        // Below 2^30 bytes the product fits 64 bits, whose division is several times faster than that of 128 bits.
        if self.0 < (1 << 30) && half < (1 << 62) {
            return TimeDelta::from_nanos(((self.0 * 8_000_000_000 + half) / rate.0) as i64);
        }
        TimeDelta::from_nanos(quotient(self.0, 8_000_000_000, rate.0).min(i64::MAX as u64) as i64)
    }
}
impl Mul<TimeDelta> for Rate {
    type Output = DataSize;
    /// Returns the amount of data that passes in this time, to the nearest byte. It is zero if the time is not positive.
    #[inline]
    fn mul(self, span: TimeDelta) -> DataSize {
        let ns = span.as_nanos().max(0) as u64;
        let bytes = match self.0.checked_mul(ns) {
            Some(bit_ns) if bit_ns < u64::MAX - 4_000_000_000 => (bit_ns + 4_000_000_000) / 8_000_000_000,
            _ => quotient(self.0, ns, 8_000_000_000),
        };
        DataSize(bytes)
    }
}

/// Returns `a * b / c`, rounded and saturated, for products above 64 bits.
#[cold]
#[inline(never)]
fn quotient(a: u64, b: u64, c: u64) -> u64 {
    let (a, b, c) = (u128::from(a), u128::from(b), u128::from(c));
    ((a * b + c / 2) / c).min(u128::from(u64::MAX)) as u64
}

/// Returns `a + b`, saturated. Sizes and rates rarely overflow: a branch to a cold function costs less than
/// `saturating_add`.
#[inline]
fn sum(a: u64, b: u64) -> u64 {
    a.checked_add(b).unwrap_or_else(saturated)
}

#[cold]
#[inline(never)]
fn saturated() -> u64 {
    u64::MAX
}

macro_rules! additive {
    ($name:ident) => {
        impl Add for $name {
            type Output = Self;
            #[inline]
            fn add(self, o: Self) -> Self {
                Self(sum(self.0, o.0))
            }
        }
        impl AddAssign for $name {
            #[inline]
            fn add_assign(&mut self, o: Self) {
                *self = *self + o;
            }
        }
        impl Sub for $name {
            type Output = Self;
            /// Returns the difference; zero if it would be negative.
            ///
            /// # Panics
            /// In debug builds, if the difference is negative.
            #[inline]
            fn sub(self, o: Self) -> Self {
                debug_assert!(self.0 >= o.0, "{} - {} is negative", self.0, o.0);
                Self(self.0.saturating_sub(o.0))
            }
        }
        impl SubAssign for $name {
            #[inline]
            fn sub_assign(&mut self, o: Self) {
                *self = *self - o;
            }
        }
        impl Sum for $name {
            fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
                iter.fold(Self(0), |a, b| a + b)
            }
        }
    };
}
additive!(Rate);
additive!(DataSize);

const RATE_UNITS: &[(&str, f64)] = &[
    ("bps", 1.0),
    ("kbps", 1e3),
    ("Mbps", 1e6),
    ("Gbps", 1e9),
    ("bit/s", 1.0),
    ("kbit/s", 1e3),
    ("Mbit/s", 1e6),
    ("Gbit/s", 1e9),
];
const SIZE_UNITS: &[(&str, f64)] =
    &[("B", 1.0), ("bytes", 1.0), ("KB", 1e3), ("kB", 1e3), ("MB", 1e6), ("KiB", 1024.0), ("MiB", 1_048_576.0)];

impl FromStr for Rate {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let bps = parse::quantity(text, "a rate", "2.5 Mbps", RATE_UNITS)?;
        if !(0.0..1e18).contains(&bps) {
            return Err(ParseError::new(text, "a rate from 0 to 1e9 Gbps", "2.5 Mbps"));
        }
        Ok(Self(round_to_u64(bps)))
    }
}
impl FromStr for DataSize {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let bytes = parse::quantity(text, "a size", "60 KB", SIZE_UNITS)?;
        if !(0.0..1e18).contains(&bytes) {
            return Err(ParseError::new(text, "a size that is not negative", "60 KB"));
        }
        Ok(Self(round_to_u64(bytes)))
    }
}
impl FromStr for Fraction {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let x = parse::quantity(text, "a fraction", "5 %", &[("%", 0.01)])?;
        Self::new(x).ok_or_else(|| ParseError::new(text, "a fraction from 0 % to 100 %", "5 %"))
    }
}
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        parse::display(f, self.0 as f64, &RATE_UNITS[..4])
    }
}
impl fmt::Display for DataSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        parse::display(f, self.0 as f64, &[("B", 1.0), ("KB", 1e3), ("MB", 1e6)])
    }
}
impl fmt::Display for Fraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{} %", self.0 * 100.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn size_divided_by_rate_is_a_time() {
        let rate = Rate::from_kbps(1000);
        assert_eq!(DataSize::from_bytes(1250) / rate, TimeDelta::from_millis(10));
        assert_eq!(rate * TimeDelta::from_millis(10), DataSize::from_bytes(1250));
        assert_eq!(Rate::from_size_and_time(DataSize::from_bytes(1250), TimeDelta::from_millis(10)), rate);
        assert_eq!(DataSize::from_bytes(1) / Rate::ZERO, TimeDelta::MAX);
        // 1 byte at 3 bit/s: 8/3 s, to the nearest nanosecond.
        assert_eq!(DataSize::from_bytes(1) / Rate::from_bps(3), TimeDelta::from_nanos(2_666_666_667));
        // The smallest size that is divided with 128 bits.
        let big = DataSize::from_bytes(1 << 30);
        assert_eq!((big / Rate::from_bps(8_000_000_000)).as_nanos(), 1 << 30);
    }

    #[test]
    fn sums_saturate() {
        let size = DataSize::from_bytes;
        assert_eq!(size(u64::MAX - 2) + size(1), size(u64::MAX - 1));
        assert_eq!(size(u64::MAX - 2) + size(3), size(u64::MAX));
    }

    #[test]
    fn text_is_parsed_and_written() {
        for (text, bps) in [("2.5 Mbps", 2_500_000), ("500kbps", 500_000), ("1 Gbit/s", 1_000_000_000), ("0 bps", 0)] {
            let r: Rate = text.parse().unwrap();
            assert_eq!(r.as_bps(), bps);
            assert_eq!(r.to_string().parse::<Rate>().unwrap(), r);
        }
        assert_eq!("60 KB".parse::<DataSize>().unwrap().as_bytes(), 60_000);
        assert_eq!("1 KiB".parse::<DataSize>().unwrap().as_bytes(), 1024);
        assert_eq!("5 %".parse::<Fraction>().unwrap().get(), 0.05);
        for bad in ["-1 Mbps", "1", "1 mbps", "2,5 Mbps", "inf Mbps"] {
            assert!(bad.parse::<Rate>().is_err(), "{bad}");
        }
        assert!("101 %".parse::<Fraction>().is_err());
    }
}
