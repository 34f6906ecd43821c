// SPDX-License-Identifier: MIT OR Apache-2.0
//! ULPFEC encoder (RFC 5109): decides how many FEC packets a frame gets, which media packets each protects, and writes
//! them.
//!
//! A frame is divided into runs that a mask can span. The masks of a run interleave: with `k` FEC packets, FEC packet
//! `j` protects the media packets `j`, `j + k`, `j + 2k` ... of the run. Any single loss can be recovered, and so can a
//! burst of up to `k` losses, because it hits each mask at most once. Two losses under one mask cannot be recovered;
//! the receiver requests them by NACK. libwebrtc has tables of masks for random losses instead
//! (`fec_private_tables_random.h`).

use crate::flow::datagram::{IP_UDP_HEADERS, PACKET_HEADERS};
use crate::flow::retransmission_store::MediaPacket;
use crate::flow::stream_info::{MediaKind, StreamInfo};
use paceline_units::DataSize;
use paceline_wire::ulpfec::{self, FecMask, FecWriter};
use paceline_wire::{AbsSendTime, ExtensionIds, RtpHeader, Vp8Descriptor, red};
use std::collections::VecDeque;

/// Real bytes of a media packet in RED: headers without the media.
const HEAD: usize = RtpHeader::MAX_LEN + red::LEN + Vp8Descriptor::MAX_LEN;
/// Real bytes of a FEC packet's payload: its headers, and the parity of the real bytes after the fixed RTP header.
const FEC_HEAD: usize = ulpfec::MAX_HEADER_LEN + HEAD - 12;
/// The most bytes of an RTP packet with FEC, without the parity of the media.
pub(super) const FEC_HEADERS: u64 = (RtpHeader::MAX_LEN + red::LEN + FEC_HEAD) as u64;

#[derive(Debug)]
pub(super) struct FecEncoder {
    /// FEC bytes per media byte, headers included in both.
    ratio: f64,
    /// FEC bytes that the ratio called for and that were not made yet.
    due: f64,
    /// Payloads of the FEC packets in the pacer, in order.
    pending: VecDeque<FecPayload>,
}

/// The payload of a FEC packet: `len` real bytes, and `rest` bytes that are only counted.
#[derive(Clone, Copy, Debug)]
struct FecPayload {
    bytes: [u8; FEC_HEAD],
    len: usize,
    rest: u64,
}

pub(super) struct PacketizedFrame<F> {
    /// Size of all packets on the network.
    pub size: DataSize,
    pub count: u64,
    pub packet: F,
}

impl FecEncoder {
    pub fn new() -> Self {
        Self { ratio: 0.0, due: 0.0, pending: VecDeque::new() }
    }

    /// Sets the FEC bytes per media byte.
    pub fn set_ratio(&mut self, ratio: f64) {
        self.ratio = ratio;
    }

    /// Returns the number of FEC packets, of at most `size` each, for a frame of `media` bytes in `count` packets: as
    /// many whole packets as are due, and at most one per media packet.
    pub fn packets_for(&self, media: DataSize, count: u64, size: DataSize) -> u64 {
        if self.ratio == 0.0 {
            return 0;
        }
        let due = self.due + self.ratio * media.as_bytes() as f64;
        ((due / size.as_bytes() as f64) as u64).min(count)
    }

