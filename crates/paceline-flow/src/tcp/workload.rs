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
}

impl Workload {
    /// The names of the workloads in scenarios, with a one-line description of each.
    pub const NAMES: &'static [(&'static str, &'static str)] = &[
        ("bulk", "endless data on one connection"),
        ("on-off", "endless data for a while, then none, each time on a new connection"),
        ("short", "transfers of drawn sizes with drawn pauses, each on a new connection"),
    ];

    /// Returns the time at which the first connection of a flow opens that starts at `start`.
    pub fn first_connection(&self, start: Time, random: &mut RandomStream) -> Time {
        match *self {
            Self::Short { pause, begins_off: true, .. } => start + draw_pause(random, pause),
            _ => start,
        }
    }
}

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
