//! The rate control of libwebrtc's later years (`AimdRateControl`, 2014 to today): additive increase near the rate where
//! over-use was last found, multiplicative elsewhere, multiplicative decrease.
//!
//! ```text
//! Increase   A_r += A_r (1.08^min(dt, 1 s) - 1), at least 1 kbit/s       far
//!            A_r += dt · packet / (2 (100 ms + RTT))                     near
//! Decrease   A_r  = 0.85 R, once; then Hold
//! and a rate above 1.5 R + 10 kbit/s does not grow
//! ```
//!
//! At a receiver it has no first rate of its own: until over-use is found, or `R` has been known for five seconds, there
//! is no estimate and nothing is told to the sender. At a sender it begins with the start rate. `T` is the clock of
//! whichever end it lives at.

use super::RateState;
use super::rate_controller::near_growth;
use crate::blocks::{Convergence, Usage};
use crate::{Block, Fields};
use core::ops::Sub;
use libm::pow;
use paceline_units::{Rate, TimeDelta};

/// Numbers of the rate control.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AimdConfig {
    /// Growth per second while far.
    pub eta: f64,
    /// Share of the incoming rate kept in a decrease.
    pub alpha: f64,
    /// Above this many times the incoming rate (and 10 kbit/s more) the rate does not grow.
    pub headroom: f64,
    /// Round-trip time that growth near convergence and the pace of decreases assume until it is told: a receiver that
    /// sends no media never knows it.
    pub rtt: TimeDelta,
}

impl Block for AimdConfig {
    fn fields(&mut self, fields: &mut Fields<'_>) {
        fields.number("eta", "per s", (1.0, 10.0), &mut self.eta).says("growth far from convergence");
        fields.number("alpha", "", (0.1, 1.0), &mut self.alpha).says("share of R kept in a decrease");
        fields
            .number("headroom", "", (1.0, 100.0), &mut self.headroom)
            .says("above this many times R the rate does not grow");
        fields.millis("rtt_ms", (0.0, 1e4), &mut self.rtt).says("round-trip time");
    }
}

/// Longest step that multiplicative growth counts.
const STEP_MAX: TimeDelta = TimeDelta::from_secs(1);
/// Least multiplicative growth per update.
const LEAST_GROWTH: Rate = Rate::from_kbps(1);
/// What the rate may exceed the headroom by.
const LAG: Rate = Rate::from_kbps(10);
/// How long the incoming rate is watched before it is the first estimate.
const INITIALISATION: TimeDelta = TimeDelta::from_secs(5);
/// The rate before there is an estimate, which bounds nothing.
const UNKNOWN: Rate = Rate::from_kbps(30_000);
/// Shortest and longest interval of decreases while over-use goes on.
const AGAIN: (TimeDelta, TimeDelta) = (TimeDelta::from_millis(10), TimeDelta::from_millis(200));
/// With less than this share of the rate coming in, the next decrease does not wait.
const FAR_TOO_HIGH: f64 = 0.5;

/// The rate control.
#[derive(Clone, Debug)]
pub struct Aimd<T> {
    config: AimdConfig,
    min: Rate,
    rate: Rate,
    /// Whether `rate` is an estimate.
    valid: bool,
    state: RateState,
    /// When `R` was first known.
    known: Option<T>,
    /// When the rate last grew or fell.
    changed: Option<T>,
    convergence: Convergence,
}

impl<T: Copy + Sub<Output = TimeDelta>> Aimd<T> {
    /// Without an estimate, in Hold; never below `min`.
    pub fn new(config: AimdConfig, min: Rate) -> Self {
        let (state, convergence) = (RateState::Hold, Convergence::new());
        Self { config, min, rate: UNKNOWN, valid: false, state, known: None, changed: None, convergence }
    }

    /// With `start` as its first estimate.
    pub fn starting_at(config: AimdConfig, start: Rate, min: Rate) -> Self {
        Self { rate: start.max(min), valid: true, ..Self::new(config, min) }
    }

    /// The round-trip time is known to be this.
    pub fn set_rtt(&mut self, rtt: TimeDelta) {
        self.config.rtt = rtt;
    }

    /// Takes half of the estimate away: over-use was found before the incoming rate was known.
    pub fn halve(&mut self, now: T) {
        (self.rate, self.changed) = (self.rate.scale(0.5).max(self.min), Some(now));
    }

    /// Where over-use was last found (libwebrtc's link capacity estimate), unless the path has changed since.
    pub fn capacity(&self) -> Option<Rate> {
        self.convergence.average()
    }

