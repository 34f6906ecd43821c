// SPDX-License-Identifier: MIT OR Apache-2.0
//! The remote rate controller with regions, of libwebrtc until 2015: it remembers the rate at which over-use was last
//! detected and takes smaller steps near it.
//!
//! | region | when | `alpha` (see [`Alpha`]) | threshold |
//! |---|---|---|---|
//! | near max | after a decrease | 0.95 | half |
//! | above max | `R` more than 2.5 standard deviations above the average of `R` at decreases | 0.9 | half |
//! | max unknown | at first, and more than 3 above | 0.9 | whole |
//!
//! ```text
//! Increase   by one of two laws ([`GrowthLaw`])
//! Decrease   A_r = alpha R, once; then Hold
//! Hold       remembers the highest R; growth then starts no lower than alpha times that (2013)
//! A step that would end above 1.5 R is not taken.
//! ```

use super::{Alpha, AlphaVariant, Region, RembTimer};
use crate::blocks::{LinkCapacity, RateState, Usage, feedback_interval, near_growth};
use crate::{Setup, params};
use libm::{exp, pow};
use paceline_units::{DataSize, Rate, RemoteTime, TimeDelta};

/// The growth law.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrowthLaw {
    /// By a factor `eta` that depends on the noise and on the response time (2013, `RemoteRateControl`).
    Response,
    /// Additive near the maximum, 8 % per second elsewhere (since 2014, `AimdRateControl`).
    Aimd,
}

params! {
    /// The parameters of a receiver with region control, besides those of its filter.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct RegionConfig {
        /// libwebrtc of 2013.
        const Y2013;

        /// Threshold on min(n, 60)·m where the maximum is unknown; half of it elsewhere.
        threshold_ms: f64 = 25.0, unit "ms", in 0.0..=1e4;
        /// Time for which over-use must last.
        overuse_ms: f64 = 100.0, unit "ms", in 0.0..=1e4;
        /// Law of growth; 0: additive near the maximum, 8 % a second elsewhere, 1: the eta of 2013.
        growth: GrowthLaw = GrowthLaw::Response, of [GrowthLaw::Aimd, GrowthLaw::Response];
        /// Share of R that a decrease near the maximum keeps.
        alpha_near: f64 = 0.95, in 0.1..=1.0;
        /// Share of R that a decrease elsewhere keeps.
        alpha_far: f64 = 0.9, in 0.1..=1.0;
        /// Decrease factor; 0: by region, 1: by equation 4.1 as printed, 2: by equation 4.1 with the line of 4.2 that
        /// table 2 comes nearest to, (0.99 - b) / 1.3, everywhere, 3: by the listing of section 4.3, computed at each
        /// change of the region and used at the next decrease.
        dynamic as "dynamic_alpha": Option<AlphaVariant> = None,
            of [None, Some(AlphaVariant::Printed), Some(AlphaVariant::Tabulated), Some(AlphaVariant::Listing)];
        /// Whether growth after Hold starts at alpha times the highest R of that time; otherwise it goes on where it was.
        recovery: bool = true;
        /// Whether lasting over-use causes further decreases between the regular updates; in receivers of 2012 only its
        /// beginning causes one.
        repeat_decrease: bool = true;
        /// Multiple of R above which no step ends.
        headroom: f64 = 1.5, in 1.0..=100.0;
        /// Round-trip time that the receiver assumes.
        rtt as "rtt_ms": TimeDelta = TimeDelta::from_millis(200), in 0.0..=1e4;
        /// Window of R.
        window as "window_ms": TimeDelta = TimeDelta::from_millis(500), in 10.0..=1e4;
        /// Shortest interval of REMBs, unless the rate falls by more than 3 %.
        remb as "remb_ms": TimeDelta = TimeDelta::from_millis(1000), in 10.0..=1e5;
    }
}

impl RegionConfig {
    /// libwebrtc of 2015.
    pub const Y2015: Self = Self {
        growth: GrowthLaw::Aimd,
        recovery: false,
        window: TimeDelta::from_millis(1000),
        remb: TimeDelta::from_millis(200),
        ..Self::Y2013
    };

    pub(super) fn timer(&self) -> RembTimer {
        RembTimer::new(self.remb)
    }

    fn alpha(&self) -> Alpha {
        match self.dynamic {
            None => Alpha::ByRegion { near: self.alpha_near, far: self.alpha_far },
            Some(variant) => Alpha::Dynamic { variant, last: self.alpha_far },
        }
    }
}

