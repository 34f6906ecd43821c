// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which packets quinn acknowledges or loses. It names none: an ACK has the time at which the packet was sent and its size, and a
//! loss has the time of the newest lost packet and the bytes of all. The packets that leave at one instant are a burst.
//!
//! quinn declares packets lost from the oldest on: each open packet that is older than a lost one is lost, too. Time and bytes
//! therefore say which ones. Within a burst the order is that of the reports, which no controller can distinguish.

use paceline_units::Time;
use std::collections::VecDeque;
use std::ops::Range;

/// The most bursts that are kept: some seconds at any rate. Packets of older ones count as neither acknowledged nor lost.
const BURSTS_MAX: usize = 8192;
/// A packet of a burst has at least this size: with less, the difference of packet numbers is not the number of packets.
const PACKET_MIN: u64 = 20;

/// Packets that were sent at one instant.
#[derive(Clone, Copy, Debug)]
struct Burst {
    sent: Time,
    /// The number of the next packet on which there is no report, in Paceline's count.
    next: u64,
    /// One more than the number of the last packet.
    end: u64,
    /// The size of the packets on which there is no report.
    bytes: u64,
    /// The largest packet. A larger one is a probe of the MTU, of which quinn reports only the ACK.
    mtu: u16,
}

impl Burst {
    /// Takes packets of this size, in total: all if nothing remains, else at least `least`, but not the last one.
    #[inline]
    fn take(&mut self, bytes: u64, least: u64) -> Range<u64> {
        let (first, open) = (self.next, self.end - self.next);
        let count = match bytes >= self.bytes {
            true => open,
            // By size, for losses of several packets.
            false => (open * bytes / self.bytes).max(least).min(open.saturating_sub(1)),
        };
        self.bytes = self.bytes.saturating_sub(bytes);
        self.next = first + count;
        first..self.next
    }
}

/// The packets on which there is no report, by the time at which they were sent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bursts {
    bursts: VecDeque<Burst>,
    /// quinn's number of the last packet.
    last_number: u64,
}

impl Bursts {
    /// Adds the packets that were sent at `now`, whose first number is `first`. Returns how many they are. `number` is quinn's
    /// number of the last one.
    #[inline]
    pub fn handle_sent(&mut self, now: Time, first: u64, bytes: u64, number: u64, mtu: u16) -> u64 {
        let count = self.count(bytes, number, mtu);
        match self.bursts.back_mut() {
            Some(last) if last.sent == now && last.end == first => {
                (last.end, last.bytes) = (first + count, last.bytes + bytes);
            }
            _ => {
                if self.bursts.len() == BURSTS_MAX {
                    self.bursts.pop_front();
                }
                self.bursts.push_back(Burst { sent: now, next: first, end: first + count, bytes, mtu });
            }
        }
        count
    }

    /// Handles packets that are not counted.
    #[inline]
    pub fn skip(&mut self, number: u64) {
        self.last_number = number;
    }

    /// Returns the number of packets. It is the difference of packet numbers, if the size permits that: quinn skips some numbers, a
    /// probe of the MTU has one, and the numbers of the handshake begin thrice.
    #[inline]
    fn count(&mut self, bytes: u64, number: u64, mtu: u16) -> u64 {
        let (least, most) = (bytes.div_ceil(u64::from(mtu.max(1))).max(1), (bytes / PACKET_MIN).max(1));
        let difference = number.wrapping_sub(std::mem::replace(&mut self.last_number, number));
        if (least..=most).contains(&difference) { difference } else { least }
    }

    /// Returns the packets that an ACK of a packet settles: none, one, or at the end of a burst all that remain.
    #[inline]
    pub fn handle_ack(&mut self, sent: Time, bytes: u64) -> Range<u64> {
        // Mostly it is the oldest burst.
        let place = match self.bursts.front() {
            Some(front) if front.sent == sent => 0,
            _ => self.bursts.partition_point(|burst| burst.sent < sent),
        };
        let Some(burst) = self.bursts.get_mut(place) else { return 0..0 };
        if burst.sent != sent || bytes > u64::from(burst.mtu) {
            return 0..0;
        }
        let settled = burst.take(bytes, 1);
        self.remove_settled();
        settled
    }

