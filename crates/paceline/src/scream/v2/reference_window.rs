// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reference window (draft, section "Reference Window Update").
//!
//! ```text
//! loss:          ref_wnd *= BETA_LOSS           classic mark: ref_wnd *= BETA_ECN
//! L4S mark:      ref_wnd *= 1 - backoff(l4s_alpha)
//! virtual mark:  ref_wnd *= 1 - backoff(l4s_alpha_v)
//! feedback:      ref_wnd += (acked - acked_ce) MSS / ref_wnd · scales        if bytes in flight use the window
//! ```
//!
//! Windows and sizes are in bytes, delays in seconds.

use crate::{Setup, params};
use paceline_units::{DataSize, Time, TimeDelta};

params! {
    /// The parameters of the window.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct WindowConfig {
        /// The draft.
        const DRAFT;

        /// Lowest and initial window, with packets of 1200 B, otherwise in proportion.
        min as "min_ref_wnd": DataSize = DataSize::from_bytes(3000), in 500.0..=1e6,
            from "MIN_REF_WND; C++: 2 packets";
        /// Size of a full packet, with packets of 1200 B, otherwise in proportion.
        mss: DataSize = DataSize::from_bytes(1000), in 100.0..=65_535.0, from "MSS; C++: the largest packet sent";
        /// Share of the window that remains after a loss event.
        beta_loss: f64 = 0.7, in 0.1..=1.0, from "BETA_LOSS";
        /// Share of the window that remains after a classic mark.
        beta_ecn: f64 = 0.8, in 0.1..=1.0, from "BETA_ECN; C++: 0.9";
        /// Round-trip time below which growth is slower.
        virtual_rtt as "virtual_rtt_ms": TimeDelta = TimeDelta::from_millis(25), in 0.1..=1e3, from "VIRTUAL_RTT";
        /// Longest time between two reactions to congestion; the backoff is divided by `s_rtt` over it.
        reaction as "reaction_ms": TimeDelta = TimeDelta::from_millis(25), in 0.1..=1e3,
            from "draft: VIRTUAL_RTT; C++: more than 1966/65536 s";
        /// Number of round-trip times after congestion until growth is multiplicative.
        post_congestion_rtts as "post_rtts": f64 = 100.0, in 1.0..=1e4, from "POST_CONGESTION_DELAY_RTT; C++: 200";
        /// Shortest of those round-trip times.
        post_congestion_floor as "post_floor_ms": TimeDelta = TimeDelta::from_millis(25), in 0.0..=1e3,
            from "draft: VIRTUAL_RTT; C++: none";
        /// Factor of multiplicative growth.
        growth: f64 = 0.02, in 0.0..=1.0, from "MUL_INCREASE_FACTOR; C++: 0.05";
        /// Window over the most bytes in flight.
        headroom as "head_room": f64 = 1.5, in 1.0..=10.0, from "BYTES_IN_FLIGHT_HEAD_ROOM; C++: 2; libwebrtc: 1.1";
        /// Bytes in flight over the window while the delay varies.
        overhead_min: f64 = 1.5, in 1.0..=10.0, from "REF_WND_OVERHEAD_MIN";
        /// Bytes in flight over the window while the delay is constant.
        overhead_max: f64 = 3.0, in 1.0..=10.0, from "REF_WND_OVERHEAD_MAX; libwebrtc: 2";
        /// Whether losses and marks within the time of a reaction cause the next one; otherwise they are forgotten.
        remembers: bool = true, from "draft: 1; C++: 0";
        /// Whether losses cause at most one reaction per `s_rtt`, even if that is longer; otherwise they count as marks.
        loss_per_rtt: bool = false, from "draft: 0; C++: 1";
        /// Whether `l4s_alpha_v` is divided twice for a long round-trip time; otherwise once.
        virtual_twice: bool = false, from "draft: 0; C++: 1";
        /// Whether virtual marks slow growth like marks.
        virtual_counts: bool = false, from "draft: 0; C++: 1";
        /// Whether marks do not count while all packets are marked and the round-trip time falls.
        veto: bool = false, from "draft: 0; C++: 1";
        /// Whether the backoff is a quarter while the target is below 0.8 of the acknowledged rate.
        undershoot: bool = false, from "optional in the draft; C++: 1";
    }
}

