//! REMB processing: when the receiver tells the sender its rate.
//!
//! mmsys16, section 3.3: every second, and at once when the rate fell by more than 3 %. The paper prints the test
//! against `A_r(i-1)`, the frame before; like libwebrtc of every year, this compares with the last value *sent*,
//! without which a slow slide would never be told.

use paceline_units::{Rate, RemoteTime, TimeDelta};

/// Decides when a REMB goes out.
#[derive(Clone, Debug)]
pub struct RembTimer {
    interval: TimeDelta,
    /// The last that was due.
    last: Option<(RemoteTime, Rate)>,
}

/// A fall below this share of the last value sent is told at once.
const TOLD_AT_ONCE: f64 = 0.97;

impl RembTimer {
    /// Nothing sent yet; the first goes out as soon as there is a rate.
    pub fn new(interval: TimeDelta) -> Self {
        Self { interval, last: None }
    }

    /// Whether `rate` is to be sent now; if so it counts as sent.
    pub fn poll(&mut self, now: RemoteTime, rate: Rate) -> bool {
        self.turn(now, rate).is_some()
    }

    /// For whom it may be due and yet withheld. If it is due, answers what was due before, nothing at first, and counts as
    /// due: what comes next is compared with it, sent or not.
    pub fn turn(&mut self, now: RemoteTime, rate: Rate) -> Option<Option<Rate>> {
        let due = match self.last {
            None => true,
            Some((at, last)) => now - at >= self.interval || rate.as_bps_f64() < TOLD_AT_ONCE * last.as_bps_f64(),
        };
        due.then(|| self.last.replace((now, rate)).map(|(_, before)| before))
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
}
