//! What comes back: reports, REMB, NACK, key frame requests, per-packet feedback. Each is checked against what was sent
//! before it may move anything.

use super::{MediaSender, Queued, QueuedKind, REPORT_PACKETS_MIN, RTT_DEFAULT, SenderEvent, Stream};
use paceline::{Class, Feedback, ReceiverReport};
use paceline_units::{DataSize, Ecn, Fraction, RemoteTime, Time};
use paceline_wire::{ReportBlock, Rtcp, TICK, TransportFeedback, ntp, rtx, unwrap_ticks};

impl MediaSender {
    pub(super) fn handle_rtcp(&mut self, now: Time, packet: Rtcp<'_>) {
        match packet {
            Rtcp::ReceiverReport { blocks, .. } | Rtcp::SenderReport { blocks, .. } => self.handle_blocks(now, blocks),
            Rtcp::Remb { rate, mut ssrcs, .. } => {
                let ours = ssrcs.any(|ssrc| self.streams.iter().any(|s| s.config.names.ssrc == ssrc));
                match (&mut self.half, ours) {
                    (Some(half), true) => half.handle_remb(now, rate, &mut self.signals),
                    _ => self.ignored += 1,
                }
            }
            Rtcp::Nack { media_ssrc, lost, .. } => self.handle_nack(now, media_ssrc, lost),
            Rtcp::Pli { media_ssrc, .. } => match self.streams.iter_mut().find(|s| s.config.names.ssrc == media_ssrc) {
                Some(stream) => stream.config.source.request_key_frame(now),
                None => self.ignored += 1,
            },
            Rtcp::TransportFeedback(feedback) => self.handle_feedback(now, &feedback),
            _ => {}
        }
    }

    /// One report on the flow: losses of its streams' media, weighted by the packets that each block covers.
    pub(super) fn handle_blocks(&mut self, now: Time, blocks: impl Iterator<Item = ReportBlock>) {
        let (mut expected, mut lost, mut rtt) = (0u64, 0u64, None);
        let stamp = ntp::middle(self.ntp(now));
        for block in blocks {
            let Some(stream) = self.streams.iter_mut().find(|s| s.config.names.ssrc == block.ssrc) else {
                let known = self.streams.iter().any(|s| s.config.names.rtx_ssrc == block.ssrc);
                self.ignored += u32::from(!known);
                continue;
            };
            let Some(count) = stream.sent_up_to(block.highest_sequence).filter(|count| *count >= stream.reported)
            else {
                self.ignored += 1;
                continue;
            };
            let news = count - stream.reported;
            stream.reported = count;
            expected += news;
            lost += news * block.fraction_lost as u64;
            let sample = ntp::round_trip(stamp, block.last_sr, block.delay_since_last_sr);
            rtt = rtt.or(sample);
        }
        if let Some(rtt) = rtt.filter(|_| expected > 0) {
            self.rtt = Some(rtt);
            self.events.push_back(SenderEvent::RoundTrip(rtt));
        }
        self.untold.0 += expected;
        self.untold.1 += lost;
        if self.untold.0 < REPORT_PACKETS_MIN {
            return;
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
                    Class::Retransmission,
                    Queued { stream: index as u8, kind: QueuedKind::Retransmission, packet },
                    size,
                );
            }
        }
    }

    pub(super) fn handle_feedback(&mut self, now: Time, feedback: &TransportFeedback<'_>) {
        let Some(history) = &mut self.history else {
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
        let flight = history.flight();
        if let (Some(half), false) = (&mut self.half, self.reports.is_empty()) {
            let (outstanding, after_highest) = (flight.outstanding, flight.after_highest);
            let joined = Feedback { packets: &self.reports, outstanding, after_highest };
            half.handle_feedback(now, &joined, &mut self.signals);
        }
    }
}
