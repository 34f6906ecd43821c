//! The receiving endpoint, on its own clock: arrivals to the receive half, packets back to frames, and the reports
//! that go back.

use crate::datagram::{Datagram, IP_UDP_HEADERS};
use crate::feedback::{FeedbackRecord, unwrap_after};
use crate::nack::{NackList, REQUEST_MAX};
use crate::reassembly::{Piece, Reassembly};
use crate::rtcp_timer::{RtcpTimer, RtcpTiming};
use crate::streams::{MediaKind, StreamNames};
use paceline::{Arrival, Controller, FeedbackKind, Message, PacketKind, ReceiveHalf, Signals};
use paceline_units::{DataSize, Ecn, RandomStream, Rate, RemoteTime, StreamId, Time, TimeDelta};
use paceline_wire::{
    AbsSendTime, CompoundWriter, ExtensionIds, ReceptionStats, ReportBlock, Rtcp, RtpHeader, Vp8Descriptor, WireError,
    is_rtcp, ntp, parse_compound, rtx,
};
use std::collections::VecDeque;

/// What a receiver is made of.
pub struct ReceiverConfig {
    /// Header extension ids.
    pub extensions: ExtensionIds,
    /// The streams that it expects.
    pub streams: Vec<StreamNames>,
    /// When it begins, on its own clock.
    pub start: RemoteTime,
    /// Its SSRC in reports.
    pub ssrc: u32,
    /// Timing of receiver reports.
    pub rtcp: RtcpTiming,
    /// Ask for lost video packets.
    pub nack: bool,
}

/// What the receiver wants known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ReceiverEvent {
    /// A frame was rendered.
    Frame {
        /// Its stream.
        stream: StreamId,
        /// Its RTP timestamp.
        timestamp: u32,
        /// Its encoded size.
        size: DataSize,
        /// Frames given up since the one before.
        dropped: u16,
    },
    /// A REMB went out.
    Remb(Rate),
    /// The receive half emitted this signal of its table.
    Signal(u8, f64),
}

/// How far behind the highest a media packet may be: 16 bits wrap, so anything further back is taken for one ahead,
/// after an outage.
const LATE_MAX: u64 = 4096;

struct Stream {
    names: StreamNames,
    media: ReceptionStats,
    rtx: ReceptionStats,
    highest: Option<u64>,
    nack: NackList,
    reassembly: Reassembly,
    /// Middle of the last sender report's stamp, and when it came.
    last_sr: Option<(u32, RemoteTime)>,
}

/// The receiving endpoint.
pub struct MediaReceiver {
    extensions: ExtensionIds,
    ssrc: u32,
    streams: Vec<Stream>,
    half: Option<Box<dyn ReceiveHalf>>,
    record: Option<FeedbackRecord>,
    rtcp: RtcpTimer,
    next_report: RemoteTime,
    nack: bool,
    /// Last abs-send-time, as it came and unwrapped, and when it came.
    sent: Option<(AbsSendTime, Time, RemoteTime)>,
    messages: VecDeque<Message>,
    signals: Signals,
    events: VecDeque<ReceiverEvent>,
    malformed: [u32; WireError::COUNT],
    ignored: u32,
    wake: RemoteTime,
}

impl MediaReceiver {
    /// A receiver with the receive half of `controller`.
    pub fn new(config: ReceiverConfig, controller: &mut Controller, random: RandomStream, signals: Signals) -> Self {
        let mut rtcp = RtcpTimer::new(config.rtcp, random);
        let next_report = config.start + rtcp.next(None);
        let stream = |names| Stream {
            names,
            media: ReceptionStats::default(),
            rtx: ReceptionStats::default(),
            highest: None,
            nack: NackList::new(),
            reassembly: Reassembly::new(),
            last_sr: None,
        };
        let record = match controller.feedback {
            FeedbackKind::None => None,
            FeedbackKind::TransportWide { interval, longest } => Some(FeedbackRecord::new(interval, longest)),
        };
        Self {
            extensions: config.extensions,
            ssrc: config.ssrc,
            streams: config.streams.into_iter().map(stream).collect(),
            half: controller.receive.take(),
            record,
            rtcp,
            next_report,
            nack: config.nack,
            sent: None,
            messages: VecDeque::new(),
            signals,
            events: VecDeque::new(),
            malformed: [0; WireError::COUNT],
            ignored: 0,
            wake: next_report,
        }
    }

