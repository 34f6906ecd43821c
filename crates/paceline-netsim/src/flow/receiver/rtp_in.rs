// SPDX-License-Identifier: MIT OR Apache-2.0
//! Incoming RTP: statistics and feedback, the receive half, FEC recovery, reassembly of frames.

use super::{MediaReceiver, ReceiverEvent};
use crate::flow::datagram::IP_UDP_HEADERS;
use crate::flow::fec_decoder::RecoveredPacket;
use crate::flow::reassembly::FramePacket;
use crate::flow::stream_info::{MediaKind, StreamInfo};
use paceline::{PacketKind, RtpArrival};
use paceline_units::{DataSize, Ecn, RemoteTime};
use paceline_wire::red::Red;
use paceline_wire::ulpfec::FecPacket;
use paceline_wire::{RtpHeader, Vp8Descriptor, WireError, clear_stamps, rtx};

impl MediaReceiver {
    pub(super) fn handle_rtp(
        &mut self,
        now: RemoteTime,
        bytes: &[u8],
        size: DataSize,
        ecn: Ecn,
    ) -> Result<(), WireError> {
        let (header, offset) = RtpHeader::parse(bytes, &self.extensions)?;
        let ssrc = header.ssrc;
        let Some(index) = self.streams.iter().position(|s| s.info.ssrc == ssrc || s.info.rtx_ssrc == ssrc) else {
            self.ignored += 1;
            return Ok(());
        };
        let info = self.streams[index].info;
        let payload = &bytes[offset.min(bytes.len())..];
        let mut kind = match (ssrc == info.ssrc, header.padding) {
            (true, _) => PacketKind::Media,
            (false, true) => PacketKind::Padding,
            (false, false) => PacketKind::Retransmission,
        };
        // Everything that can be malformed is parsed before any state changes.
        let (number, mut skip) = match kind {
            PacketKind::Retransmission => (rtx::read(payload)?, rtx::LEN),
            _ => (header.sequence, 0),
        };
        let rtx_len = skip;
        let in_red = kind != PacketKind::Padding && is_red(&info, &header);
        let whole = (size.saturating_sub(IP_UDP_HEADERS)).as_bytes() as usize;
        if in_red {
            let red = Red::parse(&payload[skip..])?;
            skip = payload.len() - red.primary().len();
            if red.payload_type() == info.ulpfec_payload_type() && kind == PacketKind::Media {
                FecPacket::parse(red.primary(), whole.saturating_sub(offset + skip))?;
                kind = PacketKind::Fec;
            } else if red.payload_type() != info.payload_type() {
                self.ignored += 1;
                return Ok(());
            }
        }
        let vp8 = match (info.kind, kind) {
            (MediaKind::Video, PacketKind::Media | PacketKind::Retransmission) => {
                Some(Vp8Descriptor::parse(&payload[skip..])?)
            }
            _ => None,
        };

        let stream = &mut self.streams[index];
        // FEC shares the media's sequence numbers, so its loss counts as a loss of media.
        let in_sequence = matches!(kind, PacketKind::Media | PacketKind::Fec);
        let stats = if in_sequence { &mut stream.media } else { &mut stream.rtx };
        stats.on_packet(header.sequence, header.timestamp, in_clock_units(now, info.clock_rate));
        let arrival = RtpArrival::new(kind, size, ecn).with_stream(info.id, info.kind).with_original(Some(number));
        self.core.handle_rtp(now, &header, &arrival);

        let media = whole.saturating_sub(offset + skip);
        match vp8 {
            Some(vp8) => {
                let sequence = self.streams[index].unwrap(number);
                if in_red {
                    let (head, rest) = (&bytes[..offset], &payload[rtx_len..]);
                    let len = whole.saturating_sub(rtx_len);
                    self.streams[index].fec_decoder().add_media(sequence, head, rest, len, |packet| {
                        if kind == PacketKind::Retransmission {
                            rtx::restore_header(packet, info.red_payload_type(), number, info.ssrc);
                        }
                        clear_stamps(packet, &self.extensions).expect("the packet was parsed before");
                    });
                }
                self.handle_frame_packet(now, index, sequence, frame_packet(&header, &vp8, media));
            }
            None if kind == PacketKind::Fec => {
                let sequence = self.streams[index].unwrap(number);
                self.streams[index].fec_decoder().add_fec(sequence, &payload[skip..], media)?;
                self.handle_frame_packet(now, index, sequence, FramePacket::fec(header.timestamp));
            }
            None if kind == PacketKind::Media => {
                let (stream, timestamp) = (info.id, header.timestamp);
                let size = DataSize::from_bytes(media as u64);
                self.events.push_back(ReceiverEvent::Frame { stream, timestamp, size, dropped: 0 });
            }
            None => {}
        }
        if in_red {
            self.recover(now, index);
        }
        Ok(())
    }

