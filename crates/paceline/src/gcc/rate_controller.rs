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

use crate::blocks::{Convergence, Usage};
use crate::{Block, Fields};
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
    /// Near convergence the rate grows by addition (gcc-02, section 5.5), for a round-trip time of this; none: by `eta`
    /// everywhere, as eq. 3 prints it.
    pub additive: Option<TimeDelta>,
}

impl Block for RateConfig {
    fn fields(&mut self, fields: &mut Fields<'_>) {
        fields.number("eta", "per s", (1.0, 10.0), &mut self.eta).says("growth in Increase");
        fields.number("alpha", "", (0.1, 1.0), &mut self.alpha).says("share of R kept in Decrease");
        fields.number("headroom", "", (1.0, 100.0), &mut self.headroom).says("bound of A_r over R");
        fields
            .millis("bound_hold_ms", (0.0, 1e6), &mut self.bound_hold)
            .says("how long R must stay too low before the bound lowers A_r");
        let mut rtt = self.additive.unwrap_or(TimeDelta::ZERO);
        fields
            .millis("additive_rtt_ms", (0.0, 1e4), &mut rtt)
            .says("round-trip time for additive growth near convergence");
        self.additive = Some(rtt).filter(|rtt| rtt.is_positive());
    }
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
    convergence: Convergence,
    /// For how long the rate has been above its bound.
    beyond: Option<TimeDelta>,
}

impl RateController {
    /// At `start`, in Hold; never below `min`.
    pub fn new(config: RateConfig, start: Rate, min: Rate) -> Self {
        Self {
            config,
            min,
            state: RateState::Hold,
            rate: start,
            updated: None,
            convergence: Convergence::new(),
            beyond: None,
        }
    }

    /// A frame was received, sent `departure` after the one before: the detector's signal and the incoming rate `R`,
    /// `None` before a whole window of it has passed; until then the rate holds. Answers `A_r`.
    pub fn update(&mut self, now: RemoteTime, departure: TimeDelta, usage: Usage, incoming: Option<Rate>) -> Rate {
        let dt = (now - self.updated.replace(now).unwrap_or(now)).min(STEP_MAX);
        self.state = self.state.next(usage);
        let Some(incoming) = incoming else { return self.rate };
        let c = &self.config;
        let rate = match self.state {
            RateState::Increase => {
                self.convergence.handle_growth(incoming);
                match c.additive.filter(|_| self.convergence.is_near()) {
                    Some(rtt) => self.rate + near_growth(self.rate, rtt).scale(dt.as_secs_f64()),
                    None => increase(self.rate, c.eta, dt),
                }
            }
            RateState::Decrease => {
                let rate = decrease(incoming, c.alpha);
                if rate < self.rate {
                    self.convergence.handle_decrease(incoming);
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

/// gcc-02, section 5.5: near convergence, half a packet per response time; answers the growth per second. At 30 frames a
/// second of packets of at most 1200 bytes, and never less than 4 kbit/s (libwebrtc).
pub(super) fn near_growth(rate: Rate, rtt: TimeDelta) -> Rate {
    const FRAMES_PER_SECOND: f64 = 30.0;
    const PACKET_BITS: f64 = 1200.0 * 8.0;
    const RESPONSE: TimeDelta = TimeDelta::from_millis(100);
    let frame = rate.as_bps_f64() / FRAMES_PER_SECOND;
    let packet = frame / (frame / PACKET_BITS).ceil().max(1.0);
    Rate::from_bps_f64((0.5 * packet / (rtt + RESPONSE).as_secs_f64()).max(4000.0))
}

/// Eq. 3, Increase, with eta per second.
fn increase(rate: Rate, eta: f64, dt: TimeDelta) -> Rate {
    rate.scale(pow(eta, dt.as_secs_f64()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAPER: RateConfig =
        RateConfig { eta: 1.05, alpha: 0.85, headroom: 1.5, bound_hold: TimeDelta::ZERO, additive: None };
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

    /// libwebrtc's own tests: 90 kbit/s at 200 ms and 60 kbit/s at 100 ms grow by 5 kbit/s a second. At 1 Mbit/s a frame is
    /// four packets of 8333 bits: half of one in 150 ms is 27.8 kbit/s a second. At 288 kbit/s a frame just fills a packet of
    /// 1200 bytes, at 289 kbit/s it takes two. Never below 4 kbit/s.
    #[test]
    fn near_convergence() {
        let growth = |kbps, rtt| near_growth(Rate::from_kbps(kbps), TimeDelta::from_millis(rtt)).as_bps();
        assert_eq!([growth(90, 200), growth(60, 100), growth(1000, 50), growth(30, 200)], [5000, 5000, 27_778, 4000]);
        assert_eq!([growth(288, 50), growth(289, 50)], [32_000, 16_056]);
        let config = RateConfig { additive: Some(TimeDelta::from_millis(50)), ..PAPER };
        let mut c = RateController::new(config, Rate::from_kbps(1000), MIN);
        let mut at = |ms, usage, r| {
            c.update(RemoteTime::from_millis(ms), TimeDelta::ZERO, usage, Some(Rate::from_kbps(r))).as_bps()
        };
        at(0, Usage::Normal, 1000);
        assert_eq!(at(1000, Usage::Normal, 1000), 1_050_000, "nothing is known yet");
        assert_eq!(at(1033, Usage::Over, 1000), 850_000);
        at(1066, Usage::Normal, 850);
        let grown = at(2066, Usage::Normal, 850);
        assert_eq!(grown, 850_000 + 31_481, "28333 bits a frame, 9444 a packet");
        assert_eq!(at(3066, Usage::Normal, 1200), (grown as f64 * 1.05).round() as u64, "far above 1000");
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
