// SPDX-License-Identifier: MIT OR Apache-2.0
//! Delivery rate estimation (Cheng and Cardwell, draft-cheng-iccrg-delivery-rate-estimation; in Linux
//! `net/ipv4/tcp_rate.c`).
//!
//! The bytes delivered so far are recorded when a segment is sent. When it is acknowledged, the bytes delivered since,
//! divided by the time, are a delivery rate. The time is that of sending or of acknowledging, whichever is longer, so
//! that neither compressed ACKs nor bursts make the path seem faster than it is. A rate is marked as
//! application-limited if there was not always data to send, because the path may be faster.

use super::scoreboard::AckSummary;
use paceline_units::{DataSize, Rate, Time, TimeDelta};
use std::collections::VecDeque;

/// The state of the connection when a segment was sent (`tcp_skb_cb.tx`).
#[derive(Clone, Copy, Debug)]
struct Snapshot {
    /// Bytes delivered (P.delivered), and the time of the last delivery (P.delivered_time).
    delivered: u64,
    delivered_at: Time,
    /// Send time of the segment that was acknowledged last (P.first_sent_time).
    first_sent: Time,
    /// P.is_app_limited.
    app_limited: bool,
    /// Bytes in the network, this segment included (P.tx_in_flight), and bytes found lost before (P.lost).
    pipe: u64,
    lost: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RateMeasurement {
    /// Bytes newly delivered.
    pub acked: u64,
    /// Bytes delivered before the newest acknowledged segment was sent, and the delivery rate since; `None` if there is
    /// no valid rate.
    pub rate: Option<(u64, Rate)>,
    /// The application, or the congestion control itself, did not always have data to send.
    pub app_limited: bool,
    /// Bytes in the network when the newest acknowledged segment was sent, and bytes found lost since.
    pub pipe_sent: u64,
    pub lost_since: u64,
}

#[derive(Debug)]
pub(super) struct DeliveryRateEstimator {
    /// One per segment in flight, starting with number `base`.
    snapshots: VecDeque<Snapshot>,
    base: u64,
    /// C.delivered, C.delivered_time, C.first_sent_time.
    delivered: u64,
    delivered_at: Time,
    first_sent: Time,
    /// C.lost.
    lost: u64,
    /// Sent segments are application-limited until more than this is delivered (C.app_limited); zero: they are not.
    app_limited_until: u64,
    /// Minimum round-trip time. Rates over a shorter time are invalid, and so are rates before a round-trip time is
    /// known.
    min_rtt: TimeDelta,
}

/// Section 3.3: the rate over the longer of the two times.
fn delivery_rate(size: u64, send_elapsed: TimeDelta, ack_elapsed: TimeDelta) -> Rate {
    Rate::from_size_and_time(DataSize::from_bytes(size), send_elapsed.max(ack_elapsed))
}

impl DeliveryRateEstimator {
    pub fn new() -> Self {
        Self {
            snapshots: VecDeque::new(),
            base: 0,
            delivered: 0,
            delivered_at: Time::ZERO,
            first_sent: Time::ZERO,
            lost: 0,
            app_limited_until: 0,
            min_rtt: TimeDelta::MAX,
        }
    }

    /// Resets the estimator for a new connection. Allocated memory is kept.
    pub fn reset(&mut self) {
        let mut snapshots = core::mem::take(&mut self.snapshots);
        snapshots.clear();
        *self = Self { snapshots, ..Self::new() };
    }

    /// Returns the bytes delivered since the connection began.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    pub fn handle_round_trip(&mut self, sample: TimeDelta) {
        self.min_rtt = self.min_rtt.min(sample);
    }

