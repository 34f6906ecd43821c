//! The rate control of libwebrtc (`AimdRateControl`): additive increase near the rate at which over-use was last detected,
//! multiplicative increase elsewhere, and a decrease to a share of the acknowledged rate.
//!
//! ```text
//! Increase   A += A (1.08^min(dt, 1 s) - 1), at least 1 kbit/s      far      up to 1.5 R + 10 kbit/s
//!            A += dt · near(A, RTT)                                 near
//! Decrease   A  = 0.85 R - 5 kbit/s, but never more than before; then Hold
//! ```
//!
//! [`gcc::Aimd`](crate::gcc::Aimd) is the form of 2018. This one subtracts 5 kbit/s from a decrease, remembers the last
//! acknowledged rate, and can hold its rate while the application limits the flow.

use super::units::{MIN_RATE, rate_of, rounded_to_kbps};
use crate::blocks::{LinkCapacity, Usage};
use crate::gcc::RateState;
use crate::params;
use libm::{ceil, pow};
use paceline_units::{DataSize, Rate, Time, TimeDelta, round_to_u64};

params! {
    /// The parameters of the rate control.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct AimdConfig {
        /// libwebrtc (`aimd_rate_control.cc`).
        const LIBWEBRTC;

        /// Growth factor far from the rate at which over-use was last found.
        eta: f64 = 1.08, unit "per s", in 1.0..=10.0, from "MultiplicativeRateIncrease";
        /// Share of the acknowledged rate that a decrease keeps.
        beta: f64 = 0.85, in 0.1..=1.0, from "kDefaultBackoffFactor";
        /// Subtracted from a decreased rate that is above this.
        decrease_offset as "decrease_offset_bps": Rate = Rate::from_kbps(5), in 0.0..=1e6, from "ChangeBitrate";
        /// Multiple of the acknowledged rate above which the rate does not grow.
        headroom: f64 = 1.5, in 1.0..=100.0, from "ChangeBitrate";
        /// Added to the headroom.
        headroom_offset as "headroom_offset_bps": Rate = Rate::from_kbps(10), in 0.0..=1e6, from "ChangeBitrate";
        /// Round-trip time until it is measured.
        rtt as "rtt_ms": TimeDelta = TimeDelta::from_millis(200), in 0.0..=1e4, from "kDefaultRtt";
        /// Whether the rate does not grow while the application limits the flow.
        hold_in_alr: bool = false, from "DontIncreaseDelayBasedBweInAlr";
    }
}

/// The longest time that one step of multiplicative growth covers (`MultiplicativeRateIncrease`).
const STEP_MAX: TimeDelta = TimeDelta::from_secs(1);
/// The lowest multiplicative growth per update (`MultiplicativeRateIncrease`).
const LEAST_GROWTH: Rate = Rate::from_bps(1000);
/// The lowest additive growth, bit/s per s (`kMinIncreaseRateBpsPerSecond`).
const NEAR_GROWTH_MIN: f64 = 4000.0;
/// The interval of frames in additive growth (`kFrameInterval`).
const FRAME_INTERVAL: TimeDelta = TimeDelta::from_micros(33_333);
/// The delay of the over-use detector in additive growth (`GetNearMaxIncreaseRateBpsPerSecond`).
const DETECTOR_DELAY: TimeDelta = TimeDelta::from_millis(100);
/// The acknowledged rate becomes the first estimate after this time (`kInitializationTime`).
const INITIALISATION: TimeDelta = TimeDelta::from_secs(5);
/// The rate before the first estimate (`max_configured_bitrate_`).
const INITIAL_RATE: Rate = Rate::from_kbps(30_000);
/// The shortest and the longest interval of decreases during lasting over-use (`TimeToReduceFurther`).
const DECREASE_INTERVAL_RANGE: (TimeDelta, TimeDelta) = (TimeDelta::from_millis(10), TimeDelta::from_millis(200));
/// If the acknowledged rate is below this share of the rate, the next decrease is immediate (`TimeToReduceFurther`).
const IMMEDIATE_DECREASE_SHARE: f64 = 0.5;

/// The rate control.
#[derive(Clone, Debug)]
pub struct Aimd {
    config: AimdConfig,
    min: Rate,
    /// The largest packet.
    packet: DataSize,
    rate: Rate,
    /// The last acknowledged rate.
    acked: Rate,
    /// Whether `rate` is an estimate.
    valid: bool,
    state: RateState,
    /// The time at which the acknowledged rate was first known.
    known: Option<Time>,
    /// The time at which the rate last increased or decreased.
    changed: Option<Time>,
    rtt: TimeDelta,
    in_alr: bool,
    capacity: LinkCapacity,
}