    /// Encodes this many FEC packets over a frame. Returns the size of each on the network.
    pub fn protect<F: Fn(u64) -> MediaPacket>(
        &mut self,
        frame: &PacketizedFrame<F>,
        packets: u64,
        info: &StreamInfo,
        extensions: &ExtensionIds,
    ) -> impl Iterator<Item = DataSize> + use<'_, F> {
        let before = self.pending.len();
        self.due += self.ratio * frame.size.as_bytes() as f64;
        for mask in masks(frame.count, packets) {
            let payload = encode(mask, frame, info, extensions);
            self.due -= payload.size().as_bytes() as f64;
            self.pending.push_back(payload);
        }
        // At most one packet stays due: FEC that did not fit a small frame, or a pause, is not made up for later.
        let largest = (PACKET_HEADERS + FEC_HEADERS) as f64 + frame.size.as_bytes() as f64 / frame.count as f64;
        self.due = if self.ratio == 0.0 { 0.0 } else { self.due.min(largest) };
        self.pending.range(before..).map(FecPayload::size)
    }

    /// Discards the newest pending payloads, whose packets were discarded from the pacer.
    pub fn discard(&mut self, count: usize) {
        self.pending.truncate(self.pending.len().saturating_sub(count));
    }

    /// Writes the oldest pending payload. Returns the number of bytes written and the number of bytes only counted.
    pub fn pop(&mut self, out: &mut [u8]) -> (usize, u64) {
        let payload = self.pending.pop_front().expect("one payload per FEC packet in the pacer");
        out[..payload.len].copy_from_slice(&payload.bytes[..payload.len]);
        (payload.len, payload.rest)
    }
}

impl FecPayload {
    fn size(&self) -> DataSize {
        let headers = IP_UDP_HEADERS.as_bytes() + (RtpHeader::MAX_LEN + red::LEN) as u64;
        DataSize::from_bytes(headers + self.len as u64 + self.rest)
    }
}

/// The media packets that one FEC packet protects: every `step`-th packet of a frame from `first` to before `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mask {
    first: u64,
    step: u64,
    end: u64,
}

impl Mask {
    fn packets(self) -> impl Iterator<Item = u64> {
        (self.first..self.end).step_by(self.step as usize)
    }
}

/// Returns the mask of each of `fec` packets over `media` packets.
fn masks(media: u64, fec: u64) -> impl Iterator<Item = Mask> {
    let runs = media.div_ceil(ulpfec::SPAN as u64);
    (0..runs).flat_map(move |run| {
        // Boundaries are rounded up, so that with one FEC packet per run each run gets one. FEC packets are divided in
        // proportion, so that a run never has more of them than media packets.
        let boundary = |run: u64| (media * run).div_ceil(runs);
        let (from, end) = (boundary(run), boundary(run + 1));
        let (a, b) = (fec * from / media, fec * end / media);
        (0..b - a).map(move |j| Mask { first: from + j, step: b - a, end })
    })
}

fn encode<F: Fn(u64) -> MediaPacket>(
    mask: Mask,
    frame: &PacketizedFrame<F>,
    info: &StreamInfo,
    extensions: &ExtensionIds,
) -> FecPayload {
    let mut protects = FecMask::from_first((frame.packet)(mask.first).sequence);
    for i in mask.packets() {
        let reached = protects.add((frame.packet)(i).sequence);
        debug_assert!(reached, "a run is not longer than a mask");
    }
    let mut bytes = [0; FEC_HEAD];
    let mut writer = FecWriter::new(protects, &mut bytes).expect("room for the longest header");
    for i in mask.packets() {
        let packet = (frame.packet)(i);
        let mut head = [0; HEAD];
        // FEC protects the packet without the fields that are only known when it is sent.
        let header = RtpHeader {
            marker: packet.marker,
            payload_type: info.red_payload_type(),
            sequence: packet.sequence,
            timestamp: packet.timestamp,
            ssrc: info.ssrc,
            abs_send_time: Some(AbsSendTime::default()),
            transport_sequence: Some(0),
            padding: false,
        };
        let mut len = header.write(extensions, &mut head);
        len += write_payload_head(&packet, info, true, &mut head[len..]);
        writer.add(&head[..len], len + packet.payload as usize).expect("room for the real bytes of a packet");
    }
    let (len, whole) = writer.finish();
    FecPayload { bytes, len, rest: (whole - len) as u64 }
}

