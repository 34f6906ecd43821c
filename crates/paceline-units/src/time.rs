// SPDX-License-Identifier: MIT OR Apache-2.0
//! Readings of two clocks, and the spans between them. Arithmetic saturates, except in `since`.

use crate::parse::{self, ParseError};
use crate::{round_to_i64, round_to_u64};
use core::fmt;
use core::ops::{Add, AddAssign, Div, Mul, Neg, Sub, SubAssign};
use core::str::FromStr;

/// A signed span of time in nanoseconds. Text: `"300 ms"`, `"1.5s"`, `"250us"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimeDelta(i64);

/// A reading of the sender's clock, in nanoseconds since the run began. The clock is the virtual time of the simulator or
/// the monotonic clock of the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(i64);

/// A reading of a receiver's clock. Its origin and speed are unknown to the sender, so only differences are meaningful, and
/// there is no conversion to [`Time`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RemoteTime(i64);

impl TimeDelta {
    /// 0 ns.
    pub const ZERO: Self = Self(0);
    /// The longest span, about 292 years.
    pub const MAX: Self = Self(i64::MAX);

    /// Returns a span in nanoseconds.
    #[inline]
    pub const fn from_nanos(ns: i64) -> Self {
        Self(ns)
    }
    /// Returns a span in microseconds.
    #[inline]
    pub const fn from_micros(us: i64) -> Self {
        Self(us * 1_000)
    }
    /// Returns a span in milliseconds.
    #[inline]
    pub const fn from_millis(ms: i64) -> Self {
        Self(ms * 1_000_000)
    }
    /// Returns a span in seconds.
    #[inline]
    pub const fn from_secs(s: i64) -> Self {
        Self(s * 1_000_000_000)
    }
    /// Returns a span in milliseconds, rounded to the nanosecond.
    #[inline]
    pub fn from_millis_f64(ms: f64) -> Self {
        Self(round_to_i64(ms * 1e6))
    }
    /// Returns a span in seconds, rounded to the nanosecond.
    #[inline]
    pub fn from_secs_f64(s: f64) -> Self {
        Self(round_to_i64(s * 1e9))
    }
    /// Returns the span in nanoseconds.
    #[inline]
    pub const fn as_nanos(self) -> i64 {
        self.0
    }
    /// Returns the span in milliseconds.
    #[inline]
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }
    /// Returns the span in seconds.
    #[inline]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
    /// Returns the span as a duration of the standard library; `None` if it is negative.
    #[inline]
    pub fn to_duration(self) -> Option<core::time::Duration> {
        u64::try_from(self.as_nanos()).ok().map(core::time::Duration::from_nanos)
    }
    /// Returns whether the span is greater than zero.
    #[inline]
    pub const fn is_positive(self) -> bool {
        self.0 > 0
    }
    /// Returns the span without its sign.
    #[inline]
    pub const fn abs(self) -> Self {
        Self(self.0.saturating_abs())
    }
    /// Returns this span times a factor, rounded to the nanosecond.
    #[inline]
    pub fn scale(self, factor: f64) -> Self {
        Self(round_to_i64(self.0 as f64 * factor))
    }
}

/// Returns `a + b`, saturated. Times rarely overflow: a branch to a cold function costs less than
/// `saturating_add`, which computes both results.
#[inline]
fn sum(a: i64, b: i64) -> i64 {
    a.checked_add(b).unwrap_or_else(|| saturated(a))
}

/// Returns `a - b`, saturated, in the same way.
#[inline]
fn difference(a: i64, b: i64) -> i64 {
    a.checked_sub(b).unwrap_or_else(|| saturated(a))
}

/// Returns the bound that a sum or a difference exceeds whose first number is `a`.
#[cold]
#[inline(never)]
fn saturated(a: i64) -> i64 {
    if a < 0 { i64::MIN } else { i64::MAX }
}

/// Implements the sum of a time and a span, and the difference.
macro_rules! shifted {
    ($name:ident) => {
        impl Add<TimeDelta> for $name {
            type Output = Self;
            #[inline]
            fn add(self, d: TimeDelta) -> Self {
                Self(sum(self.0, d.0))
            }
        }
        impl AddAssign<TimeDelta> for $name {
            #[inline]
            fn add_assign(&mut self, d: TimeDelta) {
                *self = *self + d;
            }
        }
        impl Sub<TimeDelta> for $name {
            type Output = Self;
            #[inline]
            fn sub(self, d: TimeDelta) -> Self {
                Self(difference(self.0, d.0))
            }
        }
    };
}

macro_rules! instant {
    ($name:ident) => {
        impl $name {
            /// The origin of the clock.
            pub const ZERO: Self = Self(0);
            /// The latest reading.
            pub const MAX: Self = Self(i64::MAX);

            /// Returns a reading in nanoseconds since the origin.
            #[inline]
            pub const fn from_nanos(ns: i64) -> Self {
                Self(ns)
            }
            /// Returns a reading in milliseconds since the origin.
            #[inline]
            pub const fn from_millis(ms: i64) -> Self {
                Self(ms * 1_000_000)
            }
            /// Returns the nanoseconds since the origin.
            #[inline]
            pub const fn as_nanos(self) -> i64 {
                self.0
            }
            /// Returns the span since an earlier reading. It wraps on overflow, where `-` saturates, and is therefore
            /// faster: for work that is done for each packet.
            #[inline]
            pub const fn since(self, earlier: Self) -> TimeDelta {
                TimeDelta(self.0.wrapping_sub(earlier.0))
            }
        }
        shifted!($name);
        impl Sub for $name {
            type Output = TimeDelta;
            #[inline]
            fn sub(self, other: Self) -> TimeDelta {
                TimeDelta(difference(self.0, other.0))
            }
        }
    };
}
instant!(Time);
instant!(RemoteTime);

