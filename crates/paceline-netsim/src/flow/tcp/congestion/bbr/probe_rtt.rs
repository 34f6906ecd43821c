// SPDX-License-Identifier: MIT OR Apache-2.0
//! The round-trip time without queues, and PROBE_RTT, which drains the queue to measure it.

use paceline_units::{Time, TimeDelta};

/// Lifetime of the minimum round-trip time (`bbr_min_rtt_win_sec`), and duration of PROBE_RTT
/// (`bbr_probe_rtt_mode_ms`).
const MIN_RTT_LIFETIME: TimeDelta = TimeDelta::from_secs(10);
const PROBE_RTT_DURATION: TimeDelta = TimeDelta::from_millis(200);

/// RTprop: the minimum round-trip time of the last ten seconds.
#[derive(Debug)]
pub(super) struct MinRttFilter {
    pub minimum: Option<TimeDelta>,
    seen: Time,
}

impl MinRttFilter {
    pub fn new(now: Time, first: Option<TimeDelta>) -> Self {
        Self { minimum: first, seen: now }
    }

    /// Handles an ACK. Returns whether the minimum had expired. An expired minimum is replaced by any sample.
    pub fn handle_ack(&mut self, now: Time, sample: Option<TimeDelta>) -> bool {
        let old = now > self.seen + MIN_RTT_LIFETIME;
        if let Some(sample) = sample
            && (old || self.minimum.is_none_or(|minimum| sample < minimum))
        {
            (self.minimum, self.seen) = (Some(sample), now);
        }
        old
    }

    /// Extends the lifetime of the minimum after the queue has been drained.
    pub fn extend(&mut self, now: Time) {
        self.seen = now;
    }
}

#[derive(Debug, Default)]
pub(super) struct ProbeRtt {
    /// The earliest end, once few enough bytes are in flight.
    until: Option<Time>,
    /// A round trip has passed since.
    round: bool,
}

/// The effect of an ACK in PROBE_RTT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProbeRttStep {
    Wait,
    /// Few enough bytes are in flight: a round trip is counted from here.
    Drained,
    /// PROBE_RTT is over.
    Over,
}

impl ProbeRtt {
    /// Handles an ACK. `drained`: at most the minimum window is in flight. `round_begins`: a round trip begins.
    pub fn handle_ack(&mut self, now: Time, drained: bool, round_begins: bool) -> ProbeRttStep {
        let Some(until) = self.until else {
            if !drained {
                return ProbeRttStep::Wait;
            }
            self.until = Some(now + PROBE_RTT_DURATION);
            return ProbeRttStep::Drained;
        };
        self.round |= round_begins;
        if self.round && now > until { ProbeRttStep::Over } else { ProbeRttStep::Wait }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(i64) -> TimeDelta = TimeDelta::from_millis;
    const AT: fn(i64) -> Time = Time::from_millis;

    #[test]
    fn minimum_lasts_ten_seconds() {
        let mut known = MinRttFilter::new(AT(0), Some(MS(50)));
        assert!(!known.handle_ack(AT(100), Some(MS(60))));
        assert!(!known.handle_ack(AT(1_000), Some(MS(40))));
        assert!(!known.handle_ack(AT(11_000), Some(MS(45))), "ten seconds are not over");
        assert_eq!(known.minimum, Some(MS(40)));
        assert!(known.handle_ack(AT(11_001), Some(MS(45))));
        assert_eq!(known.minimum, Some(MS(45)));
        assert!(!known.handle_ack(AT(11_002), None));
        known.extend(AT(20_000));
        assert!(!known.handle_ack(AT(30_000), Some(MS(46))));
    }

    #[test]
    fn lasts_two_hundred_milliseconds_and_a_round_trip() {
        let mut short = ProbeRtt::default();
        assert_eq!(short.handle_ack(AT(0), false, true), ProbeRttStep::Wait);
        assert_eq!(short.handle_ack(AT(10), true, true), ProbeRttStep::Drained);
        assert_eq!(short.handle_ack(AT(50), true, true), ProbeRttStep::Wait);
        assert_eq!(short.handle_ack(AT(210), true, false), ProbeRttStep::Wait);
        assert_eq!(short.handle_ack(AT(211), true, false), ProbeRttStep::Over);
        // On a path of 300 ms the round trip determines the duration.
        let mut long = ProbeRtt::default();
        assert_eq!(long.handle_ack(AT(0), true, false), ProbeRttStep::Drained);
        assert_eq!(long.handle_ack(AT(250), true, false), ProbeRttStep::Wait);
        assert_eq!(long.handle_ack(AT(300), true, true), ProbeRttStep::Over);
    }
}
