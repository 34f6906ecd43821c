//! The loss-based estimate (libwebrtc's `LossBasedBweV2`): a maximum-likelihood estimate of the bandwidth and of the loss that
//! the path has at any rate.
//!
//! ```text
//! observation i:   n_i packets, l_i of them lost, sent at the rate s_i; at least 250 ms each, the last 15 count
//! p(inh, bw, s)  = inh + (1 - inh) (s - bw) / s   if s > bw,  else inh
//! J(inh, bw)     = sum w_i (l_i ln p_i + (n_i - l_i) ln(1 - p_i)) + sum w_i n_i bias(bw)           w_i = 0.9^age
//! bias(bw)       = B(0.0002) bw + B(0.02) ln(1 + bw)      B(f) = f (0.2 - avg) / (0.002 + |0.2 - avg|)      kbit/s
//! candidates:      1.02, 1 and 0.95 of the last estimate, the acknowledged rate, the delay-based rate
//! result         = max(acked, min(argmax J, 100 kbit/s / (avg - 0.05), delay-based rate))
//! ```
//!
//! Packets are counted in kilobytes. `avg` is the loss ratio without the observations of most and of least loss. Three states
//! describe the result: it is the delay-based rate, it decreases or holds, or it increases while padding fills the rate.

use super::units::{MIN_RATE, floor_sent, rate_of, whole_kbps};
use crate::{Block, FieldVisitor, PacketReport};
use libm::{log, pow};
use paceline_units::{DataSize, Rate, Time, TimeDelta, round_to_u64};

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
const OBSERVATIONS_MAX: usize = 50;
/// The first hold (`kInitHoldDuration`, `loss_based_bwe_v2.cc`).
const HOLD_FIRST: TimeDelta = TimeDelta::from_millis(300);
/// The longest hold (`kMaxHoldDuration`, `loss_based_bwe_v2.cc`).
const HOLD_MAX: TimeDelta = TimeDelta::from_secs(60);
/// The lowest distance of a loss probability from 0 and 1 (`GetLossProbability`).
const PROBABILITY_MIN: f64 = 1e-6;
/// The observations of most and of least loss do not count once there are more than this (`loss_based_bwe_v2.cc`).
const TRIM_ABOVE: u64 = 3;
/// The second derivative where rounding makes it positive (`GetDerivatives`).
const SECOND_DERIVATIVE_MAX: f64 = -1e-6;

/// How the result came about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LossState {
    /// Loss does not limit the rate.
    #[default]
    DelayBased,
    /// Loss limits the rate, which decreases or holds.
    Decreasing,
    /// The rate increases after a decrease.
    Increasing,
    /// The rate increases after a decrease, and padding fills it.
    IncreaseUsingPadding,
}

impl LossState {
    /// Names, in order of [`index`](Self::index).
    pub const NAMES: &'static [&'static str] = &["delay-based", "decreasing", "increasing", "padding"];
    /// Returns the state as a signal value.
    pub fn index(self) -> f64 {
        f64::from(self as u8)
    }
}

/// The estimator. The fields are in order of use: most messages complete no observation.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct LossV2 {
    partial: Partial,
    /// The last send time of the newest observation, or the first one of the first message.
    last_sent: Option<Time>,
    acked: Option<Rate>,
    lower: Rate,
    bounds: (Rate, Rate),
    delay_based: Rate,
    best: Channel,
    /// The number of all observations.
    count: u64,
    result: Rate,
    state: LossState,
    config: LossV2Config,
    /// The powers of the weights, by age.
    weights: Vec<(f64, f64)>,
    /// A ring, by number.
    observations: Vec<Observation>,
    average_loss: f64,
    upper: Rate,
    reduced: Option<Time>,
    /// The start of the increase window, and its limit.
    window: (Option<Time>, Rate),
    hold: Hold,
    padding: (Option<Time>, Rate),
}

#[derive(Clone, Copy, Debug, Default)]
struct Observation {
    number: u64,
    packets: f64,
    lost_packets: f64,
    size: DataSize,
    lost_size: DataSize,
    rate: Rate,
}

/// The observation that is not complete yet.
#[derive(Clone, Debug, Default)]
struct Partial {
    packets: u32,
    size: DataSize,
    /// Lost packets in order of their numbers, with sizes.
    lost: Vec<(u64, u64)>,
}

/// What is known about the path.
#[derive(Clone, Copy, Debug)]
struct Channel {
    inherent: f64,
    /// Zero: unknown.
    bandwidth: Rate,
}

