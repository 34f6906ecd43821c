// SPDX-License-Identifier: MIT OR Apache-2.0
//! RED, random early detection (RFC 2309, section 3; Floyd and Jacobson 1993): drops or marks arriving packets with a
//! probability that grows with the averaged length of the queue.
//!
//! RFC 2309 gives the principle. The formulas and defaults are those of ns-3 (`red-queue-disc`), which are of Floyd and
//! Jacobson, with the gentle mode and, as an option, adaptive RED (Floyd, Gummadi and Shenker 2001).

use super::fifo::Fifo;
use super::single::{Aqm, Single};
use super::{Descriptor, Drops, LinkRate, QueueEntry, QueuedPacket};
use crate::parameter::{Parameter, ParameterKind};
use paceline_units::{DataSize, Ecn, RandomStream, Rate, Time, TimeDelta};

/// Interval of adaptations: Floyd, Gummadi and Shenker 2001, section 4.
const ADAPT_EVERY: TimeDelta = TimeDelta::from_millis(500);
/// Bounds of an adapted probability: ibid.
const ADAPTED: (f64, f64) = (0.01, 0.5);
/// Decrease of an adapted probability: ibid.
const ADAPT_DECREASE: f64 = 0.9;
/// Distance from both thresholds, relative to that between them, to which the average is steered: ibid.
const ADAPT_MARGIN: f64 = 0.4;

pub(super) const ENTRY: QueueEntry = QueueEntry {
    name: "red",
    summary: "RED, RFC 2309: drops or marks arriving packets with a probability that grows with the averaged queue",
    limit: QueueEntry::limit(
        "25 packets",
        "the level above which an arriving packet is dropped in any case (ns-3, `MaxSize`)",
    ),
    parameters: &[
        Parameter::new("min_threshold", ParameterKind::Number(0.0, 1e6), "5")
            .about("the average in packets below which nothing is dropped (ns-3, `MinTh`)"),
        Parameter::new("max_threshold", ParameterKind::Number(0.0, 1e6), "15").about(
            "the average in packets at which the probability is `max_probability`; at twice this, without `gentle` at \
             once, every packet is dropped (ns-3, `MaxTh`)",
        ),
        Parameter::new("weight", ParameterKind::Number(1e-9, 1.0), "0.002")
            .about("the weight of an arrival in the average (ns-3, `QW`)"),
        Parameter::new("max_probability", ParameterKind::Number(0.0, 1.0), "0.02")
            .about("the probability at `max_threshold` (ns-3, 1 / `LInterm`)"),
        Parameter::new("gentle", ParameterKind::Flag, "true").about(
            "whether the probability grows from `max_probability` to 1 between `max_threshold` and twice this (ns-3, \
             `Gentle`)",
        ),
        Parameter::new("wait", ParameterKind::Flag, "true")
            .about("whether drops are at least an inverse probability of packets apart (ns-3, `Wait`)"),
        Parameter::new("adaptive", ParameterKind::Flag, "false").about(
            "whether `max_probability` adapts to keep the average between the thresholds (Floyd, Gummadi and Shenker \
             2001)",
        ),
        Parameter::new(
            "mean_packet",
            ParameterKind::Size(DataSize::from_bytes(1), DataSize::from_bytes(65_535)),
            "500 B",
        )
        .about("the size by which an idle time becomes a number of packets (ns-3, `MeanPktSize`)"),
        Parameter::new("ecn", ParameterKind::Flag, "false").about(
            "whether an ECN-capable packet is marked in place of a random drop; above the range of the thresholds it \
             is dropped (ns-3, `UseEcn`, `UseHardDrop`)",
        ),
    ],
    build: |setup| {
        let values = setup.values;
        let red = Red {
            curve: Curve {
                min: values.number("min_threshold"),
                // With equal thresholds the probability is a step.
                max: values.number("max_threshold").max(values.number("min_threshold")),
                max_probability: values.number("max_probability"),
                is_gentle: values.flag("gentle"),
            },
            weight: values.number("weight"),
            waits: values.flag("wait"),
            adapts: values.flag("adaptive"),
            adapted: Time::ZERO,
            mean_packet: values.size("mean_packet"),
            marks: values.flag("ecn"),
            random: setup.random(),
            average: 0.0,
            count: None,
            idle_since: Some(Time::ZERO),
        };
        Box::new(Single::with(setup.limit, red))
    },
};

/// The probability of a drop over the averaged length of the queue.
#[derive(Clone, Copy, Debug)]
struct Curve {
    /// Thresholds, packets.
    min: f64,
    max: f64,
    max_probability: f64,
    is_gentle: bool,
}

impl Curve {
    /// Returns whether every packet is dropped at this average.
    fn forces(&self, average: f64) -> bool {
        average >= if self.is_gentle { 2.0 * self.max } else { self.max }
    }

    /// Returns the probability p_b at this average, before [`spread`].
    fn probability(&self, average: f64) -> f64 {
        if average < self.min {
            0.0
        } else if self.forces(average) {
            1.0
        } else if average >= self.max {
            (1.0 - self.max_probability) / self.max * average + 2.0 * self.max_probability - 1.0
        } else {
            self.max_probability * (average - self.min) / (self.max - self.min)
        }
    }
}

