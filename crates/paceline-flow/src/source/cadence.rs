//! Due times that are evenly spaced and never drift: the n-th is computed from n, not from the one before, since
//! 1/30 s is no whole number of nanoseconds.

use paceline_units::{Time, TimeDelta};

/// The due times `start + n / fps`, each to the nearest nanosecond.
#[derive(Clone, Debug)]
pub(super) struct Cadence {
    start: Time,
    /// Frames per second.
    fps: f64,
    /// The number of the next frame, from 0.
    next: u64,
    due: Time,
}

impl Cadence {
    pub(super) fn new(start: Time, fps: f64) -> Self {
        Self { start, fps, next: 0, due: start }
    }

    /// When the next frame is due.
    pub(super) fn due(&self) -> Time {
        self.due
    }

    /// The due time of the frame that is due at `now`, which counts as taken.
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
    fn thirty_frames_fill_a_second_for_hours() {
        let start = Time::from_millis(7);
        let mut cadence = Cadence::new(start, 30.0);
        for n in 0..30 * 3600 {
            let due = cadence.take(cadence.due()).unwrap();
            if n % 30 == 0 {
                assert_eq!(due, start + TimeDelta::from_secs(n / 30));
            }
        }
        assert_eq!(cadence.take(start), None);
    }
}
