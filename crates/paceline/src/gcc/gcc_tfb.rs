//! GCC with transport-wide feedback, all of it at the sender: libwebrtc's of 2018, which rmcat-ns3 calls TFB-GCC.
//!
//! ```text
//! feedback -> BurstGroups -> Trendline -> OveruseDetector -> Aimd -> SendSideEstimate -> target
//!      |        5 ms          20 groups      T, 10 ms  ^      ^            ^
//!      |                            '--> AdaptiveThreshold    |     receiver reports
//!      '--> AckedRate R, 150 ms ------------------------------'
//! ```
//!
//! What differs from the paper and from the code, and why, stands in `docs/algorithms/gcc-tfb.md`.

use super::{Aimd, AimdConfig, RateState};
use crate::blocks::{
    AckedRate, AckedRateConfig, AdaptiveThreshold, BurstConfig, BurstGroups, GroupDelta, OveruseDetector,
    SendSideConfig, SendSideEstimate, ThresholdConfig, Trendline, TrendlineConfig, Usage,
};
use crate::{
    Config, Controller, Decision, Entry, Feedback, FeedbackKind, Fields, Message, PacketReport, ReceiverReport,
    SendHalf, Setup, SignalSpec, Signals,
};
use paceline_units::{DataSize, Ecn, Rate, RemoteTime, Time, TimeDelta};

/// The registry's line.
pub(crate) fn entry() -> Entry {
    Entry::new(
        "gcc-tfb",
        "GCC at the sender, from transport-wide feedback: trendline, adaptive threshold, AIMD",
        "Zhang, Lei: Congestion Control for RTP Media, a Comparison on Simulated Environment (2018); libwebrtc of 2018",
        GccTfbConfig::default(),
    )
}

/// Every number of GCC with transport-wide feedback. `Default` is libwebrtc's of 2018.
#[derive(Clone, Debug, PartialEq)]
pub struct GccTfbConfig {
    /// Shortest interval of feedback.
    pub feedback: TimeDelta,
    /// Longest interval of feedback.
    pub feedback_longest: TimeDelta,
    /// Grouping of packets.
    pub groups: BurstConfig,
    /// The arrival-time filter.
    pub trendline: TrendlineConfig,
    /// What a trend is multiplied by before it is compared.
    pub gain: f64,
    /// The adaptive threshold.
    pub threshold: ThresholdConfig,
    /// How long over-use must last, ms.
    pub overuse_ms: f64,
    /// The acknowledged rate.
    pub acked: AckedRateConfig,
    /// The rate control.
    pub rate: AimdConfig,
    /// The loss-based controller.
    pub loss: SendSideConfig,
    /// Pacing rate over target.
    pub pacing_factor: f64,
}

impl Default for GccTfbConfig {
    fn default() -> Self {
        Self {
            feedback: TimeDelta::from_millis(50),
            feedback_longest: TimeDelta::from_millis(250),
            groups: BurstConfig::LIBWEBRTC,
            trendline: TrendlineConfig { window: 20, smoothing: 0.9 },
            gain: 4.0,
            threshold: ThresholdConfig { gamma_0: 12.5, k_u: 0.0087, k_d: 0.039, range: (6.0, 600.0), guard: 15.0 },
            overuse_ms: 10.0,
            acked: AckedRateConfig::Y2018,
            rate: AimdConfig { eta: 1.08, alpha: 0.85, headroom: 1.5, rtt: TimeDelta::from_millis(200) },
            loss: SendSideConfig { low: 0.02, high: 0.1, increase: 1.08, decrease: 0.5 },
            pacing_factor: 2.5,
        }
    }
}

impl Config for GccTfbConfig {
    const SIGNALS: (&'static [SignalSpec], &'static [SignalSpec]) = (
        &[
            SignalSpec::series("d_m", "ms"),
            SignalSpec::series("trend", "ms/ms"),
            SignalSpec::series("m scaled", "ms"),
            SignalSpec::series("gamma", "ms"),
            SignalSpec::state("usage", Usage::NAMES),
            SignalSpec::state("sigma", RateState::NAMES),
            SignalSpec::series("R", "bit/s"),
            SignalSpec::series("link capacity", "bit/s"),
            SignalSpec::series("A_r", "bit/s"),
            SignalSpec::series("A", "bit/s"),
            SignalSpec::series("f_l", ""),
        ],
        &[],
    );

