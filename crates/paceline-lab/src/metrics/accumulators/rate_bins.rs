// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rates of one flow in bins of 200 ms, the interval of RFC 8868, section 3, and of 1 s: what was sent, what arrived, and what the
//! target requested.

use paceline_units::{DataSize, Rate, Time, TimeDelta};

/// The interval at which RFC 8868, section 3, measures rates.
pub(crate) const INTERVAL: TimeDelta = TimeDelta::from_millis(200);
const PER_SECOND: usize = 5;

/// Bytes sent and received in each interval of a run, and what the target requested in each second.
#[derive(Clone, Debug)]
pub(crate) struct RateBins {
    /// Bytes received while the flow lived.
    received: Vec<u64>,
    sent: Vec<u64>,
    /// Of a media flow; empty for another.
    seconds: Vec<SecondBin>,
}

#[derive(Clone, Copy, Debug, Default)]
struct SecondBin {
    fec: f64,
    target: f64,
}

/// Length of the means that [`RateBins::sent_over_target`] compares, in seconds.
const MEAN_OVER: usize = 5;

impl RateBins {
    pub fn new(seconds: usize, is_media: bool) -> Self {
        Self {
            received: vec![0; seconds * PER_SECOND],
            sent: vec![0; seconds * PER_SECOND],
            seconds: vec![SecondBin::default(); if is_media { seconds } else { 0 }],
        }
    }

    #[inline]
    pub fn add_received(&mut self, at: Time, size: DataSize) {
        self.received[interval(at)] += size.as_bytes();
    }

    #[inline]
    pub fn add_sent(&mut self, at: Time, size: DataSize, is_fec: bool) {
        self.sent[interval(at)] += size.as_bytes();
        if is_fec {
            self.seconds[second(at)].fec += size.as_bits() as f64;
        }
    }

    /// Adds a target that was in force from `from` to `to`.
    pub fn add_target(&mut self, target: Rate, from: Time, to: Time) {
        if self.seconds.is_empty() {
            return;
        }
        for (a, b) in seconds_between(from, to) {
            self.seconds[second(a)].target += target.as_bps_f64() * (b - a).as_secs_f64();
        }
    }

    /// Returns the bytes received in the second that contains `at`.
    pub fn received_at(&self, at: Time) -> u64 {
        sum_of_second(&self.received, second(at))
    }

    /// Returns the bytes received in each whole second from `from` to `to`.
    pub fn received_in(&self, from: Time, to: Time) -> impl Iterator<Item = u64> + '_ {
        whole_seconds(from, to).map(|(a, _)| self.received_at(a))
    }

    /// Returns the bytes sent in each whole second from `from` to `to`.
    pub fn sent_in(&self, from: Time, to: Time) -> impl Iterator<Item = u64> + '_ {
        whole_seconds(from, to).map(|(a, _)| sum_of_second(&self.sent, second(a)))
    }

    /// Returns the bytes received in each second of the run.
    pub fn into_received_seconds(self) -> Vec<u64> {
        self.received.chunks_exact(PER_SECOND).map(|intervals| intervals.iter().sum()).collect()
    }

    /// Returns the bytes received in each whole interval from `from` to `to`.
    pub fn received_intervals(&self, from: Time, to: Time) -> &[u64] {
        whole_intervals(&self.received, from, to)
    }

    /// Returns the bytes sent in each whole interval from `from` to `to`.
    pub fn sent_intervals(&self, from: Time, to: Time) -> &[u64] {
        whole_intervals(&self.sent, from, to)
    }

    /// Returns the least and the largest mean, over 5 s, of what was sent over the target, in the whole 5 s from `from` to
    /// `to`; `None` if there are none, or if there was no target in one of them.
    pub fn sent_over_target(&self, from: Time, to: Time) -> Option<(f64, f64)> {
        self.over_target(|bins, second| sum_of_second(&bins.sent, second) as f64 * 8.0, from, to)
    }

    /// Returns the same for forward error correction.
    pub fn fec_over_target(&self, from: Time, to: Time) -> Option<(f64, f64)> {
        self.over_target(|bins, second| bins.seconds[second].fec, from, to)
    }

    fn over_target(&self, bits: fn(&Self, usize) -> f64, from: Time, to: Time) -> Option<(f64, f64)> {
        if self.seconds.is_empty() {
            return None;
        }
        let seconds: Vec<usize> = whole_seconds(from, to).map(|(a, _)| second(a)).collect();
        let mean = |span: &[usize]| {
            let sum = |of: &dyn Fn(usize) -> f64| span.iter().map(|second| of(*second)).sum::<f64>();
            let target = sum(&|second| self.seconds[second].target);
            Some(sum(&|second| bits(self, second)) / target).filter(|mean| mean.is_finite())
        };
        let means = seconds.chunks_exact(MEAN_OVER).map(mean).collect::<Option<Vec<f64>>>()?;
        let least = means.iter().copied().reduce(f64::min)?;
        let most = means.iter().copied().reduce(f64::max)?;
        Some((least, most))
    }
}

