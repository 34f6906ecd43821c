// SPDX-License-Identifier: MIT OR Apache-2.0
//! Outgoing RTCP: receiver reports with the messages of the receive half, NACK, key frame requests, per-packet
//! feedback.

use super::{AT_ONCE, MediaReceiver, ReceiverEvent};
use crate::flow::datagram::Datagram;
use crate::flow::nack::REQUEST_MAX;
use paceline::{Message, rtcp_message};
use paceline_units::{Ecn, RemoteTime, TimeDelta};
use paceline_wire::{CompoundWriter, ReceptionStats, ReportBlock, ntp};

/// The blocks of one datagram: as many as fit into its real bytes, with a message and the CNAME.
const BLOCKS_MAX: usize = 8;
/// The time after which messages that did not fit are sent. The delay since the last sender report has then grown by several
/// units of 1/65536 s, which shows that the report is newer.
const MESSAGE_INTERVAL: TimeDelta = TimeDelta::from_millis(1);
/// The bytes of a receiver report without blocks, and of a block (RFC 3550, section 6.4.2).
const REPORT_LEN: usize = 8;
const BLOCK_LEN: usize = 24;

impl MediaReceiver {
    /// Writes the next datagram that is due. Returns whether there was one.
    pub(super) fn write_next(&mut self, now: RemoteTime, out: &mut Datagram) -> bool {
        let own = self.ssrc;
        if now >= self.report_due() {
            let len = self.write_report(now, out);
            out.set_len(len, 0, Ecn::NotEct);
            self.reported += out.size();
            if self.next_block == 0 {
                let size = core::mem::take(&mut self.reported);
                self.next_report = now + self.rtcp.next_interval(Some(size));
            }
            return true;
        }
        let mut writer = CompoundWriter::new(out.buffer());
        for stream in &mut self.streams {
            let mut lost = [0; REQUEST_MAX];
            let count = if self.nack { stream.nack.poll(now, &mut lost) } else { 0 };
            let wants_key = stream.reassembly.poll_key_request(now);
            if count == 0 && !wants_key {
                continue;
            }
            // Reduced size (RFC 5506), most urgent first; requests that do not fit are repeated later.
            if wants_key {
                let _ = writer.pli(own, stream.info.ssrc);
            }
            if count > 0 {
                let _ = writer.nack(own, stream.info.ssrc, &lost[..count]);
            }
            let len = writer.finish();
            out.set_len(len, 0, Ecn::NotEct);
            return len > 0;
        }
        let media_ssrc = self.streams.first().map_or(0, |stream| stream.info.ssrc);
        if self.core.write_feedback(now, media_ssrc, &mut writer) {
            let len = writer.finish();
            out.set_len(len, 0, Ecn::NotEct);
            return true;
        }
        false
    }

    /// Returns the time at which a report is due: at once for messages and for the rest of a report.
    pub(super) fn report_due(&self) -> RemoteTime {
        match (self.next_block, self.core.messages().is_empty()) {
            (0, true) => self.next_report,
            (0, false) => self.next_report.min(self.messages_due),
            _ => AT_ONCE,
        }
    }

    /// Writes a receiver report followed by the messages of the receive half. A compound begins with a report (RFC 3550,
    /// section 6.1), and this one counts as the regular report. Messages of one instant share a report, because the
    /// sender would ignore a second one as not newer. Messages that do not fit wait for [`MESSAGE_INTERVAL`].
    ///
    /// The report has a block for every SSRC that was received, first those of media, then those of retransmissions. If
    /// they do not fit into one datagram, the next datagrams continue (RFC 3550, section 6.4.2).
    fn write_report(&mut self, now: RemoteTime, out: &mut Datagram) -> usize {
        let mut blocks = [ReportBlock::default(); BLOCKS_MAX];
        let (mut count, mut from) = (0, self.next_block);
        // A later datagram of a report may name no media stream, so the sender could not tell that it is new.
        let takes_messages = from == 0 && (self.message_interval.is_none() || now >= self.messages_due);
        let streams = self.streams.len().min(BLOCKS_MAX);
        let most = if takes_messages {
            let len: usize = self.core.messages().iter().map(|message| rtcp_message::len(message, streams)).sum();
            (out.buffer().len().saturating_sub(REPORT_LEN + len) / BLOCK_LEN).clamp(1, BLOCKS_MAX)
        } else {
            BLOCKS_MAX
        };
        while count < most
            && let Some(index) = self.reported_from(from)
        {
            blocks[count] = self.report_block(now, index);
            (count, from) = (count + 1, index + 1);
        }
        self.next_block = self.reported_from(from).unwrap_or(0);
        let mut writer = CompoundWriter::new(out.buffer());
        let written = writer.receiver_report(self.ssrc, &blocks[..count]);
        debug_assert!(written.is_ok(), "eight blocks fit");
        let mut ssrcs = [0; BLOCKS_MAX];
        for (out, stream) in ssrcs.iter_mut().zip(&self.streams) {
            *out = stream.info.ssrc;
        }
        let ssrcs = &ssrcs[..self.streams.len().min(BLOCKS_MAX)];
        let report_len = writer.len();
        if let Some(interval) = self.message_interval.filter(|_| takes_messages && !self.core.messages().is_empty()) {
            self.messages_due = now + interval;
        }
        while takes_messages && let Some(message) = self.core.messages().first() {
            let written = rtcp_message::write(message, self.ssrc, ssrcs, &mut writer);
            debug_assert!(written.is_ok() || writer.len() > report_len, "one message on eight streams fits");
            if written.is_err() && writer.len() > report_len {
                self.messages_due = now + MESSAGE_INTERVAL;
                break;
            }
            if let Some(Message::Remb(rate)) = self.core.take_message() {
                self.events.push_back(ReceiverEvent::Remb(rate));
            }
        }
        // The CNAME is left out if there is no room; the sender knows it from earlier reports.
        let _ = writer.sdes_cname(self.ssrc, "paceline");
        writer.finish()
    }

    /// Returns the SSRC of an index: first the media of each stream, then the retransmissions of each.
    fn source(&mut self, index: usize) -> (u32, &mut ReceptionStats, Option<(u32, RemoteTime)>) {
        let count = self.streams.len();
        let stream = &mut self.streams[index % count];
        match index < count {
            true => (stream.info.ssrc, &mut stream.media, stream.last_sr),
            false => (stream.info.rtx_ssrc, &mut stream.rtx, stream.last_sr),
        }
    }

    /// Returns the first index from `from` on of an SSRC that was received.
    fn reported_from(&mut self, from: usize) -> Option<usize> {
        (from..2 * self.streams.len()).find(|index| self.source(*index).1.has_received())
    }

    fn report_block(&mut self, now: RemoteTime, index: usize) -> ReportBlock {
        let (ssrc, stats, last_sr) = self.source(index);
        let (last_sr, delay) = last_sr.map_or((0, 0), |(middle, at)| (middle, ntp::delay(now - at)));
        stats.block(ssrc, last_sr, delay).unwrap_or_default()
    }
}
