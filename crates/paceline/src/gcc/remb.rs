//! REMB processing: when the receiver tells the sender its rate.
//!
//! mmsys16, section 3.3: every second, and at once when the rate fell by more than 3 %. The paper prints the test
//! against `A_r(i-1)`, the frame before; like libwebrtc of every year, this compares with the last value *sent*,
//! without which a slow slide would never be told.
//!
//! fhmn13, section 2.2: the same, but every second only "if A_r is decreasing". So what would go out and is no less than
//! the one before is withheld; the next is compared with it all the same, or after a long rise no fall would be told.

use paceline_units::{Rate, RemoteTime, TimeDelta};

/// Decides when a REMB goes out.
#[derive(Clone, Debug)]
pub struct RembTimer {
    interval: TimeDelta,
    /// Only falls are sent.
    falls: bool,
    /// The last that was due, sent or withheld.
    last: Option<(RemoteTime, Rate)>,
}

/// A fall below this share of the last value sent is told at once.
const TOLD_AT_ONCE: f64 = 0.97;

impl RembTimer {
    /// Nothing sent yet; the first goes out as soon as there is a rate.
    pub fn new(interval: TimeDelta) -> Self {
        Self { interval, falls: false, last: None }
    }

    /// Only falls are sent (fhmn13).
    pub fn of_falls(interval: TimeDelta) -> Self {
        Self { falls: true, ..Self::new(interval) }
    }

    /// Whether `rate` is to be sent now; if so it counts as sent.
    pub fn poll(&mut self, now: RemoteTime, rate: Rate) -> bool {
        let due = match self.last {
            None => true,
            Some((at, last)) => now - at >= self.interval || rate.as_bps_f64() < TOLD_AT_ONCE * last.as_bps_f64(),
        };
        if !due {
            return false;
        }
        let before = self.last.replace((now, rate));
        !self.falls || before.is_some_and(|(_, before)| rate < before)
    }

    /// When the next regular one is due; `None` before the first.
    pub fn next(&self) -> Option<RemoteTime> {
        self.last.map(|(at, _)| at + self.interval)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Vector V2.4: after 1000 was sent, 971 waits and 969 goes at once.
    #[test]
    fn three_per_cent_or_a_second() {
        let mut timer = RembTimer::new(TimeDelta::from_secs(1));
        let at = RemoteTime::from_millis;
        assert!(timer.poll(at(0), Rate::from_kbps(1000)));
        assert!(!timer.poll(at(100), Rate::from_kbps(971)));
        assert!(timer.poll(at(101), Rate::from_kbps(969)));
        assert!(!timer.poll(at(200), Rate::from_kbps(2000)), "rises wait");
        assert!(!timer.poll(at(1100), Rate::from_kbps(969)));
        assert!(timer.poll(at(1101), Rate::from_kbps(969)));
    }

    /// The same without rises and rests, which count all the same: 1000 is not the fall from 1200 that 1150 is.
    #[test]
    fn only_falls() {
        let mut timer = RembTimer::of_falls(TimeDelta::from_secs(1));
        let mut poll = |ms, kbps| timer.poll(RemoteTime::from_millis(ms), Rate::from_kbps(kbps));
        assert!(!poll(0, 1000), "the first");
        assert!(!poll(1000, 1000), "a rest");
        assert!(!poll(2000, 1200), "a rise");
        assert!(!poll(2100, 1170), "less than 3 %, and not yet a second");
        assert!(poll(2200, 1150));
        assert!(!poll(3100, 1149));
        assert!(poll(3200, 1149), "a second later");
        assert!(!poll(4200, 1149), "told");
        assert!(!poll(5200, 1150));
        assert!(poll(6200, 1149), "below the one withheld");
    }
}
