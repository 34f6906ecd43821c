//! The numbers of SCReAM: those of the RFC, and those of the authors' code.

use super::media_rate::{MediaRateConfig, RateStep};
use super::missing::ReorderingConfig;
use super::rates::Throughput;
use super::target::TargetConfig;
use super::trend::TrendConfig;
use super::window::{ResumeAfter, WindowConfig};
use crate::FieldVisitor;
use crate::blocks::BaseDelayConfig;
use paceline_units::TimeDelta;

/// The numbers of SCReAM. The defaults are those of RFC 8298, section 4.1.1.1.
#[derive(Clone, Debug, PartialEq)]
pub struct ScreamConfig {
    /// The shortest interval of feedback.
    pub(crate) feedback: TimeDelta,
    /// The longest interval of feedback.
    pub(crate) feedback_longest: TimeDelta,
    /// The base delay.
    pub(crate) base_delay: BaseDelayConfig,
    /// The trend of the queuing delay.
    pub(crate) trend: TrendConfig,
    /// The target of the queuing delay.
    pub(crate) target: TargetConfig,
    /// The reordering window.
    pub(crate) reordering: ReorderingConfig,
    /// The congestion window.
    pub(crate) window: WindowConfig,
    /// The shortest time between two updates of the window, except at congestion events.
    pub(crate) window_interval: TimeDelta,
    /// The bound of the acknowledged bytes that count for window growth, as a multiple of the throughput.
    pub(crate) acked_max: f64,
    /// The definition of the throughput.
    pub(crate) throughput: Throughput,
    /// The media rate control.
    pub(crate) media: MediaRateConfig,
    /// Packets leave at multiples of this time, one at each; zero: at any time.
    pub(crate) tick: TimeDelta,
}

impl Default for ScreamConfig {
    fn default() -> Self {
        Self {
            feedback: TimeDelta::from_millis(20),
            feedback_longest: TimeDelta::from_millis(400),
            base_delay: BaseDelayConfig::RFC_6817,
            trend: TrendConfig { weight: 0.1, memory: 0.99 },
            target: TargetConfig { lo: TimeDelta::from_millis(100), hi: TimeDelta::from_millis(400), compensate: true },
            reordering: ReorderingConfig { first: TimeDelta::ZERO, most_rtts: 1.0 },
            window: WindowConfig::RFC_8298,
            window_interval: TimeDelta::ZERO,
            acked_max: f64::INFINITY,
            throughput: Throughput::Greater,
            media: MediaRateConfig::RFC_8298,
            tick: TimeDelta::ZERO,
        }
    }
}

impl ScreamConfig {
    /// Returns the numbers of the authors' code of 2018, as published with rmcat-ns3 (`ScreamTx`).
    pub fn cpp() -> Self {
        let rfc = Self::default();
        Self {
            base_delay: BaseDelayConfig { history: 50, span: TimeDelta::from_secs(10) },
            trend: TrendConfig { memory: 0.98, ..rfc.trend },
            target: TargetConfig { hi: TimeDelta::from_millis(300), compensate: false, ..rfc.target },
            reordering: ReorderingConfig { first: TimeDelta::from_millis(20), most_rtts: 0.0 },
            window: WindowConfig::CPP,
            window_interval: TimeDelta::from_millis(10),
            acked_max: 1.25,
            media: MediaRateConfig::CPP,
            ..rfc
        }
    }