/// The time until which a decreased rate is held.
#[derive(Clone, Copy, Debug)]
struct Hold {
    end: Option<Time>,
    duration: TimeDelta,
    rate: Rate,
}

impl Hold {
    const NONE: Self = Self { end: None, duration: HOLD_FIRST, rate: Rate::MAX };
}

impl LossV2 {
    /// Creates an estimator without observations.
    pub fn new(config: LossV2Config) -> Self {
        let weight = |age: usize| (pow(config.weights.0, age as f64), pow(config.weights.1, age as f64));
        Self {
            config,
            weights: (0..config.observations.0).map(weight).collect(),
            observations: Vec::new(),
            count: 0,
            partial: Partial::default(),
            best: Channel { inherent: config.inherent.1, bandwidth: Rate::ZERO },
            acked: None,
            bounds: (Rate::from_kbps(1), Rate::MAX),
            delay_based: Rate::MAX,
            average_loss: 0.0,
            upper: Rate::MAX,
            lower: Rate::ZERO,
            last_sent: None,
            reduced: None,
            window: (None, Rate::MAX),
            hold: Hold::NONE,
            padding: (None, Rate::ZERO),
            result: Rate::ZERO,
            state: LossState::DelayBased,
        }
    }

    /// Returns whether there are enough observations for a result.
    pub fn is_ready(&self) -> bool {
        !self.best.bandwidth.is_zero() && self.count >= self.config.observations.1 as u64
    }

    /// Returns whether the result counts in the first two seconds.
    pub fn is_ready_in_start_phase(&self) -> bool {
        self.config.in_start_phase && self.is_ready()
    }

    /// Returns the result and its state, once there are enough observations.
    pub fn result(&self) -> Option<(Rate, LossState)> {
        self.is_ready().then_some((self.result, self.state))
    }

    /// Returns the average loss ratio.
    pub fn average_loss(&self) -> f64 {
        self.average_loss
    }

    /// Returns the loss that the path has at any rate, as estimated.
    pub fn inherent_loss(&self) -> f64 {
        self.best.inherent
    }

    /// Sets the lowest and the highest rate.
    pub fn set_bounds(&mut self, min: Rate, max: Rate) {
        self.bounds = (min, max);
        self.update_lower();
    }

    /// Sets the acknowledged rate.
    pub fn set_acked(&mut self, acked: Rate) {
        self.acked = Some(acked);
        self.update_lower();
    }

    fn update_lower(&mut self) {
        let acked = self.acked.map_or(Rate::ZERO, |acked| acked.scale(self.config.lower_factor));
        self.lower = acked.max(self.bounds.0);
    }

    /// Handles all packets of a feedback message, with the delay-based rate ([`Rate::MAX`]: unknown), and whether the
    /// application limits the flow. Send times are rounded down to multiples of `clock`.
    pub fn handle_feedback(&mut self, packets: &[PacketReport], clock: TimeDelta, delay_based: Rate, in_alr: bool) {
        self.delay_based = delay_based;
        let Some(last_sent) = self.observe(packets, clock) else { return };
        if self.best.bandwidth.is_zero() {
            if delay_based == Rate::MAX {
                return;
            }
            (self.best.bandwidth, self.result, self.state) = (delay_based, delay_based, LossState::DelayBased);
        }
        let mut channel = self.best_candidate(in_alr, last_sent);
        if channel.bandwidth < self.best.bandwidth {
            self.reduced = Some(last_sent);
        }
        if self.config.blocks_increase
            && self.average_loss > channel.inherent
            && channel.bandwidth > self.best.bandwidth
        {
            channel.bandwidth = self.best.bandwidth;
        }
        if self.is_loss_limited() {
            channel.bandwidth = self.limited_increase(channel.bandwidth, last_sent);
        }
        let bounded = channel.bandwidth.min(self.upper).min(delay_based).max(self.lower);
        self.best = match self.config.bounds_best && bounded < channel.bandwidth {
            true => Channel { inherent: 0.0, bandwidth: bounded },
            false if self.config.lower_factor > 0.0 => {
                Channel { bandwidth: channel.bandwidth.max(self.lower), ..channel }
            }
            false => channel,
        };
        self.update_result(bounded, last_sent);
    }

