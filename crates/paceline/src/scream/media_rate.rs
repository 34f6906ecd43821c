// SPDX-License-Identifier: MIT OR Apache-2.0
//! The media rate control: the target rate of the encoders (RFC 8298, section 4.1.3).
//!
//! ```text
//! ramp  = min(RAMP_UP_SPEED, target / 2)
//! scale = (4 (target - last_max) / last_max)^2, within 0.2 and 1        slow near the last point of inflection
//!
//! fast increase:  target += ramp RATE_ADJUST_INTERVAL scale
//! else:           delta   = rate (1 - PRE_CONGESTION_GUARD trend) - TX_QUEUE_SIZE_FACTOR rtp_queue_size - target
//!                 target += delta                                       increases at most by ramp RATE_ADJUST_INTERVAL
//!                 target *= 0.95 if rtp_queue_size / rate > 20 ms
//! always:         target <= max(rate, rate_media, rate_media_median) (2 - trend_mem)
//! loss, mark:     last_max = target    target *= BETA_R, BETA_ECN
//! ```
//!
//! The RFC prints `delta` without `- target`, so it would be a rate and not a change of the rate. The authors' code
//! contains it.

use super::window::{Congestion, WindowGrowth};
use crate::{Bounds, params};
use paceline_units::{DataSize, Rate, TimeDelta};

params! {
    /// The parameters of the media rate control.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct MediaRateConfig {
        /// Section 4.1.1.1.
        const RFC_8298;

        /// Fastest growth of the target.
        ramp_up as "ramp_up_bps": f64 = 200e3, unit "bit/s²", in 1000.0..=1e9, from "RAMP_UP_SPEED";
        /// Share by which the trend reduces the target.
        guard: f64 = 0.1, in 0.0..=1.0, from "PRE_CONGESTION_GUARD; RFC: 0 to 1, suggests 0.1";
        /// Share of the RTP queue by which the target is reduced.
        queue_factor: f64 = 1.0, unit "1/s", in 0.0..=2.0,
            from "TX_QUEUE_SIZE_FACTOR; RFC: 0 to 2, suggests 1; C++: 0.2";
        /// Delay in the RTP queue that lowers the target.
        queue_delay as "queue_delay_ms": TimeDelta = TimeDelta::from_millis(20), in 0.0..=1e4, from "RTP_QDELAY_TH";
        /// Share of the target that remains after this delay.
        queue_scale: f64 = 0.95, in 0.1..=1.0, from "TARGET_RATE_SCALE_RTP_QDELAY; C++: all";
        /// Share of the target that remains after a loss event.
        beta_loss as "beta_rate": f64 = 0.9, in 0.1..=1.0, from "BETA_R";
        /// Share of the target that remains after a mark.
        beta_ecn as "beta_rate_ecn": f64 = 0.9, in 0.1..=1.0,
            from "BETA_ECN; C++: kEcnCeEventRateScale, 0.95";
        /// Bound of the target over the greatest of throughput, media rate and its median, less `qdelay_trend_mem`.
        limit: f64 = 2.0, in 1.0..=f64::INFINITY, from "section 4.1.3; C++: no bound";
        /// Multiple of the throughput above which the target does not grow.
        growth_limit: f64 = f64::INFINITY, in 1.0..=f64::INFINITY, from "RFC: no bound; C++: 1.5";
        /// Outside fast increase the target does not fall while the encoded rate is below this share of it.
        made_min: f64 = 0.0, in 0.0..=1.0, from "RFC: 0; C++: 0.8";
        /// Size of the RTP queue above which the target does not grow.
        growth_queue as "growth_queue_bit": f64 = f64::INFINITY, unit "bit", in 0.0..=f64::INFINITY,
            from "RFC: no bound; C++: 12000";
        /// Fast increase of the target needs an RTP queue that drains within this time.
        fast_queue_ms: f64 = f64::INFINITY, unit "ms", in 0.0..=f64::INFINITY, from "RFC: no bound; C++: 100 ms";
        /// Change of the target outside fast increase; 0: to the throughput, 1: by the throughput.
        step as "as_printed": RateStep = RateStep::ToThroughput, of [RateStep::ToThroughput, RateStep::AsPrinted],
            from "0 in the C++; 1 as section 4.1.3 prints";
    }
}

impl MediaRateConfig {
    /// The authors' code of 2018.
    pub const CPP: Self = Self {
        queue_factor: 0.2,
        queue_scale: 1.0,
        beta_ecn: 0.95,
        limit: f64::INFINITY,
        growth_limit: 1.5,
        made_min: 0.8,
        ..Self::RFC_8298
    };
}

