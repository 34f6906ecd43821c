//! The rate control of libwebrtc since 2014 (`AimdRateControl`): additive increase near the rate at which over-use was
//! last detected, multiplicative increase elsewhere, multiplicative decrease.
//!
//! ```text
//! Increase   A_r += A_r (1.08^min(dt, 1 s) - 1), at least 1 kbit/s       far
//!            A_r += dt · packet / (2 (100 ms + RTT))                     near
//! Decrease   A_r  = 0.85 R, once; then Hold
//! A rate above 1.5 R + 10 kbit/s does not grow.
//! ```
//!
//! At a receiver there is no initial rate: until over-use is detected, or `R` has been known for five seconds, there is
//! no estimate, and the sender receives no REMB. At a sender the start rate is the first estimate. `T` is the clock of
//! the endpoint where it runs.

use super::RateState;
use super::rate_controller::near_growth;
use crate::blocks::{LinkCapacity, Usage};
use crate::{Setup, params};
use core::ops::Sub;
use libm::pow;
use paceline_units::{DataSize, Rate, TimeDelta};

params! {
    /// The parameters of the rate control.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct AimdConfig {
        /// libwebrtc (`aimd_rate_control.cc`), and draft-ietf-rmcat-gcc.
        const LIBWEBRTC;

        /// Growth factor far from the rate at which over-use was last found.
        eta: f64 = 1.08, unit "per s", in 1.0..=10.0;
        /// Share of R that a decrease keeps.
        alpha: f64 = 0.85, in 0.1..=1.0;
        /// Multiple of R above which the rate does not grow.
        headroom: f64 = 1.5, in 1.0..=100.0;
        /// Round-trip time until it is measured. A receiver that sends no media never measures it.
        rtt as "rtt_ms": TimeDelta = TimeDelta::from_millis(200), in 0.0..=1e4;
    }
}

/// The longest time that one step of multiplicative growth covers.
const STEP_MAX: TimeDelta = TimeDelta::from_secs(1);
/// The lowest multiplicative growth per update.
const LEAST_GROWTH: Rate = Rate::from_kbps(1);
/// Added to the headroom.
const HEADROOM_OFFSET: Rate = Rate::from_kbps(10);
/// The incoming rate becomes the first estimate after this time.
const INITIALISATION: TimeDelta = TimeDelta::from_secs(5);
/// The rate before the first estimate.
const INITIAL_RATE: Rate = Rate::from_kbps(30_000);
/// The shortest and the longest interval of decreases during lasting over-use.
const DECREASE_INTERVAL_RANGE: (TimeDelta, TimeDelta) = (TimeDelta::from_millis(10), TimeDelta::from_millis(200));
/// If the incoming rate is below this share of the rate, the next decrease is immediate.
const IMMEDIATE_DECREASE_SHARE: f64 = 0.5;

/// The rate control.
#[derive(Clone, Debug)]
pub struct Aimd<T> {
    config: AimdConfig,
    min: Rate,
    /// The largest packet.
    packet: DataSize,
    rate: Rate,
    /// Whether `rate` is an estimate.
    valid: bool,
    state: RateState,
    /// The time at which `R` was first known.
    known: Option<T>,
    /// The time at which the rate last increased or decreased.
    changed: Option<T>,
    capacity: LinkCapacity,
}

impl<T: Copy + Sub<Output = TimeDelta>> Aimd<T> {
    /// Creates a controller without an estimate, in the state Hold. The rate never falls below the minimum.
    pub fn new(config: AimdConfig, setup: &Setup) -> Self {
        let (state, capacity) = (RateState::Hold, LinkCapacity::new());
        let (min, packet) = (setup.min, setup.packet_size);
        Self { config, min, packet, rate: INITIAL_RATE, valid: false, state, known: None, changed: None, capacity }
    }

    /// Creates a controller whose first estimate is the start rate.
    pub fn starting_at(config: AimdConfig, setup: &Setup) -> Self {
        Self { rate: setup.start.max(setup.min), valid: true, ..Self::new(config, setup) }
    }

    /// Sets the lowest rate, which applies at once.
    pub fn set_min(&mut self, min: Rate) {
        (self.min, self.rate) = (min, self.rate.max(min));
    }

    /// Sets the measured round-trip time.
    pub fn set_rtt(&mut self, rtt: TimeDelta) {
        self.config.rtt = rtt;
    }

    /// Sets the estimate to the result of a probe.
    pub fn set_estimate(&mut self, now: T, rate: Rate) {
        (self.rate, self.valid, self.changed) = (rate.max(self.min), true, Some(now));
    }

