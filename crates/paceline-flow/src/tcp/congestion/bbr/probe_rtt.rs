//! The path's round-trip time without queues, and PROBE_RTT, which clears the queue to see it.

use paceline_units::{Time, TimeDelta};

/// How long the least round-trip time is believed (`bbr_min_rtt_win_sec`), and how long the queue is kept clear to see a new one
/// (`bbr_probe_rtt_mode_ms`).
const BELIEVED: TimeDelta = TimeDelta::from_secs(10);
const CLEARED: TimeDelta = TimeDelta::from_millis(200);

/// RTprop: the least round-trip time seen.
#[derive(Debug)]
pub(super) struct LeastRoundTrip {
    pub least: Option<TimeDelta>,
    seen: Time,
}

impl LeastRoundTrip {
    pub fn new(now: Time, first: Option<TimeDelta>) -> Self {
        Self { least: first, seen: now }
    }

    /// An ACK came; true when what was known had become old. Then any sample takes its place.
    pub fn handle_ack(&mut self, now: Time, sample: Option<TimeDelta>) -> bool {
        let old = now > self.seen + BELIEVED;
        if let Some(sample) = sample
            && (old || self.least.is_none_or(|least| sample < least))
        {
            (self.least, self.seen) = (Some(sample), now);
        }
        old
    }

    /// The queue has been clear: what is known is believed anew.
    pub fn renew(&mut self, now: Time) {
        self.seen = now;
    }
}

/// A stay in PROBE_RTT.
#[derive(Debug, Default)]
pub(super) struct Clearing {
    /// When it may be over, once so little is in flight as it should be.
    until: Option<Time>,
    /// A round trip has passed since.
    round: bool,
}

/// What an ACK brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Wait,
    /// The flight is small now: a round trip is counted from here.
    Cleared,
    /// It is over.
    Over,
}

impl Clearing {
    /// An ACK came. `cleared`: no more than the least window is in flight; `round_begins`: a round trip does.
    pub fn handle_ack(&mut self, now: Time, cleared: bool, round_begins: bool) -> Step {
        let Some(until) = self.until else {
            if !cleared {
                return Step::Wait;
            }
            self.until = Some(now + CLEARED);
            return Step::Cleared;
        };
        self.round |= round_begins;
        if self.round && now > until { Step::Over } else { Step::Wait }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(i64) -> TimeDelta = TimeDelta::from_millis;
    const AT: fn(i64) -> Time = Time::from_millis;

    #[test]
    fn the_least_is_believed_for_ten_seconds() {
        let mut known = LeastRoundTrip::new(AT(0), Some(MS(50)));
        assert!(!known.handle_ack(AT(100), Some(MS(60))));
        assert!(!known.handle_ack(AT(1_000), Some(MS(40))));
        assert!(!known.handle_ack(AT(11_000), Some(MS(45))), "ten seconds are not over");
        assert_eq!(known.least, Some(MS(40)));
        assert!(known.handle_ack(AT(11_001), Some(MS(45))));
        assert_eq!(known.least, Some(MS(45)));
        assert!(!known.handle_ack(AT(11_002), None));
        known.renew(AT(20_000));
        assert!(!known.handle_ack(AT(30_000), Some(MS(46))));
    }

    #[test]
    fn two_hundred_milliseconds_and_a_round_trip() {
        let mut short = Clearing::default();
        assert_eq!(short.handle_ack(AT(0), false, true), Step::Wait);
        assert_eq!(short.handle_ack(AT(10), true, true), Step::Cleared);
        assert_eq!(short.handle_ack(AT(50), true, true), Step::Wait);
        assert_eq!(short.handle_ack(AT(210), true, false), Step::Wait);
        assert_eq!(short.handle_ack(AT(211), true, false), Step::Over);
        // A path of 300 ms: the round trip is what it waits for.
        let mut long = Clearing::default();
        assert_eq!(long.handle_ack(AT(0), true, false), Step::Cleared);
        assert_eq!(long.handle_ack(AT(250), true, false), Step::Wait);
        assert_eq!(long.handle_ack(AT(300), true, true), Step::Over);
    }
}
