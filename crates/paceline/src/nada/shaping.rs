//! The rate-shaping buffer between encoder and network: what waits in it makes the encoder slower and the pacer faster.
//!
//! ```text
//! R_i = R_n - beta_v b_l,   R_send = R_n + beta_s b_l,   b_l = 8 bytes fps                (med16, section II-A)
//! ```
//!
//! med16 gives `b_l` no unit; the drafts and RFC 8698 (eq. 11, 12) take what would send the buffer within a frame, in bit/s.
//! RFC 8698 bounds each difference by a twentieth of the rate: an encoder that is more than a tenth over its target fills the
//! buffer for as long as it is.

use paceline_units::{DataSize, Rate, StreamId};

/// Numbers of the buffer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShapingConfig {
    /// Share of the buffer that encoders leave free in the next frame's time, `BETA_V`.
    pub beta_v: f64,
    /// Share of the buffer that the pacer sends on top in the next frame's time, `BETA_S`.
    pub beta_s: f64,
    /// Frames per second by which the buffer becomes a rate.
    pub fps: f64,
    /// Most that is taken and added, as a share of the rate (RFC 8698: 0.05).
    pub most: f64,
}

/// What waits, stream by stream.
#[derive(Clone, Debug)]
pub struct Shaping {
    config: ShapingConfig,
    queued: Vec<(StreamId, DataSize)>,
}

impl Shaping {
    /// Nothing waits.
    pub fn new(config: ShapingConfig) -> Self {
        Self { config, queued: Vec::new() }
    }

    /// So much of this stream waits.
    pub fn handle_queued(&mut self, stream: StreamId, queued: DataSize) {
        match self.queued.iter_mut().find(|(id, _)| *id == stream) {
            Some((_, of)) => *of = queued,
            None => self.queued.push((stream, queued)),
        }
    }

    /// What waits in all.
    pub fn queued(&self) -> DataSize {
        self.queued.iter().map(|(_, queued)| *queued).sum()
    }

    /// The rate for encoders, `R_i` or `r_vin`, and for the pacer, `R_send` or `r_send` (RFC 8698, eq. 11 to 14). Bounds of the
    /// flow are the caller's.
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
    fn a_tenth_of_the_buffer_a_frame() {
        let rates_of = |beta_v, most, bytes: &[u64]| {
            let mut shaping = Shaping::new(ShapingConfig { beta_v, beta_s: 0.1, fps: 30.0, most });
            for (i, bytes) in bytes.iter().enumerate() {
                shaping.handle_queued(StreamId(i as u8 % 2), DataSize::from_bytes(*bytes));
            }
            let (encoder, pacer) = shaping.rates(Rate::from_kbps(1000));
            (encoder.as_bps(), pacer.as_bps())
        };
        let rates = |most, bytes: &[u64]| rates_of(0.1, most, bytes);
        assert_eq!(rates_of(0.0, 1.0, &[2000]), (1_000_000, 1_048_000), "each has a share of its own");
        assert_eq!(rates(1.0, &[7000, 1500, 500]), (952_000, 1_048_000), "the last word of each of two streams");
        assert_eq!(rates(1.0, &[0]), (1_000_000, 1_000_000));
        assert_eq!(rates(0.05, &[20_000]), (950_000, 1_050_000));
        assert_eq!(rates(1.0, &[u64::MAX]), (0, 2_000_000));
    }
}