/// A rate is above the maximum if it exceeds the average by this many standard deviations.
const ABOVE_MAX_DEVIATIONS: f64 = 2.5;
/// Added to each growth step.
const LEAST_GROWTH: Rate = Rate::from_kbps(1);
/// The rate before the first estimate.
const INITIAL_RATE: Rate = Rate::from_kbps(30_000);
/// The incoming rate becomes the first estimate after this time.
const INITIALISATION: TimeDelta = TimeDelta::from_millis(500);
/// The headroom does not apply while incoming rate and new rate are at most these.
const HEADROOM_EXEMPT_RATES: (Rate, Rate) = (Rate::from_kbps(100), Rate::from_kbps(150));
/// The smoothing factor of the average time between updates, and its initial value.
const PERIOD_MEMORY: f64 = 0.9;
const PERIOD_0: TimeDelta = TimeDelta::from_millis(1000);

/// The controller.
#[derive(Clone, Debug)]
pub struct RegionControl {
    config: RegionConfig,
    /// The decrease factor.
    alpha: Alpha,
    min: Rate,
    /// The largest packet.
    packet: DataSize,
    rate: Rate,
    valid: bool,
    state: RateState,
    region: Region,
    capacity: LinkCapacity,
    /// The highest incoming rate during Hold.
    held: Rate,
    /// The time at which `R` was first known.
    known: Option<RemoteTime>,
    /// The time at which the rate last changed.
    changed: Option<RemoteTime>,
    updated: Option<RemoteTime>,
    /// The average time between updates.
    period: TimeDelta,
}

/// The input of an update.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observation {
    /// The state of the detector.
    pub usage: Usage,
    /// The incoming rate, once it is known.
    pub incoming: Option<Rate>,
    /// The arrival-time filter's noise variance, ms².
    pub variance: f64,
    /// The scaled gradient `T`, ms.
    pub t: f64,
    /// The threshold on `T`, ms.
    pub gamma: f64,
}

impl RegionControl {
    /// Creates a controller without an estimate, in the state Hold. The rate never falls below the minimum.
    pub fn new(config: RegionConfig, setup: &Setup) -> Self {
        Self {
            config,
            alpha: config.alpha(),
            min: setup.min,
            packet: setup.packet_size,
            rate: INITIAL_RATE,
            valid: false,
            state: RateState::Hold,
            region: Region::MaxUnknown,
            capacity: LinkCapacity::default(),
            held: Rate::ZERO,
            known: None,
            changed: None,
            updated: None,
            period: PERIOD_0,
        }
    }

    /// Sets the lowest rate, which applies at once.
    pub fn set_min(&mut self, min: Rate) {
        (self.min, self.rate) = (min, self.rate.max(min));
    }
    /// Returns the last state.
    pub fn state(&self) -> RateState {
        self.state
    }
    /// Returns the current region.
    pub fn region(&self) -> Region {
        self.region
    }
    /// Returns the current decrease factor.
    pub fn alpha(&self) -> f64 {
        self.alpha.factor(self.region)
    }

    /// Updates the rate. Returns the estimate, if there is one.
    pub fn update(&mut self, now: RemoteTime, input: &Observation) -> Option<Rate> {
        self.initialise(now, input.incoming);
        if !self.valid && input.usage != Usage::Over {
            return None;
        }
        let incoming = input.incoming.unwrap_or(self.rate);
        self.tick(now);
        let before = self.state;
        self.state = RateState::of(input.usage);
        if self.state == RateState::Increase && before != RateState::Increase {
            self.changed = Some(now);
        }
        let (rate, recovered) = match self.state {
            RateState::Hold => {
                self.held = self.held.max(incoming);
                (self.rate, false)
            }
            RateState::Increase => self.increased(now, incoming, input),
            RateState::Decrease => {
                self.alpha.handle_overuse(self.region, input.t, input.gamma);
                (self.decreased(now, incoming, input), false)
            }
        };
        let low = incoming <= HEADROOM_EXEMPT_RATES.0 && rate <= HEADROOM_EXEMPT_RATES.1;
        if recovered || low || rate <= incoming.scale(self.config.headroom) {
            self.rate = rate;
        } else {
            self.changed = Some(now);
        }
        self.rate = self.rate.max(self.min);
        Some(self.rate)
    }

    /// Returns whether lasting over-use justifies another decrease.
    pub fn may_decrease_again(&self, now: RemoteTime, incoming: Rate) -> bool {
        const IMMEDIATE_DECREASE_SHARE: f64 = 1.05;
        let interval = self.config.rtt.clamp(TimeDelta::from_millis(10), TimeDelta::from_millis(200));
        self.changed.is_none_or(|changed| now - changed >= interval)
            || (self.valid && self.rate.saturating_sub(incoming) > incoming.scale(IMMEDIATE_DECREASE_SHARE))
    }

