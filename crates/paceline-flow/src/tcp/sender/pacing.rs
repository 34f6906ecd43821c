//! Support for congestion control that paces: delivery rates, and the times at which segments may be sent.

use super::{RecoveryPhase, TcpSender};
use crate::tcp::congestion::{LossState, RateSample};
use crate::tcp::delivery_rate::DeliveryRateEstimator;
use crate::tcp::scoreboard::AckSummary;
use paceline_units::{DataSize, Rate, Time, TimeDelta};

#[derive(Debug)]
pub(super) struct PacingState {
    delivery: DeliveryRateEstimator,
    pacer: SegmentPacer,
}

impl PacingState {
    pub fn new() -> Self {
        Self { delivery: DeliveryRateEstimator::new(), pacer: SegmentPacer::new() }
    }

    /// Resets the state for a new connection.
    pub fn reset(&mut self) {
        self.delivery.reset();
        self.pacer = SegmentPacer::new();
    }

    /// Handles segment `number` being sent at this pacing rate, in bursts of this many segments. `idle`: nothing was in
    /// flight before.
    pub fn handle_sent(&mut self, now: Time, number: u64, payload: u64, idle: bool, (rate, burst): (Rate, u64)) {
        self.delivery.handle_sent(now, number, idle);
        self.pacer.handle_sent(now, DataSize::from_bytes(payload), rate, burst);
    }
}

impl TcpSender {
    /// Starts pacing when the connection is established. `round_trip` is that of the SYN, if it is unambiguous.
    pub(super) fn start_pacing(&mut self, now: Time, round_trip: Option<TimeDelta>) {
        let Some(PacingState { delivery, .. }) = &mut self.pacing else { return };
        if let Some(sample) = round_trip {
            delivery.handle_round_trip(sample);
        }
        self.congestion.handle_open(now, round_trip, &self.window);
    }

    /// Passes the rate sample of an ACK to the congestion control, which sets the window.
    pub(super) fn handle_rate_sample(
        &mut self,
        now: Time,
        summary: &AckSummary,
        round_trip: Option<TimeDelta>,
        pipe_before: u64,
    ) {
        let Some(PacingState { delivery, .. }) = &mut self.pacing else { return };
        if let Some(round_trip) = round_trip {
            delivery.handle_round_trip(round_trip);
        }
        let measurement = delivery.handle_ack(now, summary, self.scoreboard.base());
        let bytes = DataSize::from_bytes;
        let sample = RateSample {
            now,
            acked: bytes(measurement.acked),
            lost: bytes(summary.lost),
            delivered: bytes(delivery.delivered()),
            rate: measurement.rate.map(|(before, rate)| (bytes(before), rate)),
            app_limited: measurement.app_limited,
            round_trip,
            srtt: self.rtt.srtt(),
            pipe_before: bytes(pipe_before),
            pipe: bytes(self.scoreboard.pipe()),
            loss_state: match self.phase {
                RecoveryPhase::Open | RecoveryPhase::Reduction(_) => LossState::Open,
                RecoveryPhase::Recovery(_) => LossState::Recovery,
                RecoveryPhase::Loss { .. } => LossState::Loss,
            },
        };
        self.congestion.handle_sample(&sample, &mut self.window);
        if self.congestion.is_self_limited() {
            delivery.mark_app_limited(self.scoreboard.pipe());
        }
    }

    /// Returns whether the next segment has to wait for the pacer, and schedules its release.
    pub(super) fn waits_for_pacing(&mut self, now: Time) -> bool {
        let Some(PacingState { pacer, .. }) = &self.pacing else { return false };
        let waits = now < pacer.next && (self.fast_retransmit || self.window_is_open());
        self.release = if waits { pacer.next } else { Time::MAX };
        waits
    }

    /// Marks the connection as application-limited if nothing is sent for lack of data.
    pub(super) fn handle_pause(&mut self, now: Time) {
        if self.pacing.is_none() {
            return;
        }
        let no_data = self.scoreboard.next_new().is_none() || now >= self.stop;
        if no_data
            && self.window_is_open()
            && self.scoreboard.next_lost().is_none()
            && let Some(PacingState { delivery, .. }) = &mut self.pacing
        {
            delivery.mark_app_limited(self.scoreboard.pipe());
        }
    }
}

/// Number of initial segments of a connection that are not paced: an initial window (`TCP_INIT_CWND` in Linux's
/// `tcp_update_skb_after_send`).
const UNPACED: u32 = 10;

/// Computes the gaps between bursts of segments.
#[derive(Debug)]
pub(super) struct SegmentPacer {
    /// Remaining segments that are not paced.
    unpaced: u32,
    /// Segments and bytes of data sent in the current burst.
    sent: (u64, DataSize),
    /// The earliest time of the next segment.
    pub next: Time,
}

impl SegmentPacer {
    pub fn new() -> Self {
        Self { unpaced: UNPACED, sent: (0, DataSize::ZERO), next: Time::ZERO }
    }

    /// Handles a sent segment with `size` bytes of data, in bursts of `burst` segments. The gap after a burst is its
    /// size divided by the rate. If the burst was late, the gap is shorter by the delay, and at least half as long.
    pub fn handle_sent(&mut self, now: Time, size: DataSize, rate: Rate, burst: u64) {
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
