//! The remote rate controller of GCC 2016: a three-state machine over the detector's signal (mmsys16, figure 4), and
//! the rate law of each state.
//!
//! ```text
//!            eta A_r      Increase
//! A_r(i) =   alpha R      Decrease      and always A_r <= 1.5 R                     (mmsys16, eq. 3)
//!            A_r          Hold
//! ```
//!
//! As printed, `eta = 1.05` applies to each video frame. At 30 frames per second that is a factor of 4.3 per second,
//! which contradicts section 6.1 ("about 25 seconds to reach" the new capacity). Here `eta` is per second, as in later
//! drafts: `A_r *= eta^dt`.

use super::RateState;
use crate::blocks::{LinkCapacity, Usage};
use crate::{Setup, params};
use libm::pow;
use paceline_units::{DataSize, Rate, RemoteTime, TimeDelta};

params! {
    /// The parameters of the rate laws.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct RateConfig {
        /// mmsys16, eq. 3 and section 3.3. `docs/algorithms/gcc-2016.md` explains why `bound_hold` is not zero.
        const MMSYS16;

        /// Growth factor in Increase.
        eta: f64 = 1.05, unit "per s", in 1.0..=10.0,
            from "eq. 3; printed per frame, used per second as in gcc-02 section 5.5";
        /// Share of R that Decrease keeps.
        alpha: f64 = 0.85, in 0.1..=1.0, from "eq. 3";
        /// Bound of A_r over R.
        headroom: f64 = 1.5, in 1.0..=100.0, from "section 3.3";
        /// Time for which A_r may exceed its bound before it is lowered to it; meanwhile it does not grow.
        bound_hold as "bound_hold_ms": TimeDelta = TimeDelta::from_millis(100), in 0.0..=1e6,
            from "section 3.3: 0, at once; here the detector's 100";
        /// Round-trip time for additive growth near convergence; 0: growth by eta everywhere.
        additive_rtt as "additive_rtt_ms": TimeDelta = TimeDelta::ZERO, in 0.0..=1e4,
            from "gcc-02 section 5.5; 0 in eq. 3";
    }
}

/// The longest time that one growth step covers (gcc-02, section 5.5: 1 s): a pause must not end in a large step.
const STEP_MAX: TimeDelta = TimeDelta::from_secs(1);

/// The controller.
#[derive(Clone, Debug)]
pub struct RateController {
    config: RateConfig,
    min: Rate,
    /// The largest packet.
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
            capacity: LinkCapacity::new(),
            beyond: None,
        }
    }

    /// Handles a frame that was sent `departure` after the previous one, with the state of the detector and the
    /// incoming rate `R`. `R` is `None` before its first full window; until then the rate does not change. Returns
    /// `A_r`.
    pub fn update(&mut self, now: RemoteTime, departure: TimeDelta, usage: Usage, incoming: Option<Rate>) -> Rate {
        let dt = (now - self.updated.replace(now).unwrap_or(now)).min(STEP_MAX);
        self.state = self.state.next(usage);
        let Some(incoming) = incoming else { return self.rate };
        let c = &self.config;
        let rate = match self.state {
            RateState::Increase => {
                self.capacity.handle_growth(incoming);
                if c.additive_rtt.is_positive() && self.capacity.is_known() {
                    self.rate + near_growth(self.rate, c.additive_rtt, self.packet).scale(dt.as_secs_f64())
                } else {
                    increase(self.rate, c.eta, dt)
                }
            }
            RateState::Decrease => {
                let rate = decrease(incoming, c.alpha);
                if rate < self.rate {
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
        let passed = departure.min(dt).max(TimeDelta::ZERO);
        let beyond = *self.beyond.insert(self.beyond.map_or(TimeDelta::ZERO, |b| b + passed));
        self.rate = if beyond >= c.bound_hold { bound } else { rate.min(self.rate) };
        self.floor()
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
}

/// Eq. 3, Decrease. The result may exceed the rate if `R` lags behind a rate that has just decreased; the caller bounds
/// it, as libwebrtc does.
fn decrease(incoming: Rate, alpha: f64) -> Rate {
    incoming.scale(alpha)
}

/// Returns the growth per second near the last over-use: half a packet per response time (gcc-02, section 5.5), for 30
/// frames per second in packets of at most `packet` (libwebrtc: 1200 bytes), and at least 4 kbit/s.
pub(super) fn near_growth(rate: Rate, rtt: TimeDelta, packet: DataSize) -> Rate {
    const FRAMES_PER_SECOND: f64 = 30.0;
    const RESPONSE: TimeDelta = TimeDelta::from_millis(100);
    let packet_bits = packet.as_bytes() as f64 * 8.0;
    let frame = rate.as_bps_f64() / FRAMES_PER_SECOND;
    let packet = frame / libm::ceil(frame / packet_bits).max(1.0);
    Rate::from_bps_f64((0.5 * packet / (rtt + RESPONSE).as_secs_f64()).max(4000.0))
}

/// Eq. 3, Increase, with eta per second.
fn increase(rate: Rate, eta: f64, dt: TimeDelta) -> Rate {
    rate.scale(pow(eta, dt.as_secs_f64()))
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

    /// libwebrtc's own tests: 90 kbit/s at 200 ms and 60 kbit/s at 100 ms grow by 5 kbit/s per second. At 1 Mbit/s a
    /// frame has four packets of 8333 bits: half of one in 150 ms is 27.8 kbit/s per second. At 288 kbit/s a frame just
    /// fills a packet of 1200 bytes, at 289 kbit/s it needs two. The growth is at least 4 kbit/s.
    #[test]
    fn growth_near_the_last_overuse_is_half_a_packet_per_response_time() {
        let growth =
            |kbps, rtt| near_growth(Rate::from_kbps(kbps), TimeDelta::from_millis(rtt), Setup::PACKET_SIZE).as_bps();
        assert_eq!([growth(90, 200), growth(60, 100), growth(1000, 50), growth(30, 200)], [5000, 5000, 27_778, 4000]);
        assert_eq!([growth(288, 50), growth(289, 50)], [32_000, 16_056]);
        // In packets of 600 bytes: at 1 Mbit/s seven packets of 4762 bits, at 144 kbit/s one, at 145 kbit/s two.
        let small =
            |kbps| near_growth(Rate::from_kbps(kbps), TimeDelta::from_millis(50), DataSize::from_bytes(600)).as_bps();
        assert_eq!([small(1000), small(144), small(145)], [15_873, 16_000, 8056]);
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

    /// Vector V2.4: 1000 grows to 1050 in a second, is bounded to 975 by R = 650, falls to 765 at R = 900.
    #[test]
    fn rate_follows_equation_3() {
        let after = |usage, r: u64| {
            let mut c = RateController::new(PAPER, &SETUP);
            c.update(RemoteTime::from_millis(0), TimeDelta::ZERO, Usage::Normal, Some(Rate::from_kbps(2000)));
            c.update(RemoteTime::from_millis(1000), TimeDelta::ZERO, usage, Some(Rate::from_kbps(r))).as_bps()
        };
        assert_eq!(after(Usage::Normal, 2000), 1_050_000);
        assert_eq!(after(Usage::Normal, 650), 975_000);
        assert_eq!(after(Usage::Over, 900), 765_000);
        assert_eq!(after(Usage::Under, 900), 1_000_000);
        assert_eq!(after(Usage::Over, 0), 30_000, "the minimum");
        assert_eq!(after(Usage::Over, 2000), 1_000_000, "a decrease never increases the rate");
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
}