    /// The estimate `A_r`, once there is one.
    pub fn estimate(&self) -> Option<Rate> {
        self.valid.then_some(self.rate)
    }

    /// What it did last.
    pub fn state(&self) -> RateState {
        self.state
    }

    /// Takes what the detector says and the incoming rate, if it is known. Answers the estimate.
    pub fn update(&mut self, now: T, usage: Usage, incoming: Option<Rate>) -> Option<Rate> {
        self.initialise(now, incoming);
        if !self.valid && usage != Usage::Over {
            return None;
        }
        let incoming = incoming.unwrap_or(self.rate);
        let bound = incoming.scale(self.config.headroom) + LAG;
        let before = self.state;
        self.state = match usage {
            Usage::Over => RateState::Decrease,
            Usage::Under => RateState::Hold,
            Usage::Normal => RateState::Increase,
        };
        let rate = match self.state {
            RateState::Hold => self.rate,
            RateState::Increase => {
                let last = if before == RateState::Increase { self.changed } else { Some(now) };
                let dt = last.map_or(STEP_MAX, |last| now - last);
                self.changed = Some(now);
                self.convergence.handle_growth(incoming);
                if self.rate < bound { self.rate + self.growth(dt) } else { self.rate }
            }
            RateState::Decrease => {
                let rate = self.decreased(incoming);
                self.convergence.handle_decrease(incoming);
                (self.valid, self.changed) = (true, Some(now));
                rate
            }
        };
        self.rate = bounded(rate, self.rate, bound).max(self.min);
        Some(self.rate)
    }

    /// Whether over-use that goes on is reason for another decrease.
    pub fn may_decrease_again(&self, now: T, incoming: Rate) -> bool {
        let interval = self.config.rtt.clamp(AGAIN.0, AGAIN.1);
        self.changed.is_none_or(|changed| now - changed >= interval)
            || (self.valid && incoming < self.rate.scale(FAR_TOO_HIGH))
    }

    /// How long to wait until the next regular update.
    pub fn interval(&self) -> TimeDelta {
        feedback_interval(self.rate)
    }

    fn initialise(&mut self, now: T, incoming: Option<Rate>) {
        let Some(incoming) = incoming.filter(|_| !self.valid) else { return };
        if now - *self.known.get_or_insert(now) > INITIALISATION {
            (self.rate, self.valid) = (incoming, true);
        }
    }

    fn growth(&self, dt: TimeDelta) -> Rate {
        if self.convergence.is_near() {
            return near_growth(self.rate, self.config.rtt).scale(dt.as_secs_f64());
        }
        let eta = pow(self.config.eta, dt.min(STEP_MAX).as_secs_f64());
        self.rate.scale(eta - 1.0).max(LEAST_GROWTH)
    }

    /// `alpha R`; where `R` lags behind a rate that has just been cut, `alpha` of where over-use was found before. Never
    /// a rise.
    fn decreased(&self, incoming: Rate) -> Rate {
        let alpha = self.config.alpha;
        let rate = incoming.scale(alpha);
        if rate <= self.rate {
            return rate;
        }
        self.convergence.average().map_or(rate, |average| average.scale(alpha)).min(self.rate)
    }
}

/// 80 bytes of RTCP take a twentieth of the rate, 200 ms to a second.
pub(super) fn feedback_interval(rate: Rate) -> TimeDelta {
    const REPORT_BITS: f64 = 80.0 * 8.0;
    const SHARE: f64 = 0.05;
    let interval = TimeDelta::from_secs_f64(REPORT_BITS / (SHARE * rate.as_bps_f64().max(1.0)));
    interval.clamp(TimeDelta::from_millis(200), TimeDelta::from_millis(1000))
}