impl Time {
    /// Returns the seconds since the run began.
    #[inline]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
    /// Returns a reading in seconds since the run began, rounded to the nanosecond. Negative values and NaN become zero.
    #[inline]
    pub fn from_secs_f64(s: f64) -> Self {
        Self(round_to_u64(s * 1e9) as i64)
    }
    /// Returns a reading in whole seconds since the run began.
    #[inline]
    pub const fn from_secs(s: i64) -> Self {
        Self(s * 1_000_000_000)
    }
}

shifted!(TimeDelta);

impl SubAssign for TimeDelta {
    #[inline]
    fn sub_assign(&mut self, o: Self) {
        *self = *self - o;
    }
}
impl Neg for TimeDelta {
    type Output = Self;
    #[inline]
    fn neg(self) -> Self {
        Self(self.0.saturating_neg())
    }
}
impl Mul<i64> for TimeDelta {
    type Output = Self;
    #[inline]
    fn mul(self, k: i64) -> Self {
        Self(self.0.saturating_mul(k))
    }
}
impl Div<i64> for TimeDelta {
    type Output = Self;
    #[inline]
    fn div(self, k: i64) -> Self {
        Self(self.0 / k)
    }
}

const UNITS: &[(&str, f64)] =
    &[("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9), ("min", 60e9), ("h", 3600e9)];

/// Spans above 292 years become the longest one.
impl From<core::time::Duration> for TimeDelta {
    fn from(duration: core::time::Duration) -> Self {
        Self(i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX))
    }
}
impl FromStr for TimeDelta {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let ns = parse::quantity(text, "a time", "300 ms", UNITS)?;
        if ns.abs() > 9.2e18 {
            return Err(ParseError::new(text, "a time below 292 years", "300 ms"));
        }
        Ok(Self(round_to_i64(ns)))
    }
}
impl fmt::Display for TimeDelta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        parse::display(f, self.0 as f64, &[("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)])
    }
}
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        TimeDelta(self.0).fmt(f)
    }
}
impl FromStr for Time {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let d: TimeDelta = text.parse()?;
        if d < TimeDelta::ZERO {
            return Err(ParseError::new(text, "a time that is not negative", "50 s"));
        }
        Ok(Self(d.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn durations_convert_both_ways() {
        let duration = core::time::Duration::from_micros(1500);
        assert_eq!(TimeDelta::from(duration), TimeDelta::from_micros(1500));
        assert_eq!(TimeDelta::from_micros(1500).to_duration(), Some(duration));
        assert_eq!(TimeDelta::from_micros(-1).to_duration(), None);
        assert_eq!(TimeDelta::from(core::time::Duration::MAX), TimeDelta::MAX);
    }

    #[test]
    fn text_is_parsed_and_written() {
        for (text, ns, shown) in [
            ("300 ms", 300_000_000, "300 ms"),
            ("1.5s", 1_500_000_000, "1.5 s"),
            ("-2 ms", -2_000_000, "-2 ms"),
            ("0s", 0, "0 ns"),
            ("2min", 120_000_000_000, "120 s"),
            ("0.25 us", 250, "250 ns"),
        ] {
            let d: TimeDelta = text.parse().unwrap();
            assert_eq!(d.as_nanos(), ns, "{text}");
            assert_eq!(d.to_string(), shown);
            assert_eq!(d.to_string().parse::<TimeDelta>().unwrap(), d);
        }
        for bad in ["", "ms", "3", "3 parsecs", "1e400 s", "nan ms", "1 2 ms", "300 Mbps"] {
            assert!(bad.parse::<TimeDelta>().is_err(), "{bad}");
        }
    }

    #[test]
    fn sums_and_differences_saturate_in_both_directions() {
        let values = [i64::MIN, i64::MIN + 1, -1, 0, 1, 7, i64::MAX - 1, i64::MAX];
        for (a, b) in values.into_iter().flat_map(|a| values.map(|b| (a, b))) {
            assert_eq!((Time(a) + TimeDelta(b)).0, a.saturating_add(b));
            assert_eq!((TimeDelta(a) + TimeDelta(b)).0, a.saturating_add(b));
            assert_eq!((Time(a) - TimeDelta(b)).0, a.saturating_sub(b));
            assert_eq!((RemoteTime(a) - RemoteTime(b)).0, a.saturating_sub(b));
            assert_eq!((TimeDelta(a) - TimeDelta(b)).0, a.saturating_sub(b));
        }
    }

    #[test]
    fn differences_saturate_and_spans_since_wrap() {
        let (at, end) = (RemoteTime::from_millis(7), RemoteTime::from_nanos(i64::MIN));
        assert_eq!(at.since(RemoteTime::from_millis(9)), TimeDelta::from_millis(-2));
        assert_eq!((at - end, at.since(end) < TimeDelta::ZERO), (TimeDelta::MAX, true),);
    }
}
