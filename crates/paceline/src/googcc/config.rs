//! The numbers of the controller, as a whole.

use super::aimd::AimdConfig;
use super::alr::AlrConfig;
use super::bandwidth::BandwidthConfig;
use super::delay_detector::DelayDetectorConfig;
use super::loss_v2::LossV2Config;
use super::probing_config::ProbingConfig;
use super::throughput::ThroughputConfig;
use super::window_pushback::PushbackConfig;
use crate::FieldVisitor;
use crate::blocks::BurstConfig;
use paceline_units::{Rate, TimeDelta};

/// The numbers of GoogCC. The defaults are those of libwebrtc of 2026-08 (f3ae3eb62e).
#[derive(Clone, Debug, PartialEq)]
pub struct GoogCcConfig {
    /// The shortest interval of feedback.
    pub(crate) feedback: TimeDelta,
    /// The longest interval of feedback.
    pub(crate) feedback_longest: TimeDelta,
    /// Grouping of packets. Its resolution applies to send times as well.
    pub(crate) groups: BurstConfig,
    /// The delay detector.
    pub(crate) detector: DelayDetectorConfig,
    /// The acknowledged rate.
    pub(crate) throughput: ThroughputConfig,
    /// The rate control.
    pub(crate) aimd: AimdConfig,
    /// Loss, back-off and the combination of all limits.
    pub(crate) bandwidth: BandwidthConfig,
    /// The application-limited region.
    pub(crate) alr: AlrConfig,
    /// Whether its estimate is rounded down to whole kbit/s.
    pub(crate) alr_truncates: bool,
    /// Whether it is hidden from probing until the first feedback.
    pub(crate) alr_after_feedback: bool,
    /// Whether a change of it is published.
    pub(crate) alr_publishes: bool,
    /// The congestion window.
    pub(crate) window: PushbackConfig,
    /// Probing.
    pub(crate) probes: ProbingConfig,
    /// The result of a probe is at least this share of the acknowledged rate; zero: no such bound.
    pub(crate) probe_floor: f64,
    /// Pacing rate over target before the first feedback, and after it.
    pub(crate) pacing_factors: (f64, f64),
    /// The time by which packets may leave earlier than at the pacing rate.
    pub(crate) pacing_burst: TimeDelta,
    /// The rate up to which padding always fills the target.
    pub(crate) padding_max: Rate,
    /// Whether the sum of the streams' minima is the lowest target.
    pub(crate) min_from_streams: bool,
    /// A change of the streams' maxima by at most this share of them is no change.
    pub(crate) allocation_change: f64,
}

impl Default for GoogCcConfig {
    fn default() -> Self {
        Self {
            feedback: TimeDelta::from_millis(50),
            feedback_longest: TimeDelta::from_millis(250),
            groups: BurstConfig::LIBWEBRTC,
            detector: DelayDetectorConfig::LIBWEBRTC,
            throughput: ThroughputConfig::LIBWEBRTC,
            aimd: AimdConfig::LIBWEBRTC,
            bandwidth: BandwidthConfig::LIBWEBRTC,
            alr: AlrConfig::LIBWEBRTC,
            alr_truncates: false,
            alr_after_feedback: true,
            alr_publishes: true,
            window: PushbackConfig::LIBWEBRTC,
            probes: ProbingConfig::LIBWEBRTC,
            probe_floor: 0.85,
            pacing_factors: (2.5, 1.1),
            pacing_burst: TimeDelta::from_millis(40),
            padding_max: Rate::ZERO,
            min_from_streams: true,
            allocation_change: 0.1,
        }
    }
}

/// What the defaults of 2024-12 (da2a3d6c4d) change.
pub(crate) const Y2024: &[(&str, f64)] = &[
    ("loss_rampup", 1e6),
    ("loss_rampup_in_hold", 1e6),
    ("loss_inherent_balance_bps", 75_000.0),
    ("loss_bias_ratio", 0.15),
    ("loss_observations", 20.0),
    ("loss_upper_balance_bps", 75_000.0),
    ("loss_in_start", 0.0),
    ("loss_lower", 0.0),
    ("loss_hold", 0.0),
    ("loss_bytes", 0.0),
    ("loss_padding_ms", 0.0),
    ("loss_bounds_best", 0.0),
    ("loss_prefers_larger", 0.0),
    ("loss_after_report", 1.0),
    ("stable_target", 1.0),
    ("alr_truncates", 1.0),
    ("alr_after_feedback", 0.0),
    ("alr_publishes", 0.0),
    ("probe_allocation_anywhere", 0.0),
    ("probe_allocation_decrease", 1.0),
    ("pacing_factor", 2.5),
];