    /// Passes every number to the visitor.
    pub(super) fn visit(&mut self, fields: &mut FieldVisitor<'_>) {
        fields
            .millis("feedback_ms", (1.0, 1e4), &mut self.feedback)
            .describe("shortest interval of feedback (RFC 8298 section 4.2.2: 50 a second)");
        fields
            .millis("feedback_longest_ms", (1.0, 1e4), &mut self.feedback_longest)
            .describe("longest interval of feedback (RFC 8298 section 4.2.2: 2.5 a second)");
        fields
            .count("base_history", "", (1, BaseDelayConfig::HISTORY_MAX), &mut self.base_delay.history)
            .describe("spans whose least delay is remembered (RFC 6817: BASE_HISTORY; C++: kBaseOwdHistSize, 50)");
        fields
            .millis("base_span_ms", (1.0, 1e7), &mut self.base_delay.span)
            .describe("how long such a span is (RFC 6817: a minute; C++: kBaseDelayUpdateInterval_us, 10 s)");
        fields
            .number("qdelay_weight", "", (0.0, 1.0), &mut self.trend.weight)
            .describe("QDELAY_WEIGHT, what a sample counts in the average fraction");
        fields
            .number("trend_memory", "", (0.0, 1.0), &mut self.trend.memory)
            .describe("what a sample leaves of qdelay_trend_mem (section 4.1.2; C++: 0.98)");
        fields
            .millis("qdelay_target_lo_ms", (1.0, 1e4), &mut self.target.lo)
            .describe("QDELAY_TARGET_LO, least and first target of the queuing delay");
        fields
            .millis("qdelay_target_hi_ms", (1.0, 1e4), &mut self.target.hi)
            .describe("QDELAY_TARGET_HI, highest target (C++: kQueueDelayTargetMax, 300 ms)");
        fields.flag("compensate", &mut self.target.compensate).describe(
            "1: the target rises among flows that fill queues (section 4.1.2.3); 0: it stays (C++: kEnableSbd)",
        );
        fields
            .millis("reorder_ms", (0.0, 1e4), &mut self.reordering.first)
            .describe("least reordering window (section 4.1.2.4: none; C++: kReorderTime_us, 20 ms)");
        fields.number("reorder_rtts", "", (0.0, 10.0), &mut self.reordering.most_rtts).describe(
            "a late packet widens the window to this many round-trip times at most (assumed); 0: it does not",
        );
        fields
            .size("min_cwnd", (1000.0, 1e6), &mut self.window.min)
            .describe("MIN_CWND, least and first window, with packets of 1200 B, else in proportion (C++: 2 packets)");
        fields
            .size("mss", (100.0, 65_535.0), &mut self.window.mss)
            .describe("MSS, a full packet, with packets of 1200 B, else in proportion (C++: the largest packet sent)");
        fields
            .number("gain", "", (0.0, 10.0), &mut self.window.gain)
            .describe("GAIN of the window below the target (C++: kGainUp)");
        fields
            .number("gain_down", "", (0.0, 10.0), &mut self.window.gain_down)
            .describe("GAIN of the window above the target (C++: kGainDown, 2)");
        fields.number("fall_max", "", (0.0, 1.0), &mut self.window.fall_max).describe(
            "share of the window that a report above the target takes at most (RFC: no bound; C++: a quarter)",
        );
        fields
            .number("used", "", (1.0, 10.0), &mut self.window.used)
            .describe("the window grows below this many times the bytes in flight (section 4.1.2.2; C++: 1.2)");
        fields
            .number("head_room", "", (1.0, 10.0), &mut self.window.head_room)
            .describe("MAX_BYTES_IN_FLIGHT_HEAD_ROOM, window over the most bytes in flight of 5 s");
        fields
            .number("beta_loss", "", (0.1, 1.0), &mut self.window.beta_loss)
            .describe("BETA_LOSS, what a loss event leaves of the window");
        fields
            .number("beta_ecn", "", (0.1, 1.0), &mut self.window.beta_ecn)
            .describe("BETA_ECN, what a mark leaves of the window");
        fields
            .number("trend_th", "", (0.0, 1.0), &mut self.window.trend_th)
            .describe("QDELAY_TREND_TH, the trend that ends fast increase");
        fields
            .number("trend_lo", "", (0.0, 1.0), &mut self.window.trend_lo)
            .describe("QDELAY_TREND_LO, the trend below which fast increase resumes");
        fields
            .millis("resume_ms", (0.0, 1e6), &mut self.window.resume)
            .describe("T_RESUME_FAST_INCREASE, time without congestion before fast increase");
        let readings = [ResumeAfter::Congestion, ResumeAfter::Trend];
        fields.choice("resume_by_trend", &readings, &mut self.window.resume_after).describe(
            "that time begins again with a loss, mark or trend (0), or a trend alone (1: as section 4.1.2.7 prints)",
        );
        fields
            .rate("pace_min_bps", (1000.0, 1e9), &mut self.window.pace_min)
            .describe("RATE_PACE_MIN (C++: 5 kbit/s, times its head room)");
        fields
            .number("pacing_factor", "", (0.5, 10.0), &mut self.window.pacing)
            .describe("pacing rate over cwnd / s_rtt (section 4.1.2.6; C++: kPacketPacingHeadRoom, 1.5)");
        fields.millis("tick_ms", (0.0, 1000.0), &mut self.tick).describe(
            "packets leave at multiples of this time, one at each (RFC, C++: at any time, 0; the program of rmcat-ns3: 5)",
        );
        fields
            .millis("window_ms", (0.0, 1000.0), &mut self.window_interval)
            .describe("between two updates of the window (RFC: each feedback; C++: 10 ms)");
        fields.number("acked_max", "", (1.0, f64::INFINITY), &mut self.acked_max).describe(
            "the window grows by this many times what the throughput brings at most (RFC: no bound; C++: 1.25)",
        );
        fields.choice("lesser_rate", &[Throughput::Greater, Throughput::Lesser], &mut self.throughput).describe("throughput is the greater of transmitted and acknowledged rate (0: RFC) or the lesser (1: rmcat-ns3's code)");
        fields
            .number("ramp_up_bps", "bit/s²", (1000.0, 1e9), &mut self.media.ramp_up)
            .describe("RAMP_UP_SPEED, fastest growth of the target");
        fields
            .number("guard", "", (0.0, 1.0), &mut self.media.guard)
            .describe("PRE_CONGESTION_GUARD, how far the trend holds the target back (RFC: 0 to 1, suggests 0.1)");
        fields.number("queue_factor", "1/s", (0.0, 2.0), &mut self.media.queue_factor).describe(
            "TX_QUEUE_SIZE_FACTOR, how far the RTP queue holds the target back (RFC: 0 to 2, suggests 1; C++: 0.2)",
        );
        fields
            .millis("queue_delay_ms", (0.0, 1e4), &mut self.media.queue_delay)
            .describe("RTP_QDELAY_TH, delay in the RTP queue that lowers the target");
        fields
            .number("queue_scale", "", (0.1, 1.0), &mut self.media.queue_scale)
            .describe("TARGET_RATE_SCALE_RTP_QDELAY, what it leaves of the target (C++: all)");
        fields
            .number("beta_rate", "", (0.1, 1.0), &mut self.media.beta_loss)
            .describe("BETA_R, what a loss event leaves of the target");
        fields
            .number("beta_rate_ecn", "", (0.1, 1.0), &mut self.media.beta_ecn)
            .describe("BETA_ECN, what a mark leaves of the target (C++: kEcnCeEventRateScale, 0.95)");
        fields.number("limit", "", (1.0, f64::INFINITY), &mut self.media.limit).describe(
            "target over the greatest of throughput, media rate and its median, less qdelay_trend_mem (C++: no bound)",
        );
        fields
            .number("growth_limit", "", (1.0, f64::INFINITY), &mut self.media.growth_limit)
            .describe("no growth of a target above this many times the throughput (RFC: no bound; C++: 1.5)");
        fields.number("made_min", "", (0.0, 1.0), &mut self.media.made_min).describe(
            "by delay the target does not fall while encoders make less than this share of it (RFC: 0; C++: 0.8)",
        );
        fields.number("growth_queue_bit", "bit", (0.0, f64::INFINITY), &mut self.media.growth_queue).describe(
            "the target does not grow while more than this waits in the RTP queue (RFC: no bound; C++: 12000)",
        );
        fields.number("fast_queue_ms", "ms", (0.0, f64::INFINITY), &mut self.media.fast_queue_ms).describe(
            "fast increase of the target needs an RTP queue that drains within this time (RFC: no bound; C++: 100 ms)",
        );
        fields.choice("as_printed", &[RateStep::ToThroughput, RateStep::AsPrinted], &mut self.media.step).describe(
            "outside fast increase the target moves to the throughput (0: C++) or by it (1: as section 4.1.3 prints)",
        );
    }
}