impl Aimd {
    /// Creates a controller without an estimate, in the state Hold, for packets of at most this size (libwebrtc: 1200
    /// bytes).
    pub fn new(config: AimdConfig, packet: DataSize) -> Self {
        Self {
            config,
            min: MIN_RATE,
            packet,
            rate: INITIAL_RATE,
            acked: INITIAL_RATE,
            valid: false,
            state: RateState::Hold,
            known: None,
            changed: None,
            rtt: config.rtt,
            in_alr: false,
            capacity: LinkCapacity::new(),
        }
    }

    /// Sets the first estimate.
    pub fn set_start(&mut self, start: Rate) {
        (self.rate, self.acked, self.valid) = (start, start, true);
    }

    /// Sets the lowest rate, which applies at once.
    pub fn set_min(&mut self, min: Rate) {
        (self.min, self.rate) = (min, self.rate.max(min));
    }

    /// Sets the measured round-trip time.
    pub fn set_rtt(&mut self, rtt: TimeDelta) {
        self.rtt = rtt;
    }

    /// Sets whether the application limits the flow.
    pub fn set_in_alr(&mut self, in_alr: bool) {
        self.in_alr = in_alr;
    }

    /// Sets the estimate to the result of a probe.
    pub fn set_estimate(&mut self, now: Time, rate: Rate) {
        (self.rate, self.valid, self.changed) = (rate.max(self.min), true, Some(now));
    }

    /// Multiplies the estimate, because the flow got another rate from outside (RFC 8699). Growth and decreases stay due when
    /// they were.
    pub fn scale(&mut self, ratio: f64) {
        self.rate = self.rate.scale(ratio).max(self.min);
    }

    /// Returns the link capacity estimate: the average rate at past over-use, unless the path has changed since.
    pub fn capacity(&self) -> Option<Rate> {
        self.capacity.average()
    }

    /// Returns the rate, which may be no estimate yet.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// Returns whether there is an estimate.
    pub fn is_valid(&self) -> bool {
        self.valid
    }

    /// Returns the last state.
    pub fn state(&self) -> RateState {
        self.state
    }

    /// Updates the rate from the state of the detector and the acknowledged rate, if that is known. Returns the rate.
    pub fn update(&mut self, now: Time, usage: Usage, acked: Option<Rate>) -> Rate {
        self.initialise(now, acked);
        self.acked = acked.unwrap_or(self.acked);
        if !self.valid && usage != Usage::Over {
            return self.rate;
        }
        self.change_state(now, usage);
        let rate = match self.state {
            RateState::Hold => self.rate,
            RateState::Increase => self.increased(now),
            RateState::Decrease => self.decreased(now),
        };
        self.rate = rate.max(self.min);
        self.rate
    }

    /// Returns whether lasting over-use justifies another decrease.
    pub fn may_decrease_again(&self, now: Time, acked: Rate) -> bool {
        let interval = self.rtt.clamp(DECREASE_INTERVAL_RANGE.0, DECREASE_INTERVAL_RANGE.1);
        self.changed.is_none_or(|changed| now - changed >= interval)
            || (self.valid && acked < self.rate.scale(IMMEDIATE_DECREASE_SHARE))
    }

    /// Returns whether over-use justifies a decrease although no acknowledged rate is known. The rate of comparison is just
    /// below half of the estimate, so the answer is yes for every estimate of at least 2 bit/s.
    pub fn may_halve(&self, now: Time) -> bool {
        self.valid
            && self.may_decrease_again(now, Rate::from_bps(self.rate.as_bps() / 2).saturating_sub(Rate::from_bps(1)))
    }

    fn initialise(&mut self, now: Time, acked: Option<Rate>) {
        let Some(acked) = acked.filter(|_| !self.valid) else { return };
        if now - *self.known.get_or_insert(now) > INITIALISATION {
            (self.rate, self.valid) = (acked, true);
        }
    }

    fn change_state(&mut self, now: Time, usage: Usage) {
        self.state = match usage {
            Usage::Over => RateState::Decrease,
            Usage::Under => RateState::Hold,
            Usage::Normal if self.state == RateState::Hold => {
                self.changed = Some(now);
                RateState::Increase
            }
            Usage::Normal => self.state,
        };
    }

