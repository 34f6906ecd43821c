// SPDX-License-Identifier: MIT OR Apache-2.0
//! The congestion window during loss recovery, and while it falls after a mark.

use super::profile::WindowReduction;

/// The inputs of an ACK, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    /// Newly acknowledged, in order or selectively (DeliveredData).
    pub delivered: u64,
    /// The ACK advanced the cumulative acknowledgment and showed no further loss.
    pub good: bool,
    /// Estimated bytes in the network.
    pub pipe: u64,
    /// Slow-start threshold.
    pub ssthresh: u64,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Recovery {
    rule: WindowReduction,
    /// Bytes in a full segment.
    segment: u64,
    /// The recovery ends when all segments below are acknowledged (RecoveryPoint).
    pub point: u64,
    /// A rescue retransmission is allowed once all segments below this are acknowledged (RescueRxt).
    pub rescue: u64,
    /// Bytes in flight at the start (RecoverFS; after a mark the window), and bytes delivered and sent since.
    flight: u64,
    delivered: u64,
    sent: u64,
}

/// RFC 6937, section 3: the bytes that may be sent for `delivered` bytes, in the proportion of threshold to flight.
fn proportional(delivered: u64, ssthresh: u64, flight: u64) -> u64 {
    (delivered as u128 * ssthresh as u128).div_ceil(flight.max(1) as u128) as u64
}

impl Recovery {
    pub fn new(rule: WindowReduction, segment: u64, point: u64, flight: u64) -> Self {
        Self { rule, segment, point, rescue: point, flight, delivered: 0, sent: 0 }
    }

    /// Returns the window after an ACK.
    pub fn window(&mut self, progress: Progress) -> u64 {
        match self.rule {
            WindowReduction::Immediate => progress.ssthresh,
            WindowReduction::Proportional => progress.pipe + self.allowance(progress),
        }
    }

    /// Returns the window after an ACK while it falls after a mark. One segment leaves at once: it carries CWR.
    pub fn window_after_mark(&mut self, progress: Progress) -> u64 {
        let window = self.window(progress);
        if self.sent == 0 { window.max(progress.pipe + self.segment) } else { window }
    }

    /// RFC 6937, section 3: the bytes that this ACK allows (sndcnt). The reduction bound is slow start while the ACKs
    /// make good progress, and packet conservation otherwise, as in Linux (`tcp_cwnd_reduction`) and RFC 9937.
    fn allowance(&mut self, Progress { delivered, good, pipe, ssthresh }: Progress) -> u64 {
        self.delivered += delivered;
        if pipe > ssthresh {
            return proportional(self.delivered, ssthresh, self.flight).saturating_sub(self.sent);
        }
        let conserved = self.delivered.saturating_sub(self.sent).max(delivered);
        let limit = conserved + if good { self.segment } else { 0 };
        limit.min(ssthresh - pipe)
    }

    /// Continues this reduction with a recovery that ends at `point`.
    pub fn recover(self, point: u64) -> Self {
        Self { point, rescue: point, ..self }
    }

    pub fn handle_sent(&mut self, bytes: u64) {
        self.sent += bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 6937, section 4, first example: 20 segments in flight, the first lost, half the window after it.
    #[test]
    fn every_second_ack_allows_a_segment() {
        let mut recovery = Recovery::new(WindowReduction::Proportional, 1, 20, 20);
        let (mut pipe, mut sent) = (19_u64, Vec::new());
        for ack in 1..=19_u64 {
            pipe -= 1; // the segment that the ACK SACKs
            let mut window = recovery.window(Progress { delivered: 1, good: false, pipe, ssthresh: 10 });
            if ack == 3 {
                window = window.max(pipe + 1); // fast retransmit
            }
            if ack >= 3 && window > pipe {
                recovery.handle_sent(window - pipe);
                pipe = window;
                sent.push(ack);
            }
        }
        assert_eq!(pipe, 10);
        assert!((8..=10).contains(&sent.len()), "{sent:?}");
    }

    #[test]
    fn below_the_threshold_sends_what_was_delivered_or_one_segment_more() {
        let mut recovery = Recovery::new(WindowReduction::Proportional, 1000, 20, 20_000);
        let at = |good| Progress { delivered: 1000, good, pipe: 4000, ssthresh: 10_000 };
        assert_eq!(recovery.window(at(false)), 5000);
        recovery.handle_sent(1000);
        assert_eq!(recovery.window(at(true)), 6000);
        let mut immediate = Recovery::new(WindowReduction::Immediate, 1000, 20, 20_000);
        assert_eq!(immediate.window(at(true)), 10_000);
    }
}
