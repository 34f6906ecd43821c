// SPDX-License-Identifier: MIT OR Apache-2.0
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
use crate::blocks::BaseDelayConfig;
use crate::params::config;
use paceline_units::TimeDelta;

config! {
    /// The parameters of SCReAM version 2.
    #[derive(Clone, Debug, PartialEq)]
    pub struct ScreamV2Config {
        /// The draft.
        default const DRAFT;

        /// Whether packets are ECT(1) and marks are those of L4S; otherwise packets are ECT(0) and marks classic.
        l4s: bool = true, from "draft: IS_L4S";
        /// Shortest interval of feedback.
        feedback as "feedback_ms": TimeDelta = TimeDelta::from_millis(10), in 1.0..=1e4,
            from "draft: 16 packets or a frame; here a time";
        /// Longest interval of feedback.
        feedback_longest as "feedback_longest_ms": TimeDelta = TimeDelta::from_millis(40), in 1.0..=1e4,
            from "draft, section on feedback intensity";
        /// The base delay.
        base_delay: BaseDelayConfig = BaseDelayConfig::RFC_6817, block all;
        /// Whether the time for which the receiver holds its report is removed from the round-trip time.
        hold_removed: bool = true, from "draft: 1; C++: 0";
        /// Smoothing of the round-trip time; 0: an average, 1: the average of one, once per round-trip time.
        smoothing as "rtt_stages": Smoothing = Smoothing::Rfc6298, of [Smoothing::Rfc6298, Smoothing::TwoStages],
            from "draft: 0; C++: 1";
        /// The average of marks.
        alpha: AlphaConfig = AlphaConfig::DRAFT, block all;
        /// The average of the queuing delay.
        delay: DelayConfig = DelayConfig::DRAFT, block all;
        /// The target of the queuing delay.
        target: DelayTargetConfig =
            DelayTargetConfig { lo: TimeDelta::from_millis(60), compensate: false, ..DelayTargetConfig::RFC_8298 },
            block {
                lo: "QDELAY_TARGET_LO; C++: 100 ms",
                hi,
                compensate: "optional in the draft",
            };
        /// The detection of clock drift.
        drift: DriftConfig = DriftConfig::DRAFT, block all;
        /// The reordering window.
        reordering: ReorderingConfig = ReorderingConfig::RFC_8298, block {
            first: "draft: none; C++: kReorderTime, 30 ms",
            most_rtts,
        };
        /// The loss rate.
        loss: LossRateConfig = LossRateConfig::DRAFT, block all;
        /// The reference window.
        window: WindowConfig = WindowConfig::DRAFT, block all;
        /// Period of `max_bytes_in_flight`; 0: a round-trip time.
        flight as "flight_ms": TimeDelta = TimeDelta::ZERO, in 0.0..=1e4,
            from "draft: a round-trip time; C++: kSlowUpdateInterval_ntp, 50 ms";
        /// The pacing rate.
        pacing: PacingConfig = PacingConfig::DRAFT, block all;
        /// The target rate.
        media: TargetConfig = TargetConfig::DRAFT, block all;
        /// Time in the RTP queue after which frames are discarded and a key frame follows.
        queue_max as "queue_max_ms": TimeDelta = TimeDelta::from_secs(2), in 1.0..=1e5,
            from "draft: open, here 2 s; C++: 100 ms";
    }
}

impl ScreamV2Config {
    /// The authors' code of July 2026 (`ScreamV2Tx`, c8f84c3).
    pub const CPP: Self = Self {
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
        ..Self::DRAFT
    };
}
