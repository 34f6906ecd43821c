// SPDX-License-Identifier: MIT OR Apache-2.0
//! The send half: the order in which its inputs reach the blocks (libwebrtc's `GoogCcNetworkController`).

use alloc::vec::Vec;

mod signals;

pub use signals::SenderSignal;

use super::alr::AlrDetector;
use super::bandwidth::Bandwidth;
use super::config::GoogCcConfig;
use super::delay_based::{ArrivedPacket, DelayBased, DelayBasedResult};
use super::loss_v2::LossState;
use super::throughput::Throughput;
use crate::blocks::units::{MIN_RATE, floor_arrival, floor_sent, floor_us, rounded_to_ms};
use crate::blocks::{LimitCause, ProbeController, ProbeEstimator, Usage, WindowPushback};
use crate::{
    Bounds, Decision, Event, Feedback, Message, PacketReport, ProbeCluster, ReceiverReport, RoundTrip, SendHalf,
    SentPacket, Setup, Signals, StreamState, Window,
};
use alloc::sync::Arc;
use paceline_units::{DataSize, Rate, RemoteTime, StreamId, Time, TimeDelta};

/// The interval of regular updates (`kUpdateIntervalMs`, `goog_cc_factory.cc`).
const PROCESS_INTERVAL: TimeDelta = TimeDelta::from_millis(25);

/// The largest burst (`kMaxBurstSize`, `pacing_controller.cc`).
const BURST_MAX: DataSize = DataSize::from_bytes(63_000);

/// The send half of GoogCC. The fields are in order of use: a packet that is sent touches the first ones alone, and with many flows
/// none of them is in a cache.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct GoogCc {
    config: Arc<GoogCcConfig>,
    /// Whether the first call has set the limits.
    initialised: bool,
    has_feedback: bool,
    was_in_alr: bool,
    /// Whether packets that were sent are all that happened since the last publication.
    is_published: bool,
    /// Whether the decision was made anew since the last packet.
    has_decided: bool,
    /// The resolution of times.
    clock: TimeDelta,
    alr: AlrDetector,
    published: Published,
    window: WindowPushback,
    bandwidth: Bandwidth,
    next_process: Time,
    decision: Decision,
    bounds: Bounds,
    start: Rate,
    min_allocated: Rate,
    /// The sum of the streams' maxima that was last passed on; zero: none.
    max_allocated: Rate,
    probes: ProbeController,
    throughput: Throughput,
    delay: DelayBased,
    probe_estimator: ProbeEstimator,
    streams: Vec<StreamLimits>,
    /// The arrived packets of a message; empty between messages.
    arrived: Vec<ArrivedPacket>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct StreamLimits {
    stream: StreamId,
    min: Rate,
    max: Rate,
    queued: DataSize,
}

/// The values of which a change is published.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Published {
    target: Rate,
    pushed_back: Rate,
    /// Zero if there is none of its own.
    stable: Rate,
    fraction_q8: u8,
    /// `None` before the first publication.
    rtt: Option<TimeDelta>,
    loss_state: LossState,
    in_alr: bool,
}

impl GoogCc {
    /// Creates a half without feedback.
    pub fn new(config: &Arc<GoogCcConfig>, setup: &Setup) -> Self {
        let c = Arc::clone(config);
        let target = setup.bounds().clamp(setup.start);
        let published = Published {
            target: setup.start,
            pushed_back: setup.start,
            stable: Rate::ZERO,
            fraction_q8: 0,
            rtt: None,
            loss_state: LossState::DelayBased,
            in_alr: false,
        };
        let mut half = Self {
            clock: c.groups.resolution,
            start: setup.start,
            bounds: setup.bounds(),
            initialised: false,
            next_process: Time::ZERO,
            has_feedback: false,
            delay: DelayBased::new(c.groups, c.detector, c.aimd, setup),
            throughput: Throughput::new(c.throughput),
            bandwidth: Bandwidth::new(c.bandwidth),
            alr: AlrDetector::new(c.alr),
            was_in_alr: false,
            is_published: false,
            has_decided: true,
            window: WindowPushback::new(c.window),
            probes: ProbeController::new(c.probes),
            probe_estimator: ProbeEstimator::default(),
            streams: Vec::new(),
            min_allocated: Rate::ZERO,
            max_allocated: Rate::ZERO,
            published,
            decision: Decision::new(target),
            arrived: Vec::new(),
            config: c,
        };
        half.decide();
        half
    }