/// Returns the average after an arrival at a queue of `length` packets, and `missed` packets that could have been sent while it
/// was idle.
fn averaged(average: f64, weight: f64, length: usize, missed: u64) -> f64 {
    let kept = if missed == 0 { 1.0 - weight } else { libm::pow(1.0 - weight, missed as f64 + 1.0) };
    kept * average + weight * length as f64
}

/// Returns the probability p_a of a drop, `count` packets after the last one, so that drops are spread evenly.
fn spread(probability: f64, count: f64, waits: bool) -> f64 {
    let product = count * probability;
    match waits {
        true if product < 1.0 => 0.0,
        true if product < 2.0 => probability / (2.0 - product),
        false if product < 1.0 => (probability / (1.0 - product)).min(1.0),
        _ => 1.0,
    }
}

/// Returns the maximum probability after an adaptation (Floyd, Gummadi and Shenker 2001, figure 1).
fn adapted(curve: &Curve, average: f64) -> f64 {
    let (probability, margin) = (curve.max_probability, ADAPT_MARGIN * (curve.max - curve.min));
    if average > curve.max - margin && probability < ADAPTED.1 {
        probability + (probability / 4.0).min(0.01)
    } else if average < curve.min + margin && probability > ADAPTED.0 {
        probability * ADAPT_DECREASE
    } else {
        probability
    }
}

struct Red {
    curve: Curve,
    weight: f64,
    waits: bool,
    adapts: bool,
    /// Time of the last adaptation.
    adapted: Time,
    mean_packet: DataSize,
    marks: bool,
    random: RandomStream,
    /// Averaged length in packets.
    average: f64,
    /// Packets since the last drop; `None` below the lower threshold.
    count: Option<u32>,
    /// The time from which nothing is sent; `None` while packets wait.
    idle_since: Option<Time>,
}

impl Red {
    fn update_average(&mut self, now: Time, rate: LinkRate<'_>, queue: &Fifo) {
        let idle = self.idle_since.take().map_or(TimeDelta::ZERO, |since| (now - since).max(TimeDelta::ZERO));
        let missed = if idle.is_positive() { packets_of(idle, rate.get(), self.mean_packet) } else { 0 };
        self.average = averaged(self.average, self.weight, queue.len(), missed);
        if self.adapts && now - self.adapted > ADAPT_EVERY {
            self.adapted = now;
            self.curve.max_probability = adapted(&self.curve, self.average);
        }
    }

    /// Decides on an arriving packet: whether it is to be dropped or marked, and whether it must not be marked.
    fn decide(&mut self, queue: &Fifo) -> (bool, bool) {
        if self.average < self.curve.min || queue.len() <= 1 {
            self.count = None;
            return (false, false);
        }
        if let Some(count) = &mut self.count {
            *count = count.saturating_add(1);
        }
        if self.curve.forces(self.average) {
            return (true, true);
        }
        let Some(count) = &mut self.count else {
            self.count = Some(1); // the first packet above the threshold
            return (false, false);
        };
        let probability = spread(self.curve.probability(self.average), f64::from(*count), self.waits);
        let is_chosen = self.random.chance(probability);
        if is_chosen {
            *count = 0;
        }
        (is_chosen, false)
    }
}

/// Returns the number of packets that a link could have sent in this time.
fn packets_of(time: TimeDelta, rate: Rate, packet: DataSize) -> u64 {
    // An unlimited link sends any number: the average is forgotten.
    (rate.as_bps_f64() / packet.as_bits() as f64 * time.as_secs_f64()) as u64
}

impl Aqm for Red {
    const CHECKS_LIMIT_FIRST: bool = false;

    fn admits(&mut self, now: Time, rate: LinkRate<'_>, queue: &Fifo, packet: &mut Descriptor) -> bool {
        self.update_average(now, rate, queue);
        let (is_chosen, is_forced) = self.decide(queue);
        if is_chosen {
            if is_forced || !self.marks || !packet.ecn.is_capable() {
                return false;
            }
            packet.ecn = Ecn::Ce;
        }
        true
    }

