// SPDX-License-Identifier: MIT OR Apache-2.0
//! Synthetic capacity of access networks whose rate varies: the log of the rate is normal and correlated from step to step, and gaps
//! without any capacity interrupt it. The path presets in `scenarios/paths` name the statistics that they are fitted to.

use paceline_units::{RandomStream, RandomStreams};
use std::fmt::Write as _;

/// One direction of an access network.
pub(crate) struct AccessLink {
    /// Name of its file.
    pub(crate) name: &'static str,
    /// The states that take turns, each with its median rate in Mbit/s. A link of one state stays in it.
    medians: &'static [f64],
    /// Shortest and longest time in a state, s.
    stay_s: (f64, f64),
    /// Coefficient of variation in a state.
    cv: f64,
    /// Correlation of successive steps.
    correlation: f64,
    /// Length of a step, s.
    step_s: u32,
    /// Kinds of gaps.
    gaps: &'static [Gaps],
}

/// Gaps without capacity, at random times.
struct Gaps {
    per_minute: f64,
    /// Shortest and longest, ms.
    length_ms: (f64, f64),
}

const SECONDS: u32 = 300;
const SEED: u64 = 1;
/// A gap at each change of state, ms.
const CHANGE_MS: (f64, f64) = (40.0, 200.0);

const DRIVE: &[Gaps] =
    &[Gaps { per_minute: 8.0, length_ms: (40.0, 300.0) }, Gaps { per_minute: 0.5, length_ms: (1000.0, 4000.0) }];
const STAND: &[Gaps] = &[Gaps { per_minute: 2.0, length_ms: (200.0, 700.0) }];
const STAND_5G: &[Gaps] = &[Gaps { per_minute: 1.0, length_ms: (100.0, 1000.0) }];
const ORBIT: &[Gaps] =
    &[Gaps { per_minute: 0.4, length_ms: (50.0, 500.0) }, Gaps { per_minute: 0.17, length_ms: (2000.0, 2000.0) }];

const fn constant(
    name: &'static str,
    medians: &'static [f64],
    cv: f64,
    correlation: f64,
    gaps: &'static [Gaps],
) -> AccessLink {
    AccessLink { name, medians, stay_s: (20.0, 60.0), cv, correlation, step_s: 1, gaps }
}

/// Every link whose capacity is a file.
pub(crate) const ACCESS_LINKS: &[AccessLink] = &[
    constant("lte-drive-up", &[1.6], 0.8, 0.8, DRIVE),
    constant("lte-drive-down", &[5.0], 0.8, 0.8, DRIVE),
    constant("lte-stand-up", &[8.0], 0.55, 0.8, STAND),
    constant("lte-stand-down", &[12.0], 0.55, 0.8, STAND),
    constant("5g-stand-up", &[20.0], 0.6, 0.85, STAND_5G),
    constant("5g-stand-down", &[60.0], 0.6, 0.85, STAND_5G),
    constant("5g-drive-up", &[14.0, 2.5], 0.6, 0.8, DRIVE),
    constant("5g-drive-down", &[45.0, 8.0], 0.6, 0.8, DRIVE),
    constant("wifi-home-up", &[18.0], 0.3, 0.5, &[]),
    constant("wifi-home-down", &[60.0], 0.3, 0.5, &[]),
    AccessLink { step_s: 15, ..constant("satellite-leo-up", &[14.0], 0.5, 0.0, ORBIT) },
    AccessLink { step_s: 15, ..constant("satellite-leo-down", &[180.0], 0.5, 0.0, ORBIT) },
];

impl AccessLink {
    /// Returns the rates as CSV: a line for each step, and two for each gap.
    pub(crate) fn csv(&self) -> String {
        let mut text = "# Synthetic: made by `cargo xtask make-traces`\ntime_s,rate_mbps\n".to_owned();
        for (ms, mbps) in self.changes() {
            writeln!(text, "{},{}", f64::from(ms) / 1000.0, (mbps * 1000.0).round() / 1000.0)
                .expect("a String takes every write");
        }
        text
    }

