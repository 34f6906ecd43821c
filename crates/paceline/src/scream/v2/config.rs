//! The numbers of SCReAM version 2: those of the draft and of the authors' code.

use super::super::missing::ReorderingConfig;
use super::super::target::TargetConfig as DelayTargetConfig;
use super::alpha::AlphaConfig;
use super::delay::DelayConfig;
use super::drift::DriftConfig;
use super::loss_rate::LossRateConfig;
use super::pacing::PacingConfig;
use super::reference_window::WindowConfig;
use super::rtt::Smoothing;
use super::target_rate::TargetConfig;
use crate::FieldVisitor;
use crate::blocks::BaseDelayConfig;
use paceline_units::TimeDelta;

/// The numbers of SCReAM version 2. The defaults are those of the draft.
#[derive(Clone, Debug, PartialEq)]
pub struct ScreamV2Config {
    /// Whether packets are ECT(1) and marks are those of L4S; otherwise packets are ECT(0).
    pub(crate) l4s: bool,
    /// The shortest interval of feedback.
    pub(crate) feedback: TimeDelta,
    /// The longest interval of feedback.
    pub(crate) feedback_longest: TimeDelta,
    /// The base delay.
    pub(crate) base_delay: BaseDelayConfig,
    /// Whether the time for which the receiver holds its report is removed from the round-trip time.
    pub(crate) hold_removed: bool,
    /// The smoothing of the round-trip time.
    pub(crate) smoothing: Smoothing,
    /// The average of marks.
    pub(crate) alpha: AlphaConfig,
    /// The average of the queuing delay.
    pub(crate) delay: DelayConfig,
    /// The target of the queuing delay.
    pub(crate) target: DelayTargetConfig,
    /// The detection of clock drift.
    pub(crate) drift: DriftConfig,
    /// The reordering window.
    pub(crate) reordering: ReorderingConfig,
    /// The loss rate.
    pub(crate) loss: LossRateConfig,
    /// The reference window.
    pub(crate) window: WindowConfig,
    /// The period of `max_bytes_in_flight`; zero: a round-trip time.
    pub(crate) flight: TimeDelta,
    /// The pacing rate.
    pub(crate) pacing: PacingConfig,
    /// The target rate.
    pub(crate) media: TargetConfig,
    /// Frames that wait longer in the RTP queue are discarded, and a key frame follows.
    pub(crate) queue_max: TimeDelta,
}

impl Default for ScreamV2Config {
    fn default() -> Self {
        Self {
            l4s: true,
            feedback: TimeDelta::from_millis(10),
            feedback_longest: TimeDelta::from_millis(40),
            base_delay: BaseDelayConfig::RFC_6817,
            hold_removed: true,
            smoothing: Smoothing::Rfc6298,
            alpha: AlphaConfig::DRAFT,
            delay: DelayConfig::DRAFT,
            target: DelayTargetConfig {
                lo: TimeDelta::from_millis(60),
                hi: TimeDelta::from_millis(400),
                compensate: false,
            },
            drift: DriftConfig::DRAFT,
            reordering: ReorderingConfig { first: TimeDelta::ZERO, most_rtts: 1.0 },
            loss: LossRateConfig::DRAFT,
            window: WindowConfig::DRAFT,
            flight: TimeDelta::ZERO,
            pacing: PacingConfig::DRAFT,
            media: TargetConfig::DRAFT,
            queue_max: TimeDelta::from_secs(2),
        }
    }
}

impl ScreamV2Config {
    /// Returns the numbers of the authors' code of July 2026 (`ScreamV2Tx`, c8f84c3).
    pub fn cpp() -> Self {
        let draft = Self::default();
        Self {
            base_delay: BaseDelayConfig { history: 50, span: TimeDelta::from_secs(10) },
            hold_removed: false,
            smoothing: Smoothing::TwoStages,
            alpha: AlphaConfig::CPP,
            delay: DelayConfig::CPP,
            target: DelayTargetConfig {
                lo: TimeDelta::from_millis(100),
                hi: TimeDelta::from_millis(300),
                compensate: false,
            },
            drift: DriftConfig::CPP,
            reordering: ReorderingConfig { first: TimeDelta::from_millis(30), most_rtts: 0.0 },
            loss: LossRateConfig::CPP,
            window: WindowConfig::CPP,
            flight: TimeDelta::from_millis(50),
            pacing: PacingConfig::CPP,
            media: TargetConfig::CPP,
            queue_max: TimeDelta::from_millis(100),
            ..draft
        }
    }

