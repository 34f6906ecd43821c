//! Rates of one flow in bins of 1 s: what arrived, and what was sent beside the target.

use paceline_units::{DataSize, Rate, Time, TimeDelta};

/// Bytes received, and bits sent and requested by the target, in each second of a run.
#[derive(Clone, Debug)]
pub(crate) struct RateBins {
    /// Bytes received while the flow lived.
    pub received: Vec<u64>,
    /// Of a media flow; empty for another.
    sent: Vec<SentBin>,
}

/// Bits in a second.
#[derive(Clone, Copy, Debug, Default)]
struct SentBin {
    sent: f64,
    fec: f64,
    target: f64,
}

/// Length of the means that [`RateBins::sent_over_target`] compares, in bins.
const MEAN_OVER: usize = 5;

impl RateBins {
    pub fn new(seconds: usize, is_media: bool) -> Self {
        Self { received: vec![0; seconds], sent: vec![SentBin::default(); if is_media { seconds } else { 0 }] }
    }

    #[inline]
    pub fn add_sent(&mut self, at: Time, size: DataSize, is_fec: bool) {
        if self.sent.is_empty() {
            return;
        }
        let bin = &mut self.sent[second(at)];
        bin.sent += size.as_bits() as f64;
        if is_fec {
            bin.fec += size.as_bits() as f64;
        }
    }

    /// Adds a target that was in force from `from` to `to`.
    pub fn add_target(&mut self, target: Rate, from: Time, to: Time) {
        if self.sent.is_empty() {
            return;
        }
        for (a, b) in seconds_between(from, to) {
            self.sent[second(a)].target += target.as_bps_f64() * (b - a).as_secs_f64();
        }
    }

    /// Returns the bytes received in the second that contains `at`.
    pub fn received_at(&self, at: Time) -> u64 {
        self.received.get(second(at)).copied().unwrap_or(0)
    }

    /// Returns the bytes received in each whole second from `from` to `to`.
    pub fn received_in(&self, from: Time, to: Time) -> impl Iterator<Item = u64> + '_ {
        whole_seconds(from, to).map(|(a, _)| self.received[second(a)])
    }

    /// Returns the least and the largest mean, over 5 s, of what was sent over the target, in the whole 5 s from `from` to
    /// `to`; `None` if there are none, or if there was no target in one of them.
    pub fn sent_over_target(&self, from: Time, to: Time) -> Option<(f64, f64)> {
        self.over_target(|bin| bin.sent, from, to)
    }

    /// Returns the same for forward error correction.
    pub fn fec_over_target(&self, from: Time, to: Time) -> Option<(f64, f64)> {
        self.over_target(|bin| bin.fec, from, to)
    }

    fn over_target(&self, bits: fn(&SentBin) -> f64, from: Time, to: Time) -> Option<(f64, f64)> {
        if self.sent.is_empty() {
            return None;
        }
        let bins: Vec<SentBin> = whole_seconds(from, to).map(|(a, _)| self.sent[second(a)]).collect();
        let mean = |span: &[SentBin]| {
            let sum = |of: fn(&SentBin) -> f64| span.iter().map(of).sum::<f64>();
            Some(sum(bits) / sum(|bin| bin.target)).filter(|mean| mean.is_finite())
        };
        let means = bins.chunks_exact(MEAN_OVER).map(mean).collect::<Option<Vec<f64>>>()?;
        let least = means.iter().copied().reduce(f64::min)?;
        let most = means.iter().copied().reduce(f64::max)?;
        Some((least, most))
    }
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
}
