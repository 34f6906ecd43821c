// SPDX-License-Identifier: MIT OR Apache-2.0
//! The path of a flow as a scenario, as far as it was observed.
//!
//! Where a queue stood, what arrived is the capacity. Elsewhere it is only a lower bound: the path carried at least what arrived.
//! Losses beside a queue are those of the queue, all others are of the path.

use crate::model::{Flow, Quantity};
use paceline_units::{Time, TimeDelta};

/// Steps of the scenario. Assumed.
const STEP: TimeDelta = TimeDelta::from_secs(1);
/// A delay above the smallest that counts as a queue, s. Assumed, twice that of the rules.
const QUEUE_S: f64 = 0.025;
/// What an unlimited path carries in the scenario, as a multiple of the highest rate of the call. Assumed.
const UNLIMITED: f64 = 5.0;
/// The least capacity, bit/s: a step without arrivals is an outage.
const LEAST_BPS: f64 = 1.0;

/// How the capacity is filled in where it was not the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// By what arrived: the path carried no more.
    AsCarried,
    /// By five times the highest rate of the call: the path was free.
    Free,
}

/// What was observed of a path.
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    /// Start of each step, s, and capacity, bit/s.
    pub capacity: Vec<(f64, f64)>,
    /// The share of steps in which the capacity was the limit.
    pub known: f64,
    /// Start of each step, s, and share of packets lost without a queue.
    pub loss: Vec<(f64, f64)>,
    /// Round-trip time without queues, s; `None` if the input has none.
    pub rtt_s: Option<f64>,
    /// The longest queue, s.
    pub queue_s: f64,
    /// The first and the highest rate of the call, bit/s.
    pub start_bps: f64,
    /// See [`start_bps`](Self::start_bps).
    pub highest_bps: f64,
    pub duration_s: f64,
}

/// Returns what is known of the path of a flow, or `None` if its input has neither delays nor arrivals.
pub fn observe(flow: &Flow, unknown: Unknown) -> Option<Path> {
    let received = flow.get(Quantity::ReceivedRate).or(flow.get(Quantity::SentRate))?;
    let (begin, end) = flow.span;
    let delay = flow.get(Quantity::DelayLow);
    let rtt = flow.get(Quantity::RoundTrip);
    let rtt_least = rtt.and_then(|rtt| rtt.quantile(begin, Time::MAX, 0.05));
    let sent = flow.get(Quantity::SentRate).unwrap_or(received);
    let smoothed: Vec<f64> = steps(begin, end).map(|at| sent.mean(at, at + STEP).unwrap_or(0.0)).collect();
    let highest = smoothed.iter().copied().fold(0.0, f64::max);
    if highest <= 0.0 {
        return None;
    }
    let (mut capacity, mut loss, mut known, mut count, mut queue_s) = (Vec::new(), Vec::new(), 0.0, 0.0, 0.0f64);
    for at in steps(begin, end) {
        let seconds = ((at - begin).as_secs_f64() * 1e3).round() / 1e3;
        let queue = match (delay, rtt, rtt_least) {
            (Some(delay), _, _) => delay.quantile(at, at + STEP, 0.5).unwrap_or(0.0),
            (None, Some(rtt), Some(least)) => rtt.at(at + STEP).map_or(0.0, |rtt| rtt - least),
            _ => 0.0,
        };
        let carried = received.mean(at, at + STEP).unwrap_or(0.0);
        let is_gap = carried == 0.0 && sent.mean(at, at + STEP).unwrap_or(0.0) > 0.0;
        let is_limit = queue >= QUEUE_S || is_gap;
        let lost = flow.losses(at, at + STEP).filter(|(_, sent)| *sent > 0.0).map_or(0.0, |(lost, sent)| lost / sent);
        count += 1.0;
        known += f64::from(u8::from(is_limit));
        queue_s = queue_s.max(queue);
        let value = match (is_limit, unknown) {
            (true, _) | (false, Unknown::AsCarried) => carried.max(LEAST_BPS),
            (false, Unknown::Free) => UNLIMITED * highest,
        };
        capacity.push((seconds, value));
        loss.push((seconds, if is_limit { 0.0 } else { lost.min(1.0) }));
    }
    Some(Path {
        capacity,
        known: if count > 0.0 { known / count } else { 0.0 },
        loss,
        rtt_s: rtt_least,
        queue_s,
        start_bps: smoothed.first().copied().unwrap_or(highest).max(100e3),
        highest_bps: highest,
        duration_s: ((end - begin).as_secs_f64() * 1e3).round() / 1e3,
    })
}

