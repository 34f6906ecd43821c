// SPDX-License-Identifier: MIT OR Apache-2.0
//! The round-trip time is so long that the sender backs off, although reports arrive.

use super::{Cause, Evidence, Strength, ms};
use crate::facts::Facts;
use crate::model::Quantity;
use paceline_units::{Time, TimeDelta};

pub(super) const CAUSE: Cause = Cause {
    id: "rtt-backoff",
    title: "back-off: the round-trip time exceeded 3 s",
    advice: "find where packets wait for seconds (deep buffer, satellite, relay); a shorter queue or another relay helps",
    examine,
};

/// libwebrtc lowers its estimate to 0.8 every second while the round-trip time exceeds 3 s (`RttBasedBackoff`,
/// `send_side_bandwidth_estimation.cc`).
const LIMIT: f64 = 3.0;
/// Assumed: two samples, because one follows every gap of reports.
const SAMPLES: usize = 2;

/// Assumed for statistics: the time between the first and the last long round trip. Samples of one report are less far apart.
const RISE_MIN_DURATION: TimeDelta = TimeDelta::from_secs(3);
/// Assumed: delays of a quarter of the limit for 2.5 s. A queue that an outage left drains faster.
const BINS: usize = 25;
/// Assumed: the lowest delays of a path spread by at most this, s. A queue of seconds changes by more.
const FLAT: f64 = 0.01;

fn examine(facts: &Facts<'_>) -> Option<Evidence> {
    let (from, to) = (facts.episode.start - TimeDelta::from_secs(3), facts.episode.end + TimeDelta::from_secs(9));
    // Packets of a connection that was lost are late when it returns.
    if facts.disconnection().is_some() {
        return None;
    }
    let samples = facts.flow.get(Quantity::RoundTrip)?.within(from, to);
    // Delays are seen when they end; the first long one began before the rate was at its lowest.
    let began = |(at, delay): &(Time, f64)| *at - TimeDelta::from_secs_f64(*delay) <= facts.episode.end;
    let long = samples.iter().filter(|(_, rtt)| *rtt >= LIMIT);
    if !long.clone().next().is_some_and(began) {
        return None;
    }
    // Delays that last distinguish a long path from reports that were held up once.
    let delays = facts.flow.get(Quantity::DelayLow).map_or(&[][..], |delay| delay.within(from, to));
    let delays = delays.iter().filter(|(_, delay)| *delay >= LIMIT / 4.0);
    if delays.clone().next().is_some_and(|first| !began(first)) {
        return None;
    }
    let mut delays: Vec<f64> = delays.map(|(_, delay)| *delay).collect();
    let is_lasting = match facts.flow.get(Quantity::DelayLow) {
        Some(_) => delays.len() >= BINS,
        None => {
            let (first, last) = (long.clone().next(), long.clone().next_back());
            first.zip(last).is_some_and(|(first, last)| last.0 - first.0 >= RISE_MIN_DURATION)
        }
    };
    // A queue grows and drains; a path stays as long.
    delays.sort_by(f64::total_cmp);
    let is_queue = delays
        .get(delays.len() / 2)
        .is_some_and(|median| delays.iter().filter(|value| (*value - median).abs() <= FLAT).count() < BINS);
    (long.clone().count() >= SAMPLES && is_lasting).then(|| Evidence {
        strength: if is_queue { Strength::Weak } else { Strength::Strong },
        text: format!(
            "round-trip time up to {}, above the limit of 3 s",
            ms(long.map(|(_, rtt)| *rtt).fold(0.0, f64::max))
        ),
        series: vec![Quantity::RoundTrip],
        span: (from, to),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_flow::{drop_between, packets};

    /// A drop from 30 s to 33 s of a flow whose packets need 1.7 s for each way from this time on, s.
    fn strength(from: f64) -> Option<Strength> {
        let flow = packets(&[
            (Quantity::RoundTrip, &|at| if at >= from + 3.4 { 3.4 } else { 0.1 }),
            (Quantity::DelayLow, &|at| if at >= from + 1.7 { 1.65 } else { 0.0 }),
        ]);
        examine(&Facts { flow: &flow, episode: &drop_between(30.0, 33.0) }).map(|evidence| evidence.strength)
    }

    #[test]
    fn long_delays_begin_before_the_rate_is_at_its_lowest() {
        assert_eq!(strength(28.0), Some(Strength::Strong));
        assert_eq!(strength(32.5), Some(Strength::Strong));
        assert_eq!(strength(33.5), None);
        assert_eq!(strength(36.0), None);
    }
}