/// The interpretation of `delta`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateStep {
    /// The target moves to the throughput: with `- target`, which the RFC does not print.
    ToThroughput,
    /// The target changes by the throughput, as printed.
    AsPrinted,
}

/// `RATE_ADJUST_INTERVAL` (section 4.1.1.1).
pub const RATE_ADJUST_INTERVAL: TimeDelta = TimeDelta::from_millis(200);

/// The input of an update.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MediaRateInput {
    /// The growth mode of the window.
    pub growth: WindowGrowth,
    /// `current_rate`.
    pub throughput: Rate,
    /// `rate_media`.
    pub media: Rate,
    /// `rate_media_median`.
    pub media_median: Rate,
    /// `rtp_queue_size`.
    pub queued: DataSize,
    /// `qdelay_trend`.
    pub trend: f64,
    /// `qdelay_trend_mem`.
    pub trend_memory: f64,
}

/// `target_bitrate`.
#[derive(Clone, Debug)]
pub struct MediaRate {
    config: MediaRateConfig,
    min: f64,
    max: f64,
    /// bit/s.
    target: f64,
    last_max: f64,
}

impl MediaRate {
    /// Creates a target of `start` within `min` and `max`.
    pub fn starting_at(config: MediaRateConfig, start: Rate, min: Rate, max: Rate) -> Self {
        let (start, min, max) = (start.as_bps_f64(), min.as_bps_f64(), max.as_bps_f64());
        Self { config, min, max, target: start.min(max).max(min), last_max: 1.0 }
    }

    /// Sets the limits of the target, which apply at once.
    pub fn set_bounds(&mut self, bounds: &Bounds) {
        (self.min, self.max) = (bounds.min.as_bps_f64(), bounds.max.as_bps_f64());
        self.target = self.target.min(self.max).max(self.min);
    }

    /// Returns `target_bitrate`.
    pub fn get(&self) -> Rate {
        Rate::from_bps_f64(self.target)
    }

    /// Returns `target_bitrate_last_max`.
    pub fn last_max(&self) -> Rate {
        Rate::from_bps_f64(self.last_max)
    }

    /// Handles packets that were lost or marked.
    pub fn handle_congestion(&mut self, congestion: Congestion) {
        self.inflect();
        let beta = match congestion {
            Congestion::Loss => self.config.beta_loss,
            Congestion::Mark => self.config.beta_ecn,
        };
        self.target = (beta * self.target).max(self.min);
    }

    /// Remembers the target as the last highest rate, because congestion was detected.
    pub fn inflect(&mut self) {
        self.last_max = self.target.max(1.0);
    }

    /// Updates the target after a `RATE_ADJUST_INTERVAL`.
    pub fn update(&mut self, input: &MediaRateInput) {
        let rate = input.throughput.as_bps_f64();
        let step = self.config.ramp_up.min(self.target / 2.0) * RATE_ADJUST_INTERVAL.as_secs_f64();
        let scale = scale(self.target, self.last_max);
        let may_grow = self.target / self.config.growth_limit <= rate;
        let drains =
            self.config.fast_queue_ms == f64::INFINITY || bits(input.queued) <= self.config.fast_queue_ms / 1e3 * rate;
        match input.growth {
            WindowGrowth::Fast if drains => self.target += if may_grow { step * scale } else { 0.0 },
            WindowGrowth::Fast | WindowGrowth::Delay => {
                let delta = self.delta(rate, input);
                let made = input.media.as_bps_f64() >= self.config.made_min * self.target;
                let is_short = bits(input.queued) <= self.config.growth_queue;
                if delta > 0.0 && may_grow && is_short {
                    self.target += (delta * scale).min(step);
                } else if delta < 0.0 && made {
                    self.target += delta;
                }
                if bits(input.queued) > self.config.queue_delay.as_secs_f64() * rate {
                    self.target *= self.config.queue_scale;
                }
            }
        }
        if self.config.limit < f64::INFINITY {
            let most = rate.max(input.media.as_bps_f64()).max(input.media_median.as_bps_f64());
            self.target = self.target.min(most * (self.config.limit - input.trend_memory));
        }
        self.target = self.target.min(self.max).max(self.min);
    }

    fn delta(&self, rate: f64, input: &MediaRateInput) -> f64 {
        let printed = rate * (1.0 - self.config.guard * input.trend) - self.config.queue_factor * bits(input.queued);
        match self.config.step {
            RateStep::ToThroughput => printed - self.target,
            RateStep::AsPrinted => printed,
        }
    }
}

fn bits(size: DataSize) -> f64 {
    8.0 * size.as_bytes() as f64
}

