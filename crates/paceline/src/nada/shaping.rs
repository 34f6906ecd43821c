//! The rate-shaping buffer between encoder and network: what waits in it makes the encoder slower and the pacer faster.
//!
//! ```text
//! R_i = R_n - beta b_l,   R_send = R_n + beta b_l,   b_l = 8 bytes fps                    (med16, section II-A)
//! ```
//!
//! med16 gives `b_l` no unit; the drafts and RFC 8698 (eq. 11, 12) take what would send the buffer within a frame, in bit/s.
//! RFC 8698 bounds the difference by a twentieth of the rate; with that an encoder a fifth over its target never drains.

use paceline_units::{DataSize, Rate, StreamId};

/// Numbers of the buffer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShapingConfig {
    /// Share of the buffer that goes into the next frame's time, `beta`.
    pub beta: f64,
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

    /// The rate for encoders, `R_i`, and for the pacer, `R_send`.
    pub fn rates(&self, rate: Rate) -> (Rate, Rate) {
        let ShapingConfig { beta, fps, most } = self.config;
        let buffer = self.queued().as_bytes() as f64 * 8.0 * fps;
        let difference = Rate::from_bps_f64((beta * buffer).min(most * rate.as_bps_f64()));
        (rate.saturating_sub(difference), rate + difference)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// V5.6: 2000 bytes at 30 frames a second are 48 kbit/s.
    #[test]
    fn a_tenth_of_the_buffer_a_frame() {
        let rates = |most, bytes: &[u64]| {
            let mut shaping = Shaping::new(ShapingConfig { beta: 0.1, fps: 30.0, most });
            for (i, bytes) in bytes.iter().enumerate() {
                shaping.handle_queued(StreamId(i as u8 % 2), DataSize::from_bytes(*bytes));
            }
            let (encoder, pacer) = shaping.rates(Rate::from_kbps(1000));
            (encoder.as_bps(), pacer.as_bps())
        };
        assert_eq!(rates(1.0, &[2000]), (952_000, 1_048_000));
        assert_eq!(rates(1.0, &[7000, 1500, 500]), (952_000, 1_048_000), "the last word of each of two streams");
        assert_eq!(rates(1.0, &[0]), (1_000_000, 1_000_000));
        assert_eq!(rates(0.05, &[20_000]), (950_000, 1_050_000));
        assert_eq!(rates(1.0, &[u64::MAX]), (0, 2_000_000));
    }
}
