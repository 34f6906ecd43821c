//! The media rate control: the target that the encoders follow (RFC 8298, section 4.1.3).
//!
//! ```text
//! ramp  = min(RAMP_UP_SPEED, target / 2)
//! scale = (4 (target - last_max) / last_max)^2, within 0.2 and 1        slowly about the last point of inflection
//!
//! fast increase:  target += ramp RATE_ADJUST_INTERVAL scale
//! else:           delta   = rate (1 - PRE_CONGESTION_GUARD trend) - TX_QUEUE_SIZE_FACTOR rtp_queue_size - target
//!                 target += delta                                       up by delta scale, as above at most
//!                 target *= 0.95 if rtp_queue_size / rate > 20 ms
//! always:         target <= max(rate, rate_media, rate_media_median) (2 - trend_mem)
//! loss, mark:     last_max = target    target *= BETA_R, BETA_ECN
//! ```
//!
//! The RFC prints `delta` without `- target`: a rate, not a change of one. The authors' code has it.

use super::window::{Congestion, Growth};
use paceline_units::{DataSize, Rate, TimeDelta};

/// Numbers of the media rate control.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MediaRateConfig {
    /// `RAMP_UP_SPEED`, bit/s per second.
    pub ramp_up: f64,
    /// `PRE_CONGESTION_GUARD`.
    pub guard: f64,
    /// `TX_QUEUE_SIZE_FACTOR`.
    pub queue_factor: f64,
    /// `RTP_QDELAY_TH`.
    pub queue_delay: TimeDelta,
    /// `TARGET_RATE_SCALE_RTP_QDELAY`.
    pub queue_scale: f64,
    /// `BETA_R`.
    pub beta_loss: f64,
    /// `BETA_ECN`, of the rate.
    pub beta_ecn: f64,
    /// The target stays below this many times what is sent and made, less `qdelay_trend_mem`.
    pub limit: f64,
    /// No growth while the target is above this many times the throughput.
    pub growth_limit: f64,
    /// Outside fast increase the target does not fall while encoders make less than this share of it.
    pub made_min: f64,
    /// Outside fast increase, how far the target moves.
    pub step: Step,
}

/// How `delta` is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// To the throughput: `- target`, which the RFC does not print.
    ToThroughput,
    /// By the throughput, as printed.
    AsPrinted,
}

/// `RATE_ADJUST_INTERVAL` (section 4.1.1.1).
pub const RATE_ADJUST_INTERVAL: TimeDelta = TimeDelta::from_millis(200);

/// What is known when the target is adjusted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observed {
    /// How the window grows.
    pub growth: Growth,
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
    /// A target of `start` within `min` and `max`.
    pub fn starting_at(config: MediaRateConfig, start: Rate, min: Rate, max: Rate) -> Self {
        let (start, min, max) = (start.as_bps_f64(), min.as_bps_f64(), max.as_bps_f64());
        Self { config, min, max, target: start.min(max).max(min), last_max: 1.0 }
    }

    /// `target_bitrate`.
    pub fn get(&self) -> Rate {
        Rate::from_bps_f64(self.target)
    }

    /// `target_bitrate_last_max`.
    pub fn last_max(&self) -> Rate {
        Rate::from_bps_f64(self.last_max)
    }

    /// Packets were lost or marked.
    pub fn handle_congestion(&mut self, congestion: Congestion) {
        self.inflect();
        let beta = match congestion {
            Congestion::Loss => self.config.beta_loss,
            Congestion::Mark => self.config.beta_ecn,
        };
        self.target = (beta * self.target).max(self.min);
    }

    /// Congestion was detected: this is the last known highest rate.
    pub fn inflect(&mut self) {
        self.last_max = self.target.max(1.0);
    }

    /// A `RATE_ADJUST_INTERVAL` is over.
    pub fn update(&mut self, seen: &Observed) {
        let rate = seen.throughput.as_bps_f64();
        let step = self.config.ramp_up.min(self.target / 2.0) * RATE_ADJUST_INTERVAL.as_secs_f64();
        let scale = scale(self.target, self.last_max);
        let may_grow = self.target / self.config.growth_limit <= rate;
        match seen.growth {
            Growth::Fast if may_grow => self.target += step * scale,
            Growth::Fast => {}
            Growth::Delay => {
                let delta = self.delta(rate, seen);
                let made = seen.media.as_bps_f64() >= self.config.made_min * self.target;
                if delta > 0.0 && may_grow {
                    self.target += (delta * scale).min(step);
                } else if delta < 0.0 && made {
                    self.target += delta;
                }
                if bits(seen.queued) > self.config.queue_delay.as_secs_f64() * rate {
                    self.target *= self.config.queue_scale;
                }
            }
        }
        if self.config.limit < f64::INFINITY {
            let most = rate.max(seen.media.as_bps_f64()).max(seen.media_median.as_bps_f64());
            self.target = self.target.min(most * (self.config.limit - seen.trend_memory));
        }
        self.target = self.target.min(self.max).max(self.min);
    }

    fn delta(&self, rate: f64, seen: &Observed) -> f64 {
        let printed = rate * (1.0 - self.config.guard * seen.trend) - self.config.queue_factor * bits(seen.queued);
        match self.config.step {
            Step::ToThroughput => printed - self.target,
            Step::AsPrinted => printed,
        }
    }
}