fn steps(begin: Time, end: Time) -> impl Iterator<Item = Time> {
    let count = ((end - begin).as_nanos() / STEP.as_nanos()).clamp(0, 100_000);
    (0..count).map(move |index| begin + STEP * index)
}

impl Path {
    /// Returns a scenario file in which a call with this controller meets the path.
    pub fn scenario(&self, controller: &str) -> String {
        let list = |steps: &[(f64, f64)], value: &dyn Fn(f64) -> String| {
            let mut last = None;
            let steps = steps.iter().filter_map(|(at, v)| {
                let text = value(*v);
                let changed = last.as_ref() != Some(&text);
                last = Some(text.clone());
                changed.then(|| format!("[\"{at} s\", \"{text}\"]"))
            });
            let lines: Vec<String> = steps.collect::<Vec<_>>().chunks(4).map(|line| line.join(", ")).collect();
            format!("[{}]", lines.join(",\n    "))
        };
        let capacity = list(&self.capacity, &|bps| format!("{bps:.0} bps"));
        let loss = list(&self.loss, &|share| format!("{:.2} %", share * 100.0));
        let rtt_ms = self.rtt_s.unwrap_or(DEFAULT_RTT_S) * 1e3;
        let queue_ms = (self.queue_s * 1e3).clamp(100.0, 5000.0);
        format!(
            "id = \"observed-path\"\ntitle = \"An observed path\"\nduration = \"{} s\"\n\n[path]\nrtt = \"{rtt_ms:.1} ms\"\n\n\
             [path.forward]\ncapacity = {capacity}\nqueue = {{ limit = \"{queue_ms:.0} ms\" }}\nloss = {loss}\n\n\
             [[flow]]\nid = \"call\"\ncontroller = \"{controller}\"\nstart_rate = \"{:.0} bps\"\nencoder = {{ max = \"{:.0} bps\" }}\n",
            self.duration_s,
            self.start_bps.min(self.highest_bps),
            self.highest_bps,
        )
    }
}

/// The round-trip time of the scenario if the input has none, s. Assumed.
pub const DEFAULT_RTT_S: f64 = 0.05;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Confidence, Origin, Series};

    #[test]
    fn a_queue_makes_the_capacity_known_and_losses_those_of_the_queue() {
        let mut flow = Flow { span: (Time::ZERO, Time::from_secs(4)), ..Flow::default() };
        let mut add = |quantity, values: [f64; 4]| {
            let points = (0..).map(Time::from_secs).zip(values);
            flow.series.insert(quantity, Series::of(Origin::BothEnds, Confidence::Exact, points));
        };
        add(Quantity::SentRate, [1e6, 1e6, 1e6, 1e6]);
        add(Quantity::ReceivedRate, [1e6, 5e5, 0.0, 9e5]);
        add(Quantity::DelayLow, [0.0, 0.2, 0.0, 0.0]);
        add(Quantity::PacketsSent, [100.0; 4]);
        add(Quantity::PacketsLost, [0.0, 50.0, 100.0, 10.0]);
        let path = observe(&flow, Unknown::Free).unwrap();
        assert_eq!(path.capacity, [(0.0, 5e6), (1.0, 5e5), (2.0, 1.0), (3.0, 5e6)]);
        assert_eq!(path.loss, [(0.0, 0.0), (1.0, 0.0), (2.0, 0.0), (3.0, 0.1)]);
        assert_eq!((path.known, path.queue_s), (0.5, 0.2));
        assert_eq!(observe(&flow, Unknown::AsCarried).unwrap().capacity[3], (3.0, 9e5));
        assert!(path.scenario("googcc").contains("[\"1 s\", \"500000 bps\"]"), "{}", path.scenario("googcc"));
    }
}
