// SPDX-License-Identifier: MIT OR Apache-2.0
//! Grants of an uplink: what the base station lets the device send, and when.
//!
//! ```text
//!  packet arrives        request      first grant            grant of what was reported
//!       |--- up to one interval ---|---- delay ----|-- sends, reports the rest --|---- delay ----|-- sends
//! ```

use paceline_units::{DataSize, Time, TimeDelta};
use std::collections::VecDeque;

/// The grants of a device that must request each of them (3GPP TS 38.321, 5.4.4 and 5.4.5).
#[derive(Clone, Debug)]
pub(super) struct Grants {
    /// A request may be sent at the multiples of this time.
    pub interval: TimeDelta,
    /// From a request or a report to the first slot that its grant allows.
    pub delay: TimeDelta,
    /// The size of a grant that follows a request, which does not say how much waits.
    pub first: DataSize,
    /// Grants that are not used up: the time from which each holds, and what is left of it.
    granted: VecDeque<(Time, DataSize)>,
}

impl Grants {
    pub fn new(interval: TimeDelta, delay: TimeDelta, first: DataSize) -> Self {
        Self { interval, delay, first, granted: VecDeque::new() }
    }

    /// Returns the time from which the device may send, when packets wait since `since`. Without a grant it requests one.
    pub fn ready(&mut self, since: Time) -> Time {
        if self.granted.is_empty() {
            let rest = since.as_nanos().rem_euclid(self.interval.as_nanos());
            let wait = if rest == 0 { TimeDelta::ZERO } else { self.interval - TimeDelta::from_nanos(rest) };
            self.granted.push_back((since + wait + self.delay, self.first));
        }
        self.granted[0].0
    }

    /// Returns what grants allow at `at`.
    pub fn allowed(&self, at: Time) -> DataSize {
        self.granted.iter().take_while(|(from, _)| *from <= at).map(|(_, size)| *size).sum()
    }

    /// Uses grants for `sent` at `at`, and reports with it that `waiting` is left. A report that nothing is left ends the grants.
    pub fn consume(&mut self, at: Time, mut sent: DataSize, waiting: DataSize) {
        while let Some((_, size)) = self.granted.front_mut().filter(|(from, _)| *from <= at) {
            let used = sent.min(*size);
            (sent, *size) = (sent - used, *size - used);
            if *size > DataSize::ZERO {
                break;
            }
            self.granted.pop_front();
        }
        if waiting == DataSize::ZERO {
            return self.granted.clear();
        }
        let granted: DataSize = self.granted.iter().map(|(_, size)| *size).sum();
        if waiting > granted {
            self.granted.push_back((at + self.delay, waiting - granted));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests each 10 ms, grants 4 ms later, the first of 200 bytes. By hand.
    #[test]
    fn grants_follow_requests_and_reports() {
        let (ms, bytes) = (Time::from_millis, DataSize::from_bytes);
        let mut grants = Grants::new(TimeDelta::from_millis(10), TimeDelta::from_millis(4), bytes(200));
        assert_eq!(grants.ready(ms(13)), ms(24), "requested at 20 ms");
        assert_eq!(
            (grants.ready(ms(13)), grants.allowed(ms(23)), grants.allowed(ms(24))),
            (ms(24), bytes(0), bytes(200))
        );
        // 1200 bytes waited: 200 leave, 1000 are reported, and more arrives.
        grants.consume(ms(24), bytes(200), bytes(1000));
        assert_eq!((grants.ready(ms(13)), grants.allowed(ms(28))), (ms(28), bytes(1000)));
        grants.consume(ms(28), bytes(600), bytes(900));
        assert_eq!(
            (grants.allowed(ms(29)), grants.allowed(ms(32))),
            (bytes(400), bytes(900)),
            "500 more were reported"
        );
        grants.consume(ms(33), bytes(900), bytes(0));
        assert_eq!(grants.ready(ms(40)), ms(44), "a request at once");
    }
}
