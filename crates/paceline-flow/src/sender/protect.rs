//! Forward error correction of a frame: how many packets, over which media packets, and their bytes.
//!
//! A frame's packets are cut into runs that a mask can span, and the FEC packets of a run take turns: of `k` of them,
//! FEC packet `j` protects the media packets `j`, `j + k`, `j + 2k` ... of the run. A burst of up to `k` losses hits
//! each mask once, so it is repaired; so is any single loss. Two losses under one mask are not, and are asked for
//! again. libwebrtc's masks are tables, for losses at random (`fec_private_tables_random.h`).

use super::HEADERS;
use crate::resend::MediaPacket;
use crate::streams::{MediaKind, StreamNames};
use paceline_units::DataSize;
use paceline_wire::ulpfec::{self, FecWriter, Protects};
use paceline_wire::{AbsSendTime, ExtensionIds, RtpHeader, Vp8Descriptor, red};
use std::collections::VecDeque;

/// Bytes that exist of a media packet in its envelope.
const HEAD: usize = RtpHeader::MAX_LEN + red::LEN + Vp8Descriptor::MAX_LEN;
/// Bytes that exist of a FEC packet's payload: its headers, and the parity of what exists behind the fixed RTP headers.
const FEC_HEAD: usize = ulpfec::MAX_HEADER_LEN + HEAD - 12;
/// The most that an RTP packet with FEC has besides the parity of media.
pub(super) const FEC_HEADERS: u64 = (RtpHeader::MAX_LEN + red::LEN + FEC_HEAD) as u64;

/// The FEC of a stream.
#[derive(Debug)]
pub(super) struct StreamFec {
    /// Bytes of FEC for each byte of media, both as they are on the network.
    ratio: f64,
    /// Bytes of FEC that the frames so far should have had more.
    owed: f64,
    /// What waits in the pacer, in order.
    waiting: VecDeque<FecPayload>,
}

/// The bytes of a FEC packet's payload that exist, and how many more there are.
#[derive(Clone, Copy, Debug)]
struct FecPayload {
    bytes: [u8; FEC_HEAD],
    len: usize,
    rest: u64,
}

/// A frame cut into packets.
pub(super) struct Cut<F> {
    /// Its bytes on the network.
    pub size: DataSize,
    /// How many packets.
    pub count: u64,
    /// Each of them.
    pub packet: F,
}

impl StreamFec {
    pub fn new() -> Self {
        Self { ratio: 0.0, owed: 0.0, waiting: VecDeque::new() }
    }

    /// So many bytes of FEC for each byte of media from now on.
    pub fn set_ratio(&mut self, ratio: f64) {
        self.ratio = ratio;
    }

    /// How many FEC packets of at most this size a frame of so many bytes and packets gets: what is due, whole packets
    /// only, and no more than one for each media packet.
    pub fn packets_for(&self, media: DataSize, count: u64, size: DataSize) -> u64 {
        if self.ratio == 0.0 {
            return 0;
        }
        let due = self.owed + self.ratio * media.as_bytes() as f64;
        ((due / size.as_bytes() as f64) as u64).min(count)
    }

    /// Makes so many FEC packets over a frame. Answers the size of each on the network.
    pub fn protect<F: Fn(u64) -> MediaPacket>(
        &mut self,
        cut: &Cut<F>,
        packets: u64,
        names: &StreamNames,
        extensions: &ExtensionIds,
    ) -> impl Iterator<Item = DataSize> + use<'_, F> {
        let before = self.waiting.len();
        self.owed += self.ratio * cut.size.as_bytes() as f64;
        for turn in turns(cut.count, packets) {
            let payload = make(turn, cut, names, extensions);
            self.owed -= payload.size().as_bytes() as f64;
            self.waiting.push_back(payload);
        }
        // Less than a packet stays due: what a frame had too few packets for is not made up for later, nor after a
        // pause.
        let largest = (HEADERS + FEC_HEADERS) as f64 + cut.size.as_bytes() as f64 / cut.count as f64;
        self.owed = if self.ratio == 0.0 { 0.0 } else { self.owed.min(largest) };
        self.waiting.range(before..).map(FecPayload::size)
    }

    /// Writes the payload that has waited longest. Answers how many bytes were written, and how many more there are.
    pub fn pop(&mut self, out: &mut [u8]) -> (usize, u64) {
        let payload = self.waiting.pop_front().expect("one for each FEC packet in the pacer");
        out[..payload.len].copy_from_slice(&payload.bytes[..payload.len]);
        (payload.len, payload.rest)
    }
}

impl FecPayload {
    fn size(&self) -> DataSize {
        let headers = crate::datagram::IP_UDP_HEADERS.as_bytes() + (RtpHeader::MAX_LEN + red::LEN) as u64;
        DataSize::from_bytes(headers + self.len as u64 + self.rest)
    }
}

/// Every `step`-th packet of a frame from `first` to before `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Turn {
    first: u64,
    step: u64,
    end: u64,
}

impl Turn {
    fn packets(self) -> impl Iterator<Item = u64> {
        (self.first..self.end).step_by(self.step as usize)
    }
}

