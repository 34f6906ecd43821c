// SPDX-License-Identifier: MIT OR Apache-2.0
//! NTP timestamps, and the round-trip time from sender and receiver reports (RFC 3550, sections 4 and 6.4.1).
//!
//! A timestamp has 32.32 fixed-point seconds. Reports echo its middle 32 bits: 16.16 fixed point, units of 1/65536 s, modulo
//! 18.2 hours. A middle of 0 in a report means "no sender report received", so a clock should not start at 0.

use paceline_units::TimeDelta;

const NANOS: u64 = 1_000_000_000;

/// Returns the timestamp of a clock reading in nanoseconds since the origin of the clock, to the nearest 2^-32 s.
#[inline]
pub const fn from_nanos(ns: u64) -> u64 {
    // The fraction cannot round up to a whole second: 10^9 - 1 ns are 2^32 - 4.3 units.
    let fraction = (((ns % NANOS) << 32) + NANOS / 2) / NANOS;
    (ns / NANOS) << 32 | fraction
}

/// Returns the middle 32 bits of a timestamp: 1/65536 s, modulo 2^16 s.
#[inline]
pub const fn middle(ntp: u64) -> u32 {
    (ntp >> 16) as u32
}

/// Converts a clock reading from nanoseconds to units of 1/65536 s, rounded down. The low 32 bits are the middle of a timestamp.
#[inline]
pub const fn units(ns: i64) -> i64 {
    // Seconds and the remainder separately, so that no product needs more than 64 bits.
    let (seconds, rest) = (ns.div_euclid(NANOS as i64), ns.rem_euclid(NANOS as i64));
    seconds * 65_536 + rest * 65_536 / NANOS as i64
}

/// Converts units of 1/65536 s to nanoseconds, rounded to nearest.
#[inline]
pub const fn nanos(units: i64) -> i64 {
    ((units as i128 * NANOS as i128 + 32_768) >> 16) as i64
}

/// Converts a delay to units of 1/65536 s, rounded to nearest. It saturates at 0 and at the maximum (18.2 h).
#[inline]
pub const fn delay(span: TimeDelta) -> u32 {
    let ns = span.as_nanos();
    if ns <= 0 {
        return 0;
    }
    let units = ((ns as u128 * 65_536) + NANOS as u128 / 2) / NANOS as u128;
    if units > u32::MAX as u128 { u32::MAX } else { units as u32 }
}

/// Returns the round-trip time `now - last_sr - delay_since_last_sr` of a report block. All are in 1/65536 s; `now` is the
/// middle of the timestamp of the arrival.
///
/// Returns `None` if the reporter has received no sender report (`last_sr` is 0), or if the result would be negative.
#[inline]
pub const fn round_trip(now: u32, last_sr: u32, delay_since_last_sr: u32) -> Option<TimeDelta> {
    let units = now.wrapping_sub(last_sr).wrapping_sub(delay_since_last_sr);
    if last_sr == 0 || units >> 31 != 0 {
        return None;
    }
    Some(TimeDelta::from_nanos(((units as u64 * NANOS + 32_768) >> 16) as i64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn timestamps_have_binary_fractions() {
        assert_eq!(from_nanos(0), 0);
        assert_eq!(from_nanos(1_500_000_000), 0x1_8000_0000);
        assert_eq!(from_nanos(1), 4); // 4.29
        assert_eq!(from_nanos(999_999_999), 0xFFFF_FFFC); // 2^32 - 4.29
        // Vector 3 of the reference: 0x1d666a98 / 2^32 s = 0.114844 s.
        assert_eq!(middle(0xEEAA_A047_1D66_6A98), 0xA047_1D66);
        assert_eq!(from_nanos(0xEEAA_A047 * NANOS + 114_844_000) >> 16, 0xEEAA_A047_1D66);
    }

    #[test]
    fn round_trip_needs_a_sender_report_and_is_not_negative() {
        // A = a0481d66, LSR = a0471d66, DLSR = 0.5 s: RTT = 0x10000 - 0x8000 = 0.5 s.
        assert_eq!(round_trip(0xA048_1D66, 0xA047_1D66, 0x8000), Some(TimeDelta::from_millis(500)));
        assert_eq!(round_trip(0xA048_1D66, 0, 0x8000), None, "no sender report seen");
        assert_eq!(round_trip(0xA047_1D66, 0xA047_1D66, 1), None, "negative");
        assert_eq!(round_trip(0x8000, 0xFFFF_8000, 0), Some(TimeDelta::from_secs(1)), "across the wrap");
        assert_eq!(round_trip(5, 5, 0), Some(TimeDelta::ZERO));
        assert_eq!(round_trip(6, 5, 0), Some(TimeDelta::from_nanos(15_259)), "one unit is 15.26 us");
    }

    #[test]
    fn units_are_rounded_down() {
        assert_eq!([0, 15_258, 15_259, 500_000_000, -1].map(units), [0, 0, 1, 0x8000, -1]);
        assert_eq!([0, 1, 0x8000, -0x8000].map(nanos), [0, 15_259, 500_000_000, -500_000_000]);
        for ns in [0, 1, 999_999_999, -1_000_000_000, 1 << 60, -(1 << 60), i64::MAX, i64::MIN] {
            assert_eq!(units(ns) as i128, (ns as i128 * 65_536).div_euclid(NANOS as i128), "{ns}");
        }
        for ns in [0, 1, 15_259, 123_456_789_012, 1 << 60, -7, -(1 << 60)] {
            let error = ns - nanos(units(ns));
            assert!((-1..15_260).contains(&error), "{ns}: {error}");
        }
        // The middle of a timestamp after 1900.
        assert_eq!(units(0xEEAA_A047 * 1_000_000_000 + 114_844_000) as u32, 0xA047_1D66);
    }

    #[test]
    fn delays_saturate() {
        assert_eq!(delay(TimeDelta::from_millis(500)), 0x8000);
        assert_eq!(delay(TimeDelta::from_nanos(15_259)), 1);
        assert_eq!(delay(TimeDelta::from_nanos(-1)), 0);
        assert_eq!(delay(TimeDelta::MAX), u32::MAX);
    }

    proptest! {
        #[test]
        fn round_trip_is_exact_to_one_unit(
            sent in 1_000_000_000u64..u64::MAX / 4, rtt in 0u64..60_000_000_000, hold in 0u64..60_000_000_000,
        ) {
            let last_sr = middle(from_nanos(sent));
            prop_assume!(last_sr != 0);
            let held = delay(TimeDelta::from_nanos(hold as i64));
            let now = middle(from_nanos(sent + rtt + hold));
            // Two truncations to 1/65536 s and one rounding: at most 1.5 units, 22.9 us.
            match round_trip(now, last_sr, held) {
                Some(measured) => prop_assert!((measured.as_nanos() - rtt as i64).abs() < 22_900),
                None => prop_assert!(rtt < 22_900),
            }
        }
    }
}