    /// Adds the packets to the current observation. Returns the last send time if that completes it
    /// (`PushBackObservation`).
    fn observe(&mut self, packets: &[PacketReport], clock: TimeDelta) -> Option<Time> {
        let first = packets.first()?;
        let (mut earliest, mut latest) = (first.sent, first.sent);
        let mut bytes = DataSize::ZERO;
        for packet in packets {
            self.partial.count(packet);
            bytes += packet.size;
            earliest = earliest.min(packet.sent);
            latest = latest.max(packet.sent);
        }
        self.partial.packets += packets.len() as u32;
        self.partial.size += bytes;
        let (earliest, latest) = (floor_sent(earliest, clock), floor_sent(latest, clock));
        let duration = latest - *self.last_sent.get_or_insert(earliest);
        if !duration.is_positive() || duration < self.config.observation {
            return None;
        }
        self.last_sent = Some(latest);
        self.complete(duration);
        Some(latest)
    }

    fn complete(&mut self, duration: TimeDelta) {
        let rate = rate_of(self.partial.size, duration);
        let smoothing = self.config.sending_smoothing;
        let rate = match self.newest().filter(|_| smoothing > 0.0) {
            Some(newest) => newest.rate.scale(smoothing) + rate.scale(1.0 - smoothing),
            None => rate,
        };
        let observation = Observation {
            number: self.count,
            packets: f64::from(self.partial.packets),
            lost_packets: self.partial.lost.len() as f64,
            size: self.partial.size,
            lost_size: DataSize::from_bytes(self.partial.lost.iter().map(|(_, bytes)| bytes).sum()),
            rate,
        };
        let Partial { packets, size, lost } = &mut self.partial;
        (*packets, *size) = (0, DataSize::ZERO);
        lost.clear();
        let index = (self.count % self.config.observations.0 as u64) as usize;
        match self.observations.get_mut(index) {
            Some(oldest) => *oldest = observation,
            None => {
                self.observations.reserve_exact(self.config.observations.0 - self.observations.len());
                self.observations.push(observation);
            }
        }
        self.count += 1;
        self.average_loss = if self.config.counts_bytes { self.byte_loss() } else { self.packet_loss() };
        self.upper = match self.average_loss - self.config.upper_offset {
            above if above > 0.0 => Rate::from_bps_f64(self.config.upper_balance.as_bps_f64() / above),
            _ => self.bounds.1,
        };
    }

    fn newest(&self) -> Option<&Observation> {
        let newest = self.count.checked_sub(1)?;
        self.observations.get((newest % self.config.observations.0 as u64) as usize)
    }

    /// Returns the weights of an observation: in the objective, and in the average loss.
    fn weight(&self, observation: &Observation) -> (f64, f64) {
        self.weights[(self.count - 1 - observation.number) as usize]
    }

    /// Returns the average loss ratio of packets (`CalculateAverageReportedPacketLossRatio`).
    fn packet_loss(&self) -> f64 {
        let (mut packets, mut lost) = (0.0, 0.0);
        for observation in &self.observations {
            let weight = self.weight(observation).1;
            packets += weight * observation.packets;
            lost += weight * observation.lost_packets;
        }
        lost / packets
    }

    /// Returns the average loss ratio of bytes without the observations of most and of least loss
    /// (`CalculateAverageReportedByteLossRatio`). They count if the one of most loss was sent at a much higher rate than the
    /// others: then the loss is no accident.
    fn byte_loss(&self) -> f64 {
        let (mut total, mut lost) = (0, 0);
        // Ratio, weighted lost bytes, weighted bytes.
        let (mut least, mut most) = ((1.0, 0, 0), (0.0, 0, 0));
        let mut rate_of_most = Rate::ZERO;
        for observation in &self.observations {
            let weight = self.weight(observation).1;
            let (bytes, lost_bytes) = (observation.size.as_bytes() as f64, observation.lost_size.as_bytes() as f64);
            let weighted = (round_to_u64(weight * lost_bytes), round_to_u64(weight * bytes));
            lost += weighted.0;
            total += weighted.1;
            let ratio = if bytes > 0.0 { lost_bytes / bytes } else { 0.0 };
            if self.count > TRIM_ABOVE && ratio > most.0 {
                most = (ratio, weighted.0, weighted.1);
                rate_of_most = observation.rate;
            }
            if self.count > TRIM_ABOVE && ratio < least.0 {
                least = (ratio, weighted.0, weighted.1);
            }
        }
        if total == 0 {
            return 0.0;
        }
        let excess = self.median_rate().scale(self.config.median_factor) <= rate_of_most;
        if excess || total == most.2 + least.2 {
            return lost as f64 / total as f64;
        }
        // If one observation is both, it is subtracted twice.
        let (lost, total) = (lost as f64 - (most.1 + least.1) as f64, total as f64 - (most.2 + least.2) as f64);
        lost / total
    }

