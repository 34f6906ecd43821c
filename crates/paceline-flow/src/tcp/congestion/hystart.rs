//! HyStart: ends slow start before the queue overflows (Ha and Rhee, 2011; as in Linux, `net/ipv4/tcp_cubic.c`).
//!
//! In each round trip two signs are looked for: a train of closely spaced ACKs that is longer than half the smallest
//! round-trip time, so that the window fills the path; and a round-trip time that has risen.

use super::{Ack, Window};
use paceline_units::{DataSize, Time, TimeDelta};

/// `hystart_low_window`, segments: below it slow start goes on.
const LOW_WINDOW: u64 = 16;
/// `HYSTART_MIN_SAMPLES`: round-trip times per round.
const SAMPLES: u32 = 8;
/// `HYSTART_DELAY_MIN`, `HYSTART_DELAY_MAX`: bounds of the rise that counts, which is an eighth of the smallest.
const RISE_MIN: TimeDelta = TimeDelta::from_millis(4);
const RISE_MAX: TimeDelta = TimeDelta::from_millis(16);
const RISE_DIVISOR: i64 = 8;
/// `hystart_ack_delta_us`: ACKs of one train are no further apart.
const TRAIN_GAP: TimeDelta = TimeDelta::from_millis(2);
/// `hystart_ack_delay`: what aggregation of ACKs may add; its upper bound, in force below 2 Gbit/s.
const AGGREGATION: TimeDelta = TimeDelta::from_millis(1);

#[derive(Debug)]
pub(super) struct HyStart {
    segment: DataSize,
    /// Smallest round-trip time of the connection and of this round (`delay_min`, `curr_rtt`).
    least: TimeDelta,
    of_round: TimeDelta,
    samples: u32,
    round_start: Time,
    last_ack: Time,
    /// The round ends when more than this is acknowledged (`end_seq`).
    round_end: Option<DataSize>,
}

/// The rise of the round-trip time that ends slow start.
fn rise(least: TimeDelta) -> TimeDelta {
    (least / RISE_DIVISOR).clamp(RISE_MIN, RISE_MAX)
}

/// How long a train of ACKs shows a full path to a sender that does not pace.
fn train(least: TimeDelta) -> TimeDelta {
    (least + AGGREGATION) / 2
}

impl HyStart {
    pub fn new(segment: DataSize) -> Self {
        Self {
            segment,
            least: TimeDelta::MAX,
            of_round: TimeDelta::MAX,
            samples: 0,
            round_start: Time::ZERO,
            last_ack: Time::ZERO,
            round_end: None,
        }
    }

