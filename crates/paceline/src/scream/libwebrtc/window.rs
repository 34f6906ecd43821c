// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reference window (`UpdateRefWindow`): one reaction to loss, marks or delay, then growth, then the inflection point.
//!
//! It grows by a segment for each round-trip time, and after a while without reaction by 2 % more. Growth is slower with a short
//! round-trip time, near the inflection point, and where the delay shows that the link is nearly full.

use super::averages::VirtualRtt;
use super::config::{ScreamLibwebrtcConfig, since};
use super::queue_delay::QueueDelay;
use super::rounding::{ratio, scale_size, size_ratio};
use paceline_units::{DataSize, Time, TimeDelta};

/// The first inflection point.
const FIRST_INFLECTION: DataSize = DataSize::from_bytes(1);
/// The least square of the distance from the inflection point.
const NEAR_MIN: f64 = 0.1;
/// The least factor of the distance from the inflection point in backoff and growth.
const NEAR_FLOOR: f64 = 0.25;
/// The least factor of the average least delay.
const MIN_FLOOR: f64 = 0.1;

/// What a report means for the window. Averages contain the report.
#[derive(Clone, Copy, Debug)]
pub struct WindowInput<'a> {
    /// Bytes that are not marked.
    pub not_marked: DataSize,
    /// Whether a packet was marked.
    pub marked: bool,
    /// Whether losses are congestion: some in this report, and a loss level or a delay that confirm them.
    pub lost: bool,
    /// Whether the loss level forbids growth.
    pub lossy: bool,
    /// `l4s_alpha`.
    pub alpha: f64,
    pub delay: &'a QueueDelay,
    pub rtt: &'a VirtualRtt,
    /// The size up to which the window may grow.
    pub cap: DataSize,
}

/// The reference window.
#[derive(Clone, Debug)]
pub struct ReferenceWindow {
    pub size: DataSize,
    /// The size before the last fall after growth.
    pub inflection: DataSize,
    /// Whether the window has grown since then.
    may_inflect: bool,
    /// The last reaction.
    pub reacted: Option<Time>,
    /// The last fall.
    pub decreased: Option<Time>,
}

impl ReferenceWindow {
    pub fn new(config: &ScreamLibwebrtcConfig) -> Self {
        let (size, inflection) = (config.min_window, FIRST_INFLECTION);
        Self { size, inflection, may_inflect: true, reacted: None, decreased: None }
    }

    /// Sets the size with the first report.
    pub fn start(&mut self, size: DataSize, config: &ScreamLibwebrtcConfig) {
        self.size = size.max(config.min_window);
    }

    pub fn update(&mut self, now: Time, input: &WindowInput<'_>, config: &ScreamLibwebrtcConfig) {
        let before = self.size;
        let delayed = input.delay.is_detected(config);
        let is_due = since(now, self.reacted) >= input.rtt.reaction_interval(config);
        if is_due && (input.lost || input.marked || delayed) {
            self.reacted = Some(now);
            self.size = scale_size(self.size, 1.0 - self.backoff(input, config));
        }
        let is_calm = !input.marked && !input.lossy && !delayed;
        if is_calm || self.reacted == Some(now) {
            self.grow(now, input, config);
        }
        self.update_inflection(now, before);
    }

    /// Returns the share of the window that a reaction takes: that of the first cause of loss, marks, delay.
    fn backoff(&self, input: &WindowInput<'_>, config: &ScreamLibwebrtcConfig) -> f64 {
        if input.lost {
            return 1.0 - config.beta_loss;
        }
        // There are several reactions in a long round-trip time.
        let reactions = ratio(input.rtt.smoothed, config.virtual_rtt).max(1.0);
        if !input.marked {
            return input.delay.virtual_alpha(config) / 2.0 / reactions;
        }
        let backoff = input.alpha / 2.0 / reactions;
        if input.delay.is_detected(config) {
            return backoff;
        }
        let near = self.inflection_factor(config).max(NEAR_FLOOR);
        backoff * near * input.delay.min_factor(MIN_FLOOR, config)
    }

    fn grow(&mut self, now: Time, input: &WindowInput<'_>, config: &ScreamLibwebrtcConfig) {
        if self.size >= input.cap {
            return;
        }
        let growth = Growth {
            window: self.size,
            near: self.inflection_factor(config),
            since_reaction: since(now, self.reacted),
            delay: input.delay,
            rtt: input.rtt,
        };
        let increment = increment(input.not_marked, &growth, config);
        self.size = (self.size + increment).min(input.cap).max(config.min_window);
    }

    /// The inflection point is the size before the first fall after growth, if the report lowered the window in all.
    fn update_inflection(&mut self, now: Time, before: DataSize) {
        if self.size > before {
            self.may_inflect = true;
        }
        if self.size < before {
            self.decreased = Some(now);
            if core::mem::take(&mut self.may_inflect) {
                self.inflection = before;
            }
        }
    }

    /// Returns the factor of the distance from the inflection point, 0.1 (near) to 1.
    fn inflection_factor(&self, config: &ScreamLibwebrtcConfig) -> f64 {
        let distance = DataSize::from_bytes(self.size.as_bytes().abs_diff(self.inflection.as_bytes()));
        let distance = size_ratio(scale_size(distance, config.inflection_factor), self.inflection);
        (distance * distance).clamp(NEAR_MIN, 1.0)
    }
}

/// Returns the bound on bytes in flight (`max_data_in_flight`).
pub fn send_window(window: DataSize, delay: &QueueDelay, config: &ScreamLibwebrtcConfig) -> DataSize {
    let (least, most) = (config.overhead_min, config.overhead_max);
    scale_size(window, least + (most - least) * delay.min_factor(0.0, config))
}

/// What growth depends on.
#[derive(Clone, Copy, Debug)]
struct Growth<'a> {
    /// The window, after a reaction.
    window: DataSize,
    /// The factor of the distance from the inflection point.
    near: f64,
    /// The time since the last reaction.
    since_reaction: TimeDelta,
    delay: &'a QueueDelay,
    rtt: &'a VirtualRtt,
}

/// Returns by how much the window grows for a report on this many bytes that are not marked.
fn increment(not_marked: DataSize, growth: &Growth<'_>, config: &ScreamLibwebrtcConfig) -> DataSize {
    let additive = mss_share(growth.window, config) * short_rtt_factor(growth.rtt, config);
    let limited = additive
        * growth.near.max(NEAR_FLOOR)
        * growth.delay.min_factor(MIN_FLOOR, config)
        * growth.delay.difference_factor(config);
    scale_size(not_marked, limited * multiplicative(growth, config))
}

/// Returns a segment as a share of the window, at most 1 (`ref_window_mss_ratio`).
pub fn mss_share(window: DataSize, config: &ScreamLibwebrtcConfig) -> f64 {
    size_ratio(config.mss, window).min(1.0)
}

/// Returns the square of the time to a report over the virtual round-trip time, at most 1.
fn short_rtt_factor(rtt: &VirtualRtt, config: &ScreamLibwebrtcConfig) -> f64 {
    let share = ratio(rtt.to_report(), config.virtual_rtt);
    if share < 1.0 { share * share } else { 1.0 }
}

/// Returns the multiplicative factor, 1 or more: 1 at a reaction.
fn multiplicative(growth: &Growth<'_>, config: &ScreamLibwebrtcConfig) -> f64 {
    let calm = growth.rtt.at_least_virtual(config) * config.post_rtts as i64;
    let post = ratio(growth.since_reaction, calm).clamp(0.0, 1.0);
    1.0 + size_ratio(scale_size(growth.window, config.growth), config.mss) * post * growth.near
}
