//! The remote rate controller of GCC 2016: a three-state machine over the detector's signal (mmsys16, figure 4), and
//! the rate law of each state.
//!
//! ```text
//!            eta A_r      Increase
//! A_r(i) =   alpha R      Decrease      and always A_r <= 1.5 R                     (mmsys16, eq. 3)
//!            A_r          Hold
//! ```
//!
//! As printed `eta = 1.05` applies to each video frame, which at 30 frames a second is a factor of 4.3 a second and
//! cannot be ("about 25 seconds to reach" the new capacity, section 6.1). Here `eta` is per second:
//! `A_r *= eta^dt`, as later drafts have it.

use crate::blocks::Usage;
use libm::pow;
use paceline_units::{Rate, RemoteTime, TimeDelta};

/// Numbers of the rate laws.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateConfig {
    /// Growth per second in Increase.
    pub eta: f64,
    /// Share of the incoming rate kept in Decrease.
    pub alpha: f64,
    /// The rate is bounded by this many times the incoming rate.
    pub headroom: f64,
    /// How long, on both clocks, the rate may stay above that bound before it is lowered to it; meanwhile it does not grow. Zero: lowered
    /// at once, as the words of section 3.3 say. See `docs/algorithms/gcc-2016.md` for why the default is not zero.
    pub bound_hold: TimeDelta,
}

/// The state `sigma`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateState {
    /// Probe for more.
    Increase,
    /// Give way.
    Decrease,
    /// Let the queue drain.
    Hold,
}

impl RateState {
    /// Names, in order of [`index`](Self::index).
    pub const NAMES: &'static [&'static str] = &["increase", "decrease", "hold"];
    /// The state as a signal value.
    pub fn index(self) -> f64 {
        self as u8 as f64
    }
    /// Figure 4.
    pub fn next(self, usage: Usage) -> Self {
        match (self, usage) {
            (_, Usage::Over) => Self::Decrease,
            (_, Usage::Under) => Self::Hold,
            (Self::Decrease, Usage::Normal) => Self::Hold,
            (Self::Hold | Self::Increase, Usage::Normal) => Self::Increase,
        }
    }
}

/// Longest step that growth counts, so that a pause does not end in a leap (gcc-02, section 5.5: 1 s).
const STEP_MAX: TimeDelta = TimeDelta::from_secs(1);

/// The controller.
#[derive(Clone, Debug)]
pub struct RateController {
    config: RateConfig,
    min: Rate,
    state: RateState,
    rate: Rate,
    updated: Option<RemoteTime>,
    /// For how long the rate has been above its bound.
    beyond: Option<TimeDelta>,
}

impl RateController {
    /// At `start`, in Hold; never below `min`.
    pub fn new(config: RateConfig, start: Rate, min: Rate) -> Self {
        Self { config, min, state: RateState::Hold, rate: start, updated: None, beyond: None }
    }

    /// A frame was received, sent `departure` after the one before: the detector's signal and the incoming rate `R`,
    /// `None` before a whole window of it has passed; until then the rate holds. Answers `A_r`.
    pub fn update(&mut self, now: RemoteTime, departure: TimeDelta, usage: Usage, incoming: Option<Rate>) -> Rate {
        let dt = (now - self.updated.replace(now).unwrap_or(now)).min(STEP_MAX);
        self.state = self.state.next(usage);
        let Some(incoming) = incoming else { return self.rate };
        let c = &self.config;
        let rate = match self.state {
            RateState::Increase => increase(self.rate, c.eta, dt),
            RateState::Decrease => decrease(incoming, c.alpha).min(self.rate),
            RateState::Hold => self.rate,
        };
        let bound = incoming.scale(c.headroom);
        if rate <= bound {
            (self.rate, self.beyond) = (rate, None);
            return self.floor();
        }
        // A pause takes long to arrive and was not long to send, its backlog the other way round: neither is evidence.
        let passed = departure.min(dt).max(TimeDelta::ZERO);
        let beyond = *self.beyond.insert(self.beyond.map_or(TimeDelta::ZERO, |b| b + passed));
        self.rate = if beyond >= c.bound_hold { bound } else { rate.min(self.rate) };
        self.floor()
    }