    /// Returns the rate that the congestion window leaves of the target, as last published.
    #[cfg(feature = "unstable-internals")]
    pub fn pushed_back(&self) -> Rate {
        self.published.pushed_back
    }

    /// Returns whether the application limits the flow.
    #[cfg(feature = "unstable-internals")]
    pub fn is_in_alr(&self) -> bool {
        self.alr.since.is_some()
    }

    /// Sets the limits and makes the network available, at the first call with a time.
    #[inline]
    fn initialise(&mut self, now: Time) {
        if !self.initialised {
            self.begin(now);
        }
    }

    #[cold]
    fn begin(&mut self, now: Time) {
        self.initialised = true;
        self.set_limits(now, Some(self.start));
        self.process(now);
        self.probes.set_available(now, true);
    }

    /// Returns the lowest rate (`ClampConstraints`).
    fn min(&self) -> Rate {
        let allocated = if self.config.min_from_streams { self.min_allocated } else { Rate::ZERO };
        self.bounds.min.max(MIN_RATE).max(allocated)
    }

    /// Passes the limits, and a start rate if there is a new one, to the blocks (`ResetConstraints`).
    fn set_limits(&mut self, now: Time, start: Option<Rate>) {
        let min = self.min();
        let (start, max) = (start.map(|start| start.max(min)), self.bounds.max.max(min));
        self.bandwidth.set_bounds(min, max);
        if let Some(start) = start {
            self.bandwidth.set_start(now, start);
            self.delay.aimd.set_start(start);
        }
        self.delay.aimd.set_min(min);
        self.probes.set_rates(now, min, start, max);
    }

    /// Updates what depends on time alone (`OnProcessInterval`).
    fn process(&mut self, now: Time) {
        self.next_process = now + PROCESS_INTERVAL;
        let now = floor_us(now);
        if self.config.window.counts_queue {
            self.window.set_queued(self.streams.iter().map(|stream| stream.queued).sum());
        }
        self.bandwidth.update(now);
        let shows_alr = self.has_feedback || !self.config.alr_after_feedback;
        self.probes.set_alr_since(self.alr.since.filter(|_| shows_alr));
        self.probes.handle_timeout(now);
        self.window.update_window(self.published.target);
        self.publish(now);
    }

    /// Steps the push-back, and publishes the target if anything changed (`MaybeTriggerOnNetworkChanged`).
    fn publish(&mut self, now: Time) {
        let target = self.bandwidth.target();
        let pushed_back = match self.window.pushes_back() {
            true => self.step_push_back(target),
            false => target,
        };
        self.publish_rates(now, target, pushed_back);
    }

    /// Steps the push-back, and returns the rate that it leaves of the target.
    #[inline]
    fn step_push_back(&mut self, target: Rate) -> Rate {
        self.window.pushed_back(target).max(self.bandwidth.min)
    }

    fn shows_alr(&self) -> bool {
        self.config.alr_publishes && self.alr.since.is_some()
    }

    fn publish_rates(&mut self, now: Time, target: Rate, pushed_back: Rate) {
        let published = Published {
            target,
            pushed_back,
            stable: self.bandwidth.stable_target().map_or(Rate::ZERO, |stable| stable.min(pushed_back)),
            fraction_q8: self.bandwidth.fraction_q8,
            rtt: Some(self.bandwidth.rtt),
            loss_state: self.bandwidth.loss_state,
            in_alr: self.shows_alr(),
        };
        if published == self.published {
            return;
        }
        self.published = published;
        self.alr.set_estimate(target, self.config.alr_truncates);
        let cause = self.limit_cause();
        self.probes.set_estimate(now, target, cause);
        self.decide();
    }

    /// Returns what limits the target (`GetBandwidthLimitedCause`).
    fn limit_cause(&self) -> LimitCause {
        if self.delay.detector.usage() != Usage::Normal {
            return LimitCause::DelayIncreased;
        }
        if self.bandwidth.backs_off() {
            return LimitCause::HighRtt;
        }
        match self.bandwidth.loss_state {
            LossState::DelayBased => LimitCause::Delay,
            LossState::Decreasing | LossState::IncreaseUsingPadding => LimitCause::Loss,
            LossState::Increasing => LimitCause::LossIncreasing,
        }
    }

