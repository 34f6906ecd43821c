// SPDX-License-Identifier: MIT OR Apache-2.0
//! GCC with transport-wide feedback, which runs entirely at the sender: libwebrtc of 2018, called TFB-GCC in rmcat-ns3.
//!
//! ```text
//! feedback -> BurstGroups -> Trendline -> OveruseDetector -> Aimd -> SendSideEstimate -> target
//!      |        5 ms          20 groups      T, 10 ms  ^      ^            ^
//!      |                            '--> AdaptiveThreshold    |     receiver reports
//!      '--> AckedRate R, 150 ms ------------------------------'
//! ```
//!
//! `docs/algorithms/gcc-tfb.md` lists the differences to the paper and to the code, with reasons.

use super::STREAM_TIMEOUT;
use super::filtered_detector::emit_detector;
use crate::blocks::{
    AckedRate, AckedRateConfig, Aimd, AimdConfig, BurstConfig, BurstGroups, DelayDetector, DelayDetectorConfig,
    FlightLimit, GroupDelta, LimitCause, ProbeController, ProbeEstimator, ProbingConfig, SendSideConfig,
    SendSideEstimate, ThresholdConfig, TrendlineConfig, Usage,
};
use crate::googcc::SenderSignal;
use crate::params::config;
use crate::{
    Bounds, Config, Controller, Decision, Entry, Event, Feedback, Message, PacketReport, ProbeCluster, ReceiverReport,
    RoundTrip, SendHalf, SentPacket, Setup, SignalName, SignalTables, Signals,
};
use alloc::vec::Vec;
use paceline_units::{DataSize, Rate, RemoteTime, Time, TimeDelta};

pub(crate) fn entry() -> Entry {
    Entry::new(
        "gcc-tfb",
        "GCC at the sender, from transport-wide feedback: trendline, adaptive threshold, AIMD",
        "Zhang, Lei: Congestion Control for RTP Media, a Comparison on Simulated Environment (2018); libwebrtc of 2018",
        GccTfbConfig::default(),
    )
}

config! {
    /// The parameters of GCC with transport-wide feedback.
    #[derive(Clone, Debug, PartialEq)]
    pub struct GccTfbConfig {
        /// libwebrtc of 2018.
        default const LIBWEBRTC;

        /// Shortest interval of feedback.
        feedback as "feedback_ms": TimeDelta = TimeDelta::from_millis(50), in 1.0..=1e4,
            from "kMinSendIntervalMs; rmcat-ns3's own port has 100";
        /// Longest interval of feedback.
        feedback_longest as "feedback_longest_ms": TimeDelta = TimeDelta::from_millis(250), in 1.0..=1e4,
            from "kMaxSendIntervalMs";
        /// Grouping of packets.
        groups: BurstConfig = BurstConfig::LIMITED, block {
            group: "rmcat-ns3 section 3; kTimestampGroupLengthMs",
            burst,
            burst_max: "kMaxBurstDuration, younger than rmcat-ns3; 0 in 2018",
            resolution: "libwebrtc of 2018 counts whole milliseconds; with 0 arrivals have 250 µs",
        };
        /// The arrival-time filter.
        trendline: TrendlineConfig = TrendlineConfig::LIBWEBRTC, block {
            window,
            smoothing: "rmcat-ns3 section 3; kDefaultTrendlineSmoothingCoeff",
        };
        /// Factor by which a trend is multiplied before the comparison with the threshold; the product is m.
        gain: f64 = 4.0, in 0.0..=100.0, from "kDefaultTrendlineThresholdGain";
        /// The adaptive threshold.
        threshold: ThresholdConfig = ThresholdConfig::LIBWEBRTC, block {
            gamma_0: "OveruseDetector",
            k_u: "OveruseDetector; rmcat-ns3's own port has 0.0187",
            k_d: "OveruseDetector",
            guard: "kMaxAdaptOffsetMs",
        };
        /// Time for which over-use must last.
        overuse_ms: f64 = 10.0, unit "ms", in 0.0..=1e4,
            from "kOverUsingTimeThreshold; rmcat-ns3's own port has 20";
        /// The acknowledged rate.
        acked: AckedRateConfig = AckedRateConfig::Y2018, block all;
        /// The rate control.
        rate: AimdConfig = AimdConfig::Y2018, block {
            eta: "MultiplicativeRateIncrease",
            beta as "alpha": "rmcat-ns3 eq. 6: beta; kDefaultBackoffFactor",
            headroom: "ClampBitrate",
        };
        /// The loss-based controller.
        loss: SendSideConfig = SendSideConfig::LIBWEBRTC, block all;
        /// Pacing rate over target.
        pacing_factor: f64 = 2.5, in 1.0..=10.0, from "kDefaultPaceMultiplier";
        /// Probing.
        probes: ProbingConfig = ProbingConfig::Y2018, block {
            enabled: "off, because rmcat-ns3 has none; libwebrtc has them",
            first,
            second,
            further,
            success,
            duration,
        };
        /// Queue that the bytes in flight may cause before they lower the target; 0: no limit.
        window_queue as "window_ms": TimeDelta = TimeDelta::ZERO, in 0.0..=1e5,
            from "not in rmcat-ns3; libwebrtc has 350, QueueSize";
    }
}