    /// Returns the median sending rate of the observations with a rate (`GetMedianSendingRate`).
    fn median_rate(&self) -> Rate {
        let mut rates = [0; OBSERVATIONS_MAX];
        let mut n = 0;
        for observation in self.observations.iter().filter(|observation| !observation.rate.is_zero()) {
            rates[n] = observation.rate.as_bps();
            n += 1;
        }
        let rates = &mut rates[..n];
        rates.sort_unstable();
        Rate::from_bps(match n {
            0 => 0,
            n if n % 2 == 0 => rates[n / 2 - 1].midpoint(rates[n / 2]),
            n => rates[n / 2],
        })
    }

    /// Returns the candidate with the highest objective.
    fn best_candidate(&self, in_alr: bool, last_sent: Time) -> Channel {
        let (mut best, mut highest) = (self.best, f64::MIN);
        let cap = self.candidate_bound(last_sent).max(self.best.bandwidth);
        for bandwidth in self.candidates(in_alr, last_sent).into_iter().flatten() {
            let mut channel = Channel { bandwidth: bandwidth.min(cap), ..self.best };
            channel.inherent = self.feasible(&channel);
            self.step_newton(&mut channel);
            let objective = self.objective(&channel);
            let tie = self.config.prefers_larger && objective == highest && channel.bandwidth > best.bandwidth;
            if objective > highest || tie {
                (best, highest) = (channel, objective);
            }
        }
        best
    }

    /// Returns the bandwidths to compare (`GetCandidates`).
    fn candidates(&self, in_alr: bool, last_sent: Time) -> [Option<Rate>; 6] {
        let (c, best) = (&self.config, self.best.bandwidth);
        let [up, same, down] = c.candidates.map(|factor| Some(best.scale(factor)));
        let pads = c.padding.is_positive() && self.padding.0.is_some_and(|since| since + c.padding >= last_sent);
        let acked = self.acked.filter(|_| c.appended.0 && (!(c.no_acked_in_alr && in_alr) || pads));
        let delay_based = c.appended.1 && self.delay_based != Rate::MAX && self.delay_based > best;
        let upper = in_alr && c.appended.2 && best > self.upper;
        [
            up,
            same,
            down,
            acked.map(|acked| acked.scale(c.acked_factor)),
            delay_based.then_some(self.delay_based),
            upper.then_some(self.upper),
        ]
    }

    /// Returns the highest candidate (`GetCandidateBandwidthUpperBound`).
    fn candidate_bound(&self, last_sent: Time) -> Rate {
        let bound = match self.is_loss_limited() && self.window.1 != Rate::MAX {
            true => self.window.1,
            false => self.bounds.1,
        };
        let (most, after) = self.config.acceleration;
        let Some(acked) = self.acked.filter(|_| most > 0.0) else { return bound };
        let since = self.reduced.map_or(after, |reduced| (last_sent - reduced).clamp(TimeDelta::ZERO, after));
        bound + acked.scale(most * (since.as_secs_f64() / after.as_secs_f64()))
    }

    /// Returns the number of lost and of received packets of an observation, or their kilobytes.
    #[inline]
    fn counted(&self, observation: &Observation) -> (f64, f64) {
        if self.config.counts_bytes {
            let lost = observation.lost_size.as_bytes();
            (lost as f64 / 1e3, (observation.size.as_bytes().saturating_sub(lost)) as f64 / 1e3)
        } else {
            (observation.lost_packets, observation.packets - observation.lost_packets)
        }
    }

    /// Improves the inherent loss of a candidate by Newton's method (`NewtonsMethodUpdate`).
    fn step_newton(&self, channel: &mut Channel) {
        for _ in 0..self.config.newton.0 {
            let (mut first, mut second) = (0.0, 0.0);
            for observation in &self.observations {
                let p = loss_probability(channel.inherent, channel.bandwidth, observation.rate);
                let weight = self.weight(observation).0;
                let (lost, received) = self.counted(observation);
                let (by_lost, by_received) = (lost / p, received / (1.0 - p));
                first += weight * (by_lost - by_received);
                second -= weight * (by_lost / p + by_received / (1.0 - p));
            }
            if second >= 0.0 {
                second = SECOND_DERIVATIVE_MAX;
            }
            channel.inherent -= self.config.newton.1 * first / second;
            channel.inherent = self.feasible(channel);
        }
    }

