// SPDX-License-Identifier: MIT OR Apache-2.0
//! A playout buffer of constant length. It shows what a receiver would discard that plays each frame at a fixed time after its
//! capture, as one without time stretching must.

use paceline_units::TimeDelta;

/// How much later than the fastest frame a frame may be complete. RFC 8868 gives no length. This one holds the largest jitter of
/// RFC 8867, section 4.2 (30 ms), and the short queue of RFC 8868, section 4.3 (70 ms).
pub(crate) const PLAYOUT: TimeDelta = TimeDelta::from_millis(100);

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PlayoutBuffer {
    /// The smallest delay so far.
    least: Option<TimeDelta>,
}

impl PlayoutBuffer {
    /// Adds a frame that was complete this long after its capture. Returns whether its playout time was over by then.
    pub fn is_discarded(&mut self, delay: TimeDelta) -> bool {
        let least = self.least.map_or(delay, |least| least.min(delay));
        self.least = Some(least);
        delay > least + PLAYOUT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn discards_frames_later_than_the_buffer() {
        let mut buffer = PlayoutBuffer::default();
        let late: Vec<bool> =
            [80, 180, 181, 60, 160, 161, 180, 60].map(|ms| buffer.is_discarded(TimeDelta::from_millis(ms))).to_vec();
        // The fastest frame takes 80 ms, then 60 ms.
        assert_eq!(late, [false, false, true, false, false, true, true, false]);
    }
}
