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
