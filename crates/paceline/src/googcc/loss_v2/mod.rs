// SPDX-License-Identifier: MIT OR Apache-2.0
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

use alloc::vec::Vec;

mod config;
mod likelihood;
mod observations;
#[cfg(test)]
mod tests;

pub use config::LossV2Config;

use crate::PacketReport;
use crate::blocks::units::MIN_RATE;
use libm::pow;
use observations::{Observation, Partial};
use paceline_units::{Rate, Time, TimeDelta};

/// The first hold (`kInitHoldDuration`, `loss_based_bwe_v2.cc`).
const HOLD_FIRST: TimeDelta = TimeDelta::from_millis(300);
/// The longest hold (`kMaxHoldDuration`, `loss_based_bwe_v2.cc`).
const HOLD_MAX: TimeDelta = TimeDelta::from_secs(60);
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
    /// The average loss ratio.
    pub average_loss: f64,
    upper: Rate,
    reduced: Option<Time>,
    /// The start of the increase window, and its limit.
    window: (Option<Time>, Rate),
    hold: Hold,
    padding: (Option<Time>, Rate),
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
    pub fn new(config: LossV2Config) -> Self {
        let weight = |age: usize| (pow(config.weight, age as f64), pow(config.upper_weight, age as f64));
        Self {
            config,
            weights: (0..config.observations).map(weight).collect(),
            observations: Vec::new(),
            count: 0,
            partial: Partial::default(),
            best: Channel { inherent: config.inherent, bandwidth: Rate::ZERO },
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
        !self.best.bandwidth.is_zero() && self.count >= self.config.observations_min as u64
    }

    /// Returns whether the result counts in the first two seconds.
    pub fn is_ready_in_start_phase(&self) -> bool {
        self.config.in_start_phase && self.is_ready()
    }

    /// Returns the result and its state, once there are enough observations.
    pub fn result(&self) -> Option<(Rate, LossState)> {
        self.is_ready().then_some((self.result, self.state))
    }

    /// Returns the loss that the path has at any rate, as estimated.
    pub fn inherent_loss(&self) -> f64 {
        self.best.inherent
    }

    pub fn set_bounds(&mut self, min: Rate, max: Rate) {
        self.bounds = (min, max);
        self.update_lower();
    }

    pub fn set_acked(&mut self, acked: Rate) {
        self.acked = Some(acked);
        self.update_lower();
    }

    /// Multiplies the estimate, the result and their limits, because the flow got another rate from outside (RFC 8699).
    pub fn scale(&mut self, ratio: f64) {
        let rates =
            [&mut self.best.bandwidth, &mut self.result, &mut self.window.1, &mut self.hold.rate, &mut self.padding.1];
        for rate in rates.into_iter().filter(|rate| **rate != Rate::MAX) {
            *rate = rate.scale(ratio);
        }
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
        let factor = if holds { self.config.rampup_in_hold } else { self.config.rampup };
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
