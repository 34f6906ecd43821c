// SPDX-License-Identifier: MIT OR Apache-2.0
//! A model of the host of an endpoint: the delay that its scheduler adds to departing and arriving packets.
//!
//! Each packet is delayed by an exponentially distributed time with mean `jitter`; the order is kept. From time to time
//! the host stalls: packets that would pass during a stall pass at its end, in both directions. Pauses between stalls
//! are exponential with mean `stall_every`; a stall lasts uniformly between 0.5 and 1.5 times `stall`.

use crate::plan::HostPlan;
use paceline_units::{RandomStream, Time, TimeDelta};

/// The direction in which a packet passes the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transfer {
    /// From the endpoint to the network.
    Out = 0,
    /// From the network to the endpoint.
    In = 1,
}

#[derive(Debug)]
pub(super) struct EndHost {
    plan: HostPlan,
    random: RandomStream,
    /// Start and end of the current or next stall.
    stall: (Time, Time),
    /// The time at which the last packet passed, in each direction.
    passed: [Time; 2],
}

impl EndHost {
    pub fn new(plan: HostPlan, random: RandomStream) -> Self {
        let mut host = Self { plan, random, stall: (Time::ZERO, Time::ZERO), passed: [Time::ZERO; 2] };
        host.draw_stall();
        host
    }

    /// Returns the time at which a packet that reaches the host at `now` passes. Call with times that never decrease.
    pub fn pass(&mut self, now: Time, direction: Transfer) -> Time {
        while self.stall.1 <= now {
            self.draw_stall();
        }
        let due = (now + self.exponential(self.plan.jitter)).max(self.passed[direction as usize]);
        // A delay beyond the next stall is not extended by the stall after that.
        let due = if self.stall.0 <= due && due < self.stall.1 { self.stall.1 } else { due };
        self.passed[direction as usize] = due;
        due
    }

    fn draw_stall(&mut self) {
        let Some(every) = self.plan.stall_every else {
            self.stall = (Time::MAX, Time::MAX);
            return;
        };
        let from = self.stall.1 + self.exponential(every);
        let lasts = self.plan.stall.scale(self.random.uniform(0.5, 1.5));
        self.stall = (from, from + lasts);
    }

    fn exponential(&mut self, mean: TimeDelta) -> TimeDelta {
        mean.scale(-libm::log1p(-self.random.unit()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_units::RandomStreams;

    fn host(jitter: i64, stall_every: Option<i64>, stall: i64) -> EndHost {
        let ms = TimeDelta::from_millis;
        let (jitter, stall_every, stall) = (ms(jitter), stall_every.map(ms), ms(stall));
        let plan = HostPlan { jitter, stall_every, stall, ..HostPlan::default() };
        EndHost::new(plan, RandomStreams::new(1).stream("host"))
    }

    /// Delay of each of 100,000 packets, sent 5 ms apart, ms.
    fn held(host: &mut EndHost, direction: Transfer) -> Vec<f64> {
        let mut last = Time::ZERO;
        let of = |n: i64| {
            let now = Time::from_millis(5 * n);
            let passed = host.pass(now, direction);
            assert!(passed >= now && passed >= last);
            last = passed;
            (passed - now).as_millis_f64()
        };
        (0..100_000).map(of).collect()
    }

    #[test]
    fn jitter_has_its_mean_and_keeps_the_order() {
        let held = held(&mut host(1, None, 0), Transfer::Out);
        let mean = held.iter().sum::<f64>() / held.len() as f64;
        assert!((0.98..=1.04).contains(&mean), "{mean}"); // waiting for the one before adds a little
    }

    #[test]
    fn stalls_match_frequency_and_length() {
        let held = held(&mut host(0, Some(10_000), 80), Transfer::In);
        // 500 s: about 50 stalls of 40 to 120 ms, each of which holds 8 to 24 packets.
        let starts = held.windows(2).filter(|w| w[0] == 0.0 && w[1] > 0.0).count();
        assert!((35..=65).contains(&starts), "{starts}");
        let longest = held.iter().fold(0.0, |a: f64, b| a.max(*b));
        assert!((100.0..=120.0).contains(&longest), "{longest}");
        let held_share = held.iter().filter(|h| **h > 0.0).count() as f64 / held.len() as f64;
        assert!((0.005..=0.011).contains(&held_share), "{held_share}");
    }

    #[test]
    fn host_without_jitter_and_stalls_adds_no_delay() {
        assert!(held(&mut host(0, None, 0), Transfer::Out).iter().all(|h| *h == 0.0));
    }
}
