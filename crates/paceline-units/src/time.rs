//! Two clocks and the spans between their readings.

use crate::parse::{self, ParseError};
use crate::{round_to_i64, round_to_u64};
use core::fmt;
use core::ops::{Add, AddAssign, Div, Mul, Neg, Sub, SubAssign};
use core::str::FromStr;

/// A span of time in nanoseconds, which may be negative. Text: `"300 ms"`, `"1.5s"`, `"250us"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimeDelta(i64);

/// A reading of the clock of the world that drives a run (the simulator's virtual time, a host's monotonic
/// clock), in nanoseconds since the run began. The sender lives on this clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(i64);

/// A reading of a receiver's clock, whose origin and speed nobody else knows: only differences mean anything,
/// and no conversion to [`Time`] exists outside the world that made the clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RemoteTime(i64);

impl TimeDelta {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// The longest span, about 292 years; stands for "never".
    pub const MAX: Self = Self(i64::MAX);

    /// From nanoseconds.
    pub const fn from_nanos(ns: i64) -> Self {
        Self(ns)
    }
    /// From microseconds.
    pub const fn from_micros(us: i64) -> Self {
        Self(us * 1_000)
    }
    /// From milliseconds.
    pub const fn from_millis(ms: i64) -> Self {
        Self(ms * 1_000_000)
    }
    /// From seconds.
    pub const fn from_secs(s: i64) -> Self {
        Self(s * 1_000_000_000)
    }
    /// From milliseconds, rounded to the nanosecond.
    pub fn from_millis_f64(ms: f64) -> Self {
        Self(round_to_i64(ms * 1e6))
    }
    /// From seconds, rounded to the nanosecond.
    pub fn from_secs_f64(s: f64) -> Self {
        Self(round_to_i64(s * 1e9))
    }
    /// In nanoseconds.
    pub const fn as_nanos(self) -> i64 {
        self.0
    }
    /// In milliseconds.
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }
    /// In seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
    /// True for spans longer than nothing.
    pub const fn is_positive(self) -> bool {
        self.0 > 0
    }
    /// The span without its sign.
    pub const fn abs(self) -> Self {
        Self(self.0.saturating_abs())
    }
    /// This span times a factor, rounded to the nanosecond.
    pub fn scale(self, factor: f64) -> Self {
        Self(round_to_i64(self.0 as f64 * factor))
    }
}

macro_rules! instant {
    ($name:ident) => {
        impl $name {
            /// The clock's origin.
            pub const ZERO: Self = Self(0);
            /// Later than any reading; stands for "never".
            pub const MAX: Self = Self(i64::MAX);

            /// From nanoseconds since the clock's origin.
            pub const fn from_nanos(ns: i64) -> Self {
                Self(ns)
            }
            /// From milliseconds since the clock's origin.
            pub const fn from_millis(ms: i64) -> Self {
                Self(ms * 1_000_000)
            }
            /// Nanoseconds since the clock's origin.
            pub const fn as_nanos(self) -> i64 {
                self.0
            }
            /// The span since an earlier reading, for what is done with each packet: readings of one connection. Where
            /// `-` stops at the longest span, this goes round.
            #[inline]
            pub const fn since(self, earlier: Self) -> TimeDelta {
                TimeDelta(self.0.wrapping_sub(earlier.0))
            }
        }
        impl Add<TimeDelta> for $name {
            type Output = Self;
            #[inline]
            fn add(self, d: TimeDelta) -> Self {
                Self(self.0.saturating_add(d.0))
            }
        }
        impl AddAssign<TimeDelta> for $name {
            fn add_assign(&mut self, d: TimeDelta) {
                *self = *self + d;
            }
        }
        impl Sub<TimeDelta> for $name {
            type Output = Self;
            #[inline]
            fn sub(self, d: TimeDelta) -> Self {
                Self(self.0.saturating_sub(d.0))
            }
        }
        impl Sub for $name {
            type Output = TimeDelta;
            #[inline]
            fn sub(self, other: Self) -> TimeDelta {
                TimeDelta(self.0.saturating_sub(other.0))
            }
        }
    };
}
instant!(Time);
instant!(RemoteTime);

impl Time {
    /// Seconds since the run began.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
    /// From seconds since the run began, rounded to the nanosecond.
    pub fn from_secs_f64(s: f64) -> Self {
        Self(round_to_u64(s * 1e9) as i64)
    }
    /// From whole seconds since the run began.
    pub const fn from_secs(s: i64) -> Self {
        Self(s * 1_000_000_000)
    }
}

impl Add for TimeDelta {
    type Output = Self;
    #[inline]
    fn add(self, o: Self) -> Self {
        Self(self.0.saturating_add(o.0))
    }
}
impl AddAssign for TimeDelta {
    fn add_assign(&mut self, o: Self) {
        *self = *self + o;
    }
}
impl Sub for TimeDelta {
    type Output = Self;
    #[inline]
    fn sub(self, o: Self) -> Self {
        Self(self.0.saturating_sub(o.0))
    }
}
impl SubAssign for TimeDelta {
    fn sub_assign(&mut self, o: Self) {
        *self = *self - o;
    }
}
impl Neg for TimeDelta {
    type Output = Self;
    fn neg(self) -> Self {
        Self(self.0.saturating_neg())
    }
}
impl Mul<i64> for TimeDelta {
    type Output = Self;
    fn mul(self, k: i64) -> Self {
        Self(self.0.saturating_mul(k))
    }
}
impl Div<i64> for TimeDelta {
    type Output = Self;
    fn div(self, k: i64) -> Self {
        Self(self.0 / k)
    }
}

const UNITS: &[(&str, f64)] =
    &[("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9), ("min", 60e9), ("h", 3600e9)];

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

    #[test]
    fn text_goes_both_ways() {
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
    fn never_stays_never() {
        assert_eq!(Time::MAX + TimeDelta::from_secs(1), Time::MAX);
    }

    #[test]
    fn the_span_since() {
        let (at, end) = (RemoteTime::from_millis(7), RemoteTime::from_nanos(i64::MIN));
        assert_eq!(at.since(RemoteTime::from_millis(9)), TimeDelta::from_millis(-2));
        assert_eq!(
            (at - end, at.since(end) < TimeDelta::ZERO),
            (TimeDelta::MAX, true),
            "one stops, the other goes round"
        );
    }
}
