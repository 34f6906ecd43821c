// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an oracle knows of a rate over time: its mean over a short time ahead, or over one that ended a round trip ago.

use super::{Oracle, Steps, push, rate_at};
use paceline_units::{Time, TimeDelta};

const STEP: TimeDelta = TimeDelta::from_millis(10);
/// Rates are whole multiples of this, bit/s, so that rounding errors are no changes.
const UNIT: f64 = 100.0;

/// Returns the mean of a rate until `end`: over a time ahead for the oracle that knows the path in advance, and over one behind for the
/// other.
pub(super) fn mean(oracle: Oracle, rate: Steps, window: TimeDelta, end: Time) -> Steps {
    if rate.len() == 1 {
        return rate;
    }
    let volumes = volumes(&rate);
    let volume = |at: Time| {
        let step = rate.partition_point(|(from, _)| *from <= at).saturating_sub(1);
        volumes[step] + rate[step].1 * (at - rate[step].0).as_secs_f64()
    };
    let of = |at: Time| {
        let (from, to) = match oracle {
            Oracle::Ideal => (at, (at + window).min(end)),
            Oracle::Causal => ((at - window).max(Time::ZERO), at),
        };
        match to > from {
            true => (volume(to) - volume(from)) / (to - from).as_secs_f64(),
            false => rate_at(&rate, from),
        }
    };
    sampled((Time::ZERO, end), of)
}

/// Returns what an oracle knows of a rate from `start` to `end`: that of the time, or for the causal oracle that of a round trip before,
/// and in its first round trip that of the start. `rtt` returns the round-trip time at a time.
pub(super) fn known(
    oracle: Oracle,
    rate: &Steps,
    rtt: impl Fn(Time) -> TimeDelta,
    (start, end): (Time, Time),
) -> Steps {
    let of = |at: Time| match oracle {
        Oracle::Ideal => rate_at(rate, at),
        Oracle::Causal => rate_at(rate, (at - rtt(at)).max(start)),
    };
    sampled((start, end), of)
}

/// Returns the steps of a value that is taken each [`STEP`]. The first starts at 0.
fn sampled((start, end): (Time, Time), of: impl Fn(Time) -> f64) -> Steps {
    let (mut steps, mut at) = (Steps::new(), start);
    while at < end {
        let from = if steps.is_empty() { Time::ZERO } else { at };
        push(&mut steps, from, (of(at) / UNIT).round() * UNIT);
        at += STEP;
    }
    steps
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
        let mean = mean(oracle, rate, TimeDelta::from_millis(window), ms(400));
        let seen = known(oracle, &mean, rtt, (ms(start), ms(400)));
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
        let rate = [(0, 0.0), (190, 3e6), (250, 1e6)];
        assert_eq!(seen_ms(Oracle::Causal, &rate, 10, 200), [(0, 3e6), (360, 1e6)]);
    }
}
