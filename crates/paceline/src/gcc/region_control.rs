//! The remote rate controller with regions, of libwebrtc until 2015: it remembers where over-use was last found and
//! takes smaller steps near it.
//!
//! | region | when | `alpha` (see [`Alpha`]) | threshold |
//! |---|---|---|---|
//! | near max | after a decrease | 0.95 | half |
//! | above max | `R` more than 2.5 standard deviations above the average of `R` at decreases | 0.9 | half |
//! | max unknown | at first, and more than 3 above | 0.9 | whole |
//!
//! ```text
//! Increase   by one of two laws ([`Growth`])
//! Decrease   A_r = alpha R, once; then Hold
//! Hold       the highest R is remembered; after it, growth begins no lower than alpha times that (2013)
//! and a step that ends above 1.5 R is not taken
//! ```

use super::aimd::feedback_interval;
use super::rate_controller::near_growth;
use super::{Alpha, RateState};
use crate::blocks::{Convergence, Usage};
use libm::{exp, pow};
use paceline_units::{Rate, RemoteTime, TimeDelta};

/// How far the rate is from where over-use was last found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Region {
    /// Close to congestion.
    NearMax,
    /// Above where it was.
    AboveMax,
    /// Nothing is known, or not any more.
    MaxUnknown,
}

impl Region {
    /// Names, in order of [`index`](Self::index).
    pub const NAMES: &'static [&'static str] = &["near max", "above max", "max unknown"];
    /// The region as a signal value.
    pub fn index(self) -> f64 {
        self as u8 as f64
    }
    /// The threshold on `T` in this region, given the default: halved but where the maximum is unknown
    /// (uottawa15, algorithm 2, of the default and not of itself).
    pub fn threshold(self, default: f64) -> f64 {
        if self == Self::MaxUnknown { default } else { default / 2.0 }
    }
}

/// The law of growth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// By `eta`, from the noise and the time that a change takes to show (2013, `RemoteRateControl`).
    Response,
    /// By addition near the maximum, by 8 % a second elsewhere (2014 on, `AimdRateControl`).
    Aimd,
}

/// Numbers of the controller.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RegionConfig {
    /// The law of growth.
    pub growth: Growth,
    /// The decrease factor.
    pub alpha: Alpha,
    /// Whether growth after Hold begins at `alpha` times the highest incoming rate of that time (2013).
    pub recovery: bool,
    /// No step ends above this many times the incoming rate.
    pub headroom: f64,
    /// Round-trip time that the receiver assumes.
    pub rtt: TimeDelta,
}

/// How far above the average, in standard deviations, a rate is above the maximum.
const ABOVE: f64 = 2.5;
/// Added to each step of growth by `eta`.
const LEAST_GROWTH: Rate = Rate::from_kbps(1);
/// The rate before there is an estimate.
const UNKNOWN: Rate = Rate::from_kbps(30_000);
/// How long the incoming rate is watched before it is the first estimate.
const INITIALISATION: TimeDelta = TimeDelta::from_millis(500);
/// The headroom is not kept while both rates are below these.
const LOW: (Rate, Rate) = (Rate::from_kbps(100), Rate::from_kbps(150));
/// Memory of the average time between updates, and its first value.
const PERIOD_MEMORY: f64 = 0.9;
const PERIOD_0: TimeDelta = TimeDelta::from_millis(1000);

/// The controller.
#[derive(Clone, Debug)]
pub struct RegionControl {
    config: RegionConfig,
    min: Rate,
    rate: Rate,
    valid: bool,
    state: RateState,
    region: Region,
    convergence: Convergence,
    /// The highest incoming rate while in Hold.
    held: Rate,
    known: Option<RemoteTime>,
    changed: Option<RemoteTime>,
    updated: Option<RemoteTime>,
    /// Average time between updates.
    period: TimeDelta,
}

/// What the receiver knows at an update.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observation {
    /// What the detector says.
    pub usage: Usage,
    /// The incoming rate, once it is known.
    pub incoming: Option<Rate>,
    /// The arrival-time filter's noise variance, ms².
    pub variance: f64,
    /// The scaled gradient `T`, ms.
    pub t: f64,
    /// The threshold it was compared with, ms.
    pub gamma: f64,
}