    /// Returns the inherent loss of a candidate within its bounds (`GetFeasibleInherentLoss`).
    fn feasible(&self, channel: &Channel) -> f64 {
        channel.inherent.max(self.config.inherent.0).min(self.inherent_max(channel.bandwidth))
    }

    /// Returns the highest inherent loss at a bandwidth (`GetInherentLossUpperBound`).
    fn inherent_max(&self, bandwidth: Rate) -> f64 {
        if bandwidth.is_zero() {
            return 1.0;
        }
        let balance = self.config.inherent_balance.as_bps_f64() / bandwidth.as_bps_f64();
        (self.config.inherent_offset + balance).min(1.0)
    }

    /// Returns `J` of a candidate (`GetObjective`).
    fn objective(&self, channel: &Channel) -> f64 {
        let bias = self.bias(channel.bandwidth);
        // Most observations were sent below the bandwidth: their probability is the inherent loss.
        let inherent = loss_probability(channel.inherent, Rate::MAX, Rate::ZERO);
        let below = (log(inherent), log(1.0 - inherent));
        let mut objective = 0.0;
        for observation in &self.observations {
            let weight = self.weight(observation).0;
            let (ln_lost, ln_received) = if observation.rate > channel.bandwidth {
                let p = loss_probability(channel.inherent, channel.bandwidth, observation.rate);
                (log(p), log(1.0 - p))
            } else {
                below
            };
            let (lost, received) = self.counted(observation);
            let all =
                if self.config.counts_bytes { observation.size.as_bytes() as f64 / 1e3 } else { observation.packets };
            objective += weight * (lost * ln_lost + received * ln_received);
            objective += weight * bias * all;
        }
        objective
    }

    /// Returns the preference for a bandwidth (`GetHighBandwidthBias`).
    fn bias(&self, bandwidth: Rate) -> f64 {
        if bandwidth == Rate::MAX {
            return 0.0;
        }
        let (linear, logarithmic) = self.config.bias;
        let kbps = match self.config.whole_kbps {
            true => whole_kbps(bandwidth) as f64,
            false => bandwidth.as_bps_f64() / 1e3,
        };
        let loss = self.average_loss;
        self.adjusted(linear, loss) * kbps + self.adjusted(logarithmic, loss) * log(1.0 + kbps)
    }

    /// Returns a weight of the preference at an average loss (`AdjustBiasFactor`).
    fn adjusted(&self, factor: f64, loss: f64) -> f64 {
        let below = self.config.bias_loss - loss;
        factor * below / (self.config.bias_smoothing + below.abs())
    }

    fn is_loss_limited(&self) -> bool {
        self.state != LossState::DelayBased
    }

    /// Returns whether a rate increases in a loss-limited state (`IsEstimateIncreasingWhenLossLimited`).
    fn increases(&self, before: Rate, after: Rate) -> bool {
        let keeps = matches!(self.state, LossState::Increasing | LossState::IncreaseUsingPadding);
        self.is_loss_limited() && (before < after || (before == after && keeps))
    }

    /// Bounds an increase by the limit of the increase window and by the acknowledged rate.
    fn limited_increase(&self, bandwidth: Rate, last_sent: Time) -> Rate {
        let in_window = self.window.0.is_some_and(|since| since + self.config.increase_window > last_sent);
        let bandwidth = if in_window { bandwidth.min(self.window.1) } else { bandwidth };
        let before = self.best.bandwidth;
        let Some(acked) = self.acked.filter(|_| self.increases(before, bandwidth)) else { return bandwidth };
        let holds = self.hold.rate != Rate::MAX && acked < self.hold.rate.scale(self.config.rampup_hold);
        let factor = if holds { self.config.rampup.1 } else { self.config.rampup.0 };
        let limited = bandwidth.min(acked.scale(factor)).max(before);
        // Without an increase the state would not change, and there would be no padding.
        match limited == before && self.state == LossState::Decreasing {
            true => before + Rate::from_bps(1),
            false => limited,
        }
    }

