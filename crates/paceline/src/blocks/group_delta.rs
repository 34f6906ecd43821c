// SPDX-License-Identifier: MIT OR Apache-2.0
//! The step between two groups of packets.

use paceline_units::TimeDelta;

/// The step from one complete group of packets to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupDelta {
    /// `t_i - t_{i-1}`, on the receiver's clock.
    pub arrival: TimeDelta,
    /// `T_i - T_{i-1}`, on the sender's clock.
    pub departure: TimeDelta,
    /// The difference of the groups' sizes in bytes.
    pub size: i64,
}

impl GroupDelta {
    /// Returns the measured one-way delay gradient `d_m` in milliseconds (mmsys16, eq. 4).
    pub fn gradient_ms(&self) -> f64 {
        (self.arrival - self.departure).as_millis_f64()
    }
}