    /// Derives the decision from what was published (`GetPacingRates`).
    fn decide(&mut self) {
        self.has_decided = true;
        let Published { target: estimate, pushed_back, stable, loss_state, .. } = self.published;
        let target = if self.config.window.drop_frames_only { estimate } else { pushed_back };
        let target = self.bounds.clamp(target);
        let factor = if self.has_feedback { self.config.pacing_factor } else { self.config.pacing_factor_start };
        let most = self.config.padding_max;
        let padding = if loss_state == LossState::IncreaseUsingPadding { most.max(estimate) } else { most };
        self.decision.target = target;
        self.decision.stable_target = match self.config.bandwidth.has_stable_target {
            true => stable.min(target),
            false => target,
        };
        self.decision.pacing = self.min_allocated.max(estimate).scale(factor).max(target);
        self.decision.burst = self.config.pacing_burst.min(BURST_MAX / self.decision.pacing);
        self.decision.padding = padding.min(pushed_back).min(target);
        self.decision.window = match self.window.pushes_back() {
            true => None,
            false => self.window.window().map(Window::Outstanding),
        };
    }

    /// Collects the packets that arrived in order of arrival, with times of libwebrtc's resolution.
    fn collect_arrived(&mut self, packets: &[PacketReport]) {
        let clock = self.clock;
        self.arrived.clear();
        let (mut last, mut in_order) = ((RemoteTime::from_nanos(i64::MIN), Time::ZERO), true);
        for (index, packet) in packets.iter().enumerate() {
            let Some(arrival) = packet.arrival else { continue };
            let (arrival, sent) = (floor_arrival(arrival, clock), floor_sent(packet.sent, clock));
            in_order &= last <= (arrival, sent);
            last = (arrival, sent);
            self.arrived.push(ArrivedPacket { arrival, sent, size: packet.size, index });
        }
        if !in_order {
            self.arrived.sort_unstable_by_key(|packet| (packet.arrival, packet.sent, packet.index));
        }
    }

    /// Handles the round-trip times of a message: the largest one for the window, and the smallest one without the time for
    /// which packets waited at the receiver for the report.
    fn handle_round_trips(&mut self, now: Time) {
        let Some(last) = self.arrived.last().map(|packet| packet.arrival) else { return };
        let (mut earliest, mut shortest) = (Time::MAX, TimeDelta::MAX);
        for packet in &self.arrived {
            earliest = earliest.min(packet.sent);
            shortest = shortest.min((now - packet.sent) - (last - packet.arrival));
        }
        self.window.handle_rtt(now - earliest);
        self.bandwidth.handle_feedback_rtt(now, shortest);
    }

    /// Returns the result of the last probe of which enough has arrived, if any.
    fn handle_probes(&mut self, packets: &[PacketReport]) -> Option<Rate> {
        let mut result = None;
        for arrived in &self.arrived {
            let report = &packets[arrived.index];
            if report.probe.is_some() {
                let report = PacketReport { sent: arrived.sent, arrival: Some(arrived.arrival), ..*report };
                result = self.probe_estimator.handle_report(&report).or(result);
            }
        }
        result
    }

    /// Bounds the result of a probe: it lowers the rate at most a little below the acknowledged rate.
    fn bounded_probe(&self, probed: Rate, acked: Option<Rate>) -> Rate {
        let share = self.config.probe_floor;
        match acked.filter(|_| share > 0.0) {
            Some(acked) => probed.max(self.delay.last.min(acked.scale(share))),
            None => probed,
        }
    }

    fn handle_alr_edge(&mut self, now: Time) {
        let in_alr = self.alr.since.is_some();
        if core::mem::replace(&mut self.was_in_alr, in_alr) && !in_alr {
            self.probes.set_alr_ended(now);
        }
    }

