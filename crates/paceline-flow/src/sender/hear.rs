//! What comes back: reports, messages of the receive half, NACK, key frame requests, per-packet feedback. Each is checked
//! against what was sent before it may move anything: it must name a stream of ours and packets that were sent, and it
//! must be news. A report is news if it is later than the last one that counted. A message has no number of its own, so
//! it is as new as the report in its compound; and where it names no stream either, as an application's packet does not,
//! only a report before it that is news says that it is meant for this flow.

use super::{MediaSender, Queued, QueuedKind, REPORT_PACKETS_MIN, RTT_DEFAULT, SenderEvent, Stream};
use crate::messages;
use core::cmp::Ordering;
use paceline::{Class, Feedback, History, ReceiverReport};
use paceline_units::{DataSize, Ecn, Fraction, RemoteTime, Time};
use paceline_wire::{CongestionFeedback, ReportBlock, Rtcp, TICK, TransportFeedback, ntp, rtx, unwrap_ticks};

/// When a report was written, as far as it tells: how many packets had been sent with the highest that it names, then
/// the last sender report that it had seen and the delay since.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Written {
    sent: u64,
    last_sr: u32,
    delay: u32,
}

impl Written {
    fn is_after(&self, other: &Self) -> bool {
        // The stamp is the middle of an NTP time and wraps each 18 hours; zero means that there was none.
        let later = self.last_sr.wrapping_sub(other.last_sr) as i32;
        match self.sent.cmp(&other.sent) {
            Ordering::Equal if self.last_sr == other.last_sr => self.delay > other.delay,
            Ordering::Equal => other.last_sr == 0 || (self.last_sr != 0 && later > 0),
            order => order.is_gt(),
        }
    }
}

/// What the reports of a compound came to, up to the packet that is being read.
#[derive(Clone, Copy, Debug, Default)]
struct Standing {
    /// One spoke of our media, and was later than what is known.
    news: bool,
    /// One spoke of our media, and none of that was.
    stale: bool,
}