impl WindowConfig {
    /// The authors' C++ of July 2026 (c8f84c3), where reactions are more than 1966 / 65536 s apart.
    pub const CPP: Self = Self {
        min: DataSize::from_bytes(2400),
        mss: DataSize::from_bytes(1200),
        beta_ecn: 0.9,
        reaction: TimeDelta::from_micros(30_014),
        post_congestion_rtts: 200.0,
        post_congestion_floor: TimeDelta::ZERO,
        growth: 0.05,
        headroom: 2.0,
        remembers: false,
        loss_per_rtt: true,
        virtual_twice: true,
        virtual_counts: true,
        veto: true,
        undershoot: true,
        ..Self::DRAFT
    };

    /// Returns the numbers for the packet size of a flow.
    pub fn for_packets(self, setup: &Setup) -> Self {
        Self { min: setup.scaled(self.min), mss: setup.scaled(self.mss), ..self }
    }
}

/// The least share of the backoff and of the growth close to the inflection point.
const CLOSE_MIN: f64 = 0.25;
/// The least value of `scl_t`.
const SCALE_MIN: f64 = 0.1;
/// The least share of the growth while the delay varies.
const JITTER_GROWTH_MIN: f64 = 0.1;
/// The least share of the backoff while the delay varies.
const JITTER_BACKOFF_MIN: f64 = 0.25;
/// Below this share of the target the queuing delay is small.
const SMALL_DELAY: f64 = 0.25;
/// After this many round-trip times without congestion a mark lowers the window to the bytes in flight.
const LONG_RTTS: f64 = 100.0;
/// `BACKOFF_SCALE_LOW_TARGETRATE`.
const UNDERSHOOT_BACKOFF: f64 = 0.25;

/// `scl_t`: 0.1 at the window of the last congestion, 1 far from it.
pub fn close_to_inflection(window: f64, inflection: f64) -> f64 {
    let scale = 8.0 * (window - inflection) / inflection;
    (scale * scale).clamp(SCALE_MIN, 1.0)
}

/// The state on which the backoff depends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Backoff {
    /// `s_rtt`, s.
    pub s_rtt: f64,
    /// `qdelay` over `qdelay_target`.
    pub delay: f64,
    /// `scl_t`.
    pub close: f64,
    /// `ref_wnd_delay_scale`.
    pub delay_scale: f64,
    /// Whether the target is below 0.8 of the acknowledged rate.
    pub undershoots: bool,
}

/// The part of the window that L4S marks take.
pub fn l4s_backoff(alpha: f64, state: &Backoff, config: &WindowConfig) -> f64 {
    let backoff = backoff(alpha, state, config);
    if state.delay < SMALL_DELAY {
        backoff * state.close.max(CLOSE_MIN) * state.delay_scale.max(JITTER_BACKOFF_MIN)
    } else {
        backoff
    }
}

/// Half of alpha, less for a long round-trip time, in which there are several reactions.
fn backoff(alpha: f64, state: &Backoff, config: &WindowConfig) -> f64 {
    let undershoot = if config.undershoot && state.undershoots { UNDERSHOOT_BACKOFF } else { 1.0 };
    alpha / 2.0 * undershoot / reactions(state.s_rtt, config)
}

/// The reactions per round-trip time, at least one.
fn reactions(s_rtt: f64, config: &WindowConfig) -> f64 {
    (s_rtt / config.reaction.as_secs_f64()).max(1.0)
}

/// The part of the window that virtual marks take.
fn virtual_backoff(alpha: f64, state: &Backoff, config: &WindowConfig) -> f64 {
    let twice = if config.virtual_twice { reactions(state.s_rtt, config) } else { 1.0 };
    backoff(alpha / twice, state, config)
}

/// `post_congestion_scale_t`: 0 at a congestion event, 1 after `POST_CONGESTION_DELAY_RTT`. Times are in seconds.
pub fn post_congestion_scale(since: f64, s_rtt: f64, config: &WindowConfig) -> f64 {
    let rtt = s_rtt.max(config.post_congestion_floor.as_secs_f64());
    (since / (config.post_congestion_rtts * rtt)).clamp(0.0, 1.0)
}

/// The state on which growth depends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Growth {
    /// `bytes_newly_acked_minus_ce_t`.
    pub acked: f64,
    /// `s_rtt`, s.
    pub s_rtt: f64,
    /// `scl_t`.
    pub close: f64,
    /// `ref_wnd_delay_scale`.
    pub delay_scale: f64,
    /// `post_congestion_scale_t`.
    pub post_congestion: f64,
}

