// SPDX-License-Identifier: MIT OR Apache-2.0
//! Joins per-packet feedback with the history of sent packets: transport-wide feedback, RFC 8888 reports, and reports that were
//! read elsewhere.

#[cfg(feature = "rtp")]
use super::sequence_map::SequenceMap;
use crate::{History, PacketReport, RoundTrip};
use alloc::vec::Vec;
use paceline_units::{Ecn, RemoteTime, Time, TimeDelta};
#[cfg(feature = "rtp")]
use paceline_wire::{CongestionFeedback, TWCC_TICK, TransportFeedback, ntp, unwrap_ticks};

/// Turns feedback messages into packet reports. Each `handle_…` method replaces [`reports`](Self::reports) and
/// [`rtt`](Self::rtt), and returns how many packets it ignored because they are unknown.
#[derive(Clone, Debug, Default)]
pub(super) struct FeedbackReader {
    reports: Vec<PacketReport>,
    /// The number after that of the last report.
    next: u64,
    /// Whether a packet is named after one with a higher number, or twice.
    is_unordered: bool,
    rtt: Option<RoundTrip>,
    /// The last arrival time of transport-wide feedback, in ticks, unwrapped.
    #[cfg(feature = "rtp")]
    last_ticks: Option<i64>,
    /// The last timestamp of an RFC 8888 report, unwrapped, and when the report arrived.
    #[cfg(feature = "rtp")]
    last_timestamp: Option<(i64, Time)>,
    /// The round-trip time of packets in reports with a time of their own.
    packet_rtt: Option<RoundTrip>,
}

impl FeedbackReader {
    /// Returns the reports of the last message, by ascending number: one for each packet whose state it changed.
    pub fn reports(&self) -> &[PacketReport] {
        &self.reports
    }

    /// Returns the round-trip time that the last message measured; only RFC 8888 reports measure one.
    pub fn rtt(&self) -> Option<RoundTrip> {
        self.rtt
    }

    /// Returns the round-trip time of all messages so far on this route.
    pub fn last_rtt(&self) -> Option<RoundTrip> {
        self.packet_rtt
    }

    /// Forgets the round-trip time, after a change of the network route.
    pub fn restart(&mut self) {
        self.packet_rtt = None;
    }

    /// Handles transport-wide feedback.
    #[cfg(feature = "rtp")]
    pub fn handle_transport_feedback(&mut self, history: &mut History, feedback: &TransportFeedback<'_>) -> u32 {
        if let Some(base) = history.unwrap(feedback.base_sequence) {
            history.abandon_below(base);
        }
        self.clear();
        let mut ignored = 0;
        for (number, ticks) in feedback.packets() {
            let Some(sequence) = history.unwrap(number) else {
                ignored += 1;
                continue;
            };
            let arrival = ticks.map(|ticks| {
                let ticks = unwrap_ticks(self.last_ticks.unwrap_or(ticks), ticks);
                self.last_ticks = Some(ticks);
                RemoteTime::from_nanos(ticks.saturating_mul(TWCC_TICK.as_nanos()))
            });
            self.add(history, sequence, arrival, None);
        }
        ignored
    }

    /// Handles an RFC 8888 report, whose blocks name packets as `maps` do; a block without a map counts as one packet. Each
    /// packet is in two reports; the history ignores what it knows already. A packet that was only in an earlier, lost report
    /// is no longer outstanding.
    #[cfg(feature = "rtp")]
    pub fn handle_congestion_feedback(
        &mut self,
        now: Time,
        history: &mut History,
        maps: &[SequenceMap],
        feedback: &CongestionFeedback<'_>,
    ) -> u32 {
        let timestamp = unwrap_timestamp(self.last_timestamp, now, feedback.timestamp);
        let (mut oldest, mut ignored) = (u64::MAX, 0);
        self.clear();
        for block in feedback.blocks() {
            let Some(map) = maps.iter().find(|map| map.ssrc == block.ssrc) else {
                ignored += 1;
                continue;
            };
            for (number, reception) in block.packets() {
                let Some(sequence) = map.find(number) else {
                    ignored += 1;
                    continue;
                };
                oldest = oldest.min(sequence);
                // Half of the packets are in a report for the second time.
                if history.has_arrived(sequence) {
                    continue;
                }
                let (ecn, arrival) = match reception.map(|r| (r.ecn, r.offset.in_timestamp_units())) {
                    None => (None, None),
                    Some((ecn, Some(offset))) => (Some(ecn), Some(timestamp - offset as i64)),
                    Some((_, None)) => {
                        history.abandon(sequence);
                        continue;
                    }
                };
                let arrival = arrival.map(|units| RemoteTime::from_nanos(ntp::nanos(units)));
                self.add(history, sequence, arrival, ecn);
            }
        }
        if oldest != u64::MAX {
            history.abandon_below(oldest);
        }
        if !self.reports.is_empty() {
            self.last_timestamp = Some((timestamp, now));
        }
        // Blocks are per SSRC, so the packets of the flow may be out of order.
        self.sort();
        self.measure_rtt(now, RemoteTime::from_nanos(ntp::nanos(timestamp)));
        ignored
    }