    /// Multiplies the estimate, because the flow got another rate from outside (RFC 8699). Growth and decreases stay due when
    /// they were.
    pub fn scale(&mut self, ratio: f64) {
        self.rate = self.rate.scale(ratio).max(self.min);
    }

    /// Halves the estimate, because over-use was detected before the incoming rate is known.
    pub fn halve(&mut self, now: T) {
        (self.rate, self.changed) = (self.rate.scale(0.5).max(self.min), Some(now));
    }

    /// Returns the link capacity estimate: the rate at the last over-use, unless the path has changed since.
    pub fn capacity(&self) -> Option<Rate> {
        self.capacity.average()
    }

    /// Returns the estimate `A_r`, if there is one.
    pub fn estimate(&self) -> Option<Rate> {
        self.valid.then_some(self.rate)
    }

    /// Returns the last state.
    pub fn state(&self) -> RateState {
        self.state
    }

    /// Updates the rate from the state of the detector and the incoming rate, if that is known. Returns the estimate,
    /// if there is one.
    pub fn update(&mut self, now: T, usage: Usage, incoming: Option<Rate>) -> Option<Rate> {
        self.initialise(now, incoming);
        if !self.valid && usage != Usage::Over {
            return None;
        }
        let incoming = incoming.unwrap_or(self.rate);
        let bound = incoming.scale(self.config.headroom) + HEADROOM_OFFSET;
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
                self.capacity.handle_growth(incoming);
                if self.rate < bound { self.rate + self.growth(dt) } else { self.rate }
            }
            RateState::Decrease => {
                let rate = self.decreased(incoming);
                self.capacity.handle_decrease(incoming);
                (self.valid, self.changed) = (true, Some(now));
                rate
            }
        };
        self.rate = bounded(rate, self.rate, bound).max(self.min);
        Some(self.rate)
    }

    /// Returns whether lasting over-use justifies another decrease.
    pub fn may_decrease_again(&self, now: T, incoming: Rate) -> bool {
        let interval = self.config.rtt.clamp(DECREASE_INTERVAL_RANGE.0, DECREASE_INTERVAL_RANGE.1);
        self.changed.is_none_or(|changed| now - changed >= interval)
            || (self.valid && incoming < self.rate.scale(IMMEDIATE_DECREASE_SHARE))
    }

    /// Returns the interval of regular updates.
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
        if self.capacity.is_known() {
            return near_growth(self.rate, self.config.rtt, self.packet).scale(dt.as_secs_f64());
        }
        let eta = pow(self.config.eta, dt.min(STEP_MAX).as_secs_f64());
        self.rate.scale(eta - 1.0).max(LEAST_GROWTH)
    }

    /// Returns `alpha R`. If that exceeds the rate, because `R` lags behind a rate that has just decreased, returns
    /// `alpha` times the link capacity estimate. The result never exceeds the rate.
    fn decreased(&self, incoming: Rate) -> Rate {
        let alpha = self.config.alpha;
        let rate = incoming.scale(alpha);
        if rate <= self.rate {
            return rate;
        }
        self.capacity.average().map_or(rate, |average| average.scale(alpha)).min(self.rate)
    }
}

/// Returns the interval at which 80 bytes of RTCP take 5 % of the rate, within 200 ms and 1 s.
pub(super) fn feedback_interval(rate: Rate) -> TimeDelta {
    const REPORT_BITS: f64 = 80.0 * 8.0;
    const SHARE: f64 = 0.05;
    let interval = TimeDelta::from_secs_f64(REPORT_BITS / (SHARE * rate.as_bps_f64().max(1.0)));
    interval.clamp(TimeDelta::from_millis(200), TimeDelta::from_millis(1000))
}

