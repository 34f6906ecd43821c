// SPDX-License-Identifier: MIT OR Apache-2.0
//! Capacity of cellular links, from a model: a random walk of the rate, and outages.
//!
//! The model is that of Sprout (Winstein, Sivaraman, Balakrishnan, NSDI 2013, section 3.1): the rate λ of packets of 1500 bytes moves
//! in Brownian motion of σ = 200 packets per second per square root of a second, from 0 to 1000 packets per second (section 3.2),
//! computed every 20 ms. It is reflected at its limits.
//!
//! Outages differ from the paper. There, a rate of 0 is an outage that ends at a rate of 1 per second. That suits a forecast, but
//! a generator of it would have no capacity for 38 % of the time, because the walk returns to 0 soon after it left. Here outages
//! start at random times and have exponential lengths, with numbers like those of recorded traces.
//!
//! A page of the documentation, `explanation/cellular.md`, compares the results with recorded traces.

use paceline_units::{RandomStream, RandomStreams};
use std::fmt::Write as _;

/// The time between steps of the walk, s (Sprout, section 3.2).
const TICK_S: f64 = 0.02;
/// The ticks of a line of the file: 100 ms.
const TICKS_PER_LINE: usize = 5;
/// Bits of a packet of 1500 bytes, the unit of the paper's rates.
const PACKET_BITS: f64 = 12_000.0;
/// The longest trace, s.
pub const SECONDS_MAX: u32 = 3600;

/// A model of a cellular link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CellularLink {
    /// Its name.
    pub name: &'static str,
    /// A description of one line.
    pub summary: &'static str,
    /// Limits of the rate, packets of 1500 bytes per second.
    pub rate_pps: (f64, f64),
    /// σ of the walk, packets per second per square root of a second.
    pub sigma: f64,
    /// Outages in a minute, on average.
    pub outages_per_minute: f64,
    /// Mean length of an outage, s.
    pub outage_s: f64,
}

/// Every model. Numbers of `lte-drive` are those of the paper; 3G is the same in a smaller range, and standing is the same walk,
/// slower and without the lowest rates: assumptions, as are all outages.
pub const CELLULAR_LINKS: [CellularLink; 4] = [
    CellularLink {
        name: "lte-drive",
        summary: "LTE in a moving car: up to 12 Mbit/s, 2 outages a minute (Sprout's numbers)",
        rate_pps: (0.0, 1000.0),
        sigma: 200.0,
        outages_per_minute: 2.0,
        outage_s: 0.5,
    },
    CellularLink {
        name: "lte-stand",
        summary: "LTE in one place: 3 to 12 Mbit/s, half of the variation, an outage in 2 minutes",
        rate_pps: (250.0, 1000.0),
        sigma: 100.0,
        outages_per_minute: 0.5,
        outage_s: 0.5,
    },
    CellularLink {
        name: "3g-drive",
        summary: "3G in a moving car: lte-drive with a fifth of the rate",
        rate_pps: (0.0, 200.0),
        sigma: 40.0,
        outages_per_minute: 2.0,
        outage_s: 0.5,
    },
    CellularLink {
        name: "3g-stand",
        summary: "3G in one place: lte-stand with a fifth of the rate",
        rate_pps: (50.0, 200.0),
        sigma: 20.0,
        outages_per_minute: 0.5,
        outage_s: 0.5,
    },
];

impl CellularLink {
    /// Returns the model of this name.
    pub fn find(name: &str) -> Option<Self> {
        CELLULAR_LINKS.into_iter().find(|link| link.name == name)
    }

    /// Returns a trace as CSV: a line for each 100 ms. It depends only on the model, the seed and the length, and a shorter trace is
    /// the start of a longer one.
    pub fn csv(&self, seed: u64, seconds: u32) -> String {
        let mut text = format!(
            "# Synthetic: made by `paceline trace {} --seed {seed} --seconds {seconds}`\ntime_s,rate_mbps\n",
            self.name
        );
        for (line, mbps) in self.rates(seed, seconds).iter().enumerate() {
            writeln!(text, "{:.1},{mbps:.3}", line as f64 * TICK_S * TICKS_PER_LINE as f64)
                .expect("a String takes every write");
        }
        text
    }

