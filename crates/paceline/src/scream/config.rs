//! Every number of SCReAM: the RFC's, and those of the authors' code.

use super::media_rate::{MediaRateConfig, Step};
use super::missing::ReorderingConfig;
use super::rates::Throughput;
use super::target::TargetConfig;
use super::trend::TrendConfig;
use super::v1;
use super::window::WindowConfig;
use crate::blocks::BaseDelayConfig;
use crate::{Config, Controller, Field, Setup, SignalSpec};
use paceline_units::{DataSize, Rate, TimeDelta};

/// Numbers of SCReAM. `Default` is RFC 8298's, section 4.1.1.1.
#[derive(Clone, Debug, PartialEq)]
pub struct ScreamConfig {
    /// Shortest interval of feedback.
    pub feedback: TimeDelta,
    /// Longest interval of feedback.
    pub feedback_longest: TimeDelta,
    /// The base delay.
    pub base_delay: BaseDelayConfig,
    /// The trend of the queuing delay.
    pub trend: TrendConfig,
    /// The target of the queuing delay.
    pub target: TargetConfig,
    /// The reordering window.
    pub reordering: ReorderingConfig,
    /// The congestion window.
    pub window: WindowConfig,
    /// Between two congestion events the window is updated no more often than this.
    pub window_interval: TimeDelta,
    /// The window grows as if no more than this many times the throughput had been acknowledged.
    pub acked_max: f64,
    /// Which rate is the throughput.
    pub throughput: Throughput,
    /// The media rate control.
    pub media: MediaRateConfig,
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
            window: WindowConfig {
                min: DataSize::from_bytes(3000),
                mss: DataSize::from_bytes(1000),
                gain: 1.0,
                gain_down: 1.0,
                fall_max: 1.0,
                used: 1.25,
                head_room: 1.1,
                beta_loss: 0.8,
                beta_ecn: 0.9,
                trend_th: 0.2,
                trend_lo: 0.2,
                resume: TimeDelta::from_secs(5),
                pace_min: Rate::from_kbps(50),
                pacing: 1.0,
            },
            window_interval: TimeDelta::ZERO,
            acked_max: f64::INFINITY,
            throughput: Throughput::Greater,
            media: MediaRateConfig {
                ramp_up: 200e3,
                guard: 0.1,
                queue_factor: 1.0,
                queue_delay: TimeDelta::from_millis(20),
                queue_scale: 0.95,
                beta_loss: 0.9,
                beta_ecn: 0.9,
                limit: 2.0,
                growth_limit: f64::INFINITY,
                made_min: 0.0,
                step: Step::ToThroughput,
            },
        }
    }
}

impl ScreamConfig {
    /// The authors' code of 2018, as rmcat-ns3 published it (`ScreamTx`).
    pub fn cpp() -> Self {
        let rfc = Self::default();
        Self {
            base_delay: BaseDelayConfig { history: 50, span: TimeDelta::from_secs(10) },
            trend: TrendConfig { memory: 0.98, ..rfc.trend },
            target: TargetConfig { hi: TimeDelta::from_millis(300), compensate: false, ..rfc.target },
            reordering: ReorderingConfig { first: TimeDelta::from_millis(20), most_rtts: 0.0 },
            window: WindowConfig {
                min: DataSize::from_bytes(2400),
                mss: DataSize::from_bytes(1200),
                gain_down: 2.0,
                fall_max: 0.25,
                used: 1.2,
                pace_min: Rate::from_bps(7500),
                pacing: 1.5,
                ..rfc.window
            },
            window_interval: TimeDelta::from_millis(10),
            acked_max: 1.25,
            media: MediaRateConfig {
                queue_factor: 0.2,
                queue_scale: 1.0,
                beta_ecn: 0.95,
                limit: f64::INFINITY,
                growth_limit: 1.5,
                made_min: 0.8,
                ..rfc.media
            },
            ..rfc
        }
    }
}

