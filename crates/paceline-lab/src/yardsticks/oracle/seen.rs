//! What an oracle sees of a rate over time: its mean over a short time ahead, or over one that ended a round trip ago.

use super::{Oracle, Steps, push, rate_at};
use paceline_units::{Time, TimeDelta};

/// The step of the result.
const STEP: TimeDelta = TimeDelta::from_millis(10);
/// Rates are whole multiples of this, bit/s, so that rounding errors are no changes.
const UNIT: f64 = 100.0;

/// Returns what an oracle sees of a rate from `start` to `end`, when the mean is taken over `window`. `rtt` returns the round-trip time
/// at a time. In its first round trip the causal oracle sees the rate at the start.
pub(super) fn seen(
    oracle: Oracle,
    rate: &Steps,
    rtt: impl Fn(Time) -> TimeDelta,
    window: TimeDelta,
    (start, end): (Time, Time),
) -> Steps {
    let volumes = volumes(rate);
    let volume = |at: Time| {
        let step = rate.partition_point(|(from, _)| *from <= at).saturating_sub(1);
        volumes[step] + rate[step].1 * (at - rate[step].0).as_secs_f64()
    };
    let (mut seen, mut at) = (Steps::new(), start);
    while at < end {
        let (from, to) = match oracle {
            Oracle::Ideal => (at, (at + window).min(end)),
            Oracle::Causal => {
                let to = (at - rtt(at)).max(start);
                ((to - window).max(start), to)
            }
        };
        let mean = match to > from {
            true => (volume(to) - volume(from)) / (to - from).as_secs_f64(),
            false => rate_at(rate, from),
        };
        let from = if seen.is_empty() { Time::ZERO } else { at };
        push(&mut seen, from, (mean / UNIT).round() * UNIT);
        at += STEP;
    }
    seen
}

/// Returns the volume before each step, bit.
fn volumes(rate: &Steps) -> Vec<f64> {
    let mut volumes = vec![0.0];
    volumes.extend(rate.windows(2).scan(0.0, |volume, pair| {
        *volume += pair[0].1 * (pair[1].0 - pair[0].0).as_secs_f64();
        Some(*volume)
    }));
    volumes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: i64) -> Time {
        Time::from_millis(ms)
    }

    fn seen_ms(oracle: Oracle, rate: &[(i64, f64)], window: i64, start: i64) -> Vec<(i64, f64)> {
        let rate = rate.iter().map(|(at, bps)| (ms(*at), *bps)).collect();
        let rtt = |_| TimeDelta::from_millis(100);
        let seen = seen(oracle, &rate, rtt, TimeDelta::from_millis(window), (ms(start), ms(400)));
        seen.iter().map(|(at, bps)| ((*at - Time::ZERO).as_nanos() / 1_000_000, *bps)).collect()
    }

    /// By hand: 2 Mbit/s until 200 ms, then 1 Mbit/s.
    #[test]
    fn causal_sees_a_change_one_round_trip_later_and_ideal_before_it() {
        let rate = [(0, 2e6), (200, 1e6)];
        // From 310 ms on, 10 ms of the last 20 are at 1 Mbit/s.
        assert_eq!(seen_ms(Oracle::Causal, &rate, 20, 0), [(0, 2e6), (310, 1.5e6), (320, 1e6)]);
        assert_eq!(seen_ms(Oracle::Ideal, &rate, 20, 0), [(0, 2e6), (190, 1.5e6), (200, 1e6)]);
    }

    /// The sender starts at 200 ms, and knows the rate at its own start.
    #[test]
    fn causal_knows_the_rate_at_its_start() {
        let rate = [(0, 0.0), (200, 3e6), (250, 1e6)];
        assert_eq!(seen_ms(Oracle::Causal, &rate, 20, 200), [(0, 3e6), (360, 2e6), (370, 1e6)]);
    }
}
