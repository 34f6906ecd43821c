//! What the application behind a sender has to send, and when.

use paceline_units::{DataSize, RandomStream, TimeDelta, round_to_u64};

/// What is sent. Each period and each transfer is a connection of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// One connection with endless data.
    Bulk,
    /// Endless data for a while, then none, again and again. What was sent is brought home after the end of a period,
    /// until the next begins. `on` and `off` may not both be zero.
    OnOff {
        /// How long data is there.
        on: TimeDelta,
        /// How long none is.
        off: TimeDelta,
    },
    /// One transfer after the other.
    Short {
        /// Least and greatest size; uniform between.
        size: (DataSize, DataSize),
        /// Mean of the exponential time from the end of a transfer to the beginning of the next.
        pause: TimeDelta,
    },
}

impl Workload {
    /// The names by which scenarios ask for workloads, with a line on each.
    pub const NAMES: &'static [(&'static str, &'static str)] = &[
        ("bulk", "endless data on one connection"),
        ("on-off", "endless data for a while, then none, each time on a new connection"),
        ("short", "transfers of drawn sizes with drawn pauses, each on a new connection"),
    ];
}

/// A size, uniform from `least` to `greatest`; at least a byte.
pub fn transfer_size(random: &mut RandomStream, (least, greatest): (DataSize, DataSize)) -> DataSize {
    let size = random.uniform(least.as_bytes() as f64, greatest.as_bytes() as f64);
    DataSize::from_bytes(round_to_u64(size).max(1))
}

/// An exponential time of this mean, by inversion.
pub fn pause(random: &mut RandomStream, mean: TimeDelta) -> TimeDelta {
    mean.scale(-libm::log1p(-random.unit()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_units::Streams;

    #[test]
    fn sizes_and_pauses_have_their_means() {
        let mut random = Streams::new(1).stream("workload");
        let range = (DataSize::from_bytes(10_000), DataSize::from_bytes(30_000));
        let n = 20_000;
        let (mut size, mut idle) = (0.0, 0.0);
        for _ in 0..n {
            let bytes = transfer_size(&mut random, range).as_bytes();
            assert!((10_000..=30_000).contains(&bytes));
            size += bytes as f64;
            idle += pause(&mut random, TimeDelta::from_secs(2)).as_secs_f64();
        }
        assert!((size / n as f64 - 20_000.0).abs() < 150.0, "{}", size / n as f64);
        assert!((idle / n as f64 - 2.0).abs() < 0.05, "{}", idle / n as f64);
        assert_eq!(transfer_size(&mut random, (DataSize::ZERO, DataSize::ZERO)), DataSize::from_bytes(1));
    }
}
