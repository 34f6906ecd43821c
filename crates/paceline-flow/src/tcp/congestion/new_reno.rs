//! NewReno's window (RFC 5681). Its recovery is the sender's, by RFC 6675 rather than RFC 6582, since every segment
//! carries selective acknowledgments.

use super::{Ack, Congestion, Settings, THRESHOLD_MIN, Window};
use paceline_units::DataSize;

#[derive(Debug)]
struct NewReno {
    settings: Settings,
    /// Bytes acknowledged since the window last grew.
    counted: DataSize,
}

pub(super) fn build(settings: Settings) -> Box<dyn Congestion> {
    Box::new(NewReno { settings, counted: DataSize::ZERO })
}

/// RFC 5681, section 3.1, the recommended way: a segment more for each window of bytes acknowledged. Over a window this
/// is equation 3, `SMSS * SMSS / cwnd` per segment.
#[inline]
fn avoid(window: &mut Window, counted: &mut DataSize, acked: DataSize, segment: DataSize) {
    *counted += acked;
    if *counted >= window.cwnd {
        *counted -= window.cwnd;
        window.cwnd += segment;
    }
}

/// RFC 5681, equation 4.
pub(super) fn half_the_flight(flight: DataSize, segment: DataSize) -> DataSize {
    DataSize::from_bytes((flight.as_bytes() / 2).max(THRESHOLD_MIN * segment.as_bytes()))
}

impl Congestion for NewReno {
    fn handle_ack(&mut self, ack: &Ack, window: &mut Window) {
        if !ack.limited {
            return;
        }
        let mut acked = ack.acked;
        if window.in_slow_start() {
            acked = window.slow_start(acked, self.settings.slow_start_limit);
        }
        if acked > DataSize::ZERO {
            avoid(window, &mut self.counted, acked, self.settings.segment);
        }
    }

    fn handle_loss(&mut self, flight: DataSize, window: &mut Window) {
        let segment = self.settings.segment;
        // The kernel takes the window, in whole segments (`tcp_reno_ssthresh`).
        window.ssthresh = if self.settings.kernel_windows {
            let half = window.cwnd.as_bytes() / segment.as_bytes() / 2;
            DataSize::from_bytes(half.max(THRESHOLD_MIN) * segment.as_bytes())
        } else {
            half_the_flight(flight, segment)
        };
        self.counted = DataSize::ZERO;
    }

    fn handle_timeout(&mut self, flight: DataSize, window: &mut Window) {
        self.handle_loss(flight, window);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: fn(u64) -> DataSize = DataSize::from_bytes;

    #[test]
    fn a_window_of_acks_is_a_segment() {
        let segment = BYTES(1460);
        let mut window = Window { cwnd: BYTES(14_600), ssthresh: BYTES(14_600) };
        let mut counted = DataSize::ZERO;
        for n in 1..=10 {
            assert_eq!(window.cwnd, BYTES(14_600), "before ACK {n}");
            avoid(&mut window, &mut counted, segment, segment);
        }
        // Ten ACKs, 146 bytes each.
        assert_eq!((window.cwnd, counted), (BYTES(16_060), DataSize::ZERO));
    }

    #[test]
    fn the_kernel_halves_the_window_and_the_rfc_the_flight() {
        for (kernel_windows, cwnd, expected) in [(true, 13_400, 6_000), (false, 13_400, 4_500), (true, 3_000, 2_000)] {
            let segment = BYTES(1000);
            let settings = Settings { segment, slow_start_limit: None, hystart: false, kernel_windows, seed: 1 };
            let mut window = Window { cwnd: BYTES(cwnd), ssthresh: BYTES(u64::MAX) };
            build(settings).handle_loss(BYTES(9_000), &mut window);
            assert_eq!(window.ssthresh, BYTES(expected));
        }
    }

    #[test]
    fn half_the_flight_but_two_segments() {
        assert_eq!(half_the_flight(BYTES(100_000), BYTES(1460)), BYTES(50_000));
        assert_eq!(half_the_flight(BYTES(4_000), BYTES(1460)), BYTES(2_920));
    }
}
