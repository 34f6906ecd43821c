// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lateness of packets and timers in real time.

use hdrhistogram::Histogram;
use paceline_netsim::records::Percentiles;

/// A histogram of lateness, ns.
pub type Lateness = Histogram<u64>;

/// Largest recorded lateness: ten seconds. Larger values count as this.
const MAX_NS: u64 = 10_000_000_000;

/// Returns an empty histogram.
pub fn empty() -> Lateness {
    Lateness::new_with_bounds(1, MAX_NS, 3).expect("valid bounds")
}

/// Returns the percentiles of a histogram, µs.
pub fn percentiles(late: &Lateness) -> Percentiles {
    let at = |quantile| late.value_at_quantile(quantile) as f64 / 1e3;
    Percentiles { p50: at(0.5), p99: at(0.99), max: late.max() as f64 / 1e3 }
}

/// Limit of the 99th percentile of the lateness of timers, µs: packets of a frame are some milliseconds apart.
const MAX_WAKE_LATE: f64 = 5e3;

/// Returns how late timers of endpoints disturbed a measurement; `None` if they did not.
pub fn disturbance(wake_us: &Percentiles) -> Option<String> {
    (wake_us.p99 > MAX_WAKE_LATE).then(|| format!("1 % of timers fired {:.1} ms late or later", wake_us.p99 / 1e3))
}
