// SPDX-License-Identifier: MIT OR Apache-2.0
//! PIE (RFC 8033): drops arriving packets with a probability that a controller updates every 15 ms, so that the queue delay
//! approaches a target.

use super::fifo::Fifo;
use super::single::{Aqm, Single};
use super::update_timer::UpdateTimer;
use super::{Descriptor, Drops, LinkRate, QueueEntry, QueuedPacket};
use crate::parameter::{Parameter, ParameterKind};
use paceline_units::{DataSize, Ecn, RandomStream, Time, TimeDelta};

/// MEAN_PKTSIZE, to which RFC 8033 gives no value; assumed as in ns-3.
const MEAN_PACKET: DataSize = DataSize::from_bytes(1000);
/// Below this probability nothing is dropped while the delay was low: RFC 8033, section 4.1.
const SAFE_PROBABILITY: f64 = 0.2;
/// Decay of the probability at an update while there is no delay: RFC 8033, section 4.2.
const DECAY: f64 = 0.98;
/// Sums of probabilities between which a drop is random: RFC 8033, section 5.4.
const DERANDOMIZED: (f64, f64) = (0.85, 8.5);
/// From this probability on, an update adds at most [`STEP_MAX`]: RFC 8033, section 5.5.
const STEP_CAPPED_FROM: f64 = 0.1;
/// RFC 8033, section 5.5.
const STEP_MAX: f64 = 0.02;

pub(super) const ENTRY: QueueEntry = QueueEntry {
    name: "pie",
    summary: "PIE, RFC 8033: drops or marks arriving packets with a probability that keeps the delay near a target",
    limit: QueueEntry::limit(
        "1000 packets",
        "the level above which an arriving packet is dropped in any case (Linux `tc pie`)",
    ),
    parameters: &[
        Parameter::new("target", ParameterKind::Time(TimeDelta::from_nanos(1), TimeDelta::from_secs(10)), "15 ms")
            .about("the delay that the controller aims at (RFC 8033, section 4.1, QDELAY_REF)"),
        Parameter::new("update", ParameterKind::Time(TimeDelta::from_millis(1), TimeDelta::from_secs(1)), "15 ms")
            .about("the interval of updates of the probability (RFC 8033, section 4.2, T_UPDATE)"),
        Parameter::new("alpha", ParameterKind::Number(0.0, 100.0), "0.125")
            .about("the gain of the deviation from the target, per second (RFC 8033, section 4.2)"),
        Parameter::new("beta", ParameterKind::Number(0.0, 100.0), "1.25")
            .about("the gain of the growth of the delay, per second (RFC 8033, section 4.2)"),
        Parameter::new("max_burst", ParameterKind::Time(TimeDelta::ZERO, TimeDelta::from_secs(10)), "150 ms")
            .about("the time after a pause for which nothing is dropped (RFC 8033, section 4.4)"),
        Parameter::new("ecn", ParameterKind::Flag, "false").about(
            "whether an ECN-capable packet is marked in place of being dropped while the probability is below \
             `mark_below` (RFC 8033, section 5.1)",
        ),
        Parameter::new("mark_below", ParameterKind::Number(0.0, 1.0), "0.1").about(
            "the probability from which ECN-capable packets, too, are dropped (RFC 8033, section 5.1, `mark_ecnth`)",
        ),
        Parameter::new("derandomize", ParameterKind::Flag, "false")
            .about("whether drops are spread evenly (RFC 8033, section 5.4, optional)"),
        Parameter::new("cap_step", ParameterKind::Flag, "false").about(
            "whether an update adds at most 0.02 to a probability of 0.1 and more (RFC 8033, section 5.5, optional)",
        ),
    ],
    build: |setup| {
        let values = setup.values;
        let pie = Pie {
            law: Law {
                target: values.time("target").as_secs_f64(),
                alpha: values.number("alpha"),
                beta: values.number("beta"),
                caps_step: values.flag("cap_step"),
            },
            max_burst: values.time("max_burst"),
            mark_below: if values.flag("ecn") { values.number("mark_below") } else { 0.0 },
            derandomizes: values.flag("derandomize"),
            timer: UpdateTimer::new(values.time("update")),
            update: values.time("update"),
            random: setup.random(),
            probability: 0.0,
            accumulated: 0.0,
            delay: 0.0,
            old_delay: 0.0,
            burst_allowance: values.time("max_burst"),
        };
        Box::new(Single::with(setup.limit, pie))
    },
};

/// The controller of the drop probability.
#[derive(Clone, Copy, Debug)]
struct Law {
    /// In s.
    target: f64,
    alpha: f64,
    beta: f64,
    caps_step: bool,
}