    fn fields(&mut self, fields: &mut Fields<'_>) {
        fields
            .millis("feedback_ms", (1.0, 1e4), &mut self.feedback)
            .says("shortest interval of feedback (kMinSendIntervalMs); rmcat-ns3's own port has 100");
        fields
            .millis("feedback_longest_ms", (1.0, 1e4), &mut self.feedback_longest)
            .says("longest interval of feedback (kMaxSendIntervalMs); as long as the shortest: always that");
        fields.block(
            &mut self.groups,
            &[
                ("group_ms", " (rmcat-ns3 section 3; kTimestampGroupLengthMs)"),
                ("burst_ms", " (kBurstDeltaThresholdMs)"),
                ("clock_ms", ": libwebrtc of 2018 counts whole milliseconds; 0: as they are, to 250 µs"),
            ],
        );
        fields.block(
            &mut self.trendline,
            &[
                ("window", " (kDefaultTrendlineWindowSize)"),
                ("smoothing", " (rmcat-ns3 section 3; kDefaultTrendlineSmoothingCoeff)"),
            ],
        );
        fields.number("gain", "", (0.0, 100.0), &mut self.gain).says(
            "what a trend is multiplied by before it is compared, then called m (kDefaultTrendlineThresholdGain)",
        );
        fields.block(
            &mut self.threshold,
            &[
                ("gamma_0", " (OveruseDetector)"),
                ("k_u", " (OveruseDetector); rmcat-ns3's own port has 0.0187"),
                ("k_d", " (OveruseDetector)"),
                ("guard_ms", " (kMaxAdaptOffsetMs)"),
            ],
        );
        fields
            .number("overuse_ms", "ms", (0.0, 1e4), &mut self.overuse_ms)
            .says("how long over-use must last (kOverUsingTimeThreshold); rmcat-ns3's own port has 20");
        fields.block(&mut self.acked, &[("acked_ms", " (kRateWindowMs)")]);
        fields.block(
            &mut self.rate,
            &[
                ("eta", ", where over-use was last found (MultiplicativeRateIncrease)"),
                ("alpha", " (rmcat-ns3 eq. 6: beta; kDefaultBackoffFactor)"),
                ("headroom", " (ClampBitrate)"),
            ],
        );
        fields.block(
            &mut self.loss,
            &[
                ("loss_low", " (kDefaultLowLossThreshold)"),
                ("loss_high", " (kDefaultHighLossThreshold)"),
                ("loss_increase", " (UpdateEstimate)"),
                ("loss_decrease", " (UpdateEstimate)"),
            ],
        );
        fields
            .number("pacing_factor", "", (1.0, 10.0), &mut self.pacing_factor)
            .says("pacing rate over target (kDefaultPaceMultiplier)");
    }

    fn build(&self, setup: &Setup) -> Controller {
        Controller {
            send: Some(Box::new(Sender {
                groups: BurstGroups::new(self.groups),
                line: self.trendline,
                trendline: Trendline::new(self.trendline),
                gain: self.gain,
                threshold: AdaptiveThreshold::new(self.threshold),
                detector: OveruseDetector::new(self.overuse_ms),
                acked: AckedRate::new(self.acked),
                rate: Aimd::starting_at(self.rate, setup.start, setup.min),
                estimate: SendSideEstimate::new(self.loss, setup.start, setup.min),
                remb: Rate::MAX,
                pacing_factor: self.pacing_factor,
                decision: decision(setup.start, self.pacing_factor),
                heard: None,
                completed: None,
                backwards: 0,
                unsorted: Vec::new(),
            })),
            receive: None,
            feedback: FeedbackKind::TransportWide {
                interval: self.feedback,
                longest: self.feedback_longest.max(self.feedback),
            },
            ecn: Ecn::NotEct,
        }
    }
}

/// After this much silence trendline and groups begin anew (kStreamTimeOutMs).
const SILENCE: TimeDelta = TimeDelta::from_secs(2);
/// When the receiver's clock runs ahead of ours by this much from one group to the next, it was set: groups begin anew
/// (kArrivalTimeOffsetThresholdMs).
const CLOCK_JUMP: TimeDelta = TimeDelta::from_secs(3);
/// So many groups in a row that seem to arrive before the one before them are a clock that was set, too
/// (kReorderedResetThreshold).
const BACKWARDS_MAX: u8 = 3;

/// A packet that arrived: when, when it was sent, its size.
type Arrived = (RemoteTime, Time, DataSize);

struct Sender {
    groups: BurstGroups,
    line: TrendlineConfig,
    trendline: Trendline,
    gain: f64,
    threshold: AdaptiveThreshold,
    detector: OveruseDetector,
    acked: AckedRate,
    rate: Aimd<Time>,
    estimate: SendSideEstimate,
    /// What a receiver asked for; not every one is ours.
    remb: Rate,
    pacing_factor: f64,
    decision: Decision,
    /// When feedback last came.
    heard: Option<Time>,
    /// When the last group was known to be complete.
    completed: Option<Time>,
    /// Groups in a row that went back in time.
    backwards: u8,
    /// Room for putting packets that overtook each other in order.
    unsorted: Vec<Arrived>,
}