impl MediaSender {
    /// All of a compound.
    pub(super) fn handle_compound<'a>(&mut self, now: Time, packets: impl Iterator<Item = Rtcp<'a>>) {
        let mut standing = Standing::default();
        for packet in packets {
            self.handle_rtcp(now, packet, &mut standing);
        }
    }

    fn handle_rtcp(&mut self, now: Time, packet: Rtcp<'_>, standing: &mut Standing) {
        match packet {
            Rtcp::ReceiverReport { blocks, .. } | Rtcp::SenderReport { blocks, .. } => {
                let Standing { news, stale } = self.handle_blocks(now, blocks);
                standing.news |= news;
                standing.stale |= stale;
            }
            Rtcp::Remb { mut ssrcs, .. } => {
                let ours = ssrcs.any(|ssrc| self.streams.iter().any(|s| s.config.names.ssrc == ssrc));
                self.handle_message(now, &packet, ours && !standing.stale);
            }
            Rtcp::Nada { .. } | Rtcp::GroupStep { .. } => {
                self.handle_message(now, &packet, standing.news && !standing.stale);
            }
            Rtcp::Nack { media_ssrc, lost, .. } => self.handle_nack(now, media_ssrc, lost),
            Rtcp::Pli { media_ssrc, .. } => match self.streams.iter_mut().find(|s| s.config.names.ssrc == media_ssrc) {
                Some(stream) => stream.config.source.request_key_frame(now),
                None => self.ignored += 1,
            },
            Rtcp::TransportFeedback(feedback) => self.handle_feedback(now, &feedback),
            Rtcp::CongestionFeedback(feedback) => self.handle_congestion_feedback(now, &feedback),
            _ => {}
        }
    }

    /// What a receive half told, if it is meant for this flow and new.
    fn handle_message(&mut self, now: Time, packet: &Rtcp<'_>, counts: bool) {
        match (&mut self.half, messages::read(packet)) {
            (Some(half), Some(message)) if counts => half.handle_message(now, &message, &mut self.signals),
            _ => self.ignored += 1,
        }
    }

    /// One report on the flow: losses of its streams' media, weighted by the packets that each block covers.
    fn handle_blocks(&mut self, now: Time, blocks: impl Iterator<Item = ReportBlock>) -> Standing {
        let (mut expected, mut lost, mut rtt) = (0u64, 0u64, None);
        let (mut old, mut new) = (false, false);
        let stamp = ntp::middle(self.ntp(now));
        for block in blocks {
            let Some(stream) = self.streams.iter_mut().find(|s| s.config.names.ssrc == block.ssrc) else {
                let known = self.streams.iter().any(|s| s.config.names.rtx_ssrc == block.ssrc);
                self.ignored += u32::from(!known);
                continue;
            };
            let (last_sr, delay) = (block.last_sr, block.delay_since_last_sr);
            let written = stream.sent_up_to(block.highest_sequence).map(|sent| Written { sent, last_sr, delay });
            let Some(written) = written.filter(|written| written.is_after(&stream.reported)) else {
                self.ignored += 1;
                old = true;
                continue;
            };
            new = true;
            let news = written.sent - stream.reported.sent;
            stream.reported = written;
            expected += news;
            lost += news * block.fraction_lost as u64;
            let sample = ntp::round_trip(stamp, last_sr, delay);
            rtt = rtt.or(sample);
        }
        if let Some(rtt) = rtt.filter(|_| expected > 0) {
            self.rtt = Some(rtt);
            self.events.push_back(SenderEvent::RoundTrip(rtt));
        }
        if let Some(half) = self.half.as_mut().filter(|_| expected > 0) {
            half.handle_heard(now);
        }
        let standing = Standing { news: new, stale: old && !new };
        self.untold.0 += expected;
        self.untold.1 += lost;
        if self.untold.0 < REPORT_PACKETS_MIN {
            return standing;
        }
        let (expected, lost) = core::mem::take(&mut self.untold);
        let fraction_lost = Fraction::from_q8((lost / expected).min(255) as u8);
        self.events.push_back(SenderEvent::FractionLost(fraction_lost));
        if let Some(demand) = &mut self.fec {
            demand.handle_report(now, fraction_lost);
        }
        if let Some(half) = &mut self.half {
            half.handle_report(now, &ReceiverReport { fraction_lost, rtt }, &mut self.signals);
        }
        standing
    }

    pub(super) fn handle_nack(&mut self, now: Time, media_ssrc: u32, lost: impl Iterator<Item = u16>) {
        let Some(index) = self.streams.iter().position(|s| s.config.names.ssrc == media_ssrc) else {
            self.ignored += 1;
            return;
        };
        if !self.retransmit {
            return;
        }
        let rtt = self.rtt.unwrap_or(RTT_DEFAULT);
        self.budget.handle_nack(self.decision.target, rtt);
        let Stream { store, headers, .. } = &mut self.streams[index];
        for sequence in lost {
            let Some(packet) = store.find(now, sequence, rtt) else { continue };
            let size = DataSize::from_bytes(packet.payload as u64 + *headers + rtx::LEN as u64);
            if self.pacer.has_room(size) && self.budget.spend(now, size, self.decision.target, rtt) {
                store.mark_resent(now, sequence);
                self.pacer.push(
                    now,
                    Class::Retransmission,
                    index,
                    Queued { stream: index as u8, kind: QueuedKind::Retransmission, packet },
                    size,
                );
            }
        }
    }

    pub(super) fn handle_feedback(&mut self, now: Time, feedback: &TransportFeedback<'_>) {
        let ours = |s: &Stream| [s.config.names.ssrc, s.config.names.rtx_ssrc].contains(&feedback.media_ssrc);
        let asked = self.numbers.is_empty();
        let history = self.history.as_mut().filter(|_| asked && self.streams.iter().any(ours));
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
                let ticks = unwrap_ticks(self.remote.unwrap_or(ticks), ticks);
                self.remote = Some(ticks);
                RemoteTime::from_nanos(ticks * TICK.as_nanos())
            });
            self.reports.extend(history.settle(sequence, arrival, Ecn::NotEct));
        }
        self.tell_reports(now);
    }

    /// Reports say of each packet twice what became of it; what was known is no news. A packet of which only an earlier,
    /// lost report told is not outstanding any more.
    fn handle_congestion_feedback(&mut self, now: Time, feedback: &CongestionFeedback<'_>) {
        let Some(history) = &mut self.history else {
            self.ignored += 1;
            return;
        };
        let timestamp = unwrap_timestamp(self.remote_clock, now, feedback.timestamp);
        let mut oldest = None;
        self.reports.clear();
        for block in feedback.blocks() {
            let Some(numbers) = self.numbers.iter().find(|n| n.ssrc == block.ssrc) else {
                self.ignored += 1;
                continue;
            };
            for (number, reception) in block.packets() {
                let Some(sequence) = numbers.find(number) else {
                    self.ignored += 1;
                    continue;
                };
                oldest = Some(oldest.map_or(sequence, |oldest: u64| oldest.min(sequence)));
                let (ecn, arrival) = match reception.map(|r| (r.ecn, r.offset.in_timestamp_units())) {
                    None => (Ecn::NotEct, None),
                    Some((ecn, Some(offset))) => (ecn, Some(timestamp - offset as i64)),
                    Some((_, None)) => {
                        history.abandon(sequence);
                        continue;
                    }
                };
                let arrival = arrival.map(|units| RemoteTime::from_nanos(ntp::nanos(units)));
                self.reports.extend(history.settle(sequence, arrival, ecn));
            }
        }
        if let Some(oldest) = oldest {
            history.abandon_below(oldest);
        }
        if !self.reports.is_empty() {
            self.remote_clock = Some((timestamp, now));
        }
        // Streams took turns on the way. Of a packet that is named twice the arrival counts.
        if !self.reports.is_sorted_by(|one, next| one.sequence < next.sequence) {
            self.reports.sort_unstable_by_key(|report| (report.sequence, report.arrival.is_none()));
            self.reports.dedup_by_key(|report| report.sequence);
        }
        self.tell_reports(now);
    }

    /// Tells the half what a feedback message settled.
    fn tell_reports(&mut self, now: Time) {
        let flight = self.history.as_ref().map(History::flight).unwrap_or_default();
        if let (Some(half), false) = (&mut self.half, self.reports.is_empty()) {
            let (outstanding, after_highest) = (flight.outstanding, flight.after_highest);
            let joined = Feedback { packets: &self.reports, outstanding, after_highest };
            half.handle_feedback(now, &joined, &mut self.signals);
        }
    }
}