    /// A datagram came: the bytes of it that exist, its size on the network, its ECN field.
    pub fn handle_packet(&mut self, now: RemoteTime, bytes: &[u8], size: DataSize, ecn: Ecn) {
        let handled =
            if is_rtcp(bytes) { self.handle_rtcp(now, bytes) } else { self.handle_rtp(now, bytes, size, ecn) };
        if let Err(error) = handled {
            self.malformed[error.index()] += 1;
        }
        self.reckon_timeout();
    }

    /// The time of [`poll_timeout`](Self::poll_timeout) has come.
    pub fn handle_timeout(&mut self, now: RemoteTime) {
        if let Some(half) = &mut self.half
            && half.poll_timeout() <= now
        {
            half.handle_timeout(now, &mut self.signals);
        }
        self.listen(now);
        for index in 0..self.streams.len() {
            self.render(now, index);
        }
        self.reckon_timeout();
    }

    /// Writes the next datagram that is due at `now` into `out`; call until `None`. Answers true when one was written.
    pub fn poll_transmit(&mut self, now: RemoteTime, out: &mut Datagram) -> bool {
        if now < self.wake {
            return false;
        }
        let wrote = self.write_next(now, out);
        self.reckon_timeout();
        wrote
    }

    /// The next event, in order.
    pub fn poll_event(&mut self) -> Option<ReceiverEvent> {
        if let Some(event) = self.events.pop_front() {
            return Some(event);
        }
        if !self.signals.is_empty() {
            let events = self.signals.drain().map(|(index, value)| ReceiverEvent::Signal(index, value));
            self.events.extend(events);
        }
        self.events.pop_front()
    }

    /// When [`handle_timeout`](Self::handle_timeout) and [`poll_transmit`](Self::poll_transmit) are wanted next.
    pub fn poll_timeout(&self) -> RemoteTime {
        self.wake
    }

    /// Malformed packets by kind, and well-formed ones of streams that nobody announced.
    pub fn refused(&self) -> (&[u32; WireError::COUNT], u32) {
        (&self.malformed, self.ignored)
    }

    fn reckon_timeout(&mut self) {
        let mut wake = self.next_report;
        if let Some(half) = &self.half {
            wake = wake.min(half.poll_timeout());
        }
        if !self.messages.is_empty() {
            wake = RemoteTime::from_nanos(i64::MIN);
        }
        if let Some(record) = &self.record {
            wake = wake.min(record.poll_timeout());
        }
        for stream in &self.streams {
            wake = wake.min(stream.reassembly.poll_timeout());
            if self.nack {
                wake = wake.min(stream.nack.poll_timeout());
            }
        }
        self.wake = wake;
    }

    // ---- RTP

