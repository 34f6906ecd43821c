//! When a receiver reports: each interval from the first packet on, until it has heard nothing for a while. Whoever hears
//! nothing has nothing to tell.

use paceline_units::{RemoteTime, TimeDelta};

/// The clock of reports.
#[derive(Clone, Debug)]
pub struct ReportClock {
    interval: TimeDelta,
    /// After so long without a packet the report that is due is the last.
    silence: TimeDelta,
    heard: RemoteTime,
    due: RemoteTime,
}

impl ReportClock {
    /// Nothing heard yet.
    pub fn new(interval: TimeDelta, silence: TimeDelta) -> Self {
        Self { interval, silence, heard: RemoteTime::ZERO, due: RemoteTime::MAX }
    }

    /// A packet arrived.
    #[inline]
    pub fn handle_arrival(&mut self, now: RemoteTime) {
        self.heard = now;
        if self.due == RemoteTime::MAX {
            self.due = now + self.interval;
        }
    }

    /// A report was made.
    pub fn handle_report(&mut self, now: RemoteTime) {
        let over = now - self.heard >= self.silence;
        self.due = if over { RemoteTime::MAX } else { now + self.interval };
    }

    /// When the next report is due.
    pub fn due(&self) -> RemoteTime {
        self.due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets at 1000 and 1050 ms: reports from 1100 on, the last when 500 ms have passed; a packet begins anew.
    #[test]
    fn reports_follow_packets() {
        let at = RemoteTime::from_millis;
        let mut clock = ReportClock::new(TimeDelta::from_millis(100), TimeDelta::from_millis(500));
        assert_eq!(clock.due(), RemoteTime::MAX);
        let mut told = Vec::new();
        for packets in [[1000, 1050], [5000, 5051]] {
            packets.map(at).into_iter().for_each(|now| clock.handle_arrival(now));
            while clock.due() != RemoteTime::MAX {
                told.push(clock.due());
                clock.handle_report(clock.due());
            }
        }
        let expected = (1100..=1600).step_by(100).chain((5100..=5600).step_by(100)).map(at);
        assert_eq!(told, expected.collect::<Vec<_>>());
    }
}
