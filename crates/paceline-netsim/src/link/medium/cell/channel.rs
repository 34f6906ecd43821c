// SPDX-License-Identifier: MIT OR Apache-2.0
//! The radio channel of a cell: what part of the capacity a slot has.

use crate::parameter::Values;
use paceline_units::{RandomStream, Time, TimeDelta};

/// How often the fading changes. Assumed.
const STEP: TimeDelta = TimeDelta::from_millis(20);

/// Times during which the channel has only a part of its rate, at random: exponential times between them and of them.
#[derive(Clone, Debug)]
struct Episodes {
    /// Mean time from the end of one to the start of the next; zero for none.
    interval: TimeDelta,
    /// The length of one, in seconds, from a uniform value.
    length: fn(f64, TimeDelta) -> TimeDelta,
    mean: TimeDelta,
    /// The part of the rate during one.
    rest: f64,
    start: Time,
    end: Time,
}

fn exponential(unit: f64, mean: TimeDelta) -> TimeDelta {
    mean.scale(-libm::log1p(-unit))
}

impl Episodes {
    fn new(interval: TimeDelta, mean: TimeDelta, length: fn(f64, TimeDelta) -> TimeDelta, rest: f64) -> Self {
        let (start, end) = if interval == TimeDelta::ZERO { (Time::MAX, Time::MAX) } else { (Time::ZERO, Time::ZERO) };
        Self { interval, length, mean, rest, start, end }
    }

    /// Returns the part of the rate at `at`, which never decreases.
    fn part(&mut self, at: Time, random: &mut RandomStream) -> f64 {
        while self.end <= at {
            self.start = self.end + exponential(random.unit(), self.interval);
            self.end = self.start + (self.length)(random.unit(), self.mean);
        }
        if self.start <= at { self.rest } else { 1.0 }
    }
}

/// Fading, blockage and handovers.
#[derive(Clone, Debug)]
pub(super) struct Channel {
    /// Standard deviation of the logarithm of the rate.
    sigma: f64,
    /// What is left of the fading after a step.
    kept: f64,
    /// The fading, of standard deviation 1, and the time of its next step.
    level: f64,
    step: Time,
    blockage: Episodes,
    handover: Episodes,
    random: RandomStream,
}

impl Channel {
    pub fn new(values: &Values, mut random: RandomStream) -> Self {
        let cv = values.number("fading");
        let kept = libm::exp(-STEP.as_secs_f64() / values.time("fading_time").as_secs_f64());
        let blockage = (values.time("blockage_interval"), values.time("blockage_time"));
        let handover = (values.time("handover_interval"), values.time("handover_time"));
        Self {
            // The coefficient of variation of a log-normal value is sqrt(exp(sigma²) − 1).
            sigma: libm::sqrt(libm::log1p(cv * cv)),
            kept,
            level: random.normal(),
            step: Time::ZERO + STEP,
            blockage: Episodes::new(blockage.0, blockage.1, exponential, values.fraction("blockage_rate").get()),
            handover: Episodes::new(handover.0, handover.1, |_, length| length, 0.0),
            random,
        }
    }

    /// Returns the rate of a slot at `at`, which never decreases, as a part of the capacity. Its mean without blockage and handovers is 1.
    pub fn part(&mut self, at: Time) -> f64 {
        let part = self.blockage.part(at, &mut self.random) * self.handover.part(at, &mut self.random);
        if self.sigma == 0.0 {
            return part;
        }
        if self.step <= at {
            let steps = (at - self.step).as_nanos() / STEP.as_nanos() + 1;
            let kept = libm::pow(self.kept, steps as f64);
            self.level = kept * self.level + libm::sqrt(1.0 - kept * kept) * self.random.normal();
            self.step += STEP * steps;
        }
        part * libm::exp(self.sigma * self.level - self.sigma * self.sigma / 2.0)
    }
}
