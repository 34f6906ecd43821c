// SPDX-License-Identifier: MIT OR Apache-2.0
//! The packet size: how many packets a frame takes, and that no kind of packet exceeds it.

use crate::call::harness::{CallConfig, TestCall, controller, fixed, random_loss, stream, video_source};
use crate::call::{is_kind, kbps};
use paceline::{FecScheme, PacketKind, Protection, ResendRule};
use paceline_netsim::flow::source::{Frame, Source};
use paceline_netsim::flow::{IP_UDP_HEADERS, MediaKind, PACKET_SIZE_RANGE};
use paceline_units::{DataSize, Rate, Time, TimeDelta};

/// A source with a frame of this size every 100 ms.
struct EqualFrames {
    size: DataSize,
    due: Time,
}

impl Source for EqualFrames {
    fn set_target(&mut self, _: Time, _: Rate) {}
    fn poll_frame(&mut self, now: Time) -> Option<Frame> {
        let captured = self.due;
        (captured <= now).then(|| {
            self.due += TimeDelta::from_millis(100);
            Frame { captured, size: self.size, key: true }
        })
    }
    fn poll_timeout(&self) -> Option<Time> {
        Some(self.due)
    }
    fn range(&self) -> (Rate, Rate) {
        (kbps(100), kbps(3000))
    }
}

/// Returns the number of packets of a frame, and the size of the largest in bytes, without IP and UDP headers.
fn packets(packet_size: u64, frame: u64, fec: FecScheme) -> (usize, u64) {
    let mut config = CallConfig::new(fixed(kbps(3000)), kbps(3000));
    let source = EqualFrames { size: DataSize::from_bytes(frame), due: Time::ZERO };
    config.streams = vec![stream(0, MediaKind::Video, Box::new(source))];
    config.packet_size = DataSize::from_bytes(packet_size);
    config.protection = Protection { fec, resend: ResendRule::RoundTrip };
    let call = TestCall::run(config, 2);
    assert!((19..=20).contains(&call.rendered.len()), "{} frames", call.rendered.len());
    assert!(call.rendered.iter().all(|rendered| rendered.size == DataSize::from_bytes(frame)));
    let first = call.forward_log.iter().filter(|sent| sent.at < Time::from_millis(90));
    let media = first.filter(|sent| sent.sent.as_ref().is_some_and(is_kind(PacketKind::Media)));
    let sizes: Vec<u64> = media.map(|sent| (sent.size - IP_UDP_HEADERS).as_bytes()).collect();
    (sizes.len(), sizes.into_iter().max().unwrap())
}

/// By hand: 31 bytes of a packet are RTP header with extensions (24), RTX number (2) and VP8 descriptor (5), so packets of
/// 600, 1200 and 1460 bytes hold 569, 1169 and 1429 bytes of media. 5,000 bytes are 8.8, 4.3 and 3.5 of them.
#[test]
fn a_frame_is_cut_into_as_few_packets_as_it_needs() {
    let count = |size, frame| packets(size, frame, FecScheme::None).0;
    assert_eq!([600, 1200, 1460].map(|size| count(size, 5000)), [9, 5, 4]);
    assert_eq!([569, 570, 1138, 1139].map(|frame| count(600, frame)), [1, 2, 2, 3]);
    assert_eq!([1169, 1170, 2338, 2339].map(|frame| count(1200, frame)), [1, 2, 2, 3]);
    assert_eq!([1429, 1430, 2858, 2859].map(|frame| count(1460, frame)), [1, 2, 2, 3]);
    assert_eq!([8941, 8942].map(|frame| count(8972, frame)), [1, 2]);
}

/// With FEC, the headers of a FEC packet must fit besides the parity: 24 of RTP, 1 of RED, 18 of ULPFEC, and the parity
/// of 18 bytes of media headers. That leaves 539 and 1399 bytes for media.
#[test]
fn forward_error_correction_leaves_room_for_its_headers() {
    let count = |size, frame| packets(size, frame, FecScheme::Ulpfec).0;
    assert_eq!([539, 540].map(|frame| count(600, frame)), [1, 2]);
    assert_eq!([1399, 1400].map(|frame| count(1460, frame)), [1, 2]);
}

#[test]
fn a_full_media_packet_leaves_two_bytes_for_its_retransmission() {
    assert_eq!(packets(1200, 1169, FecScheme::None), (1, 1198));
    assert_eq!(packets(600, 569, FecScheme::None), (1, 598));
}

/// The size of the largest packet of a kind, without IP and UDP headers, and the number of packets of this kind.
fn largest(call: &TestCall, kind: PacketKind) -> (DataSize, usize) {
    let sent = call.forward_log.iter().filter(|sent| sent.sent.as_ref().is_some_and(is_kind(kind)));
    let sizes: Vec<DataSize> = sent.map(|sent| sent.size - IP_UDP_HEADERS).collect();
    (sizes.iter().copied().max().unwrap_or(DataSize::ZERO), sizes.len())
}

/// 5 % loss causes retransmissions and FEC. Frames of 12.5 KB fill their packets; the largest retransmission has the packet
/// size less the rounding of equal parts.
#[test]
fn retransmissions_and_fec_keep_to_the_packet_size() {
    for size in
        [*PACKET_SIZE_RANGE.start(), DataSize::from_bytes(600), DataSize::from_bytes(1472), DataSize::from_bytes(6400)]
    {
        for (fec, kind) in [(FecScheme::None, PacketKind::Retransmission), (FecScheme::Ulpfec, PacketKind::Fec)] {
            let mut config = CallConfig::new(fixed(kbps(3000)), kbps(3000));
            config.packet_size = size;
            config.protection = Protection { fec, resend: ResendRule::RoundTrip };
            config.forward = random_loss(5, 0.05);
            let call = TestCall::run(config, 20);
            let (most, count) = largest(&call, kind);
            assert!(count > 50, "{count} of {kind:?}");
            assert!(most <= size && most.as_bytes() * 10 > size.as_bytes() * 8, "{most} of {size}, {kind:?}");
            assert!(largest(&call, PacketKind::Media).0 <= size);
        }
    }
}

/// The source sends at most half of what the controller estimates, so that probes fill up with earlier packets. Frames of 833
/// bytes are four of them, each of 209 bytes and headers.
#[test]
fn probes_and_padding_keep_to_the_packet_size() {
    let size = *PACKET_SIZE_RANGE.start();
    let mut config = CallConfig::new(controller("gcc-tfb", kbps(3000), &[("probes", 1.0)]), kbps(3000));
    config.streams = vec![video_source(0, 30.0, kbps(30), kbps(200), kbps(200))];
    config.packet_size = size;
    let call = TestCall::run(config, 20);
    let (most, count) = largest(&call, PacketKind::Padding);
    assert!(count > 5 && most <= size && most.as_bytes() > 209, "{count} of at most {most}");
    assert!(largest(&call, PacketKind::Media).0 <= size);
}

#[test]
#[should_panic(expected = "packet size 299 B")]
fn a_packet_size_outside_the_range_is_a_bug_of_the_caller() {
    let mut config = CallConfig::new(fixed(kbps(300)), kbps(300));
    config.packet_size = DataSize::from_bytes(299);
    TestCall::run(config, 1);
}
