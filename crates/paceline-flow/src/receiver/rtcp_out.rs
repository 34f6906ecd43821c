//! Outgoing RTCP: receiver reports with the messages of the receive half, NACK, key frame requests, per-packet
//! feedback.

use super::{MediaReceiver, ReceiverEvent};
use crate::datagram::Datagram;
use crate::messages;
use crate::nack::REQUEST_MAX;
use paceline::Message;
use paceline_units::{Ecn, RemoteTime};
use paceline_wire::{CompoundWriter, ReportBlock, ntp};

impl MediaReceiver {
    /// Writes the next datagram that is due. Returns whether there was one.
    pub(super) fn write_next(&mut self, now: RemoteTime, out: &mut Datagram) -> bool {
        let own = self.ssrc;
        if !self.messages.is_empty() || now >= self.next_report {
            let len = self.write_report(now, out);
            out.set_len(len, 0, Ecn::NotEct);
            self.next_report = now + self.rtcp.next_interval(Some(out.size()));
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
        if let Some(feedback) = &mut self.feedback {
            let media_ssrc = self.streams[0].info.ssrc;
            if feedback.write(now, own, media_ssrc, &mut writer) {
                let len = writer.finish();
                out.set_len(len, 0, Ecn::NotEct);
                return true;
            }
        }
        false
    }

    /// Writes a receiver report with a block for every SSRC that was received, media first, followed by the messages of
    /// the receive half. A compound begins with a report (RFC 3550, section 6.1), and this one counts as the regular
    /// report. Messages of one instant share a report, because the sender would ignore a second one as not newer.
    fn write_report(&mut self, now: RemoteTime, out: &mut Datagram) -> usize {
        const BLOCKS_MAX: usize = 8;
        let mut blocks = [ReportBlock::default(); BLOCKS_MAX];
        let mut count = 0;
        for stream in &mut self.streams {
            let (last_sr, delay) = stream.last_sr.map_or((0, 0), |(middle, at)| (middle, ntp::delay(now - at)));
            let media = stream.media.block(stream.info.ssrc, last_sr, delay);
            let rtx = stream.rtx.block(stream.info.rtx_ssrc, last_sr, delay);
            for block in media.into_iter().chain(rtx) {
                if count < BLOCKS_MAX {
                    blocks[count] = block;
                    count += 1;
                }
            }
        }
        let mut writer = CompoundWriter::new(out.buffer());
        let written = writer.receiver_report(self.ssrc, &blocks[..count]);
        debug_assert!(written.is_ok(), "eight blocks fit");
        let mut ssrcs = [0; BLOCKS_MAX];
        for (out, stream) in ssrcs.iter_mut().zip(&self.streams) {
            *out = stream.info.ssrc;
        }
        let ssrcs = &ssrcs[..self.streams.len().min(BLOCKS_MAX)];
        let report_len = writer.len();
        while let Some(message) = self.messages.front() {
            let written = messages::write(message, self.ssrc, ssrcs, &mut writer);
            debug_assert!(written.is_ok() || writer.len() > report_len, "one message on eight streams fits");
            if written.is_err() && writer.len() > report_len {
                break;
            }
            if let Some(Message::Remb(rate)) = self.messages.pop_front() {
                self.events.push_back(ReceiverEvent::Remb(rate));
            }
        }
        // The CNAME is left out if there is no room; the sender knows it from earlier reports.
        let _ = writer.sdes_cname(self.ssrc, "paceline");
        writer.finish()
    }
}