    fn next(&mut self, now: Time, rate: LinkRate<'_>, queue: &mut Fifo, _: &mut Drops) -> Option<QueuedPacket> {
        let head = queue.pop()?;
        if queue.is_empty() {
            let rate = rate.get();
            let service = if rate.is_zero() { TimeDelta::ZERO } else { head.packet.size / rate };
            self.idle_since = Some(now + service);
        }
        Some(head)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::Capacity;
    use crate::link::queue::testing::{build, packet};
    use crate::parameter::Value;

    const CURVE: Curve = Curve { min: 5.0, max: 15.0, max_probability: 0.02, is_gentle: true };

    #[test]
    fn probability_follows_the_vectors() {
        let averages = [4.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0];
        let gentle = [0.0, 0.0, 0.01, 0.02, 0.346_666_666_667, 0.673_333_333_333, 1.0];
        let classic = [0.0, 0.0, 0.01, 1.0, 1.0, 1.0, 1.0];
        for (index, average) in averages.into_iter().enumerate() {
            assert!((CURVE.probability(average) - gentle[index]).abs() < 1e-12, "{average}");
            let curve = Curve { is_gentle: false, ..CURVE };
            assert!((curve.probability(average) - classic[index]).abs() < 1e-12, "{average}");
        }
    }

    #[test]
    fn average_follows_the_vectors() {
        assert!((averaged(6.0, 0.002, 10, 0) - 6.008).abs() < 1e-12);
        assert!((averaged(6.0, 0.002, 0, 100) - 4.901_578_026_47).abs() < 1e-10);
        // 1 Mbit/s sends 250 packets of 500 bytes in a second.
        assert_eq!(packets_of(TimeDelta::from_secs(1), Rate::from_kbps(1000), DataSize::from_bytes(500)), 250);
    }

    #[test]
    fn drops_are_spread() {
        // With p_b = 0.01 and waiting: none before packet 100, a certain one at packet 200.
        let near = |value: f64, expected: f64| assert!((value - expected).abs() < 1e-9, "{value}, {expected}");
        for (count, expected) in [(1.0, 0.0), (99.0, 0.0), (150.0, 0.02), (199.0, 1.0), (200.0, 1.0)] {
            near(spread(0.01, count, true), expected);
        }
        for (count, expected) in [(0.0, 0.01), (50.0, 0.02), (100.0, 1.0)] {
            near(spread(0.01, count, false), expected);
        }
    }

    #[test]
    fn the_maximum_adapts_to_the_average() {
        let at = |average, max_probability| adapted(&Curve { max_probability, ..CURVE }, average);
        for (average, before, after) in [
            (11.1, 0.02, 0.025),
            (11.1, 0.2, 0.21),
            (10.0, 0.02, 0.02),
            (8.9, 0.02, 0.018),
            (8.9, 0.01, 0.01),
            (20.0, 0.5, 0.5),
        ] {
            assert!((at(average, before) - after).abs() < 1e-12, "{average}, {before}: {}", at(average, before));
        }
    }

    /// Offers `load` times what a link of 10 Mbit/s carries, with packets of 1250 bytes, for 60 s. Returns the share of packets
    /// that are dropped and marked, and the mean length of the queue.
    fn run(given: &[(&str, Value)], ecn: Ecn, load: f64) -> (f64, f64, f64) {
        let mut queue = build(&ENTRY, 200, given);
        let capacity = Capacity::constant(Rate::from_kbps(10_000));
        let (mut drops, mut offered, mut dropped, mut marked, mut length) = (Drops::default(), 0.0, 0.0, 0.0, 0.0);
        let mut credit = 0.0;
        for ms in 0..60_000 {
            let now = Time::from_millis(ms);
            let rate = LinkRate::at(Some(&capacity), now);
            credit += load;
            while credit >= 1.0 {
                credit -= 1.0;
                offered += 1.0;
                queue.enqueue(now, rate, packet(0, ecn), &mut drops);
                dropped += drops.drain().count() as f64;
            }
            length += queue.backlog().as_bytes() as f64 / 1250.0 / 60_000.0;
            if !queue.is_empty() {
                let left = queue.dequeue(now, rate, &mut drops).unwrap();
                marked += f64::from(u8::from(left.packet.ecn == Ecn::Ce));
            }
        }
        (dropped / offered, marked / offered, length)
    }

    #[test]
    fn the_excess_is_dropped_at_the_average_of_its_probability() {
        // Of 1.25 packets 0.25 must go: 20 %. In the gentle range p_b = 0.98 / 15 avg - 0.96; spread with waiting, drops are
        // 1.5 / p_b packets apart on average, so that p_b = 0.3 and avg = 19.3.
        let (dropped, marked, length) = run(&[], Ecn::NotEct, 1.25);
        assert!((0.19..0.21).contains(&dropped) && marked == 0.0, "{dropped}");
        assert!((18.0..21.0).contains(&length), "{length}");
        let (dropped, marked, _) = run(&[("ecn", Value::Flag(true))], Ecn::Ect0, 1.25);
        assert!(marked > 0.1 && dropped > 0.1, "marks, then forced drops at twice the threshold: {marked}, {dropped}");
        let (dropped, _, _) = run(&[("ecn", Value::Flag(true))], Ecn::NotEct, 1.25);
        assert!((0.19..0.21).contains(&dropped));
        let (dropped, _, length) = run(&[], Ecn::NotEct, 0.9);
        assert!(dropped == 0.0 && length < 2.0, "{dropped}, {length}");
        // Adaptation raises the maximum to 0.3, so that the average is between the thresholds.
        let (dropped, _, length) = run(&[("adaptive", Value::Flag(true))], Ecn::NotEct, 1.25);
        assert!((0.19..0.21).contains(&dropped) && (7.0..15.0).contains(&length), "{dropped}, {length}");
    }
}
