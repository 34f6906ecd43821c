//! The receiving endpoint, on its own clock: arrivals to the receive half, packets back to frames, and the reports
//! that go back.

use crate::ccfb::CongestionRecord;
use crate::datagram::{Datagram, IP_UDP_HEADERS};
use crate::feedback::{FeedbackRecord, unwrap_after};
use crate::messages;
use crate::nack::{NackList, REQUEST_MAX};
use crate::reassembly::{Piece, Reassembly};
use crate::repair::{Repair, Restored};
use crate::rtcp_timer::{RtcpTimer, RtcpTiming};
use crate::streams::{MediaKind, StreamNames};
use paceline::{Arrival, Controller, FeedbackKind, Message, PacketKind, ReceiveHalf, Signals};
use paceline_units::{DataSize, Ecn, RandomStream, Rate, RemoteTime, StreamId, Time, TimeDelta};
use paceline_wire::red::Red;
use paceline_wire::ulpfec::FecPacket;
use paceline_wire::{
    AbsSendTime, CompoundWriter, ExtensionIds, ReceptionStats, ReportBlock, Rtcp, RtpHeader, Vp8Descriptor, WireError,
    clear_stamps, is_rtcp, ntp, parse_compound, rtx,
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
    /// Once a packet came in an envelope: the stream is protected by FEC.
    repair: Option<Repair>,
    reassembly: Reassembly,
    /// Middle of the last sender report's stamp, and when it came.
    last_sr: Option<(u32, RemoteTime)>,
}

impl Stream {
    /// The place in the sequence that a packet's 16 bits mean.
    fn place(&self, number: u16) -> u64 {
        match self.highest {
            // One lap up, so that packets reordered before the first have a place.
            None => number as u64 + (1 << 16),
            Some(highest) => unwrap_after(number, highest + 1, LATE_MAX),
        }
    }

    fn repair(&mut self) -> &mut Repair {
        self.repair.get_or_insert_with(|| Repair::new(self.names.ssrc))
    }
}

/// What per-packet feedback is written from.
enum Record {
    TransportWide(FeedbackRecord),
    Rfc8888(CongestionRecord),
}

impl Record {
    fn new(kind: FeedbackKind, streams: &[StreamNames]) -> Option<Self> {
        Some(match kind {
            FeedbackKind::None => return None,
            FeedbackKind::TransportWide { interval, longest } => {
                Self::TransportWide(FeedbackRecord::new(interval, longest))
            }
            FeedbackKind::Rfc8888 { interval, longest } => {
                let ssrcs = streams.iter().flat_map(|names| [names.ssrc, names.rtx_ssrc]);
                Self::Rfc8888(CongestionRecord::new(interval, longest, ssrcs))
            }
        })
    }

    fn handle_packet(&mut self, now: RemoteTime, header: &RtpHeader, ecn: Ecn, size: DataSize) {
        match (self, header.transport_sequence) {
            (Self::TransportWide(record), Some(number)) => record.handle_packet(now, number, size),
            (Self::TransportWide(_), None) => {}
            (Self::Rfc8888(record), _) => record.handle_packet(now, header.ssrc, header.sequence, ecn, size),
        }
    }

    /// Writes the next report that is due, on the flow that a media SSRC stands for; answers whether one was.
    fn write(&mut self, now: RemoteTime, own: u32, media_ssrc: u32, writer: &mut CompoundWriter<'_>) -> bool {
        match self {
            Self::TransportWide(record) => {
                let Some((base, count, arrivals)) = record.poll(now) else { return false };
                let covered =
                    writer.transport_feedback(own, media_ssrc, base, count, arrivals).unwrap_or(arrivals.len());
                record.reported(now, covered);
                !writer.is_empty()
            }
            Self::Rfc8888(record) => record.write(now, own, writer),
        }
    }

    fn poll_timeout(&self) -> RemoteTime {
        match self {
            Self::TransportWide(record) => record.poll_timeout(),
            Self::Rfc8888(record) => record.poll_timeout(),
        }
    }
}

