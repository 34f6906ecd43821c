// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rate-shaping buffer between encoder and network: packets in it lower the encoder's rate and raise the pacing
//! rate.
//!
//! ```text
//! R_i = R_n - beta_v b_l,   R_send = R_n + beta_s b_l,   b_l = 8 bytes fps                (med16, section II-A)
//! ```
//!
//! med16 gives `b_l` no unit; in the drafts and RFC 8698 (eq. 11, 12) it is the rate that would send the buffer within
//! one frame interval. RFC 8698 bounds each difference to 5 % of the rate: an encoder that exceeds its target by more
//! than 10 % fills the buffer.

use crate::params;
use alloc::vec::Vec;
use paceline_units::{DataSize, Rate, StreamId};

params! {
    /// The parameters of the buffer.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct ShapingConfig {
        /// RFC 8698, table 2 and section 5.2.2.
        const RFC_8698;

        /// Frame rate that converts the shaping buffer to a rate.
        fps: f64 = 30.0, unit "1/s", in 1.0..=1000.0, from "table 2, FPS";
        /// Share of the shaping buffer that lowers the encoders' rate.
        beta_v: f64 = 0.1, in 0.0..=10.0, from "table 2, BETA_V";
        /// Share of the shaping buffer that raises the pacing rate.
        beta_s: f64 = 0.1, in 0.0..=10.0, from "table 2, BETA_S";
        /// Largest difference due to shaping, as a share of the rate.
        most as "beta_most": f64 = 0.05, in 0.0..=1.0, from "eq. 11 and 12";
    }
}

/// The queue of each stream.
#[derive(Clone, Debug)]
pub struct Shaping {
    config: ShapingConfig,
    queued: Vec<(StreamId, DataSize)>,
}

impl Shaping {
    /// Creates an empty buffer.
    pub fn new(config: ShapingConfig) -> Self {
        Self { config, queued: Vec::new() }
    }

    /// Sets the queue size of a stream.
    pub fn handle_queued(&mut self, stream: StreamId, queued: DataSize) {
        match self.queued.iter_mut().find(|(id, _)| *id == stream) {
            Some((_, of)) => *of = queued,
            None => self.queued.push((stream, queued)),
        }
    }

    /// Removes a stream.
    pub fn remove_stream(&mut self, stream: StreamId) {
        self.queued.retain(|(id, _)| *id != stream);
    }

    /// Returns the size of all queues.
    pub fn queued(&self) -> DataSize {
        self.queued.iter().map(|(_, queued)| *queued).sum()
    }

    /// Returns the rate for the encoders, `R_i` or `r_vin`, and the one for the pacer, `R_send` or `r_send` (RFC 8698,
    /// eq. 11 to 14). The caller applies the bounds of the flow.
    pub fn rates(&self, rate: Rate) -> (Rate, Rate) {
        let ShapingConfig { beta_v, beta_s, .. } = self.config;
        (rate.saturating_sub(self.difference(beta_v, rate)), rate + self.difference(beta_s, rate))
    }

    /// RFC 8698, eq. 11 and 12.
    fn difference(&self, beta: f64, rate: Rate) -> Rate {
        let buffer = self.queued().as_bytes() as f64 * 8.0 * self.config.fps;
        Rate::from_bps_f64((beta * buffer).min(self.config.most * rate.as_bps_f64()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2000 bytes at 30 frames a second are 48 kbit/s.
    #[test]
    fn rates_differ_by_a_tenth_of_the_buffer_per_frame() {
        let rates_of = |beta_v, most, bytes: &[u64]| {
            let mut shaping = Shaping::new(ShapingConfig { beta_v, beta_s: 0.1, fps: 30.0, most });
            for (i, bytes) in bytes.iter().enumerate() {
                shaping.handle_queued(StreamId(i as u8 % 2), DataSize::from_bytes(*bytes));
            }
            let (encoder, pacer) = shaping.rates(Rate::from_kbps(1000));
            (encoder.as_bps(), pacer.as_bps())
        };
        let rates = |most, bytes: &[u64]| rates_of(0.1, most, bytes);
        assert_eq!(rates_of(0.0, 1.0, &[2000]), (1_000_000, 1_048_000), "encoder and pacer have shares of their own");
        assert_eq!(rates(1.0, &[7000, 1500, 500]), (952_000, 1_048_000), "the last size of each of two streams");
        assert_eq!(rates(1.0, &[0]), (1_000_000, 1_000_000));
        assert_eq!(rates(0.05, &[20_000]), (950_000, 1_050_000));
        assert_eq!(rates(1.0, &[u64::MAX]), (0, 2_000_000));
    }
}
