//! The queuing delay of a packet: its one-way delay less the least of the whole session.
//!
//! ```text
//! d(i) = t_i - T_i,   d_q(i) = d(i) - min d                              (med16, section II-A; RFC 8698, section 4.2)
//! ```
//!
//! The two clocks have unknown origins: a delay is counted from the first packet's, and the difference is what counts. A
//! receiver's clock that runs fast by 50 ppm adds 3 ms a minute, which no least delay of the whole session takes out.

use paceline_units::{RemoteTime, Time, TimeDelta};

/// Keeps the least delay.
#[derive(Clone, Debug, Default)]
pub struct QueuingDelay {
    /// The first packet: when it came and when it was sent.
    first: Option<(RemoteTime, Time)>,
    /// The least delay, relative to the first packet's.
    base: TimeDelta,
}

impl QueuingDelay {
    /// No packet yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A packet arrived that had been sent then. Answers `d_q`, never negative.
    pub fn handle_arrival(&mut self, now: RemoteTime, sent: Time) -> TimeDelta {
        let (came, left) = *self.first.get_or_insert((now, sent));
        let delay = (now - came) - (sent - left);
        self.base = self.base.min(delay);
        delay - self.base
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delay_over_the_least_one_so_far() {
        let mut queuing = QueuingDelay::new();
        let mut after = |sent_ms, delay_ms| {
            let now = RemoteTime::from_millis(7_000_000 + sent_ms + delay_ms);
            queuing.handle_arrival(now, Time::from_millis(sent_ms)).as_millis_f64()
        };
        let delays = [(0, 60), (10, 75), (20, 50), (30, 52), (86_400_000, 350)];
        assert_eq!(delays.map(|(sent, delay)| after(sent, delay)), [0.0, 15.0, 0.0, 2.0, 300.0]);
    }
}
