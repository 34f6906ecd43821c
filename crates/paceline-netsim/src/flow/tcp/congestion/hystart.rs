// SPDX-License-Identifier: MIT OR Apache-2.0
//! HyStart: ends slow start before the queue overflows (Ha and Rhee, 2011; as in Linux, `net/ipv4/tcp_cubic.c`).
//!
//! Slow start ends when, within a round trip, a train of closely spaced ACKs is longer than half the minimum round-trip
//! time, which means that the window fills the path, or when the round-trip time has risen.

use super::{Ack, CongestionWindow};
use paceline_units::{DataSize, Time, TimeDelta};

/// `hystart_low_window`: slow start does not end below this window, in segments.
const LOW_WINDOW: u64 = 16;
/// `HYSTART_MIN_SAMPLES`: round-trip time samples per round.
const SAMPLES: u32 = 8;
/// `HYSTART_DELAY_MIN`, `HYSTART_DELAY_MAX`: bounds of the rise threshold, which is an eighth of the minimum round-trip
/// time.
const RISE_MIN: TimeDelta = TimeDelta::from_millis(4);
const RISE_MAX: TimeDelta = TimeDelta::from_millis(16);
const RISE_DIVISOR: i64 = 8;
/// `hystart_ack_delta_us`: the largest gap between ACKs of one train.
const TRAIN_GAP: TimeDelta = TimeDelta::from_millis(2);
/// `hystart_ack_delay`: the allowance for ACK aggregation; its upper bound, which applies below 2 Gbit/s.
const AGGREGATION: TimeDelta = TimeDelta::from_millis(1);

#[derive(Debug)]
pub(super) struct HyStart {
    segment: DataSize,
    /// Minimum round-trip time of the connection and of this round (`delay_min`, `curr_rtt`).
    min_rtt: TimeDelta,
    round_min_rtt: TimeDelta,
    samples: u32,
    round_start: Time,
    last_ack: Time,
    /// The round ends when more than this is acknowledged (`end_seq`).
    round_end: Option<DataSize>,
}

/// The rise of the round-trip time that ends slow start.
fn rtt_rise_threshold(min_rtt: TimeDelta) -> TimeDelta {
    (min_rtt / RISE_DIVISOR).clamp(RISE_MIN, RISE_MAX)
}

/// The length of an ACK train that indicates a full path, for a sender that does not pace.
fn train_threshold(min_rtt: TimeDelta) -> TimeDelta {
    (min_rtt + AGGREGATION) / 2
}

impl HyStart {
    pub fn new(segment: DataSize) -> Self {
        Self {
            segment,
            min_rtt: TimeDelta::MAX,
            round_min_rtt: TimeDelta::MAX,
            samples: 0,
            round_start: Time::ZERO,
            last_ack: Time::ZERO,
            round_end: None,
        }
    }