    /// Passes the packets that are lost to `lose`, in ranges: those of these bytes, from `sent` backwards. What is older and remains
    /// has only ACKs, which quinn does not count.
    pub fn handle_loss(&mut self, sent: Time, mut bytes: u64, mut lose: impl FnMut(Range<u64>)) {
        let end = self.bursts.partition_point(|burst| burst.sent <= sent);
        for burst in self.bursts.range_mut(..end).rev().filter(|burst| burst.bytes > 0) {
            let lost = bytes.min(burst.bytes);
            if lost == 0 {
                break;
            }
            bytes -= lost;
            let packets = burst.take(lost, 1);
            if !packets.is_empty() {
                lose(packets);
            }
        }
        self.remove_settled();
    }

    /// Forgets the packets of the oldest burst if it was sent before `limit`, and returns them.
    pub fn forget_before(&mut self, limit: Time) -> Option<Range<u64>> {
        let oldest = *self.bursts.front().filter(|oldest| oldest.sent < limit)?;
        self.bursts.pop_front();
        self.remove_settled();
        Some(oldest.next..oldest.end)
    }

    #[inline]
    fn remove_settled(&mut self) {
        while self.bursts.front().is_some_and(|front| front.next == front.end) {
            self.bursts.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(i64) -> Time = Time::from_millis;

    /// Ten datagrams of 1200 bytes in one call, then one of 500.
    fn sent() -> Bursts {
        let mut bursts = Bursts::default();
        assert_eq!(bursts.handle_sent(MS(0), 0, 12_000, 10, 1452), 10);
        assert_eq!(bursts.handle_sent(MS(5), 10, 500, 11, 1452), 1);
        bursts
    }

    #[test]
    fn counts_packets_by_number_and_by_size() {
        let mut bursts = Bursts::default();
        // By number; a number was skipped; the numbers begin again; an impossible number.
        for (bytes, number, wanted) in [(12_000, 10, 10), (1200, 12, 2), (2400, 1, 2), (1200, 900, 1)] {
            assert_eq!(bursts.handle_sent(MS(0), 0, bytes, number, 1452), wanted, "{bytes} {number}");
        }
    }

    #[test]
    fn an_ack_settles_one_packet_and_the_last_one_the_rest() {
        let mut bursts = sent();
        for n in 0..10 {
            assert_eq!(bursts.handle_ack(MS(0), 1200), n..n + 1);
        }
        assert_eq!(bursts.handle_ack(MS(0), 1200), 0..0, "no packet of that time is open");
        assert_eq!(bursts.handle_ack(MS(5), 500), 10..11);
        assert!(bursts.bursts.is_empty());
        // One packet too many was counted.
        assert_eq!(bursts.handle_sent(MS(9), 11, 2400, 14, 1452), 3);
        assert_eq!(bursts.handle_ack(MS(9), 1200), 11..12);
        assert_eq!(bursts.handle_ack(MS(9), 1200), 12..14);
    }

    #[test]
    fn probes_of_the_mtu_are_no_packets() {
        let mut bursts = sent();
        assert_eq!(bursts.handle_ack(MS(0), 1453), 0..0);
        assert_eq!(bursts.handle_ack(MS(3), 1200), 0..0);
    }

    #[test]
    fn losses_are_the_oldest_packets_of_their_size() {
        let mut bursts = sent();
        let mut lost = Vec::new();
        assert_eq!(bursts.handle_ack(MS(0), 1200), 0..1);
        bursts.handle_loss(MS(0), 3600, |range| lost.push(range));
        assert_eq!(lost.first(), Some(&(1..4)), "three of the nine that are left");
        bursts.handle_loss(MS(5), 7700, |range| lost.push(range));
        assert_eq!(lost, [1..4, 10..11, 4..10], "the newest first");
        assert!(bursts.bursts.is_empty());
    }

    /// A packet with only ACKs lies between two that are lost. quinn counts 2400 bytes.
    #[test]
    fn packets_with_only_acks_are_not_lost() {
        let mut bursts = Bursts::default();
        for (n, bytes) in [(0, 100), (1, 1200), (2, 1200)] {
            bursts.handle_sent(MS(n), n as u64, bytes, n as u64 + 1, 1452);
        }
        let mut lost = Vec::new();
        bursts.handle_loss(MS(2), 2400, |range| lost.push(range));
        assert_eq!(lost, [2..3, 1..2]);
        assert_eq!(bursts.bursts.front().map(|front| front.sent), Some(MS(0)));
        assert_eq!((bursts.forget_before(MS(1)), bursts.forget_before(MS(1))), (Some(0..1), None));
        assert!(bursts.bursts.is_empty());
    }
}
