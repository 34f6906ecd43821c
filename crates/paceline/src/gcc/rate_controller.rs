// SPDX-License-Identifier: MIT OR Apache-2.0
//! The remote rate controller of mmsys16 and of the drafts: a three-state machine over the detector's signal (mmsys16,
//! figure 4), and the rate law of each state.
//!
//! ```text
//!            eta A_r      Increase
//! A_r(i) =   alpha R      Decrease      and always A_r <= 1.5 R                     (mmsys16, eq. 3)
//!            A_r          Hold
//! ```
//!
//! As printed, `eta = 1.05` applies to each video frame. At 30 frames per second that is a factor of 4.3 per second,
//! which contradicts section 6.1 ("about 25 seconds to reach" the new capacity). Here `eta` is per second, as in the
//! drafts: `A_r *= eta^min(dt, 1 s)`.
//!
//! Near convergence, where `R` is within three standard deviations of its average at past decreases
//! ([`LinkCapacity`]), the drafts replace `eta` by additive growth:
//!
//! ```text
//! A_r += dt · max(4 kbit/s, 0.5 packet / response)                    (draft-ietf-rmcat-gcc-02, section 5.5)
//! A_r += max(1 kbit/s, 0.5 min(dt / response, 1) packet)              (draft of June 2015, section 4.4)
//!        response = 100 ms + RTT
//! ```

use crate::blocks::{LinkCapacity, RateState, Usage, average_packet_bits, near_growth};
use crate::{Setup, params};
use libm::pow;
use paceline_units::{DataSize, Rate, RemoteTime, TimeDelta};

/// The growth near convergence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NearGrowth {
    /// Per second, if there is a round-trip time for it (gcc-02); each decrease that lowers the rate counts in the average
    /// of `R`.
    PerSecond,
    /// Per update (draft of June 2015); each decrease counts in the average of `R`.
    PerUpdate,
}

params! {
    /// The parameters of the rate laws.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct RateConfig {
        /// mmsys16, eq. 3 and section 3.3. `docs/algorithms/gcc-2016.md` explains why `bound_hold` is not zero.
        const MMSYS16;

        /// Growth factor far from convergence.
        eta: f64 = 1.05, unit "per s", in 1.0..=10.0,
            from "eq. 3; printed per frame, used per second as in gcc-02 section 5.5";
        /// Share of R that Decrease keeps.
        alpha: f64 = 0.85, in 0.1..=1.0, from "eq. 3";
        /// Bound of A_r over R.
        headroom: f64 = 1.5, in 1.0..=100.0, from "section 3.3";
        /// Time for which A_r may exceed its bound before it is lowered to it; meanwhile it does not grow.
        bound_hold as "bound_hold_ms": TimeDelta = TimeDelta::from_millis(100), in 0.0..=1e6,
            from "section 3.3: 0, at once; here the detector's 100";
        /// Round-trip time for additive growth near convergence.
        additive_rtt as "additive_rtt_ms": TimeDelta = TimeDelta::ZERO, in 0.0..=1e4,
            from "gcc-02 section 5.5; 0 in eq. 3: growth by eta everywhere";
        /// Growth near convergence.
        near as _: NearGrowth = NearGrowth::PerSecond;
    }
}

impl RateConfig {
    /// draft-alvestrand-rmcat-congestion-03 of June 2015, section 4.4. A receiver that sends no media does not know the
    /// round-trip time: libwebrtc's `kDefaultRttMs`.
    pub const JUNE_2015: Self = Self {
        eta: 1.08,
        bound_hold: TimeDelta::ZERO,
        additive_rtt: TimeDelta::from_millis(200),
        near: NearGrowth::PerUpdate,
        ..Self::MMSYS16
    };
}

