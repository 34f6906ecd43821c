// SPDX-License-Identifier: MIT OR Apache-2.0
//! The numbers of libwebrtc's SCReAM version 2: the defaults of the field trial `WebRTC-Bwe-ScreamV2`
//! (`scream_v2_parameters.cc`), with its keys as sources.

use crate::params::config;
use paceline_units::{DataSize, Time, TimeDelta};

/// The controllers of the field trial (`goog_cc_factory.cc`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// SCReAM alone.
    Scream,
    /// GoogCC until the first CE mark, then SCReAM for the rest of the call.
    OnlyAfterCe,
    /// GoogCC, with ECT(1) until the first CE mark.
    GoogCcWithEct1,
}

config! {
    /// The parameters of SCReAM version 2 as libwebrtc has it.
    #[derive(Clone, Debug, PartialEq)]
    pub struct ScreamLibwebrtcConfig {
        /// libwebrtc of 2026-08 (f3ae3eb62e).
        default const LIBWEBRTC;

        /// Mode of the field trial; 0: SCReAM, 1: GoogCC until the first CE mark, then SCReAM, 2: GoogCC, with ECT(1) until the
        /// first CE mark.
        mode: Mode = Mode::Scream, of [Mode::Scream, Mode::OnlyAfterCe, Mode::GoogCcWithEct1],
            from "Enabled, mode:only_after_ce, mode:goog_cc_with_ect1";
        /// Shortest interval of feedback.
        feedback as "feedback_ms": TimeDelta = TimeDelta::from_millis(25), in 1.0..=1e4, from "min_send_delta";
        /// Longest interval of feedback.
        feedback_longest as "feedback_longest_ms": TimeDelta = TimeDelta::from_millis(250), in 1.0..=1e4,
            from "max_send_delta";
        /// Resolution of send times, to which they are rounded down.
        clock as "clock_ms": TimeDelta = TimeDelta::from_millis(1), in 0.0..=10.0, from "SentPacketInfo::send_time_ms";
        /// Time after which a packet without report is forgotten.
        history as "history_ms": TimeDelta = TimeDelta::from_secs(60), in 1e3..=1e6, from "kSendTimeHistoryWindow";

        /// Least reference window, for packets of 1200 B.
        min_window as "min_ref_wnd": DataSize = DataSize::from_bytes(1000), in 1.0..=1e6, from "MinRefWindow";
        /// Largest packet, for packets of 1200 B.
        mss: DataSize = DataSize::from_bytes(1280), in 1.0..=1e6, from "MaxSegmentSize";
        /// Reference window over bytes in flight up to which the window grows.
        head_room: f64 = 1.1, in 0.0..=10.0, from "BytesInFlightHeadRoom";
        /// Reference window that a loss leaves.
        beta_loss: f64 = 0.7, in 0.0..=1.0, from "BetaLoss";
        /// Weight of a greater fraction of marks.
        alpha_up: f64 = 1.0 / 8.0, in 1e-4..=1.0, from "L4sAvgGUp";
        /// Weight of a smaller fraction of marks.
        alpha_down: f64 = 1.0 / 128.0, in 1e-4..=1.0, from "L4sAvgGDown";
        /// Round-trip time below which growth slows down, and longest time between two reactions.
        virtual_rtt as "virtual_rtt_ms": TimeDelta = TimeDelta::from_millis(25), in 1.0..=1e3, from "VirtualRtt";
        /// Number of consecutive round-trip times with a loss that cause a reaction.
        lossy_rtts: usize = 3, in 1..=100, from "RttsWithLossBeforeBackoff";
        /// Number of round-trip times without a loss that clear the loss level.
        lossless_rtts: usize = 2, in 1..=100, from "LosslessRttsBeforeClear";
        /// Weight of a round-trip time.
        rtt_gain: f64 = 1.0 / 8.0, in 1e-4..=1.0, from "SmoothedRttAvgG";
        /// The same while the application limits the flow.
        rtt_gain_in_alr: f64 = 1.0 / 128.0, in 1e-4..=1.0, from "SmoothedRttAvgInAlrG";
        /// Weight of a feedback hold time.
        hold_gain: f64 = 1.0 / 8.0, in 0.0..=1.0, from "FeedbackHoldTimeAvgG";
        /// Round-trip times after a reaction until growth is multiplicative in full.
        post_rtts: usize = 100, in 1..=10_000, from "PostCongestionDelayRtts";
        /// Multiplicative growth for each round-trip time.
        growth: f64 = 0.02, in 0.0..=1.0, from "MultiplicativeIncreaseFactor";
        /// Factor of the distance from the inflection point.
        inflection_factor: f64 = 2.0, in 0.0..=100.0, from "BackoffScaleFactorCloseToRefWindowI";
        /// Send window over reference window while the least queuing delay is high.
        overhead_min: f64 = 1.5, in 1.0..=100.0, from "RefWinMin";
        /// Send window over reference window while the least queuing delay is low.
        overhead_max: f64 = 3.0, in 1.0..=100.0, from "RefWinMax";

        /// Target of the queuing delay; the window falls above half of it.
        qdelay_target as "qdelay_target_ms": TimeDelta = TimeDelta::from_millis(60), in 1.0..=1e4, from "QDelayTarget";
        /// Weight of a rise of the queuing delay.
        qdelay_gain: f64 = 1.0 / 4.0, in 1e-4..=1.0, from "QDelayAvgG";
        /// Average least queuing delay with the full effect on the window.
        qdelay_min as "qdelay_min_ms": TimeDelta = TimeDelta::from_millis(10), in 0.1..=1e3, from "QDelayMinThreshold";
        /// Average difference of the delays in a report with the full effect on the window.
        difference as "difference_ms": TimeDelta = TimeDelta::from_millis(10), in 0.1..=1e3, from "LatencyDiffThreshold";
        /// Weight of both.
        min_gain: f64 = 1.0 / 32.0, in 1e-4..=1.0, from "DelayMinAndLatencyDiffAvgG";
        /// Number of periods of the base delay.
        base_history: usize = 10, in 2..=1000, from "BaseDelayWindowLength";
        /// Length of a period.
        base_span as "base_span_ms": TimeDelta = TimeDelta::from_secs(60), in 1e2..=1e6,
            from "BaseDelayHistoryUpdateInterval";
        /// Queuing delay up to which a queue is empty.
        drain_threshold as "drain_threshold_ms": TimeDelta = TimeDelta::from_millis(5), in 0.0..=1e3,
            from "QDelayDrainThreshold";
        /// Time without an empty queue after which the target is halved.
        drain_period as "drain_period_ms": TimeDelta = TimeDelta::from_secs(20), in 1.0..=1e6, from "QDelayDrainPeriod";
        /// Round-trip times for which it is halved.
        drain_rtts: usize = 5, in 0..=1000, from "QDelayDrainRtts";

        /// Whether the controller detects that the application limits the flow.
        alr: bool = true, from "EnableAlr";
        /// Share of the target below which the received rate shows it.
        alr_threshold: f64 = 0.9, in 0.0..=1.0, from "AlrThreshold";
        /// Shortest time over which the received rate is measured.
        received as "received_ms": TimeDelta = TimeDelta::from_millis(100), in 1.0..=1e4, from "ReceivedRateWindow";

        /// Pacing rate over target.
        pacing_factor: f64 = 1.1, in 1.0..=10.0, from "PacingFactor";
        /// Least pacing rate over received rate.
        pacing_received: f64 = 0.8, in 0.0..=10.0, from "PacingRateReceivedFactor";
        /// Time by which packets may leave earlier than at the pacing rate, long after a reaction.
        burst as "pacing_burst_ms": TimeDelta = TimeDelta::from_millis(40), in 0.0..=1e3, from "default_pacing_time_window";
        /// The same soon after a reaction.
        burst_after as "pacing_burst_after_ms": TimeDelta = TimeDelta::from_millis(10), in 0.0..=1e3,
            from "MaybeCreatePacerConfig";
        /// Time after a reaction that counts as soon.
        calm as "calm_ms": TimeDelta = TimeDelta::from_secs(15), in 0.0..=1e6,
            from "AllowLargePacingBurstsAfterCongestionTime";
        /// Delay in the pacer from which frames are dropped.
        pushback_min as "pushback_min_ms": TimeDelta = TimeDelta::from_millis(100), in 0.0..=1e4,
            from "MinPacingDelayForPushback";
        /// Delay in the pacer from which half of the frames are dropped.
        pushback_max as "pushback_max_ms": TimeDelta = TimeDelta::from_millis(500), in 0.0..=1e4,
            from "MaxPacingDelayForPushback";

        /// Whether padding probes for a higher rate.
        padding: bool = true, from "PeriodicPadding: finite";
        /// Time between two intervals of padding.
        padding_pause as "padding_pause_ms": TimeDelta = TimeDelta::from_secs(3), in 1.0..=1e6, from "PeriodicPadding";
        /// Length of an interval of padding.
        padding_length as "padding_ms": TimeDelta = TimeDelta::from_secs(3), in 1.0..=1e6, from "PaddingDuration";
        /// Time after a fall of the window without padding.
        padding_calm as "padding_calm_ms": TimeDelta = TimeDelta::from_secs(1), in 0.0..=1e6,
            from "AllowPaddingAfterLastCongestionTimeout";
        /// Whether padding may precede media.
        probes_before_media: bool = false, from "enable_repeated_initial_probing";
        /// Time for which padding may precede media.
        initial_probing as "initial_probing_ms": TimeDelta = TimeDelta::from_secs(6), in 0.0..=1e6,
            from "InitialProbingDuration";
    }
}

/// Returns the time since an event; the longest time if it never happened.
pub fn since(now: Time, event: Option<Time>) -> TimeDelta {
    event.map_or(TimeDelta::MAX, |at| now - at)
}
