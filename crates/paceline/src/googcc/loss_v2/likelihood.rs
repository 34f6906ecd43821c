// SPDX-License-Identifier: MIT OR Apache-2.0
//! The candidates and their likelihood: the objective, and a Newton step on the loss that the path has at any rate.

use super::observations::Observation;
use super::{Channel, LossV2};
use crate::blocks::units::whole_kbps;
use libm::log;
use paceline_units::{Rate, Time, TimeDelta};

/// The lowest distance of a loss probability from 0 and 1 (`GetLossProbability`).
const PROBABILITY_MIN: f64 = 1e-6;
/// The second derivative where rounding makes it positive (`GetDerivatives`).
const SECOND_DERIVATIVE_MAX: f64 = -1e-6;

impl LossV2 {
    /// Returns the candidate with the highest objective.
    pub(super) fn best_candidate(&self, in_alr: bool, last_sent: Time) -> Channel {
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
    pub(super) fn candidates(&self, in_alr: bool, last_sent: Time) -> [Option<Rate>; 6] {
        let (c, best) = (&self.config, self.best.bandwidth);
        let [up, same, down] =
            [c.candidate_up, c.candidate_same, c.candidate_down].map(|factor| Some(best.scale(factor)));
        let pads = c.padding.is_positive() && self.padding.0.is_some_and(|since| since + c.padding >= last_sent);
        let acked = self.acked.filter(|_| c.acked && (!(c.no_acked_in_alr && in_alr) || pads));
        let delay_based = c.delay_based && self.delay_based != Rate::MAX && self.delay_based > best;
        let upper = in_alr && c.upper_in_alr && best > self.upper;
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
        let (most, after) = (self.config.acceleration, self.config.acceleration_time);
        let Some(acked) = self.acked.filter(|_| most > 0.0) else { return bound };
        let since = self.reduced.map_or(after, |reduced| (last_sent - reduced).clamp(TimeDelta::ZERO, after));
        bound + acked.scale(most * (since.as_secs_f64() / after.as_secs_f64()))
    }

    /// Improves the inherent loss of a candidate by Newton's method (`NewtonsMethodUpdate`).
    pub(super) fn step_newton(&self, channel: &mut Channel) {
        for _ in 0..self.config.newton {
            let (mut first, mut second) = (0.0, 0.0);
            for observation in &self.observations {
                let p = loss_probability(channel.inherent, channel.bandwidth, observation.rate);
                let weight = self.weight(observation).0;
                let Observation { lost, received, .. } = *observation;
                let (by_lost, by_received) = (lost / p, received / (1.0 - p));
                first += weight * (by_lost - by_received);
                second -= weight * (by_lost / p + by_received / (1.0 - p));
            }
            if second >= 0.0 {
                second = SECOND_DERIVATIVE_MAX;
            }
            channel.inherent -= self.config.newton_step * first / second;
            channel.inherent = self.feasible(channel);
        }
    }

    /// Returns the inherent loss of a candidate within its bounds (`GetFeasibleInherentLoss`).
    pub(super) fn feasible(&self, channel: &Channel) -> f64 {
        channel.inherent.max(self.config.inherent_min).min(self.inherent_max(channel.bandwidth))
    }

    /// Returns the highest inherent loss at a bandwidth (`GetInherentLossUpperBound`).
    pub(super) fn inherent_max(&self, bandwidth: Rate) -> f64 {
        if bandwidth.is_zero() {
            return 1.0;
        }
        let balance = self.config.inherent_balance.as_bps_f64() / bandwidth.as_bps_f64();
        (self.config.inherent_offset + balance).min(1.0)
    }

    /// Returns `J` of a candidate (`GetObjective`).
    pub(super) fn objective(&self, channel: &Channel) -> f64 {
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
            let Observation { lost, received, all, .. } = *observation;
            objective += weight * (lost * ln_lost + received * ln_received);
            objective += weight * bias * all;
        }
        objective
    }

    /// Returns the preference for a bandwidth (`GetHighBandwidthBias`).
    pub(super) fn bias(&self, bandwidth: Rate) -> f64 {
        if bandwidth == Rate::MAX {
            return 0.0;
        }
        let (linear, logarithmic) = (self.config.bias, self.config.bias_log);
        let kbps = match self.config.whole_kbps {
            true => whole_kbps(bandwidth) as f64,
            false => bandwidth.as_bps_f64() / 1e3,
        };
        let loss = self.average_loss;
        self.adjusted(linear, loss) * kbps + self.adjusted(logarithmic, loss) * log(1.0 + kbps)
    }

    /// Returns a weight of the preference at an average loss (`AdjustBiasFactor`).
    pub(super) fn adjusted(&self, factor: f64, loss: f64) -> f64 {
        let below = self.config.bias_loss - loss;
        factor * below / (self.config.bias_smoothing + below.abs())
    }
}

/// Returns the probability of loss at a sending rate (`GetLossProbability`).
#[inline]
pub(super) fn loss_probability(inherent: f64, bandwidth: Rate, sending: Rate) -> f64 {
    let mut p = inherent.clamp(0.0, 1.0);
    if sending > bandwidth {
        p += (1.0 - p) * ((sending - bandwidth).as_bps_f64() / sending.as_bps_f64());
    }
    p.clamp(PROBABILITY_MIN, 1.0 - PROBABILITY_MIN)
}
