// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether a slow bottleneck spreads the packets of frames.
//!
//! The packets of a frame leave close together. Each waits for those before it, at the rate of the bottleneck: their delays spread by
//! the time that the frame needs there. With packets this is the largest less the smallest delay of an interval; in statistics it is
//! the jitter that the receiver measures (RFC 3550, section 6.4.1). It shows a bottleneck whose queue is empty between two frames.

use crate::facts::Facts;
use crate::model::{Quantity, sorted};
use paceline_units::{Time, TimeDelta};

/// A smaller spread is none, s. Assumed: 1228 bytes take 2 ms at 5 Mbit/s.
const LEAST: f64 = 0.002;
/// Assumed: a high spread is this many times the usual one, and as many times the usual one per bit, because larger frames take longer on any path.
const TIMES: f64 = 2.5;
/// The spread that a quarter of the samples does not reach, so long before and after, is usual. Assumed: most queues are shorter.
const USUAL: TimeDelta = TimeDelta::from_secs(60);
/// Assumed: the spread is high in so many seconds or reports in a row. A link that pauses raises it in one or two.
const SAMPLES: usize = 3;
/// The time around an episode in which the samples lie. Assumed: three of a second each.
const AROUND: TimeDelta = TimeDelta::from_secs(3);
/// Assumed: statistics have one report a second or less.
const BEFORE_COARSE: TimeDelta = TimeDelta::from_secs(10);
const SECOND: TimeDelta = TimeDelta::from_secs(1);

/// A sample of the spread.
#[derive(Clone, Copy)]
struct Sample {
    at: Time,
    spread_s: f64,
    sent_bps: f64,
}

impl Sample {
    fn per_bit(&self) -> f64 {
        self.spread_s / self.sent_bps
    }
}

/// Returns the least spread, s, of the time around an episode in which it is high; `None` if it is not.
pub fn spread(facts: &Facts<'_>) -> Option<f64> {
    let (start, end) = (facts.episode.start, facts.episode.end);
    let (from, to) = (start - if facts.is_coarse() { BEFORE_COARSE } else { AROUND }, end + AROUND);
    let all = samples(facts, from - USUAL, to + USUAL);
    let usual = |value: &dyn Fn(&Sample) -> f64| {
        let values = sorted(all.iter().map(value));
        values.get(values.len() / 4).copied()
    };
    let least = LEAST.max(TIMES * usual(&|sample| sample.spread_s)?);
    let least_per_bit = TIMES * usual(&Sample::per_bit)?;
    let is_high = |sample: &Sample| sample.spread_s >= least && sample.per_bit() >= least_per_bit;
    let around: Vec<Sample> = all.iter().filter(|sample| (from..to).contains(&sample.at)).copied().collect();
    let runs = around.chunk_by(|a, b| is_high(a) == is_high(b)).filter(|run| is_high(&run[0]));
    let at_episode = |run: &&[Sample]| run[0].at <= facts.window().1 && run[run.len() - 1].at >= start - AROUND;
    let long = runs.filter(|run| run.len() >= SAMPLES).filter(at_episode);
    long.map(|run| run.iter().map(|sample| sample.spread_s).fold(f64::MAX, f64::min)).reduce(f64::max)
}

/// Returns the samples of a span: the median of each second, or the reports.
fn samples(facts: &Facts<'_>, from: Time, to: Time) -> Vec<Sample> {
    let get = |quantity| facts.flow.get(quantity);
    let spreads: Vec<(Time, f64)> = match (get(Quantity::DelayLow), get(Quantity::DelayHigh), get(Quantity::Jitter)) {
        (Some(low), Some(high), _) => {
            let (from, to) = (from.max(facts.flow.span.0), to.min(facts.flow.span.1));
            let seconds = (0..(to - from).as_nanos() / SECOND.as_nanos()).map(|index| from + SECOND * index);
            let median = |at: Time| {
                let intervals = low.within(at, at + SECOND).iter().zip(high.within(at, at + SECOND));
                let spreads = sorted(intervals.map(|(low, high)| high.1 - low.1));
                Some((at, *spreads.get(spreads.len() / 2)?))
            };
            seconds.filter_map(median).collect()
        }
        (_, _, Some(jitter)) => {
            // A report is repeated until the next one.
            let mut reports = jitter.within(from, to).to_vec();
            reports.dedup_by_key(|(_, value)| *value);
            reports
        }
        _ => Vec::new(),
    };
    let sent = |at| facts.sent(at, at + SECOND).filter(|bps| *bps > 0.0);
    let samples = spreads.into_iter();
    samples.filter_map(|(at, spread_s)| Some(Sample { at, spread_s, sent_bps: sent(at)? })).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_flow::{drop_between, packets};

    /// The spread for a drop at 30 s of a flow whose frames spread by 20 ms in this span, s, and else by 1 ms.
    fn spread_of(from: f64, to: f64) -> Option<f64> {
        let flow = packets(&[
            (Quantity::SentRate, &|_| 1e6),
            (Quantity::DelayLow, &|_| 0.001),
            (Quantity::DelayHigh, &|at| if (from..to).contains(&at) { 0.021 } else { 0.002 }),
        ]);
        spread(&Facts { flow: &flow, episode: &drop_between(30.0, 30.5) })
    }

    #[test]
    fn a_slow_bottleneck_spreads_frames_for_seconds_around_the_drop() {
        let found = spread_of(27.0, 33.0).expect("6 s around it");
        assert!((found - 0.02).abs() < 1e-9, "{found}");
        assert_eq!(spread_of(29.0, 31.0), None, "two seconds may be a pause of the link");
        assert_eq!(spread_of(10.0, 20.0), None, "long before");
        assert_eq!(spread_of(40.0, 50.0), None, "long after");
    }

    #[test]
    fn a_spread_of_the_whole_call_is_usual() {
        assert_eq!(spread_of(0.0, 60.0), None);
    }
}