/// Returns `scale_t`.
pub fn scale(target: f64, last_max: f64) -> f64 {
    let far = 4.0 * (target - last_max) / last_max;
    (far * far).clamp(0.2, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KBPS: fn(u64) -> Rate = Rate::from_kbps;

    fn input(growth: WindowGrowth, throughput: Rate, media: Rate) -> MediaRateInput {
        let (queued, trend, trend_memory) = (DataSize::ZERO, 0.0, 0.0);
        MediaRateInput { growth, throughput, media, media_median: Rate::ZERO, queued, trend, trend_memory }
    }
    fn media(config: MediaRateConfig, start: u64) -> MediaRate {
        MediaRate::starting_at(config, KBPS(start), KBPS(100), KBPS(2500))
    }

    /// 200 kbit/s per second from 1 Mbit/s on. A flow that uses half of its rate is bounded by twice that.
    #[test]
    fn target_ramps_up_and_is_bounded_by_the_used_rate() {
        let mut rate = media(MediaRateConfig::RFC_8298, 1000);
        for _ in 0..25 {
            let sent = rate.get();
            rate.update(&input(WindowGrowth::Fast, sent, sent));
        }
        assert_eq!(rate.get(), KBPS(2000));
        for _ in 0..25 {
            rate.update(&input(WindowGrowth::Fast, KBPS(500), KBPS(600)));
        }
        assert_eq!(rate.get(), KBPS(1200));
        let memory = MediaRateInput { trend_memory: 0.5, ..input(WindowGrowth::Fast, KBPS(500), KBPS(600)) };
        rate.update(&memory);
        assert_eq!(rate.get(), KBPS(900));
    }

    /// Near the last inflection the target grows at a fifth of the speed. It never falls below the minimum.
    #[test]
    fn losses_and_marks_decrease_the_target_and_set_the_inflection() {
        let mut rate = media(MediaRateConfig::RFC_8298, 1000);
        rate.handle_congestion(Congestion::Loss);
        assert_eq!((rate.get(), rate.last_max()), (KBPS(900), KBPS(1000)));
        rate.update(&input(WindowGrowth::Fast, KBPS(900), KBPS(900)));
        assert_eq!(rate.get(), KBPS(908));
        let mut rate = media(MediaRateConfig::CPP, 1000);
        rate.handle_congestion(Congestion::Mark);
        assert_eq!(rate.get(), KBPS(950));
        for _ in 0..100 {
            rate.handle_congestion(Congestion::Loss);
        }
        assert_eq!(rate.get(), KBPS(100));
    }

    #[test]
    fn idle_encoder_lowers_the_target_of_the_rfc_but_not_of_the_code() {
        let idle = input(WindowGrowth::Delay, KBPS(700), KBPS(700));
        let after = |config| {
            let mut rate = media(config, 1000);
            rate.update(&idle);
            rate.get()
        };
        assert_eq!([after(MediaRateConfig::RFC_8298), after(MediaRateConfig::CPP)], [KBPS(700), KBPS(1000)]);
    }

    /// By hand, 1000 kbit/s sent, made and targeted, and 1501 bytes (12008 bits) in the RTP queue. Fast increase adds 40
    /// kbit/s. With more than 12000 bits the target does not grow: the rate of 1500 kbit/s would add 40, too. A queue of
    /// 12501 bytes takes 100.008 ms at 1000 kbit/s: then 0.2 of it lowers the target by 20.0016 kbit/s.
    #[test]
    fn long_rtp_queue_stops_growth_by_the_rules_of_the_code() {
        let code = MediaRateConfig { growth_queue: 12_000.0, fast_queue_ms: 100.0, ..MediaRateConfig::CPP };
        let after = |config, growth, sent, queued| {
            let mut rate = media(config, 1000);
            let queued = DataSize::from_bytes(queued);
            rate.update(&MediaRateInput { queued, ..input(growth, KBPS(sent), KBPS(1000)) });
            rate.get().as_bps()
        };
        assert_eq!(after(code, WindowGrowth::Fast, 1000, 12_500), 1_040_000);
        assert_eq!(after(code, WindowGrowth::Fast, 1000, 12_501), 979_998);
        assert_eq!(after(code, WindowGrowth::Delay, 1500, 1500), 1_040_000);
        assert_eq!(after(code, WindowGrowth::Delay, 1500, 1501), 1_000_000);
        assert_eq!(after(MediaRateConfig::CPP, WindowGrowth::Fast, 1000, 12_501), 1_040_000);
        assert_eq!(after(MediaRateConfig::CPP, WindowGrowth::Delay, 1500, 1501), 1_040_000);
    }
}
