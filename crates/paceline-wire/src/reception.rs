// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reception statistics of one source for a report block: extended sequence number, losses, jitter.
//!
//! RFC 3550, appendices A.1 (sequence numbers, without probation, because signalling announces the sources), A.3 (losses)
//! and A.8 (jitter). The fraction lost is in units of 1/256.

use crate::report::ReportBlock;

/// A forward jump of fewer packets than this is loss.
const MAX_DROPOUT: u16 = 3000;
/// A backward jump of at most this many packets is reordering.
const MAX_MISORDER: u16 = 100;

/// Reception statistics of one source (SSRC).
#[derive(Clone, Copy, Debug, Default)]
pub struct ReceptionStats {
    source: Option<Source>,
    /// The next sequence number, if the source has restarted after a large jump.
    expected_restart: Option<u16>,
    /// 16 times the jitter, in units of the RTP clock.
    jitter_16: u32,
    last_transit: Option<u32>,
}

/// Counts since the start or restart of the source.
#[derive(Clone, Copy, Debug)]
struct Source {
    /// The first and the highest sequence number, extended by cycles.
    first: u64,
    highest: u64,
    received: u64,
    expected_before: u64,
    received_before: u64,
}

impl ReceptionStats {
    /// Counts a packet. Timestamp and arrival are in units of the same RTP clock; arrivals may have any origin.
    ///
    /// Returns false if the sequence number is too far from the others; the packet is not counted. After two such packets
    /// with consecutive numbers, the source counts as restarted.
    pub fn on_packet(&mut self, sequence: u16, rtp_timestamp: u32, arrival: u32) -> bool {
        if !self.count(sequence) {
            return false;
        }
        let transit = arrival.wrapping_sub(rtp_timestamp);
        if let Some(last) = self.last_transit.replace(transit) {
            let d = (transit.wrapping_sub(last) as i32).unsigned_abs();
            // J += (|D| - J) / 16, rounded as in A.8.
            self.jitter_16 = self.jitter_16.saturating_add(d) - ((self.jitter_16.saturating_add(8)) >> 4);
        }
        true
    }

    /// Returns whether a packet was counted.
    pub fn has_received(&self) -> bool {
        self.source.is_some()
    }

    /// Returns the block for a report that is sent now, and starts the next interval. Returns `None` before the first
    /// packet. `last_sr` and `delay_since_last_sr` are copied into the block.
    pub fn block(&mut self, ssrc: u32, last_sr: u32, delay_since_last_sr: u32) -> Option<ReportBlock> {
        let source = self.source.as_mut()?;
        let expected = source.highest - source.first + 1;
        let lost = (expected as i64 - source.received as i64).clamp(-0x80_0000, 0x7F_FFFF);
        let expected_now = expected - source.expected_before;
        let lost_now = expected_now.saturating_sub(source.received - source.received_before);
        source.expected_before = expected;
        source.received_before = source.received;
        Some(ReportBlock {
            ssrc,
            fraction_lost: (lost_now * 256).checked_div(expected_now).unwrap_or(0).min(255) as u8,
            cumulative_lost: lost as i32,
            highest_sequence: source.highest as u32,
            jitter: self.jitter_16 >> 4,
            last_sr,
            delay_since_last_sr,
        })
    }

    /// Counts a sequence number (appendix A.1).
    fn count(&mut self, sequence: u16) -> bool {
        let Some(source) = &mut self.source else {
            self.source = Some(Source::starting_at(sequence));
            return true;
        };
        let ahead = sequence.wrapping_sub(source.highest as u16);
        if ahead < MAX_DROPOUT {
            source.highest += u64::from(ahead);
        } else if ahead <= 0u16.wrapping_sub(MAX_MISORDER) {
            if self.expected_restart != Some(sequence) {
                self.expected_restart = Some(sequence.wrapping_add(1));
                return false;
            }
            *self = Self { source: Some(Source::starting_at(sequence)), jitter_16: self.jitter_16, ..Self::default() };
            return true;
        }
        source.received += 1;
        true
    }
}