    /// Measures the round-trip time of the newest packet that arrived, in a report that was written at this time.
    pub fn measure_rtt(&mut self, now: Time, written: RemoteTime) {
        let newest = self.reports.iter().rev().find_map(|report| Some((report.sent, report.arrival?)));
        if let Some((sent, arrived)) = newest {
            let sample = path_round_trip(now - sent, written - arrived);
            self.packet_rtt = Some(RoundTrip::after(self.packet_rtt, sample));
        }
        self.rtt = self.packet_rtt.filter(|_| newest.is_some());
    }

    /// Handles reports of another format: number within the flow, arrival or `None` for a loss, ECN field.
    pub fn handle_reports(
        &mut self,
        history: &mut History,
        packets: impl Iterator<Item = (u64, Option<RemoteTime>, Option<Ecn>)>,
    ) {
        self.clear();
        for (sequence, arrival, ecn) in packets {
            self.add(history, sequence, arrival, ecn);
        }
        self.sort();
    }

    fn clear(&mut self) {
        self.reports.clear();
        (self.next, self.is_unordered, self.rtt) = (0, false, None);
    }

    /// Adds the report on a packet, if it changes the state of the packet.
    #[inline]
    fn add(&mut self, history: &mut History, sequence: u64, arrival: Option<RemoteTime>, ecn: Option<Ecn>) {
        if let Some(report) = history.settle(sequence, arrival, ecn) {
            self.is_unordered |= sequence < self.next;
            self.next = sequence + 1;
            self.reports.push(report);
        }
    }

    /// Sorts the reports. If a packet is named twice, its arrival takes precedence over its loss.
    fn sort(&mut self) {
        if self.is_unordered {
            self.reports.sort_unstable_by_key(|report| (report.sequence, report.arrival.is_none()));
            self.reports.dedup_by_key(|report| report.sequence);
        }
    }
}

/// Returns the round-trip time of a packet whose report arrived this long after it left, and which the receiver held for
/// `held`: the report timestamp minus the arrival time (RFC 8888, section 3.1). Both clocks measure only differences.
fn path_round_trip(since_sent: TimeDelta, held: TimeDelta) -> TimeDelta {
    (since_sent - held.max(TimeDelta::ZERO)).max(TimeDelta::ZERO)
}

/// Unwraps a report timestamp. It wraps every 18 hours; the sender's own clock gives the number of wraps since the last
/// report.
#[cfg(feature = "rtp")]
fn unwrap_timestamp(last: Option<(i64, Time)>, now: Time, timestamp: u32) -> i64 {
    let expected = last.map_or(0, |(units, at)| units + ntp::units((now - at).as_nanos()));
    unwrap_ticks(expected, timestamp as i64)
}

#[cfg(all(test, feature = "rtp"))]
mod tests {
    use super::*;

    #[test]
    fn timestamps_unwrap_after_any_silence() {
        let first = unwrap_timestamp(None, Time::from_secs(5), 0xFFFF_0000);
        for (silence_s, error_s) in [(0, 0), (2, 0), (65_535, 1), (86_400, -300), (30 * 86_400, 20_000), (1, -1)] {
            let received = 0xFFFF_0000u32.wrapping_add(((silence_s + error_s) * 65_536) as u32);
            let last = Some((first, Time::from_secs(5)));
            let units = unwrap_timestamp(last, Time::from_secs(5 + silence_s), received);
            assert_eq!(units - first, (silence_s + error_s) * 65_536, "{silence_s} s");
        }
    }
}
