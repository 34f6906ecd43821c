// SPDX-License-Identifier: MIT OR Apache-2.0
//! The numbers of the controller, as a whole.

use super::alr::AlrConfig;
use super::bandwidth::BandwidthConfig;
use super::loss_v2::LossV2Config;
use super::throughput::ThroughputConfig;
use crate::blocks::{AimdConfig, BurstConfig, DelayDetectorConfig, ProbingConfig, PushbackConfig};
use crate::params::config;
use paceline_units::{Rate, TimeDelta};

config! {
    /// The parameters of GoogCC.
    #[derive(Clone, Debug, PartialEq)]
    pub struct GoogCcConfig {
        /// libwebrtc of 2026-08 (f3ae3eb62e).
        default const LIBWEBRTC;

        /// Shortest interval of feedback.
        feedback as "feedback_ms": TimeDelta = TimeDelta::from_millis(50), in 1.0..=1e4,
            from "kDefaultSendInterval's lower bound";
        /// Longest interval of feedback.
        feedback_longest as "feedback_longest_ms": TimeDelta = TimeDelta::from_millis(250), in 1.0..=1e4,
            from "kMaxInterval";
        /// Grouping of packets. Its resolution applies to send times as well.
        groups: BurstConfig = BurstConfig::LIBWEBRTC, block {
            group: "kSendTimeGroupLength",
            burst: "kBurstDeltaThreshold",
            burst_max: "kMaxBurstDuration",
            resolution: "TransportFeedbackAdapter: rounded down to whole milliseconds",
        };
        /// The delay detector.
        detector: DelayDetectorConfig = DelayDetectorConfig::LIBWEBRTC, block all;
        /// The acknowledged rate.
        throughput: ThroughputConfig = ThroughputConfig::LIBWEBRTC, block all;
        /// The rate control.
        aimd: AimdConfig = AimdConfig::LIBWEBRTC, block all;
        /// Loss, back-off and the combination of all limits.
        bandwidth: BandwidthConfig = BandwidthConfig::LIBWEBRTC, block all;
        /// The application-limited region.
        alr: AlrConfig = AlrConfig::LIBWEBRTC, block all;
        /// Whether the estimate of the application-limited region is rounded down to whole kbit/s.
        alr_truncates: bool = false, from "SetEstimatedBitrate; so before 2025-07";
        /// Whether the application-limited region leads to no probe before the first feedback.
        alr_after_feedback: bool = true, from "OnProcessInterval; not so before 2026-06";
        /// Whether a change of the application-limited region is published.
        alr_publishes: bool = true, from "is_bandwidth_limited; not so before 2026-06";
        /// The congestion window.
        window: PushbackConfig = PushbackConfig::LIBWEBRTC, block all;
        /// Probing.
        probes: ProbingConfig = ProbingConfig::LIBWEBRTC, block all;
        /// Share of the acknowledged rate that the result of a probe is at least; 0: no such bound.
        probe_floor: f64 = 0.85, in 0.0..=1.0, from "kProbeDropThroughputFraction";
        /// Pacing rate over target before the first feedback.
        pacing_factor_start: f64 = 2.5, in 1.0..=10.0, from "kDefaultPaceMultiplier";
        /// Pacing rate over target after the first feedback.
        pacing_factor: f64 = 1.1, in 1.0..=10.0, from "kDefaultPaceMultiplierWithSendSideBwe";
        /// Time by which packets may leave earlier than at the pacing rate.
        pacing_burst as "pacing_burst_ms": TimeDelta = TimeDelta::from_millis(40), in 0.0..=1e3,
            from "default_pacing_time_window";
        /// Rate up to which padding always fills the target.
        padding_max as "padding_max_bps": Rate = Rate::ZERO, in 0.0..=1e12, from "max_padding_rate";
        /// Whether the sum of the streams' minima is the lowest target.
        min_from_streams: bool = true, from "WebRTC-Bwe-MinAllocAsLowerBound";
        /// Share of the streams' maxima up to which a change of them is no change.
        allocation_change: f64 = 0.1, in 0.0..=10.0, from "assumed: more than headers change";
    }
}

impl GoogCcConfig {
    /// libwebrtc of 2024-12 (da2a3d6c4d).
    pub const Y2024: Self = Self {
        bandwidth: BandwidthConfig {
            waits_for_report: true,
            has_stable_target: true,
            v2: LossV2Config::Y2024,
            ..BandwidthConfig::LIBWEBRTC
        },
        alr_truncates: true,
        alr_after_feedback: false,
        alr_publishes: false,
        probes: ProbingConfig { allocation_anywhere: false, allocation_decrease: true, ..ProbingConfig::LIBWEBRTC },
        pacing_factor: 2.5,
        ..Self::LIBWEBRTC
    };
}