    /// Returns the time in ms and the rate in Mbit/s of each change.
    fn changes(&self) -> Vec<(u32, f64)> {
        let mut random = RandomStreams::new(SEED).stream(self.name);
        let (rates, mut gaps) = self.steps(&mut random);
        for kind in self.gaps {
            let count = (kind.per_minute * f64::from(SECONDS) / 60.0).round() as u32;
            for _ in 0..count {
                let length = random.uniform(kind.length_ms.0, kind.length_ms.1).round();
                let start = random.uniform(0.0, f64::from(SECONDS) * 1000.0 - length).round();
                gaps.push((start as u32, (start + length) as u32));
            }
        }
        let in_gap = |ms: u32| gaps.iter().any(|(from, to)| (*from..*to).contains(&ms));
        let step_ms = self.step_s * 1000;
        let mut times: Vec<u32> = (0..rates.len() as u32).map(|n| n * step_ms).collect();
        times.extend(gaps.iter().flat_map(|(from, to)| [*from, *to]).filter(|ms| *ms < SECONDS * 1000));
        times.sort_unstable();
        let rate = |ms: u32| if in_gap(ms) { 0.0 } else { rates[(ms / step_ms) as usize] };
        let mut changes: Vec<(u32, f64)> = times.into_iter().map(|ms| (ms, rate(ms))).collect();
        changes.dedup_by(|next, before| next.1 == before.1 || next.0 == before.0);
        changes
    }

    /// Returns the rate of each step in Mbit/s, and the gaps between states: from and to, ms.
    fn steps(&self, random: &mut RandomStream) -> (Vec<f64>, Vec<(u32, u32)>) {
        // The log of a log-normal rate with this coefficient of variation has this standard deviation.
        let spread = (1.0 + self.cv * self.cv).ln().sqrt();
        let (mut state, mut log, mut gaps) = (0, random.normal(), Vec::new());
        let mut until = random.uniform(self.stay_s.0, self.stay_s.1);
        let mut rates = Vec::new();
        for start in (0..SECONDS).step_by(self.step_s as usize) {
            if self.medians.len() > 1 && f64::from(start) >= until {
                state = (state + 1) % self.medians.len();
                until = f64::from(start) + random.uniform(self.stay_s.0, self.stay_s.1);
                let length = random.uniform(CHANGE_MS.0, CHANGE_MS.1).round() as u32;
                gaps.push((start * 1000, start * 1000 + length));
            }
            rates.push(self.medians[state] * libm::exp(spread * log));
            let fresh = (1.0 - self.correlation * self.correlation).sqrt() * random.normal();
            log = self.correlation * log + fresh;
        }
        (rates, gaps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_have_the_declared_statistics() {
        // Of 300 steps of correlation a, as many count as 300 (1 - a) / (1 + a) independent ones: about 33 for 0.8. The bounds are
        // two standard errors of the mean of that many logs, and of their standard deviation.
        for link in ACCESS_LINKS.iter().filter(|link| link.medians.len() == 1 && link.step_s == 1) {
            let (rates, _) = link.steps(&mut RandomStreams::new(SEED).stream(link.name));
            let logs: Vec<f64> = rates.iter().map(|rate| (rate / link.medians[0]).ln()).collect();
            let n = logs.len() as f64;
            let mean = logs.iter().sum::<f64>() / n;
            let variance = logs.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
            let products = logs.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum::<f64>() / n;
            let spread = (1.0 + link.cv * link.cv).ln().sqrt();
            let independent = n * (1.0 - link.correlation) / (1.0 + link.correlation);
            assert!(mean.abs() < 2.0 * spread / independent.sqrt(), "{}: {mean}", link.name);
            assert!(
                (variance.sqrt() / spread - 1.0).abs() < 2.0 / (2.0 * independent).sqrt(),
                "{}: {variance}",
                link.name
            );
            assert!((products / variance - link.correlation).abs() < 0.15, "{}: {}", link.name, products / variance);
        }
    }

    #[test]
    fn gaps_last_as_long_as_declared() {
        for link in ACCESS_LINKS {
            let changes = link.changes();
            assert!(changes.is_sorted_by(|a, b| a.0 < b.0), "{}", link.name);
            let spans = changes.windows(2).filter(|pair| pair[0].1 == 0.0).map(|pair| pair[1].0 - pair[0].0);
            let silent: f64 = spans.map(f64::from).sum();
            let mean =
                |gaps: &Gaps| gaps.per_minute * (gaps.length_ms.0 + gaps.length_ms.1) / 2.0 * f64::from(SECONDS) / 60.0;
            let expected: f64 = link.gaps.iter().map(mean).sum();
            assert!(
                (0.5 * expected..=1.5 * expected + 1500.0).contains(&silent),
                "{}: {silent} of {expected}",
                link.name
            );
        }
    }
}
