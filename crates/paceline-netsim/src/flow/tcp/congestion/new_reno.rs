// SPDX-License-Identifier: MIT OR Apache-2.0
//! The window of NewReno (RFC 5681). The sender does the recovery, according to RFC 6675 instead of RFC 6582, because
//! all connections use selective acknowledgments.

use super::{Ack, Congestion, CongestionWindow, THRESHOLD_MIN};
use crate::flow::tcp::TcpConfig;
use paceline_units::DataSize;

#[derive(Debug)]
struct NewReno {
    config: TcpConfig,
    /// Bytes acknowledged since the window last grew.
    counted: DataSize,
}

pub(super) fn build(config: &TcpConfig, _: u64) -> Box<dyn Congestion> {
    Box::new(NewReno { config: *config, counted: DataSize::ZERO })
}

/// Congestion avoidance as recommended by RFC 5681, section 3.1: the window grows by one segment per window of
/// acknowledged bytes. Over a window this equals equation 3, `SMSS * SMSS / cwnd` per segment.
#[inline]
fn avoid_congestion(window: &mut CongestionWindow, counted: &mut DataSize, acked: DataSize, segment: DataSize) {
    *counted += acked;
    if *counted >= window.cwnd {
        *counted -= window.cwnd;
        window.cwnd += segment;
    }
}

/// `beta_ecn` of Reno (RFC 8511, section 3).
const BETA_ECN: f64 = 0.8;

/// RFC 5681, equation 4.
pub(super) fn half_the_flight(flight: DataSize, segment: DataSize) -> DataSize {
    DataSize::from_bytes((flight.as_bytes() / 2).max(THRESHOLD_MIN * segment.as_bytes()))
}

impl Congestion for NewReno {
    fn handle_ack(&mut self, ack: &Ack, window: &mut CongestionWindow) {
        if !ack.cwnd_limited {
            return;
        }
        let mut acked = ack.acked;
        if window.in_slow_start() {
            acked = window.slow_start(acked, self.config.slow_start_limit());
        }
        if acked > DataSize::ZERO {
            avoid_congestion(window, &mut self.counted, acked, self.config.segment);
        }
    }

    fn handle_loss(&mut self, flight: DataSize, window: &mut CongestionWindow) {
        let segment = self.config.segment;
        // Linux halves the window in whole segments (`tcp_reno_ssthresh`).
        window.ssthresh = if self.config.profile.kernel_windows {
            let half = window.cwnd.as_bytes() / segment.as_bytes() / 2;
            DataSize::from_bytes(half.max(THRESHOLD_MIN) * segment.as_bytes())
        } else {
            half_the_flight(flight, segment)
        };
        self.counted = DataSize::ZERO;
    }

    fn handle_mark(&mut self, flight: DataSize, window: &mut CongestionWindow, alternative: bool) {
        // In slow start the reduction is that of a loss (RFC 8511, section 4).
        let less = alternative && !window.in_slow_start();
        self.handle_loss(flight, window);
        if less {
            let bytes = (flight.as_bytes() as f64 * BETA_ECN) as u64;
            window.ssthresh = DataSize::from_bytes(bytes.max(THRESHOLD_MIN * self.config.segment.as_bytes()));
        }
    }

    fn handle_timeout(&mut self, flight: DataSize, window: &mut CongestionWindow) {
        self.handle_loss(flight, window);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::config;
    use super::*;

    const BYTES: fn(u64) -> DataSize = DataSize::from_bytes;

    #[test]
    fn window_grows_by_a_segment_per_window_of_acks() {
        let segment = BYTES(1460);
        let mut window = CongestionWindow { cwnd: BYTES(14_600), ssthresh: BYTES(14_600) };
        let mut counted = DataSize::ZERO;
        for n in 1..=10 {
            assert_eq!(window.cwnd, BYTES(14_600), "before ACK {n}");
            avoid_congestion(&mut window, &mut counted, segment, segment);
        }
        // Ten ACKs, 146 bytes each.
        assert_eq!((window.cwnd, counted), (BYTES(16_060), DataSize::ZERO));
    }

    #[test]
    fn linux_halves_the_window_and_the_rfc_the_flight() {
        for (kernel_windows, cwnd, expected) in [(true, 13_400, 6_000), (false, 13_400, 4_500), (true, 3_000, 2_000)] {
            let mut window = CongestionWindow { cwnd: BYTES(cwnd), ssthresh: BYTES(u64::MAX) };
            build(&config(kernel_windows), 1).handle_loss(BYTES(9_000), &mut window);
            assert_eq!(window.ssthresh, BYTES(expected));
        }
    }

    #[test]
    fn mark_leaves_more_than_a_loss_with_rfc_8511_outside_slow_start() {
        let after = |ssthresh: u64, alternative| {
            let mut window = CongestionWindow { cwnd: BYTES(10_000), ssthresh: BYTES(ssthresh) };
            build(&config(false), 1).handle_mark(BYTES(10_000), &mut window, alternative);
            window.ssthresh.as_bytes()
        };
        assert_eq!([after(5000, false), after(5000, true), after(50_000, true)], [5000, 8000, 5000]);
    }

    #[test]
    fn threshold_is_half_the_flight_and_at_least_two_segments() {
        assert_eq!(half_the_flight(BYTES(100_000), BYTES(1460)), BYTES(50_000));
        assert_eq!(half_the_flight(BYTES(4_000), BYTES(1460)), BYTES(2_920));
    }
}
