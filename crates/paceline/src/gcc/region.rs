// SPDX-License-Identifier: MIT OR Apache-2.0
//! The regions of GCC until 2015: how far the rate is from the rate at which over-use was last detected.

/// The distance of the rate from the last congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Region {
    /// Close to the rate of the last over-use.
    NearMax,
    /// Above it.
    AboveMax,
    /// No over-use was detected yet, or the path has changed since.
    MaxUnknown,
}

impl Region {
    /// Names, in order of [`index`](Self::index).
    pub const NAMES: &'static [&'static str] = &["near max", "above max", "max unknown"];
    /// Returns the region as a signal value.
    pub fn index(self) -> f64 {
        self as u8 as f64
    }
    /// Returns the threshold on `T` in this region: the default where the maximum is unknown, half of it elsewhere
    /// (uottawa15, algorithm 2, which always halves the default and not the previous threshold).
    pub fn threshold(self, default: f64) -> f64 {
        if self == Self::MaxUnknown { default } else { default / 2.0 }
    }
}