impl GoogCcConfig {
    /// Returns the numbers and rules of libwebrtc of 2024-12 (da2a3d6c4d), as the preset `googcc-2024`.
    pub fn y2024() -> Self {
        let now = Self::default();
        Self {
            bandwidth: BandwidthConfig {
                v2: LossV2Config::Y2024,
                waits_for_report: true,
                has_stable_target: true,
                ..now.bandwidth
            },
            alr_truncates: true,
            alr_after_feedback: false,
            alr_publishes: false,
            probes: ProbingConfig { allocation: (true, false), allocation_decrease: true, ..now.probes },
            pacing_factors: (2.5, 2.5),
            ..now
        }
    }

    pub(super) fn visit(&mut self, fields: &mut FieldVisitor<'_>) {
        use crate::Block;
        fields
            .millis("feedback_ms", (1.0, 1e4), &mut self.feedback)
            .describe("shortest interval of feedback (kDefaultSendInterval's lower bound)");
        fields
            .millis("feedback_longest_ms", (1.0, 1e4), &mut self.feedback_longest)
            .describe("longest interval of feedback (kMaxInterval); as long as the shortest: always that");
        fields.block(
            &mut self.groups,
            &[
                ("group_ms", " (kSendTimeGroupLength)"),
                ("burst_ms", " (kBurstDeltaThreshold)"),
                ("burst_max_ms", " (kMaxBurstDuration)"),
                (
                    "clock_ms",
                    ": times are rounded down to whole milliseconds (TransportFeedbackAdapter); 0: as they are",
                ),
            ],
        );
        self.detector.fields(fields);
        self.throughput.fields(fields);
        self.aimd.fields(fields);
        self.bandwidth.fields(fields);
        self.alr.fields(fields);
        fields
            .flag("alr_truncates", &mut self.alr_truncates)
            .describe("whether its estimate is rounded down, as before 2025-07 (SetEstimatedBitrate)");
        fields.flag("alr_after_feedback", &mut self.alr_after_feedback).describe(
            "whether it leads to no probe before the first feedback; not so before 2026-06 (OnProcessInterval)",
        );
        fields
            .flag("alr_publishes", &mut self.alr_publishes)
            .describe("whether its change is published; not so before 2026-06 (is_bandwidth_limited)");
        self.window.fields(fields);
        self.probes.fields(fields);
        fields.number("probe_floor", "", (0.0, 1.0), &mut self.probe_floor).describe(
            "the result of a probe is at least this share of the acknowledged rate (kProbeDropThroughputFraction)",
        );
        fields
            .number("pacing_factor_start", "", (1.0, 10.0), &mut self.pacing_factors.0)
            .describe("pacing rate over target before the first feedback (kDefaultPaceMultiplier)");
        fields
            .number("pacing_factor", "", (1.0, 10.0), &mut self.pacing_factors.1)
            .describe("pacing rate over target (kDefaultPaceMultiplierWithSendSideBwe)");
        fields
            .millis("pacing_burst_ms", (0.0, 1e3), &mut self.pacing_burst)
            .describe("time by which packets may leave early (default_pacing_time_window)");
        fields
            .rate("padding_max_bps", (0.0, 1e12), &mut self.padding_max)
            .describe("rate up to which padding always fills the target (max_padding_rate)");
        fields
            .flag("min_from_streams", &mut self.min_from_streams)
            .describe("whether the streams' minima are the lowest target (WebRTC-Bwe-MinAllocAsLowerBound)");
        fields.number("allocation_change", "", (0.0, 10.0), &mut self.allocation_change).describe(
            "a change of the streams' maxima by at most this share is none; assumed: more than headers change",
        );
    }
}

#[cfg(feature = "unstable-internals")]
impl GoogCcConfig {
    /// Returns every number that can be set, with its value.
    pub fn numbers(&self) -> alloc::vec::Vec<crate::FieldInfo> {
        FieldVisitor::collect(None, |fields| self.clone().visit(fields))
    }

    /// Returns this config with another value of a number. An unknown name changes nothing.
    pub fn with_number(&self, name: &str, value: f64) -> Self {
        let mut config = self.clone();
        FieldVisitor::collect(Some((name, value)), |fields| config.visit(fields));
        config
    }

    /// Returns this config with the bias of loss computed in whole kbit/s, or in fractions.
    pub fn with_whole_kbps(mut self, whole: bool) -> Self {
        self.bandwidth.v2.whole_kbps = whole;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preset_of_2024_has_the_numbers_of_the_config() {
        let mut config = GoogCcConfig::default();
        for change in Y2024 {
            let names = FieldVisitor::collect(Some(*change), |fields| config.visit(fields));
            assert!(names.iter().any(|field| field.name == change.0), "{}", change.0);
        }
        assert_eq!(config, GoogCcConfig::y2024());
    }
}