impl RegionControl {
    /// Without an estimate, in Hold; never below `min`.
    pub fn new(config: RegionConfig, min: Rate) -> Self {
        Self {
            config,
            min,
            rate: UNKNOWN,
            valid: false,
            state: RateState::Hold,
            region: Region::MaxUnknown,
            convergence: Convergence::new(),
            held: Rate::ZERO,
            known: None,
            changed: None,
            updated: None,
            period: PERIOD_0,
        }
    }

    /// The estimate `A_r`, once there is one.
    pub fn estimate(&self) -> Option<Rate> {
        self.valid.then_some(self.rate)
    }
    /// What it did last.
    pub fn state(&self) -> RateState {
        self.state
    }
    /// Where it is.
    pub fn region(&self) -> Region {
        self.region
    }
    /// The decrease factor now.
    pub fn alpha(&self) -> f64 {
        self.config.alpha.factor(self.region)
    }

    /// Takes what the receiver knows. Answers the estimate.
    pub fn update(&mut self, now: RemoteTime, seen: &Observation) -> Option<Rate> {
        self.initialise(now, seen.incoming);
        if !self.valid && seen.usage != Usage::Over {
            return None;
        }
        let incoming = seen.incoming.unwrap_or(self.rate);
        self.tick(now);
        let before = self.state;
        self.state = match seen.usage {
            Usage::Over => RateState::Decrease,
            Usage::Under => RateState::Hold,
            Usage::Normal => RateState::Increase,
        };
        if self.state == RateState::Increase && before != RateState::Increase {
            self.changed = Some(now);
        }
        let (rate, recovered) = match self.state {
            RateState::Hold => {
                self.held = self.held.max(incoming);
                (self.rate, false)
            }
            RateState::Increase => self.increased(now, incoming, seen.variance),
            RateState::Decrease => {
                self.config.alpha.handle_overuse(self.region, seen.t, seen.gamma);
                (self.decreased(now, incoming), false)
            }
        };
        let low = incoming <= LOW.0 && rate <= LOW.1;
        if recovered || low || rate <= incoming.scale(self.config.headroom) {
            self.rate = rate;
        } else {
            self.changed = Some(now);
        }
        self.rate = self.rate.max(self.min);
        Some(self.rate)
    }

    /// Whether over-use that goes on is reason for another decrease.
    pub fn may_decrease_again(&self, now: RemoteTime, incoming: Rate) -> bool {
        const FAR_TOO_HIGH: f64 = 1.05;
        let interval = self.config.rtt.clamp(TimeDelta::from_millis(10), TimeDelta::from_millis(200));
        self.changed.is_none_or(|changed| now - changed >= interval)
            || (self.valid && self.rate.saturating_sub(incoming) > incoming.scale(FAR_TOO_HIGH))
    }

    /// How long to wait until the next regular update: a second in 2013, and what RTCP may take since.
    pub fn interval(&self) -> TimeDelta {
        match self.config.growth {
            Growth::Response => TimeDelta::from_millis(1000),
            Growth::Aimd => feedback_interval(self.rate),
        }
    }

    fn initialise(&mut self, now: RemoteTime, incoming: Option<Rate>) {
        let Some(incoming) = incoming.filter(|r| !self.valid && !r.is_zero()) else { return };
        if now - *self.known.get_or_insert(now) > INITIALISATION {
            (self.rate, self.valid) = (incoming, true);
        }
    }

    fn tick(&mut self, now: RemoteTime) {
        let passed = now - self.updated.replace(now).unwrap_or(now);
        self.period = self.period.scale(PERIOD_MEMORY) + passed.scale(1.0 - PERIOD_MEMORY);
    }

    fn increased(&mut self, now: RemoteTime, incoming: Rate, variance: f64) -> (Rate, bool) {
        if self.convergence.is_near() {
            let above = self.convergence.is_above(incoming, ABOVE);
            self.convergence.handle_growth(incoming);
            if !self.convergence.is_near() {
                self.region = Region::MaxUnknown;
            } else if above {
                self.region = Region::AboveMax;
            }
        }
        let dt = self.changed.replace(now).map_or(TimeDelta::ZERO, |changed| now - changed);
        let rate = match self.config.growth {
            Growth::Response => {
                let response = self.period + self.config.rtt + TimeDelta::from_millis(300);
                self.rate.scale(eta(response, variance, Some(dt), self.region)) + LEAST_GROWTH
            }
            Growth::Aimd => self.rate + self.aimd_growth(dt),
        };
        let held = core::mem::take(&mut self.held).scale(self.alpha());
        if !self.config.recovery || held <= rate {
            return (rate, false);
        }
        self.convergence.move_to(held);
        self.region = Region::NearMax;
        (held, true)
    }