    /// Handles the packets that FEC recovers. The receive half does not see them, because they did not arrive.
    fn recover(&mut self, now: RemoteTime, index: usize) {
        while let Some(recovered) = self.streams[index].fec_decoder().poll() {
            let packet = recovered.and_then(|RecoveredPacket { sequence, bytes, len }| {
                let (header, offset) = RtpHeader::parse(bytes, &self.extensions)?;
                let payload = &bytes[offset..];
                let media = Red::parse(payload)?.primary();
                let vp8 = Vp8Descriptor::parse(media)?;
                let head = bytes.len() - media.len();
                Ok((sequence, frame_packet(&header, &vp8, len.saturating_sub(head))))
            });
            match packet {
                Ok((sequence, packet)) => self.handle_frame_packet(now, index, sequence, packet),
                Err(error) => self.malformed[error.index()] += 1,
            }
        }
    }

    #[inline(always)]
    fn handle_frame_packet(&mut self, now: RemoteTime, index: usize, sequence: u64, packet: FramePacket) {
        if self.streams[index].handle_packet(now, sequence, packet, self.nack) {
            self.render(now, index);
        }
    }

    /// Emits the frames of a stream that are complete at `now`.
    pub(super) fn render(&mut self, now: RemoteTime, index: usize) {
        let stream = &mut self.streams[index];
        while let Some(frame) = stream.reassembly.poll(now) {
            self.events.push_back(ReceiverEvent::Frame {
                stream: stream.info.id,
                timestamp: frame.timestamp,
                size: frame.size,
                dropped: frame.dropped,
            });
        }
        if self.nack {
            stream.nack.give_up_below(stream.reassembly.needed_from());
        }
    }
}

/// Returns whether a packet's payload, after the original sequence number of a retransmission, is a RED payload.
#[inline]
fn is_red(info: &StreamInfo, header: &RtpHeader) -> bool {
    let red = if header.ssrc == info.ssrc { info.red_payload_type() } else { info.red_rtx_payload_type() };
    info.kind == MediaKind::Video && header.payload_type == red
}

/// The frame packet with this header and `bytes` bytes from the payload descriptor on.
fn frame_packet(header: &RtpHeader, vp8: &Vp8Descriptor, bytes: usize) -> FramePacket {
    let descriptor = if vp8.start { Vp8Descriptor::MAX_LEN } else { Vp8Descriptor::MAX_LEN - 1 };
    FramePacket {
        timestamp: header.timestamp,
        picture: vp8.picture_id,
        payload: bytes.saturating_sub(descriptor) as u16,
        start: vp8.start,
        marker: header.marker,
        key: vp8.key,
        fec: false,
    }
}

/// Converts a time to units of an RTP clock, modulo 2^32.
fn in_clock_units(at: RemoteTime, clock_rate: u32) -> u32 {
    const SECOND: u64 = 1_000_000_000;
    // Division without a sign costs less, and a clock mostly has positive times.
    let (seconds, nanos) = match u64::try_from(at.as_nanos()) {
        Ok(at) => (at / SECOND, at % SECOND),
        Err(_) => {
            let second = SECOND as i64;
            (at.as_nanos().div_euclid(second) as u64, at.as_nanos().rem_euclid(second) as u64)
        }
    };
    seconds.wrapping_mul(u64::from(clock_rate)).wrapping_add(nanos * u64::from(clock_rate) / SECOND) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_of_the_clock_are_exact_also_for_negative_times() {
        let times = [-1_500_000_000, -1_000_000_000, -1, 0, 1, 999_999_999, 1_000_000_000, 86_400_000_000_001];
        for (ns, rate) in times.into_iter().flat_map(|ns| [8000, 48_000, 90_000].map(|rate| (ns, rate))) {
            let exact = (i128::from(ns) * i128::from(rate)).div_euclid(1_000_000_000);
            assert_eq!(in_clock_units(RemoteTime::from_nanos(ns), rate), exact as u32, "{ns} ns at {rate} Hz");
        }
    }
}