impl GccTfbConfig {
    fn detector(&self) -> DelayDetectorConfig {
        let &Self { trendline, gain, threshold, overuse_ms, .. } = self;
        DelayDetectorConfig { trendline, gain, threshold, overuse_ms }
    }
}

impl Config for GccTfbConfig {
    /// Those of GoogCC up to the loss-based rate.
    const SIGNALS: SignalTables = (SenderSignal::TABLE.split_at(SenderSignal::LossState as usize).0, &[]);

    fn couples(&self) -> bool {
        !self.window_queue.is_positive()
    }

    fn halves(&self, setup: &Setup) -> Controller {
        Controller::from_reports(Sender::new(self, setup), self.feedback, self.feedback_longest, false)
    }
}

/// If the receiver's clock advances by this much more than ours from one group to the next, it was set, and the groups
/// restart (kArrivalTimeOffsetThresholdMs).
const CLOCK_JUMP: TimeDelta = TimeDelta::from_secs(3);
/// After this many groups in a row that seem to arrive before the previous one, the clock was set as well
/// (kReorderedResetThreshold).
const BACKWARDS_MAX: u8 = 3;

/// A packet that arrived: arrival time, send time, size.
type ArrivedPacket = (RemoteTime, Time, DataSize);

#[derive(Clone, Debug)]
struct Sender {
    config: GccTfbConfig,
    groups: BurstGroups,
    detector: DelayDetector,
    acked: AckedRate,
    rate: Aimd<Time>,
    estimate: SendSideEstimate,
    /// The last REMB: the remote endpoint may be another implementation that sends one.
    remb: Rate,
    probes: ProbeController,
    probe_estimator: ProbeEstimator,
    flight: Option<FlightLimit>,
    decision: Decision,
    last_feedback: Option<Time>,
    /// The time at which the last group was known to be complete.
    completed: Option<Time>,
    /// The number of groups in a row with an arrival time before that of the previous group.
    backwards: u8,
    /// A buffer to sort packets that were reordered.
    unsorted: Vec<ArrivedPacket>,
}

impl SendHalf for Sender {
    fn handle_event(&mut self, now: Time, event: &Event<'_>, signals: &mut Signals) {
        match *event {
            Event::Sent(packet) => self.handle_sent(now, packet),
            _ => self.handle_other(now, event, signals),
        }
    }

    fn decides_on_sent(&self) -> bool {
        self.flight.is_some()
    }

    fn poll_timeout(&self) -> Option<Time> {
        Some(self.estimate.next_update())
    }

    #[inline]
    fn decision(&self) -> Decision {
        self.decision
    }

    /// RFC 8699, appendix A: the estimate of the available bandwidth is exchanged.
    fn calculated_rate(&self) -> Option<Rate> {
        self.flight.is_none().then(|| self.estimate.rate())
    }

    fn poll_probe(&mut self, now: Time) -> Option<ProbeCluster> {
        // The first call starts probing.
        self.probes.set_available(now, true);
        let cluster = self.probes.poll()?;
        self.probe_estimator.handle_cluster(cluster);
        Some(cluster)
    }
}

impl Sender {
    /// Handles an event other than [`Event::Sent`], the most frequent one.
    #[inline(never)]
    fn handle_other(&mut self, now: Time, event: &Event<'_>, signals: &mut Signals) {
        match *event {
            Event::Feedback(feedback) => self.handle_feedback(now, feedback, signals),
            Event::RoundTrip(rtt) => self.handle_rtt(rtt),
            Event::Report(report) => self.handle_report(now, report, signals),
            Event::Message(message) => self.handle_message(message, signals),
            Event::Bounds(bounds) => self.handle_bounds(bounds, signals),
            Event::RouteChange(setup) => *self = Self::new(&self.config, setup),
            Event::CoupledRate(share) => self.set_coupled_rate(share, signals),
            Event::Timeout => self.handle_timeout(now, signals),
            _ => {}
        }
    }

