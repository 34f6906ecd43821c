// SPDX-License-Identifier: MIT OR Apache-2.0
//! DCTCP (RFC 8257): the window falls in proportion to the share of marked bytes.
//!
//! ```text
//! M     = marked bytes / acknowledged bytes, of a window
//! alpha = (1 - g) alpha + g M
//! cwnd  = (1 - alpha / 2) cwnd        once per window with marks
//! ```
//!
//! Growth and losses are those of NewReno (section 3.5).

use super::{Ack, Congestion, CongestionWindow, MarkSample, THRESHOLD_MIN, new_reno};
use crate::flow::tcp::TcpConfig;
use paceline_units::DataSize;

/// `g` (section 4.2).
const GAIN: f64 = 1.0 / 16.0;
/// The first `alpha` (section 3.3).
const ALPHA_START: f64 = 1.0;

/// Section 3.3, step 7.
pub(super) fn alpha_after(alpha: f64, marked: f64) -> f64 {
    alpha * (1.0 - GAIN) + GAIN * marked
}

/// Section 3.3, step 9; at least two segments.
pub(super) fn reduced(cwnd: DataSize, alpha: f64, segment: DataSize) -> DataSize {
    let bytes = cwnd.as_bytes() as f64 * (1.0 - alpha / 2.0);
    DataSize::from_bytes((bytes as u64).max(THRESHOLD_MIN * segment.as_bytes()))
}

/// The share of marked bytes, measured once per window.
#[derive(Clone, Debug)]
pub(super) struct MarkedShare {
    pub alpha: f64,
    acked: u64,
    marked: u64,
    /// The window ends when more than this is acknowledged (`DCTCP.WindowEnd`).
    end: DataSize,
}

impl MarkedShare {
    pub fn new() -> Self {
        Self { alpha: ALPHA_START, acked: 0, marked: 0, end: DataSize::ZERO }
    }

    /// Handles an ACK. Returns the share of the window that it ends, if it ends one and `may_end`.
    pub fn handle(&mut self, sample: &MarkSample, may_end: bool) -> Option<f64> {
        self.acked += sample.acked.as_bytes();
        self.marked += sample.marked.as_bytes();
        if sample.acknowledged <= self.end || self.acked == 0 || !may_end {
            return None;
        }
        let share = (self.marked as f64 / self.acked as f64).min(1.0);
        (self.acked, self.marked, self.end) = (0, 0, sample.sent);
        Some(share)
    }
}

#[derive(Debug)]
struct Dctcp {
    segment: DataSize,
    growth: Box<dyn Congestion>,
    share: MarkedShare,
    /// The window was reduced until more than this is acknowledged.
    reduced: DataSize,
}

pub(super) fn build(config: &TcpConfig, seed: u64) -> Box<dyn Congestion> {
    let (segment, growth) = (config.segment, new_reno::build(config, seed));
    Box::new(Dctcp { segment, growth, share: MarkedShare::new(), reduced: DataSize::ZERO })
}

impl Congestion for Dctcp {
    fn handle_ack(&mut self, ack: &Ack, window: &mut CongestionWindow) {
        self.growth.handle_ack(ack, window);
    }

    fn handle_loss(&mut self, flight: DataSize, window: &mut CongestionWindow) {
        self.growth.handle_loss(flight, window);
    }

    fn handle_timeout(&mut self, flight: DataSize, window: &mut CongestionWindow) {
        self.growth.handle_timeout(flight, window);
    }

    fn handle_marks(&mut self, sample: &MarkSample, window: &mut CongestionWindow) -> bool {
        if let Some(marked) = self.share.handle(sample, true) {
            self.share.alpha = alpha_after(self.share.alpha, marked);
        }
        if sample.marked == DataSize::ZERO || !sample.open || sample.acknowledged <= self.reduced {
            return false;
        }
        self.reduced = sample.sent;
        window.cwnd = reduced(window.cwnd, self.share.alpha, self.segment);
        window.ssthresh = window.cwnd;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::config;
    use super::*;
    use paceline_units::Time;

    fn near(value: f64, expected: f64) {
        assert!((value - expected).abs() < 1e-6, "{value} is not {expected}");
    }

    #[test]
    fn alpha_follows_the_equation_of_rfc_8257() {
        let after = |start: f64, marked: &[f64]| marked.iter().fold(start, |alpha, m| alpha_after(alpha, *m));
        near(after(1.0, &[1.0]), 1.0);
        near(after(1.0, &[1.0, 0.0]), 0.9375);
        near(after(1.0, &[1.0, 0.0, 0.0]), 0.878_906_25);
        near(after(1.0, &[1.0, 0.0, 0.0, 0.0]), 0.823_974_609);
        near(after(1.0, &[0.0; 11]), 0.491_682);
        near(after(1.0, &[0.0; 48]), 0.045_146);
        near(after(0.0, &[0.1; 8]), 0.040_328);
    }

    #[test]
    fn window_falls_by_half_of_alpha() {
        let (cwnd, segment) = (DataSize::from_bytes(100_000), DataSize::from_bytes(1000));
        let after = |alpha| reduced(cwnd, alpha, segment).as_bytes();
        assert_eq!([1.0, 0.5, 0.1, 0.02].map(after), [50_000, 75_000, 95_000, 99_000]);
        assert_eq!(reduced(DataSize::from_bytes(2500), 1.0, segment), DataSize::from_bytes(2000));
    }

    /// A window of ten segments: the first mark halves it (alpha is 1), the second one within the window has no effect.
    #[test]
    fn there_is_one_reduction_per_window() {
        let bytes = DataSize::from_bytes;
        let mut dctcp = build(&config(true), 1);
        let mut window = CongestionWindow { cwnd: bytes(10_000), ssthresh: bytes(u64::MAX) };
        let mut ack = |acknowledged: u64, sent: u64, marked: u64| {
            let sample = MarkSample {
                now: Time::ZERO,
                acked: bytes(1000),
                marked: bytes(marked),
                acknowledged: bytes(acknowledged),
                sent: bytes(sent),
                open: true,
            };
            let reduced = dctcp.handle_marks(&sample, &mut window);
            (reduced, window.cwnd.as_bytes())
        };
        assert_eq!(ack(1000, 10_000, 1000), (true, 5000));
        assert_eq!(ack(2000, 10_000, 1000), (false, 5000));
        assert_eq!(ack(10_000, 15_000, 1000), (false, 5000));
        // alpha is now 15/16 of 1 plus 1/16 of 3 marks in 3.
        assert_eq!(ack(11_000, 15_000, 1000), (true, 2500));
    }
}