impl Config for ScreamConfig {
    const FIELDS: &'static [Field<Self>] = &[
        field(
            "feedback_ms",
            "ms",
            "shortest interval of feedback (RFC 8298 section 4.2.2: 50 a second)",
            (1.0, 1e4),
            |c| c.feedback.as_millis_f64(),
            |c, v| c.feedback = TimeDelta::from_millis_f64(v),
        ),
        field(
            "feedback_longest_ms",
            "ms",
            "longest interval of feedback (RFC 8298 section 4.2.2: 2.5 a second)",
            (1.0, 1e4),
            |c| c.feedback_longest.as_millis_f64(),
            |c, v| c.feedback_longest = TimeDelta::from_millis_f64(v),
        ),
        field(
            "base_history",
            "",
            "spans whose least delay is remembered (RFC 6817: BASE_HISTORY; C++: kBaseOwdHistSize, 50)",
            (1.0, BaseDelayConfig::HISTORY_MAX as f64),
            |c| c.base_delay.history as f64,
            |c, v| c.base_delay.history = v as usize,
        ),
        field(
            "base_span_ms",
            "ms",
            "how long such a span is (RFC 6817: a minute; C++: kBaseDelayUpdateInterval_us, 10 s)",
            (1.0, 1e7),
            |c| c.base_delay.span.as_millis_f64(),
            |c, v| c.base_delay.span = TimeDelta::from_millis_f64(v),
        ),
        field(
            "qdelay_weight",
            "",
            "QDELAY_WEIGHT, what a sample counts in the average fraction",
            (0.0, 1.0),
            |c| c.trend.weight,
            |c, v| c.trend.weight = v,
        ),
        field(
            "trend_memory",
            "",
            "what a sample leaves of qdelay_trend_mem (section 4.1.2; C++: 0.98)",
            (0.0, 1.0),
            |c| c.trend.memory,
            |c, v| c.trend.memory = v,
        ),
        field(
            "qdelay_target_lo_ms",
            "ms",
            "QDELAY_TARGET_LO, least and first target of the queuing delay",
            (1.0, 1e4),
            |c| c.target.lo.as_millis_f64(),
            |c, v| c.target.lo = TimeDelta::from_millis_f64(v),
        ),
        field(
            "qdelay_target_hi_ms",
            "ms",
            "QDELAY_TARGET_HI, highest target (C++: kQueueDelayTargetMax, 300 ms)",
            (1.0, 1e4),
            |c| c.target.hi.as_millis_f64(),
            |c, v| c.target.hi = TimeDelta::from_millis_f64(v),
        ),
        field(
            "compensate",
            "",
            "1: the target rises among flows that fill queues (section 4.1.2.3); 0: it stays (C++: kEnableSbd)",
            (0.0, 1.0),
            |c| f64::from(u8::from(c.target.compensate)),
            |c, v| c.target.compensate = v >= 0.5,
        ),
        field(
            "reorder_ms",
            "ms",
            "least reordering window (section 4.1.2.4: none; C++: kReorderTime_us, 20 ms)",
            (0.0, 1e4),
            |c| c.reordering.first.as_millis_f64(),
            |c, v| c.reordering.first = TimeDelta::from_millis_f64(v),
        ),
        field(
            "reorder_rtts",
            "",
            "a late packet widens the window to this many round-trip times at most (assumed); 0: it does not",
            (0.0, 10.0),
            |c| c.reordering.most_rtts,
            |c, v| c.reordering.most_rtts = v,
        ),
        field(
            "min_cwnd",
            "B",
            "MIN_CWND, least and first window (C++: 2 packets)",
            (1000.0, 1e6),
            |c| c.window.min.as_bytes() as f64,
            |c, v| c.window.min = DataSize::from_bytes(v as u64),
        ),
        field(
            "mss",
            "B",
            "MSS, a full packet (C++: the largest packet sent)",
            (100.0, 65_535.0),
            |c| c.window.mss.as_bytes() as f64,
            |c, v| c.window.mss = DataSize::from_bytes(v as u64),
        ),
        field(
            "gain",
            "",
            "GAIN of the window below the target (C++: kGainUp)",
            (0.0, 10.0),
            |c| c.window.gain,
            |c, v| c.window.gain = v,
        ),
        field(
            "gain_down",
            "",
            "GAIN of the window above the target (C++: kGainDown, 2)",
            (0.0, 10.0),
            |c| c.window.gain_down,
            |c, v| c.window.gain_down = v,
        ),
        field(
            "fall_max",
            "",
            "share of the window that a report above the target takes at most (RFC: no bound; C++: a quarter)",
            (0.0, 1.0),
            |c| c.window.fall_max,
            |c, v| c.window.fall_max = v,
        ),
        field(
            "used",
            "",
            "the window grows below this many times the bytes in flight (section 4.1.2.2; C++: 1.2)",
            (1.0, 10.0),
            |c| c.window.used,
            |c, v| c.window.used = v,
        ),
        field(
            "head_room",
            "",
            "MAX_BYTES_IN_FLIGHT_HEAD_ROOM, window over the most bytes in flight of 5 s",
            (1.0, 10.0),
            |c| c.window.head_room,
            |c, v| c.window.head_room = v,
        ),
        field(
            "beta_loss",
            "",
            "BETA_LOSS, what a loss event leaves of the window",
            (0.1, 1.0),
            |c| c.window.beta_loss,
            |c, v| c.window.beta_loss = v,
        ),
        field(
            "beta_ecn",
            "",
            "BETA_ECN, what a mark leaves of the window",
            (0.1, 1.0),
            |c| c.window.beta_ecn,
            |c, v| c.window.beta_ecn = v,
        ),
        field(
            "trend_th",
            "",
            "QDELAY_TREND_TH, the trend that ends fast increase",
            (0.0, 1.0),
            |c| c.window.trend_th,
            |c, v| c.window.trend_th = v,
        ),
        field(
            "trend_lo",
            "",
            "QDELAY_TREND_LO, the trend below which fast increase resumes",
            (0.0, 1.0),
            |c| c.window.trend_lo,
            |c, v| c.window.trend_lo = v,
        ),
        field(
            "resume_ms",
            "ms",
            "T_RESUME_FAST_INCREASE, time without congestion before fast increase",
            (0.0, 1e6),
            |c| c.window.resume.as_millis_f64(),
            |c, v| c.window.resume = TimeDelta::from_millis_f64(v),
        ),
        field(
            "pace_min_bps",
            "bit/s",
            "RATE_PACE_MIN (C++: 5 kbit/s, times its head room)",
            (1000.0, 1e9),
            |c| c.window.pace_min.as_bps_f64(),
            |c, v| c.window.pace_min = Rate::from_bps_f64(v),
        ),
        field(
            "pacing_factor",
            "",
            "pacing rate over cwnd / s_rtt (section 4.1.2.6; C++: kPacketPacingHeadRoom, 1.5)",
            (0.5, 10.0),
            |c| c.window.pacing,
            |c, v| c.window.pacing = v,
        ),
        field(
            "window_ms",
            "ms",
            "between two updates of the window (RFC: each feedback; C++: 10 ms)",
            (0.0, 1000.0),
            |c| c.window_interval.as_millis_f64(),
            |c, v| c.window_interval = TimeDelta::from_millis_f64(v),
        ),
        field(
            "acked_max",
            "",
            "the window grows by this many times what the throughput brings at most (RFC: no bound; C++: 1.25)",
            (1.0, f64::INFINITY),
            |c| c.acked_max,
            |c, v| c.acked_max = v,
        ),
        field(
            "lesser_rate",
            "",
            "throughput is the greater of transmitted and acknowledged rate (0: RFC) or the lesser (1: rmcat-ns3's code)",
            (0.0, 1.0),
            |c| f64::from(u8::from(c.throughput == Throughput::Lesser)),
            |c, v| c.throughput = if v >= 0.5 { Throughput::Lesser } else { Throughput::Greater },
        ),
        field(
            "ramp_up_bps",
            "bit/s²",
            "RAMP_UP_SPEED, fastest growth of the target",
            (1000.0, 1e9),
            |c| c.media.ramp_up,
            |c, v| c.media.ramp_up = v,
        ),
        field(
            "guard",
            "",
            "PRE_CONGESTION_GUARD, how far the trend holds the target back (RFC: 0 to 1, suggests 0.1)",
            (0.0, 1.0),
            |c| c.media.guard,
            |c, v| c.media.guard = v,
        ),
        field(
            "queue_factor",
            "1/s",
            "TX_QUEUE_SIZE_FACTOR, how far the RTP queue holds the target back (RFC: 0 to 2, suggests 1; C++: 0.2)",
            (0.0, 2.0),
            |c| c.media.queue_factor,
            |c, v| c.media.queue_factor = v,
        ),
        field(
            "queue_delay_ms",
            "ms",
            "RTP_QDELAY_TH, delay in the RTP queue that lowers the target",
            (0.0, 1e4),
            |c| c.media.queue_delay.as_millis_f64(),
            |c, v| c.media.queue_delay = TimeDelta::from_millis_f64(v),
        ),
        field(
            "queue_scale",
            "",
            "TARGET_RATE_SCALE_RTP_QDELAY, what it leaves of the target (C++: all)",
            (0.1, 1.0),
            |c| c.media.queue_scale,
            |c, v| c.media.queue_scale = v,
        ),
        field(
            "beta_rate",
            "",
            "BETA_R, what a loss event leaves of the target",
            (0.1, 1.0),
            |c| c.media.beta_loss,
            |c, v| c.media.beta_loss = v,
        ),
        field(
            "beta_rate_ecn",
            "",
            "BETA_ECN, what a mark leaves of the target (C++: kEcnCeEventRateScale, 0.95)",
            (0.1, 1.0),
            |c| c.media.beta_ecn,
            |c, v| c.media.beta_ecn = v,
        ),
        field(
            "limit",
            "",
            "target over the greatest of throughput, media rate and its median, less qdelay_trend_mem (C++: no bound)",
            (1.0, f64::INFINITY),
            |c| c.media.limit,
            |c, v| c.media.limit = v,
        ),
        field(
            "growth_limit",
            "",
            "no growth of a target above this many times the throughput (RFC: no bound; C++: 1.5)",
            (1.0, f64::INFINITY),
            |c| c.media.growth_limit,
            |c, v| c.media.growth_limit = v,
        ),
        field(
            "made_min",
            "",
            "by delay the target does not fall while encoders make less than this share of it (RFC: 0; C++: 0.8)",
            (0.0, 1.0),
            |c| c.media.made_min,
            |c, v| c.media.made_min = v,
        ),
        field(
            "as_printed",
            "",
            "outside fast increase the target moves to the throughput (0: C++) or by it (1: as section 4.1.3 prints)",
            (0.0, 1.0),
            |c| f64::from(u8::from(c.media.step == Step::AsPrinted)),
            |c, v| c.media.step = if v >= 0.5 { Step::AsPrinted } else { Step::ToThroughput },
        ),
    ];

    const SIGNALS: (&'static [SignalSpec], &'static [SignalSpec]) = (v1::SIGNALS, &[]);

    fn build(&self, setup: &Setup) -> Controller {
        v1::controller(self, setup)
    }
}

/// One line of the table above.
const fn field(
    name: &'static str,
    unit: &'static str,
    source: &'static str,
    range: (f64, f64),
    get: fn(&ScreamConfig) -> f64,
    set: fn(&mut ScreamConfig, f64),
) -> Field<ScreamConfig> {
    Field { name, unit, source, range, get, set }
}
