//! Jitter: what a hop adds to its propagation delay, packet by packet.

use paceline_units::{RandomStream, TimeDelta};

/// May a packet that drew a small jitter overtake one that drew a large one?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JitterOrder {
    /// No: it waits for the packet before it (NR-BPDV of RFC 8868, section 4.5.2) and arrives at the same instant.
    ///
    /// The RFC has it arrive later by its serialisation time. On a saturated link packets leave no further apart than
    /// that, so a delay once reached would never be given back: a fall of the scheduled delay would not show, and jitter
    /// would settle at its maximum.
    Keep,
    /// Yes (RBPDV of RFC 8868, section 4.5.1).
    Reorder,
}

/// Truncated Gaussian jitter of RFC 8868, section 4.5.3: `|max(min(N(0, std²), k·std), -k·std)|`.
///
/// As printed it is one-sided, 0 to `limit`, although the text there calls it zero-mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Jitter {
    /// Standard deviation of the Gaussian before truncation and folding.
    pub std: TimeDelta,
    /// The largest jitter, `k·std`.
    pub limit: TimeDelta,
    /// Whether packets may overtake each other.
    pub order: JitterOrder,
}

impl Jitter {
    pub(crate) fn draw(&self, random: &mut RandomStream) -> TimeDelta {
        self.std.scale(random.normal()).abs().min(self.limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_units::Streams;

    #[test]
    fn jitter_is_one_sided_and_truncated() {
        let jitter =
            Jitter { std: TimeDelta::from_millis(5), limit: TimeDelta::from_millis(15), order: JitterOrder::Keep };
        let mut random = Streams::new(1).stream("jitter");
        let draws: Vec<f64> = (0..100_000).map(|_| jitter.draw(&mut random).as_millis_f64()).collect();
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        assert!(draws.iter().all(|d| (0.0..=15.0).contains(d)));
        assert!(draws.iter().filter(|d| **d == 15.0).count() > 100, "0.27 % lie beyond three sigma");
        assert!((mean - 3.98).abs() < 0.05, "folded normal: 5 * sqrt(2/pi) = 3.989, less the tail; got {mean}");
    }
}
