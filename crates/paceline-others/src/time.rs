// SPDX-License-Identifier: MIT OR Apache-2.0
//! Times in the units of the libraries.

use paceline_units::{RemoteTime, Time};
use std::time::{Duration, Instant};

/// Returns a time in whole µs.
pub(crate) fn us(time: Time) -> i64 {
    time.as_nanos() / 1000
}

/// Returns an arrival in whole µs.
pub(crate) fn arrival_us(arrival: RemoteTime) -> i64 {
    arrival.as_nanos().div_euclid(1000)
}

/// Turns times into readings of the system's clock, for a library that takes those. It reads the clock once, and only differences of the
/// readings count, so decisions do not depend on it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SystemClock {
    origin: Instant,
}

impl SystemClock {
    /// How long the clock has run when the simulation begins, so that a library can go back from the first time.
    const LEAD: Duration = Duration::from_secs(60);

    pub(crate) fn new() -> Self {
        Self { origin: Instant::now() + Self::LEAD }
    }

    pub(crate) fn at(self, time: Time) -> Instant {
        self.origin + Duration::from_nanos(time.as_nanos().max(0) as u64)
    }
}

/// Returns an arrival as the time since an origin that is the same for all.
pub(crate) fn arrival(arrival: RemoteTime) -> Duration {
    Duration::from_nanos(arrival.as_nanos().max(0) as u64)
}