/// Writes the start of a packet's payload, before the media: the RED header, if `use_red`, and the payload descriptor.
/// Returns the number of bytes written.
pub(super) fn write_payload_head(packet: &MediaPacket, info: &StreamInfo, use_red: bool, out: &mut [u8]) -> usize {
    let mut len = 0;
    if use_red {
        len += red::write(info.payload_type(), out);
    }
    if info.kind == MediaKind::Video {
        let vp8 = Vp8Descriptor { start: packet.start, picture_id: packet.picture, key: packet.key };
        len += vp8.write(&mut out[len..]);
    }
    len
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Each media packet is under one mask if its run has a FEC packet. A burst of as many packets as the run has
        /// FEC packets hits each mask at most once.
        #[test]
        fn every_packet_is_under_one_mask(media in 1u64..300, part in 0.0..=1.0) {
            let fec = (media as f64 * part) as u64;
            let all: Vec<Mask> = masks(media, fec).collect();
            prop_assert_eq!(all.len() as u64, fec);
            let mut times = vec![0; media as usize];
            for mask in &all {
                prop_assert!(mask.packets().count() >= 1 && mask.end <= media);
                prop_assert!(mask.packets().all(|i| i - mask.first < ulpfec::SPAN as u64));
                mask.packets().for_each(|i| times[i as usize] += 1);
                let burst = mask.first..mask.first + mask.step;
                prop_assert_eq!(mask.packets().filter(|i| burst.contains(i)).count(), 1);
            }
            let runs = media.div_ceil(48);
            if fec >= runs {
                prop_assert!(times.iter().all(|n| *n == 1));
            } else {
                prop_assert!(times.iter().all(|n| *n <= 1));
            }
        }
    }

    #[test]
    fn masks_of_a_run_interleave() {
        let protected = |media, fec| masks(media, fec).map(|t| t.packets().collect::<Vec<_>>()).collect::<Vec<_>>();
        assert_eq!(protected(5, 2), [vec![0, 2, 4], vec![1, 3]]);
        assert_eq!(protected(2, 2), [[0], [1]]);
        assert_eq!(protected(5, 0), Vec::<Vec<u64>>::new());
        assert_eq!(protected(60, 2)[1], (30..60).collect::<Vec<_>>(), "a run of 30 each");
    }

    /// 10 kB frames of 10 packets at a ratio of a quarter: 2.5 kB of FEC each, in packets of 1.1 kB.
    #[test]
    fn the_ratio_holds_over_frames() {
        let mut fec = FecEncoder::new();
        let info = StreamInfo {
            id: paceline_units::StreamId(0),
            kind: MediaKind::Video,
            ssrc: 1,
            rtx_ssrc: 2,
            clock_rate: 90_000,
        };
        let packet = |i: u64| MediaPacket {
            sequence: i as u16,
            timestamp: 0,
            payload: 942,
            offset: 942 * i as u32,
            picture: 0,
            start: i == 0,
            marker: i == 9,
            key: false,
        };
        let frame = PacketizedFrame { size: DataSize::from_bytes(10_000), count: 10, packet };
        let run = |fec: &mut FecEncoder, frames: u32| {
            let (mut bytes, mut least, mut most) = (0, u64::MAX, 0);
            for _ in 0..frames {
                let n = fec.packets_for(frame.size, frame.count, DataSize::from_bytes(1100));
                bytes += fec.protect(&frame, n, &info, &ExtensionIds::default()).map(DataSize::as_bytes).sum::<u64>();
                (least, most) = (least.min(n), most.max(n));
            }
            (bytes, least, most)
        };
        assert_eq!(run(&mut fec, 10), (0, 0, 0), "no FEC without a ratio");
        fec.set_ratio(0.25);
        let (bytes, least, most) = run(&mut fec, 100);
        assert!((245_000..=250_000).contains(&bytes), "{bytes} of 250 000");
        assert_eq!((least, most), (2, 3));
        fec.set_ratio(2.0);
        assert_eq!(run(&mut fec, 10).2, 10, "at most one per media packet");
        fec.set_ratio(0.25);
        assert!(run(&mut fec, 1).1 <= 4, "missed FEC is not made up for");
        fec.set_ratio(0.0);
        assert_eq!(run(&mut fec, 1), (0, 0, 0));
    }
}
