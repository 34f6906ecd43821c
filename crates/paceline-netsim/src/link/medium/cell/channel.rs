// SPDX-License-Identifier: MIT OR Apache-2.0
//! The radio channel of a cell: what part of the capacity a slot has.

use crate::parameter::Values;
use paceline_units::{RandomStream, RandomStreams, Time, TimeDelta};

/// How often the fading changes. Assumed.
const STEP: TimeDelta = TimeDelta::from_millis(20);

/// Times during which the channel has only a part of its rate, at random: exponential times between them.
#[derive(Clone, Debug)]
struct Episodes {
    /// Mean time from the end of one to the start of the next; zero for none.
    interval: TimeDelta,
    mean: TimeDelta,
    /// Whether their lengths are exponential, too; otherwise all have the mean.
    is_exponential: bool,
    /// The part of the rate during one.
    rate_share: f64,
    start: Time,
    end: Time,
    random: RandomStream,
}

impl Episodes {
    /// Returns the part of the rate at `at`, which never decreases.
    fn part(&mut self, at: Time) -> f64 {
        if self.interval == TimeDelta::ZERO {
            return 1.0;
        }
        while self.end <= at {
            let units = [self.random.unit(), self.random.unit()];
            let [between, length] = units.map(|unit| -libm::log1p(-unit));
            self.start = self.end + self.interval.scale(between);
            self.end = self.start + self.mean.scale(if self.is_exponential { length } else { 1.0 });
        }
        if self.start <= at { self.rate_share } else { 1.0 }
    }
}

/// Fading, blockage and handovers. Each has random values of its own, and none depends on which slots are used: a seed gives every
/// controller the same channel.
#[derive(Clone, Debug)]
pub(super) struct Channel {
    /// Standard deviation of the logarithm of the rate.
    sigma: f64,
    /// Correlation of the fading with that of the step before.
    correlation: f64,
    /// The fading, of standard deviation 1, and the time of its next step.
    level: f64,
    step: Time,
    fading: RandomStream,
    blockage: Episodes,
    handover: Episodes,
}

impl Channel {
    /// Creates the channel. Its random streams are `<path>/fading`, `<path>/blockage` and `<path>/handover`.
    pub fn new(values: &Values, streams: &RandomStreams, path: &str) -> Self {
        let stream = |name: &str| streams.stream(&format!("{path}/{name}"));
        let episodes = |name: &str, is_exponential, rate_share| Episodes {
            interval: values.time(&format!("{name}_interval")),
            mean: values.time(&format!("{name}_time")),
            is_exponential,
            rate_share,
            start: Time::ZERO,
            end: Time::ZERO,
            random: stream(name),
        };
        let (cv, mut fading) = (values.number("fading"), stream("fading"));
        Self {
            // The coefficient of variation of a log-normal value is sqrt(exp(sigma²) − 1).
            sigma: libm::sqrt(libm::log1p(cv * cv)),
            correlation: libm::exp(-STEP.as_secs_f64() / values.time("fading_time").as_secs_f64()),
            level: fading.normal(),
            step: Time::ZERO + STEP,
            fading,
            blockage: episodes("blockage", true, values.fraction("blockage_rate").get()),
            handover: episodes("handover", false, 0.0),
        }
    }

    /// Returns the rate of a slot at `at`, which never decreases, as a part of the capacity. Its mean without blockage and handovers is 1.
    pub fn part(&mut self, at: Time) -> f64 {
        let part = self.blockage.part(at) * self.handover.part(at);
        if self.sigma == 0.0 {
            return part;
        }
        while self.step <= at {
            let news = libm::sqrt(1.0 - self.correlation * self.correlation);
            self.level = self.correlation * self.level + news * self.fading.normal();
            self.step += STEP;
        }
        part * libm::exp(self.sigma * self.level - self.sigma * self.sigma / 2.0)
    }
}