    /// Handles segment `number` being sent. `pipe`: bytes in the network with it. `idle`: nothing was in flight before.
    pub fn handle_sent(&mut self, now: Time, number: u64, pipe: u64, idle: bool) {
        if idle {
            (self.first_sent, self.delivered_at) = (now, now);
        }
        let snapshot = Snapshot {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent: self.first_sent,
            app_limited: self.app_limited_until > 0,
            pipe,
            lost: self.lost,
        };
        match self.snapshots.get_mut((number - self.base) as usize) {
            Some(place) => *place = snapshot,
            None => self.snapshots.push_back(snapshot),
        }
    }

    /// Handles an ACK, after which all segments below `base` are acknowledged.
    pub fn handle_ack(&mut self, now: Time, summary: &AckSummary, base: u64) -> RateMeasurement {
        let acked = summary.delivered - summary.repeated;
        self.delivered += acked;
        self.lost += summary.lost;
        let mut measured = RateMeasurement { acked, ..RateMeasurement::default() };
        if self.delivered > self.app_limited_until {
            self.app_limited_until = 0;
        }
        if acked > 0 {
            self.delivered_at = now;
        }
        if let Some((sent, number)) = summary.newest {
            let at = self.snapshots[(number - self.base) as usize];
            let (send_elapsed, ack_elapsed) = (sent - at.first_sent, now - at.delivered_at);
            self.first_sent = sent;
            measured.app_limited = at.app_limited;
            (measured.pipe_sent, measured.lost_since) = (at.pipe, self.lost - at.lost);
            if send_elapsed.max(ack_elapsed) >= self.min_rtt {
                let rate = delivery_rate(self.delivered - at.delivered, send_elapsed, ack_elapsed);
                measured.rate = Some((at.delivered, rate));
            }
        }
        self.snapshots.drain(..(base - self.base) as usize);
        self.base = base;
        measured
    }

