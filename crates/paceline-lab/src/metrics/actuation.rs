//! What a sender sends, and of it FEC, against what its controller asks for, second by second.

use super::{seconds_between, whole_second};
use paceline_units::{DataSize, Rate, Time};

/// Bits sent and bits asked for, in each second of a run.
#[derive(Clone, Debug)]
pub(crate) struct Actuation {
    sent: Vec<f64>,
    fec: Vec<f64>,
    asked: Vec<f64>,
    /// The target in force, and since when.
    target: Option<(Rate, Time)>,
}

/// Means are over this many seconds.
const SPAN: usize = 5;

impl Actuation {
    pub fn new(seconds: usize) -> Self {
        Self { sent: vec![0.0; seconds], fec: vec![0.0; seconds], asked: vec![0.0; seconds], target: None }
    }

    #[inline]
    pub fn sent(&mut self, at: Time, size: DataSize, is_fec: bool) {
        self.sent[second(at)] += size.as_bits() as f64;
        if is_fec {
            self.fec[second(at)] += size.as_bits() as f64;
        }
    }

    pub fn decided(&mut self, at: Time, target: Rate) {
        self.settle(at);
        self.target = Some((target, at));
    }

    /// Counts the target in force up to `at`.
    pub fn settle(&mut self, at: Time) {
        let Some((rate, since)) = self.target.take() else { return };
        for (a, b) in seconds_between(since, at) {
            self.asked[second(a)] += rate.as_bps_f64() * (b - a).as_secs_f64();
        }
    }

    /// Least and largest mean of sent over asked, over the whole spans of 5 s from `from` to `to`.
    pub fn sent_range(&self, from: Time, to: Time) -> Option<(f64, f64)> {
        self.range(&self.sent, from, to)
    }

    /// The same of FEC.
    pub fn fec_range(&self, from: Time, to: Time) -> Option<(f64, f64)> {
        self.range(&self.fec, from, to)
    }

    fn range(&self, bits: &[f64], from: Time, to: Time) -> Option<(f64, f64)> {
        let seconds: Vec<usize> =
            seconds_between(from, to).filter(|(a, b)| whole_second(*a, *b)).map(|(a, _)| second(a)).collect();
        let mean = |span: &[usize]| {
            let sum = |of: &[f64]| span.iter().map(|s| of[*s]).sum::<f64>();
            Some(sum(bits) / sum(&self.asked)).filter(|mean| mean.is_finite())
        };
        let means = seconds.chunks_exact(SPAN).map(mean).collect::<Option<Vec<f64>>>()?;
        let least = means.iter().copied().reduce(f64::min)?;
        let most = means.iter().copied().reduce(f64::max)?;
        Some((least, most))
    }
}

fn second(at: Time) -> usize {
    (at.as_nanos() / 1_000_000_000) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_seconds_by_hand() {
        let mut a = Actuation::new(11);
        let at = Time::from_millis;
        // 1 Mbit/s is asked for until 2.5 s, then 3: 2.5 + 7.5 = 10 Mbit in the first five seconds, 15 in the next.
        a.decided(at(0), Rate::from_kbps(1000));
        a.decided(at(2500), Rate::from_kbps(3000));
        a.settle(at(10_000));
        a.sent(at(1), DataSize::from_bytes(1_000_000), false);
        a.sent(at(4999), DataSize::from_bytes(500_000), true);
        a.sent(at(5000), DataSize::from_bytes(1_500_000), false);
        let (least, most) = a.fec_range(at(0), at(10_000)).unwrap();
        assert!(least == 0.0 && (most - 0.4).abs() < 1e-9, "{least} {most}: 0/15 and 4/10");
        let (least, most) = a.sent_range(at(0), at(10_000)).unwrap();
        assert!((least - 0.8).abs() < 1e-9 && (most - 1.2).abs() < 1e-9, "{least} {most}: 12/15 and 12/10");
        assert_eq!(a.sent_range(at(0), at(4000)), None, "no whole 5 s");
    }
}