    /// Passes the streams' limits to the blocks, if they changed (`OnStreamsConfig`).
    fn update_streams(&mut self, now: Time) {
        let max = self.streams.iter().map(|stream| stream.max).sum::<Rate>();
        // A source without a maximum leaves the allocation unknown. The share of headers changes with each frame, and a maximum
        // that follows it is no new allocation.
        let known = self.max_allocated.as_bps_f64();
        let changed = (max.as_bps_f64() - known).abs() > self.config.allocation_change * known;
        if max != Rate::MAX && changed {
            self.max_allocated = max;
            self.probes.set_allocation(now, max);
        }
        let min = self.streams.iter().map(|stream| stream.min).sum::<Rate>();
        if core::mem::replace(&mut self.min_allocated, min) != min && self.config.min_from_streams {
            let min = self.min();
            self.delay.aimd.set_min(min);
            self.bandwidth.set_bounds(min, self.bounds.max.max(min));
        }
        self.decide();
    }
}

impl SendHalf for GoogCc {
    fn handle_event(&mut self, now: Time, event: &Event<'_>, signals: &mut Signals) {
        match *event {
            Event::Sent(packet) => self.handle_sent(now, packet),
            _ => self.handle_other(now, event, signals),
        }
    }

    fn decides_on_sent(&self) -> bool {
        self.has_decided
    }

    #[inline]
    fn poll_timeout(&self) -> Option<Time> {
        Some(self.next_process)
    }

    #[inline]
    fn decision(&self) -> Decision {
        self.decision
    }

    /// RFC 8699, appendix A: the estimate of the available bandwidth is exchanged, here the combination of all limits. The limit by
    /// a REMB is another one.
    fn calculated_rate(&self) -> Option<Rate> {
        if self.config.window.bounds_flight() {
            return None;
        }
        Some(if self.initialised { self.bandwidth.target } else { self.start })
    }

    fn poll_probe(&mut self, now: Time) -> Option<ProbeCluster> {
        self.initialise(now);
        let cluster = self.probes.poll()?;
        self.probe_estimator.handle_cluster(cluster);
        Some(cluster)
    }
}

impl GoogCc {
    /// Handles an event other than [`Event::Sent`], the most frequent one.
    #[inline(never)]
    fn handle_other(&mut self, now: Time, event: &Event<'_>, signals: &mut Signals) {
        self.is_published = false;
        match *event {
            Event::Feedback(feedback) => self.handle_feedback(now, feedback, signals),
            Event::RoundTrip(rtt) => self.handle_rtt(now, rtt),
            Event::Report(report) => self.handle_report(now, report, signals),
            Event::Message(message) => self.handle_message(now, message),
            Event::Liveness => self.on_liveness(now),
            Event::Stream(stream) => self.handle_stream(now, stream),
            Event::StreamRemoved(stream) => self.handle_stream_removed(now, stream),
            Event::Bounds(bounds) => self.handle_bounds(now, bounds, signals),
            Event::RouteChange(setup) => *self = Self::new(&self.config, setup),
            Event::Availability(available) => self.handle_availability(now, available),
            Event::CoupledRate(share) => self.set_coupled_rate(now, share, signals),
            Event::Timeout => self.handle_timeout(now, signals),
            _ => {}
        }
    }

    #[inline]
    fn handle_sent(&mut self, now: Time, packet: &SentPacket) {
        self.initialise(now);
        let now = floor_sent(now, self.clock);
        self.alr.handle_sent(now, packet.size);
        self.bandwidth.handle_sent(now);
        self.has_decided = false;
        if !self.window.pushes_back() {
            return;
        }
        self.window.set_in_flight(packet.in_flight.map_or(DataSize::ZERO, |before| before + packet.size));
        if !core::mem::replace(&mut self.is_published, true) {
            return self.publish(now);
        }
        // From packet to packet only these two can change.
        let target = self.published.target;
        let pushed_back = self.step_push_back(target);
        if (pushed_back, self.shows_alr()) != (self.published.pushed_back, self.published.in_alr) {
            self.publish_rates(now, target, pushed_back);
        }
    }

