// SPDX-License-Identifier: MIT OR Apache-2.0
//! Workloads: the data that the application of a sender sends, and its times.

use paceline_units::{DataSize, RandomStream, Time, TimeDelta, round_to_u64};

/// The workload of a sender. Each on period and each transfer uses a new connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// Unlimited data on one connection.
    Bulk,
    /// Alternating periods with unlimited data and without data. Data sent in an on period is still retransmitted in
    /// the off period. `on` and `off` must not both be zero.
    OnOff {
        /// Duration of the periods with data.
        on: TimeDelta,
        /// Duration of the periods without data.
        off: TimeDelta,
    },
    /// Consecutive transfers.
    Short {
        /// Minimum and maximum size, uniformly distributed.
        size: (DataSize, DataSize),
        /// Mean of the exponentially distributed time from the end of a transfer to the start of the next.
        pause: TimeDelta,
        /// Whether it begins with a pause, in the OFF state of RFC 8867, section 5.7.
        begins_off: bool,
    },
    /// Transfers that start together in all flows of a group (RFC 8868, section 5.1).
    Bursts {
        /// Minimum and maximum size, uniformly distributed.
        size: (DataSize, DataSize),
        /// Mean of the exponentially distributed time from the start of a burst to the start of the next.
        pause: TimeDelta,
    },
}

impl Workload {
    /// The names of the workloads in scenarios, with a one-line description of each.
    pub const NAMES: &'static [(&'static str, &'static str)] = &[
        ("bulk", "endless data on one connection"),
        ("on-off", "endless data for a while, then none, each time on a new connection"),
        ("short", "transfers of drawn sizes with drawn pauses, each on a new connection"),
        ("bursts", "as `short`, but the transfers of all flows of the table (`count`) start together"),
    ];

    /// Returns the time at which the first connection of a flow opens that starts at `start`.
    pub fn first_connection(&self, start: Time, random: &mut RandomStream) -> Time {
        match *self {
            Self::Short { pause, begins_off: true, .. } => start + draw_pause(random, pause),
            _ => start,
        }
    }
}

/// The start times of the bursts of a group of flows. Each flow of the group has a copy, and all copies draw the same times.
#[derive(Clone, Debug)]
pub struct Bursts {
    random: RandomStream,
    next: Time,
}

impl Bursts {
    /// Creates the times of a group whose first burst is at `start`.
    pub fn new(random: RandomStream, start: Time) -> Self {
        Self { random, next: start }
    }

    /// Returns the first burst after `now`, with this mean time between bursts. A flow whose transfer lasts longer leaves out
    /// the bursts that begin meanwhile.
    pub fn after(&mut self, now: Time, mean: TimeDelta) -> Time {
        while self.next <= now {
            self.next += draw_pause(&mut self.random, mean).max(SHORTEST_PAUSE);
        }
        self.next
    }
}

/// A burst begins after the one before it.
const SHORTEST_PAUSE: TimeDelta = TimeDelta::from_nanos(1);

/// Draws a size, uniform from `least` to `greatest`; at least one byte.
pub fn draw_transfer_size(random: &mut RandomStream, (least, greatest): (DataSize, DataSize)) -> DataSize {
    let size = random.uniform(least.as_bytes() as f64, greatest.as_bytes() as f64);
    DataSize::from_bytes(round_to_u64(size).max(1))
}

/// Draws an exponentially distributed time with this mean, by inversion.
pub fn draw_pause(random: &mut RandomStream, mean: TimeDelta) -> TimeDelta {
    mean.scale(-libm::log1p(-random.unit()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_units::RandomStreams;

    /// 20,000 bursts, of which one flow takes each, and another each that begins after 5 s at least.
    #[test]
    fn flows_of_a_group_have_the_same_bursts() {
        let stream = || RandomStreams::new(1).stream("bursts");
        let mean = TimeDelta::from_secs(10);
        let (mut all, mut some) = (Bursts::new(stream(), Time::ZERO), Bursts::new(stream(), Time::ZERO));
        let (mut now, mut times) = (Time::ZERO, vec![Time::ZERO]);
        for _ in 0..20_000 {
            now = all.after(now, mean);
            times.push(now);
        }
        assert!((now.as_secs_f64() / 20_000.0 - 10.0).abs() < 0.2, "{now}");
        let (mut at, mut taken) = (Time::ZERO, 0);
        while at < Time::from_secs(150_000) {
            let before = at;
            at = some.after(at + TimeDelta::from_secs(5), mean);
            assert!(at > before + TimeDelta::from_secs(5) && times.binary_search(&at).is_ok(), "{at}");
            taken += 1;
        }
        // A burst is missed for 5 s after each one, so one in 15 s is taken.
        assert!((9_700..10_300).contains(&taken), "{taken}");
    }

    #[test]
    fn sizes_and_pauses_have_the_configured_means() {
        let mut random = RandomStreams::new(1).stream("workload");
        let range = (DataSize::from_bytes(10_000), DataSize::from_bytes(30_000));
        let n = 20_000;
        let (mut size, mut idle) = (0.0, 0.0);
        for _ in 0..n {
            let bytes = draw_transfer_size(&mut random, range).as_bytes();
            assert!((10_000..=30_000).contains(&bytes));
            size += bytes as f64;
            idle += draw_pause(&mut random, TimeDelta::from_secs(2)).as_secs_f64();
        }
        assert!((size / n as f64 - 20_000.0).abs() < 150.0, "{}", size / n as f64);
        assert!((idle / n as f64 - 2.0).abs() < 0.05, "{}", idle / n as f64);
        let begins = |begins_off, random: &mut _| {
            let short = Workload::Short { size: range, pause: TimeDelta::from_secs(2), begins_off };
            short.first_connection(Time::from_secs(5), random)
        };
        assert_eq!(begins(false, &mut random), Time::from_secs(5));
        let off: f64 = (0..n).map(|_| begins(true, &mut random).as_secs_f64()).sum();
        assert!((off / n as f64 - 7.0).abs() < 0.05, "{}", off / n as f64);
        assert_eq!(draw_transfer_size(&mut random, (DataSize::ZERO, DataSize::ZERO)), DataSize::from_bytes(1));
    }
}
