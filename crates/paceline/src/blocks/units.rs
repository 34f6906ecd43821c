// SPDX-License-Identifier: MIT OR Apache-2.0
//! The arithmetic of libwebrtc's units (`rtc_base/units/unit_base.h`, `api/units/data_rate.h`): integers of a microsecond, a
//! bit per second and a byte. Its rounding decides some comparisons, so the blocks repeat it.

use paceline_units::{DataSize, Rate, RemoteTime, Time, TimeDelta};

/// The lowest rate of the controller (`kCongestionControllerMinBitrate`, `bwe_defines.h`): 5 kbit/s.
pub const MIN_RATE: Rate = Rate::from_kbps(5);

/// One microsecond in nanoseconds.
const MICROSECOND: i64 = 1_000;
/// One millisecond in nanoseconds.
const MILLISECOND: i64 = 1_000_000;

/// Returns `size / span`, truncated to 1 bit/s; zero if the span is not positive.
#[inline]
pub fn rate_of(size: DataSize, span: TimeDelta) -> Rate {
    let (bits, us) = (size.as_bits(), span.as_nanos() / MICROSECOND);
    if us <= 0 {
        return Rate::ZERO;
    }
    match bits.checked_mul(1_000_000) {
        Some(product) => Rate::from_bps(product / us as u64),
        None => Rate::from_bps((u128::from(bits) * 1_000_000 / us as u128).min(u128::from(u64::MAX)) as u64),
    }
}

/// Returns a rate in whole kbit/s, rounded to the nearest.
#[inline]
pub fn whole_kbps(rate: Rate) -> u64 {
    rate.as_bps() / 1000 + u64::from(rate.as_bps() % 1000 >= 500)
}

/// Returns the rate rounded to whole kbit/s.
pub fn rounded_to_kbps(rate: Rate) -> Rate {
    Rate::from_bps(whole_kbps(rate).saturating_mul(1000))
}

/// Returns the time in whole microseconds, rounded down.
#[inline]
pub fn floor_us(time: Time) -> Time {
    Time::from_nanos(floor(time.as_nanos(), MICROSECOND))
}

/// Returns the time rounded down to a multiple of `resolution`; unchanged if that is zero.
#[inline]
pub fn floor_sent(time: Time, resolution: TimeDelta) -> Time {
    Time::from_nanos(floor(time.as_nanos(), resolution.as_nanos()))
}

/// Returns the arrival rounded down to a multiple of `resolution`; unchanged if that is zero.
#[inline]
pub fn floor_arrival(time: RemoteTime, resolution: TimeDelta) -> RemoteTime {
    RemoteTime::from_nanos(floor(time.as_nanos(), resolution.as_nanos()))
}

/// Rounds a span to whole milliseconds, to the nearest.
#[inline]
pub fn rounded_to_ms(span: TimeDelta) -> TimeDelta {
    TimeDelta::from_nanos(floor(span.as_nanos().saturating_add(MILLISECOND / 2), MILLISECOND))
}

#[inline]
fn floor(nanos: i64, step: i64) -> i64 {
    // A constant divisor costs a multiplication in place of a division.
    let rest = match step {
        ..=0 => 0,
        MICROSECOND => nanos.rem_euclid(MICROSECOND),
        MILLISECOND => nanos.rem_euclid(MILLISECOND),
        _ => nanos.rem_euclid(step),
    };
    nanos.saturating_sub(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: 1000 bytes in 3 ms are 2,666,666.67 bit/s. libwebrtc truncates quotients and rounds kbit/s.
    #[test]
    fn quotients_are_truncated_and_kbps_rounded() {
        let rate = rate_of(DataSize::from_bytes(1000), TimeDelta::from_millis(3));
        assert_eq!((rate.as_bps(), whole_kbps(rate)), (2_666_666, 2667));
        assert_eq!(rate_of(DataSize::from_bytes(1000), TimeDelta::ZERO), Rate::ZERO);
        assert_eq!(rate_of(DataSize::from_bytes(u64::MAX / 8), TimeDelta::from_micros(1)), Rate::MAX);
        assert_eq!([499, 500, 1499].map(|bps| whole_kbps(Rate::from_bps(bps))), [0, 1, 1]);
        assert_eq!(whole_kbps(Rate::MAX), u64::MAX / 1000 + 1);
    }

    #[test]
    fn times_are_rounded_down_also_below_zero() {
        let ms = TimeDelta::from_millis(1);
        assert_eq!(floor_sent(Time::from_nanos(1_999_999), ms), Time::from_millis(1));
        assert_eq!(floor_arrival(RemoteTime::from_nanos(-1), ms), RemoteTime::from_millis(-1));
        assert_eq!(floor_arrival(RemoteTime::from_nanos(-1), TimeDelta::ZERO), RemoteTime::from_nanos(-1));
        assert_eq!(floor_arrival(RemoteTime::from_nanos(i64::MIN), ms), RemoteTime::from_nanos(i64::MIN));
        assert_eq!(floor_us(Time::from_nanos(1999)), Time::from_nanos(1000));
        let rounded = |us| rounded_to_ms(TimeDelta::from_micros(us)).as_nanos() / MILLISECOND;
        assert_eq!([0, 499, 500, 1499].map(rounded), [0, 0, 1, 1]);
    }
}
