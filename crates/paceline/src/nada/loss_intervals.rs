//! The average loss interval `loss_int` of RFC 5348, section 5.4, in packets, and how long ago the last loss was.
//!
//! A loss event is a gap in the sequence: a receiver knows no round-trip time, within which RFC 5348 takes losses as one,
//! and RFC 8698 refers to section 5.4 alone. The first interval is what came before the first loss.
//!
//! `loss_int` is taken as it was at the last loss. With the open interval `I_0` in it no loss would ever expire: `I_0` has
//! weight 1 of at most 6, so `loss_exp = 7 loss_int` is more than `I_0`, however long that gets.

/// Closed intervals that count.
const INTERVALS: usize = 8;
/// Their weights, newest first.
const WEIGHTS: [f64; INTERVALS] = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];

/// `I_mean` of RFC 5348, section 5.4: `intervals` are `I_0`, which is open, to `I_k`. `None` before the first loss.
pub fn average_loss_interval(intervals: &[f64]) -> Option<f64> {
    let k = intervals.len().checked_sub(1).filter(|k| *k > 0)?.min(INTERVALS);
    let total = |intervals: &[f64]| intervals.iter().zip(WEIGHTS).map(|(i, w)| i * w).sum::<f64>();
    let weights: f64 = WEIGHTS[..k].iter().sum();
    Some(total(&intervals[..k]).max(total(&intervals[1..=k])) / weights)
}

/// Keeps the intervals of a sequence.
#[derive(Clone, Debug, Default)]
pub struct LossIntervals {
    /// `I_0`, then the closed ones, newest first.
    intervals: [f64; INTERVALS + 1],
    /// How many are closed.
    closed: usize,
    /// `loss_int`, as of the last loss.
    average: Option<f64>,
}

impl LossIntervals {
    /// A packet came behind so many missing ones.
    pub fn handle_packet(&mut self, missing: u32) {
        if missing > 0 {
            self.intervals.rotate_right(1);
            self.intervals[0] = 0.0;
            self.closed = (self.closed + 1).min(INTERVALS);
            self.average = average_loss_interval(&self.intervals[..=self.closed]);
        }
        self.intervals[0] += f64::from(missing) + 1.0;
    }

    /// `loss_int`; `None` before the first loss.
    pub fn average(&self) -> Option<f64> {
        self.average
    }

    /// How much the last loss still says: 1 up to `multiloss` loss intervals ago, and none one interval later.
    pub fn standing(&self, multiloss: f64) -> f64 {
        let Some(average) = self.average else { return 0.0 };
        (multiloss + 1.0 - self.intervals[0] / average.max(1.0)).clamp(0.0, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(packets: &[u32]) -> LossIntervals {
        let mut intervals = LossIntervals::default();
        packets.iter().for_each(|missing| intervals.handle_packet(*missing));
        intervals
    }

    /// The sequence 0 1 2 3 [4 5] 6 7 [8] 9: four packets before the first loss, four to the second, two since.
    #[test]
    fn a_gap_ends_an_interval() {
        let seen = after(&[0, 0, 0, 0, 2, 0, 1]);
        assert_eq!((seen.intervals[..3].to_vec(), seen.closed), (vec![2.0, 4.0, 4.0], 2));
        assert_eq!((seen.average(), after(&[0, 0]).average()), (Some(4.0), None));
        let mut many = vec![0; 30];
        many.extend([1; 20]);
        assert_eq!(after(&many).average(), Some(2.0), "the first interval is forgotten");
    }

    /// Intervals of 10: the loss stands for 70 packets, then fades over 10.
    #[test]
    fn a_loss_expires() {
        let mut seen = after(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(after(&[0; 100]).standing(7.0), 0.0, "there was none");
        for packets in 2..100u32 {
            let expected = (8.0 - f64::from(packets) / 10.0).clamp(0.0, 1.0);
            assert!((seen.standing(7.0) - expected).abs() < 1e-12, "{packets}");
            seen.handle_packet(0);
        }
        assert_eq!(seen.standing(7.0), 0.0);
        seen.handle_packet(3);
        assert_eq!(seen.standing(7.0), 1.0);
    }
}