    /// Handles an ACK in slow start. Sets the threshold to the window if slow start should end.
    pub fn handle_ack(&mut self, ack: &Ack, window: &mut CongestionWindow) {
        let Some(sample) = ack.round_trip else { return };
        self.min_rtt = self.min_rtt.min(sample);
        if self.round_end.is_none_or(|end| ack.acknowledged > end) {
            self.round_start = ack.now;
            self.last_ack = ack.now;
            self.round_end = Some(ack.sent);
            self.round_min_rtt = TimeDelta::MAX;
            self.samples = 0;
        }
        if window.cwnd.as_bytes() < LOW_WINDOW * self.segment.as_bytes() {
            return;
        }
        if ack.now - self.last_ack <= TRAIN_GAP {
            self.last_ack = ack.now;
            if ack.now - self.round_start > train_threshold(self.min_rtt) {
                window.ssthresh = window.cwnd;
            }
        }
        self.round_min_rtt = self.round_min_rtt.min(sample);
        if self.samples < SAMPLES {
            self.samples += 1;
        } else if self.round_min_rtt > self.min_rtt + rtt_rise_threshold(self.min_rtt) {
            window.ssthresh = window.cwnd;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::NO_THRESHOLD;
    use super::*;

    const MS: fn(i64) -> TimeDelta = TimeDelta::from_millis;
    const SEGMENTS: fn(u64) -> DataSize = |n| DataSize::from_bytes(1000 * n);
    const SEGMENT: DataSize = DataSize::from_bytes(1000);

    #[test]
    fn thresholds_are_those_of_linux() {
        assert_eq!(
            (rtt_rise_threshold(MS(20)), rtt_rise_threshold(MS(80)), rtt_rise_threshold(MS(200))),
            (MS(4), MS(10), MS(16))
        );
        assert_eq!(train_threshold(MS(99)), MS(50));
    }

    struct SlowStart {
        hystart: HyStart,
        window: CongestionWindow,
    }

    impl SlowStart {
        fn new(segments: u64) -> Self {
            let window = CongestionWindow { cwnd: SEGMENTS(segments), ssthresh: NO_THRESHOLD };
            Self { hystart: HyStart::new(SEGMENT), window }
        }

        /// Handles an ACK, with the acknowledged and the sent segments so far. Returns whether slow start has ended.
        fn ends(&mut self, now: Time, acknowledged: u64, sent: u64, rtt: TimeDelta) -> bool {
            let (acknowledged, sent) = (SEGMENTS(acknowledged), SEGMENTS(sent));
            let (round_trip, srtt) = (Some(rtt), rtt);
            let ack = Ack { now, acked: SEGMENT, acknowledged, sent, round_trip, srtt, cwnd_limited: true };
            self.hystart.handle_ack(&ack, &mut self.window);
            self.window.ssthresh == self.window.cwnd
        }
    }

    #[test]
    fn an_ack_train_or_a_risen_round_trip_time_ends_slow_start() {
        // ACKs of two segments each, `gap_ms` apart: the one that ends slow start.
        let ended = |segments, gap_ms, round_trips: [TimeDelta; 41]| {
            let mut slow_start = SlowStart::new(segments);
            let mut acks = (0..).zip(round_trips);
            let now = |n| Time::from_millis(100 + gap_ms * n as i64);
            acks.find(|(n, rtt)| slow_start.ends(now(*n), 2 * (n + 1), 1 << 10, *rtt)).map(|(n, _)| n)
        };
        let steady = [MS(100); 41];
        // The 26th gap of 2 ms exceeds 50.5 ms; gaps of 3 ms are not a train.
        assert_eq!(ended(20, 2, steady), Some(26));
        assert_eq!(ended(20, 3, steady), None);
        assert_eq!(ended(15, 2, steady), None);
        // With a minimum of 100 ms, 8 samples of a new round are needed.
        let risen = core::array::from_fn(|n| if n == 0 { MS(100) } else { MS(120) });
        assert_eq!(ended(20, 3, risen), None, "the minimum of the round is still the old one");
    }

    /// 10 Mbit/s, 40 ms, one ACK per segment: the twenty ACKs of the second round are a train of 24 ms, more than 20.5.
    #[test]
    fn rounds_are_counted_from_the_first_ack_even_with_a_low_window() {
        let mut slow_start = SlowStart::new(10);
        let ended = (0..60_u64).find(|n| {
            // Two segments are sent per ACK; the round-trip times do not rise.
            let (round, place) = if *n < 10 { (0, *n) } else { (1, n - 10) };
            let now = Time::from_millis(40 + 40 * round) + TimeDelta::from_micros(1200) * place as i64;
            slow_start.window.cwnd += SEGMENT;
            slow_start.ends(now, n + 1, 10 + 2 * n, MS(40))
        });
        assert_eq!(ended, Some(28), "18 gaps of 1.2 ms");
    }

    #[test]
    fn a_risen_round_trip_time_is_detected_in_the_next_round() {
        for (ms, expected) in [(112, false), (113, true)] {
            let mut slow_start = SlowStart::new(20);
            let ended = (0..30_u64).find(|n| {
                let rtt = if *n < 10 { MS(100) } else { MS(ms) };
                slow_start.ends(Time::from_millis(10 * *n as i64), *n, 9 + n, rtt)
            });
            assert_eq!(ended.is_some(), expected, "{ms} ms");
            assert!(ended.is_none_or(|n| n >= 10 + SAMPLES as u64), "ACK {ended:?}");
        }
    }
}