impl Source {
    fn starting_at(sequence: u16) -> Self {
        let at = u64::from(sequence);
        Self { first: at, highest: at, received: 1, expected_before: 0, received_before: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Counts packets that all have the same transit time.
    fn feed(stats: &mut ReceptionStats, sequences: impl IntoIterator<Item = u16>) {
        for s in sequences {
            assert!(stats.on_packet(s, 0, 0), "{s}");
        }
    }
    fn block(stats: &mut ReceptionStats) -> (u8, i32, u32) {
        let b = stats.block(7, 8, 9).unwrap();
        assert_eq!((b.ssrc, b.last_sr, b.delay_since_last_sr), (7, 8, 9));
        (b.fraction_lost, b.cumulative_lost, b.highest_sequence)
    }

    #[test]
    fn losses_match_computed_values() {
        let mut s = ReceptionStats::default();
        assert_eq!(s.block(1, 0, 0), None);
        feed(&mut s, [65533, 65534, 2]); // 65535, 0 and 1 are missing: 3 of 6
        assert_eq!(block(&mut s), (128, 3, 0x1_0002));
        assert_eq!(block(&mut s), (0, 3, 0x1_0002), "nothing new, nothing lost");
        feed(&mut s, [65535, 0, 1, 3]); // the late ones come: expected 1, received 4
        assert_eq!(block(&mut s), (0, 0, 0x1_0003));
        feed(&mut s, [3, 3, 4]); // duplicates: cumulative goes below zero
        assert_eq!(block(&mut s), (0, -2, 0x1_0004));
        feed(&mut s, [24]); // 19 lost of 20: floor(19 * 256 / 20) = 243
        assert_eq!(block(&mut s), (243, 17, 0x1_0018));
    }

    #[test]
    fn large_jumps_restart_the_source() {
        let mut s = ReceptionStats::default();
        feed(&mut s, [1000, 3999]); // 2999 ahead: loss
        assert_eq!(block(&mut s).1, 2998);
        feed(&mut s, [3900]); // 99 back: reordering
        assert_eq!(block(&mut s), (0, 2997, 3999));
        assert!(!s.on_packet(6999, 0, 0), "3000 ahead: not counted");
        assert!(!s.on_packet(3899, 0, 0), "100 back: not counted");
        assert!(!s.on_packet(6999, 0, 0), "nor the same number twice");
        assert_eq!(block(&mut s), (0, 2997, 3999));
        feed(&mut s, [7000]); // consecutive: the source has restarted
        assert_eq!(block(&mut s), (0, 0, 7000));
        feed(&mut s, [7002]);
        assert_eq!(block(&mut s), (128, 1, 7002));
    }

    #[test]
    fn cumulative_loss_saturates() {
        let mut s = ReceptionStats::default();
        let mut at = 0u16;
        for _ in 0..3000 {
            feed(&mut s, [at]);
            at = at.wrapping_add(2999);
        }
        // 2999 * 2998 = 8 991 002 lost, more than 0x7FFFFF = 8 388 607.
        assert_eq!(block(&mut s).1, 0x7F_FFFF);
        let mut s = ReceptionStats::default();
        for _ in 0..=0x80_0002 {
            s.count(5);
        }
        assert_eq!(block(&mut s).1, -0x80_0000);
    }

    #[test]
    fn jitter_matches_computed_values() {
        let mut s = ReceptionStats::default();
        s.on_packet(1, 0, 1000);
        s.on_packet(2, 3000, 4160); // D = 160: 16 J = 160 - (8 >> 4) = 160, J = 10
        assert_eq!(s.block(0, 0, 0).unwrap().jitter, 10);
        s.on_packet(3, 6000, 7000); // D = -160: 16 J = 160 + 160 - (168 >> 4) = 310, J = 19
        assert_eq!(s.block(0, 0, 0).unwrap().jitter, 19);
        let mut s = ReceptionStats::default();
        for arrival in [0, 168, 168] {
            s.on_packet(1, 0, arrival);
        }
        assert_eq!(s.jitter_16, 157, "168, then 168 - ((168 + 8) >> 4): the decay is rounded");
        // The timestamp wraps between these two; the transit time does not change.
        let mut s = ReceptionStats::default();
        s.on_packet(1, u32::MAX - 99, 500);
        s.on_packet(2, 200, 800);
        assert_eq!(s.block(0, 0, 0).unwrap().jitter, 0);
        // The largest possible changes neither overflow nor panic.
        for i in 0..200u16 {
            s.on_packet(3 + i, 0, if i % 2 == 0 { 0x8000_0000 } else { 0 });
        }
        assert!(s.block(0, 0, 0).unwrap().jitter > 1 << 27);
    }

    proptest! {
        /// Any pattern of losses without a restart.
        #[test]
        fn losses_are_expected_minus_received(start in any::<u16>(), kept in proptest::collection::vec(any::<bool>(), 1..2000)) {
            let mut s = ReceptionStats::default();
            prop_assert!(s.on_packet(start, 0, 0));
            let (mut highest, mut received) = (0, 1);
            for (i, _) in kept.iter().enumerate().filter(|(_, kept)| **kept) {
                highest = i + 1;
                received += 1;
                prop_assert!(s.on_packet(start.wrapping_add(highest as u16), 0, 0));
            }
            let b = s.block(1, 0, 0).unwrap();
            let lost = highest + 1 - received;
            prop_assert_eq!(b.cumulative_lost, lost as i32);
            prop_assert_eq!(usize::from(b.fraction_lost), lost * 256 / (highest + 1));
            prop_assert_eq!(b.highest_sequence, u32::from(start) + highest as u32);
        }
    }
}
