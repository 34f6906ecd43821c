//! The times of reports: at a fixed interval from the first packet on, until no packet has arrived for a while.
//! Without packets there is nothing to report.

use paceline_units::{RemoteTime, TimeDelta};

/// The timer.
#[derive(Clone, Debug)]
pub struct ReportTimer {
    interval: TimeDelta,
    /// The timer stops with the first report that is due this long after the last packet.
    idle_timeout: TimeDelta,
    last_packet: RemoteTime,
    due: Option<RemoteTime>,
}

impl ReportTimer {
    /// Creates a timer that waits for the first packet.
    pub fn new(interval: TimeDelta, idle_timeout: TimeDelta) -> Self {
        Self { interval, idle_timeout, last_packet: RemoteTime::ZERO, due: None }
    }

    /// Handles a packet that arrived.
    #[inline]
    pub fn handle_arrival(&mut self, now: RemoteTime) {
        self.last_packet = now;
        if self.due.is_none() {
            self.due = Some(now + self.interval);
        }
    }

    /// Schedules the next report after one was made at `now`.
    pub fn handle_report(&mut self, now: RemoteTime) {
        self.due = (now - self.last_packet < self.idle_timeout).then(|| now + self.interval);
    }

    /// Returns the time at which the next report is due; `None` while no packets arrive.
    pub fn due(&self) -> Option<RemoteTime> {
        self.due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// Packets at 1000 and 1050 ms: reports from 1100 on, until 500 ms without packets have passed.
    #[test]
    fn reports_stop_without_packets_and_resume_with_them() {
        let at = RemoteTime::from_millis;
        let mut timer = ReportTimer::new(TimeDelta::from_millis(100), TimeDelta::from_millis(500));
        assert_eq!(timer.due(), None);
        let mut reports = Vec::new();
        for packets in [[1000, 1050], [5000, 5051]] {
            packets.map(at).into_iter().for_each(|now| timer.handle_arrival(now));
            while let Some(due) = timer.due() {
                reports.push(due);
                timer.handle_report(due);
            }
        }
        let expected = (1100..=1600).step_by(100).chain((5100..=5600).step_by(100)).map(at);
        assert_eq!(reports, expected.collect::<Vec<_>>());
    }
}