impl Law {
    /// Returns the probability after an update (RFC 8033, section 4.2 and appendix A, `calculate_drop_prob`). Delays are in s.
    fn updated(&self, probability: f64, delay: f64, old_delay: f64) -> f64 {
        let mut step = self.alpha * (delay - self.target) + self.beta * (delay - old_delay);
        step /= scale(probability);
        if self.caps_step && probability >= STEP_CAPPED_FROM {
            step = step.min(STEP_MAX);
        }
        let mut probability = probability + step;
        if delay == 0.0 && old_delay == 0.0 {
            probability *= DECAY;
        }
        probability.clamp(0.0, 1.0)
    }
}

/// Returns the divisor of an update: the smaller the probability, the smaller its steps (RFC 8033, section 4.2).
fn scale(probability: f64) -> f64 {
    const SCALES: [(f64, f64); 6] =
        [(0.000_001, 2048.0), (0.000_01, 512.0), (0.000_1, 128.0), (0.001, 32.0), (0.01, 8.0), (0.1, 2.0)];
    SCALES.iter().find(|(below, _)| probability < *below).map_or(1.0, |(_, scale)| *scale)
}

struct Pie {
    law: Law,
    max_burst: TimeDelta,
    /// ECN-capable packets are marked while the probability is below this.
    mark_below: f64,
    derandomizes: bool,
    timer: UpdateTimer,
    update: TimeDelta,
    random: RandomStream,
    probability: f64,
    /// Sum of the probabilities since the last drop, `accu_prob`.
    accumulated: f64,
    /// Delay of the last packet that left, zero if it left the queue empty; and the one at the last update. In s.
    delay: f64,
    old_delay: f64,
    burst_allowance: TimeDelta,
}

impl Pie {
    /// Makes the updates that are due by `now`.
    #[inline]
    fn update_until(&mut self, now: Time) {
        while self.timer.due(now).is_some() {
            let is_at_rest = self.probability == 0.0 && self.delay == 0.0 && self.old_delay == 0.0;
            self.probability = self.law.updated(self.probability, self.delay, self.old_delay);
            self.old_delay = self.delay;
            self.burst_allowance = (self.burst_allowance - self.update).max(TimeDelta::ZERO);
            if is_at_rest && self.burst_allowance == TimeDelta::ZERO {
                return self.timer.skip(now);
            }
        }
    }

    /// Returns whether the arriving packet is dropped or marked (RFC 8033, section 4.1 and appendix A, `drop_early`).
    fn drops_early(&mut self, queue: &Fifo) -> bool {
        let was_low = self.old_delay < self.law.target / 2.0;
        if (was_low && self.probability < SAFE_PROBABILITY) || queue.bytes() <= MEAN_PACKET + MEAN_PACKET {
            return false;
        }
        if self.derandomizes {
            // Section 5.4.
            if self.probability == 0.0 {
                self.accumulated = 0.0;
            }
            self.accumulated += self.probability;
            if self.accumulated < DERANDOMIZED.0 {
                return false;
            }
            if self.accumulated >= DERANDOMIZED.1 {
                self.accumulated = 0.0;
                return true;
            }
        }
        let is_chosen = self.random.chance(self.probability);
        if is_chosen {
            self.accumulated = 0.0;
        }
        is_chosen
    }
}

impl Aqm for Pie {
    fn admits(&mut self, now: Time, _: LinkRate<'_>, queue: &Fifo, packet: &mut Descriptor) -> bool {
        self.update_until(now);
        let half = self.law.target / 2.0;
        if self.probability == 0.0 && self.delay < half && self.old_delay < half {
            self.burst_allowance = self.max_burst;
        }
        if self.burst_allowance == TimeDelta::ZERO && self.drops_early(queue) {
            if !packet.ecn.is_capable() || self.probability >= self.mark_below {
                return false;
            }
            packet.ecn = Ecn::Ce;
        }
        true
    }