    fn handle_feedback(&mut self, now: Time, feedback: &Feedback<'_>, signals: &mut Signals) {
        self.initialise(now);
        let packets = feedback.packets;
        if packets.is_empty() {
            return;
        }
        let now = floor_us(now);
        let before = self.decision.target;
        self.has_feedback = true;
        self.window.set_in_flight(feedback.outstanding);
        self.collect_arrived(packets);
        self.handle_round_trips(now);
        self.handle_alr_edge(now);
        for packet in &self.arrived {
            self.throughput.handle_arrival(packet.arrival, packet.sent, packet.size);
        }
        self.throughput.trim();
        let acked = self.throughput.rate();
        self.bandwidth.set_acked(now, acked);
        let probed = self.handle_probes(packets).map(|probed| self.bounded_probe(probed, acked));
        let in_alr = self.alr.since.is_some();
        let result = self.delay.handle_feedback(now, &self.arrived, acked, probed, in_alr);
        let DelayBasedResult { updated, is_probe, recovered } = result;
        if let Some(rate) = updated {
            if is_probe {
                self.bandwidth.set_rate(now, rate);
            }
            self.bandwidth.handle_delay_based(now, rate);
        }
        self.bandwidth.handle_feedback(now, packets, self.clock, in_alr);
        if updated.is_some() {
            self.publish(now);
        }
        if recovered {
            self.probes.set_alr_since(self.alr.since);
            self.probes.handle_recovery(now);
        }
        if !self.arrived.is_empty() {
            self.window.update_window(self.published.target);
        }
        self.decide();
        if signals.is_enabled() {
            if let Some(probed) = probed {
                signals.emit(SenderSignal::Probed, probed.as_bps_f64());
            }
            let delta = self.delay.delta.filter(|_| !self.arrived.is_empty());
            self.emit(delta, acked, signals);
            self.emit_rate(before, signals);
        }
    }

    fn handle_rtt(&mut self, now: Time, rtt: &RoundTrip) {
        self.initialise(now);
        let rtt = rounded_to_ms(rtt.last);
        if rtt.is_positive() {
            self.delay.aimd.set_rtt(rtt);
            self.bandwidth.set_rtt(rtt);
        }
    }

    fn handle_report(&mut self, now: Time, report: &ReceiverReport, signals: &mut Signals) {
        self.initialise(now);
        self.bandwidth.handle_report(floor_us(now), report.fraction_lost);
        signals.emit(SenderSignal::FractionLost, report.fraction_lost.get());
    }

    fn on_liveness(&mut self, now: Time) {
        self.initialise(now);
        self.bandwidth.handle_short_report(now);
    }

    fn handle_message(&mut self, now: Time, message: &Message) {
        self.initialise(now);
        if let &Message::Remb(rate) = message {
            self.bandwidth.handle_remb(floor_us(now), rate);
        }
    }

    fn handle_stream(&mut self, now: Time, stream: &StreamState) {
        self.initialise(now);
        let &StreamState { stream, min, max, queued, .. } = stream;
        let limits = StreamLimits { stream, min, max, queued };
        match self.streams.iter_mut().find(|known| known.stream == stream) {
            Some(known) if (known.min, known.max) == (min, max) => {
                known.queued = queued;
                return;
            }
            Some(known) => *known = limits,
            None => self.streams.push(limits),
        }
        self.update_streams(floor_us(now));
    }

    fn handle_stream_removed(&mut self, now: Time, stream: StreamId) {
        self.initialise(now);
        self.streams.retain(|known| known.stream != stream);
        self.update_streams(floor_us(now));
    }

    fn handle_bounds(&mut self, now: Time, bounds: &Bounds, signals: &mut Signals) {
        self.initialise(now);
        let (before, now) = (self.decision.target, floor_us(now));
        self.bounds = *bounds;
        self.set_limits(now, None);
        self.bandwidth.apply_limits(now);
        self.publish(now);
        self.decide();
        self.emit_rate(before, signals);
    }

    fn handle_availability(&mut self, now: Time, available: bool) {
        self.initialise(now);
        if available {
            self.bandwidth.handle_available();
        }
        self.probes.set_available(floor_us(now), available);
    }

    fn handle_timeout(&mut self, now: Time, signals: &mut Signals) {
        let before = self.decision.target;
        self.initialise(now);
        if self.next_process <= now {
            self.process(now);
        }
        self.emit_rate(before, signals);
    }

    fn set_coupled_rate(&mut self, now: Time, share: Rate, signals: &mut Signals) {
        self.initialise(now);
        let (before, now) = (self.decision.target, floor_us(now));
        let ratio = self.bandwidth.set_coupled(now, share);
        self.delay.aimd.scale(ratio);
        self.publish(now);
        self.decide();
        self.emit_rate(before, signals);
    }
}