    /// Passes every number to the visitor.
    pub(super) fn visit(&mut self, fields: &mut FieldVisitor<'_>) {
        fields
            .flag("l4s", &mut self.l4s)
            .describe("1: packets are ECT(1) and marks those of L4S; 0: ECT(0) and classic marks (draft: IS_L4S)");
        self.visit_measurement(fields);
        self.visit_window(fields);
        self.visit_rates(fields);
    }

    fn visit_measurement(&mut self, fields: &mut FieldVisitor<'_>) {
        fields
            .millis("feedback_ms", (1.0, 1e4), &mut self.feedback)
            .describe("shortest interval of feedback (draft: 16 packets or a frame; here a time)");
        fields
            .millis("feedback_longest_ms", (1.0, 1e4), &mut self.feedback_longest)
            .describe("longest interval of feedback (draft, section on feedback intensity: 40 ms)");
        fields
            .count("base_history", "", (1, BaseDelayConfig::HISTORY_MAX), &mut self.base_delay.history)
            .describe("spans whose least delay is remembered (RFC 6817: BASE_HISTORY; C++: kBaseOwdHistSize, 50)");
        fields
            .millis("base_span_ms", (1.0, 1e7), &mut self.base_delay.span)
            .describe("how long such a span is (RFC 6817: a minute; C++: kBaseDelayUpdateInterval_ntp, 10 s)");
        fields
            .flag("hold_removed", &mut self.hold_removed)
            .describe("1: s_rtt is without the time for which the receiver holds its report; 0: with it (C++)");
        fields
            .choice("rtt_stages", &[Smoothing::Rfc6298, Smoothing::TwoStages], &mut self.smoothing)
            .describe("s_rtt is an average (0: draft) or the average of one, once per round-trip time (1: C++)");
        fields
            .number("alpha_start", "", (0.0, 1.0), &mut self.alpha.start)
            .describe("first l4s_alpha (draft: 0; C++: 0.1)");
        fields
            .number("alpha_up", "", (1e-4, 1.0), &mut self.alpha.up)
            .describe("L4S_AVG_G_UP, weight of a greater fraction of marks");
        fields
            .number("alpha_down", "", (1e-4, 1.0), &mut self.alpha.down)
            .describe("L4S_AVG_G_DOWN, weight of a smaller one");
        fields.millis("alpha_ms", (0.1, 1e3), &mut self.alpha.interval).describe(
            "time between two updates of it, if a round-trip time is not shorter (C++: more than 655/65536 s)",
        );
        fields
            .number("qdelay_gain", "", (1e-3, 1.0), &mut self.delay.gain)
            .describe("QDELAY_AVG_G, weight of a rise of the queuing delay");
        fields
            .flag("reduce_jitter", &mut self.delay.reduce_jitter)
            .describe("REDUCE_JITTER: a delay that varies slows growth and backoff (draft: off; C++: on)");
        fields
            .number("extremes_gain", "", (1e-3, 1.0), &mut self.delay.extremes_gain)
            .describe("QDELAY_MIN_MAX_AVG_G, decay of the extremes of the delay");
        fields
            .number("deviation_gain", "", (1e-3, 1.0), &mut self.delay.deviation_gain)
            .describe("QDELAY_DEV_AVG_G, weight of their difference");
        fields
            .millis("deviation_max_ms", (0.1, 1e3), &mut self.delay.deviation_max)
            .describe("QDELAY_DEV_THRESHOLD, difference with the full effect");
        fields
            .flag("deviation_first", &mut self.delay.before_decay)
            .describe("1: the difference is taken before the extremes decay (C++); 0: after (draft)");
        fields
            .millis("qdelay_target_lo_ms", (1.0, 1e4), &mut self.target.lo)
            .describe("QDELAY_TARGET_LO, least and first target of the queuing delay (C++: 100 ms)");
        fields
            .millis("qdelay_target_hi_ms", (1.0, 1e4), &mut self.target.hi)
            .describe("QDELAY_TARGET_HI, highest target (C++: kQueueDelayTargetMax, 300 ms)");
        fields
            .flag("compensate", &mut self.target.compensate)
            .describe("1: the target rises among flows that fill queues (optional in the draft); 0: it stays");
        fields
            .flag("drift", &mut self.drift.enabled)
            .describe("1: a standing delay halves the target and resets the base delay (optional; C++: 1)");
        fields
            .number("drift_gain", "", (1e-4, 1.0), &mut self.drift.gain)
            .describe("QDELAY_MIN_AVG_ALPHA, weight of the least delay of a period (C++: 1/8)");
        fields
            .number("drift_rtts", "", (0.0, 1e4), &mut self.drift.rtts)
            .describe("that period, in round-trip times (C++: kQueueDelayMinSlowAvgUpdateRtts, 100)");
        fields
            .number("drift_share", "", (0.0, 10.0), &mut self.drift.share)
            .describe("share of qdelay_target above which it acts (C++: 1/8)");
        fields
            .flag("drift_follows", &mut self.drift.follows)
            .describe("1: the average falls at once, and qdelay_avg counts from it (C++); 0: neither (draft)");
        fields
            .millis("drift_pause_ms", (0.0, 1e7), &mut self.drift.pause)
            .describe("least time between two resets (C++: kBaseDelayResetInterval_ntp, 60 s)");
        fields
            .millis("reorder_ms", (0.0, 1e4), &mut self.reordering.first)
            .describe("least reordering window (draft: none; C++: kReorderTime, 30 ms)");
        fields.number("reorder_rtts", "", (0.0, 10.0), &mut self.reordering.most_rtts).describe(
            "a late packet widens the window to this many round-trip times at most (assumed); 0: it does not",
        );
        fields.number("loss_threshold", "", (0.0, 1.0), &mut self.loss.threshold).describe(
            "LOSS_RATE_THRESHOLD: losses below this rate count only with a queue (optional: 0.01); 0: all count",
        );
        fields.number("policer_threshold", "", (0.0, 1.0), &mut self.loss.policer).describe(
            "LOSS_RATE_THRESHOLD_POLICER: losses above it without a queue bound ref_wnd (optional: 0.1); 1: never",
        );
        fields
            .number("policer_beta", "", (0.1, 1.0), &mut self.loss.policer_beta)
            .describe("BETA_LOSS_POLICER, that bound over ref_wnd (C++: 0.8)");
    }

