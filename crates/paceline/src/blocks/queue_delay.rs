// SPDX-License-Identifier: MIT OR Apache-2.0
//! The queuing delay: the one-way delay minus the base delay, which is the minimum of the last minutes (RFC 8298,
//! section 4.1.2, and RFC 8698, section 5.1.1, after LEDBAT: RFC 6817, section 2.4.2) or of the whole call (med16,
//! section II-A).
//!
//! ```text
//! qdelay = owd - min(base_delay_history)
//! ```
//!
//! The clocks of sender and receiver need not agree: their offset cancels. One minimum is kept per span, so that a
//! shorter path of the past, or the effect of clock drift, is forgotten after the configured number of spans.

use crate::params;
use alloc::boxed::Box;
use alloc::vec;
use paceline_units::{RemoteTime, Time, TimeDelta};

params! {
    /// The parameters of the base delay.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct BaseDelayConfig {
        /// Ten spans of one minute (RFC 6817, section 2.5).
        const RFC_6817;

        /// Number of spans whose lowest delay is remembered, the current one included.
        history as "base_history": usize = 10, in 1..=Self::HISTORY_MAX,
            from "RFC 6817: BASE_HISTORY; C++: kBaseOwdHistSize, 50";
        /// Length of such a span.
        span as "base_span_ms": TimeDelta = TimeDelta::from_secs(60), in 1.0..=1e7,
            from "RFC 6817: a minute; C++: kBaseDelayUpdateInterval, 10 s";
    }
}

impl BaseDelayConfig {
    /// The largest number of spans.
    pub const HISTORY_MAX: usize = 50;
    /// One span that is longer than any call. A receiver clock that runs fast by 50 ppm then adds 3 ms per minute.
    pub const WHOLE_CALL: Self = Self { history: 1, span: TimeDelta::from_secs(1 << 32) };
}

/// A time before all others.
const BEFORE: Time = Time::from_nanos(i64::MIN);

/// The least of the values of the last spans.
#[derive(Clone, Debug)]
pub struct RecentMinimum {
    config: BaseDelayConfig,
    /// The minimum of each span, in a ring buffer.
    minima: Box<[TimeDelta]>,
    current: usize,
    /// The minimum of the completed spans.
    past: TimeDelta,
    /// The time at which the next span starts; [`BEFORE`] before the first value.
    next_span: Time,
}

impl RecentMinimum {
    /// Creates a minimum of no values.
    pub fn new(config: BaseDelayConfig) -> Self {
        Self {
            config,
            minima: vec![TimeDelta::MAX; config.history.max(1)].into(),
            current: 0,
            past: TimeDelta::MAX,
            next_span: BEFORE,
        }
    }

    /// Forgets all values, without an allocation.
    pub fn restart(&mut self) {
        self.minima.fill(TimeDelta::MAX);
        (self.current, self.past, self.next_span) = (0, TimeDelta::MAX, BEFORE);
    }

    /// Adds a value and returns the minimum.
    #[inline]
    pub fn update(&mut self, now: Time, value: TimeDelta) -> TimeDelta {
        if now >= self.next_span {
            self.start_span(now);
        }
        let least = &mut self.minima[self.current];
        *least = value.min(*least);
        self.past.min(*least)
    }

    /// Starts the first span, or the one that contains `now`. Spans without values have no minimum.
    #[cold]
    fn start_span(&mut self, now: Time) {
        if self.next_span == BEFORE {
            self.next_span = now + self.config.span;
            return;
        }
        let spans = &mut self.minima;
        let passed = 1 + (now - self.next_span).as_nanos() / self.config.span.as_nanos();
        for _ in 0..passed.min(spans.len() as i64) {
            self.current = (self.current + 1) % spans.len();
            spans[self.current] = TimeDelta::MAX;
        }
        self.past = spans.iter().copied().min().unwrap_or(TimeDelta::MAX);
        self.next_span += self.config.span * passed;
    }
}