    /// An ACK came in slow start; sets the threshold to the window when slow start should end.
    pub fn handle_ack(&mut self, ack: &Ack, window: &mut Window) {
        let Some(sample) = ack.round_trip else { return };
        self.least = self.least.min(sample);
        if self.round_end.is_none_or(|end| ack.acknowledged > end) {
            self.round_start = ack.now;
            self.last_ack = ack.now;
            self.round_end = Some(ack.sent);
            self.of_round = TimeDelta::MAX;
            self.samples = 0;
        }
        if window.cwnd.as_bytes() < LOW_WINDOW * self.segment.as_bytes() {
            return;
        }
        if ack.now - self.last_ack <= TRAIN_GAP {
            self.last_ack = ack.now;
            if ack.now - self.round_start > train(self.least) {
                window.ssthresh = window.cwnd;
            }
        }
        self.of_round = self.of_round.min(sample);
        if self.samples < SAMPLES {
            self.samples += 1;
        } else if self.of_round > self.least + rise(self.least) {
            window.ssthresh = window.cwnd;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::NO_THRESHOLD;
    use super::*;

    const MS: fn(i64) -> TimeDelta = TimeDelta::from_millis;
    const SEGMENT: DataSize = DataSize::from_bytes(1000);

    #[test]
    fn thresholds_are_the_kernels() {
        assert_eq!((rise(MS(20)), rise(MS(80)), rise(MS(200))), (MS(4), MS(10), MS(16)));
        assert_eq!(train(MS(99)), MS(50));
    }

    /// ACKs of two segments each, `gap` apart, with these round-trip times; when slow start ended, if it did.
    fn ended(segments: u64, gap: TimeDelta, round_trips: impl Iterator<Item = TimeDelta>) -> Option<usize> {
        let mut hystart = HyStart::new(SEGMENT);
        let mut window = Window { cwnd: DataSize::from_bytes(segments * 1000), ssthresh: NO_THRESHOLD };
        for (n, sample) in round_trips.enumerate() {
            let ack = Ack {
                now: Time::from_millis(100) + gap * n as i64,
                acked: DataSize::from_bytes(2000),
                acknowledged: DataSize::from_bytes(2000 * (n as u64 + 1)),
                sent: DataSize::from_bytes(1 << 20),
                round_trip: Some(sample),
                srtt: sample,
                limited: true,
            };
            hystart.handle_ack(&ack, &mut window);
            if window.ssthresh == window.cwnd {
                return Some(n);
            }
        }
        None
    }

    #[test]
    fn a_train_or_a_rise_ends_slow_start() {
        let steady = || std::iter::repeat_n(MS(100), 40);
        // 50.5 ms is passed by the 26th gap of 2 ms; gaps of 3 ms are no train.
        assert_eq!(ended(20, MS(2), steady()), Some(26));
        assert_eq!(ended(20, MS(3), steady()), None);
        assert_eq!(ended(15, MS(2), steady()), None);
        // After the least of 100 ms has been seen, 8 samples of a new round are needed.
        let risen = |ms| std::iter::once(MS(100)).chain(std::iter::repeat_n(MS(ms), 40));
        assert_eq!(ended(20, MS(3), risen(120)), None, "the round's least is still the old one");
    }

    /// 10 Mbit/s, 40 ms, an ACK a segment: the second round's twenty ACKs are a train of 24 ms, more than 20.5.
    #[test]
    fn rounds_are_counted_from_the_first_ack_though_the_window_is_low() {
        let mut hystart = HyStart::new(SEGMENT);
        let mut window = Window { cwnd: DataSize::from_bytes(10_000), ssthresh: NO_THRESHOLD };
        for n in 0..60_u64 {
            // Two segments leave for each ACK; the round trips do not rise.
            let (round, place) = if n < 10 { (0, n) } else { (1, n - 10) };
            let ack = Ack {
                now: Time::from_millis(40 + 40 * round) + TimeDelta::from_micros(1200) * place as i64,
                acked: SEGMENT,
                acknowledged: DataSize::from_bytes(1000 * (n + 1)),
                sent: DataSize::from_bytes(1000 * (10 + 2 * n)),
                round_trip: Some(MS(40)),
                srtt: MS(40),
                limited: true,
            };
            window.cwnd += SEGMENT;
            hystart.handle_ack(&ack, &mut window);
            if window.ssthresh == window.cwnd {
                assert_eq!(n, 28, "18 gaps of 1.2 ms");
                return;
            }
        }
        panic!("it goes on");
    }

    #[test]
    fn a_rise_is_seen_in_the_next_round() {
        for (ms, expected) in [(112, false), (113, true)] {
            let mut hystart = HyStart::new(SEGMENT);
            let mut window = Window { cwnd: DataSize::from_bytes(20_000), ssthresh: NO_THRESHOLD };
            for n in 0..30_u64 {
                let sample = if n < 10 { MS(100) } else { MS(ms) };
                let ack = Ack {
                    now: Time::from_millis(10 * n as i64),
                    acked: SEGMENT,
                    acknowledged: DataSize::from_bytes(1000 * n),
                    sent: DataSize::from_bytes(9_000 + 1000 * n),
                    round_trip: Some(sample),
                    srtt: sample,
                    limited: true,
                };
                hystart.handle_ack(&ack, &mut window);
                assert!(n >= 10 + SAMPLES as u64 || window.ssthresh == NO_THRESHOLD, "ACK {n}");
            }
            assert_eq!(window.ssthresh == window.cwnd, expected, "{ms} ms");
        }
    }
}