/// A report's timestamp, unwrapped. It wraps each 18 hours; how often it did since the last report is what our own clock
/// says.
fn unwrap_timestamp(last: Option<(i64, Time)>, now: Time, timestamp: u32) -> i64 {
    let expected = last.map_or(0, |(units, at)| units + ntp::units((now - at).as_nanos()));
    unwrap_ticks(expected, timestamp as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_right_after_any_silence() {
        let first = unwrap_timestamp(None, Time::from_secs(5), 0xFFFF_0000);
        for (silence_s, error_s) in [(0, 0), (2, 0), (65_535, 1), (86_400, -300), (30 * 86_400, 20_000), (1, -1)] {
            let came = 0xFFFF_0000u32.wrapping_add(((silence_s + error_s) * 65_536) as u32);
            let last = Some((first, Time::from_secs(5)));
            let units = unwrap_timestamp(last, Time::from_secs(5 + silence_s), came);
            assert_eq!(units - first, (silence_s + error_s) * 65_536, "{silence_s} s");
        }
    }

    #[test]
    fn reports_are_ordered_by_what_they_name_then_by_when_they_were_written() {
        let written = |sent, last_sr, delay| Written { sent, last_sr, delay };
        let ordered = [
            Written::default(),
            written(1, 0, 0),
            written(5, 0, 0), // before the first sender report came
            written(5, 0xFFFF_0000, 0),
            written(5, 0xFFFF_0000, 700),
            written(5, 3, 100), // 18 hours, and the stamp begins anew
            written(6, 2, 0),   // sender reports overtook each other
            written(7, 0, 0),
        ];
        for (i, earlier) in ordered.iter().enumerate() {
            for (j, later) in ordered.iter().enumerate() {
                assert_eq!(later.is_after(earlier), j > i, "{later:?} after {earlier:?}");
            }
        }
    }
}