/// `increment_t`.
pub fn window_increment(window: f64, growth: &Growth, config: &WindowConfig) -> f64 {
    let mss = bytes(config.mss);
    let additive = growth.acked * (mss / window).min(1.0);
    let short = (growth.s_rtt / config.virtual_rtt.as_secs_f64()).min(1.0);
    let factor = 1.0 + config.growth * window / mss * growth.post_congestion * growth.close;
    additive * short * growth.close.max(CLOSE_MIN) * growth.delay_scale.max(JITTER_GROWTH_MIN) * factor
}

/// `ref_wnd_overhead`.
pub fn window_overhead(delay_scale: f64, config: &WindowConfig) -> f64 {
    let (min, max) = (config.overhead_min, config.overhead_max);
    min + (max - min) * delay_scale
}

/// The content of feedback, for the window.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckSummary {
    /// `bytes_newly_acked`, `bytes_newly_acked_ce`.
    pub acked: DataSize,
    pub acked_ce: DataSize,
    /// Whether a loss was found that counts, and whether packets arrived with a mark.
    pub lost: bool,
    pub marked: bool,
    /// Whether marks are those of L4S.
    pub l4s: bool,
    /// `l4s_alpha`, and the last fraction.
    pub alpha: f64,
    pub fraction: f64,
    /// Whether the round-trip time falls.
    pub rtt_falls: bool,
    /// `l4s_alpha_v`.
    pub alpha_v: f64,
    pub s_rtt: TimeDelta,
    /// `qdelay` over `qdelay_target`.
    pub delay: f64,
    pub delay_scale: f64,
    pub undershoots: bool,
    /// The maximum of `max_bytes_in_flight` and its previous value, and the latter.
    pub flight_max: DataSize,
    pub flight_previous: DataSize,
    /// Whether the target is below its maximum.
    pub may_grow: bool,
    /// The bounds of a policer and near the highest rate.
    pub bound: f64,
}

/// `ref_wnd`.
#[derive(Clone, Debug)]
pub struct ReferenceWindow {
    /// The numbers.
    pub config: WindowConfig,
    /// `ref_wnd`, bytes.
    pub window: f64,
    /// `ref_wnd_i`; whether it may be updated.
    pub inflection: f64,
    may_inflect: bool,
    /// `last_congestion_detected_time`, `last_reaction_to_congestion_time`; `None` before the first.
    congested: Option<Time>,
    reacted: Option<Time>,
    /// Losses and marks since the last reaction.
    lost: bool,
    marked: bool,
}

impl ReferenceWindow {
    /// Creates a window of `MIN_REF_WND`.
    pub fn new(config: WindowConfig) -> Self {
        Self {
            config,
            window: bytes(config.min),
            inflection: 1.0,
            may_inflect: true,
            congested: None,
            reacted: None,
            lost: false,
            marked: false,
        }
    }

    /// Handles feedback: at most one reduction, then growth. Returns whether the window was reduced.
    pub(super) fn update(&mut self, now: Time, ack: &AckSummary) -> bool {
        let close = close_to_inflection(self.window, self.inflection);
        let is_reduced = self.reduce(now, ack, close);
        self.grow(now, ack, close);
        self.window = self.window.min(ack.bound).max(bytes(self.config.min));
        is_reduced
    }

