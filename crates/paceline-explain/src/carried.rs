//! What a bottleneck carried of the flow while a queue stood.
//!
//! A bottleneck that serves one flow carries its capacity while a queue stands, whatever is sent. If it carries now more and now
//! less of the flow, although the queue stands, it serves other packets in between.

use crate::facts::Facts;
use crate::model::{Flow, Quantity};
use crate::packets::BIN;
use paceline_units::{Time, TimeDelta};

/// The time before and after an episode in which queues count. Ours.
const BEFORE: TimeDelta = TimeDelta::from_secs(8);
const AFTER: TimeDelta = TimeDelta::from_secs(4);
/// Statistics have few samples.
const AFTER_COARSE: TimeDelta = TimeDelta::from_secs(6);

/// A rise of the lowest delay above this is a queue, s: see `causes::QUEUE` and `causes::QUEUE_RTT`.
const QUEUE: f64 = 0.012;
const QUEUE_RTT: f64 = 0.02;

/// Intervals of packet series whose mean is a sample. Ours: frames come every 33 ms, so that each sample has several.
const INTERVALS: usize = 5;
/// Samples without which a spread says nothing. Ours.
const SAMPLES: usize = 4;
const SAMPLES_COARSE: usize = 3;
/// The share of the samples that is left out at either end. Ours: the first and the last of a queue are partly without it.
const LEFT_OUT: f64 = 0.1;

/// The seconds in which the floor of the delays is looked for. A path has a floor to which the delays of many intervals return; a
/// queue that stands has none. Ours.
const FLOOR: usize = 40;
const FLOOR_SHARES: (f64, f64) = (0.03, 0.2);
const FLOOR_SPREAD: f64 = 0.004;

/// Statistics do not say when a round-trip time was measured within an interval of 1 s: longer queues, and queues that grow or
/// drain faster than this, are left out. Ours: half an interval, and a third.
const LONGEST: f64 = 0.5;
const STEEPEST: f64 = 0.3;

/// Returns the spread of what was carried while a queue stood, as a share of the most that was carried; `None` if the queue stood
/// too shortly. `base`: the delay without a queue, s.
pub fn spread(facts: &Facts<'_>, base: f64) -> Option<f64> {
    let span = |after| (facts.episode.start - BEFORE, facts.episode.end + after);
    if facts.flow.get(Quantity::DelayLow).is_none() {
        let carried = by_round_trips(facts.flow, span(AFTER_COARSE), base)?;
        return (carried.len() >= SAMPLES_COARSE).then(|| spread_of(&carried, 0.0));
    }
    let carried = by_packets(facts.flow, span(AFTER), base)?;
    if carried.len() < SAMPLES {
        return None;
    }
    // The capacity itself may have changed, once.
    let parts = (SAMPLES..=carried.len().saturating_sub(SAMPLES)).map(|split| carried.split_at(split));
    let spread = |part: &[f64]| spread_of(part, LEFT_OUT);
    Some(parts.map(|(first, second)| spread(first).max(spread(second))).fold(spread(&carried), f64::min))
}

/// Returns by how much the values differ, as a share of the largest; `left_out`: the share of them that does not count at either end.
fn spread_of(values: &[f64], left_out: f64) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let at = |share: f64| values[((values.len() - 1) as f64 * share) as usize];
    1.0 - at(left_out) / at(1.0 - left_out).max(1.0)
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

/// Returns the delay of the path, if these delays return to it.
pub fn floor(delay: &[(Time, f64)]) -> Option<f64> {
    let mut values: Vec<f64> = delay.iter().map(|(_, value)| *value).collect();
    values.sort_by(f64::total_cmp);
    let at = |share: f64| values.get((values.len() as f64 * share) as usize).copied();
    let (least, near) = (at(FLOOR_SHARES.0)?, at(FLOOR_SHARES.1)?);
    (near - least <= FLOOR_SPREAD).then_some(least)
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
    use crate::episodes::{Episode, EpisodeKind};
    use crate::model::{Confidence, Origin, Series};

    /// A drop at 30 s of a flow with these delays and arrivals from 25 s to 35 s.
    fn spread_for(delay: &dyn Fn(f64) -> f64, received: &dyn Fn(f64) -> f64) -> Option<f64> {
        let mut flow = Flow { span: (Time::ZERO, Time::from_secs(60)), ..Flow::default() };
        let mut add = |quantity, value: &dyn Fn(f64) -> f64| {
            let mut series = Series::new(Origin::BothEnds, Confidence::Exact);
            (0..600).map(|index| 0.1 * f64::from(index)).for_each(|at| series.push(Time::from_secs_f64(at), value(at)));
            flow.series.insert(quantity, series);
        };
        let during = |at: f64| (25.0..35.0).contains(&at);
        add(Quantity::ReceivedRate, &|at| if during(at) { received(at) } else { 2e6 });
        add(Quantity::DelayLow, &|at| if during(at) { delay(at) } else { 0.0 });
        add(Quantity::DelayHigh, &|at| 0.005 + if during(at) { delay(at) } else { 0.0 });
        let (start, end) = (Time::from_secs(30), Time::from_secs_f64(30.5));
        let episode = Episode { kind: EpisodeKind::Drop, start, end, from: 2e6, to: 1e6 };
        spread(&Facts { flow: &flow, episode: &episode }, 0.0)
    }

    #[test]
    fn a_queue_of_one_flow_is_carried_at_one_rate() {
        let saw = |at: f64| 0.1 + 0.02 * (at % 5.0);
        let own = spread_for(&saw, &|_| 1e6).expect("a queue");
        assert!(own < 0.01, "{own}");
        let changed = spread_for(&saw, &|at| if at < 30.0 { 1.2e6 } else { 0.6e6 }).expect("a queue");
        assert!(changed < 0.01, "the capacity changed once: {changed}");
        let shared = spread_for(&saw, &|at| if at % 4.0 < 2.0 { 1.2e6 } else { 0.6e6 }).expect("a queue");
        assert!((shared - 0.5).abs() < 0.01, "{shared}");
    }

    #[test]
    fn a_path_that_became_longer_is_no_queue() {
        assert_eq!(spread_for(&|_| 0.1, &|at| if at < 30.0 { 1.2e6 } else { 0.6e6 }), None);
        assert_eq!(spread_for(&|_| 0.0, &|_| 1e6), None);
    }
}
