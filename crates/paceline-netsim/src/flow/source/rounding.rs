// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frame times and frame sizes that are rounded without an accumulated error. The n-th time is computed from n, because
//! 1/30 s is not a whole number of nanoseconds. The rounding error of each size is carried to the next one, so that the
//! sum of all frames stays within half a byte of the exact sum.

use paceline_units::{DataSize, Time, TimeDelta, round_to_u64};

/// The due times `start + n / fps`, each to the nearest nanosecond.
#[derive(Clone, Debug)]
pub(super) struct FrameClock {
    start: Time,
    fps: f64,
    /// The number of the next frame, from 0.
    next: u64,
    due: Time,
}

impl FrameClock {
    pub(super) fn new(start: Time, fps: f64) -> Self {
        Self { start, fps, next: 0, due: start }
    }

    pub(super) fn due(&self) -> Time {
        self.due
    }

    /// Returns the due time of the next frame if it is due at `now`, and advances to the frame after it.
    pub(super) fn take(&mut self, now: Time) -> Option<Time> {
        if now < self.due {
            return None;
        }
        let due = self.due;
        self.next += 1;
        self.due = self.start + TimeDelta::from_secs_f64(self.next as f64 / self.fps);
        Some(due)
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct ByteRounder {
    /// Exact minus rounded size of all frames so far, in bytes, -0.5 to 0.5.
    carry: f64,
}

impl ByteRounder {
    /// Rounds a frame of `exact` bytes to whole bytes, at least one.
    pub(super) fn round(&mut self, exact: f64) -> DataSize {
        let wanted = exact + self.carry;
        let whole = round_to_u64(wanted).max(1);
        self.carry = (wanted - whole as f64).max(-0.5);
        DataSize::from_bytes(whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn due_times_do_not_drift() {
        let start = Time::from_millis(7);
        let mut clock = FrameClock::new(start, 30.0);
        for n in 0..30 * 3600 {
            let due = clock.take(clock.due()).unwrap();
            if n % 30 == 0 {
                assert_eq!(due, start + TimeDelta::from_secs(n / 30));
            }
        }
        assert_eq!(clock.take(start), None);
    }

    #[test]
    fn rounding_errors_are_carried() {
        let mut bytes = ByteRounder::default();
        let sizes: Vec<u64> = (0..6).map(|_| bytes.round(4166.75).as_bytes()).collect();
        assert_eq!(sizes, [4167, 4167, 4166, 4167, 4167, 4167]); // .75, .5, .25, 1.0, .75, .5
        assert_eq!(ByteRounder::default().round(0.2).as_bytes(), 1);
    }
}
