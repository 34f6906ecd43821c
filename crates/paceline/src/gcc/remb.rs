// SPDX-License-Identifier: MIT OR Apache-2.0
//! REMB scheduling: when the receiver sends its rate to the sender.
//!
//! mmsys16, section 3.3: once a second, and immediately if the rate fell by more than 3 %. The paper compares with
//! `A_r(i-1)`, the value at the previous frame. This implementation compares with the last value *sent*, like libwebrtc
//! in every year; otherwise a slow decrease would never be sent early.

use crate::blocks::RateState;
use paceline_units::{Rate, RemoteTime, TimeDelta};

/// Decides when a REMB is due.
#[derive(Clone, Debug)]
pub struct RembTimer {
    interval: TimeDelta,
    /// The time and the value of the last REMB that was due.
    last: Option<(RemoteTime, Rate)>,
}

/// A rate below this share of the last value sent is sent immediately.
const IMMEDIATE_BELOW: f64 = 0.97;

impl RembTimer {
    /// Creates a timer. The first REMB is due as soon as there is a rate.
    pub fn new(interval: TimeDelta) -> Self {
        Self { interval, last: None }
    }

    /// Returns whether `rate` is to be sent now; if so, it counts as sent.
    #[inline]
    pub fn poll(&mut self, now: RemoteTime, rate: Rate) -> bool {
        self.take_due(now, rate).is_some()
    }

    /// If a REMB is due, returns the value that was due before it (`Some(None)` for the first one). `rate` then counts
    /// as sent, even if the caller withholds it: the next rate is compared with it.
    #[inline]
    pub fn take_due(&mut self, now: RemoteTime, rate: Rate) -> Option<Option<Rate>> {
        let due = match self.last {
            None => true,
            Some((at, last)) => now - at >= self.interval || is_much_lower(rate, last),
        };
        due.then(|| self.last.replace((now, rate)).map(|(_, before)| before))
    }

    /// Returns the time at which the next regular REMB is due; `None` before the first one.
    pub fn next_due(&self) -> Option<RemoteTime> {
        self.last.map(|(at, _)| at + self.interval)
    }
}

/// Mostly the rate has not fallen at all, so that is checked first.
#[inline]
fn is_much_lower(rate: Rate, last: Rate) -> bool {
    rate < last && rate.as_bps_f64() < IMMEDIATE_BELOW * last.as_bps_f64()
}

/// Which of the REMBs that are due are sent. fhmn13, section 2.2: "every 1s, if A_r is decreasing".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RembRule {
    /// Those with a lower value than the previous one.
    Fall,
    /// Also those sent while the rate controller is in the state Decrease, where eq. 3 may repeat the same value.
    Decrease,
    /// All of them (libwebrtc).
    Always,
}

impl RembRule {
    pub(super) fn sends(self, before: Option<Rate>, rate: Rate, state: RateState) -> bool {
        let falls = before.is_some_and(|before| rate < before);
        match self {
            Self::Fall => falls,
            Self::Decrease => falls || state == RateState::Decrease,
            Self::Always => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Vector V2.4: after 1000 was sent, 971 waits and 969 is sent immediately.
    #[test]
    fn due_after_a_second_or_a_fall_of_three_percent() {
        let mut timer = RembTimer::new(TimeDelta::from_secs(1));
        let at = RemoteTime::from_millis;
        assert!(timer.poll(at(0), Rate::from_kbps(1000)));
        assert!(!timer.poll(at(100), Rate::from_kbps(971)));
        assert!(timer.poll(at(101), Rate::from_kbps(969)));
        assert!(!timer.poll(at(200), Rate::from_kbps(2000)), "an increase waits");
        assert!(!timer.poll(at(1100), Rate::from_kbps(969)));
        assert!(timer.poll(at(1101), Rate::from_kbps(969)));
    }
}
