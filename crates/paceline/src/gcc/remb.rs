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
    sent: Option<(RemoteTime, Rate)>,
}

/// A fall below this share of the last value sent is told at once.
const TOLD_AT_ONCE: f64 = 0.97;

impl RembTimer {
    /// Nothing sent yet; the first goes out as soon as there is a rate.
    pub fn new(interval: TimeDelta) -> Self {
        Self { interval, sent: None }
    }

    /// Whether `rate` is to be sent now; if so it counts as sent.
    pub fn poll(&mut self, now: RemoteTime, rate: Rate) -> bool {
        let due = match self.sent {
            None => true,
            Some((at, last)) => now - at >= self.interval || rate.as_bps_f64() < TOLD_AT_ONCE * last.as_bps_f64(),
        };
        if due {
            self.sent = Some((now, rate));
        }
        due
    }

    /// When the next regular one is due; `None` before the first.
    pub fn next(&self) -> Option<RemoteTime> {
        self.sent.map(|(at, _)| at + self.interval)
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
