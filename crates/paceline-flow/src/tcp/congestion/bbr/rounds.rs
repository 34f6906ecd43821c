//! Round trips, counted by what is delivered.

use paceline_units::DataSize;

/// Counts round trips: one is over when data is acknowledged that left after it had begun.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    pub count: u64,
    /// The round is over with a segment that left when so much had been delivered (`next_rtt_delivered`).
    end: DataSize,
    /// The ACK at hand begins one (`round_start`).
    pub begins: bool,
}

impl Rounds {
    /// An ACK came of a segment that left when `before` had been delivered of the `delivered` now.
    pub fn handle_ack(&mut self, before: DataSize, delivered: DataSize) {
        self.begins = before >= self.end;
        if self.begins {
            self.end = delivered;
            self.count += 1;
        }
    }

    /// Counts the next round from here, where this much is delivered.
    pub fn restart(&mut self, delivered: DataSize) {
        self.end = delivered;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_is_over_when_what_left_in_it_is_delivered() {
        let mut rounds = Rounds::default();
        let mut begun = Vec::new();
        // Ten in flight, one delivered by each ACK: segment n left when n - 10 were delivered.
        for n in 1..=35_u64 {
            rounds.handle_ack(DataSize::from_bytes(n.saturating_sub(10)), DataSize::from_bytes(n));
            if rounds.begins {
                begun.push(n);
            }
        }
        assert_eq!((begun, rounds.count), (vec![1, 11, 21, 31], 4));
        rounds.restart(DataSize::from_bytes(35));
        rounds.handle_ack(DataSize::from_bytes(34), DataSize::from_bytes(44));
        assert!(!rounds.begins);
        rounds.handle_ack(DataSize::from_bytes(35), DataSize::from_bytes(45));
        assert!(rounds.begins);
    }
}
