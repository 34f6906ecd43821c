// SPDX-License-Identifier: MIT OR Apache-2.0
//! The minimum round-trip time of ten seconds, and that of five, which PROBE_RTT measures anew (BBRUpdateMinRTT).

use paceline_units::{Time, TimeDelta};

/// Lifetimes of the minima (MinRTTFilterLen, ProbeRTTInterval).
const LONG: TimeDelta = TimeDelta::from_secs(10);
const SHORT: TimeDelta = TimeDelta::from_secs(5);

/// The two minima, each with the time of its measurement.
#[derive(Debug)]
pub(super) struct RoundTrips {
    long: (Option<TimeDelta>, Time),
    short: (Option<TimeDelta>, Time),
}

impl RoundTrips {
    pub fn new(now: Time, first: Option<TimeDelta>) -> Self {
        Self { long: (first, now), short: (first, now) }
    }

    /// Returns the minimum of ten seconds.
    pub fn min(&self) -> Option<TimeDelta> {
        self.long.0
    }

    /// Handles an ACK. Returns whether the minimum of five seconds was old. An old minimum is replaced by any sample.
    pub fn handle_ack(&mut self, now: Time, sample: Option<TimeDelta>) -> bool {
        let is_old = now > self.short.1 + SHORT;
        if let Some(sample) = sample
            && (is_old || self.short.0.is_none_or(|min| sample < min))
        {
            self.short = (Some(sample), now);
        }
        if let Some(min) = self.short.0
            && (now > self.long.1 + LONG || self.long.0.is_none_or(|long| min < long))
        {
            self.long = self.short;
        }
        is_old
    }

    /// Extends the lifetime after PROBE_RTT.
    pub fn extend(&mut self, now: Time) {
        self.short.1 = now;
    }
}
