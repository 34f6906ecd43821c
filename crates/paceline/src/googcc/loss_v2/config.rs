//! The numbers of the loss-based estimate.

use crate::{Block, FieldVisitor};
use paceline_units::{Rate, TimeDelta};

/// The numbers of the estimate. Names in brackets are those of libwebrtc's field trial `WebRTC-Bwe-LossBasedBweV2`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossV2Config {
    /// The highest increase over the acknowledged rate, and during a hold.
    pub rampup: (f64, f64),
    /// A hold limits increases while the acknowledged rate is below this multiple of its rate.
    pub rampup_hold: f64,
    /// How much of the acknowledged rate is added to the bound of candidates, and the time until all of it is.
    pub acceleration: (f64, TimeDelta),
    /// The candidates over the last estimate.
    pub candidates: [f64; 3],
    /// The weights of bandwidth and of its logarithm in the objective.
    pub bias: (f64, f64),
    /// The lowest and the initial inherent loss.
    pub inherent: (f64, f64),
    /// The highest inherent loss: `offset + balance / bandwidth`.
    pub inherent_offset: f64,
    /// See [`inherent_offset`](Self::inherent_offset).
    pub inherent_balance: Rate,
    /// Below this loss ratio the objective prefers high bandwidths, above it low ones.
    pub bias_loss: f64,
    /// The smoothing of this change.
    pub bias_smoothing: f64,
    /// The number of Newton steps, and their size.
    pub newton: (usize, f64),
    /// Whether the acknowledged rate, the delay-based rate, and in the application-limited region the upper bound are
    /// candidates.
    pub appended: (bool, bool, bool),
    /// The acknowledged rate as a candidate is multiplied by this.
    pub acked_factor: f64,
    /// Whether the acknowledged rate is no candidate in the application-limited region.
    pub no_acked_in_alr: bool,
    /// The shortest observation.
    pub observation: TimeDelta,
    /// The number of observations that count, and the number without which there is no result.
    pub observations: (usize, usize),
    /// The weight of the previous sending rate.
    pub sending_smoothing: f64,
    /// The weight of an observation over the next one, in the objective and in the average loss.
    pub weights: (f64, f64),
    /// The upper bound is `balance / (average loss - offset)`.
    pub upper_balance: Rate,
    /// See [`upper_balance`](Self::upper_balance).
    pub upper_offset: f64,
    /// The highest increase within the increase window.
    pub increase_max: f64,
    /// The increase window.
    pub increase_window: TimeDelta,
    /// Whether the estimate does not increase while the inherent loss is below the average loss.
    pub blocks_increase: bool,
    /// Whether the result counts in the first two seconds.
    pub in_start_phase: bool,
    /// The lower bound over the acknowledged rate; zero: none.
    pub lower_factor: f64,
    /// The growth of the time for which a decreased rate is held; zero: no hold.
    pub hold_factor: f64,
    /// Whether bytes count in place of packets.
    pub counts_bytes: bool,
    /// The time for which padding fills an increased rate; zero: none.
    pub padding: TimeDelta,
    /// Whether the bounds apply to the estimate as well as to the result.
    pub bounds_best: bool,
    /// An observation of most loss whose sending rate exceeds the median by this factor counts.
    pub median_factor: f64,
    /// Whether the larger one of two candidates with the same objective counts; otherwise the first one does.
    pub prefers_larger: bool,
    /// Whether the preference for a bandwidth counts whole kbit/s, as libwebrtc does; the crate `goog_cc` counts fractions.
    /// Not a parameter.
    pub whole_kbps: bool,
}

