// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a bottleneck carried of the flow while a queue stood.
//!
//! A bottleneck that serves one flow carries its capacity while a queue stands, whatever is sent. If it carries now more and now
//! less of the flow, although the queue stands, it serves other packets in between.

use crate::episodes::Episode;
use crate::facts::{Facts, floor};
use crate::model::{Flow, Quantity, sorted};
use crate::packets::BIN;
use paceline_units::{Time, TimeDelta};

/// The time before and after an episode in which queues count. Assumed: seconds, so that a queue has enough samples.
const BEFORE: TimeDelta = TimeDelta::from_secs(8);
const AFTER: TimeDelta = TimeDelta::from_secs(4);
/// Assumed: statistics have few samples.
const AFTER_COARSE: TimeDelta = TimeDelta::from_secs(6);
/// Of a longer episode, only the beginning is examined. Assumed: what lowers a rate is there when it begins to fall, and the work grows
/// with the square of this.
const EXAMINED: TimeDelta = TimeDelta::from_secs(20);

/// A rise of the lowest delay above this is a queue, s: see `causes::QUEUE` and `causes::QUEUE_RTT`.
const QUEUE: f64 = 0.012;
const QUEUE_RTT: f64 = 0.02;

/// Intervals of packet series whose mean is a sample. Assumed: frames come every 33 ms, so that each sample has several.
const INTERVALS: usize = 5;
/// Samples of packets follow each other by one interval: so many contain intervals of both sides of a change.
const STRADDLING: usize = INTERVALS - 1;
/// Samples of statistics contain two intervals.
const STRADDLING_COARSE: usize = 1;
/// The share of the samples that is left out at each end. Assumed: the first and the last of a queue are partly without it.
const LEFT_OUT: f64 = 0.1;

/// Intervals of packet series, 4 s, in which the floor of the delays is looked for. A path has a floor to which the delays of many
/// intervals return; a queue that stands has none. Assumed: a controller drains its own queue once in that time.
const FLOOR: usize = 40;
/// Statistics do not say when a round-trip time was measured within an interval of 1 s: longer queues, and queues that grow or
/// drain faster than this, are left out. Assumed: half an interval, and a third.
const LONGEST: f64 = 0.5;
const STEEPEST: f64 = 0.3;

/// Returns the spread of what was carried while a queue stood, as a share of the most that was carried; `None` if the queue stood
/// too shortly. `base`: the delay without a queue, s.
pub fn spread(facts: &Facts<'_>, base: f64) -> Option<f64> {
    if facts.flow.get(Quantity::DelayLow).is_none() {
        let carried = by_round_trips(facts.flow, span(facts.episode, AFTER_COARSE), base)?;
        return spread_beside_change(&carried, STRADDLING_COARSE, 0.0);
    }
    let carried = by_packets(facts.flow, span(facts.episode, AFTER), base)?;
    spread_beside_change(&carried, STRADDLING, LEFT_OUT)
}

/// Returns the spread before and after the change that explains most of it: the capacity itself may have changed, once.
/// `straddling`: samples with both sides of a change.
fn spread_beside_change(carried: &[f64], straddling: usize, left_out: f64) -> Option<f64> {
    let splits = 1..carried.len().saturating_sub(straddling);
    let spread = |part: &[f64]| spread_of(part, left_out);
    splits.map(|at| spread(&carried[..at]).max(spread(&carried[at + straddling..]))).reduce(f64::min)
}

/// Returns the span in which queues count.
fn span(episode: &Episode, after: TimeDelta) -> (Time, Time) {
    (episode.start - BEFORE, episode.end.min(episode.start + EXAMINED) + after)
}

/// Returns by how much the values differ, as a share of the largest; `left_out`: the share of them that does not count at each end.
fn spread_of(values: &[f64], left_out: f64) -> f64 {
    let values = sorted(values.iter().copied());
    let left_out = (values.len() as f64 * left_out) as usize;
    1.0 - values[left_out] / values[values.len() - 1 - left_out].max(1.0)
}

/// With packets, what was carried is what arrived.
fn by_packets(flow: &Flow, (from, to): (Time, Time), base: f64) -> Option<Vec<f64>> {
    let [low, high, received] =
        [Quantity::DelayLow, Quantity::DelayHigh, Quantity::ReceivedRate].map(|quantity| flow.get(quantity));
    let (delay, high, received) = (low?.within(from, to), high?, received?);
    let carried = delay.windows(INTERVALS + 1).enumerate().filter_map(|(index, window)| {
        let (start, end) = (window[0].0, window[INTERVALS].0);
        let floor = floor(&delay[index..delay.len().min(index + FLOOR)]).map_or(base, |floor| floor.max(base));
        // A single packet of an interval may have waited for itself only, on a slow link.
        let stands = |(at, low): &(Time, f64)| low - floor >= QUEUE && high.at(*at).is_some_and(|high| high > *low);
        let stands = window.iter().all(stands) && end - start == BIN * INTERVALS as i64;
        stands.then(|| received.mean(start, end)).flatten()
    });
    Some(carried.collect())
}