    fn handle_rtp(&mut self, now: RemoteTime, bytes: &[u8], size: DataSize, ecn: Ecn) -> Result<(), WireError> {
        let (header, offset) = RtpHeader::parse(bytes, &self.extensions)?;
        let ssrc = header.ssrc;
        let Some(index) = self.streams.iter().position(|s| s.names.ssrc == ssrc || s.names.rtx_ssrc == ssrc) else {
            self.ignored += 1;
            return Ok(());
        };
        let names = self.streams[index].names;
        let payload = &bytes[offset.min(bytes.len())..];
        let kind = match (ssrc == names.ssrc, header.padding) {
            (true, _) => PacketKind::Media,
            (false, true) => PacketKind::Padding,
            (false, false) => PacketKind::Retransmission,
        };
        // Everything that can be malformed is read before anything is changed.
        let (sequence, skip) = match kind {
            PacketKind::Retransmission => (rtx::read(payload)?, rtx::LEN),
            PacketKind::Media | PacketKind::Padding => (header.sequence, 0),
        };
        let vp8 = match (names.kind, kind) {
            (MediaKind::Video, PacketKind::Media | PacketKind::Retransmission) => {
                Some(Vp8Descriptor::parse(&payload[skip..])?)
            }
            _ => None,
        };

        let stream = &mut self.streams[index];
        let stats = if kind == PacketKind::Media { &mut stream.media } else { &mut stream.rtx };
        stats.on_packet(header.sequence, header.timestamp, in_clock_units(now, names.clock_rate));
        let sent = header.abs_send_time.map(|stamp| unwrap_send_time(&mut self.sent, now, stamp));
        if let (Some(record), Some(number)) = (&mut self.record, header.transport_sequence) {
            record.handle_packet(now, number, size);
        }
        if let Some(half) = &mut self.half {
            let arrival = Arrival {
                sent,
                timestamp: header.timestamp,
                sequence,
                stream: names.id,
                media: names.kind,
                kind,
                size,
                ecn,
            };
            half.handle_arrival(now, &arrival, &mut self.signals);
            self.listen(now);
        }

        let headers = IP_UDP_HEADERS + DataSize::from_bytes((offset + skip) as u64);
        let media = size.saturating_sub(headers);
        match vp8 {
            Some(vp8) => {
                let descriptor = if vp8.start { Vp8Descriptor::MAX_LEN } else { Vp8Descriptor::MAX_LEN - 1 };
                let piece = Piece {
                    timestamp: header.timestamp,
                    picture: vp8.picture_id,
                    payload: media.as_bytes().saturating_sub(descriptor as u64) as u16,
                    start: vp8.start,
                    marker: header.marker,
                    key: vp8.key,
                };
                self.handle_piece(now, index, sequence, piece);
            }
            None if kind == PacketKind::Media => {
                let (stream, timestamp) = (names.id, header.timestamp);
                self.events.push_back(ReceiverEvent::Frame { stream, timestamp, size: media, dropped: 0 });
            }
            None => {}
        }
        Ok(())
    }

    fn handle_piece(&mut self, now: RemoteTime, index: usize, number: u16, piece: Piece) {
        let stream = &mut self.streams[index];
        let sequence = match stream.highest {
            // One lap up, so that packets reordered before the first have a place.
            None => number as u64 + (1 << 16),
            Some(highest) => unwrap_after(number, highest + 1, LATE_MAX),
        };
        stream.highest = Some(stream.highest.map_or(sequence, |h| h.max(sequence)));
        if self.nack {
            stream.nack.handle_packet(now, sequence);
        }
        if stream.reassembly.insert(now, sequence, piece) {
            self.render(now, index);
        }
    }

    fn render(&mut self, now: RemoteTime, index: usize) {
        let stream = &mut self.streams[index];
        while let Some(frame) = stream.reassembly.poll(now) {
            self.events.push_back(ReceiverEvent::Frame {
                stream: stream.names.id,
                timestamp: frame.timestamp,
                size: frame.size,
                dropped: frame.dropped,
            });
        }
        if self.nack {
            stream.nack.give_up_below(stream.reassembly.wanted_from());
        }
    }

    /// Takes what the receive half wants told.
    fn listen(&mut self, now: RemoteTime) {
        if let Some(half) = &mut self.half {
            while let Some(message) = half.poll_message(now) {
                self.messages.push_back(message);
            }
        }
    }

    // ---- RTCP

    fn handle_rtcp(&mut self, now: RemoteTime, bytes: &[u8]) -> Result<(), WireError> {
        for packet in parse_compound(bytes)? {
            if let Rtcp::SenderReport { ssrc, ntp, .. } = packet {
                match self.streams.iter_mut().find(|s| s.names.ssrc == ssrc) {
                    Some(stream) => stream.last_sr = Some((ntp::middle(ntp), now)),
                    None => self.ignored += 1,
                }
            }
        }
        Ok(())
    }

    fn write_next(&mut self, now: RemoteTime, out: &mut Datagram) -> bool {
        let own = self.ssrc;
        let message = self.messages.pop_front();
        if message.is_some() || now >= self.next_report {
            let len = self.write_report(now, message, out);
            out.set_len(len, 0, Ecn::NotEct);
            self.next_report = now + self.rtcp.next(Some(out.size()));
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
            // Reduced size (RFC 5506): what fits, in order of urgency; the rest is asked for again.
            if wants_key {
                let _ = writer.pli(own, stream.names.ssrc);
            }
            if count > 0 {
                let _ = writer.nack(own, stream.names.ssrc, &lost[..count]);
            }
            let len = writer.finish();
            out.set_len(len, 0, Ecn::NotEct);
            return len > 0;
        }
        if let Some(record) = &mut self.record {
            let media_ssrc = self.streams[0].names.ssrc;
            if let Some((base, count, arrivals)) = record.poll(now) {
                let covered =
                    writer.transport_feedback(own, media_ssrc, base, count, arrivals).unwrap_or(arrivals.len());
                let len = writer.finish();
                record.reported(now, covered);
                out.set_len(len, 0, Ecn::NotEct);
                return len > 0;
            }
        }
        false
    }

