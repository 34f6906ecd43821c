// SPDX-License-Identifier: MIT OR Apache-2.0
//! Incoming RTCP: reports, per-packet feedback, messages of the receive half, key frame requests.
//!
//! Each packet is validated before it changes any state: it must name a stream of this flow and packets that were sent,
//! and it must be newer than what is known. A report is newer if its [`ReportOrder`] is above that of the last accepted
//! one. A message of the receive half has no number of its own, so it is as new as the report in its compound. An
//! application-defined message names no stream either: it is accepted only behind a newer report on this flow.

use super::report_order::{ReportOrder, ReportStatus};
use super::sequence_map::SequenceMap;
use super::{Sender, SenderEvent};
use crate::{FeedbackFormat, rtcp_message};
use alloc::vec::Vec;
use paceline_units::{StreamId, Time, TimeDelta};
use paceline_wire::{ReportBlock, Rtcp, WireError, ntp, parse_compound};

/// The most SSRCs of a flow that has declared none.
const MAPS_MAX: usize = 8;

/// What RTCP refers to: the SSRCs of the flow, and the reports on them.
#[derive(Clone, Debug)]
pub(super) struct RtpReports {
    streams: Vec<RtpStream>,
    /// With RFC 8888 feedback: the packets of each SSRC.
    maps: Vec<SequenceMap>,
    /// The format of feedback that the flow uses; `None`: any.
    format: Option<FeedbackFormat>,
    /// The number of the receiver's last report.
    report: u32,
    /// The time at which the network route last changed, or the flow began.
    route_began: Time,
    /// The NTP time of time zero in the program's sender reports, ns since 1900; `None`: unknown, so that reports give no
    /// round-trip time.
    ntp_origin: Option<u64>,
    malformed: [u32; WireError::COUNT],
    ignored: u32,
}

/// The RTP streams of one media stream.
#[derive(Clone, Debug)]
struct RtpStream {
    id: StreamId,
    ssrc: u32,
    rtx_ssrc: u32,
    first_sequence: u16,
    /// Packets sent on the media SSRC.
    packets: u64,
    /// The order key of the last accepted report.
    last_report: ReportOrder,
    /// The cumulative number of packets lost in that report.
    reported_lost: i32,
    /// The number of the last report with a block on this stream.
    report: u32,
    /// Whether the next report may count losses of an earlier route.
    mixes_routes: bool,
}

impl RtpStream {
    /// Returns the number of media packets that had been sent up to and including the highest sequence number of a report.
    /// Returns `None` if no such packet was sent.
    ///
    /// Only the low 16 bits identify the packet. The cycle count above them starts with the first packet that the
    /// receiver saw and restarts after an outage, so it may be lower than the sender's but never higher.
    fn sent_up_to(&self, highest: u32) -> Option<u64> {
        let last = (self.first_sequence as u64 + self.packets).checked_sub(1)?;
        let behind = (last as u16).wrapping_sub(highest as u16) as u64;
        (highest as u64 <= last).then(|| self.packets.checked_sub(behind)).flatten().filter(|count| *count > 0)
    }
}

impl RtpReports {
    pub fn new(start: Time) -> Self {
        Self {
            streams: Vec::new(),
            maps: Vec::new(),
            format: None,
            report: 0,
            route_began: start,
            ntp_origin: None,
            malformed: [0; WireError::COUNT],
            ignored: 0,
        }
    }

    /// Ignores reports that cover no packet after the last one sent, unless they name a sender report from now on.
    pub fn handle_route_change(&mut self, now: Time) {
        self.route_began = now;
        let last_sr = self.ntp_origin.map_or(0, |origin| ntp::middle(ntp_time(origin, now)));
        for stream in &mut self.streams {
            stream.last_report = ReportOrder { sent: stream.packets, last_sr, delay: u32::MAX };
            stream.mixes_routes = true;
        }
    }

    /// Returns whether an SSRC is one of the flow. A program that has declared none handles the RTCP of one flow alone.
    fn names(&self, ssrc: u32) -> bool {
        self.streams.is_empty() || self.streams.iter().any(|stream| stream.ssrc == ssrc || stream.rtx_ssrc == ssrc)
    }
}

/// Returns the NTP time of a time, if time zero is `origin` ns after 1900.
fn ntp_time(origin: u64, now: Time) -> u64 {
    ntp::from_nanos(origin.wrapping_add(now.as_nanos() as u64))
}

