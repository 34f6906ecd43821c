// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pacing for congestion control that paces: delivery rates, and the times at which segments may be sent.
//!
//! Owns the delivery rate estimator, the pacer, and the time at which a segment that waits is released.

use super::loss_recovery::LossRecovery;
use crate::flow::tcp::congestion::RateSample;
use crate::flow::tcp::delivery_rate::DeliveryRateEstimator;
use crate::flow::tcp::scoreboard::AckSummary;
use paceline_units::{DataSize, Rate, Time, TimeDelta};

#[derive(Debug)]
pub(super) struct Pacing {
    delivery: DeliveryRateEstimator,
    pacer: SegmentPacer,
    /// The time at which pacing allows the next segment; [`Time::MAX`] if none waits for pacing.
    release: Time,
}

impl Pacing {
    pub fn new() -> Self {
        Self { delivery: DeliveryRateEstimator::new(), pacer: SegmentPacer::new(), release: Time::MAX }
    }

    /// Resets the state for a new connection.
    pub fn reset(&mut self) {
        self.delivery.reset();
        self.pacer = SegmentPacer::new();
        self.release = Time::MAX;
    }

    pub fn release(&self) -> Time {
        self.release
    }

    /// No segment waits.
    pub fn clear_release(&mut self) {
        self.release = Time::MAX;
    }

    /// Handles the round-trip time of a SYN or data segment, if it is unambiguous.
    pub fn handle_round_trip(&mut self, round_trip: Option<TimeDelta>) {
        if let Some(sample) = round_trip {
            self.delivery.handle_round_trip(sample);
        }
    }

    /// Handles an ACK. Returns the measurements for the congestion control.
    pub fn handle_ack(
        &mut self,
        now: Time,
        summary: &AckSummary,
        round_trip: Option<TimeDelta>,
        srtt: Option<TimeDelta>,
        (pipe_before, cwnd_limited): (u64, bool),
        recovery: &LossRecovery,
    ) -> RateSample {
        self.handle_round_trip(round_trip);
        let (bytes, scoreboard) = (DataSize::from_bytes, recovery.scoreboard());
        let measurement = self.delivery.handle_ack(now, summary, scoreboard.base());
        RateSample {
            now,
            acked: bytes(measurement.acked),
            lost: bytes(summary.lost),
            delivered: bytes(self.delivery.delivered()),
            rate: measurement.rate.map(|(before, rate)| (bytes(before), rate)),
            app_limited: measurement.app_limited,
            pipe_sent: bytes(measurement.pipe_sent),
            lost_since: bytes(measurement.lost_since),
            cwnd_limited,
            round_trip,
            srtt,
            pipe_before: bytes(pipe_before),
            pipe: bytes(scoreboard.pipe()),
            loss_state: recovery.loss_state(),
        }
    }

    /// Marks the segments sent from now on as application-limited. `pipe`: bytes in the network.
    pub fn mark_app_limited(&mut self, pipe: u64) {
        self.delivery.mark_app_limited(pipe);
    }

    /// Returns whether the next segment has to wait for the pacer, and schedules its release. `may_send`: loss recovery and the
    /// congestion window allow it.
    pub fn must_wait(&mut self, now: Time, may_send: bool) -> bool {
        let waits = now < self.pacer.next && may_send;
        self.release = if waits { self.pacer.next } else { Time::MAX };
        waits
    }

    /// Handles segment `number` being sent at this pacing rate, in bursts of this many segments. `pipe`: bytes in the network with
    /// it. `idle`: nothing was in flight before.
    pub fn handle_sent(
        &mut self,
        now: Time,
        (number, payload): (u64, u64),
        pipe: u64,
        idle: bool,
        (rate, burst): (Rate, u64),
    ) {
        self.delivery.handle_sent(now, number, pipe, idle);
        self.pacer.handle_sent(now, DataSize::from_bytes(payload), rate, burst);
    }
}

/// Number of initial segments of a connection that are not paced: an initial window (`TCP_INIT_CWND` in Linux's
/// `tcp_update_skb_after_send`).
const UNPACED: u32 = 10;

/// Computes the gaps between bursts of segments.
#[derive(Debug)]
struct SegmentPacer {
    /// Remaining segments that are not paced.
    unpaced: u32,
    /// Segments and bytes of data sent in the current burst.
    sent: (u64, DataSize),
    /// The earliest time of the next segment.
    next: Time,
}

impl SegmentPacer {
    fn new() -> Self {
        Self { unpaced: UNPACED, sent: (0, DataSize::ZERO), next: Time::ZERO }
    }

    /// Handles a sent segment with `size` bytes of data, in bursts of `burst` segments. The gap after a burst is its
    /// size divided by the rate. If the burst was late, the gap is shorter by the delay, and at least half as long.
    fn handle_sent(&mut self, now: Time, size: DataSize, rate: Rate, burst: u64) {
        if self.unpaced > 0 {
            self.unpaced -= 1;
            return;
        }
        self.sent = (self.sent.0 + 1, self.sent.1 + size);
        if self.sent.0 < burst {
            return;
        }
        let gap = self.sent.1 / rate;
        self.sent = (0, DataSize::ZERO);
        let late = (now - self.next).clamp(TimeDelta::ZERO, gap / 2);
        self.next = self.next.max(now) + (gap - late);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_spaced_after_the_initial_window() {
        let (size, rate) = (DataSize::from_bytes(1250), Rate::from_kbps(1000));
        let mut pacer = SegmentPacer::new();
        for _ in 0..10 {
            pacer.handle_sent(Time::from_millis(5), size, rate, 1);
            assert_eq!(pacer.next, Time::ZERO);
        }
        pacer.handle_sent(Time::from_millis(5), size, rate, 1);
        assert_eq!(pacer.next, Time::from_millis(10));
        pacer.handle_sent(Time::from_millis(10), size, rate, 1);
        assert_eq!(pacer.next, Time::from_millis(20));
        pacer.handle_sent(Time::from_millis(23), size, rate, 1);
        assert_eq!(pacer.next, Time::from_millis(30), "the delay is made up for");
        pacer.handle_sent(Time::from_millis(70), size, rate, 1);
        assert_eq!(pacer.next, Time::from_millis(75), "a pause shortens the gap by at most half");
    }

    #[test]
    fn a_burst_is_sent_at_once_and_followed_by_its_whole_gap() {
        let (size, rate) = (DataSize::from_bytes(1250), Rate::from_kbps(1000));
        let mut pacer = SegmentPacer::new();
        pacer.unpaced = 0;
        pacer.handle_sent(Time::from_millis(5), size, rate, 2);
        assert_eq!(pacer.next, Time::ZERO, "the second may follow");
        pacer.handle_sent(Time::from_millis(5), size, rate, 2);
        assert_eq!(pacer.next, Time::from_millis(20), "two gaps, shortened by half for the delay");
        pacer.handle_sent(Time::from_millis(20), size, rate, 2);
        pacer.handle_sent(Time::from_millis(20), size, rate, 2);
        assert_eq!(pacer.next, Time::from_millis(40));
    }
}
