//! The rate of a TCP that sees the same loss and round-trip time (RFC 5348, section 3.1), below which the loss-based
//! controller of 2013 does not fall.

use libm::sqrt;
use paceline_units::{DataSize, Fraction, Rate, TimeDelta};

/// `X_Bps = s / (R sqrt(2bp/3) + t_RTO (3 sqrt(3bp/8)) p (1 + 32 p²))`, with b = 1 and t_RTO = 4R. No bound
/// ([`Rate::MAX`]) without loss or round-trip time.
pub fn tfrc(segment: DataSize, rtt: TimeDelta, loss: Fraction) -> Rate {
    let (r, p) = (rtt.as_secs_f64(), loss.get());
    if p <= 0.0 || r <= 0.0 {
        return Rate::MAX;
    }
    let timeout = 4.0 * r;
    let time = r * sqrt(2.0 * p / 3.0) + timeout * (3.0 * sqrt(3.0 * p / 8.0)) * p * (1.0 + 32.0 * p * p);
    Rate::from_bps_f64(segment.as_bits() as f64 / time)
}