    fn next(&mut self, now: Time, _: LinkRate<'_>, queue: &mut Fifo, _: &mut Drops) -> Option<QueuedPacket> {
        self.update_until(now);
        let head = queue.pop()?;
        self.delay = if queue.is_empty() { 0.0 } else { (now - head.arrived).as_secs_f64() };
        Some(head)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::queue::testing::{arrive, build, leave, offer, packet};
    use crate::parameter::Value;

    #[test]
    fn probability_follows_the_vectors() {
        let law = Law { target: 0.015, alpha: 0.125, beta: 1.25, caps_step: false };
        let cases = [
            (0.0, 0.030, 0.010, 1.312_255_859_37e-5),
            (0.005, 0.030, 0.030, 0.005_234_375),
            (0.05, 0.040, 0.020, 0.064_062_5),
            (0.2, 0.100, 0.015, 0.316_875),
            (0.2, 0.0, 0.0, 0.194_162_5),
            (0.01, 0.010, 0.040, 0.0),
        ];
        for (probability, delay, old, expected) in cases {
            let updated = law.updated(probability, delay, old);
            assert!((updated - expected).abs() <= 1e-9 * expected, "{probability}, {delay}: {updated}");
        }
        let capped = Law { caps_step: true, ..law };
        assert!((capped.updated(0.2, 0.100, 0.015) - 0.22).abs() < 1e-12);
        assert!((capped.updated(0.05, 0.040, 0.020) - 0.064_062_5).abs() < 1e-12, "not below 0.1");
    }

    #[test]
    fn steps_are_smaller_at_small_probabilities() {
        let at = [0.0, 0.000_001, 0.000_01, 0.000_1, 0.001, 0.01, 0.1, 1.0];
        assert_eq!(at.map(scale), [2048.0, 512.0, 128.0, 32.0, 8.0, 2.0, 1.0, 1.0]);
    }

    /// Returns the drops, marks and mean delay in ms of the last 30 s of 60 s, with a packet every `every` µs.
    fn run(given: &[(&str, Value)], ecn: Ecn, every: i64) -> (u32, u32, f64) {
        let counts = offer(&mut *build(&ENTRY, 1000, given), &[(ecn, every)], (30, 60));
        (counts[0].dropped, counts[0].marked, counts[0].mean_delay())
    }

    #[test]
    fn drops_the_excess_and_keeps_the_delay_at_the_target() {
        // 1.25 packets per ms, of which 1 leaves: 7500 of 37500 in 30 s.
        let (dropped, marked, delay) = run(&[], Ecn::NotEct, 800);
        assert!((7_400..7_600).contains(&dropped) && marked == 0, "{dropped}, {marked}");
        assert!((12.0..18.0).contains(&delay), "{delay}");
        let target = ("target", Value::Time(TimeDelta::from_millis(40)));
        let (_, _, delay) = run(&[target], Ecn::NotEct, 800);
        assert!((36.0..44.0).contains(&delay), "{delay}");
        let derandomized = ("derandomize", Value::Flag(true));
        let (dropped, _, delay) = run(&[derandomized], Ecn::NotEct, 800);
        assert!((7_400..7_600).contains(&dropped) && (12.0..18.0).contains(&delay), "{dropped}, {delay}");
        let (dropped, _, delay) = run(&[], Ecn::NotEct, 1250);
        assert!(dropped == 0 && delay < 1.0, "below the capacity: {dropped}, {delay}");
    }

    #[test]
    fn marks_below_the_threshold_and_drops_above_it() {
        let ecn = ("ecn", Value::Flag(true));
        // Of 31,579 packets 30,000 leave, so 1579 are dropped. Marks do not reduce the excess, so that the probability
        // grows to 0.1, from where packets are dropped. It stays near that value, half of the time below it, so about as
        // many are marked.
        let (dropped, marked, _) = run(&[ecn], Ecn::Ect0, 950);
        assert!((1_500..1_660).contains(&dropped) && (1_000..2_400).contains(&marked), "{dropped}, {marked}");
        let (dropped, marked, _) = run(&[ecn, ("mark_below", Value::Number(1.0))], Ecn::Ect0, 950);
        // An unresponsive flow fills the queue, which drops the same number; the probability is 1 but for its first seconds.
        assert!((1_500..1_660).contains(&dropped) && (25_000..=30_000).contains(&marked), "{dropped}, {marked}");
        let (dropped, marked, _) = run(&[ecn], Ecn::NotEct, 950);
        assert!((1_400..1_800).contains(&dropped) && marked == 0, "{dropped}, {marked}");
    }

    #[test]
    fn a_burst_after_a_pause_is_not_dropped() {
        let mut queue = build(&ENTRY, 1000, &[]);
        let first = (0..2000).find(|ms| {
            let now = Time::from_millis(*ms);
            let dropped = arrive(&mut *queue, now, [packet(0, Ecn::NotEct); 2]);
            leave(&mut *queue, now, 1);
            !dropped.is_empty()
        });
        // The delay exceeds half of the target after about 15 ms; the burst allowance ends 150 ms later.
        assert!(first.is_some_and(|ms| (150..300).contains(&ms)), "{first:?}");
    }
}