/// The longest time that one step of multiplicative growth covers (gcc-02, section 5.5: 1 s): a pause must not end in a large
/// step.
const STEP_MAX: TimeDelta = TimeDelta::from_secs(1);
/// The reaction time of filter and detector, which the response time includes.
const REACTION: TimeDelta = TimeDelta::from_millis(100);
/// The lowest additive growth per update.
const LEAST_GROWTH: Rate = Rate::from_bps(1000);

/// The controller.
#[derive(Clone, Debug)]
pub struct RateController {
    config: RateConfig,
    min: Rate,
    /// The largest packet (the drafts: 1200 bytes).
    packet: DataSize,
    state: RateState,
    rate: Rate,
    updated: Option<RemoteTime>,
    capacity: LinkCapacity,
    /// The time for which the rate has been above its bound.
    beyond: Option<TimeDelta>,
}

impl RateController {
    /// Creates a controller at the start rate, in the state Hold. The rate never falls below the minimum.
    pub fn new(config: RateConfig, setup: &Setup) -> Self {
        Self {
            config,
            min: setup.min,
            packet: setup.packet_size,
            state: RateState::Hold,
            rate: setup.start,
            updated: None,
            capacity: LinkCapacity::default(),
            beyond: None,
        }
    }

    /// Handles a group that was sent `departure` after the previous one, with the state of the detector and the
    /// incoming rate `R`. `R` is `None` before its first full window; until then the rate does not change. Returns
    /// `A_r`.
    pub fn update(&mut self, now: RemoteTime, departure: TimeDelta, usage: Usage, incoming: Option<Rate>) -> Rate {
        let dt = now - self.updated.replace(now).unwrap_or(now);
        self.state = self.state.next(usage);
        let Some(incoming) = incoming else { return self.rate };
        let c = self.config;
        let rate = match self.state {
            RateState::Increase => self.increased(incoming, dt),
            RateState::Decrease => {
                let rate = decrease(incoming, c.alpha);
                if rate < self.rate || c.near == NearGrowth::PerUpdate {
                    self.capacity.handle_decrease(incoming);
                }
                rate.min(self.rate)
            }
            RateState::Hold => self.rate,
        };
        let bound = incoming.scale(c.headroom);
        if rate <= bound {
            (self.rate, self.beyond) = (rate, None);
            return self.floor();
        }
        // After a pause the arrival interval is long and the departure interval short; its backlog has the opposite.
        // Neither shows that the rate is too high, so only the shorter interval counts.
        let passed = departure.min(dt).min(STEP_MAX).max(TimeDelta::ZERO);
        let beyond = *self.beyond.insert(self.beyond.map_or(TimeDelta::ZERO, |b| b + passed));
        self.rate = if beyond >= c.bound_hold { bound } else { rate.min(self.rate) };
        self.floor()
    }

    fn increased(&mut self, incoming: Rate, dt: TimeDelta) -> Rate {
        self.capacity.handle_growth(incoming);
        let (c, step) = (&self.config, dt.min(STEP_MAX));
        match c.near {
            NearGrowth::PerUpdate if self.capacity.is_known() => {
                self.rate + growth_per_update(self.rate, dt, c.additive_rtt, self.packet)
            }
            NearGrowth::PerSecond if self.capacity.is_known() && c.additive_rtt.is_positive() => {
                self.rate + near_growth(self.rate, c.additive_rtt, self.packet).scale(step.as_secs_f64())
            }
            _ => increase(self.rate, c.eta, step),
        }
    }

    fn floor(&mut self) -> Rate {
        self.rate = self.rate.max(self.min);
        self.rate
    }

    /// Sets the lowest rate, which applies at once.
    pub fn set_min(&mut self, min: Rate) {
        (self.min, self.rate) = (min, self.rate.max(min));
    }

    /// Sets the rate to the result of a probe, but not below the minimum.
    pub fn set_rate(&mut self, rate: Rate) {
        self.rate = rate.max(self.min);
    }

    /// Returns `A_r`.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// Returns `sigma`.
    pub fn state(&self) -> RateState {
        self.state
    }