/// What each of `fec` packets protects of `media` packets.
fn turns(media: u64, fec: u64) -> impl Iterator<Item = Turn> {
    let runs = media.div_ceil(ulpfec::SPAN as u64);
    (0..runs).flat_map(move |run| {
        // Rounded up, so that as many FEC packets as runs are one for each; in proportion, so that a run never has more of
        // them than of media.
        let cut = |run: u64| (media * run).div_ceil(runs);
        let (from, end) = (cut(run), cut(run + 1));
        let (a, b) = (fec * from / media, fec * end / media);
        (0..b - a).map(move |turn| Turn { first: from + turn, step: b - a, end })
    })
}

fn make<F: Fn(u64) -> MediaPacket>(
    turn: Turn,
    cut: &Cut<F>,
    names: &StreamNames,
    extensions: &ExtensionIds,
) -> FecPayload {
    let mut protects = Protects::from_first((cut.packet)(turn.first).sequence);
    for i in turn.packets() {
        let reached = protects.add((cut.packet)(i).sequence);
        debug_assert!(reached, "a run is no longer than a mask");
    }
    let mut bytes = [0; FEC_HEAD];
    let mut writer = FecWriter::new(protects, &mut bytes).expect("room for the longest header");
    for i in turn.packets() {
        let packet = (cut.packet)(i);
        let mut head = [0; HEAD];
        // As it is protected: without what is only known when it leaves.
        let header = RtpHeader {
            marker: packet.marker,
            payload_type: names.red_payload_type(),
            sequence: packet.sequence,
            timestamp: packet.timestamp,
            ssrc: names.ssrc,
            abs_send_time: Some(AbsSendTime::default()),
            transport_sequence: Some(0),
            padding: false,
        };
        let mut len = header.write(extensions, &mut head);
        len += write_payload_head(&packet, names, true, &mut head[len..]);
        writer.add(&head[..len], len + packet.payload as usize).expect("room for what exists of a packet");
    }
    let (len, whole) = writer.finish();
    FecPayload { bytes, len, rest: (whole - len) as u64 }
}

/// Writes what stands before the media in a packet's payload: the envelope, if it has one, and the payload descriptor.
/// Answers how many bytes.
pub(super) fn write_payload_head(packet: &MediaPacket, names: &StreamNames, enveloped: bool, out: &mut [u8]) -> usize {
    let mut len = 0;
    if enveloped {
        len += red::write(names.payload_type(), out);
    }
    if names.kind == MediaKind::Video {
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
        /// Each media packet is protected once, if there is a FEC packet for its run, by masks that reach it; and any
        /// burst of as many packets as its run has FEC packets hits each of them once at most.
        #[test]
        fn every_packet_has_its_turn(media in 1u64..300, part in 0.0..=1.0) {
            let fec = (media as f64 * part) as u64;
            let all: Vec<Turn> = turns(media, fec).collect();
            prop_assert_eq!(all.len() as u64, fec);
            let mut times = vec![0; media as usize];
            for turn in &all {
                prop_assert!(turn.packets().count() >= 1 && turn.end <= media);
                prop_assert!(turn.packets().all(|i| i - turn.first < ulpfec::SPAN as u64));
                turn.packets().for_each(|i| times[i as usize] += 1);
                let burst = turn.first..turn.first + turn.step;
                prop_assert_eq!(turn.packets().filter(|i| burst.contains(i)).count(), 1);
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
    fn five_packets_in_two_turns() {
        let protected = |media, fec| turns(media, fec).map(|t| t.packets().collect::<Vec<_>>()).collect::<Vec<_>>();
        assert_eq!(protected(5, 2), [vec![0, 2, 4], vec![1, 3]]);
        assert_eq!(protected(2, 2), [[0], [1]]);
        assert_eq!(protected(5, 0), Vec::<Vec<u64>>::new());
        assert_eq!(protected(60, 2)[1], (30..60).collect::<Vec<_>>(), "a run of 30 each");
    }

    /// 10 kB frames of 10 packets at a ratio of a quarter: 2.5 kB of FEC each, in packets of 1.1 kB.
    #[test]
    fn the_ratio_holds_over_frames() {
        let mut fec = StreamFec::new();
        let names = StreamNames {
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
        let cut = Cut { size: DataSize::from_bytes(10_000), count: 10, packet };
        let run = |fec: &mut StreamFec, frames: u32| {
            let (mut bytes, mut least, mut most) = (0, u64::MAX, 0);
            for _ in 0..frames {
                let n = fec.packets_for(cut.size, cut.count, DataSize::from_bytes(1100));
                bytes += fec.protect(&cut, n, &names, &ExtensionIds::default()).map(DataSize::as_bytes).sum::<u64>();
                (least, most) = (least.min(n), most.max(n));
            }
            (bytes, least, most)
        };
        assert_eq!(run(&mut fec, 10), (0, 0, 0), "none without a ratio");
        fec.set_ratio(0.25);
        let (bytes, least, most) = run(&mut fec, 100);
        assert!((245_000..=250_000).contains(&bytes), "{bytes} of 250 000");
        assert_eq!((least, most), (2, 3));
        fec.set_ratio(2.0);
        assert_eq!(run(&mut fec, 10).2, 10, "one for each media packet is the most");
        fec.set_ratio(0.25);
        assert!(run(&mut fec, 1).1 <= 4, "nothing is made up for");
        fec.set_ratio(0.0);
        assert_eq!(run(&mut fec, 1), (0, 0, 0));
    }
}
