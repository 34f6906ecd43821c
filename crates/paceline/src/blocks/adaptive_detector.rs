// SPDX-License-Identifier: MIT OR Apache-2.0
//! The over-use detector with an adaptive threshold, by which every generation since 2015 evaluates the gradient of a
//! group.

use super::{AdaptiveThreshold, OveruseDetector, ThresholdConfig, Usage};
use paceline_units::RemoteTime;

/// Detector and threshold.
#[derive(Clone, Debug)]
pub struct AdaptiveDetector {
    detector: OveruseDetector,
    threshold: AdaptiveThreshold,
    adapts_from_first: bool,
    /// `T`, ms.
    pub scaled: f64,
}

impl AdaptiveDetector {
    /// Creates a detector that signals over-use once it has lasted `overuse_ms`. `adapts_from_first`: the threshold
    /// takes the first gradient into account (the papers); otherwise it starts with the second, as in libwebrtc.
    pub fn new(overuse_ms: f64, threshold: ThresholdConfig, adapts_from_first: bool) -> Self {
        let (detector, threshold) = (OveruseDetector::new(overuse_ms), AdaptiveThreshold::new(threshold));
        Self { detector, threshold, adapts_from_first, scaled: 0.0 }
    }

    /// Counts the gradients from zero again, because the filter was restarted. The threshold stays.
    pub fn restart(&mut self) {
        self.detector.restart();
    }

    /// Handles the gradient `m` (ms) of a group that was sent `departure_ms` after the previous one.
    #[inline]
    pub fn update(&mut self, now: RemoteTime, m: f64, departure_ms: f64) {
        self.scaled = self.detector.scale(m);
        self.detector.update(m, self.scaled, self.threshold.gamma_ms(), departure_ms);
        if self.adapts_from_first || self.detector.is_ready() {
            self.threshold.update(now, self.scaled);
        }
    }

    /// Returns the state.
    #[inline]
    pub fn usage(&self) -> Usage {
        self.detector.usage()
    }

    /// Returns the threshold, ms.
    pub fn gamma_ms(&self) -> f64 {
        self.threshold.gamma_ms()
    }
}