/// With statistics, what was carried follows from what was sent: a queue grows by the part of it that was not carried.
fn by_round_trips(flow: &Flow, (from, to): (Time, Time), base: f64) -> Option<Vec<f64>> {
    let (rtt, sent) = (flow.get(Quantity::RoundTrip)?.within(from, to), flow.get(Quantity::SentRate)?);
    let carried = rtt.windows(2).filter_map(|pair| {
        let (start, end) = (pair[0].0, pair[1].0);
        let stands = pair.iter().all(|(_, value)| (QUEUE_RTT..=LONGEST).contains(&(value - base)));
        let growth = (pair[1].1 - pair[0].1) / (end - start).as_secs_f64();
        // The round-trip time of a report is that of some packet of the second before it.
        let mean = sent.mean(start - TimeDelta::from_secs(1), end)?;
        (stands && growth.abs() <= STEEPEST).then_some(mean / (1.0 + growth))
    });
    Some(carried.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_flow::{drop_between, packets};

    /// The spread for a drop at 30 s of a flow with these delays and arrivals in a span, s.
    fn spread_in(span: (f64, f64), delay: &dyn Fn(f64) -> f64, received: &dyn Fn(f64) -> f64) -> Option<f64> {
        let during = |at: f64| (span.0..span.1).contains(&at);
        let flow = packets(&[
            (Quantity::ReceivedRate, &|at| if during(at) { received(at) } else { 2e6 }),
            (Quantity::DelayLow, &|at| if during(at) { delay(at) } else { 0.0 }),
            (Quantity::DelayHigh, &|at| 0.005 + if during(at) { delay(at) } else { 0.0 }),
        ]);
        spread(&Facts { flow: &flow, episode: &drop_between(30.0, 30.5) }, 0.0)
    }

    fn saw(at: f64) -> f64 {
        0.1 + 0.02 * (at % 5.0)
    }

    #[test]
    fn a_queue_of_one_flow_is_carried_at_one_rate() {
        let own = spread_in((25.0, 35.0), &saw, &|_| 1e6).expect("a queue");
        assert!(own < 0.01, "{own}");
        let changed = spread_in((25.0, 35.0), &saw, &|at| if at < 30.0 { 1.2e6 } else { 0.6e6 }).expect("a queue");
        assert!(changed < 0.01, "the capacity changed once: {changed}");
        let shared = spread_in((25.0, 35.0), &saw, &|at| if at % 4.0 < 2.0 { 1.2e6 } else { 0.6e6 }).expect("a queue");
        assert!((shared - 0.5).abs() < 0.01, "{shared}");
    }

    #[test]
    fn a_capacity_that_changes_once_in_a_short_queue_is_no_spread() {
        for tenths in 8..=12 {
            let side = 0.1 * f64::from(tenths);
            let span = (30.0 - side - 0.001, 30.0 + side - 0.001);
            let changed = spread_in(span, &saw, &|at| if at < 29.999 { 1.2e6 } else { 0.6e6 }).expect("a queue");
            assert!(changed < 0.01, "{side} s on each side: {changed}");
            let shared = spread_in(span, &saw, &|at| if (at - 29.999).abs() < 0.45 { 0.6e6 } else { 1.2e6 });
            assert!(shared.expect("a queue") > 0.25, "{side} s on each side, changed twice: {shared:?}");
        }
    }

    #[test]
    fn a_path_that_became_longer_is_no_queue() {
        assert_eq!(spread_in((25.0, 35.0), &|_| 0.1, &|at| if at < 30.0 { 1.2e6 } else { 0.6e6 }), None);
        assert_eq!(spread_in((25.0, 35.0), &|_| 0.0, &|_| 1e6), None);
    }

    #[test]
    fn the_examined_span_is_bounded() {
        let length = |end| {
            let (from, to) = span(&drop_between(30.0, end), AFTER);
            (to - from).as_secs_f64()
        };
        assert_eq!(length(31.0), 13.0);
        assert_eq!(length(3600.0), 32.0);
    }
}
