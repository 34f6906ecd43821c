// SPDX-License-Identifier: MIT OR Apache-2.0
//! The average loss interval `loss_int` of RFC 5348, section 5.4, in packets, and the expiry of the last loss.
//!
//! A loss event is a gap in the sequence. RFC 5348 merges the losses within a round-trip time, but the receiver does
//! not know the round-trip time, and RFC 8698 refers to section 5.4 alone. The first interval consists of the packets
//! before the first loss.
//!
//! `loss_int` is the value at the last loss. If it contained the open interval `I_0`, no loss would ever expire: `I_0`
//! has weight 1 of at most 6, so `loss_exp = 7 loss_int` would always exceed `I_0`.

/// The number of closed intervals in the average.
const INTERVALS: usize = 8;
/// Their weights, newest first.
const WEIGHTS: [f64; INTERVALS] = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];

/// Returns `I_mean` of RFC 5348, section 5.4, for the intervals `I_0`, which is open, to `I_k`; `None` before the first
/// loss.
pub fn average_loss_interval(intervals: &[f64]) -> Option<f64> {
    let k = intervals.len().checked_sub(1).filter(|k| *k > 0)?.min(INTERVALS);
    let total = |intervals: &[f64]| intervals.iter().zip(WEIGHTS).map(|(i, w)| i * w).sum::<f64>();
    let weights: f64 = WEIGHTS[..k].iter().sum();
    Some(total(&intervals[..k]).max(total(&intervals[1..=k])) / weights)
}

/// The loss intervals of a sequence.
#[derive(Clone, Debug, Default)]
pub struct LossIntervals {
    /// `I_0`, then the closed ones, newest first.
    intervals: [f64; INTERVALS + 1],
    /// The number of closed intervals.
    closed: usize,
    /// `loss_int` at the last loss.
    pub average: Option<f64>,
}

impl LossIntervals {
    /// Handles a packet after this many missing ones.
    #[inline]
    pub fn handle_packet(&mut self, missing: u32) {
        if missing > 0 {
            self.close();
        }
        self.intervals[0] += f64::from(missing) + 1.0;
    }

    /// Closes the open interval.
    #[cold]
    fn close(&mut self) {
        self.intervals.rotate_right(1);
        self.intervals[0] = 0.0;
        self.closed = (self.closed + 1).min(INTERVALS);
        self.average = average_loss_interval(&self.intervals[..=self.closed]);
    }

    /// Returns the weight of the last loss: 1 up to `multiloss` average loss intervals after it, then falling to 0
    /// within one interval.
    pub fn last_loss_weight(&self, multiloss: f64) -> f64 {
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
    fn gaps_end_intervals() {
        let seen = after(&[0, 0, 0, 0, 2, 0, 1]);
        assert_eq!((seen.intervals[..3].to_vec(), seen.closed), (vec![2.0, 4.0, 4.0], 2));
        assert_eq!((seen.average, after(&[0, 0]).average), (Some(4.0), None));
        let mut many = vec![0; 30];
        many.extend([1; 20]);
        assert_eq!(after(&many).average, Some(2.0), "the first interval is forgotten");
    }

    /// With intervals of 10 the loss counts fully for 70 packets, then its weight falls over 10.
    #[test]
    fn last_loss_expires() {
        let mut seen = after(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(after(&[0; 100]).last_loss_weight(7.0), 0.0, "no loss");
        for packets in 2..100u32 {
            let expected = (8.0 - f64::from(packets) / 10.0).clamp(0.0, 1.0);
            assert!((seen.last_loss_weight(7.0) - expected).abs() < 1e-12, "{packets}");
            seen.handle_packet(0);
        }
        assert_eq!(seen.last_loss_weight(7.0), 0.0);
        seen.handle_packet(3);
        assert_eq!(seen.last_loss_weight(7.0), 1.0);
    }
}