    fn visit_window(&mut self, fields: &mut FieldVisitor<'_>) {
        let window = &mut self.window;
        fields.size("min_ref_wnd", (500.0, 1e6), &mut window.min).describe(
            "MIN_REF_WND, least and first window, with packets of 1200 B, else in proportion (C++: 2 packets)",
        );
        fields
            .size("mss", (100.0, 65_535.0), &mut window.mss)
            .describe("MSS, a full packet, with packets of 1200 B, else in proportion (C++: the largest packet sent)");
        fields
            .number("beta_loss", "", (0.1, 1.0), &mut window.beta_loss)
            .describe("BETA_LOSS, what a loss event leaves of the window");
        fields
            .number("beta_ecn", "", (0.1, 1.0), &mut window.beta_ecn)
            .describe("BETA_ECN, what a classic mark leaves of the window (C++: 0.9)");
        fields
            .millis("virtual_rtt_ms", (0.1, 1e3), &mut window.virtual_rtt)
            .describe("VIRTUAL_RTT, below which growth is slower");
        fields
            .millis("reaction_ms", (0.1, 1e3), &mut window.reaction)
            .describe("most time between reactions (draft: VIRTUAL_RTT; C++: more than 1966/65536 s)");
        fields
            .number("post_rtts", "", (1.0, 1e4), &mut window.post_congestion_rtts)
            .describe("POST_CONGESTION_DELAY_RTT, until growth is multiplicative (C++: 200)");
        fields
            .millis("post_floor_ms", (0.0, 1e3), &mut window.post_congestion_floor)
            .describe("least of those round-trip times (draft: VIRTUAL_RTT; C++: none)");
        fields.number("growth", "", (0.0, 1.0), &mut window.growth).describe("MUL_INCREASE_FACTOR (C++: 0.05)");
        fields
            .number("head_room", "", (1.0, 10.0), &mut window.headroom)
            .describe("BYTES_IN_FLIGHT_HEAD_ROOM, window over the most bytes in flight (C++: 2; libwebrtc: 1.1)");
        fields
            .number("overhead_min", "", (1.0, 10.0), &mut window.overhead.0)
            .describe("REF_WND_OVERHEAD_MIN, bytes in flight over the window while the delay varies");
        fields
            .number("overhead_max", "", (1.0, 10.0), &mut window.overhead.1)
            .describe("REF_WND_OVERHEAD_MAX, bytes in flight over the window (libwebrtc: 2)");
        fields
            .flag("remembers", &mut window.remembers)
            .describe("1: a mark soon after a reaction causes the next one (draft); 0: it is ignored (C++)");
        fields
            .flag("loss_per_rtt", &mut window.loss_per_rtt)
            .describe("1: losses cause one reaction per s_rtt, if that is longer (C++); 0: as marks (draft)");
        fields
            .flag("virtual_twice", &mut window.virtual_twice)
            .describe("1: l4s_alpha_v is divided twice for a long round-trip time (C++); 0: once (draft)");
        fields
            .flag("virtual_counts", &mut window.virtual_counts)
            .describe("1: virtual marks slow growth like marks (C++); 0: they do not (draft)");
        fields
            .flag("veto", &mut window.veto)
            .describe("1: when all packets are marked, marks do not count while the round-trip time falls (C++)");
        fields.flag("undershoot", &mut window.undershoot).describe(
            "1: a quarter of the backoff while the target is below 0.8 of the acknowledged rate (optional; C++: 1)",
        );
        fields.millis("flight_ms", (0.0, 1e4), &mut self.flight).describe(
            "period of max_bytes_in_flight (draft: a round-trip time, 0; C++: kSlowUpdateInterval_ntp, 50 ms)",
        );
    }