/// Growth stops at the headroom. A rate that is already above it does not change.
fn bounded(rate: Rate, before: Rate, bound: Rate) -> Rate {
    if rate > before && rate > bound { bound.max(before) } else { rate }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::SETUP;
    use paceline_units::RemoteTime;

    const CONFIG: AimdConfig = AimdConfig::LIBWEBRTC;

    fn at(ms: i64) -> RemoteTime {
        RemoteTime::from_millis(70_000 + ms)
    }
    const fn kbps(kbps: u64) -> Option<Rate> {
        Some(Rate::from_kbps(kbps))
    }

    /// As in libwebrtc's own tests.
    #[test]
    fn first_estimate_needs_five_seconds_or_overuse() {
        let mut aimd = Aimd::new(CONFIG, &SETUP);
        assert_eq!(aimd.update(at(0), Usage::Normal, None), None);
        assert_eq!(aimd.update(at(100), Usage::Normal, kbps(300)), None);
        assert_eq!(aimd.update(at(5100), Usage::Normal, kbps(300)), None, "not more than 5 s");
        // 300 kbit/s, and the first step in Increase adds 1 kbit/s.
        assert_eq!(aimd.update(at(5101), Usage::Normal, kbps(300)), kbps(301));

        let mut aimd = Aimd::new(CONFIG, &SETUP);
        assert_eq!(aimd.update(at(0), Usage::Over, kbps(300)), kbps(255));
    }

    /// By hand: 255 kbit/s after over-use at 300. Near it a frame is 8500 bits, one packet: 8500 / (2 · 0.3 s) is
    /// 14.167 kbit/s per second. 450 kbit/s exceed 300 + 3 sqrt(0.4 · 300) = 332.9, so the path has more capacity: 8 %
    /// per second.
    #[test]
    fn growth_is_additive_near_the_last_overuse_and_exponential_elsewhere() {
        let mut aimd = Aimd::new(CONFIG, &SETUP);
        aimd.update(at(0), Usage::Over, kbps(300));
        assert_eq!(aimd.update(at(200), Usage::Normal, kbps(300)), kbps(255), "growth starts here");
        assert_eq!(aimd.update(at(400), Usage::Normal, kbps(300)).unwrap().as_bps(), 255_000 + 2_833);
        let near = aimd.rate.as_bps_f64();
        let far = aimd.update(at(1400), Usage::Normal, kbps(450)).unwrap().as_bps_f64();
        assert!((far / near - 1.08).abs() < 1e-5, "{near} {far}");
        // Two seconds count as one.
        let later = aimd.update(at(3400), Usage::Normal, kbps(450)).unwrap().as_bps_f64();
        assert!((later / far - 1.08).abs() < 1e-5, "{far} {later}");
    }

    /// At R = 100 the bound is 160 kbit/s: a higher rate does not change, a lower one grows up to it.
    #[test]
    fn growth_stops_at_the_headroom() {
        let mut aimd = Aimd::new(CONFIG, &SETUP);
        aimd.update(at(0), Usage::Over, kbps(300)); // 255
        aimd.update(at(200), Usage::Normal, kbps(100));
        assert_eq!(aimd.update(at(1200), Usage::Normal, kbps(100)), kbps(255));
        aimd.update(at(1300), Usage::Over, kbps(188));
        assert_eq!(aimd.estimate().unwrap().as_bps(), 159_800);
        aimd.update(at(1500), Usage::Normal, kbps(100));
        assert_eq!(aimd.update(at(2500), Usage::Normal, kbps(100)), kbps(160));
    }

    /// By hand: over-use at 1000 gives 850. With R = 1200, 0.85 · 1200 is above that: 0.85 · 1000. The average is now
    /// 1010, so the next decrease would give 858.5, but it never increases the rate. Below 0.5 A_r decreases are
    /// immediate.
    #[test]
    fn decreases_never_increase_the_rate() {
        let mut aimd = Aimd::new(CONFIG, &SETUP);
        assert_eq!(aimd.update(at(0), Usage::Over, kbps(1000)), kbps(850));
        assert_eq!(aimd.update(at(200), Usage::Over, kbps(1200)), kbps(850));
        assert!((aimd.capacity.average().unwrap().as_bps_f64() / 1e3 - 1010.0).abs() < 0.01);
        assert_eq!(aimd.update(at(400), Usage::Over, kbps(1200)), kbps(850));
        assert!(!aimd.may_decrease_again(at(599), Rate::from_kbps(425)));
        assert!(aimd.may_decrease_again(at(599), Rate::from_kbps(424)));
        assert!(aimd.may_decrease_again(at(600), Rate::from_kbps(425)));
        assert_eq!(aimd.update(at(600), Usage::Over, Some(Rate::ZERO)), Some(SETUP.min));
        assert_eq!(aimd.update(at(800), Usage::Under, kbps(500)), Some(SETUP.min), "held");
    }

    /// 640 bits at 5 % of 32 kbit/s take 400 ms.
    #[test]
    fn update_interval_is_five_percent_of_the_rate() {
        let mut aimd = Aimd::<RemoteTime>::new(CONFIG, &Setup { min: Rate::ZERO, ..SETUP });
        let mut after = |kbps| {
            aimd.rate = Rate::from_kbps(kbps);
            aimd.interval().as_millis_f64()
        };
        assert_eq!([64, 32, 16, 12, 1, 0, 1000].map(&mut after), [200.0, 400.0, 800.0, 1000.0, 1000.0, 1000.0, 200.0]);
    }
}