    /// Returns the interval of regular updates: one second in 2013, later the time that RTCP's share of the rate takes.
    pub fn interval(&self) -> TimeDelta {
        match self.config.growth {
            GrowthLaw::Response => TimeDelta::from_millis(1000),
            GrowthLaw::Aimd => feedback_interval(self.rate),
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

    /// Changes to a region, also to the current one.
    fn change_region(&mut self, region: Region, input: &Observation) {
        self.region = region;
        self.alpha.handle_region(region, input.t, input.gamma);
    }

    fn increased(&mut self, now: RemoteTime, incoming: Rate, input: &Observation) -> (Rate, bool) {
        if self.capacity.is_known() {
            let above = self.capacity.is_above(incoming, ABOVE_MAX_DEVIATIONS);
            self.capacity.handle_growth(incoming);
            if !self.capacity.is_known() {
                self.change_region(Region::MaxUnknown, input);
            } else if above {
                self.change_region(Region::AboveMax, input);
            }
        }
        let dt = self.changed.replace(now).map_or(TimeDelta::ZERO, |changed| now - changed);
        let rate = match self.config.growth {
            GrowthLaw::Response => {
                let response = self.period + self.config.rtt + TimeDelta::from_millis(300);
                self.rate.scale(eta(response, input.variance, Some(dt), self.region)) + LEAST_GROWTH
            }
            GrowthLaw::Aimd => self.rate + self.aimd_growth(dt),
        };
        let held = core::mem::take(&mut self.held).scale(self.alpha());
        if !self.config.recovery || held <= rate {
            return (rate, false);
        }
        self.capacity.move_to(held);
        self.change_region(Region::NearMax, input);
        (held, true)
    }

    fn aimd_growth(&self, dt: TimeDelta) -> Rate {
        const SECOND: TimeDelta = TimeDelta::from_secs(1);
        const PER_SECOND: f64 = 1.08;
        let growth = if self.region == Region::NearMax {
            // One packet per response time: twice the growth of later years.
            let response = self.config.rtt + TimeDelta::from_millis(100);
            near_growth(self.rate, self.config.rtt, self.packet).scale(2.0 * dt.min(response).as_secs_f64())
        } else {
            self.rate.scale(pow(PER_SECOND, dt.min(SECOND).as_secs_f64()) - 1.0)
        };
        growth.max(LEAST_GROWTH)
    }

    fn decreased(&mut self, now: RemoteTime, incoming: Rate, input: &Observation) -> Rate {
        (self.valid, self.changed) = (true, Some(now));
        if incoming < self.min {
            return self.min;
        }
        let alpha = self.alpha();
        let mut rate = incoming.scale(alpha);
        if rate > self.rate {
            // R lags behind a rate that has just decreased.
            let average = self.capacity.average().filter(|_| self.region != Region::MaxUnknown);
            rate = average.map_or(rate, |average| average.scale(alpha)).min(self.rate);
        }
        self.change_region(Region::NearMax, input);
        self.capacity.handle_decrease(incoming);
        rate
    }
}

/// Returns the growth factor per update, which fhmn13 does not specify (libwebrtc of 2013, `RateIncreaseFactor`): 1.005
/// to 1.046 per second, less with noise and with a long response time. Near the maximum the growth is halved; where the
/// maximum is unknown it is tripled.
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
    use crate::testing::SETUP;

    const AIMD: RegionConfig = RegionConfig::Y2015;
    const Y2013: RegionConfig = RegionConfig::Y2013;

    /// Returns a controller with an estimate of 1000 kbit/s.
    fn at_1000(config: RegionConfig) -> RegionControl {
        let mut c = RegionControl::new(config, &SETUP);
        (c.rate, c.valid) = (Rate::from_kbps(1000), true);
        c
    }
    fn step(c: &mut RegionControl, ms: i64, usage: Usage, kbps: u64) -> u64 {
        let input = Observation { usage, incoming: Some(Rate::from_kbps(kbps)), variance: 50.0, t: 30.0, gamma: 25.0 };
        c.update(RemoteTime::from_millis(9000 + ms), &input).unwrap().as_bps()
    }

    /// By hand: the first decrease uses 0.9. It changes the region, which computes 0.990181 from T = 30 and gamma = 25 for
    /// the second one: 0.990181 · 900 kbit/s.
    #[test]
    fn listing_decreases_by_the_factor_of_the_change_before() {
        let mut c = at_1000(RegionConfig { dynamic: Some(AlphaVariant::Listing), ..AIMD });
        assert_eq!(step(&mut c, 0, Usage::Over, 1000), 900_000);
        assert_eq!(step(&mut c, 200, Usage::Over, 900), 891_163);
    }

    #[test]
    fn decrease_factor_depends_on_the_region() {
        let mut c = at_1000(AIMD);
        assert_eq!(step(&mut c, 0, Usage::Over, 1000), 900_000, "unknown");
        assert_eq!(c.region(), Region::NearMax);
        assert_eq!(step(&mut c, 200, Usage::Over, 900), 855_000, "near");
        // 0.95 · 1200 is no decrease: 0.95 of the average 900 (950 would be within 60 of 1000, 900 is not).
        assert_eq!(step(&mut c, 400, Usage::Over, 1200), 855_000);
        assert_eq!(step(&mut c, 600, Usage::Over, 29), 30_000, "below the minimum");
        assert_eq!(
            [Region::MaxUnknown, Region::NearMax, Region::AboveMax].map(|r| r.threshold(25.0)),
            [25.0, 12.5, 12.5]
        );
    }

    /// Over-use at 1000: standard deviation sqrt(0.4 · 1000) = 20: above at more than 1050, unknown at more than 1060.
    #[test]
    fn region_follows_the_distance_from_the_average() {
        let mut c = at_1000(AIMD);
        step(&mut c, 0, Usage::Over, 1000);
        for (ms, kbps, region) in
            [(200, 1049, Region::NearMax), (400, 1051, Region::AboveMax), (600, 1061, Region::MaxUnknown)]
        {
            step(&mut c, ms, Usage::Normal, kbps);
            assert_eq!(c.region(), region, "{kbps}");
        }
    }

    /// Near the maximum: 900 kbit/s are frames of 30 kbit in four packets of 7.5; growth is one packet in 300 ms, and a
    /// step is no longer than that. Elsewhere 8 % per second. At least 1 kbit/s per step.
    #[test]
    fn growth_is_additive_near_the_maximum_and_exponential_elsewhere() {
        let mut c = at_1000(AIMD);
        step(&mut c, 0, Usage::Over, 1000);
        assert_eq!(step(&mut c, 100, Usage::Normal, 1000), 901_000, "growth starts here");
        let near = step(&mut c, 250, Usage::Normal, 1000);
        assert!((near as i64 - 901_000 - 3754).abs() <= 1, "half a packet of 901000 / 30 / 4: {near}");
        let far = step(&mut at_1000(AIMD), 0, Usage::Normal, 1000);
        assert_eq!(far, 1_001_000);
        let mut c = at_1000(AIMD);
        step(&mut c, 0, Usage::Normal, 1000);
        assert_eq!(step(&mut c, 1000, Usage::Normal, 1000), 1_001_000 * 108 / 100);
    }

    /// 2013: after a decrease at 600, R reaches 1000 during Hold. That is far above 600, so the maximum is unknown, and
    /// growth starts at 0.9 · 1000.
    #[test]
    fn growth_after_hold_starts_at_the_rate_that_was_reached() {
        for (config, rate, region) in [(Y2013, 900_000, Region::NearMax), (AIMD, 541_000, Region::MaxUnknown)] {
            let mut c = at_1000(config);
            assert_eq!(step(&mut c, 0, Usage::Over, 600), 540_000);
            step(&mut c, 100, Usage::Under, 1000);
            assert_eq!(step(&mut c, 200, Usage::Normal, 1000), rate);
            assert_eq!(c.region(), region);
        }
    }

    #[test]
    fn steps_above_the_headroom_are_not_taken_except_at_low_rates() {
        let mut c = at_1000(AIMD);
        step(&mut c, 0, Usage::Normal, 700);
        let at = step(&mut c, 1000, Usage::Normal, 700);
        assert!((1_040_000..=1_050_000).contains(&step(&mut c, 1500, Usage::Normal, 700)), "{at}");
        c.rate = Rate::from_kbps(100);
        let grown = step(&mut c, 2500, Usage::Normal, 40);
        assert!((107_000..=109_000).contains(&grown), "{grown}");
    }

    #[test]
    fn first_estimate_needs_half_a_second() {
        let mut c = RegionControl::new(AIMD, &SETUP);
        let input = Observation {
            usage: Usage::Normal,
            incoming: Some(Rate::from_kbps(300)),
            variance: 50.0,
            t: 0.0,
            gamma: 25.0,
        };
        assert_eq!(c.update(RemoteTime::from_millis(0), &input), None);
        assert_eq!(c.update(RemoteTime::from_millis(500), &input), None);
        assert_eq!(c.update(RemoteTime::from_millis(501), &input), Some(Rate::from_kbps(301)));
    }
}
