// SPDX-License-Identifier: MIT OR Apache-2.0
//! The due times of a periodic update, such as of a drop probability.

use paceline_units::{Time, TimeDelta};

/// Updates at every multiple of a period. A discipline makes up for those that are due at its next call: nothing happens in
/// between.
#[derive(Clone, Copy, Debug)]
pub(super) struct UpdateTimer {
    period: TimeDelta,
    next: Time,
}

impl UpdateTimer {
    pub fn new(period: TimeDelta) -> Self {
        Self { period, next: Time::ZERO + period }
    }

    /// Returns the next update that is due by `now`, and advances past it.
    #[inline]
    pub fn due(&mut self, now: Time) -> Option<Time> {
        let at = self.next;
        (at <= now).then(|| {
            self.next = at + self.period;
            at
        })
    }

    /// Advances past all updates that are due by `now`, as they would change nothing.
    pub fn skip(&mut self, now: Time) {
        if self.next <= now {
            let periods = (now - self.next).as_nanos() / self.period.as_nanos() + 1;
            self.next += self.period * periods;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn updates_are_due_at_multiples_of_the_period() {
        let ms = Time::from_millis;
        let mut timer = UpdateTimer::new(TimeDelta::from_millis(15));
        assert_eq!(timer.due(ms(14)), None);
        assert_eq!([timer.due(ms(31)), timer.due(ms(31)), timer.due(ms(31))], [Some(ms(15)), Some(ms(30)), None]);
        timer.skip(ms(44));
        assert_eq!(timer.due(ms(45)), Some(ms(45)));
        timer.skip(ms(90));
        assert_eq!((timer.due(ms(104)), timer.due(ms(105))), (None, Some(ms(105))));
    }
}
