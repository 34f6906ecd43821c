//! The machine that an end runs on: what its scheduler adds before a packet leaves and before an arrived one is seen.
//!
//! Each packet waits for a while of its own, exponentially distributed around `jitter`, and nobody overtakes. Now and then
//! the machine stalls: what would pass in that time passes when it is over, both ways. Pauses between stalls are
//! exponential around `stall_every`, stalls last uniformly between half and one and a half times `stall`.

use crate::plan::HostPlan;
use paceline_units::{RandomStream, Time, TimeDelta};

/// Which way a packet passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// From the end to the network.
    Out = 0,
    /// From the network to the end.
    In = 1,
}

/// One machine.
#[derive(Debug)]
pub(super) struct Host {
    plan: HostPlan,
    random: RandomStream,
    /// The stall that is next or under way.
    stall: (Time, Time),
    /// When the last packet passed, each way.
    passed: [Time; 2],
}

impl Host {
    pub fn new(plan: HostPlan, random: RandomStream) -> Self {
        let mut host = Self { plan, random, stall: (Time::ZERO, Time::ZERO), passed: [Time::ZERO; 2] };
        host.draw_stall();
        host
    }

    /// When a packet that is there at `now` passes. Times never go back.
    pub fn pass(&mut self, now: Time, way: Way) -> Time {
        while self.stall.1 <= now {
            self.draw_stall();
        }
        let due = (now + self.exponential(self.plan.jitter)).max(self.passed[way as usize]);
        // A wait so long that it reaches beyond the next stall is not held by the one after it.
        let due = if self.stall.0 <= due && due < self.stall.1 { self.stall.1 } else { due };
        self.passed[way as usize] = due;
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
    use paceline_units::Streams;

    fn host(jitter: i64, stall_every: Option<i64>, stall: i64) -> Host {
        let ms = TimeDelta::from_millis;
        let plan = HostPlan { jitter: ms(jitter), stall_every: stall_every.map(ms), stall: ms(stall) };
        Host::new(plan, Streams::new(1).stream("host"))
    }

    /// How long each of many packets, 5 ms apart, is held, ms.
    fn held(host: &mut Host, way: Way) -> Vec<f64> {
        let mut last = Time::ZERO;
        let of = |n: i64| {
            let now = Time::from_millis(5 * n);
            let passed = host.pass(now, way);
            assert!(passed >= now && passed >= last);
            last = passed;
            (passed - now).as_millis_f64()
        };
        (0..100_000).map(of).collect()
    }

    #[test]
    fn jitter_has_its_mean_and_nobody_overtakes() {
        let held = held(&mut host(1, None, 0), Way::Out);
        let mean = held.iter().sum::<f64>() / held.len() as f64;
        assert!((0.98..=1.04).contains(&mean), "{mean}"); // waiting for the one before adds a little
    }

    #[test]
    fn stalls_come_as_often_and_last_as_long_as_they_should() {
        let held = held(&mut host(0, Some(10_000), 80), Way::In);
        // 500 s: about 50 stalls of 40 to 120 ms, each of which holds 8 to 24 packets.
        let starts = held.windows(2).filter(|w| w[0] == 0.0 && w[1] > 0.0).count();
        assert!((35..=65).contains(&starts), "{starts}");
        let longest = held.iter().fold(0.0, |a: f64, b| a.max(*b));
        assert!((100.0..=120.0).contains(&longest), "{longest}");
        let held_share = held.iter().filter(|h| **h > 0.0).count() as f64 / held.len() as f64;
        assert!((0.005..=0.011).contains(&held_share), "{held_share}");
    }

    #[test]
    fn a_machine_without_either_adds_nothing() {
        assert!(held(&mut host(0, None, 0), Way::Out).iter().all(|h| *h == 0.0));
    }
}