    /// Returns whether a response time has passed since the last update.
    pub fn is_interval_over(&self, now: RemoteTime) -> bool {
        self.updated.is_none_or(|updated| now - updated >= response_time(self.config.additive_rtt))
    }
}

/// Eq. 3, Decrease. The result may exceed the rate if `R` lags behind a rate that has just decreased; the caller bounds
/// it, as libwebrtc does.
fn decrease(incoming: Rate, alpha: f64) -> Rate {
    incoming.scale(alpha)
}

/// Eq. 3, Increase, with eta per second.
fn increase(rate: Rate, eta: f64, dt: TimeDelta) -> Rate {
    rate.scale(pow(eta, dt.as_secs_f64()))
}

/// Draft of June 2015: `response_time_ms = 100 + rtt_ms`.
fn response_time(rtt: TimeDelta) -> TimeDelta {
    REACTION + rtt
}

/// Draft of June 2015: `max(1000, beta expected_packet_size_bits)`, with
/// `beta = 0.5 min(time_since_last_update_ms / response_time_ms, 1)`.
fn growth_per_update(rate: Rate, dt: TimeDelta, rtt: TimeDelta, packet: DataSize) -> Rate {
    let beta = 0.5 * (dt.as_secs_f64() / response_time(rtt).as_secs_f64()).min(1.0);
    Rate::from_bps_f64(beta * average_packet_bits(rate, packet)).max(LEAST_GROWTH)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAPER: RateConfig = RateConfig { bound_hold: TimeDelta::ZERO, ..RateConfig::MMSYS16 };
    const SETUP: Setup = Setup::new(Rate::from_kbps(1000), Rate::from_kbps(30), Rate::from_kbps(9000));

    #[test]
    fn states_follow_figure_4() {
        use RateState::{Decrease, Hold, Increase};
        for state in [Increase, Decrease, Hold] {
            assert_eq!(state.next(Usage::Over), Decrease);
            assert_eq!(state.next(Usage::Under), Hold);
        }
        assert_eq!(Decrease.next(Usage::Normal), Hold);
        assert_eq!(Hold.next(Usage::Normal), Increase);
        assert_eq!(Increase.next(Usage::Normal), Increase);
    }

    /// At 850 kbit/s a frame has 28333 bits, 9444 per packet: half of one in 150 ms is 31.481 kbit/s per second.
    #[test]
    fn growth_near_convergence_is_half_a_packet_per_response_time() {
        let config = RateConfig { additive_rtt: TimeDelta::from_millis(50), ..PAPER };
        let mut c = RateController::new(config, &SETUP);
        let mut at = |ms, usage, r| {
            c.update(RemoteTime::from_millis(ms), TimeDelta::ZERO, usage, Some(Rate::from_kbps(r))).as_bps()
        };
        at(0, Usage::Normal, 1000);
        assert_eq!(at(1000, Usage::Normal, 1000), 1_050_000, "the capacity is not known yet");
        assert_eq!(at(1033, Usage::Over, 1000), 850_000);
        at(1066, Usage::Normal, 850);
        let grown = at(2066, Usage::Normal, 850);
        assert_eq!(grown, 850_000 + 31_481, "28333 bits per frame, 9444 per packet");
        assert_eq!(at(3066, Usage::Normal, 1200), (grown as f64 * 1.05).round() as u64, "far above 1000");
    }

    #[test]
    fn bound_applies_after_the_hold_time_on_both_clocks() {
        let config = RateConfig { bound_hold: TimeDelta::from_millis(100), ..PAPER };
        let mut c = RateController::new(config, &SETUP);
        // After a pause of 300 ms, frames sent 33 ms apart arrive at 40 % of the rate, until the backlog has arrived.
        let mut frame = |at, kbps| {
            let departure = TimeDelta::from_millis(33);
            c.update(RemoteTime::from_millis(at), departure, Usage::Under, Some(Rate::from_kbps(kbps))).as_bps() / 1000
        };
        assert_eq!([frame(300, 400), frame(305, 500), frame(310, 900)], [1000, 1000, 1000]);
        // A lower capacity lasts: after 4 · 33 ms it exceeds the 100 ms.
        assert_eq!([400, 433, 466, 499, 532].map(|at| frame(at, 400)), [1000, 1000, 1000, 1000, 600]);
    }

    #[test]
    fn growth_is_independent_of_the_frame_rate() {
        let grown = |fps: i64| {
            let mut c = RateController::new(PAPER, &SETUP);
            for i in 0..=fps * 10 {
                c.update(
                    RemoteTime::from_nanos(i * 1_000_000_000 / fps),
                    TimeDelta::ZERO,
                    Usage::Normal,
                    Some(Rate::from_kbps(9000)),
                );
            }
            c.rate().as_bps() as f64
        };
        // 1.05^10 = 1.628895
        assert!((grown(30) - 1_628_895.0).abs() < 300.0, "{}", grown(30));
        assert!((grown(7) - 1_628_895.0).abs() < 300.0, "{}", grown(7));
    }

    /// Returns a controller of the draft of June 2015, at 1000 kbit/s.
    fn at_1000() -> RateController {
        RateController::new(RateConfig::JUNE_2015, &SETUP)
    }

    fn step(c: &mut RateController, ms: i64, usage: Usage, kbps: u64) -> u64 {
        c.update(RemoteTime::from_millis(5000 + ms), TimeDelta::ZERO, usage, Some(Rate::from_kbps(kbps))).as_bps()
    }

    /// By hand: 8 % in a second, also after two; 1.08^0.3 = 1.023357 in 300 ms.
    #[test]
    fn growth_far_from_convergence_is_eight_percent_per_second() {
        for (ms, expected) in [(1000, 1_080_000), (2000, 1_080_000), (300, 1_023_357)] {
            let mut c = at_1000();
            step(&mut c, 0, Usage::Normal, 1000);
            assert_eq!(step(&mut c, ms, Usage::Normal, 1000), expected, "{ms} ms");
        }
    }

    /// By hand: over-use at 1000 gives 850 kbit/s. A frame has 28333 bits in three packets of 9444: half of one in a
    /// response time of 300 ms, no more in a longer time, a quarter of one in 150 ms, and 1 kbit/s at least. At 1200
    /// kbit/s the path has more capacity: 8 %.
    #[test]
    fn growth_per_update_is_at_most_half_a_packet() {
        for (ms, kbps, expected) in
            [(300, 900, 854_722), (5000, 900, 854_722), (150, 900, 852_361), (10, 900, 851_000), (1000, 1200, 918_000)]
        {
            let mut c = at_1000();
            assert_eq!(step(&mut c, 0, Usage::Over, 1000), 850_000);
            assert_eq!(step(&mut c, 300, Usage::Under, 900), 850_000);
            assert_eq!(step(&mut c, 300 + ms, Usage::Normal, kbps), expected, "{ms} ms");
        }
    }

    #[test]
    fn bound_and_minimum_apply_at_each_update() {
        let mut c = at_1000();
        step(&mut c, 0, Usage::Normal, 1000);
        assert_eq!(step(&mut c, 300, Usage::Under, 500), 750_000, "1.5 R");
        assert_eq!(step(&mut c, 600, Usage::Over, 2000), 750_000, "a decrease never raises the rate");
        assert_eq!(step(&mut c, 900, Usage::Over, 0), SETUP.min.as_bps());
        let mut c = at_1000();
        assert_eq!(c.update(RemoteTime::from_millis(0), TimeDelta::ZERO, Usage::Over, None), Rate::from_kbps(1000));
    }

    #[test]
    fn updates_are_due_each_response_time() {
        let mut c = at_1000();
        step(&mut c, 0, Usage::Normal, 1000);
        assert!(!c.is_interval_over(RemoteTime::from_millis(5299)));
        assert!(c.is_interval_over(RemoteTime::from_millis(5300)));
    }
}