    fn handle_sent(&mut self, now: Time, packet: &SentPacket) {
        if packet.probe.is_some() {
            self.probes.handle_sent(now);
        }
        if self.flight.is_some() {
            self.limit_flight(now, packet);
        }
    }

    #[inline(never)]
    fn limit_flight(&mut self, now: Time, packet: &SentPacket) {
        if self.flight.as_mut().is_some_and(|flight| flight.handle_sent(now, packet)) {
            self.decide(&mut Signals::disabled());
        }
    }

    fn handle_feedback(&mut self, now: Time, feedback: &Feedback<'_>, signals: &mut Signals) {
        let arrived = feedback.packets.iter().filter_map(|p| Some((p.arrival?, p.sent, p.size)));
        let over = if in_order(feedback.packets) {
            self.handle_arrived(now, arrived, signals)
        } else {
            let mut sorted = core::mem::take(&mut self.unsorted);
            sorted.clear();
            sorted.extend(arrived);
            sorted.sort_unstable_by_key(|(at, sent, _)| (*at, *sent));
            let over = self.handle_arrived(now, sorted.iter().copied(), signals);
            self.unsorted = sorted;
            over
        };
        // The last cluster with a result counts (`ProbeBitrateEstimator::FetchAndResetLastEstimatedBitrate`).
        let probed = self.probe_estimator.handle_reports(feedback.packets).last().map(|(_, rate)| *rate);
        if let Some(over) = over {
            self.update(now, over, probed, signals);
        }
        if let Some(flight) = &mut self.flight {
            flight.handle_feedback(now, feedback, self.estimate.rate());
            self.decide(signals);
        }
    }

    fn handle_rtt(&mut self, rtt: &RoundTrip) {
        self.rate.set_rtt(rtt.last);
        self.estimate.set_rtt(rtt.last);
    }

    fn handle_report(&mut self, now: Time, report: &ReceiverReport, signals: &mut Signals) {
        self.estimate.handle_report(now, report.fraction_lost);
        self.decide(signals);
        signals.emit(SenderSignal::FractionLost, report.fraction_lost.get());
    }

    fn handle_message(&mut self, message: &Message, signals: &mut Signals) {
        let &Message::Remb(rate) = message else { return };
        self.remb = rate;
        self.bound(signals);
    }

    fn handle_bounds(&mut self, bounds: &Bounds, signals: &mut Signals) {
        self.rate.set_min(bounds.min);
        self.estimate.set_bounds(bounds);
        self.probes.set_max(bounds.max);
        self.decide(signals);
    }

    fn handle_timeout(&mut self, now: Time, signals: &mut Signals) {
        self.estimate.handle_timeout(now);
        self.decide(signals);
    }

    fn set_coupled_rate(&mut self, share: Rate, signals: &mut Signals) {
        let ratio = self.estimate.set_coupled(share);
        self.rate.scale(ratio);
        self.decide(signals);
    }
}

/// Returns whether the packets arrived in the order in which they were sent.
#[inline]
fn in_order(packets: &[PacketReport]) -> bool {
    let mut last = RemoteTime::from_nanos(i64::MIN);
    packets.iter().filter_map(|packet| packet.arrival).all(|at| core::mem::replace(&mut last, at) <= at)
}

fn decision(target: Rate, pacing_factor: f64) -> Decision {
    Decision { pacing: target.scale(pacing_factor), padding: target, ..Decision::new(target) }
}

impl Sender {
    fn new(config: &GccTfbConfig, setup: &Setup) -> Self {
        let c = config.clone();
        Self {
            groups: BurstGroups::new(c.groups),
            detector: DelayDetector::new(c.detector()),
            acked: AckedRate::new(c.acked),
            rate: Aimd::starting_at(c.rate, setup),
            estimate: SendSideEstimate::new(c.loss, setup.start, setup.min),
            remb: Rate::MAX,
            probes: ProbeController::starting_at(c.probes, setup.start, setup.max),
            probe_estimator: ProbeEstimator::default(),
            flight: FlightLimit::new(c.window_queue),
            decision: decision(setup.start, c.pacing_factor),
            last_feedback: None,
            completed: None,
            backwards: 0,
            unsorted: Vec::new(),
            config: c,
        }
    }