/// Growth stops at the headroom; a rate that is above it already stays.
fn bounded(rate: Rate, before: Rate, bound: Rate) -> Rate {
    if rate > before && rate > bound { bound.max(before) } else { rate }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_units::RemoteTime;

    const CONFIG: AimdConfig = AimdConfig { eta: 1.08, alpha: 0.85, headroom: 1.5, rtt: TimeDelta::from_millis(200) };
    const MIN: Rate = Rate::from_kbps(30);

    fn at(ms: i64) -> RemoteTime {
        RemoteTime::from_millis(70_000 + ms)
    }
    const fn kbps(kbps: u64) -> Option<Rate> {
        Some(Rate::from_kbps(kbps))
    }

    /// libwebrtc's own tests: no estimate before five seconds have passed since `R` was first known; over-use gives
    /// one at once.
    #[test]
    fn the_first_estimate() {
        let mut aimd = Aimd::new(CONFIG, MIN);
        assert_eq!(aimd.update(at(0), Usage::Normal, None), None);
        assert_eq!(aimd.update(at(100), Usage::Normal, kbps(300)), None);
        assert_eq!(aimd.update(at(5100), Usage::Normal, kbps(300)), None, "not more than 5 s");
        // 300 kbit/s, and the step into Increase adds 1 kbit/s.
        assert_eq!(aimd.update(at(5101), Usage::Normal, kbps(300)), kbps(301));

        let mut aimd = Aimd::new(CONFIG, MIN);
        assert_eq!(aimd.update(at(0), Usage::Over, kbps(300)), kbps(255));
    }

    /// By hand: 255 kbit/s after over-use at 300. Near, a frame is 8500 bits, one packet: 8500 / (2 · 0.3 s) is 14.167
    /// kbit/s a second. At 450 kbit/s, over 300 + 3 sqrt(0.4 · 300) = 332.9, the path has more: 8 % a second.
    #[test]
    fn growth_near_and_far() {
        let mut aimd = Aimd::new(CONFIG, MIN);
        aimd.update(at(0), Usage::Over, kbps(300));
        assert_eq!(aimd.update(at(200), Usage::Normal, kbps(300)), kbps(255), "growth counts from here");
        assert_eq!(aimd.update(at(400), Usage::Normal, kbps(300)).unwrap().as_bps(), 255_000 + 2_833);
        let near = aimd.rate.as_bps_f64();
        let far = aimd.update(at(1400), Usage::Normal, kbps(450)).unwrap().as_bps_f64();
        assert!((far / near - 1.08).abs() < 1e-5, "{near} {far}");
        // Two seconds count as one.
        let later = aimd.update(at(3400), Usage::Normal, kbps(450)).unwrap().as_bps_f64();
        assert!((later / far - 1.08).abs() < 1e-5, "{far} {later}");
    }

    /// At R = 100 the bound is 160 kbit/s: a rate above neither grows nor falls, one below grows up to it.
    #[test]
    fn growth_stops_at_the_headroom() {
        let mut aimd = Aimd::new(CONFIG, MIN);
        aimd.update(at(0), Usage::Over, kbps(300)); // 255
        aimd.update(at(200), Usage::Normal, kbps(100));
        assert_eq!(aimd.update(at(1200), Usage::Normal, kbps(100)), kbps(255));
        aimd.update(at(1300), Usage::Over, kbps(188));
        assert_eq!(aimd.estimate().unwrap().as_bps(), 159_800);
        aimd.update(at(1500), Usage::Normal, kbps(100));
        assert_eq!(aimd.update(at(2500), Usage::Normal, kbps(100)), kbps(160));
    }

    /// By hand: over-use at 1000 gives 850; still 1200 coming in, 0.85 · 1200 is above that: 0.85 · 1000, and the average
    /// is now 1010, so the next would be 858.5, but a decrease is no rise. Below 0.5 A_r nothing waits.
    #[test]
    fn decreases() {
        let mut aimd = Aimd::new(CONFIG, MIN);
        assert_eq!(aimd.update(at(0), Usage::Over, kbps(1000)), kbps(850));
        assert_eq!(aimd.update(at(200), Usage::Over, kbps(1200)), kbps(850));
        assert!((aimd.convergence.average().unwrap().as_bps_f64() / 1e3 - 1010.0).abs() < 0.01);
        assert_eq!(aimd.update(at(400), Usage::Over, kbps(1200)), kbps(850));
        assert!(!aimd.may_decrease_again(at(599), Rate::from_kbps(425)));
        assert!(aimd.may_decrease_again(at(599), Rate::from_kbps(424)));
        assert!(aimd.may_decrease_again(at(600), Rate::from_kbps(425)));
        assert_eq!(aimd.update(at(600), Usage::Over, Some(Rate::ZERO)), Some(MIN));
        assert_eq!(aimd.update(at(800), Usage::Under, kbps(500)), Some(MIN), "held");
    }

    /// 640 bits over a twentieth of the rate: 400 ms at 32 kbit/s.
    #[test]
    fn updates_take_a_twentieth_of_the_rate() {
        let mut aimd = Aimd::<RemoteTime>::new(CONFIG, Rate::ZERO);
        let mut after = |kbps| {
            aimd.rate = Rate::from_kbps(kbps);
            aimd.interval().as_millis_f64()
        };
        assert_eq!([64, 32, 16, 12, 1, 0, 1000].map(&mut after), [200.0, 400.0, 800.0, 1000.0, 1000.0, 1000.0, 200.0]);
    }
}