    fn aimd_growth(&self, dt: TimeDelta) -> Rate {
        const SECOND: TimeDelta = TimeDelta::from_secs(1);
        const PER_SECOND: f64 = 1.08;
        let growth = if self.region == Region::NearMax {
            // A packet per response time: twice what later years take.
            let response = self.config.rtt + TimeDelta::from_millis(100);
            near_growth(self.rate, self.config.rtt).scale(2.0 * dt.min(response).as_secs_f64())
        } else {
            self.rate.scale(pow(PER_SECOND, dt.min(SECOND).as_secs_f64()) - 1.0)
        };
        growth.max(LEAST_GROWTH)
    }

    fn decreased(&mut self, now: RemoteTime, incoming: Rate) -> Rate {
        (self.valid, self.changed) = (true, Some(now));
        if incoming < self.min {
            return self.min;
        }
        let alpha = self.alpha();
        let mut rate = incoming.scale(alpha);
        if rate > self.rate {
            // R lags behind a rate that has just been cut.
            let average = self.convergence.average().filter(|_| self.region != Region::MaxUnknown);
            rate = average.map_or(rate, |average| average.scale(alpha)).min(self.rate);
        }
        self.region = Region::NearMax;
        self.convergence.handle_decrease(incoming);
        rate
    }
}

