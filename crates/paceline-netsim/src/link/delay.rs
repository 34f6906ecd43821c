// SPDX-License-Identifier: MIT OR Apache-2.0
//! Jitter: a random addition to the propagation delay of each packet.

use paceline_units::{RandomStream, TimeDelta};

/// Whether a packet with a small jitter may overtake one with a large jitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JitterOrder {
    /// No: the packet waits for the previous one (NR-BPDV of RFC 8868, section 4.5.2) and arrives at the same instant.
    ///
    /// In the RFC it arrives later by its serialisation time. On a saturated link packets leave exactly that far apart,
    /// so the delay could never decrease again: a decrease of the scheduled delay would have no effect, and jitter would
    /// stay at its maximum.
    Keep,
    /// Yes (RBPDV of RFC 8868, section 4.5.1).
    Reorder,
}

/// Truncated Gaussian jitter of RFC 8868, section 4.5.3: `|max(min(N(0, std²), k·std), -k·std)|`.
///
/// The formula is one-sided, 0 to `limit`, although the text of the RFC calls it zero-mean.
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
    use paceline_units::RandomStreams;

    #[test]
    fn jitter_is_one_sided_and_truncated() {
        let jitter =
            Jitter { std: TimeDelta::from_millis(5), limit: TimeDelta::from_millis(15), order: JitterOrder::Keep };
        let mut random = RandomStreams::new(1).stream("jitter");
        let draws: Vec<f64> = (0..100_000).map(|_| jitter.draw(&mut random).as_millis_f64()).collect();
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        assert!(draws.iter().all(|d| (0.0..=15.0).contains(d)));
        assert!(draws.iter().filter(|d| **d == 15.0).count() > 100, "0.27 % lie beyond three sigma");
        assert!((mean - 3.98).abs() < 0.05, "folded normal: 5 * sqrt(2/pi) = 3.989, less the tail; got {mean}");
    }
}