    fn increased(&mut self, now: Time) -> Rate {
        self.capacity.handle_growth(self.acked);
        let bound = match self.in_alr && self.config.hold_in_alr {
            true => self.rate,
            false => self.acked.scale(self.config.headroom) + self.config.headroom_offset,
        };
        let before = self.changed.replace(now);
        if self.rate >= bound {
            return self.rate;
        }
        let growth = match self.capacity.is_known() {
            true => additive(self.rate, self.rtt, self.packet, now - before.unwrap_or(now)),
            false => multiplicative(self.rate, self.config.eta, before.map_or(STEP_MAX, |before| now - before)),
        };
        (self.rate + growth).min(bound)
    }

    /// A rate above the current one can come from an acknowledged rate that lags behind. Then the link capacity estimate
    /// counts. The rate never increases.
    fn decreased(&mut self, now: Time) -> Rate {
        let mut rate = self.acked.scale(self.config.beta);
        if rate > self.config.decrease_offset {
            rate -= self.config.decrease_offset;
        }
        if rate > self.rate
            && let Some(capacity) = self.capacity.average()
        {
            rate = capacity.scale(self.config.beta);
        }
        self.capacity.handle_decrease(rounded_to_kbps(self.acked));
        (self.valid, self.state, self.changed) = (true, RateState::Hold, Some(now));
        rate.min(self.rate)
    }
}

/// Returns the multiplicative growth in the time `dt` (`MultiplicativeRateIncrease`).
fn multiplicative(rate: Rate, eta: f64, dt: TimeDelta) -> Rate {
    let factor = pow(eta, dt.min(STEP_MAX).as_secs_f64());
    rate.scale(factor - 1.0).max(LEAST_GROWTH)
}

/// Returns the additive growth in the time `dt` (`AdditiveRateIncrease`).
fn additive(rate: Rate, rtt: TimeDelta, packet: DataSize, dt: TimeDelta) -> Rate {
    Rate::from_bps((near_growth(rate, rtt, packet) * dt.as_secs_f64()) as u64)
}