    fn reduce(&mut self, now: Time, ack: &AckSummary, close: f64) -> bool {
        let since = self.reacted.map(|at| now - at);
        let passed = |interval| since.is_none_or(|since| since >= interval);
        let is_due = passed(self.config.reaction.min(ack.s_rtt));
        let is_loss_due = if self.config.loss_per_rtt { passed(ack.s_rtt) } else { is_due };
        self.lost |= ack.lost;
        self.marked |= ack.marked;
        if ack.lost || ack.marked {
            self.congested = Some(now);
        }
        let is_loss = self.lost && is_loss_due;
        let vetoed = self.config.veto && ack.l4s && ack.rtt_falls && ack.fraction >= 1.0;
        let is_marked = self.marked && is_due && !vetoed && !is_loss;
        let is_virtual = !is_loss && !is_marked && is_due && ack.alpha_v > 0.0;
        if !self.config.remembers {
            (self.lost, self.marked) = (false, false);
        }
        if !(is_loss || is_marked || is_virtual) {
            return false;
        }
        if core::mem::take(&mut self.may_inflect) {
            self.inflection = self.window;
        }
        let state = Backoff {
            s_rtt: ack.s_rtt.as_secs_f64(),
            delay: ack.delay,
            close,
            delay_scale: ack.delay_scale,
            undershoots: ack.undershoots,
        };
        if is_loss {
            self.window *= self.config.beta_loss;
        } else if is_marked && ack.l4s {
            let long = ack.s_rtt.max(self.config.virtual_rtt).scale(LONG_RTTS);
            if since.is_none_or(|since| since > long) && ack.flight_previous > DataSize::ZERO {
                self.window = self.window.min(bytes(ack.flight_previous));
            }
            self.window *= 1.0 - l4s_backoff(ack.alpha, &state, &self.config);
        } else if is_marked {
            self.window *= self.config.beta_ecn;
        } else {
            self.window *= 1.0 - virtual_backoff(ack.alpha_v, &state, &self.config);
            if self.config.virtual_counts {
                self.congested = Some(now);
            }
        }
        self.window = self.window.max(bytes(self.config.min));
        (self.lost, self.marked) = (false, false);
        self.reacted = Some(now);
        true
    }

    fn grow(&mut self, now: Time, ack: &AckSummary, close: f64) {
        let s_rtt = ack.s_rtt.as_secs_f64();
        let post_congestion =
            self.congested.map_or(1.0, |at| post_congestion_scale((now - at).as_secs_f64(), s_rtt, &self.config));
        let acked = bytes(ack.acked.saturating_sub(ack.acked_ce));
        let growth = Growth { acked, s_rtt, close, delay_scale: ack.delay_scale, post_congestion };
        let increment = window_increment(self.window, &growth, &self.config);
        let allowed = bytes(self.config.mss) + bytes(ack.flight_max) * self.config.headroom;
        if increment > 0.0 && self.window + increment <= allowed && ack.may_grow {
            self.window += increment;
            self.may_inflect = true;
        }
    }

    /// Returns whether the window is above what the bytes in flight allow it to be.
    pub fn is_unused(&self, flight_max: DataSize) -> bool {
        bytes(self.config.mss) + bytes(flight_max) * self.config.headroom < self.window
    }
}

