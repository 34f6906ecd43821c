// SPDX-License-Identifier: MIT OR Apache-2.0
//! The mean target of a flow over time.

use paceline_units::{Rate, Time, TimeDelta};

/// The mean target over time.
pub(crate) struct Targets {
    pub(crate) current: Rate,
    start: Time,
    since: Time,
    half: Time,
    /// Bits of the first and the second half.
    bits: [f64; 2],
}

impl Targets {
    /// Creates those of a flow from `start` on, in a session of this duration.
    pub(crate) fn new(start: Time, duration: TimeDelta) -> Self {
        Self { current: Rate::ZERO, start, since: start, half: start + duration.scale(0.5), bits: [0.0; 2] }
    }

    /// Notes a new target.
    pub(crate) fn push(&mut self, at: Time, target: Rate) {
        let middle = self.half.clamp(self.since, at.max(self.since));
        for (bits, span) in self.bits.iter_mut().zip([middle - self.since, at.max(middle) - middle]) {
            *bits += self.current.as_bps_f64() * span.as_secs_f64();
        }
        (self.current, self.since) = (target, at.max(self.since));
    }

    /// Returns the mean up to `end`, and that of the second half; the former again if that did not begin.
    pub(crate) fn means(&mut self, end: Time) -> (Rate, Rate) {
        self.push(end, self.current);
        let seconds = |span: TimeDelta| span.as_secs_f64().max(1e-9);
        let whole = (self.bits[0] + self.bits[1]) / seconds(end - self.start);
        let second = if end > self.half { self.bits[1] / seconds(end - self.half) } else { whole };
        (Rate::from_bps_f64(whole), Rate::from_bps_f64(second))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_targets_weigh_each_by_its_time() {
        let mut targets = Targets::new(Time::ZERO, TimeDelta::from_secs(10));
        targets.push(Time::ZERO, Rate::from_bps(1_000_000));
        targets.push(Time::from_secs(4), Rate::from_bps(2_000_000));
        targets.push(Time::from_secs(8), Rate::from_bps(4_000_000));
        // 4 s at 1, 1 s at 2 | 3 s at 2, 2 s at 4 Mbit/s.
        let (whole, second) = targets.means(Time::from_secs(10));
        assert_eq!((whole.as_bps(), second.as_bps()), (2_000_000, 2_800_000));
        let mut short = Targets::new(Time::from_secs(5), TimeDelta::from_secs(10));
        short.push(Time::from_secs(5), Rate::from_bps(1_000_000));
        assert_eq!(short.means(Time::from_secs(7)).1.as_bps(), 1_000_000);
    }
}
