// SPDX-License-Identifier: MIT OR Apache-2.0
//! `max_bytes_in_flight`: the greatest number of bytes in flight of this period and of the one before.

use paceline_units::{DataSize, Time, TimeDelta};

/// The periods that bound the window near the highest rate (C++: `kMaxBytesInFlightHistSize`).
const HISTORY: usize = 20;
/// Those periods are at least this long (C++: `kSlowUpdateInterval_ntp`, 50 ms).
const HISTORY_PERIOD: TimeDelta = TimeDelta::from_millis(50);

/// Two maxima, and a history of them.
#[derive(Clone, Debug, Default)]
pub struct FlightMax {
    current: DataSize,
    /// `max_bytes_in_flight_prev`.
    pub previous: DataSize,
    began: Option<Time>,
    history: [DataSize; HISTORY],
    next: usize,
    remembered: Option<Time>,
    longest: DataSize,
}

impl FlightMax {
    #[inline]
    pub fn handle(&mut self, in_flight: DataSize) {
        self.current = self.current.max(in_flight);
        self.longest = self.longest.max(in_flight);
    }

    /// Begins a new period if this one is as long as `period`.
    pub fn update(&mut self, now: Time, period: TimeDelta) {
        if now - *self.remembered.get_or_insert(now) >= HISTORY_PERIOD {
            self.remembered = Some(now);
            self.history[self.next] = core::mem::take(&mut self.longest);
            self.next = (self.next + 1) % HISTORY;
        }
        if now - *self.began.get_or_insert(now) >= period {
            self.began = Some(now);
            self.previous = core::mem::take(&mut self.current);
        }
    }

    pub fn get(&self) -> DataSize {
        self.current.max(self.previous)
    }

    /// Returns the maximum of the last 20 periods of at least 50 ms.
    pub fn long(&self) -> DataSize {
        self.history.iter().copied().max().unwrap_or_default().max(self.longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maxima_last_for_two_periods_and_for_a_second() {
        let mut most = FlightMax::default();
        let size = DataSize::from_bytes;
        let period = TimeDelta::from_millis(100);
        most.update(Time::ZERO, period);
        most.handle(size(9000));
        most.update(Time::from_millis(99), period);
        assert_eq!((most.get(), most.previous), (size(9000), size(0)));
        most.update(Time::from_millis(100), period);
        most.handle(size(10));
        assert_eq!((most.get(), most.previous), (size(9000), size(9000)));
        most.update(Time::from_millis(200), period);
        assert_eq!((most.get(), most.previous), (size(10), size(10)));
        assert_eq!(most.long(), size(9000));
        (5..40).for_each(|n| most.update(Time::from_millis(50 * n), period));
        assert_eq!((most.get(), most.long()), (size(0), size(0)));
    }
}