impl SendHalf for Sender {
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
        if let Some(over) = over {
            self.update(now, over, signals);
        }
    }

    fn handle_report(&mut self, now: Time, report: &ReceiverReport, signals: &mut Signals) {
        if let Some(rtt) = report.rtt {
            self.rate.set_rtt(rtt);
        }
        self.estimate.handle_report(now, report.fraction_lost, report.rtt);
        self.decide(signals);
        signals.emit(10, report.fraction_lost.get());
    }

    fn handle_message(&mut self, _: Time, message: &Message, signals: &mut Signals) {
        let &Message::Remb(rate) = message else { return };
        self.remb = rate;
        self.bound(signals);
    }

    fn handle_timeout(&mut self, now: Time, signals: &mut Signals) {
        self.estimate.handle_timeout(now);
        self.decide(signals);
    }

    fn poll_timeout(&self) -> Time {
        self.estimate.poll_timeout()
    }

    #[inline]
    fn decision(&self) -> Decision {
        self.decision
    }
}

/// Whether no packet overtook another.
#[inline]
fn in_order(packets: &[PacketReport]) -> bool {
    let mut last = RemoteTime::from_nanos(i64::MIN);
    packets.iter().filter_map(|packet| packet.arrival).all(|at| core::mem::replace(&mut last, at) <= at)
}

/// What is sent at this target.
fn decision(target: Rate, pacing_factor: f64) -> Decision {
    Decision { target, pacing: target.scale(pacing_factor), window: None, padding: target }
}

impl Sender {
    /// The estimate may have changed.
    fn decide(&mut self, signals: &mut Signals) {
        let rate = self.estimate.rate();
        if rate != self.decision.target {
            self.decision = decision(rate, self.pacing_factor);
            signals.emit(9, rate.as_bps_f64());
        }
    }

    /// The packets of one message, in order of arrival. Answers whether any of them showed over-use; `None` if none
    /// arrived.
    fn handle_arrived(
        &mut self,
        now: Time,
        arrived: impl Iterator<Item = Arrived> + Clone,
        signals: &mut Signals,
    ) -> Option<bool> {
        arrived.clone().next()?;
        self.restart_after_silence(now);
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

    fn restart_after_silence(&mut self, now: Time) {
        if self.heard.replace(now).is_none_or(|heard| now - heard > SILENCE) {
            self.groups.restart();
            self.trendline = Trendline::new(self.line);
            self.detector.recount();
        }
    }

    fn handle_group(&mut self, now: Time, at: RemoteTime, delta: &GroupDelta, signals: &mut Signals) {
        let passed = now.since(self.completed.replace(now).unwrap_or(now));
        let jumped = delta.arrival >= passed + CLOCK_JUMP;
        if jumped || delta.arrival < TimeDelta::ZERO {
            self.doubt(jumped);
            return;
        }
        self.backwards = 0;
        let trend = self.trendline.update(at, delta.arrival - delta.departure);
        let m = self.gain * trend;
        let scaled = self.detector.scale(m);
        let usage = self.detector.update(m, scaled, self.threshold.gamma_ms(), delta.departure.as_millis_f64());
        if self.detector.is_ready() {
            self.threshold.update(at, scaled);
        }
        signals.emit(0, delta.gradient_ms());
        signals.emit(1, trend);
        signals.emit(2, scaled);
        signals.emit(3, self.threshold.gamma_ms());
        signals.emit(4, usage.index());
    }

    /// A group's arrival makes no sense: it was overtaken, or the receiver's clock was set.
    #[cold]
    fn doubt(&mut self, jumped: bool) {
        self.backwards += 1;
        if jumped || self.backwards >= BACKWARDS_MAX {
            self.groups.restart();
            self.backwards = 0;
        }
    }

    /// One message has been read (`DelayBasedBwe::MaybeUpdateEstimate`): over-use anywhere in it counts. While it lasts the
    /// rate is cut again once a round-trip time has passed; before the acknowledged rate is known it is halved.
    fn update(&mut self, now: Time, over: bool, signals: &mut Signals) {
        let acked = self.acked.rate();
        match (over, acked) {
            (false, _) => {
                self.rate.update(now, self.detector.usage(), acked);
            }
            (true, Some(rate)) if self.rate.may_decrease_again(now, rate) => {
                self.rate.update(now, Usage::Over, acked);
            }
            (true, Some(_)) => {}
            (true, None) => self.rate.halve(now),
        }
        signals.emit(5, self.rate.state().index());
        signals.emit(6, acked.unwrap_or(Rate::ZERO).as_bps_f64());
        signals.emit(7, self.rate.capacity().unwrap_or(Rate::ZERO).as_bps_f64());
        self.bound(signals);
    }

    /// The rate stays below what delay says, and below a REMB, should one come.
    fn bound(&mut self, signals: &mut Signals) {
        if let Some(rate) = self.rate.estimate() {
            signals.emit(8, rate.as_bps_f64());
            self.estimate.handle_remb(rate.min(self.remb));
        }
        self.decide(signals);
    }
}