impl LossV2Config {
    /// libwebrtc of 2026-08 (`loss_based_bwe_v2.cc`).
    pub const LIBWEBRTC: Self = Self {
        rampup: (1.5, 1.2),
        rampup_hold: 1.3,
        acceleration: (0.0, TimeDelta::from_secs(60)),
        candidates: [1.02, 1.0, 0.95],
        bias: (0.0002, 0.02),
        inherent: (1e-3, 0.01),
        inherent_offset: 0.05,
        inherent_balance: Rate::from_kbps(100),
        bias_loss: 0.2,
        bias_smoothing: 0.002,
        newton: (1, 0.75),
        appended: (true, true, false),
        acked_factor: 1.0,
        no_acked_in_alr: true,
        observation: TimeDelta::from_millis(250),
        observations: (15, 3),
        sending_smoothing: 0.0,
        weights: (0.9, 0.9),
        upper_balance: Rate::from_kbps(100),
        upper_offset: 0.05,
        increase_max: 1.3,
        increase_window: TimeDelta::from_millis(300),
        blocks_increase: true,
        in_start_phase: true,
        lower_factor: 1.0,
        hold_factor: 2.0,
        counts_bytes: true,
        padding: TimeDelta::from_secs(2),
        bounds_best: true,
        median_factor: 2.0,
        prefers_larger: true,
        whole_kbps: true,
    };

