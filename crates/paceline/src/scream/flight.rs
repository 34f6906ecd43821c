// SPDX-License-Identifier: MIT OR Apache-2.0
//! The maximum of the bytes in flight over the last seconds, which shows how much of the window was used (RFC 8298,
//! section 4.1.2.2, `max_bytes_in_flight`).

use paceline_units::{DataSize, Time, TimeDelta};

/// The length of the window in seconds (section 4.1.2.2). One maximum is kept per second, so it is five to six.
const SPANS: usize = 5;
const SPAN: TimeDelta = TimeDelta::from_secs(1);

/// A sliding maximum.
#[derive(Clone, Debug, Default)]
pub struct MaxInFlight {
    /// The maxima of the previous seconds, in a ring buffer, and the maximum of them.
    before: [DataSize; SPANS],
    oldest: usize,
    past: DataSize,
    current: DataSize,
    next_span: Option<Time>,
}

impl MaxInFlight {
    #[inline]
    pub fn update(&mut self, now: Time, in_flight: DataSize) {
        let mut next_span = *self.next_span.get_or_insert(now + SPAN);
        if now >= next_span {
            for _ in 0..=SPANS {
                if now < next_span {
                    break;
                }
                self.before[self.oldest] = core::mem::take(&mut self.current);
                self.oldest = (self.oldest + 1) % SPANS;
                next_span += SPAN;
            }
            self.past = self.before.iter().copied().max().unwrap_or_default();
            self.next_span = Some(if next_span > now { next_span } else { now + SPAN });
        }
        self.current = self.current.max(in_flight);
    }

    /// Returns the maximum.
    pub fn get(&self) -> DataSize {
        self.past.max(self.current)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maximum_lasts_five_to_six_seconds() {
        let mut most = MaxInFlight::default();
        let size = DataSize::from_bytes;
        most.update(Time::ZERO, size(100));
        most.update(Time::from_millis(900), size(9000));
        for ms in (1000..=5900).step_by(100) {
            most.update(Time::from_millis(ms), size(50));
            assert_eq!(most.get(), size(9000), "{ms}");
        }
        most.update(Time::from_millis(6900), size(50));
        assert_eq!(most.get(), size(50));
        most.update(Time::from_secs(100), size(20));
        assert_eq!(most.get(), size(20), "after a pause only the current value");
    }
}