fn sum_of_second(intervals: &[u64], second: usize) -> u64 {
    intervals.get(second * PER_SECOND..(second + 1) * PER_SECOND).map_or(0, |bins| bins.iter().sum())
}

/// Returns the bins that lie between two times as a whole.
fn whole_intervals(bins: &[u64], from: Time, to: Time) -> &[u64] {
    let first = interval(from + INTERVAL - TimeDelta::from_nanos(1));
    bins.get(first..interval(to).min(bins.len())).unwrap_or(&[])
}

#[inline]
fn interval(at: Time) -> usize {
    (at.as_nanos() / INTERVAL.as_nanos()) as usize
}

#[inline]
fn second(at: Time) -> usize {
    (at.as_nanos() / 1_000_000_000) as usize
}

/// Returns the parts of a span that is cut at whole seconds.
pub(crate) fn seconds_between(from: Time, to: Time) -> impl Iterator<Item = (Time, Time)> {
    let next = |t: Time| Time::from_secs(t.as_nanos() / 1_000_000_000 + 1);
    core::iter::successors((from < to).then_some(from), move |t| Some(next(*t)).filter(|n| *n < to))
        .map(move |t| (t, next(t).min(to)))
}

/// Returns those parts that are 1 s long.
pub(crate) fn whole_seconds(from: Time, to: Time) -> impl Iterator<Item = (Time, Time)> {
    seconds_between(from, to).filter(|(a, b)| *b - *a == TimeDelta::from_secs(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_over_five_seconds_match_arithmetic() {
        let mut bins = RateBins::new(11, true);
        let at = Time::from_millis;
        // A target of 1 Mbit/s until 2.5 s, then 3: 2.5 + 7.5 = 10 Mbit in the first five seconds, 15 in the next.
        bins.add_target(Rate::from_kbps(1000), at(0), at(2500));
        bins.add_target(Rate::from_kbps(3000), at(2500), at(10_000));
        bins.add_sent(at(1), DataSize::from_bytes(1_000_000), false);
        bins.add_sent(at(4999), DataSize::from_bytes(500_000), true);
        bins.add_sent(at(5000), DataSize::from_bytes(1_500_000), false);
        let (least, most) = bins.fec_over_target(at(0), at(10_000)).unwrap();
        assert!(least == 0.0 && (most - 0.4).abs() < 1e-9, "{least} {most}: 0/15 and 4/10");
        let (least, most) = bins.sent_over_target(at(0), at(10_000)).unwrap();
        assert!((least - 0.8).abs() < 1e-9 && (most - 1.2).abs() < 1e-9, "{least} {most}: 12/15 and 12/10");
        assert_eq!(bins.sent_over_target(at(0), at(4000)), None, "no whole 5 s");
    }

    #[test]
    fn intervals_of_200_ms_add_up_to_seconds() {
        let mut bins = RateBins::new(3, false);
        let at = Time::from_millis;
        for (ms, bytes) in [(0, 1), (199, 2), (200, 4), (999, 8), (1000, 16), (1400, 32), (2999, 64)] {
            bins.add_received(at(ms), DataSize::from_bytes(bytes));
            bins.add_sent(at(ms), DataSize::from_bytes(bytes * 100), false);
        }
        assert_eq!(bins.received_intervals(at(0), at(1000)), [3, 4, 0, 0, 8]);
        assert_eq!(bins.received_intervals(at(1), at(999)), [4, 0, 0], "only whole intervals");
        assert_eq!(bins.sent_intervals(at(1000), at(1600)), [1600, 0, 3200]);
        assert_eq!(bins.received_intervals(at(9000), at(9999)), [] as [u64; 0]);
        assert_eq!((bins.received_at(at(1999)), bins.received_at(at(5000))), (48, 0));
        assert_eq!(bins.sent_in(at(0), at(3000)).collect::<Vec<_>>(), [1500, 4800, 6400]);
        assert_eq!(bins.sent_over_target(at(0), at(3000)), None, "no media");
        assert_eq!(bins.into_received_seconds(), [15, 48, 64]);
    }
}
