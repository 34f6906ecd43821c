//! Delivery rates (Cheng and Cardwell, draft-cheng-iccrg-delivery-rate-estimation; in Linux `net/ipv4/tcp_rate.c`): what
//! an ACK tells of how fast the path carries.
//!
//! When a segment leaves, it is noted how much had been delivered by then. When it is acknowledged, the difference to
//! what is delivered now, over the time between, is a rate: of sending or of acknowledging, whichever took longer, for
//! neither ACKs nor segments that bunch may make the path seem faster than it is. A rate at which the application had
//! nothing more to send says little of the path and is marked.

use super::scoreboard::Heard;
use paceline_units::{DataSize, Rate, Time, TimeDelta};
use std::collections::VecDeque;

/// As things stood when a segment left (`tcp_skb_cb.tx`).
#[derive(Clone, Copy, Debug)]
struct Snapshot {
    /// Bytes delivered by then (P.delivered), and when the last of them were (P.delivered_time).
    delivered: u64,
    delivered_at: Time,
    /// When the segment left whose ACK was the latest then (P.first_sent_time).
    first_sent: Time,
    /// P.is_app_limited.
    limited: bool,
}

/// What an ACK told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Measured {
    /// Bytes newly delivered.
    pub acked: u64,
    /// Bytes that had been delivered when the newest of the segments left that it acknowledged, and the rate since;
    /// `None` where that is no honest measure.
    pub rate: Option<(u64, Rate)>,
    /// The application, or the algorithm by its own will, had nothing to send meanwhile.
    pub limited: bool,
}

/// The estimator of one connection.
#[derive(Debug)]
pub(super) struct Delivery {
    /// Of the segments in flight; the first is number `base`.
    snapshots: VecDeque<Snapshot>,
    base: u64,
    /// C.delivered, C.delivered_time, C.first_sent_time.
    delivered: u64,
    delivered_at: Time,
    first_sent: Time,
    /// What leaves is limited by the application until more than this is delivered (C.app_limited); zero: it is not.
    limited_until: u64,
    /// Least round-trip time: no rate is measured over less, nor before one is known.
    least: TimeDelta,
}

/// Section 3.3: over the longer of the two times.
fn delivery_rate(size: u64, send_elapsed: TimeDelta, ack_elapsed: TimeDelta) -> Rate {
    Rate::of(DataSize::from_bytes(size), send_elapsed.max(ack_elapsed))
}

impl Delivery {
    pub fn new() -> Self {
        Self {
            snapshots: VecDeque::new(),
            base: 0,
            delivered: 0,
            delivered_at: Time::ZERO,
            first_sent: Time::ZERO,
            limited_until: 0,
            least: TimeDelta::MAX,
        }
    }

    /// Starts anew, keeping memory.
    pub fn reset(&mut self) {
        let mut snapshots = core::mem::take(&mut self.snapshots);
        snapshots.clear();
        *self = Self { snapshots, ..Self::new() };
    }

    /// Bytes delivered since the connection began.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// A round-trip time was measured.
    pub fn handle_round_trip(&mut self, sample: TimeDelta) {
        self.least = self.least.min(sample);
    }

    /// Segment `number` leaves; `idle`: nothing was in flight before.
    pub fn handle_sent(&mut self, now: Time, number: u64, idle: bool) {
        if idle {
            (self.first_sent, self.delivered_at) = (now, now);
        }
        let snapshot = Snapshot {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent: self.first_sent,
            limited: self.limited_until > 0,
        };
        match self.snapshots.get_mut((number - self.base) as usize) {
            Some(place) => *place = snapshot,
            None => self.snapshots.push_back(snapshot),
        }
    }

    /// An ACK came; now all segments below `base` are acknowledged.
    pub fn handle_ack(&mut self, now: Time, heard: &Heard, base: u64) -> Measured {
        let acked = heard.delivered - heard.again;
        self.delivered += acked;
        let mut measured = Measured { acked, rate: None, limited: false };
        if self.delivered > self.limited_until {
            self.limited_until = 0;
        }
        if acked > 0 {
            self.delivered_at = now;
        }
        if let Some((sent, number)) = heard.newest {
            let at = self.snapshots[(number - self.base) as usize];
            let (send_elapsed, ack_elapsed) = (sent - at.first_sent, now - at.delivered_at);
            self.first_sent = sent;
            measured.limited = at.limited;
            if send_elapsed.max(ack_elapsed) >= self.least {
                let rate = delivery_rate(self.delivered - at.delivered, send_elapsed, ack_elapsed);
                measured.rate = Some((at.delivered, rate));
            }
        }
        self.snapshots.drain(..(base - self.base) as usize);
        self.base = base;
        measured
    }

