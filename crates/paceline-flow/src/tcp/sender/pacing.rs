//! Support for congestion control that paces: delivery rates, and the times at which segments may be sent.

use super::segment_pacer::SegmentPacer;
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
                RecoveryPhase::Open => LossState::Open,
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
