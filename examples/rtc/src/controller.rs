// SPDX-License-Identifier: MIT OR Apache-2.0
//! A controller as `rtc` uses it: what has left and what came back go in, rates come out.
//!
//! `rtc` takes its estimator by value and keeps it. Clones of a [`SharedController`] are the same controller: one is the
//! estimator, one sees departing packets, and one stays with the program, which asks for the encoder's rate.

use paceline::{
    ConfigError, Decision, FeedbackRequirement, Outgoing, PacketKind, QueuedFrame, Registry, Sender, SenderConfig,
    Setup, Signals, StreamState,
};
use paceline_units::{DataSize, Fraction, Rate, RemoteTime, StreamId, Time, TimeDelta};
use rtc::interceptor::{BandwidthEstimator, PacketReport as RtcReport};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// IPv4, UDP, and the tag of SRTP (`AES_CM_128_HMAC_SHA1_80`), which `rtc` does not count.
pub const OVERHEAD: DataSize = DataSize::from_bytes(20 + 8 + 10);

/// The one stream.
const STREAM: StreamId = StreamId(0);

/// What one receiver report says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reception {
    /// The loss since the last report; `None` if they cover less than 20 packets.
    pub fraction_lost: Option<Fraction>,
    /// The round-trip time (RFC 3550, section 6.4.1).
    pub rtt: Option<TimeDelta>,
}

/// The one controller of a call. Clones share it.
#[derive(Clone)]
pub struct SharedController {
    /// The origin of [`Time`].
    start: Instant,
    state: Arc<Mutex<State>>,
}

struct State {
    sender: Sender<()>,
    /// The packets in the pacer of `rtc`, which does not show them: what was written and has not left. What the pacer refuses
    /// because it is full counts for ever, so it must have room for the largest backlog.
    queued: DataSize,
}

impl SharedController {
    /// Builds the controller with this name, for a call that begins at `start`. Returns it and the feedback that it needs.
    ///
    /// # Errors
    /// Returns an error if `setup` contradicts itself.
    ///
    /// # Panics
    /// Panics if there is no such controller, or if it does not work from per-packet feedback alone.
    pub fn new(name: &str, setup: &Setup, start: Instant) -> Result<(Self, FeedbackRequirement), ConfigError> {
        let registry = Registry::standard();
        let mut controller =
            registry.get(name).unwrap_or_else(|| panic!("no controller `{name}`")).build(setup, &[])?;
        let (None, Some(feedback)) = (&controller.receive, controller.feedback) else {
            panic!("`{name}` does not work from per-packet feedback alone");
        };
        let mut sender = Sender::new(&SenderConfig::new(setup), &mut controller, Signals::disabled());
        // The pacer is that of `rtc`, which sends no probe clusters.
        sender.set_paces(false);
        let state = State { sender, queued: DataSize::ZERO };
        Ok((Self { start, state: Arc::new(Mutex::new(state)) }, feedback))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a time of `rtc` as the controller counts it.
    fn time(&self, at: Instant) -> Time {
        Time::from_nanos(at.saturating_duration_since(self.start).as_nanos() as i64)
    }

    fn instant(&self, time: Time) -> Instant {
        self.start + Duration::from_nanos(time.as_nanos().max(0) as u64)
    }

    /// Returns the current decision.
    pub fn decision(&self) -> Decision {
        *self.state().sender.decision()
    }

    /// Handles an RTP packet of this size, which leaves now.
    pub fn handle_sent(&self, now: Instant, rtp_size: usize) {
        let (now, state) = (self.time(now), &mut *self.state());
        let size = DataSize::from_bytes(rtp_size as u64) + OVERHEAD;
        state.queued = state.queued.saturating_sub(size);
        state.sender.handle_sent(now, &Outgoing::new(size, STREAM, PacketKind::Media));
    }

    /// Handles the limits of the stream's encoder, before each of its frames.
    pub fn handle_stream(&self, now: Instant, min: Rate, max: Rate) {
        let (now, state) = (self.time(now), &mut *self.state());
        state.sender.handle_stream(now, &StreamState::new(STREAM, state.queued).with_min(min).with_max(max));
    }

    /// Handles a frame of packets with these sizes on the network, which was written to `rtc`.
    pub fn handle_frame(&self, now: Instant, packets: &[DataSize]) {
        let (now, state) = (self.time(now), &mut *self.state());
        let size = packets.iter().copied().sum();
        state.queued += size;
        let frame = QueuedFrame::new(STREAM, size, packets.len() as u32);
        state.sender.finish_frame(now, &frame);
    }

    /// Handles the receiver's report on the stream.
    pub fn handle_reception(&self, now: Instant, reception: &Reception) {
        let (now, sender) = (self.time(now), &mut self.state().sender);
        if let Some(sample) = reception.rtt {
            sender.handle_rtt(now, sample);
        }
        match reception.fraction_lost {
            Some(fraction_lost) => sender.handle_loss(now, fraction_lost),
            None => sender.handle_liveness(now),
        }
    }
}

impl BandwidthEstimator for SharedController {
    fn on_reports(&mut self, now: Instant, reports: &[RtcReport]) {
        let (now, sender) = (self.time(now), &mut self.state().sender);
        // Arrived, but the feedback does not contain when.
        let has_no_time = |report: &&RtcReport| report.arrived && report.arrival.is_none();
        reports.iter().filter(has_no_time).for_each(|report| sender.handle_arrival_without_time(report.id));
        let reports = reports
            .iter()
            .filter(|report| !has_no_time(report))
            .map(|report| (report.id, report.arrival.map(|at| RemoteTime::from_nanos(at.as_nanos() as i64)), None));
        sender.handle_reports(now, reports);
    }

    /// Returns the rate of the pacer, because only the pacer of `rtc` reads it. The encoder's rate is
    /// [`Decision::target`].
    fn target_bitrate(&self) -> f64 {
        self.decision().pacing.as_bps_f64()
    }

    fn handle_timeout(&mut self, now: Instant) {
        let now = self.time(now);
        self.state().sender.handle_timeout(now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let due = self.state().sender.poll_timeout();
        due.map(|due| self.instant(due))
    }
}

#[cfg(test)]
mod tests {
    use rtc::interceptor::convert_ccfb;
    use rtc::rtcp::transport_feedbacks::cc_feedback_report::{
        CcFeedbackMetricBlock, CcFeedbackReport, CcFeedbackReportBlock,
    };
    use std::time::Duration;

    /// Why this example uses transport-wide feedback. Two packets arrive 20 and 10 ms before the report: `rtc` returns these
    /// offsets as arrival times, so the second packet seems to arrive before the first one. When this fails, RFC 8888 feedback
    /// may have become usable.
    #[test]
    fn arrival_times_of_rfc_8888_run_backwards_in_rtc() {
        let metric =
            |arrival_time_offset| CcFeedbackMetricBlock { received: true, arrival_time_offset, ..Default::default() };
        let report = CcFeedbackReport {
            report_blocks: vec![CcFeedbackReportBlock {
                media_ssrc: 1,
                begin_sequence: 0,
                metric_blocks: vec![metric(1024 / 50), metric(1024 / 100)],
            }],
            ..Default::default()
        };
        let (_, per_stream) = convert_ccfb(&report);
        let arrivals: Vec<Duration> = per_stream[&1].iter().filter_map(|packet| packet.arrival).collect();
        assert_eq!(arrivals.len(), 2);
        assert!(arrivals[0] > arrivals[1], "{arrivals:?}");
    }
}