/// The factor of growth per update that fhmn13 leaves open (libwebrtc of 2013, `RateIncreaseFactor`): 1.005 to 1.046 a
/// second, less with noise and with a long response, then half of it near the maximum and three times where that is
/// unknown.
pub fn eta(response: TimeDelta, variance: f64, dt: Option<TimeDelta>, region: Region) -> f64 {
    const B: f64 = 0.0407;
    const SLOPE: f64 = 0.0025;
    const C1: f64 = -6700.0 / (33.0 * 33.0);
    const C2: f64 = 800.0;
    const D: f64 = 0.85;
    const RANGE: (f64, f64) = (1.005, 1.3);
    let per_second = 1.005 + B / (1.0 + exp(SLOPE * (D * response.as_millis_f64() - (C1 * variance + C2))));
    let per_second = per_second.clamp(RANGE.0, RANGE.1);
    let eta = dt.map_or(per_second, |dt| pow(per_second, dt.as_secs_f64()));
    match region {
        Region::NearMax => eta - (eta - 1.0) / 2.0,
        Region::AboveMax => eta,
        Region::MaxUnknown => eta + 2.0 * (eta - 1.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIXED: Alpha = Alpha::ByRegion { near: 0.95, far: 0.9 };
    const AIMD: RegionConfig = RegionConfig {
        growth: Growth::Aimd,
        alpha: FIXED,
        recovery: false,
        headroom: 1.5,
        rtt: TimeDelta::from_millis(200),
    };
    const Y2013: RegionConfig = RegionConfig { growth: Growth::Response, recovery: true, ..AIMD };
    const MIN: Rate = Rate::from_kbps(30);

    /// A controller at 1000 kbit/s in a second of its life.
    fn at_1000(config: RegionConfig) -> RegionControl {
        let mut c = RegionControl::new(config, MIN);
        (c.rate, c.valid) = (Rate::from_kbps(1000), true);
        c
    }
    fn step(c: &mut RegionControl, ms: i64, usage: Usage, kbps: u64) -> u64 {
        let seen = Observation { usage, incoming: Some(Rate::from_kbps(kbps)), variance: 50.0, t: 30.0, gamma: 25.0 };
        c.update(RemoteTime::from_millis(9000 + ms), &seen).unwrap().as_bps()
    }

    #[test]
    fn decreases_by_region() {
        let mut c = at_1000(AIMD);
        assert_eq!(step(&mut c, 0, Usage::Over, 1000), 900_000, "unknown");
        assert_eq!(c.region(), Region::NearMax);
        assert_eq!(step(&mut c, 200, Usage::Over, 900), 855_000, "near");
        // 0.95 · 1200 is no decrease: 0.95 of the average 900 (950 would be within 60 of 1000, 900 is not).
        assert_eq!(step(&mut c, 400, Usage::Over, 1200), 855_000);
        assert_eq!(step(&mut c, 600, Usage::Over, 29), 30_000, "below the floor");
        assert_eq!(
            [Region::MaxUnknown, Region::NearMax, Region::AboveMax].map(|r| r.threshold(25.0)),
            [25.0, 12.5, 12.5]
        );
    }

    /// Over-use at 1000: standard deviation sqrt(0.4 · 1000) = 20: above at more than 1050, unknown at more than 1060.
    #[test]
    fn regions() {
        let mut c = at_1000(AIMD);
        step(&mut c, 0, Usage::Over, 1000);
        for (ms, kbps, region) in
            [(200, 1049, Region::NearMax), (400, 1051, Region::AboveMax), (600, 1061, Region::MaxUnknown)]
        {
            step(&mut c, ms, Usage::Normal, kbps);
            assert_eq!(c.region(), region, "{kbps}");
        }
    }

    /// Near: 900 kbit/s are frames of 30 kbit in four packets of 7.5, one in 300 ms; a step counts no more than that.
    /// Else 8 % a second. Each at least 1 kbit/s.
    #[test]
    fn growth_by_addition_and_multiplication() {
        let mut c = at_1000(AIMD);
        step(&mut c, 0, Usage::Over, 1000);
        assert_eq!(step(&mut c, 100, Usage::Normal, 1000), 901_000, "growth counts from here");
        let near = step(&mut c, 250, Usage::Normal, 1000);
        assert!((near as i64 - 901_000 - 3754).abs() <= 1, "half a packet of 901000 / 30 / 4: {near}");
        let far = step(&mut at_1000(AIMD), 0, Usage::Normal, 1000);
        assert_eq!(far, 1_001_000);
        let mut c = at_1000(AIMD);
        step(&mut c, 0, Usage::Normal, 1000);
        assert_eq!(step(&mut c, 1000, Usage::Normal, 1000), 1_001_000 * 108 / 100);
    }

    /// 2013: after a decrease at 600, R reaches 1000 in Hold; that is far above 600, so the maximum is unknown
    /// and growth begins at 0.9 · 1000.
    #[test]
    fn recovery_after_hold() {
        for (config, rate, region) in [(Y2013, 900_000, Region::NearMax), (AIMD, 541_000, Region::MaxUnknown)] {
            let mut c = at_1000(config);
            assert_eq!(step(&mut c, 0, Usage::Over, 600), 540_000);
            step(&mut c, 100, Usage::Under, 1000);
            assert_eq!(step(&mut c, 200, Usage::Normal, 1000), rate);
            assert_eq!(c.region(), region);
        }
    }

    /// A step that ends above 1.5 R is not taken, except among low rates.
    #[test]
    fn headroom() {
        let mut c = at_1000(AIMD);
        step(&mut c, 0, Usage::Normal, 700);
        let at = step(&mut c, 1000, Usage::Normal, 700);
        assert!((1_040_000..=1_050_000).contains(&step(&mut c, 1500, Usage::Normal, 700)), "{at}");
        c.rate = Rate::from_kbps(100);
        let grown = step(&mut c, 2500, Usage::Normal, 40);
        assert!((107_000..=109_000).contains(&grown), "{grown}");
    }

    #[test]
    fn the_first_estimate_takes_half_a_second() {
        let mut c = RegionControl::new(AIMD, MIN);
        let seen = Observation {
            usage: Usage::Normal,
            incoming: Some(Rate::from_kbps(300)),
            variance: 50.0,
            t: 0.0,
            gamma: 25.0,
        };
        assert_eq!(c.update(RemoteTime::from_millis(0), &seen), None);
        assert_eq!(c.update(RemoteTime::from_millis(500), &seen), None);
        assert_eq!(c.update(RemoteTime::from_millis(501), &seen), Some(Rate::from_kbps(301)));
    }
}