impl<T> Sender<T> {
    /// Declares the SSRCs of a stream: that of its media, and that of its retransmissions and padding. `first_sequence` is the
    /// RTP sequence number of its first media packet. From then on reports on SSRCs that were not declared are ignored; before,
    /// all RTCP counts as that of this flow, and receiver reports only prove that packets arrive.
    pub fn add_ssrcs(&mut self, id: StreamId, ssrc: u32, rtx_ssrc: u32, first_sequence: u16) {
        let report = self.rtp.report;
        let (last_report, reported_lost, mixes_routes, packets) = (ReportOrder::default(), 0, false, 0);
        let counts =
            RtpStream { id, ssrc, rtx_ssrc, first_sequence, packets, last_report, reported_lost, report, mixes_routes };
        self.rtp.streams.push(counts);
        if self.history.is_some() && self.rtp.format != Some(FeedbackFormat::TransportWide) {
            self.rtp.maps.extend([ssrc, rtx_ssrc].map(SequenceMap::new));
        }
    }

    /// Sets the one format of per-packet feedback that counts. Call it before [`add_ssrcs`](Self::add_ssrcs).
    pub fn set_feedback_format(&mut self, format: Option<FeedbackFormat>) {
        self.rtp.format = format;
    }

    /// Sets the NTP time of time zero, in nanoseconds since 1900, by which the program writes its sender reports. Receiver reports
    /// then give the round-trip time.
    pub fn set_ntp_origin(&mut self, origin: u64) {
        self.rtp.ntp_origin = Some(origin);
    }

    /// Records the SSRC and the RTP sequence number of the packet with this number. Feedback of RFC 8888 and receiver reports name
    /// packets by them. Call it for each packet, in order, before the next one leaves. If no SSRCs were declared, those of the
    /// packets count; at most 8, those that began last.
    #[inline]
    pub fn handle_rtp_sent(&mut self, number: u64, ssrc: u32, sequence: u16) {
        match self.rtp.maps.iter_mut().find(|map| map.ssrc == ssrc) {
            Some(map) => map.handle_sent(sequence, number),
            None if self.rtp.streams.is_empty() => {
                if self.rtp.maps.len() == MAPS_MAX {
                    self.rtp.maps.remove(0);
                }
                let mut map = SequenceMap::new(ssrc);
                map.handle_sent(sequence, number);
                self.rtp.maps.push(map);
            }
            None => {}
        }
        if let Some(stream) = self.rtp.streams.iter_mut().find(|stream| stream.ssrc == ssrc) {
            stream.packets += 1;
        }
    }

    /// Handles an RTCP datagram: receiver and sender reports, transport-wide feedback, RFC 8888 reports, REMB and other messages of
    /// a receive half, key frame requests. The rest is skipped. Packets about streams or packets that were never sent are counted
    /// and ignored ([`rejected_packets`](Self::rejected_packets)).
    ///
    /// # Errors
    /// The datagram is malformed. Nothing of it has an effect.
    pub fn handle_rtcp(&mut self, now: Time, datagram: &[u8]) -> Result<(), WireError> {
        let compound = parse_compound(datagram).inspect_err(|error| self.rtp.malformed[error.index()] += 1)?;
        let mut status = ReportStatus::default();
        for packet in compound {
            self.handle_rtcp_packet(now, &packet, &mut status);
        }
        self.settle();
        Ok(())
    }

    /// Handles one packet of a compound, for a program that reads compounds itself. `status` is new for each compound. Call
    /// [`settle`](Self::settle) after the last packet.
    #[doc(hidden)]
    pub fn handle_rtcp_packet(&mut self, now: Time, packet: &Rtcp<'_>, status: &mut ReportStatus) {
        let now = self.advance(now);
        match *packet {
            Rtcp::ReceiverReport { .. } | Rtcp::SenderReport { .. } if self.rtp.streams.is_empty() => {
                self.pass_liveness(now);
                status.fresh = true;
            }
            Rtcp::ReceiverReport { blocks, .. } | Rtcp::SenderReport { blocks, .. } => {
                let ReportStatus { fresh, stale } = self.handle_blocks(now, blocks);
                status.fresh |= fresh;
                status.stale |= stale;
            }
            Rtcp::Remb { mut ssrcs, .. } => {
                let is_media = |ssrc| self.rtp.streams.iter().any(|stream| stream.ssrc == ssrc);
                let ours = self.rtp.streams.is_empty() || ssrcs.any(is_media);
                self.handle_rtcp_message(now, packet, ours && !status.stale);
            }
            Rtcp::Nada { .. } | Rtcp::App { .. } => {
                self.handle_rtcp_message(now, packet, status.fresh && !status.stale);
            }
            Rtcp::Pli { media_ssrc, .. } => match self.rtp.streams.iter().find(|s| s.ssrc == media_ssrc) {
                Some(stream) => self.emit(SenderEvent::KeyFrameRequested(stream.id)),
                None => self.rtp.ignored += 1,
            },
            Rtcp::TransportFeedback(feedback) => {
                let is_ours = self.rtp.format != Some(FeedbackFormat::Rfc8888) && self.rtp.names(feedback.media_ssrc);
                match &mut self.history {
                    Some(history) if is_ours => {
                        self.rtp.ignored += self.reader.handle_transport_feedback(history, &feedback);
                        self.deliver_reports(now);
                    }
                    _ => self.rtp.ignored += 1,
                }
            }
            Rtcp::CongestionFeedback(feedback) => match &mut self.history {
                Some(history) => {
                    let maps = &self.rtp.maps;
                    self.rtp.ignored += self.reader.handle_congestion_feedback(now, history, maps, &feedback);
                    self.deliver_reports(now);
                }
                None => self.rtp.ignored += 1,
            },
            _ => {}
        }
    }