    fn floor(&mut self) -> Rate {
        self.rate = self.rate.max(self.min);
        self.rate
    }

    /// `A_r`.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// `sigma`.
    pub fn state(&self) -> RateState {
        self.state
    }
}

/// Eq. 3, Decrease. Where `R` lags behind a rate that has just been cut, it may exceed that rate: the caller keeps a
/// decrease from being a rise, as libwebrtc does.
fn decrease(incoming: Rate, alpha: f64) -> Rate {
    incoming.scale(alpha)
}

/// Eq. 3, Increase, with eta per second.
fn increase(rate: Rate, eta: f64, dt: TimeDelta) -> Rate {
    rate.scale(pow(eta, dt.as_secs_f64()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAPER: RateConfig = RateConfig { eta: 1.05, alpha: 0.85, headroom: 1.5, bound_hold: TimeDelta::ZERO };
    const MIN: Rate = Rate::from_kbps(30);

    #[test]
    fn figure_4() {
        use RateState::{Decrease, Hold, Increase};
        for state in [Increase, Decrease, Hold] {
            assert_eq!(state.next(Usage::Over), Decrease);
            assert_eq!(state.next(Usage::Under), Hold);
        }
        assert_eq!(Decrease.next(Usage::Normal), Hold);
        assert_eq!(Hold.next(Usage::Normal), Increase);
        assert_eq!(Increase.next(Usage::Normal), Increase);
    }

    /// Vector V2.4: 1000 grows to 1050 in a second, is capped to 975 by R = 650, falls to 765 at R = 900.
    #[test]
    fn rate_laws() {
        let after = |usage, r: u64| {
            let mut c = RateController::new(PAPER, Rate::from_kbps(1000), MIN);
            c.update(RemoteTime::from_millis(0), TimeDelta::ZERO, Usage::Normal, Some(Rate::from_kbps(2000)));
            c.update(RemoteTime::from_millis(1000), TimeDelta::ZERO, usage, Some(Rate::from_kbps(r))).as_bps()
        };
        assert_eq!(after(Usage::Normal, 2000), 1_050_000);
        assert_eq!(after(Usage::Normal, 650), 975_000);
        assert_eq!(after(Usage::Over, 900), 765_000);
        assert_eq!(after(Usage::Under, 900), 1_000_000);
        assert_eq!(after(Usage::Over, 0), 30_000, "the floor");
        assert_eq!(after(Usage::Over, 2000), 1_000_000, "a decrease is no rise");
    }

    #[test]
    fn the_bound_waits_for_time_on_both_clocks() {
        let config = RateConfig { bound_hold: TimeDelta::from_millis(100), ..PAPER };
        let mut c = RateController::new(config, Rate::from_kbps(1000), MIN);
        // After a pause of 300 ms frames sent 33 ms apart arrive at 40 % of the rate; then the rest has come.
        let mut frame = |at, kbps| {
            let departure = TimeDelta::from_millis(33);
            c.update(RemoteTime::from_millis(at), departure, Usage::Under, Some(Rate::from_kbps(kbps))).as_bps() / 1000
        };
        assert_eq!([frame(300, 400), frame(305, 500), frame(310, 900)], [1000, 1000, 1000]);
        // A fall of capacity stays: after 4 · 33 ms it is over 100.
        assert_eq!([400, 433, 466, 499, 532].map(|at| frame(at, 400)), [1000, 1000, 1000, 1000, 600]);
    }

    #[test]
    fn growth_per_second_does_not_depend_on_the_frame_rate() {
        let grown = |fps: i64| {
            let mut c = RateController::new(PAPER, Rate::from_kbps(1000), MIN);
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