    /// Updates state and result from the bounded estimate.
    fn update_result(&mut self, bounded: Rate, last_sent: Time) {
        let below_delay = bounded < self.delay_based;
        if self.state == LossState::Decreasing && self.hold.end.is_some_and(|end| end > last_sent) && below_delay {
            if self.config.lower_factor > 0.0 {
                self.hold.rate = self.hold.rate.max(self.lower);
            }
            self.result = bounded.min(self.hold.rate);
            return;
        }
        let limited = below_delay && bounded < self.bounds.1;
        if limited && self.increases(self.result, bounded) && self.can_keep_increasing(bounded, last_sent) {
            let pads = self.config.padding.is_positive();
            if pads && bounded > self.padding.1 {
                self.padding = (Some(last_sent), bounded);
            }
            self.state = if pads { LossState::IncreaseUsingPadding } else { LossState::Increasing };
        } else if limited {
            if self.state != LossState::Decreasing && self.config.hold_factor > 0.0 {
                let duration = self.hold.duration;
                let next = duration.scale(self.config.hold_factor).min(HOLD_MAX);
                self.hold = Hold { end: Some(last_sent + duration), duration: next, rate: bounded };
            }
            self.padding = (None, Rate::ZERO);
            self.state = LossState::Decreasing;
        } else {
            (self.hold, self.padding) = (Hold::NONE, (None, Rate::ZERO));
            self.state = LossState::DelayBased;
        }
        self.result = bounded;
        let expired = self.window.0.is_none_or(|since| since + self.config.increase_window < last_sent);
        if self.is_loss_limited() && expired {
            self.window = (Some(last_sent), self.best.bandwidth.scale(self.config.increase_max).max(MIN_RATE));
        }
    }

    /// Returns whether padding may go on (`CanKeepIncreasingState`).
    fn can_keep_increasing(&self, bounded: Rate, last_sent: Time) -> bool {
        let padding = self.config.padding;
        !padding.is_positive()
            || self.state != LossState::IncreaseUsingPadding
            || self.padding.0.is_some_and(|since| since + padding >= last_sent)
            || self.padding.1 < bounded
    }
}

impl Partial {
    /// Counts a packet as lost, or as received after all.
    #[inline]
    fn count(&mut self, packet: &PacketReport) {
        let (number, bytes) = (packet.sequence, packet.size.as_bytes());
        if packet.arrival.is_none() {
            match self.lost.last() {
                Some((last, _)) if *last >= number => self.insert(number, bytes),
                _ => self.lost.push((number, bytes)),
            }
        } else if !self.lost.is_empty()
            && let Ok(index) = self.lost.binary_search_by_key(&number, |(number, _)| *number)
        {
            self.lost.remove(index);
        }
    }

    #[cold]
    fn insert(&mut self, number: u64, bytes: u64) {
        if let Err(index) = self.lost.binary_search_by_key(&number, |(number, _)| *number) {
            self.lost.insert(index, (number, bytes));
        }
    }
}

