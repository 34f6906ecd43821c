// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rate that was allocated to a stream and that its source did not use.
//!
//! ```text
//! unused = max(0, sum of (A_i dt_i - s_i) / sum of dt_i)     over the frames i of a window of at least 500 ms
//! A_i: allocation when frame i was due     dt_i: time since the frame before it     s_i: its encoded size
//! ```

use paceline_units::{DataSize, Rate, Time, TimeDelta};

/// The least length of a window, as in the detection of the application limit.
const WINDOW: TimeDelta = TimeDelta::from_millis(500);

/// The measurement.
#[derive(Clone, Debug, Default)]
pub struct UnusedRate {
    last_frame: Option<Time>,
    /// The length of the current window, and the bits that were allocated and not produced in it.
    span: TimeDelta,
    unused_bits: f64,
    /// The result of the last window.
    rate: Rate,
}

impl UnusedRate {
    /// Handles a frame of `size` encoded bytes, which was due at `captured` while the source was allocated this rate.
    /// The first frame only starts the clock.
    pub fn handle_frame(&mut self, captured: Time, allocated: Rate, size: DataSize) {
        let Some(before) = self.last_frame.replace(captured) else { return };
        let dt = captured - before;
        self.span += dt;
        self.unused_bits += allocated.as_bps_f64() * dt.as_secs_f64() - 8.0 * size.as_bytes() as f64;
        if self.span >= WINDOW {
            self.rate = Rate::from_bps_f64((self.unused_bits / self.span.as_secs_f64()).max(0.0));
            (self.span, self.unused_bits) = (TimeDelta::ZERO, 0.0);
        }
    }

    /// Returns the rate of the last window, without headers; zero before the first one ends.
    pub fn get(&self) -> Rate {
        self.rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: 1 Mbit/s are 6250 bytes in 50 ms. Ten frames of 2500 bytes leave 37,500 of 62,500 bytes in 500 ms, which
    /// is 600 kbit/s; ten of 7500 bytes leave nothing. The result of a window lasts until the next one ends.
    #[test]
    fn unused_rate_is_allocated_minus_produced_over_a_window() {
        let mut unused = UnusedRate::default();
        let mut after = |frames: core::ops::Range<i64>, bytes| {
            for n in frames {
                unused.handle_frame(Time::from_millis(50 * n), Rate::from_kbps(1000), DataSize::from_bytes(bytes));
            }
            unused.get().as_bps()
        };
        assert_eq!([after(0..10, 2500), after(10..11, 2500)], [0, 600_000]);
        assert_eq!([after(11..20, 7500), after(20..21, 7500)], [600_000, 0]);
        // A frame after a pause of 2 s was allocated 250,000 bytes.
        assert_eq!(after(60..61, 2500), 990_000);
    }
}