/// The queuing delay of one path.
#[derive(Clone, Debug)]
pub struct QueueDelay {
    /// Arrival and departure of the first packet; all delays are relative to it.
    origin: Option<(RemoteTime, Time)>,
    base: RecentMinimum,
}

impl QueueDelay {
    /// Creates an estimator without samples.
    pub fn new(config: BaseDelayConfig) -> Self {
        Self { origin: None, base: RecentMinimum::new(config) }
    }

    /// Forgets all samples, without an allocation.
    pub fn restart(&mut self) {
        self.origin = None;
        self.base.restart();
    }

    /// Returns the queuing delay of a packet with these send and arrival times; it is never negative. `now` is used for
    /// the spans alone; a receiver, which does not know the sender's time, passes `sent`.
    #[inline]
    pub fn update(&mut self, now: Time, sent: Time, arrival: RemoteTime) -> TimeDelta {
        let (arrival_0, sent_0) = *self.origin.get_or_insert((arrival, sent));
        let owd = (arrival - arrival_0) - (sent - sent_0);
        owd - self.base.update(now, owd)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One-way delays of 50, 30, 70 ms are queuing delays of 0, 0 and 40, for any offset of the clocks.
    #[test]
    fn queuing_delay_is_relative_to_the_minimum() {
        for offset in [-90_000, 0, 7_000_000] {
            let mut delay = QueueDelay::new(BaseDelayConfig::RFC_6817);
            let mut queuing = |sent: i64, owd: i64| {
                let arrival = RemoteTime::from_millis(sent + owd + offset);
                delay.update(Time::from_millis(sent + 100), Time::from_millis(sent), arrival).as_millis_f64()
            };
            assert_eq!([queuing(0, 50), queuing(20, 30), queuing(40, 70), queuing(60, 30)], [0.0, 0.0, 40.0, 0.0]);
        }
    }

    #[test]
    fn minimum_of_the_whole_call_is_kept_for_a_day() {
        let mut delay = QueueDelay::new(BaseDelayConfig::WHOLE_CALL);
        let mut after = |sent_ms, delay_ms| {
            let (sent, now) = (Time::from_millis(sent_ms), RemoteTime::from_millis(7_000_000 + sent_ms + delay_ms));
            delay.update(sent, sent, now).as_millis_f64()
        };
        let delays = [(0, 60), (10, 75), (20, 50), (30, 52), (86_400_000, 350)];
        assert_eq!(delays.map(|(sent, delay)| after(sent, delay)), [0.0, 15.0, 0.0, 2.0, 300.0]);
    }

    /// A path that becomes longer by 100 ms counts as a queue while a span before the change is remembered.
    #[test]
    fn longer_path_is_accepted_after_the_history() {
        let config = BaseDelayConfig { history: 3, span: TimeDelta::from_secs(10) };
        let mut delay = QueueDelay::new(config);
        let mut queuing = |s: i64, owd: i64| {
            let sent = Time::from_secs(s);
            delay.update(sent, sent, RemoteTime::from_millis(s * 1000 + owd)).as_millis_f64()
        };
        assert!((0..10).all(|s| queuing(s, 50) == 0.0));
        assert!((10..30).all(|s| queuing(s, 150) == 100.0));
        assert!((30..60).all(|s| queuing(s, 150) == 0.0));
    }

    /// A pause of an hour is longer than the history: the first delay after it is the base delay again.
    #[test]
    fn minima_expire_during_a_pause() {
        let mut delay = QueueDelay::new(BaseDelayConfig::RFC_6817);
        let mut queuing = |s: i64, owd: i64| {
            let sent = Time::from_secs(s);
            delay.update(sent, sent, RemoteTime::from_millis(s * 1000 + owd)).as_millis_f64()
        };
        assert_eq!([queuing(0, 50), queuing(1, 80), queuing(300, 80)], [0.0, 30.0, 30.0]);
        assert_eq!([queuing(3900, 80), queuing(3901, 90)], [0.0, 10.0]);
    }
}
