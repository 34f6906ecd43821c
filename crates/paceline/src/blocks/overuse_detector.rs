//! The over-use detector: compares the gradient with the threshold and demands that over-use lasts.
//!
//! The compared value is `T = min(n, 60)·m`, n the number of deltas seen (libwebrtc's scaling; the paper's text
//! compares `m`, which for n >= 60 is the same with a sixtieth of gamma). Over-use is signalled when `T > gamma` has
//! lasted longer than a set time, over more than one frame, and `m` is not falling (draft-ietf-rmcat-gcc-02,
//! section 5.4); once signalled it holds until `T` is back at the threshold.

/// What the detector says of the path (signal `s` of mmsys16, figure 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usage {
    /// The queue drains.
    Under,
    /// Neither.
    Normal,
    /// The queue grows.
    Over,
}

impl Usage {
    /// Names, in order of [`index`](Self::index).
    pub const NAMES: &'static [&'static str] = &["underuse", "normal", "overuse"];
    /// The state as a signal value.
    pub fn index(self) -> f64 {
        self as u8 as f64
    }
    /// Which way the queue goes: -1, 0 or 1.
    pub fn sign(self) -> i8 {
        self as i8 - Self::Normal as i8
    }
}

/// Deltas beyond which the scaling of `m` stays (libwebrtc's `kMinNumDeltas`).
const SCALE_MAX: u32 = 60;

/// The detector.
#[derive(Clone, Debug)]
pub struct OveruseDetector {
    /// How long `T > gamma` must last, ms.
    hold_ms: f64,
    deltas: u32,
    /// How long it has lasted, ms; `None` while `T` is within the threshold.
    over_ms: Option<f64>,
    frames_over: u32,
    previous: f64,
    usage: Usage,
}

impl OveruseDetector {
    /// A detector that has seen nothing. `hold_ms`: how long over-use must last (mmsys16: 100).
    pub fn new(hold_ms: f64) -> Self {
        Self { hold_ms, deltas: 0, over_ms: None, frames_over: 0, previous: 0.0, usage: Usage::Normal }
    }

    /// Counts one more delta and answers the value that will be compared: `T = min(n, 60)·m`, ms.
    pub fn scale(&mut self, m: f64) -> f64 {
        let scaled = self.next_scaled(m);
        self.deltas = (self.deltas + 1).min(SCALE_MAX);
        scaled
    }

    /// What [`scale`](Self::scale) would answer, without counting.
    pub fn next_scaled(&self, m: f64) -> f64 {
        (self.deltas + 1).min(SCALE_MAX) as f64 * m
    }

    /// Whether it has counted enough deltas, two, to compare anything.
    pub fn is_ready(&self) -> bool {
        self.deltas >= 2
    }

    /// Begins to count deltas anew: the filter before it did.
    pub fn recount(&mut self) {
        self.deltas = 0;
    }

    /// Takes a frame's gradient `m`, its scaled value `t`, the threshold, and the time since the frame before it was
    /// sent; all in ms.
    pub fn update(&mut self, m: f64, t: f64, gamma: f64, departure_ms: f64) -> Usage {
        if !self.is_ready() {
            self.usage = Usage::Normal;
        } else if t > gamma {
            // The first frame over the threshold crossed it somewhere in its interval: half of it counts.
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

    /// What it said last.
    pub fn usage(&self) -> Usage {
        self.usage
    }
}