/// Returns the probability of loss at a sending rate (`GetLossProbability`).
#[inline]
fn loss_probability(inherent: f64, bandwidth: Rate, sending: Rate) -> f64 {
    let mut p = inherent.clamp(0.0, 1.0);
    if sending > bandwidth {
        p += (1.0 - p) * ((sending - bandwidth).as_bps_f64() / sending.as_bps_f64());
    }
    p.clamp(PROBABILITY_MIN, 1.0 - PROBABILITY_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_units::RemoteTime;

    fn kbps(kbps: u64) -> Rate {
        Rate::from_kbps(kbps)
    }

    /// Reports on 50 packets of 1000 bytes, 5 ms apart, of which `lost` are lost; the newest was sent at 250 (i + 1) ms.
    fn message(i: i64, lost: impl Fn(i64) -> bool) -> Vec<PacketReport> {
        let packet = |j: i64| {
            let (sent, number) = (Time::from_millis(250 * i + 5 * (j + 1)), (50 * i + j) as u64);
            let arrival = (!lost(j)).then_some(RemoteTime::ZERO);
            PacketReport::new(number, sent, DataSize::from_bytes(1000), arrival)
        };
        (0..50).map(packet).collect()
    }

    const CLOCK: TimeDelta = TimeDelta::from_millis(1);

    fn estimator(config: LossV2Config) -> LossV2 {
        let mut v2 = LossV2::new(config);
        v2.set_bounds(kbps(5), Rate::from_bps(1_000_000_000));
        v2
    }

    /// Vector G1 (model run): from i = 4 to 9 half of the packets are lost; the delay-based rate is 2 Mbit/s.
    #[test]
    fn loss_phase_decreases_holds_pads_and_holds_longer() {
        let mut v2 = estimator(LossV2Config::LIBWEBRTC);
        let mut rows = Vec::new();
        for i in 0..24 {
            let in_phase = (4..10).contains(&i);
            v2.set_acked(kbps(if i < 4 {
                1600
            } else if in_phase {
                800
            } else {
                1200
            }));
            v2.handle_feedback(&message(i, |j| in_phase && j % 2 == 0), CLOCK, kbps(2000), false);
            if [4, 5, 10, 18, 19, 23].contains(&i) {
                let average = (v2.average_loss() * 1e6).round() / 1e6;
                let best = v2.best.bandwidth.as_bps() / 1000;
                let result = v2.result().map(|(rate, state)| (rate.as_bps() / 1000, state));
                rows.push((i, average, v2.upper.as_bps().min(1_000_000_000), best, result));
            }
        }
        use LossState::{Decreasing as X, DelayBased as D, IncreaseUsingPadding as P};
        let expected = [
            (4, 0.0, 1_000_000_000, 2000, Some((2000, D))),
            (5, 0.196928, 680_606, 800, Some((800, X))),
            (10, 0.329403, 357_906, 1200, Some((1200, P))),
            (18, 0.114929, 1_540_133, 1200, Some((1200, P))),
            (19, 0.085856, 2_788_933, 1200, Some((1200, X))),
            (23, 0.0, 1_000_000_000, 1440, Some((1440, P))),
        ];
        for (row, expected) in rows.iter().zip(expected) {
            let near = row.2.abs_diff(expected.2) <= 300;
            assert!(near, "{row:?} {expected:?}");
            assert_eq!((row.0, row.1, row.3, row.4), (expected.0, expected.1, expected.3, expected.4));
        }
        assert_eq!(v2.hold.duration, TimeDelta::from_millis(1200));
        assert_eq!(rows.len(), 6);
    }

    #[test]
    fn result_needs_three_observations_of_250_ms() {
        let mut v2 = estimator(LossV2Config::LIBWEBRTC);
        // The first message spans 245 ms.
        let ready = [0, 1, 2, 3].map(|i| {
            v2.handle_feedback(&message(i, |_| false), CLOCK, kbps(2000), false);
            v2.is_ready()
        });
        assert_eq!(ready, [false, false, false, true]);
        let mut unknown = estimator(LossV2Config::LIBWEBRTC);
        (0..9).for_each(|i| unknown.handle_feedback(&message(i, |_| false), CLOCK, Rate::MAX, false));
        assert!(!unknown.is_ready(), "no delay-based rate");
    }

    /// An estimator of packets with a window of the same observations: `n` of these packets, lost packets and rate.
    fn observed(n: u64, packets: f64, lost: f64, rate: Rate, best: Rate) -> LossV2 {
        let mut v2 = estimator(LossV2Config::Y2024);
        let observation = |number| Observation {
            number,
            packets,
            lost_packets: lost,
            size: DataSize::from_bytes(packets as u64 * 1000),
            lost_size: DataSize::from_bytes(lost as u64 * 1000),
            rate,
        };
        (v2.observations, v2.count) = ((0..n).map(observation).collect(), n);
        v2.average_loss = v2.packet_loss();
        v2.best.bandwidth = best;
        v2
    }

    /// Vector V4.6: three observations of 50 packets (A) without loss at 900 kbit/s, best 1000; (B) with 10 lost packets at
    /// 1250, best 1250, acknowledged 1000; (C) with 2 lost packets at 1000, best 1000, acknowledged 960, delay-based 1100.
    #[test]
    fn objective_and_best_candidate_match_the_vectors() {
        let cases = [
            (0.0, 900, 1000, 900, 1000, 1020, 0.001, 45.672002),
            (10.0, 1250, 1250, 1000, 1250, 1000, 0.003825, -111.868776),
            (2.0, 1000, 1000, 960, 1100, 1100, 0.015668, 23.339014),
        ];
        for (lost, rate, best, acked, delay_based, bandwidth, inherent, objective) in cases {
            let mut v2 = observed(3, 50.0, lost, kbps(rate), kbps(best));
            (v2.acked, v2.delay_based) = (Some(kbps(acked)), kbps(delay_based));
            let best = v2.best_candidate(false, Time::ZERO);
            assert_eq!(best.bandwidth, kbps(bandwidth));
            assert!((best.inherent - inherent).abs() < 1e-6, "{best:?}");
            assert!((v2.objective(&best) - objective).abs() < 1e-6, "{}", v2.objective(&best));
        }
    }

    /// By hand: 0.2 of 0.2 is no preference; far below and far above it the factor is almost 1 and -1.
    #[test]
    fn bias_prefers_high_bandwidths_below_the_loss_ratio() {
        let v2 = LossV2::new(LossV2Config::LIBWEBRTC);
        assert!(v2.adjusted(1.0, 0.2).abs() < 1e-12);
        assert!(
            (v2.adjusted(1.0, 0.0) - 0.2 / 0.202).abs() < 1e-12 && (v2.adjusted(1.0, 0.4) + 0.2 / 0.202).abs() < 1e-12
        );
        assert!((v2.bias(kbps(1000)) - 0.2 / 0.202 * (0.2 + 0.02 * log(1001.0))).abs() < 1e-12);
    }

    /// By hand, with weights of 1: of the ratios 0, 0.1, 0.5 and 0.2 the first and the third do not count.
    #[test]
    fn observations_of_most_and_least_loss_do_not_count() {
        let mut v2 = estimator(LossV2Config { weights: (1.0, 1.0), ..LossV2Config::LIBWEBRTC });
        for (i, lost) in [0, 0, 5, 25, 10].into_iter().enumerate() {
            v2.handle_feedback(&message(i as i64, |j| j < lost), CLOCK, kbps(2000), false);
        }
        // The first message is part of the first observation: 100 packets without loss.
        assert!((v2.average_loss() - 15.0 / 100.0).abs() < 1e-12, "{}", v2.average_loss());
        assert!((v2.packet_loss() - 40.0 / 250.0).abs() < 1e-12);
        // The sending rates are 1616 and 1600 kbit/s. At twice the median of the four the observation of most loss counts.
        v2.observations[2].rate = kbps(3216);
        assert!((v2.byte_loss() - 15.0 / 100.0).abs() < 1e-12, "{}", v2.byte_loss());
        v2.observations[2].rate = kbps(3217);
        assert!((v2.byte_loss() - 40.0 / 250.0).abs() < 1e-12, "{}", v2.byte_loss());
    }

    #[test]
    fn packet_that_arrives_after_all_is_not_lost() {
        let mut v2 = estimator(LossV2Config::LIBWEBRTC);
        let mut packets = message(0, |j| j == 3 || j == 7);
        v2.handle_feedback(&packets, CLOCK, kbps(2000), false);
        assert_eq!(v2.partial.lost, [(3, 1000), (7, 1000)]);
        packets[3].arrival = Some(RemoteTime::ZERO);
        v2.handle_feedback(&packets[3..4], CLOCK, kbps(2000), false);
        packets[1].arrival = None;
        v2.handle_feedback(&packets[1..2], CLOCK, kbps(2000), false);
        assert_eq!((&v2.partial.lost[..], v2.partial.packets), (&[(1, 1000), (7, 1000)][..], 52));
    }

    /// By hand: 0.05 + 100 / 1000; at most 1; and 0.001 at least.
    #[test]
    fn inherent_loss_is_bounded_by_the_bandwidth() {
        let v2 = LossV2::new(LossV2Config::LIBWEBRTC);
        assert!((v2.inherent_max(kbps(1000)) - 0.15).abs() < 1e-12);
        assert_eq!([v2.inherent_max(kbps(100)), v2.inherent_max(Rate::ZERO)], [1.0, 1.0]);
        let feasible = |inherent| v2.feasible(&Channel { inherent, bandwidth: kbps(1000) });
        assert_eq!([feasible(0.0), feasible(0.1)], [0.001, 0.1]);
        assert!((feasible(0.9) - 0.15).abs() < 1e-12);
    }

    /// By hand: 0.5 + (1 - 0.5) (2 - 1) / 2; and the bounds.
    #[test]
    fn loss_probability_grows_above_the_bandwidth() {
        assert_eq!(loss_probability(0.5, kbps(1000), kbps(2000)), 0.75);
        assert_eq!(loss_probability(0.5, kbps(1000), kbps(1000)), 0.5);
        assert_eq!(loss_probability(0.0, kbps(1000), kbps(10)), 1e-6);
        assert_eq!(loss_probability(1.0, kbps(1000), kbps(10)), 1.0 - 1e-6);
    }
}
