//! Incoming RTCP: reports, messages of the receive half, NACK, key frame requests.
//!
//! Each packet is validated before it changes any state: it must name a stream of this flow and packets that were sent,
//! and it must be newer than what is known. A report is newer if its [`ReportOrder`] is above that of the last accepted
//! one. A message of the receive half has no number of its own, so it is as new as the report in its compound. An
//! application-defined message names no stream either: it is accepted only behind a newer report on this flow.

use super::report_order::{ReportOrder, ReportStatus};
use super::stream::SenderStream;
use super::{MediaSender, QueuedKind, QueuedPacket, RTT_DEFAULT, SenderEvent};
use crate::messages;
use paceline::{Event, PacketPriority, ReceiverReport, RoundTrip};
use paceline_units::{DataSize, Fraction, Time, TimeDelta};
use paceline_wire::{ReportBlock, Rtcp, ntp, rtx};

/// The send half gets a fraction lost once reports have covered this many packets (libwebrtc of 2013). A smaller sample
/// is too coarse: one lost packet of three would be a third.
const REPORT_PACKETS_MIN: u64 = 20;

impl MediaSender {
    /// Handles all packets of a compound.
    pub(super) fn handle_compound<'a>(&mut self, now: Time, packets: impl Iterator<Item = Rtcp<'a>>) {
        let mut status = ReportStatus::default();
        for packet in packets {
            self.handle_rtcp(now, packet, &mut status);
        }
    }

    fn handle_rtcp(&mut self, now: Time, packet: Rtcp<'_>, status: &mut ReportStatus) {
        match packet {
            Rtcp::ReceiverReport { blocks, .. } | Rtcp::SenderReport { blocks, .. } => {
                let ReportStatus { fresh, stale } = self.handle_blocks(now, blocks);
                status.fresh |= fresh;
                status.stale |= stale;
            }
            Rtcp::Remb { mut ssrcs, .. } => {
                let ours = ssrcs.any(|ssrc| self.streams.iter().any(|s| s.config.info.ssrc == ssrc));
                self.handle_message(now, &packet, ours && !status.stale);
            }
            Rtcp::Nada { .. } | Rtcp::GroupStep { .. } | Rtcp::App { .. } => {
                self.handle_message(now, &packet, status.fresh && !status.stale);
            }
            Rtcp::Nack { media_ssrc, lost, .. } => self.handle_nack(now, media_ssrc, lost),
            Rtcp::Pli { media_ssrc, .. } => match self.streams.iter_mut().find(|s| s.config.info.ssrc == media_ssrc) {
                Some(stream) => stream.config.source.request_key_frame(now),
                None => self.ignored += 1,
            },
            Rtcp::TransportFeedback(feedback) => self.handle_transport_feedback(now, &feedback),
            Rtcp::CongestionFeedback(feedback) => self.handle_congestion_feedback(now, &feedback),
            _ => {}
        }
    }

    /// Passes a message of the receive half on, if it was `accepted`.
    fn handle_message(&mut self, now: Time, packet: &Rtcp<'_>, accepted: bool) {
        match (&mut self.half, messages::read(packet)) {
            (Some(half), Some(message)) if accepted => {
                half.handle_event(now, &Event::Message(&message), &mut self.signals)
            }
            _ => self.ignored += 1,
        }
    }

    /// Handles one datagram of a report on the flow. The fraction lost is that of the media of all streams, from the growth of
    /// the cumulative counts. The fraction of a block is not used: it counts a packet that is late as lost, and the next
    /// block does not take it back. A report gives one sample of the round-trip time, also if it takes several
    /// datagrams: the next report begins with a stream that this one has a block for.
    fn handle_blocks(&mut self, now: Time, blocks: impl Iterator<Item = ReportBlock>) -> ReportStatus {
        let (mut expected, mut lost, mut rtt) = (0u64, 0i64, None);
        let (mut old, mut new, mut begins) = (false, false, false);
        let next = self.report.wrapping_add(1);
        let now_ntp = ntp::middle(self.ntp(now));
        for block in blocks {
            let Some(stream) = self.streams.iter_mut().find(|s| s.config.info.ssrc == block.ssrc) else {
                let known = self.streams.iter().any(|s| s.config.info.rtx_ssrc == block.ssrc);
                self.ignored += u32::from(!known);
                continue;
            };
            let (last_sr, delay) = (block.last_sr, block.delay_since_last_sr);
            let order = stream.sent_up_to(block.highest_sequence).map(|sent| ReportOrder { sent, last_sr, delay });
            let Some(order) = order.filter(|order| order.is_after(&stream.last_report)) else {
                self.ignored += 1;
                old = true;
                continue;
            };
            new = true;
            let covered = order.sent - stream.last_report.sent;
            stream.last_report = order;
            begins |= stream.report == self.report;
            stream.report = next;
            expected += covered;
            let before = i64::from(core::mem::replace(&mut stream.reported_lost, block.cumulative_lost));
            // Losses before a route change are not those of the new route.
            if !core::mem::take(&mut stream.mixes_routes) {
                // At most all packets are lost, and at most all earlier losses were late.
                let change = i64::from(block.cumulative_lost) - before;
                lost += change.min(covered as i64).max(-before.max(0));
            }
            let age = TimeDelta::from_nanos(ntp::nanos(i64::from(now_ntp.wrapping_sub(last_sr))));
            let sample = ntp::round_trip(now_ntp, last_sr, delay).filter(|_| now - age >= self.route_began);
            rtt = rtt.or(sample);
        }
        if begins {
            self.report = next;
        } else {
            let report = self.report;
            self.streams.iter_mut().filter(|s| s.report == next).for_each(|s| s.report = report);
        }
        if let Some(sample) = rtt.filter(|_| expected > 0 && begins) {
            let rtt = RoundTrip::after(self.rtt, sample);
            self.rtt = Some(rtt);
            self.events.push_back(SenderEvent::RoundTrip(sample));
            if let Some(half) = &mut self.half {
                half.handle_event(now, &Event::RoundTrip(&rtt), &mut self.signals);
            }
        }
        if let Some(half) = self.half.as_mut().filter(|_| expected > 0) {
            half.handle_event(now, &Event::Liveness, &mut self.signals);
        }
        self.unreported_loss.0 += expected;
        self.unreported_loss.1 += lost;
        if self.unreported_loss.0 >= REPORT_PACKETS_MIN {
            // Packets that arrived late were reported as lost before: they are subtracted from the next losses.
            let (expected, lost) = self.unreported_loss;
            self.unreported_loss = (0, lost.clamp(-(expected.min(i64::MAX as u64) as i64), 0));
            let fraction_lost = Fraction::from_q8((lost.max(0) as u64 * 256 / expected).min(255) as u8);
            self.events.push_back(SenderEvent::FractionLost(fraction_lost));
            if let Some(demand) = &mut self.fec {
                demand.handle_report(now, fraction_lost);
            }
            if let Some(half) = &mut self.half {
                half.handle_event(now, &Event::Report(&ReceiverReport { fraction_lost }), &mut self.signals);
            }
        }
        ReportStatus { fresh: new, stale: old && !new }
    }

    fn handle_nack(&mut self, now: Time, media_ssrc: u32, lost: impl Iterator<Item = u16>) {
        let Some(index) = self.streams.iter().position(|s| s.config.info.ssrc == media_ssrc) else {
            self.ignored += 1;
            return;
        };
        if !self.retransmit {
            return;
        }
        let rtt = self.rtt.map_or(RTT_DEFAULT, |rtt| rtt.last);
        self.budget.handle_nack(self.decision.target, rtt);
        let SenderStream { store, headers, .. } = &mut self.streams[index];
        for sequence in lost {
            let Some(packet) = store.find(now, sequence, rtt) else { continue };
            let size = DataSize::from_bytes(packet.payload as u64 + *headers + rtx::LEN as u64);
            if self.pacer.has_room(size) && self.budget.spend(now, size, self.decision.target, rtt) {
                store.mark_resent(now, sequence);
                let queued = QueuedPacket { stream: index as u8, kind: QueuedKind::Retransmission, packet };
                self.pacer.push(now, PacketPriority::Retransmission, index, queued, size);
            }
        }
    }
}