    /// Follows the estimate, or what the bytes in flight leave of it, if this has changed.
    fn decide(&mut self, signals: &mut Signals) {
        let estimate = self.estimate.rate();
        let rate = self.flight.as_ref().map_or(estimate, |flight| flight.limited(estimate));
        if rate != self.decision.target {
            self.decision = decision(rate, self.config.pacing_factor);
            signals.emit(SenderSignal::Rate, rate.as_bps_f64());
        }
    }

    /// Handles the packets of one message in the order of arrival. Returns whether any of them showed over-use; `None`
    /// if no packet arrived.
    fn handle_arrived(
        &mut self,
        now: Time,
        arrived: impl Iterator<Item = ArrivedPacket> + Clone,
        signals: &mut Signals,
    ) -> Option<bool> {
        arrived.clone().next()?;
        self.restart_after_pause(now);
        let (mut usage, mut over) = (self.detector.usage(), false);
        for (at, sent, size) in arrived {
            self.acked.handle_arrival(at, size);
            if let Some(delta) = self.groups.handle_arrival(at, sent, size) {
                self.handle_group(now, at, &delta, signals);
                usage = self.detector.usage();
            }
            over |= usage == Usage::Over;
        }
        Some(over)
    }

    fn restart_after_pause(&mut self, now: Time) {
        if self.last_feedback.replace(now).is_some_and(|last| now - last > STREAM_TIMEOUT) {
            self.groups.restart();
            self.detector.restart_trend();
        }
    }

    fn handle_group(&mut self, now: Time, at: RemoteTime, delta: &GroupDelta, signals: &mut Signals) {
        let passed = now.since(self.completed.replace(now).unwrap_or(now));
        let jumped = delta.arrival >= passed + CLOCK_JUMP;
        if jumped || delta.arrival < TimeDelta::ZERO {
            self.handle_implausible_group(jumped);
            return;
        }
        self.backwards = 0;
        self.detector.handle_group(at, delta);
        signals.emit(SenderSignal::Gradient, delta.gradient_ms());
        signals.emit(SenderSignal::Trend, self.detector.trend);
        let names = [SenderSignal::Scaled, SenderSignal::Threshold, SenderSignal::Usage];
        emit_detector(&self.detector.detector, signals, names);
    }

    /// Ignores a group that was overtaken, or whose arrival time comes from a clock that was set.
    #[cold]
    fn handle_implausible_group(&mut self, jumped: bool) {
        self.backwards += 1;
        if jumped || self.backwards >= BACKWARDS_MAX {
            self.groups.restart();
            self.backwards = 0;
        }
    }

    /// Updates the rate after one message (`DelayBasedBwe::MaybeUpdateEstimate`). Over-use at any packet counts for the
    /// whole message. While it lasts, the rate decreases again after a round-trip time; before the acknowledged rate is
    /// known, it is halved.
    ///
    /// The result of a probe replaces the estimate unless there is over-use.
    fn update(&mut self, now: Time, over: bool, probed: Option<Rate>, signals: &mut Signals) {
        let acked = self.acked.rate();
        if let Some(rate) = probed.filter(|_| !over) {
            self.rate.set_estimate(now, rate);
            self.estimate.handle_probe(rate);
        }
        match (over, acked) {
            (false, _) if probed.is_some() => {}
            (false, _) => {
                self.rate.update(now, self.detector.usage(), acked);
            }
            (true, Some(rate)) if self.rate.may_decrease_again(now, rate) => {
                self.rate.update(now, Usage::Over, acked);
            }
            (true, Some(_)) => {}
            (true, None) => self.rate.halve(now),
        }
        signals.emit(SenderSignal::State, self.rate.state().index());
        signals.emit(SenderSignal::Acked, acked.unwrap_or(Rate::ZERO).as_bps_f64());
        signals.emit(SenderSignal::Capacity, self.rate.capacity().unwrap_or(Rate::ZERO).as_bps_f64());
        self.bound(signals);
        self.probes.handle_timeout(now);
        self.probes.set_estimate(now, self.estimate.rate(), LimitCause::Delay);
    }

    /// Bounds the rate by the delay-based rate and by the last REMB.
    fn bound(&mut self, signals: &mut Signals) {
        if let Some(rate) = self.rate.estimate() {
            signals.emit(SenderSignal::DelayBased, rate.as_bps_f64());
            self.estimate.handle_remb(rate.min(self.remb));
        }
        self.decide(signals);
    }
}