    /// Returns the mean rate of each 100 ms, Mbit/s.
    fn rates(&self, seed: u64, seconds: u32) -> Vec<f64> {
        let streams = RandomStreams::new(seed);
        let mut walk = streams.stream(&format!("cellular/{}/walk", self.name));
        let mut outages = streams.stream(&format!("cellular/{}/outages", self.name));
        let (low, high) = self.rate_pps;
        let mut rate = walk.uniform(low, high);
        // Time to the next start or end of an outage.
        let (mut in_outage, mut left) = (false, self.pause(&mut outages));
        let lines = f64::from(seconds) / (TICK_S * TICKS_PER_LINE as f64);
        let tick = |_: usize| {
            rate = reflected(rate + self.sigma * TICK_S.sqrt() * walk.normal(), low, high);
            left -= TICK_S;
            if left <= 0.0 {
                in_outage = !in_outage;
                left = if in_outage { exponential(&mut outages, self.outage_s) } else { self.pause(&mut outages) };
            }
            if in_outage { 0.0 } else { rate * PACKET_BITS / 1e6 }
        };
        let ticks: Vec<f64> = (0..lines.round() as usize * TICKS_PER_LINE).map(tick).collect();
        ticks.chunks(TICKS_PER_LINE).map(|ticks| ticks.iter().sum::<f64>() / TICKS_PER_LINE as f64).collect()
    }

    fn pause(&self, outages: &mut RandomStream) -> f64 {
        exponential(outages, 60.0 / self.outages_per_minute)
    }
}

/// Returns a rate beyond a limit as far inside of it. A step is smaller than the range.
fn reflected(rate: f64, low: f64, high: f64) -> f64 {
    let above = if rate < low { 2.0 * low - rate } else { rate };
    if above > high { 2.0 * high - above } else { above }
}

fn exponential(random: &mut RandomStream, mean: f64) -> f64 {
    -mean * libm::log(1.0 - random.unit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// Mean and standard deviation of the rate, and the part of the time without capacity, over seeds from 1 to 20 of 10 minutes.
    fn statistics(link: &CellularLink) -> (f64, f64, f64) {
        let rates: Vec<f64> =
            (1..=20).flat_map(|seed| link.rates(seed, 600)).map(|mbps| mbps * 1e6 / PACKET_BITS).collect();
        let sent: Vec<f64> = rates.iter().copied().filter(|rate| *rate > 0.0).collect();
        let mean = sent.iter().sum::<f64>() / sent.len() as f64;
        let variance = sent.iter().map(|rate| (rate - mean) * (rate - mean)).sum::<f64>() / sent.len() as f64;
        (mean, variance.sqrt(), 1.0 - sent.len() as f64 / rates.len() as f64)
    }

    /// By hand: a reflected walk is uniform over its range, of mean (low + high) / 2 and standard deviation (high - low) / √12. The
    /// outages have outages_per_minute · outage_s / 60 of the time.
    #[test]
    fn rates_are_uniform_over_the_range() {
        for link in &CELLULAR_LINKS {
            let ((low, high), (mean, deviation, outage)) = (link.rate_pps, statistics(link));
            let expected =
                ((low + high) / 2.0, (high - low) / 12f64.sqrt(), link.outages_per_minute * link.outage_s / 60.0);
            assert!((mean / expected.0 - 1.0).abs() < 0.06, "{}: {mean}, {}", link.name, expected.0);
            assert!((deviation / expected.1 - 1.0).abs() < 0.08, "{}: {deviation}, {}", link.name, expected.1);
            assert!((0.6..1.3).contains(&(outage / expected.2)), "{}: {outage}, {}", link.name, expected.2);
        }
    }

    /// By hand: the difference of the walk over 1 s has the standard deviation σ, 200, where it meets no limit.
    #[test]
    fn walk_has_its_sigma_between_the_limits() {
        let link = CellularLink { rate_pps: (0.0, 1e6), outages_per_minute: 1e-9, ..CELLULAR_LINKS[0] };
        let rates: Vec<f64> =
            (1..=20).flat_map(|seed| link.rates(seed, 600)).map(|mbps| mbps * 1e6 / PACKET_BITS).collect();
        let squares: Vec<f64> =
            rates.chunks(6000).flat_map(|run| run.windows(11)).map(|w| (w[10] - w[0]) * (w[10] - w[0])).collect();
        let sigma = (squares.iter().sum::<f64>() / squares.len() as f64).sqrt();
        assert!((190.0..210.0).contains(&sigma), "{sigma}");
    }

    #[test]
    fn trace_depends_on_the_seed_and_a_shorter_one_is_its_start() {
        let link = &CELLULAR_LINKS[0];
        assert_ne!(link.rates(1, 10), link.rates(2, 10));
        assert_eq!(link.rates(1, 10), link.rates(1, 20)[..100]);
    }

    /// The files of the suite `cellular` are what the command in their first line writes.
    #[test]
    fn shipped_traces_are_current() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/cellular");
        for link in &CELLULAR_LINKS {
            for seed in 1..=2 {
                let file = folder.join(format!("{}-{seed}.csv", link.name));
                let text = std::fs::read_to_string(&file).unwrap_or_default();
                assert!(text == link.csv(seed, 60), "{}: write it again", file.display());
            }
        }
    }
}