/// Returns the additive growth, bit/s per s: half an average packet in the response time (`GetNearMaxIncreaseRateBpsPerSecond`).
fn near_growth(rate: Rate, rtt: TimeDelta, packet: DataSize) -> f64 {
    let frame = (rate * FRAME_INTERVAL).as_bytes() as f64;
    let packets = ceil(frame / packet.as_bytes() as f64).max(1.0);
    let average = DataSize::from_bytes(round_to_u64(frame / packets));
    rate_of(average, (rtt + DETECTOR_DELAY) * 2).as_bps_f64().max(NEAR_GROWTH_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: DataSize = DataSize::from_bytes(1200);

    fn at(ms: i64) -> Time {
        Time::from_millis(70_000 + ms)
    }
    const fn kbps(kbps: u64) -> Option<Rate> {
        Some(Rate::from_kbps(kbps))
    }
    fn started(kbps: u64) -> Aimd {
        let mut aimd = Aimd::new(AimdConfig::LIBWEBRTC, PACKET);
        aimd.set_start(Rate::from_kbps(kbps));
        aimd
    }

    /// Vector V4.3.
    #[test]
    fn growth_per_step_matches_the_vectors() {
        let step = |ms| multiplicative(Rate::from_kbps(1000), 1.08, TimeDelta::from_millis(ms)).as_bps();
        assert_eq!([step(200), step(1000), step(5000), step(0)], [15_511, 80_000, 80_000, 1000]);
        let near = |bps, rtt| near_growth(Rate::from_bps(bps), TimeDelta::from_millis(rtt), PACKET);
        let expected = [
            (1_000_000, 200, 13_888.89),
            (1_000_000, 50, 27_777.78),
            (300_000, 200, 8333.33),
            (50_000, 200, 4000.0),
            (3_000_000, 100, 22_727.27),
            (90_000, 200, 5000.0),
            (60_000, 100, 5000.0),
        ];
        for (bps, rtt, per_s) in expected {
            // Whole bytes of a frame, and of its average packet: 1 of at least 250.
            assert!((near(bps, rtt) / per_s - 1.0).abs() < 0.004, "{bps} {rtt}: {}", near(bps, rtt));
        }
    }

    #[test]
    fn first_estimate_needs_five_seconds_or_overuse() {
        let mut aimd = Aimd::new(AimdConfig::LIBWEBRTC, PACKET);
        aimd.update(at(0), Usage::Normal, None);
        aimd.update(at(100), Usage::Normal, kbps(300));
        aimd.update(at(5100), Usage::Normal, kbps(300));
        assert!(!aimd.is_valid(), "not more than 5 s");
        // 300 kbit/s, and the first step in Increase adds 1 kbit/s.
        assert_eq!((aimd.update(at(5101), Usage::Normal, kbps(300)), aimd.is_valid()), (Rate::from_kbps(301), true));
        let mut aimd = Aimd::new(AimdConfig::LIBWEBRTC, PACKET);
        assert_eq!(aimd.update(at(0), Usage::Over, kbps(300)), Rate::from_kbps(250));
    }

    /// By hand: 0.85 · 1000 - 5 = 845. At 0.85 · 1200 - 5 = 1015 the capacity estimate counts: 0.85 · 1000. It never
    /// increases the rate. Below 5 kbit/s nothing is subtracted.
    #[test]
    fn decrease_keeps_85_percent_of_the_acknowledged_rate() {
        let mut aimd = started(1000);
        assert_eq!(aimd.update(at(0), Usage::Over, kbps(1000)), Rate::from_kbps(845));
        assert_eq!(aimd.state(), RateState::Hold);
        assert_eq!(aimd.update(at(200), Usage::Over, kbps(1200)), Rate::from_kbps(845), "850 is more");
        assert_eq!(aimd.update(at(400), Usage::Over, kbps(500)), Rate::from_kbps(420));
        assert_eq!(aimd.update(at(600), Usage::Under, kbps(500)), Rate::from_kbps(420), "held");
        assert_eq!(aimd.update(at(800), Usage::Over, kbps(1)), MIN_RATE);
    }

    /// Near 1000 kbit/s the growth is additive; 1061 kbit/s exceed 1000 + 3 sqrt(0.4 · 1000) = 1060, and it is exponential.
    #[test]
    fn growth_is_additive_near_the_last_overuse_and_exponential_elsewhere() {
        let mut aimd = started(1000);
        aimd.update(at(0), Usage::Over, kbps(1000));
        assert_eq!(aimd.update(at(200), Usage::Normal, kbps(1000)), Rate::from_kbps(845), "growth starts here");
        // 845 kbit/s: frames of 3521 bytes in 3 packets of 1174 bytes; 9392 bit / 0.6 s.
        assert_eq!(aimd.update(at(1200), Usage::Normal, kbps(1000)).as_bps(), 845_000 + 15_653);
        assert_eq!(aimd.update(at(1300), Usage::Normal, kbps(1060)).as_bps() / 100, 8622, "near");
        let near = aimd.rate().as_bps_f64();
        let far = aimd.update(at(2300), Usage::Normal, kbps(1061)).as_bps_f64();
        assert!((far / near - 1.08).abs() < 1e-5, "{near} {far}");
    }

    /// At an acknowledged rate of 400 kbit/s the bound is 610.
    #[test]
    fn growth_stops_at_the_headroom() {
        let mut aimd = started(600);
        aimd.update(at(0), Usage::Normal, kbps(400));
        assert_eq!(aimd.update(at(1000), Usage::Normal, kbps(400)), Rate::from_kbps(610));
        assert_eq!(aimd.update(at(2000), Usage::Normal, kbps(100)), Rate::from_kbps(610), "held, not decreased");
        assert_eq!(aimd.update(at(3000), Usage::Normal, None), Rate::from_kbps(610), "the last rate counts");
        let mut held = Aimd::new(AimdConfig { hold_in_alr: true, ..AimdConfig::LIBWEBRTC }, PACKET);
        held.set_start(Rate::from_kbps(600));
        held.set_in_alr(true);
        held.update(at(0), Usage::Normal, kbps(600));
        assert_eq!(held.update(at(1000), Usage::Normal, kbps(600)), Rate::from_kbps(600));
        held.set_in_alr(false);
        assert!(held.update(at(2000), Usage::Normal, kbps(600)) > Rate::from_kbps(640));
    }

    #[test]
    fn decreases_repeat_after_a_round_trip_or_at_half_the_rate() {
        let mut aimd = started(1000);
        assert!(aimd.may_decrease_again(at(0), Rate::from_kbps(900)), "never changed");
        aimd.set_estimate(at(0), Rate::from_kbps(800));
        for (rtt, due) in [(50, 50), (5, 10), (900, 200)] {
            aimd.set_rtt(TimeDelta::from_millis(rtt));
            assert!(!aimd.may_decrease_again(at(due - 1), Rate::from_kbps(400)));
            assert!(aimd.may_decrease_again(at(due), Rate::from_kbps(400)));
        }
        assert!(aimd.may_decrease_again(at(1), Rate::from_kbps(399)) && aimd.may_halve(at(1)));
    }
}
