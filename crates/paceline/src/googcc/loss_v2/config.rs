// SPDX-License-Identifier: MIT OR Apache-2.0
//! The numbers of the loss-based estimate.

use crate::params;
use paceline_units::{Rate, TimeDelta};

params! {
    /// The parameters of the estimate. Their sources are names of libwebrtc's field trial `WebRTC-Bwe-LossBasedBweV2`.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct LossV2Config {
        /// libwebrtc of 2026-08 (`loss_based_bwe_v2.cc`).
        const LIBWEBRTC;

        /// Highest increase over the acknowledged rate.
        rampup as "loss_rampup": f64 = 1.5, in 1.0..=1e7, from "BwRampupUpperBoundFactor";
        /// Highest increase over the acknowledged rate during a hold.
        rampup_in_hold as "loss_rampup_in_hold": f64 = 1.2, in 1.0..=1e7, from "BwRampupUpperBoundInHoldFactor";
        /// Multiple of the rate of a hold up to which the hold limits increases.
        rampup_hold as "loss_rampup_hold": f64 = 1.3, in 0.0..=100.0, from "BwRampupUpperBoundHoldThreshold";
        /// Share of the acknowledged rate that is added to the bound of candidates.
        acceleration as "loss_acceleration": f64 = 0.0, in 0.0..=1e3, from "BwRampupAccelMaxFactor";
        /// Time until all of it is added.
        acceleration_time as "loss_acceleration_ms": TimeDelta = TimeDelta::from_secs(60), in 1.0..=1e6,
            from "BwRampupAccelMaxoutTime";
        /// Higher candidate over the last estimate.
        candidate_up as "loss_candidate_up": f64 = 1.02, in 1.0..=10.0, from "CandidateFactors";
        /// Middle candidate over the last estimate.
        candidate_same as "loss_candidate_same": f64 = 1.0, in 0.1..=10.0, from "CandidateFactors";
        /// Lower candidate over the last estimate.
        candidate_down as "loss_candidate_down": f64 = 0.95, in 0.1..=1.0, from "CandidateFactors";
        /// Weight of the bandwidth in the objective.
        bias as "loss_bias": f64 = 0.0002, in 0.0..=1.0, from "HigherBwBiasFactor";
        /// Weight of the logarithm of the bandwidth in the objective.
        bias_log as "loss_bias_log": f64 = 0.02, in 0.0..=1.0, from "HigherLogBwBiasFactor";
        /// Lowest inherent loss.
        inherent_min as "loss_inherent_min": f64 = 1e-3, in 0.0..=0.04, from "InherentLossLowerBound";
        /// Initial inherent loss.
        inherent as "loss_inherent": f64 = 0.01, in 0.0..=0.99, from "InitialInherentLossEstimate";
        /// Highest inherent loss of high bandwidths.
        inherent_offset as "loss_inherent_offset": f64 = 0.05, in 0.04..=0.99, from "InherentLossUpperBoundOffset";
        /// This over the bandwidth is added to the highest inherent loss.
        inherent_balance as "loss_inherent_balance_bps": Rate = Rate::from_kbps(100), in 1.0..=1e9,
            from "InherentLossUpperBoundBwBalance";
        /// Loss ratio below which the objective prefers high bandwidths, and above which low ones.
        bias_loss as "loss_bias_ratio": f64 = 0.2, in 0.0..=0.99, from "LossThresholdOfHighBandwidthPreference";
        /// Smoothing of this preference.
        bias_smoothing as "loss_bias_smoothing": f64 = 0.002, in 1e-6..=1.0, from "BandwidthPreferenceSmoothingFactor";
        /// Number of Newton steps.
        newton as "loss_newton": usize = 1, in 1..=20, from "NewtonIterations";
        /// Size of a Newton step.
        newton_step as "loss_newton_step": f64 = 0.75, in 1e-3..=10.0, from "NewtonStepSize";
        /// Whether the acknowledged rate is a candidate.
        acked as "loss_acked": bool = true, from "AckedRateCandidate";
        /// Whether the delay-based rate is a candidate.
        delay_based as "loss_delay": bool = true, from "DelayBasedCandidate";
        /// Whether the upper bound is a candidate in the application-limited region.
        upper_in_alr as "loss_upper_in_alr": bool = false, from "UpperBoundCandidateInAlr";
        /// Factor of the acknowledged rate as a candidate.
        acked_factor as "loss_acked_factor": f64 = 1.0, in 0.01..=1.0, from "BwBackoffLowerBoundFactor";
        /// Whether the acknowledged rate is no candidate in the application-limited region.
        no_acked_in_alr as "loss_no_acked_in_alr": bool = true, from "NotUseAckedRateInAlr";
        /// Shortest observation.
        observation as "loss_observation_ms": TimeDelta = TimeDelta::from_millis(250), in 1.0..=1e4,
            from "ObservationDurationLowerBound";
        /// Number of observations that count.
        observations as "loss_observations": usize = 15, in 2..=OBSERVATIONS_MAX, from "ObservationWindowSize";
        /// Number of observations below which there is no result.
        observations_min as "loss_observations_min": usize = 3, in 1..=50, from "MinNumObservations";
        /// Weight of the previous sending rate.
        sending_smoothing as "loss_sending_smoothing": f64 = 0.0, in 0.0..=0.99, from "SendingRateSmoothingFactor";
        /// Weight of an observation over the next one, in the objective.
        weight as "loss_weight": f64 = 0.9, in 0.01..=1.0, from "TemporalWeightFactor";
        /// Weight of an observation over the next one, in the average loss.
        upper_weight as "loss_upper_weight": f64 = 0.9, in 0.01..=1.0,
            from "InstantUpperBoundTemporalWeightFactor";
        /// Upper bound times the average loss above the offset.
        upper_balance as "loss_upper_balance_bps": Rate = Rate::from_kbps(100), in 1.0..=1e9,
            from "InstantUpperBoundBwBalance";
        /// Average loss up to which there is no upper bound: the offset.
        upper_offset as "loss_upper_offset": f64 = 0.05, in 0.0..=0.99, from "InstantUpperBoundLossOffset";
        /// Highest increase in an increase window.
        increase_max as "loss_increase": f64 = 1.3, in 0.1..=100.0, from "MaxIncreaseFactor";
        /// Length of the increase window.
        increase_window as "loss_increase_ms": TimeDelta = TimeDelta::from_millis(300), in 1.0..=1e5,
            from "DelayedIncreaseWindow";
        /// Whether the estimate does not increase while the inherent loss is below the average loss.
        blocks_increase as "loss_blocks_increase": bool = true,
            from "NotIncreaseIfInherentLossLessThanAverageLoss";
        /// Whether the result counts in the first two seconds.
        in_start_phase as "loss_in_start": bool = true, from "UseInStartPhase";
        /// Lower bound over the acknowledged rate; 0: none.
        lower_factor as "loss_lower": f64 = 1.0, in 0.0..=10.0, from "LowerBoundByAckedRateFactor";
        /// Growth of the time for which a decreased rate is held; 0: no hold.
        hold_factor as "loss_hold": f64 = 2.0, in 0.0..=100.0, from "HoldDurationFactor";
        /// Whether bytes count in place of packets.
        counts_bytes as "loss_bytes": bool = true, from "UseByteLossRate";
        /// Time for which padding fills an increased rate; 0: none.
        padding as "loss_padding_ms": TimeDelta = TimeDelta::from_secs(2), in 0.0..=1e5, from "PaddingDuration";
        /// Whether the bounds apply to the estimate as well as to the result.
        bounds_best as "loss_bounds_best": bool = true, from "BoundBestCandidate";
        /// Multiple of the median sending rate above which an observation of most loss counts.
        median_factor as "loss_median": f64 = 2.0, in 0.0..=1e3, from "MedianSendingRateFactor";
        /// Whether the larger one of two candidates with the same objective counts; otherwise the first one does.
        prefers_larger as "loss_prefers_larger": bool = true, from "UpdateBandwidthEstimate";
        /// Whether the preference for a bandwidth counts whole kbit/s, as libwebrtc does; the crate `goog_cc` counts
        /// fractions.
        whole_kbps as _: bool = true;
    }
}

impl LossV2Config {
    /// libwebrtc of 2024-12.
    pub const Y2024: Self = Self {
        rampup: 1e6,
        rampup_in_hold: 1e6,
        inherent_balance: Rate::from_kbps(75),
        bias_loss: 0.15,
        observations: 20,
        upper_balance: Rate::from_kbps(75),
        in_start_phase: false,
        lower_factor: 0.0,
        hold_factor: 0.0,
        counts_bytes: false,
        padding: TimeDelta::ZERO,
        bounds_best: false,
        prefers_larger: false,
        ..Self::LIBWEBRTC
    };
}

/// The largest number of observations.
pub(super) const OBSERVATIONS_MAX: usize = 50;