    /// libwebrtc of 2024-12.
    pub const Y2024: Self = Self {
        rampup: (1e6, 1e6),
        inherent_balance: Rate::from_kbps(75),
        bias_loss: 0.15,
        observations: (20, 3),
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

impl Block for LossV2Config {
    fn fields(&mut self, fields: &mut FieldVisitor<'_>) {
        let f = fields;
        let [up, same, down] = &mut self.candidates;
        f.number("loss_rampup", "", (1.0, 1e7), &mut self.rampup.0)
            .describe("highest increase over the acknowledged rate (BwRampupUpperBoundFactor)");
        f.number("loss_rampup_in_hold", "", (1.0, 1e7), &mut self.rampup.1)
            .describe("highest increase over the acknowledged rate during a hold (BwRampupUpperBoundInHoldFactor)");
        f.number("loss_rampup_hold", "", (0.0, 100.0), &mut self.rampup_hold)
            .describe("a hold counts below this multiple of its rate (BwRampupUpperBoundHoldThreshold)");
        f.number("loss_acceleration", "", (0.0, 1e3), &mut self.acceleration.0).describe(
            "share of the acknowledged rate that is added to the bound of candidates (BwRampupAccelMaxFactor)",
        );
        f.millis("loss_acceleration_ms", (1.0, 1e6), &mut self.acceleration.1)
            .describe("time until all of it is added (BwRampupAccelMaxoutTime)");
        f.number("loss_candidate_up", "", (1.0, 10.0), up).describe("higher candidate (CandidateFactors)");
        f.number("loss_candidate_same", "", (0.1, 10.0), same).describe("middle candidate (CandidateFactors)");
        f.number("loss_candidate_down", "", (0.1, 1.0), down).describe("lower candidate (CandidateFactors)");
        f.number("loss_bias", "", (0.0, 1.0), &mut self.bias.0)
            .describe("weight of the bandwidth in the objective (HigherBwBiasFactor)");
        f.number("loss_bias_log", "", (0.0, 1.0), &mut self.bias.1)
            .describe("weight of its logarithm in the objective (HigherLogBwBiasFactor)");
        f.number("loss_inherent_min", "", (0.0, 0.04), &mut self.inherent.0)
            .describe("lowest inherent loss (InherentLossLowerBound)");
        f.number("loss_inherent", "", (0.0, 0.99), &mut self.inherent.1)
            .describe("initial inherent loss (InitialInherentLossEstimate)");
        f.number("loss_inherent_offset", "", (0.04, 0.99), &mut self.inherent_offset)
            .describe("highest inherent loss of high bandwidths (InherentLossUpperBoundOffset)");
        f.rate("loss_inherent_balance_bps", (1.0, 1e9), &mut self.inherent_balance)
            .describe("this over the bandwidth is added to it (InherentLossUpperBoundBwBalance)");
        f.number("loss_bias_ratio", "", (0.0, 0.99), &mut self.bias_loss)
            .describe("loss ratio below which high bandwidths are preferred (LossThresholdOfHighBandwidthPreference)");
        f.number("loss_bias_smoothing", "", (1e-6, 1.0), &mut self.bias_smoothing)
            .describe("smoothing of this preference (BandwidthPreferenceSmoothingFactor)");
        f.count("loss_newton", "", (1, 20), &mut self.newton.0).describe("Newton steps (NewtonIterations)");
        f.number("loss_newton_step", "", (1e-3, 10.0), &mut self.newton.1).describe("size of a step (NewtonStepSize)");
        f.flag("loss_acked", &mut self.appended.0)
            .describe("whether the acknowledged rate is a candidate (AckedRateCandidate)");
        f.flag("loss_delay", &mut self.appended.1)
            .describe("whether the delay-based rate is a candidate (DelayBasedCandidate)");
        f.flag("loss_upper_in_alr", &mut self.appended.2).describe(
            "whether the upper bound is a candidate in the application-limited region (UpperBoundCandidateInAlr)",
        );
        f.number("loss_acked_factor", "", (0.01, 1.0), &mut self.acked_factor)
            .describe("the acknowledged rate is a candidate times this (BwBackoffLowerBoundFactor)");
        f.flag("loss_no_acked_in_alr", &mut self.no_acked_in_alr)
            .describe("whether it is none in the application-limited region (NotUseAckedRateInAlr)");
        f.millis("loss_observation_ms", (1.0, 1e4), &mut self.observation)
            .describe("shortest observation (ObservationDurationLowerBound)");
        f.count("loss_observations", "", (2, OBSERVATIONS_MAX), &mut self.observations.0)
            .describe("observations that count (ObservationWindowSize)");
        f.count("loss_observations_min", "", (1, 50), &mut self.observations.1)
            .describe("observations without which there is no result (MinNumObservations)");
        f.number("loss_sending_smoothing", "", (0.0, 0.99), &mut self.sending_smoothing)
            .describe("weight of the previous sending rate (SendingRateSmoothingFactor)");
        f.number("loss_weight", "", (0.01, 1.0), &mut self.weights.0)
            .describe("weight of an observation over the next one, in the objective (TemporalWeightFactor)");
        f.number("loss_upper_weight", "", (0.01, 1.0), &mut self.weights.1)
            .describe("the same in the average loss (InstantUpperBoundTemporalWeightFactor)");
        f.rate("loss_upper_balance_bps", (1.0, 1e9), &mut self.upper_balance)
            .describe("upper bound times the loss above the offset (InstantUpperBoundBwBalance)");
        f.number("loss_upper_offset", "", (0.0, 0.99), &mut self.upper_offset)
            .describe("loss without an upper bound (InstantUpperBoundLossOffset)");
        f.number("loss_increase", "", (0.1, 100.0), &mut self.increase_max)
            .describe("highest increase in an increase window (MaxIncreaseFactor)");
        f.millis("loss_increase_ms", (1.0, 1e5), &mut self.increase_window)
            .describe("increase window (DelayedIncreaseWindow)");
        f.flag("loss_blocks_increase", &mut self.blocks_increase).describe(
            "whether nothing increases below the average loss (NotIncreaseIfInherentLossLessThanAverageLoss)",
        );
        f.flag("loss_in_start", &mut self.in_start_phase)
            .describe("whether the result counts in the first two seconds (UseInStartPhase)");
        f.number("loss_lower", "", (0.0, 10.0), &mut self.lower_factor)
            .describe("lower bound over the acknowledged rate (LowerBoundByAckedRateFactor); 0: none");
        f.number("loss_hold", "", (0.0, 100.0), &mut self.hold_factor)
            .describe("growth of the time for which a decreased rate is held (HoldDurationFactor); 0: no hold");
        f.flag("loss_bytes", &mut self.counts_bytes)
            .describe("whether bytes count in place of packets (UseByteLossRate)");
        f.millis("loss_padding_ms", (0.0, 1e5), &mut self.padding)
            .describe("time for which padding fills an increased rate (PaddingDuration); 0: none");
        f.flag("loss_bounds_best", &mut self.bounds_best)
            .describe("whether the bounds apply to the estimate as well as to the result (BoundBestCandidate)");
        f.number("loss_median", "", (0.0, 1e3), &mut self.median_factor).describe(
            "an observation of most loss counts above this multiple of the median rate (MedianSendingRateFactor)",
        );
        f.flag("loss_prefers_larger", &mut self.prefers_larger)
            .describe("whether the larger one of two equal candidates counts (UpdateBandwidthEstimate)");
    }
}

/// The largest number of observations.
pub(super) const OBSERVATIONS_MAX: usize = 50;
