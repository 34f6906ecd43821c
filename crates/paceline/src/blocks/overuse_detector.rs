// SPDX-License-Identifier: MIT OR Apache-2.0
//! The over-use detector: compares the gradient with the threshold, and signals over-use if it lasts.
//!
//! The compared value is `T = min(n, 60)·m`, where n is the number of deltas (libwebrtc's scaling; the paper compares
//! `m`, which for n >= 60 is the same with a sixtieth of gamma). Over-use is signalled when `T > gamma` has lasted
//! longer than a configured time, over more than one frame, and `m` does not fall (draft-ietf-rmcat-gcc-02, section
//! 5.4). It then lasts until `T` returns to the threshold.

/// The state of the detector (signal `s` of mmsys16, figure 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usage {
    /// The queue drains.
    Under,
    /// Neither under-use nor over-use.
    Normal,
    /// The queue grows.
    Over,
}

impl Usage {
    /// Names, in order of [`index`](Self::index).
    pub const NAMES: &'static [&'static str] = &["underuse", "normal", "overuse"];
    /// Returns the state as a signal value.
    pub fn index(self) -> f64 {
        self as u8 as f64
    }
    /// Returns the direction of the queue: -1, 0 or 1.
    pub fn sign(self) -> i8 {
        self as i8 - Self::Normal as i8
    }
}

/// The largest scaling factor of `m` (libwebrtc's `kMinNumDeltas`).
const SCALE_MAX: u32 = 60;

/// The detector.
#[derive(Clone, Debug)]
pub struct OveruseDetector {
    /// The time for which `T > gamma` must last, ms.
    hold_ms: f64,
    deltas: u32,
    /// The time for which `T > gamma` has lasted, ms; `None` while `T` is within the threshold.
    over_ms: Option<f64>,
    frames_over: u32,
    previous: f64,
    usage: Usage,
}

impl OveruseDetector {
    /// Creates a detector that signals over-use once it has lasted `hold_ms` (mmsys16: 100).
    pub fn new(hold_ms: f64) -> Self {
        Self { hold_ms, deltas: 0, over_ms: None, frames_over: 0, previous: 0.0, usage: Usage::Normal }
    }

    /// Counts one more delta. Returns the value to compare, `T = min(n, 60)·m`, in ms.
    pub fn scale(&mut self, m: f64) -> f64 {
        let scaled = self.next_scaled(m);
        self.deltas = (self.deltas + 1).min(SCALE_MAX);
        scaled
    }

    /// Returns the result of [`scale`](Self::scale) without counting.
    pub fn next_scaled(&self, m: f64) -> f64 {
        (self.deltas + 1).min(SCALE_MAX) as f64 * m
    }

    /// Returns whether at least two deltas were counted, which a comparison needs.
    pub fn is_ready(&self) -> bool {
        self.deltas >= 2
    }

    /// Counts the deltas from zero again, because the filter was restarted.
    pub fn restart(&mut self) {
        self.deltas = 0;
    }

    /// Handles the gradient `m` of a frame, its scaled value `t`, the threshold, and the departure time since the
    /// previous frame, all in ms. Returns the new state.
    pub fn update(&mut self, m: f64, t: f64, gamma: f64, departure_ms: f64) -> Usage {
        if !self.is_ready() {
            self.usage = Usage::Normal;
        } else if t > gamma {
            // The gradient crossed the threshold somewhere within the first frame's interval: half of it counts.
            let over = self.over_ms.map_or(departure_ms / 2.0, |over| over + departure_ms);
            self.over_ms = Some(over);
            self.frames_over += 1;
            if over > self.hold_ms && self.frames_over > 1 && m >= self.previous {
                self.over_ms = Some(0.0);
                self.frames_over = 0;
                self.usage = Usage::Over;
            }
        } else {
            self.over_ms = None;
            self.frames_over = 0;
            self.usage = if t < -gamma { Usage::Under } else { Usage::Normal };
        }
        self.previous = m;
        self.usage
    }

    /// Returns the last state.
    pub fn usage(&self) -> Usage {
        self.usage
    }
}