    fn visit_rates(&mut self, fields: &mut FieldVisitor<'_>) {
        fields.rate("pace_min_bps", (1000.0, 1e9), &mut self.pacing.min).describe("RATE_PACE_MIN");
        fields
            .number("pacing_factor", "", (0.5, 10.0), &mut self.pacing.headroom)
            .describe("PACKET_PACING_HEADROOM, pacing rate over the target (libwebrtc: 1.1)");
        fields
            .number("relaxed_max", "", (1.0, 100.0), &mut self.pacing.relaxed_max)
            .describe("MAX_RELAXED_PACING_FACTOR, more near the highest rate (C++, libwebrtc: off, 1)");
        fields
            .number("relaxed_low", "", (0.0, 0.99), &mut self.pacing.relaxed_low)
            .describe("RELAXED_PACING_LIMIT_LOW, share of the highest rate from which on it applies");
        fields
            .size("packet_overhead", (0.0, 1000.0), &mut self.media.overhead)
            .describe("PACKET_OVERHEAD, what a packet carries besides media");
        fields
            .number("divisor", "", (1.0, 10.0), &mut self.media.divisor)
            .describe("the target is this many times below ref_wnd / s_rtt (C++: 1.1)");
        fields
            .number("adjust_gain", "", (0.0, 1.0), &mut self.media.adjust_gain)
            .describe("RATE_ADJUST_GAIN, by which a delay in the RTP queue lowers the target (C++: 0.2/8)");
        fields
            .number("adjust_free", "", (0.0, 10.0), &mut self.media.adjust_free)
            .describe("delay in the RTP queue without effect, in frame periods (C++: 1/2)");
        fields
            .flag("adjust_multiplies", &mut self.media.adjust_multiplies)
            .describe("1: that effect multiplies the divisor (C++); 0: it is added (draft)");
        fields
            .number("frame_dev_gain", "", (0.0, 1.0), &mut self.media.deviation_gain)
            .describe("FRAME_SIZE_DEV_ALPHA, by which large frames lower the target (C++: off, 0)");
        fields
            .millis("rtt_extra_ms", (0.0, 100.0), &mut self.media.rtt_extra)
            .describe("what is added to s_rtt in the target (C++: 1 ms)");
        fields
            .millis("rtt_max_ms", (1.0, 6e4), &mut self.media.rtt_max)
            .describe("greatest round-trip time in the target (draft: no bound; C++: 200 ms)");
        fields.millis("queue_max_ms", (1.0, 1e5), &mut self.queue_max).describe(
            "older frames in the RTP queue are discarded and a key frame follows (draft: open, here 2 s; C++: 100 ms)",
        );
    }
}
