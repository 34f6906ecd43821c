//! The queuing delay: one-way delay above the least one of the last minutes (RFC 8298, section 4.1.2, and RFC 8698, section
//! 5.1.1, which have it from LEDBAT: RFC 6817, section 2.4.2), or of the whole call (med16, section II-A).
//!
//! ```text
//! qdelay = owd - min(base_delay_history)
//! ```
//!
//! Sender's and receiver's clocks need not agree: their offset is in every delay and drops out. The least delay of each
//! span is kept, so that a path that grew longer, or a clock that drifts, is forgotten after the last of them.

use paceline_units::{RemoteTime, Time, TimeDelta};

/// Numbers of the base delay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BaseDelayConfig {
    /// How many spans are remembered, 1 to [`HISTORY_MAX`](Self::HISTORY_MAX); the current one is the last of them.
    pub history: usize,
    /// How long a span is.
    pub span: TimeDelta,
}

impl BaseDelayConfig {
    /// Most spans.
    pub const HISTORY_MAX: usize = 50;
    /// Ten minutes, each with its least delay (RFC 6817, section 2.5: `BASE_HISTORY`).
    pub const RFC_6817: Self = Self { history: 10, span: TimeDelta::from_secs(60) };
    /// One span that no call outlives. A receiver's clock that runs fast by 50 ppm then adds 3 ms a minute.
    pub const WHOLE_CALL: Self = Self { history: 1, span: TimeDelta::from_secs(1 << 32) };
}

/// Queuing delay of one path.
#[derive(Clone, Debug)]
pub struct QueueDelay {
    config: BaseDelayConfig,
    /// A packet's arrival and departure, to which all delays are relative.
    origin: Option<(RemoteTime, Time)>,
    /// Least delay of each span, in a ring.
    minima: [TimeDelta; BaseDelayConfig::HISTORY_MAX],
    current: usize,
    /// Least of the spans that are over.
    past: TimeDelta,
    /// When the next span begins.
    roll: Time,
}

impl QueueDelay {
    /// Nothing known.
    pub fn new(config: BaseDelayConfig) -> Self {
        Self {
            config,
            origin: None,
            minima: [TimeDelta::MAX; BaseDelayConfig::HISTORY_MAX],
            current: 0,
            past: TimeDelta::MAX,
            roll: Time::MAX,
        }
    }

    /// A packet is known, at `now`, to have been sent and to have arrived then: its queuing delay, never negative. `now`
    /// only says when spans are over; a receiver, which has no such time, gives `sent`.
    pub fn update(&mut self, now: Time, sent: Time, arrival: RemoteTime) -> TimeDelta {
        let (arrival_0, sent_0) = *self.origin.get_or_insert((arrival, sent));
        let owd = (arrival - arrival_0) - (sent - sent_0);
        if self.roll == Time::MAX {
            self.roll = now + self.config.span;
        } else if now >= self.roll {
            self.begin_span(now);
        }
        let least = &mut self.minima[self.current];
        *least = owd.min(*least);
        owd - self.past.min(*least)
    }

    fn begin_span(&mut self, now: Time) {
        let spans = &mut self.minima[..self.config.history];
        self.current = (self.current + 1) % spans.len();
        spans[self.current] = TimeDelta::MAX;
        self.past = spans.iter().copied().min().unwrap_or(TimeDelta::MAX);
        self.roll = now + self.config.span;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Delays of 50, 30, 70 ms are queues of 0, 0 and 40; the offset of the clocks does not matter.
    #[test]
    fn the_least_delay_is_no_queue() {
        for offset in [-90_000, 0, 7_000_000] {
            let mut delay = QueueDelay::new(BaseDelayConfig::RFC_6817);
            let mut told = |sent: i64, owd: i64| {
                let arrival = RemoteTime::from_millis(sent + owd + offset);
                delay.update(Time::from_millis(sent + 100), Time::from_millis(sent), arrival).as_millis_f64()
            };
            assert_eq!([told(0, 50), told(20, 30), told(40, 70), told(60, 30)], [0.0, 0.0, 40.0, 0.0]);
        }
    }

    /// What is of the whole call is not forgotten in a day.
    #[test]
    fn the_least_delay_of_the_whole_call() {
        let mut delay = QueueDelay::new(BaseDelayConfig::WHOLE_CALL);
        let mut after = |sent_ms, delay_ms| {
            let (sent, now) = (Time::from_millis(sent_ms), RemoteTime::from_millis(7_000_000 + sent_ms + delay_ms));
            delay.update(sent, sent, now).as_millis_f64()
        };
        let delays = [(0, 60), (10, 75), (20, 50), (30, 52), (86_400_000, 350)];
        assert_eq!(delays.map(|(sent, delay)| after(sent, delay)), [0.0, 15.0, 0.0, 2.0, 300.0]);
    }

    /// A path that grows longer by 100 ms is a queue for as long as the last span before is remembered.
    #[test]
    fn a_longer_path_is_believed_after_the_history() {
        let config = BaseDelayConfig { history: 3, span: TimeDelta::from_secs(10) };
        let mut delay = QueueDelay::new(config);
        let mut told = |s: i64, owd: i64| {
            let sent = Time::from_secs(s);
            delay.update(sent, sent, RemoteTime::from_millis(s * 1000 + owd)).as_millis_f64()
        };
        assert!((0..10).all(|s| told(s, 50) == 0.0));
        assert!((10..30).all(|s| told(s, 150) == 100.0));
        assert!((30..60).all(|s| told(s, 150) == 0.0));
    }
}