    /// Counts a packet that the program ignored because it refers to nothing that was sent, or a malformed datagram.
    pub fn reject(&mut self, error: Option<WireError>) {
        match error {
            Some(error) => self.rtp.malformed[error.index()] += 1,
            None => self.rtp.ignored += 1,
        }
    }

    /// Returns the numbers of malformed datagrams that arrived, by kind of error, and of well-formed packets that were ignored
    /// because they refer to nothing that this sender sent.
    pub fn rejected_packets(&self) -> (&[u32; WireError::COUNT], u32) {
        (&self.rtp.malformed, self.rtp.ignored)
    }

    /// Passes a message of the receive half on, if it was `accepted`.
    fn handle_rtcp_message(&mut self, now: Time, packet: &Rtcp<'_>, accepted: bool) {
        match rtcp_message::read(packet) {
            Some(message) if accepted && self.half.get().is_some() => self.pass_message(now, &message),
            _ => self.rtp.ignored += 1,
        }
    }

    /// Handles one datagram of a report on the flow. The fraction lost is that of the media of all streams, from the growth of
    /// the cumulative counts. The fraction of a block is not used: it counts a packet that is late as lost, and the next
    /// block does not take it back. A report gives one sample of the round-trip time, also if it takes several
    /// datagrams: the next report begins with a stream that this one has a block for.
    fn handle_blocks(&mut self, now: Time, blocks: impl Iterator<Item = ReportBlock>) -> ReportStatus {
        let (mut expected, mut lost, mut rtt) = (0u64, 0i64, None);
        let (mut old, mut new, mut begins) = (false, false, false);
        let rtp = &mut self.rtp;
        let next = rtp.report.wrapping_add(1);
        let now_ntp = rtp.ntp_origin.map(|origin| ntp::middle(ntp_time(origin, now)));
        for block in blocks {
            let Some(stream) = rtp.streams.iter_mut().find(|stream| stream.ssrc == block.ssrc) else {
                let known = rtp.streams.iter().any(|stream| stream.rtx_ssrc == block.ssrc);
                rtp.ignored += u32::from(!known);
                continue;
            };
            let (last_sr, delay) = (block.last_sr, block.delay_since_last_sr);
            let order = stream.sent_up_to(block.highest_sequence).map(|sent| ReportOrder { sent, last_sr, delay });
            let Some(order) = order.filter(|order| order.is_after(&stream.last_report)) else {
                rtp.ignored += 1;
                old = true;
                continue;
            };
            new = true;
            let covered = order.sent - stream.last_report.sent;
            stream.last_report = order;
            begins |= stream.report == rtp.report;
            stream.report = next;
            expected += covered;
            let before = i64::from(core::mem::replace(&mut stream.reported_lost, block.cumulative_lost));
            // Losses before a route change are not those of the new route.
            if !core::mem::take(&mut stream.mixes_routes) {
                // At most all packets are lost, and at most all earlier losses were late.
                let change = i64::from(block.cumulative_lost) - before;
                lost += change.min(covered as i64).max(-before.max(0));
            }
            if let Some(now_ntp) = now_ntp {
                let age = TimeDelta::from_nanos(ntp::nanos(i64::from(now_ntp.wrapping_sub(last_sr))));
                let sample = ntp::round_trip(now_ntp, last_sr, delay).filter(|_| now - age >= rtp.route_began);
                rtt = rtt.or(sample);
            }
        }
        if begins {
            rtp.report = next;
        } else {
            let report = rtp.report;
            rtp.streams.iter_mut().filter(|s| s.report == next).for_each(|s| s.report = report);
        }
        if let Some(sample) = rtt.filter(|_| expected > 0 && begins) {
            self.pass_rtt(now, sample);
        }
        self.pass_loss(now, expected, lost);
        ReportStatus { fresh: new, stale: old && !new }
    }
}
