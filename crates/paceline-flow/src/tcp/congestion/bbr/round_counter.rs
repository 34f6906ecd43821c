//! Counts round trips by delivered data.

use paceline_units::DataSize;

/// Counts round trips. A round ends when a segment is acknowledged that was sent after the round had begun.
#[derive(Debug, Default)]
pub(super) struct RoundCounter {
    pub count: u64,
    /// The round ends with a segment that was sent when this much had been delivered (`next_rtt_delivered`).
    end: DataSize,
    /// The current ACK begins a round (`round_start`).
    pub begins: bool,
}

impl RoundCounter {
    /// Handles an ACK of a segment that was sent when `before` had been delivered, with `delivered` delivered now.
    pub fn handle_ack(&mut self, before: DataSize, delivered: DataSize) {
        self.begins = before >= self.end;
        if self.begins {
            self.end = delivered;
            self.count += 1;
        }
    }

    /// Begins counting the next round when this much is delivered.
    pub fn restart(&mut self, delivered: DataSize) {
        self.end = delivered;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_ends_when_a_segment_sent_in_it_is_delivered() {
        let mut rounds = RoundCounter::default();
        let mut begun = Vec::new();
        // Ten in flight, one delivered per ACK: segment n was sent when n - 10 were delivered.
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
