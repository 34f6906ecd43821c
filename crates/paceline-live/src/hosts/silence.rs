//! The end of a session whose other end is silent.

use paceline_units::{Time, TimeDelta};

/// The time without feedback after which a sender stops, and without packets after which a receiver ends a session. RFC 8083,
/// section 4.1, lets a sender continue for three RTCP intervals of 5 s; this is stricter. The guard of every controller lowers the
/// rate long before.
pub const SILENCE: TimeDelta = TimeDelta::from_secs(10);

/// The last sign of life of the other end.
#[derive(Clone, Copy, Debug)]
pub struct Liveness {
    last: Time,
}

impl Liveness {
    /// Starts at the beginning of a session.
    pub fn new(now: Time) -> Self {
        Self { last: now }
    }

    /// Records feedback, or a packet.
    pub fn handle_news(&mut self, now: Time) {
        self.last = self.last.max(now);
    }

    /// Returns the time of the last sign.
    pub fn last(&self) -> Time {
        self.last
    }

    /// Returns whether the other end is silent for too long.
    pub fn is_silent(&self, now: Time) -> bool {
        now - self.last >= SILENCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_silent_ten_seconds_after_its_last_sign_and_not_before() {
        let mut liveness = Liveness::new(Time::from_secs(1));
        let before = TimeDelta::from_nanos(1);
        assert!(!liveness.is_silent(Time::from_secs(11) - before) && liveness.is_silent(Time::from_secs(11)));
        liveness.handle_news(Time::from_secs(5));
        liveness.handle_news(Time::from_secs(4));
        assert!(!liveness.is_silent(Time::from_secs(15) - before) && liveness.is_silent(Time::from_secs(15)));
    }
}