    /// Marks the segments sent from now on as application-limited. `pipe`: bytes in the network.
    pub fn mark_app_limited(&mut self, pipe: u64) {
        self.app_limited_until = (self.delivered + pipe).max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::super::scoreboard::Scoreboard;
    use super::*;

    const MSS: u64 = 1000;
    const AT: fn(i64) -> Time = Time::from_millis;

    struct Pair {
        scoreboard: Scoreboard,
        delivery: DeliveryRateEstimator,
    }

    impl Pair {
        fn new() -> Self {
            let mut delivery = DeliveryRateEstimator::new();
            delivery.handle_round_trip(TimeDelta::from_millis(10));
            Self { scoreboard: Scoreboard::new(MSS, u64::MAX, false), delivery }
        }
        fn send(&mut self, ms: i64) {
            let idle = self.scoreboard.flight() == 0;
            self.delivery.handle_sent(AT(ms), self.scoreboard.end(), self.scoreboard.pipe() + MSS, idle);
            self.scoreboard.handle_sent(AT(ms));
        }
        fn ack(&mut self, ms: i64, up_to: u64, sacks: &[(u64, u64)]) -> RateMeasurement {
            let summary = self.scoreboard.handle_ack(up_to * MSS, sacks.iter().map(|(a, b)| (a * MSS, b * MSS)));
            self.delivery.handle_ack(AT(ms), &summary, self.scoreboard.base())
        }
    }

    fn kbps(measured: RateMeasurement) -> Option<u64> {
        measured.rate.map(|(_, rate)| rate.as_bps() / 1000)
    }

    #[test]
    fn rate_is_delivered_bytes_over_the_longer_time() {
        let mut pair = Pair::new();
        for ms in 0..4 {
            pair.send(ms);
        }
        // One segment is acknowledged 100 ms after it was sent, then the others 10 ms apart.
        assert_eq!(kbps(pair.ack(100, 1, &[])), Some(80));
        assert_eq!(kbps(pair.ack(110, 2, &[])), Some(145)); // 2000 B in 110 ms
        pair.send(110);
        pair.ack(120, 3, &[]);
        pair.ack(130, 4, &[]);
        // The last segment was sent at 110 ms, when 2000 B were delivered; at 210 ms it is 5000 B. The segment whose
        // ACK triggered it was sent at 1 ms, so sending those 3000 B took 109 ms.
        let last = pair.ack(210, 5, &[]);
        assert_eq!(
            last.rate,
            Some((2000, Rate::from_size_and_time(DataSize::from_bytes(3000), TimeDelta::from_millis(109))))
        );
        assert_eq!((last.acked, pair.delivery.delivered(), last.app_limited), (1000, 5000, false));
    }

    #[test]
    fn compressed_acks_do_not_raise_the_rate() {
        // Ten segments are sent 10 ms apart and acknowledged at once, as behind a slow uplink.
        let mut pair = Pair::new();
        for n in 0..10 {
            pair.send(10 * n);
        }
        pair.ack(90, 1, &[]);
        for n in 10..20 {
            pair.send(10 * n);
        }
        let all = pair.ack(195, 10, &[]);
        // Sent from 0 to 90 ms, acknowledged from 0 to 195.
        assert_eq!(kbps(all), Some(10_000 * 8 / 195));
        // The ten sent from 100 to 190 ms are acknowledged 1 ms later: 19 kB within 106 ms. Sending took 190 ms.
        assert_eq!(kbps(pair.ack(196, 20, &[])), Some(19_000 * 8 / 190));
    }

    #[test]
    fn the_newest_acknowledged_segment_may_be_a_retransmission() {
        let mut pair = Pair::new();
        for ms in 0..6 {
            pair.send(ms);
        }
        let sacked = pair.ack(100, 0, &[(1, 4)]);
        assert_eq!(sacked.rate, Some((0, Rate::from_kbps(240))));
        pair.scoreboard.handle_retransmitted(AT(101), 0, false);
        pair.delivery.handle_sent(AT(101), 0, MSS, false);
        // It was sent last, with 3000 B delivered at 100 ms; now it is 6000.
        let repaired = pair.ack(200, 6, &[]);
        assert_eq!(repaired.rate, Some((3000, Rate::from_kbps(240))));
        assert_eq!(repaired.acked, 3000);
    }

    #[test]
    fn segments_sent_without_more_data_are_app_limited() {
        let mut pair = Pair::new();
        pair.send(0);
        pair.send(1);
        pair.delivery.mark_app_limited(pair.scoreboard.pipe());
        pair.send(50);
        assert!(!pair.ack(100, 1, &[]).app_limited, "it was sent before");
        assert!(!pair.ack(101, 2, &[]).app_limited);
        pair.send(120);
        assert!(pair.ack(150, 3, &[]).app_limited);
        // More than the 2000 B are delivered: segments sent now are not limited.
        pair.send(151);
        assert!(pair.ack(220, 4, &[]).app_limited);
        assert!(!pair.ack(251, 5, &[]).app_limited);
    }

    #[test]
    fn rates_over_less_than_a_round_trip_are_invalid() {
        let mut pair = Pair::new();
        pair.send(0);
        pair.send(1);
        assert_eq!(pair.ack(9, 1, &[]).rate, None);
        assert_eq!(kbps(pair.ack(10, 2, &[])), Some(1600));
    }

    #[test]
    fn bytes_sacked_again_after_a_timeout_are_delivered_once() {
        let mut pair = Pair::new();
        for ms in 0..5 {
            pair.send(ms);
        }
        assert_eq!(pair.ack(100, 0, &[(1, 5)]).acked, 4000);
        pair.scoreboard.handle_timeout(true);
        pair.scoreboard.handle_retransmitted(AT(1000), 0, false);
        pair.delivery.handle_sent(AT(1000), 0, MSS, false);
        let again = pair.ack(1100, 5, &[]);
        assert_eq!((again.acked, pair.delivery.delivered()), (1000, 5000));
        assert_eq!(again.rate, Some((4000, Rate::from_kbps(8)))); // 1000 B since 100 ms
    }
}
