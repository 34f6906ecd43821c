//! Evenly spaced due times without drift. The n-th time is computed from n, not from the previous time, because 1/30 s
//! is not a whole number of nanoseconds.

use paceline_units::{Time, TimeDelta};

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
}