    /// RR with a block for every SSRC that was heard, media first, and a message of the receive half behind it: a
    /// compound begins with a report of what was received (RFC 3550, section 6.1), and counts as the regular one.
    fn write_report(&mut self, now: RemoteTime, message: Option<Message>, out: &mut Datagram) -> usize {
        const BLOCKS_MAX: usize = 8;
        let mut blocks = [ReportBlock::default(); BLOCKS_MAX];
        let mut count = 0;
        for stream in &mut self.streams {
            let (last_sr, delay) = stream.last_sr.map_or((0, 0), |(middle, at)| (middle, ntp::delay(now - at)));
            let media = stream.media.block(stream.names.ssrc, last_sr, delay);
            let rtx = stream.rtx.block(stream.names.rtx_ssrc, last_sr, delay);
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
        if let Some(Message::Remb(rate)) = message {
            let mut ssrcs = [0; BLOCKS_MAX];
            for (out, stream) in ssrcs.iter_mut().zip(&self.streams) {
                *out = stream.names.ssrc;
            }
            let written = writer.remb(self.ssrc, rate, &ssrcs[..self.streams.len().min(BLOCKS_MAX)]);
            debug_assert!(written.is_ok(), "a REMB of eight streams fits beside them");
            self.events.push_back(ReceiverEvent::Remb(rate));
        }
        // The name goes where room is left; the other end knows it from the reports before.
        let _ = writer.sdes_cname(self.ssrc, "paceline");
        writer.finish()
    }
}

/// The sender's clock as abs-send-time shows it, unwrapped around the packet before. It wraps each 64 s; how often it
/// did since that packet is what the receiver's own clock says.
fn unwrap_send_time(last: &mut Option<(AbsSendTime, Time, RemoteTime)>, now: RemoteTime, stamp: AbsSendTime) -> Time {
    const LAP: TimeDelta = TimeDelta::from_secs(64);
    let time = match *last {
        None => Time::ZERO,
        Some((before, at, came)) => {
            let step = stamp.since(before);
            let laps = (now - came - step + LAP / 2).as_nanos().div_euclid(LAP.as_nanos());
            at + step + LAP * laps
        }
    };
    *last = Some((stamp, time, now));
    time
}

/// A reading in units of an RTP clock, modulo 2^32.
fn in_clock_units(at: RemoteTime, clock_rate: u32) -> u32 {
    const SECOND: i64 = 1_000_000_000;
    let (seconds, nanos) = (at.as_nanos().div_euclid(SECOND), at.as_nanos().rem_euclid(SECOND));
    (seconds.wrapping_mul(clock_rate as i64) + nanos * clock_rate as i64 / SECOND) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn send_times_are_right_after_any_silence() {
        let (mut last, mut now) = (None, RemoteTime::from_millis(777_777));
        let mut sent = Time::from_millis(123);
        unwrap_send_time(&mut last, now, AbsSendTime::from_time(sent));
        for (sent_ms, came_ms) in [(5, 5), (-3, 0), (33, 933), (900, 0), (31_000, 31_000), (33_000, 33_400)]
            .into_iter()
            .chain([(64_000, 64_000), (65_000, 64_500), (100_000, 100_000), (86_400_000, 86_400_900)])
        {
            let before = last.unwrap().1;
            (sent, now) = (sent + TimeDelta::from_millis(sent_ms), now + TimeDelta::from_millis(came_ms));
            let step = unwrap_send_time(&mut last, now, AbsSendTime::from_time(sent)) - before;
            assert!((step - TimeDelta::from_millis(sent_ms)).abs() < TimeDelta::from_micros(4), "{sent_ms}: {step:?}");
        }
    }
}
