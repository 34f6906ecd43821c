// SPDX-License-Identifier: MIT OR Apache-2.0
//! The numbers of SCReAM: those of the RFC, and those of the authors' code.

use super::media_rate::MediaRateConfig;
use super::missing::ReorderingConfig;
use super::rates::Throughput;
use super::target::TargetConfig;
use super::trend::TrendConfig;
use super::window::WindowConfig;
use crate::blocks::BaseDelayConfig;
use crate::params::config;
use paceline_units::TimeDelta;

config! {
    /// The parameters of SCReAM.
    #[derive(Clone, Debug, PartialEq)]
    pub struct ScreamConfig {
        /// RFC 8298, section 4.1.1.1.
        default const RFC_8298;

        /// Shortest interval of feedback.
        feedback as "feedback_ms": TimeDelta = TimeDelta::from_millis(20), in 1.0..=1e4,
            from "section 4.2.2: 50 a second";
        /// Longest interval of feedback.
        feedback_longest as "feedback_longest_ms": TimeDelta = TimeDelta::from_millis(400), in 1.0..=1e4,
            from "section 4.2.2: 2.5 a second";
        /// The base delay.
        base_delay: BaseDelayConfig = BaseDelayConfig::RFC_6817, block all;
        /// The trend of the queuing delay.
        trend: TrendConfig = TrendConfig::RFC_8298, block all;
        /// The target of the queuing delay.
        target: TargetConfig = TargetConfig::RFC_8298, block all;
        /// The reordering window.
        reordering: ReorderingConfig = ReorderingConfig::RFC_8298, block all;
        /// The congestion window.
        window: WindowConfig = WindowConfig::RFC_8298, block all;
        /// Packets leave at multiples of this time, one at each; 0: at any time.
        tick as "tick_ms": TimeDelta = TimeDelta::ZERO, in 0.0..=1000.0,
            from "RFC, C++: at any time; the program of rmcat-ns3: 5";
        /// Shortest time between two updates of the window, except at congestion events.
        window_interval as "window_ms": TimeDelta = TimeDelta::ZERO, in 0.0..=1000.0,
            from "RFC: each feedback; C++: 10 ms";
        /// Bound of the acknowledged bytes that count for window growth, as a multiple of the throughput.
        acked_max: f64 = f64::INFINITY, in 1.0..=f64::INFINITY, from "RFC: no bound; C++: 1.25";
        /// Throughput; 0: the greater of transmitted and acknowledged rate, 1: the lesser.
        throughput as "lesser_rate": Throughput = Throughput::Greater, of [Throughput::Greater, Throughput::Lesser],
            from "section 4.1.3; 1 in rmcat-ns3's code";
        /// The media rate control.
        media: MediaRateConfig = MediaRateConfig::RFC_8298, block all;
    }
}

impl ScreamConfig {
    /// The authors' code of 2018, as published with rmcat-ns3 (`ScreamTx`).
    pub const CPP: Self = Self {
        base_delay: BaseDelayConfig { history: 50, span: TimeDelta::from_secs(10) },
        trend: TrendConfig { memory: 0.98, ..TrendConfig::RFC_8298 },
        target: TargetConfig { hi: TimeDelta::from_millis(300), compensate: false, ..TargetConfig::RFC_8298 },
        reordering: ReorderingConfig { first: TimeDelta::from_millis(20), most_rtts: 0.0 },
        window: WindowConfig::CPP,
        window_interval: TimeDelta::from_millis(10),
        acked_max: 1.25,
        media: MediaRateConfig::CPP,
        ..Self::RFC_8298
    };
}
