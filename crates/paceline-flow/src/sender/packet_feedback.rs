//! Per-packet feedback: joins transport-wide feedback and RFC 8888 reports with the history of sent packets.

use super::MediaSender;
use super::stream::SenderStream;
use paceline::{Feedback, History, RoundTrip};
use paceline_units::{RemoteTime, Time, TimeDelta};
use paceline_wire::{CongestionFeedback, TWCC_TICK, TransportFeedback, ntp, unwrap_ticks};

impl MediaSender {
    pub(super) fn handle_transport_feedback(&mut self, now: Time, feedback: &TransportFeedback<'_>) {
        let ours = |s: &SenderStream| [s.config.info.ssrc, s.config.info.rtx_ssrc].contains(&feedback.media_ssrc);
        let history = self.history.as_mut().filter(|_| !self.by_ssrc && self.streams.iter().any(ours));
        let Some(history) = history else {
            self.ignored += 1;
            return;
        };
        if let Some(base) = history.unwrap(feedback.base_sequence) {
            history.abandon_below(base);
        }
        self.reports.clear();
        for (number, ticks) in feedback.packets() {
            let Some(sequence) = history.unwrap(number) else {
                self.ignored += 1;
                continue;
            };
            let arrival = ticks.map(|ticks| {
                let ticks = unwrap_ticks(self.last_ticks.unwrap_or(ticks), ticks);
                self.last_ticks = Some(ticks);
                RemoteTime::from_nanos(ticks.saturating_mul(TWCC_TICK.as_nanos()))
            });
            self.reports.extend(history.settle(sequence, arrival, None));
        }
        self.deliver_reports(now, None);
    }

    /// Handles an RFC 8888 report. Each packet is in two reports; the history ignores what it knows already. A packet
    /// that was only in an earlier, lost report is no longer outstanding.
    pub(super) fn handle_congestion_feedback(&mut self, now: Time, feedback: &CongestionFeedback<'_>) {
        let Some(history) = &mut self.history else {
            self.ignored += 1;
            return;
        };
        let timestamp = unwrap_timestamp(self.last_report_timestamp, now, feedback.timestamp);
        let mut oldest = u64::MAX;
        self.reports.clear();
        for block in feedback.blocks() {
            let Some(map) = self.sequence_maps.iter().find(|map| map.ssrc == block.ssrc) else {
                self.ignored += 1;
                continue;
            };
            for (number, reception) in block.packets() {
                let Some(sequence) = map.find(number) else {
                    self.ignored += 1;
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
                self.reports.extend(history.settle(sequence, arrival, ecn));
            }
        }
        if oldest != u64::MAX {
            history.abandon_below(oldest);
        }
        if !self.reports.is_empty() {
            self.last_report_timestamp = Some((timestamp, now));
        }
        // Blocks are per SSRC, so the packets of the flow may be out of order. If a packet is named twice, its arrival
        // takes precedence over its loss.
        if !self.reports.is_sorted_by(|one, next| one.sequence < next.sequence) {
            self.reports.sort_unstable_by_key(|report| (report.sequence, report.arrival.is_none()));
            self.reports.dedup_by_key(|report| report.sequence);
        }
        let reported = RemoteTime::from_nanos(ntp::nanos(timestamp));
        let newest = self.reports.iter().rev().find_map(|report| Some((report.sent, report.arrival?)));
        if let Some((sent, arrived)) = newest {
            let sample = path_round_trip(now - sent, reported - arrived);
            self.packet_rtt = Some(RoundTrip::after(self.packet_rtt, sample));
        }
        self.deliver_reports(now, self.packet_rtt.filter(|_| newest.is_some()));
    }

    /// Passes the packet reports of a feedback message to the send half, if there are any.
    fn deliver_reports(&mut self, now: Time, rtt: Option<RoundTrip>) {
        let flight = self.history.as_ref().map(History::flight).unwrap_or_default();
        if let (Some(half), false) = (&mut self.half, self.reports.is_empty()) {
            let (outstanding, after_highest) = (flight.outstanding, flight.after_highest);
            let joined = Feedback { packets: &self.reports, outstanding, after_highest, rtt };
            half.handle_feedback(now, &joined, &mut self.signals);
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
fn unwrap_timestamp(last: Option<(i64, Time)>, now: Time, timestamp: u32) -> i64 {
    let expected = last.map_or(0, |(units, at)| units + ntp::units((now - at).as_nanos()));
    unwrap_ticks(expected, timestamp as i64)
}

#[cfg(test)]
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
