// SPDX-License-Identifier: MIT OR Apache-2.0
//! The TCP throughput equation: the rate of a TCP flow on a path with a given loss rate and round-trip time.
//!
//! ```text
//!                              s
//! X = -------------------------------------------------------------       bytes/s         (RFC 5348, section 3.1)
//!     R sqrt(2bp/3) + t_RTO (3 sqrt(3bp/8)) p (1 + 32 p²)
//! ```
//!
//! with `b = 1` packet per acknowledgment and `t_RTO = 4R`, as the RFC recommends.

use libm::sqrt;
use paceline_units::{DataSize, Fraction, Rate, TimeDelta};

/// Returns `X` for segments of `size`, a round-trip time and a loss event rate. Without loss or without delay the
/// equation gives no limit, and the result is [`Rate::MAX`].
pub fn tfrc(size: DataSize, rtt: TimeDelta, loss: Fraction) -> Rate {
    let (s, r, p) = (size.as_bytes() as f64, rtt.as_secs_f64(), loss.get());
    if p <= 0.0 || r <= 0.0 {
        return Rate::MAX;
    }
    let t_rto = 4.0 * r;
    let seconds = r * sqrt(2.0 * p / 3.0) + t_rto * (3.0 * sqrt(3.0 * p / 8.0)) * p * (1.0 + 32.0 * p * p);
    Rate::from_bps_f64(8.0 * s / seconds)
}