    /// Nothing more is there to send while `pipe` bytes are in the network: what leaves from now on is limited.
    pub fn limit(&mut self, pipe: u64) {
        self.limited_until = (self.delivered + pipe).max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::super::scoreboard::Scoreboard;
    use super::*;

    const MSS: u64 = 1000;
    const AT: fn(i64) -> Time = Time::from_millis;

    /// A scoreboard beside the estimator.
    struct Pair {
        board: Scoreboard,
        delivery: Delivery,
    }

    impl Pair {
        fn new() -> Self {
            let mut delivery = Delivery::new();
            delivery.handle_round_trip(TimeDelta::from_millis(10));
            Self { board: Scoreboard::new(MSS, u64::MAX, false), delivery }
        }
        fn send(&mut self, ms: i64) {
            let idle = self.board.flight() == 0;
            self.delivery.handle_sent(AT(ms), self.board.end(), idle);
            self.board.handle_sent(AT(ms));
        }
        fn ack(&mut self, ms: i64, up_to: u64, sacks: &[(u64, u64)]) -> Measured {
            let heard = self.board.handle_ack(up_to * MSS, sacks.iter().map(|(a, b)| (a * MSS, b * MSS)));
            self.delivery.handle_ack(AT(ms), &heard, self.board.base())
        }
    }

    fn kbps(measured: Measured) -> Option<u64> {
        measured.rate.map(|(_, rate)| rate.as_bps() / 1000)
    }

    #[test]
    fn a_rate_is_what_was_delivered_over_the_longer_time() {
        let mut pair = Pair::new();
        for ms in 0..4 {
            pair.send(ms);
        }
        // One segment 100 ms after it left, then the others 10 ms apart.
        assert_eq!(kbps(pair.ack(100, 1, &[])), Some(80));
        assert_eq!(kbps(pair.ack(110, 2, &[])), Some(145)); // 2000 B in 110 ms
        pair.send(110);
        pair.ack(120, 3, &[]);
        pair.ack(130, 4, &[]);
        // Of the last: 2000 B were delivered when it left, at 110 ms, and 5000 are at 210 ms. But the segment whose ACK
        // let it go had left at 1 ms: sending those 3000 B took 109 ms.
        let last = pair.ack(210, 5, &[]);
        assert_eq!(last.rate, Some((2000, Rate::of(DataSize::from_bytes(3000), TimeDelta::from_millis(109)))));
        assert_eq!((last.acked, pair.delivery.delivered(), last.limited), (1000, 5000, false));
    }

    #[test]
    fn acks_that_bunch_do_not_raise_it() {
        // Ten segments leave 10 ms apart; the ACKs of all come at once, as they do behind a slow uplink.
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
        // The ten that left from 100 to 190 ms are acknowledged 1 ms later: 19 kB within 106 ms. Sending took 190.
        assert_eq!(kbps(pair.ack(196, 20, &[])), Some(19_000 * 8 / 190));
    }

    #[test]
    fn the_newest_of_those_acknowledged_is_measured_also_when_it_is_a_retransmission() {
        let mut pair = Pair::new();
        for ms in 0..6 {
            pair.send(ms);
        }
        let sacked = pair.ack(100, 0, &[(1, 4)]);
        assert_eq!(sacked.rate, Some((0, Rate::from_kbps(240))));
        pair.board.handle_resent(AT(101), 0, false);
        pair.delivery.handle_sent(AT(101), 0, false);
        // It left last, with 3000 B delivered at 100 ms; now there are 6000.
        let repaired = pair.ack(200, 6, &[]);
        assert_eq!(repaired.rate, Some((3000, Rate::from_kbps(240))));
        assert_eq!(repaired.acked, 3000);
    }

    #[test]
    fn what_leaves_while_the_application_is_silent_is_marked() {
        let mut pair = Pair::new();
        pair.send(0);
        pair.send(1);
        pair.delivery.limit(pair.board.pipe());
        pair.send(50);
        assert!(!pair.ack(100, 1, &[]).limited, "it left before");
        assert!(!pair.ack(101, 2, &[]).limited);
        pair.send(120);
        assert!(pair.ack(150, 3, &[]).limited);
        // More than the 2000 B are delivered: what leaves now is not.
        pair.send(151);
        assert!(pair.ack(220, 4, &[]).limited);
        assert!(!pair.ack(251, 5, &[]).limited);
    }

    #[test]
    fn less_than_a_round_trip_measures_nothing() {
        let mut pair = Pair::new();
        pair.send(0);
        pair.send(1);
        assert_eq!(pair.ack(9, 1, &[]).rate, None);
        assert_eq!(kbps(pair.ack(10, 2, &[])), Some(1600));
    }

    #[test]
    fn what_is_forgotten_and_told_again_is_not_delivered_twice() {
        let mut pair = Pair::new();
        for ms in 0..5 {
            pair.send(ms);
        }
        assert_eq!(pair.ack(100, 0, &[(1, 5)]).acked, 4000);
        pair.board.handle_timeout(true);
        pair.board.handle_resent(AT(1000), 0, false);
        pair.delivery.handle_sent(AT(1000), 0, false);
        let again = pair.ack(1100, 5, &[]);
        assert_eq!((again.acked, pair.delivery.delivered()), (1000, 5000));
        assert_eq!(again.rate, Some((4000, Rate::from_kbps(8)))); // 1000 B since 100 ms
    }
}
