//! The round-trip time is so long that the sender backs off, although reports arrive.

use super::{Cause, Evidence, Strength, ms};
use crate::facts::Facts;
use crate::model::Quantity;
use paceline_units::TimeDelta;

pub(super) const CAUSE: Cause = Cause {
    id: "rtt-backoff",
    title: "back-off at a very long round-trip time",
    advice: "find where packets wait for seconds (deep buffer, satellite, relay); a shorter queue or another relay helps",
    examine,
};

/// libwebrtc lowers its estimate to 0.8 every second while the round-trip time exceeds 3 s (`RttBasedBackoff`,
/// `send_side_bandwidth_estimation.cc`).
const LIMIT: f64 = 3.0;
/// Ours: two samples, because one follows every gap of reports.
const SAMPLES: usize = 2;

/// Ours, for statistics: the time between the first and the last long round trip.
const LASTS: TimeDelta = TimeDelta::from_secs(3);
/// Ours: delays of a quarter of the limit for 2.5 s. A queue that an outage left drains faster.
const BINS: usize = 25;
/// Ours: the lowest delays of a path spread by at most this, s.
const FLAT: f64 = 0.01;

fn examine(facts: &Facts<'_>) -> Option<Evidence> {
    let (from, to) = (facts.episode.start - TimeDelta::from_secs(3), facts.episode.end + TimeDelta::from_secs(9));
    let samples = facts.flow.get(Quantity::RoundTrip)?.within(from, to);
    let long = samples.iter().filter(|(_, rtt)| *rtt >= LIMIT);
    // Delays that last distinguish a long path from reports that were held up once.
    let mut delays: Vec<f64> = match facts.flow.get(Quantity::DelayLow) {
        Some(delay) => {
            delay.within(from, to).iter().map(|(_, value)| *value).filter(|value| *value >= LIMIT / 4.0).collect()
        }
        None => Vec::new(),
    };
    let is_lasting = match facts.flow.get(Quantity::DelayLow) {
        Some(_) => delays.len() >= BINS,
        None => {
            let (first, last) = (long.clone().next(), long.clone().next_back());
            first.zip(last).is_some_and(|(first, last)| last.0 - first.0 >= LASTS)
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