fn bits(size: DataSize) -> f64 {
    8.0 * size.as_bytes() as f64
}

/// `scale_t`.
pub fn scale(target: f64, last_max: f64) -> f64 {
    let far = 4.0 * (target - last_max) / last_max;
    (far * far).clamp(0.2, 1.0)
}

#[cfg(test)]
mod tests {
    use super::super::ScreamConfig;
    use super::*;

    const KBPS: fn(u64) -> Rate = Rate::from_kbps;

    fn seen(growth: Growth, throughput: Rate, media: Rate) -> Observed {
        let (queued, trend, trend_memory) = (DataSize::ZERO, 0.0, 0.0);
        Observed { growth, throughput, media, media_median: Rate::ZERO, queued, trend, trend_memory }
    }
    fn media(config: ScreamConfig, start: u64) -> MediaRate {
        MediaRate::starting_at(config.media, KBPS(start), KBPS(100), KBPS(2500))
    }

    /// 200 kbit/s a second from 1 Mbit/s on; a call that uses half of its rate may not rise above that.
    #[test]
    fn it_ramps_up_as_fast_as_allowed_and_no_further_than_used() {
        let mut rate = media(ScreamConfig::default(), 1000);
        for _ in 0..25 {
            let got = rate.get();
            rate.update(&seen(Growth::Fast, got, got));
        }
        assert_eq!(rate.get(), KBPS(2000));
        for _ in 0..25 {
            rate.update(&seen(Growth::Fast, KBPS(500), KBPS(600)));
        }
        assert_eq!(rate.get(), KBPS(1200));
        let memory = Observed { trend_memory: 0.5, ..seen(Growth::Fast, KBPS(500), KBPS(600)) };
        rate.update(&memory);
        assert_eq!(rate.get(), KBPS(900));
    }

    /// About the last inflection a fifth of the speed; ECN and loss cut by their own factors, never below the minimum.
    #[test]
    fn losses_and_marks_cut_and_leave_an_inflection() {
        let mut rate = media(ScreamConfig::default(), 1000);
        rate.handle_congestion(Congestion::Loss);
        assert_eq!((rate.get(), rate.last_max()), (KBPS(900), KBPS(1000)));
        rate.update(&seen(Growth::Fast, KBPS(900), KBPS(900)));
        assert_eq!(rate.get(), KBPS(908));
        let mut rate = media(ScreamConfig::cpp(), 1000);
        rate.handle_congestion(Congestion::Mark);
        assert_eq!(rate.get(), KBPS(950));
        for _ in 0..100 {
            rate.handle_congestion(Congestion::Loss);
        }
        assert_eq!(rate.get(), KBPS(100));
    }

    /// An encoder that rests draws the RFC's target down, and not that of the C++.
    #[test]
    fn what_an_encoder_does_not_make() {
        let resting = seen(Growth::Delay, KBPS(700), KBPS(700));
        let after = |config| {
            let mut rate = media(config, 1000);
            rate.update(&resting);
            rate.get()
        };
        assert_eq!([after(ScreamConfig::default()), after(ScreamConfig::cpp())], [KBPS(700), KBPS(1000)]);
    }
}
