//! The rate control of the draft of June 2015 (draft-alvestrand-rmcat-congestion-03, section 4.4).
//!
//! ```text
//! Increase   A = 1.08^min(dt, 1 s) A                              far from convergence
//!            A = A + max(1 kbit/s, beta packet)                   near convergence
//!            beta = 0.5 min(dt / response, 1),  response = 100 ms + RTT
//! Decrease   A = 0.85 R
//! Hold       A
//! always     A <= 1.5 R
//! ```
//!
//! Near convergence: `R` is within three standard deviations of its average at past decreases ([`LinkCapacity`]).

use super::RateState;
use crate::blocks::{LinkCapacity, Usage};
use crate::{Setup, params};
use libm::pow;
use paceline_units::{DataSize, Rate, RemoteTime, TimeDelta};

params! {
    /// The parameters of the rate control.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct DraftRateConfig {
        /// draft-alvestrand-rmcat-congestion-03, section 4.4.
        const JUNE_2015;

        /// Growth factor far from convergence.
        eta: f64 = 1.08, unit "per s", in 1.0..=10.0, from "section 4.4";
        /// Share of R that Decrease keeps.
        alpha: f64 = 0.85, in 0.1..=1.0, from "section 4.4";
        /// Bound of A over R.
        headroom: f64 = 1.5, in 1.0..=100.0, from "section 4.4";
        /// Round-trip time of the response time, which a receiver that sends no media does not know.
        rtt as "rtt_ms": TimeDelta = TimeDelta::from_millis(200), in 0.0..=1e4,
            from "section 4.4; libwebrtc's kDefaultRttMs";
    }
}

/// The longest time that one step of multiplicative growth covers.
const STEP_MAX: TimeDelta = TimeDelta::from_secs(1);
/// The reaction time of filter and detector, which the response time includes.
const REACTION: TimeDelta = TimeDelta::from_millis(100);
/// The lowest additive growth per update.
const LEAST_GROWTH: Rate = Rate::from_bps(1000);
/// The frame rate by which the draft estimates the packet size.
const FRAMES_PER_SECOND: f64 = 30.0;

/// The controller.
#[derive(Clone, Debug)]
pub struct DraftRate {
    config: DraftRateConfig,
    min: Rate,
    /// The largest packet (the draft: 1200 bytes).
    packet: DataSize,
    state: RateState,
    rate: Rate,
    updated: Option<RemoteTime>,
    capacity: LinkCapacity,
}

impl DraftRate {
    /// Creates a controller at the start rate, in the state Increase. The rate never falls below the minimum.
    pub fn new(config: DraftRateConfig, setup: &Setup) -> Self {
        Self {
            config,
            min: setup.min,
            packet: setup.packet_size,
            state: RateState::Increase,
            rate: setup.start,
            updated: None,
            capacity: LinkCapacity::new(),
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

    /// Returns whether a response time has passed since the last update.
    pub fn is_interval_over(&self, now: RemoteTime) -> bool {
        self.updated.is_none_or(|updated| now - updated >= response_time(self.config.rtt))
    }

    /// Updates the rate from the state of the detector and the incoming rate. `incoming` is `None` before the first full
    /// window of `R`; until then the rate does not change. Returns `A`.
    pub fn update(&mut self, now: RemoteTime, usage: Usage, incoming: Option<Rate>) -> Rate {
        let dt = now - self.updated.replace(now).unwrap_or(now);
        self.state = next_state(self.state, usage);
        let Some(incoming) = incoming else { return self.rate };
        let c = &self.config;
        let rate = match self.state {
            RateState::Increase => {
                self.capacity.handle_growth(incoming);
                match self.capacity.is_known() {
                    true => additive(self.rate, dt, c.rtt, self.packet),
                    false => multiplicative(self.rate, c.eta, dt),
                }
            }
            RateState::Decrease => {
                self.capacity.handle_decrease(incoming);
                incoming.scale(c.alpha).min(self.rate)
            }
            RateState::Hold => self.rate,
        };
        self.rate = rate.min(incoming.scale(c.headroom)).max(self.min);
        self.rate
    }
}

/// The table of state transitions. A blank field keeps the state.
fn next_state(state: RateState, usage: Usage) -> RateState {
    match (usage, state) {
        (Usage::Over, _) => RateState::Decrease,
        (Usage::Normal, RateState::Hold | RateState::Increase) => RateState::Increase,
        (Usage::Normal, RateState::Decrease) | (Usage::Under, _) => RateState::Hold,
    }
}

/// `response_time_ms = 100 + rtt_ms`.
fn response_time(rtt: TimeDelta) -> TimeDelta {
    REACTION + rtt
}

/// `A(i) = eta A(i-1)`, with `eta = 1.08^min(time_since_last_update_ms / 1000, 1)`.
fn multiplicative(rate: Rate, per_second: f64, dt: TimeDelta) -> Rate {
    rate.scale(pow(per_second, dt.min(STEP_MAX).as_secs_f64()))
}

/// `A(i) = A(i-1) + max(1000, beta expected_packet_size_bits)`, with
/// `beta = 0.5 min(time_since_last_update_ms / response_time_ms, 1)`.
fn additive(rate: Rate, dt: TimeDelta, rtt: TimeDelta, packet: DataSize) -> Rate {
    let beta = 0.5 * (dt.as_secs_f64() / response_time(rtt).as_secs_f64()).min(1.0);
    rate + Rate::from_bps_f64(beta * expected_packet_bits(rate, packet)).max(LEAST_GROWTH)
}

/// `avg_packet_size_bits = bits_per_frame / ceil(bits_per_frame / (1200 · 8))`, with `bits_per_frame = A / 30`.
fn expected_packet_bits(rate: Rate, packet: DataSize) -> f64 {
    let frame = rate.as_bps_f64() / FRAMES_PER_SECOND;
    frame / libm::ceil(frame / (packet.as_bytes() as f64 * 8.0)).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::SETUP;

    const CONFIG: DraftRateConfig = DraftRateConfig::JUNE_2015;

    /// Returns a controller at 1000 kbit/s.
    fn at_1000() -> DraftRate {
        DraftRate { rate: Rate::from_kbps(1000), ..DraftRate::new(CONFIG, &SETUP) }
    }

    fn step(c: &mut DraftRate, ms: i64, usage: Usage, kbps: u64) -> u64 {
        c.update(RemoteTime::from_millis(5000 + ms), usage, Some(Rate::from_kbps(kbps))).as_bps()
    }

    #[test]
    fn states_follow_the_table() {
        use RateState::{Decrease, Hold, Increase};
        let row = |usage| [Hold, Increase, Decrease].map(|state| next_state(state, usage));
        assert_eq!(row(Usage::Over), [Decrease, Decrease, Decrease]);
        assert_eq!(row(Usage::Normal), [Increase, Increase, Hold]);
        assert_eq!(row(Usage::Under), [Hold, Hold, Hold]);
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
    fn growth_near_convergence_is_half_a_packet_per_response_time() {
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
        assert_eq!(c.update(RemoteTime::from_millis(0), Usage::Over, None), Rate::from_kbps(1000));
    }

    #[test]
    fn updates_are_due_each_response_time() {
        let mut c = at_1000();
        step(&mut c, 0, Usage::Normal, 1000);
        assert!(!c.is_interval_over(RemoteTime::from_millis(5299)));
        assert!(c.is_interval_over(RemoteTime::from_millis(5300)));
    }
}