fn bytes(size: DataSize) -> f64 {
    size.as_bytes() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: TimeDelta = TimeDelta::from_millis(50);

    fn near(value: f64, expected: f64) {
        assert!((value - expected).abs() < 0.01, "{value} is not {expected}");
    }

    /// A window of 40 kB that is used, with no sign of congestion.
    fn state(config: WindowConfig) -> (ReferenceWindow, AckSummary) {
        let window = ReferenceWindow { window: 40_000.0, ..ReferenceWindow::new(config) };
        let size = DataSize::from_bytes;
        let ack = AckSummary {
            acked: size(0),
            acked_ce: size(0),
            lost: false,
            marked: false,
            l4s: true,
            alpha: 0.2,
            fraction: 0.5,
            rtt_falls: false,
            alpha_v: 0.0,
            s_rtt: RTT,
            delay: 0.0,
            delay_scale: 1.0,
            undershoots: false,
            flight_max: size(40_000),
            flight_previous: size(40_000),
            may_grow: true,
            bound: f64::INFINITY,
        };
        (window, ack)
    }

    /// By hand: a loss leaves 0.7, a classic mark 0.8; an L4S mark takes 0.1, halved because of two reactions per round-trip
    /// time; a quarter of that at the inflection point.
    #[test]
    fn losses_and_marks_lower_the_window() {
        let after = |inflection: f64, change: &dyn Fn(&mut AckSummary)| {
            let (mut window, mut ack) = state(WindowConfig::DRAFT);
            window.inflection = inflection;
            change(&mut ack);
            assert!(window.update(Time::from_secs(9), &ack));
            assert_eq!(window.inflection, 40_000.0);
            window.window
        };
        near(after(20_000.0, &|ack| ack.lost = true), 28_000.0);
        near(after(20_000.0, &|ack| (ack.marked, ack.l4s) = (true, false)), 32_000.0);
        near(after(20_000.0, &|ack| ack.marked = true), 38_000.0);
        near(after(40_000.0, &|ack| ack.marked = true), 39_500.0);
        near(after(40_000.0, &|ack| (ack.marked, ack.delay) = (true, 0.3)), 38_000.0);
        near(after(20_000.0, &|ack| ack.alpha_v = 0.5), 35_000.0);
        near(
            after(20_000.0, &|ack| (ack.marked, ack.flight_previous) = (true, DataSize::from_bytes(20_000))),
            19_000.0,
        );
        near(after(20_000.0, &|ack| (ack.lost, ack.marked) = (true, true)), 28_000.0);
    }

    #[test]
    fn there_is_one_reaction_per_interval() {
        for (config, reactions) in [(WindowConfig::DRAFT, 3), (WindowConfig::CPP, 2)] {
            let (mut window, mut ack) = state(config);
            let mut count = 0;
            for ms in [0, 10, 25, 35, 50] {
                // Marks at 10 and 35 ms alone after the first: the draft remembers them, the C++ does not.
                ack.marked = ms != 25 && ms != 50;
                count += i32::from(window.update(Time::from_secs(9) + TimeDelta::from_millis(ms), &ack));
            }
            assert_eq!(count, reactions, "{config:?}");
        }
    }

    #[test]
    fn window_grows_only_while_it_is_used_and_the_target_may_rise() {
        let grown = |change: &dyn Fn(&mut AckSummary)| {
            let (mut window, mut ack) = state(WindowConfig::DRAFT);
            ack.acked = DataSize::from_bytes(40_000);
            change(&mut ack);
            window.update(Time::from_secs(9), &ack);
            window.window - 40_000.0
        };
        near(grown(&|_| {}), 1800.0);
        near(grown(&|ack| ack.acked_ce = DataSize::from_bytes(20_000)), 900.0);
        near(grown(&|ack| ack.s_rtt = TimeDelta::from_millis(5)), 360.0);
        near(grown(&|ack| ack.delay_scale = 0.0), 180.0);
        near(grown(&|ack| ack.flight_max = DataSize::from_bytes(26_000)), 0.0);
        near(grown(&|ack| ack.flight_max = DataSize::from_bytes(28_000)), 1800.0);
        near(grown(&|ack| ack.may_grow = false), 0.0);
        near(grown(&|ack| ack.bound = 30_000.0), -10_000.0);
        near(grown(&|ack| ack.bound = 1.0), 3000.0 - 40_000.0);
    }

    /// The vectors S1 to S7 of the authors' code, compiled with its state set; C++ numbers, 20 Mbit/s at most.
    #[test]
    fn window_moves_as_in_the_authors_code() {
        let update = |inflection: f64, locked: bool, change: &dyn Fn(&mut AckSummary)| {
            let (mut window, mut ack) = state(WindowConfig::CPP);
            (window.inflection, window.may_inflect) = (inflection, !locked);
            window.congested = Some(Time::from_secs(8));
            window.reacted = window.congested;
            change(&mut ack);
            window.update(Time::from_secs(10), &ack);
            window.window
        };
        let acked = |ack: &mut AckSummary| ack.acked = DataSize::from_bytes(10_000);
        assert_eq!(update(20_000.0, false, &acked), 40_400.0);
        assert_eq!(update(40_000.0, false, &acked).floor(), 40_077.0);
        let marked = |ms: i64, delay: f64| {
            move |ack: &mut AckSummary| (ack.marked, ack.s_rtt, ack.delay) = (true, TimeDelta::from_millis(ms), delay)
        };
        // The C++ counts times in 1 / 65536 s and truncates the window to bytes: up to 3 bytes.
        let within = |value: f64, theirs: f64| assert!((value - theirs).abs() <= 3.0, "{value} is not {theirs}");
        within(update(20_000.0, false, &marked(50, 0.05)), 37_599.0);
        within(update(40_000.0, false, &marked(50, 0.3)), 37_599.0);
        within(update(39_000.0, true, &marked(20, 0.05)), 39_000.0);
        within(update(20_000.0, false, &|ack| ack.lost = true), 28_000.0);
        within(update(20_000.0, false, &|ack| (ack.marked, ack.l4s) = (true, false)), 36_000.0);
        within(update(20_000.0, false, &|ack| ack.alpha_v = 0.6), 35_678.0);
    }
}