/// The receiving endpoint.
pub struct MediaReceiver {
    extensions: ExtensionIds,
    ssrc: u32,
    streams: Vec<Stream>,
    half: Option<Box<dyn ReceiveHalf>>,
    record: Option<Record>,
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
            repair: None,
            reassembly: Reassembly::new(),
            last_sr: None,
        };
        let record = Record::new(controller.feedback, &config.streams);
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
        let mut kind = match (ssrc == names.ssrc, header.padding) {
            (true, _) => PacketKind::Media,
            (false, true) => PacketKind::Padding,
            (false, false) => PacketKind::Retransmission,
        };
        // Everything that can be malformed is read before anything is changed.
        let (sequence, mut skip) = match kind {
            PacketKind::Retransmission => (rtx::read(payload)?, rtx::LEN),
            _ => (header.sequence, 0),
        };
        let rtx_len = skip;
        let enveloped = kind != PacketKind::Padding && is_enveloped(&names, &header);
        let whole = (size.saturating_sub(IP_UDP_HEADERS)).as_bytes() as usize;
        if enveloped {
            let red = Red::parse(&payload[skip..])?;
            skip = payload.len() - red.primary().len();
            if red.payload_type() == names.ulpfec_payload_type() && kind == PacketKind::Media {
                FecPacket::parse(red.primary(), whole.saturating_sub(offset + skip))?;
                kind = PacketKind::Fec;
            } else if red.payload_type() != names.payload_type() {
                self.ignored += 1;
                return Ok(());
            }
        }
        let vp8 = match (names.kind, kind) {
            (MediaKind::Video, PacketKind::Media | PacketKind::Retransmission) => {
                Some(Vp8Descriptor::parse(&payload[skip..])?)
            }
            _ => None,
        };

        let stream = &mut self.streams[index];
        // FEC has a place in the media's sequence: its loss is a loss of media to whoever counts.
        let in_sequence = matches!(kind, PacketKind::Media | PacketKind::Fec);
        let stats = if in_sequence { &mut stream.media } else { &mut stream.rtx };
        stats.on_packet(header.sequence, header.timestamp, in_clock_units(now, names.clock_rate));
        let sent = header.abs_send_time.map(|stamp| unwrap_send_time(&mut self.sent, now, stamp));
        if let Some(record) = &mut self.record {
            record.handle_packet(now, &header, ecn, size);
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

        let media = whole.saturating_sub(offset + skip);
        match vp8 {
            Some(vp8) => {
                let place = self.streams[index].place(sequence);
                if enveloped {
                    let (head, rest) = (&bytes[..offset], &payload[rtx_len..]);
                    let len = whole.saturating_sub(rtx_len);
                    self.streams[index].repair().keep(place, head, rest, len, |packet| {
                        if kind == PacketKind::Retransmission {
                            rtx::restore_header(packet, names.red_payload_type(), sequence, names.ssrc);
                        }
                        clear_stamps(packet, &self.extensions).expect("it was read before");
                    });
                }
                self.handle_piece(now, index, place, Piece::of(&header, &vp8, media));
            }
            None if kind == PacketKind::Fec => {
                let place = self.streams[index].place(sequence);
                self.streams[index].repair().add(place, &payload[skip..], media)?;
                self.handle_piece(now, index, place, Piece::fec(&header));
            }
            None if kind == PacketKind::Media => {
                let (stream, timestamp) = (names.id, header.timestamp);
                let size = DataSize::from_bytes(media as u64);
                self.events.push_back(ReceiverEvent::Frame { stream, timestamp, size, dropped: 0 });
            }
            None => {}
        }
        if enveloped {
            self.restore(now, index);
        }
        Ok(())
    }

    /// Takes the packets that FEC restores for what they are. The receive half never sees them: they did not arrive.
    fn restore(&mut self, now: RemoteTime, index: usize) {
        while let Some(restored) = self.streams[index].repair().poll() {
            let piece = restored.and_then(|Restored { sequence, bytes, len }| {
                let (header, offset) = RtpHeader::parse(bytes, &self.extensions)?;
                let payload = &bytes[offset..];
                let media = Red::parse(payload)?.primary();
                let vp8 = Vp8Descriptor::parse(media)?;
                let head = bytes.len() - media.len();
                Ok((sequence, Piece::of(&header, &vp8, len.saturating_sub(head))))
            });
            match piece {
                Ok((place, piece)) => self.handle_piece(now, index, place, piece),
                Err(error) => self.malformed[error.index()] += 1,
            }
        }
    }

    /// A packet of a video stream, at its place in the sequence.
    fn handle_piece(&mut self, now: RemoteTime, index: usize, place: u64, piece: Piece) {
        let stream = &mut self.streams[index];
        stream.highest = Some(stream.highest.map_or(place, |h| h.max(place)));
        if self.nack {
            stream.nack.handle_packet(now, place);
            if stream.repair.is_some() {
                // The FEC of a frame has gone by when the next frame begins.
                stream.nack.release_below(if piece.start { place } else { 0 });
            }
        }
        if stream.reassembly.insert(now, place, piece) {
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
        if !self.messages.is_empty() || now >= self.next_report {
            let len = self.write_report(now, out);
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
            if record.write(now, own, media_ssrc, &mut writer) {
                let len = writer.finish();
                out.set_len(len, 0, Ecn::NotEct);
                return true;
            }
        }
        false
    }

    /// RR with a block for every SSRC that was heard, media first, and the messages of the receive half behind it: a
    /// compound begins with a report of what was received (RFC 3550, section 6.1), and counts as the regular one.
    /// Messages of one instant share a report, for a second one would be no news.
    fn write_report(&mut self, now: RemoteTime, out: &mut Datagram) -> usize {
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
        let mut ssrcs = [0; BLOCKS_MAX];
        for (out, stream) in ssrcs.iter_mut().zip(&self.streams) {
            *out = stream.names.ssrc;
        }
        let ssrcs = &ssrcs[..self.streams.len().min(BLOCKS_MAX)];
        let alone = writer.len();
        while let Some(message) = self.messages.front() {
            let written = messages::write(message, self.ssrc, ssrcs, &mut writer);
            debug_assert!(written.is_ok() || writer.len() > alone, "one message of eight streams fits beside them");
            if written.is_err() && writer.len() > alone {
                break;
            }
            if let Some(Message::Remb(rate)) = self.messages.pop_front() {
                self.events.push_back(ReceiverEvent::Remb(rate));
            }
        }
        // The name goes where room is left; the other end knows it from the reports before.
        let _ = writer.sdes_cname(self.ssrc, "paceline");
        writer.finish()
    }
}

/// Whether a packet's payload, behind a retransmission's number, is in an envelope (RED).
#[inline]
fn is_enveloped(names: &StreamNames, header: &RtpHeader) -> bool {
    let red = if header.ssrc == names.ssrc { names.red_payload_type() } else { names.red_rtx_payload_type() };
    names.kind == MediaKind::Video && header.payload_type == red
}

impl Piece {
    /// A packet with so many bytes from the payload descriptor on.
    fn of(header: &RtpHeader, vp8: &Vp8Descriptor, bytes: usize) -> Self {
        let descriptor = if vp8.start { Vp8Descriptor::MAX_LEN } else { Vp8Descriptor::MAX_LEN - 1 };
        Self {
            timestamp: header.timestamp,
            picture: vp8.picture_id,
            payload: bytes.saturating_sub(descriptor) as u16,
            start: vp8.start,
            marker: header.marker,
            key: vp8.key,
            fec: false,
        }
    }

    /// A place in the sequence that no frame has.
    fn fec(header: &RtpHeader) -> Self {
        let timestamp = header.timestamp;
        Self { timestamp, picture: 0, payload: 0, start: false, marker: false, key: false, fec: true }
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
