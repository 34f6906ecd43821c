// SPDX-License-Identifier: MIT OR Apache-2.0
//! Messages of each framing, in segments that are cut, lost, repeated and out of order.

use super::*;
use crate::readers::read_bytes;
use crate::readers::test_capture::{RAW, TCP, file, ip_packet, rtp, words};
use std::net::IpAddr;

const CLIENT: (IpAddr, u16) = (IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1)), 50_000);
const SERVER: (IpAddr, u16) = (IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2)), 3478);
const ROUTE: Route = (CLIENT, SERVER);
const HEADERS: u64 = 52;

fn packet(number: u16) -> Vec<u8> {
    rtp(7, number, &vec![0x55; 900 + usize::from(number % 4)])
}

fn stun(kind: u16, attributes: &[u8]) -> Vec<u8> {
    [words(&[kind, attributes.len() as u16]), STUN_COOKIE.to_vec(), vec![7; 12], attributes.to_vec()].concat()
}

fn padded(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn with_length(first: &[u8], content: &[u8]) -> Vec<u8> {
    [first, &words(&[content.len() as u16]), content].concat()
}

type Frame = fn(&[u8]) -> Vec<u8>;

const FRAMES: [(&str, Frame); 4] = [
    ("RFC 4571", |rtp| with_length(&[], rtp)),
    ("ChannelData", |rtp| padded(with_length(&[0x40, 1], rtp))),
    ("Send", |rtp| stun(0x0016, &padded(with_length(&[0, 0x13], rtp)))),
    ("RTSP", |rtp| with_length(b"$\0", rtp)),
];

fn stream(frame: Frame, count: u16) -> Vec<u8> {
    (0..count).flat_map(|number| frame(&packet(number))).collect()
}

fn segment(sequence: u32, payload: &[u8]) -> Segment<'_> {
    Segment {
        route: ROUTE,
        sequence,
        acknowledgment: None,
        syn: false,
        ends: false,
        payload,
        size: payload.len(),
        headers: HEADERS,
    }
}

/// An acknowledgment of the other direction.
fn acknowledgment(number: u32) -> Segment<'static> {
    Segment { route: (SERVER, CLIENT), acknowledgment: Some(number), ..segment(1, &[]) }
}

#[derive(Default)]
struct Read {
    streams: Streams,
    /// Numbers of the packets, with their times in ms.
    packets: Vec<(u16, i64)>,
}

impl Read {
    fn add(&mut self, ms: i64, segment: &Segment<'_>) {
        let packets = &mut self.packets;
        self.streams.add((0, 0), Time::from_millis(ms), segment, &mut |message| {
            let Message { at, route, content, bytes, .. } = *message;
            if let Some((_, Some(number))) = source(content) {
                assert_eq!((route, content), (ROUTE, &packet(number)[..]));
                assert!((2..=60).contains(&(bytes - HEADERS - content.len() as u64)), "{bytes}");
                packets.push((number, at.as_nanos() / 1_000_000));
            }
        });
        let kept: usize = self.streams.streams.values().map(Stream::kept).sum();
        assert_eq!(self.streams.kept, kept);
    }

    fn numbers(&self) -> Vec<u16> {
        self.packets.iter().map(|(number, _)| *number).collect()
    }
}

/// The sequence numbers wrap on the way.
const FIRST: u32 = u32::MAX - 5_000;

#[test]
fn messages_of_each_framing_are_read_in_segments_of_any_size() {
    for (name, frame) in FRAMES {
        let bytes = stream(frame, 40);
        for size in [1, 7, 500, 1448, 20_000] {
            // A capture from the beginning, and one that begins in the 4th message.
            for from in [0, 3_333] {
                let mut read = Read::default();
                let mut sequence = FIRST;
                for part in bytes[from..].chunks(size) {
                    read.add(0, &segment(sequence, part));
                    sequence = sequence.wrapping_add(part.len() as u32);
                }
                let first = if from == 0 { 0 } else { 4 };
                assert_eq!(read.numbers(), (first..40).collect::<Vec<_>>(), "{name} {size} {from}");
            }
        }
    }
}

#[test]
fn a_lost_segment_delays_all_messages_after_it() {
    let (bytes, size) = (stream(FRAMES[1].1, 40), 1000);
    let part = |number: usize| {
        let from = number * size;
        segment(FIRST.wrapping_add(from as u32), &bytes[from..(from + size).min(bytes.len())])
    };
    let mut read = Read::default();
    for number in (0..20).filter(|number| *number != 5) {
        read.add(number as i64, &part(number));
    }
    assert!(read.packets.iter().all(|(_, ms)| *ms < 5), "{:?}", read.packets);
    // Copies, and the segment that was lost.
    for number in [3, 19, 5, 5, 6] {
        read.add(100, &part(number));
    }
    for number in 20..bytes.len().div_ceil(size) {
        read.add(200, &part(number));
    }
    assert_eq!(read.numbers(), (0..40).collect::<Vec<_>>());
    let late = read.packets.iter().filter(|(_, ms)| *ms == 100).count();
    assert!((14..=17).contains(&late), "{late}");
}

#[test]
fn what_the_capture_lacks_is_left_out() {
    let (bytes, size) = (stream(FRAMES[0].1, 60), 1000);
    let run = |is_acknowledged: bool| {
        let mut read = Read::default();
        for (number, part) in bytes.chunks(size).enumerate().filter(|(number, _)| !(10..12).contains(number)) {
            let ms = 100 * number as i64;
            let sequence = FIRST.wrapping_add((number * size) as u32);
            read.add(ms, &segment(sequence, part));
            if is_acknowledged {
                read.add(ms, &acknowledgment(sequence));
            }
        }
        let lost: Vec<u16> = (0..60).filter(|number| !read.numbers().contains(number)).collect();
        assert!(read.numbers().is_sorted() && lost.len() <= 4 && lost[0] >= 9, "{lost:?}");
        read.packets.iter().find(|(number, _)| *number > lost[0]).unwrap().1
    };
    // The receiver says that it has it, or it does not come for 3 s.
    assert!(run(true) <= 1500, "{}", run(true));
    assert!((4200..=4400).contains(&run(false)), "{}", run(false));
}

/// Each message has the time of the segment that completed it, although the framing is known later.
#[test]
fn messages_that_are_found_late_have_their_own_times() {
    let bytes = stream(FRAMES[0].1, 40);
    let mut read = Read::default();
    // Begins in a message, so that the first 16 kB are searched again and again.
    for (number, part) in bytes[500..].chunks(1000).enumerate() {
        read.add(10 * number as i64, &segment(FIRST.wrapping_add(1000 * number as u32), part));
    }
    assert_eq!(read.numbers(), (1..40).collect::<Vec<_>>());
    let mut end = 0;
    for number in 0..40u16 {
        end += 2 + packet(number).len();
        let Some((_, ms)) = read.packets.iter().find(|(found, _)| *found == number) else { continue };
        assert_eq!(*ms, 10 * ((end - 500 - 1) / 1000) as i64, "{number}");
    }
}

/// Data waits for a framing, behind a segment that is lost, or both.
#[test]
fn what_waits_at_the_end_is_read() {
    let bytes = stream(FRAMES[0].1, 40);
    for ends in [true, false] {
        for lost in [0, 20, 33] {
            let mut read = Read::default();
            let count = bytes.len().div_ceil(1000);
            for (number, part) in bytes.chunks(1000).enumerate().filter(|(number, _)| *number != lost) {
                let last = segment(FIRST.wrapping_add(1000 * number as u32), part);
                read.add(10 * number as i64, &Segment { ends: ends && number + 1 == count, ..last });
            }
            let packets = &mut read.packets;
            read.streams.finish(&mut |message| {
                if let Some((_, Some(number))) = source(message.content) {
                    packets.push((number, message.at.as_nanos() / 1_000_000));
                }
            });
            assert!(read.streams.streams.is_empty() && read.streams.kept == 0);
            let missing: Vec<u16> = (0..40).filter(|number| !read.numbers().contains(number)).collect();
            assert!((1..=3).contains(&missing.len()) && missing.is_sorted(), "{lost}: {missing:?}");
            assert!(read.packets.is_sorted(), "{:?}", read.packets);
            let (_, last) = read.packets[read.packets.len() - 1];
            assert_eq!(last, 10 * (count as i64 - 1), "{lost}: the time of the last segment");
        }
    }
}

/// A report whose content is cut says nothing, and what follows the cut is found again.
#[test]
fn bytes_that_the_capture_lacks_are_a_gap() {
    let report = [&[0x81, 201, 0, 7, 0, 0, 0, 9][..], &[0x13; 24]].concat();
    let frame = FRAMES[0].1;
    let mut read = Read::default();
    let (mut sequence, mut contents) = (FIRST, Vec::new());
    for number in 0..60 {
        // Each segment has a packet and a report, of which the last 20 bytes are cut, every fifth time in the packet.
        let message = [frame(&packet(number)), frame(&report)].concat();
        let captured = message.len() - if number % 5 == 4 { 200 } else { 20 };
        let cut = Segment { size: message.len(), ..segment(sequence, &message[..captured]) };
        read.streams.add((0, 0), Time::ZERO, &cut, &mut |message| contents.push(message.content.to_vec()));
        sequence = sequence.wrapping_add(message.len() as u32);
    }
    let numbers: Vec<u16> = contents.iter().filter_map(|content| source(content)?.1).collect();
    assert_eq!(numbers, (0..60).collect::<Vec<_>>());
    let reports: Vec<&Vec<u8>> = contents.iter().filter(|content| is_rtcp(content)).collect();
    assert!((45..=48).contains(&reports.len()), "{}", reports.len());
    assert!(reports.iter().all(|content| **content == report[..report.len() - 20]), "{reports:?}");
}

#[test]
fn segments_whose_end_is_not_captured_are_read() {
    let mut read = Read::default();
    let mut sequence = FIRST;
    let mut contents = Vec::new();
    for number in 0..40 {
        let message = FRAMES[0].1(&packet(number));
        let cut = Segment { size: message.len(), ..segment(sequence, &message[..60]) };
        read.streams.add((0, 0), Time::ZERO, &cut, &mut |message| contents.extend(source(message.content)));
        sequence = sequence.wrapping_add(message.len() as u32);
    }
    assert_eq!(contents, (0..40).map(|number| (7, Some(number))).collect::<Vec<_>>());
}

/// RTCP alone, as a receiver of media sends it.
#[test]
fn reports_alone_are_recognised() {
    let report = [&[0x80, 201, 0, 1, 0, 0, 0, 9][..], &[0x13; 14]].concat();
    for (name, frame) in FRAMES {
        let (message, mut count) = (frame(&report), 0);
        let mut streams = Streams::default();
        for number in 0..20 {
            let next = segment(message.len() as u32 * number, &message);
            streams.add((0, 0), Time::ZERO, &next, &mut |message| count += u32::from(message.content == report));
        }
        assert_eq!(count, 20, "{name}");
    }
}

#[test]
fn texts_between_messages_are_skipped() {
    let (_, frame) = FRAMES[3];
    let text = b"RTSP/1.0 200 OK\r\nCSeq: 5\r\nSession: $24\r\n\r\n";
    let bytes: Vec<u8> = (0..40)
        .flat_map(|number| [if number % 10 == 0 { &text[..] } else { &[] }, &frame(&packet(number))].concat())
        .collect();
    let mut read = Read::default();
    read.add(0, &Segment { syn: true, ..segment(FIRST, &[]) });
    for (number, part) in bytes.chunks(1448).enumerate() {
        read.add(0, &segment(FIRST.wrapping_add(1 + 1448 * number as u32), part));
    }
    assert_eq!(read.numbers(), (0..40).collect::<Vec<_>>());
}

#[test]
fn other_streams_have_no_messages_and_are_not_kept() {
    let record = |kind: u8, hello: u8| with_length(&[kind, 3, 3], &[&[hello][..], &[0x99; 400]].concat());
    let tls: Vec<u8> =
        [record(22, 1), record(20, 1)].into_iter().chain((0..2000).map(|_| record(23, 7))).flatten().collect();
    let http: Vec<u8> =
        (0..20_000).flat_map(|n| format!("GET /{n} HTTP/1.1\r\nHost: x\r\n\r\n").into_bytes()).collect();
    let noise: Vec<u8> = (0..800_000u32).map(|n| (n.wrapping_mul(n).wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    for (bytes, encrypted) in [(&tls, vec![TURN_OVER_TLS]), (&http, vec![]), (&noise, vec![])] {
        let mut read = Read::default();
        for (number, part) in bytes.chunks(1448).enumerate() {
            read.add(0, &segment(FIRST.wrapping_add(1448 * number as u32), part));
            assert!(read.streams.kept <= SEARCHED * 5 / 4 + 1448);
        }
        assert_eq!((read.streams.kept, read.packets.len()), (0, 0));
        assert_eq!(read.streams.encrypted.into_iter().collect::<Vec<_>>(), encrypted);
    }
}

#[test]
fn streams_with_gaps_have_bounded_memory() {
    let mut read = Read::default();
    let data = [0x80; 20_000];
    for port in 0..200 {
        for number in 0..30u32 {
            let route = ((CLIENT.0, port), SERVER);
            let sequence = if number == 0 { 0 } else { 20_000 * number + 1 };
            read.streams.add((0, 0), Time::ZERO, &Segment { route, ..segment(sequence, &data) }, &mut |_| ());
        }
        assert!(read.streams.kept <= KEPT_MAX);
    }
    for port in 0..3 * STREAMS_MAX as u16 {
        let route = ((CLIENT.0, port), (SERVER.0, 443));
        read.add(i64::from(port), &Segment { route, ..segment(0, &data[..100]) });
    }
    assert_eq!(read.streams.streams.len(), STREAMS_MAX);
    assert!(read.streams.kept <= KEPT_MAX);
}

/// Bytes, sequence numbers and acknowledgments that are changed at random.
#[test]
fn damaged_streams_are_read() {
    let mut state = 1u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    for round in 0..200 {
        let mut bytes = stream(FRAMES[round % 4].1, 60);
        for _ in 0..random(50) {
            let at = random(bytes.len());
            bytes[at] = random(256) as u8;
        }
        let mut streams = Streams::default();
        for _ in 0..100 {
            let from = random(bytes.len());
            let part = &bytes[from..bytes.len().min(from + random(3000))];
            let jump = if random(20) == 0 { 1 << random(31) } else { 0 };
            let changed = Segment {
                acknowledgment: (random(3) == 0).then(|| random(60_000) as u32),
                route: if random(4) == 0 { (SERVER, CLIENT) } else { ROUTE },
                syn: random(30) == 0,
                ends: random(30) == 0,
                size: part.len() + random(2) * random(1000),
                ..segment(from as u32 ^ jump, part)
            };
            streams.add((0, 0), Time::from_millis(random(5000) as i64), &changed, &mut |_| ());
            assert_eq!(streams.kept, streams.streams.values().map(Stream::kept).sum::<usize>());
        }
    }
}

/// A capture of a stream: 10 s of packets in TCP of IPv4.
fn capture(port: u16, bytes: &[u8]) -> Vec<u8> {
    let packet = |(number, part): (u32, &[u8])| {
        let sequence = (1000 * number).to_be_bytes();
        let header = [&words(&[50_000, port])[..], &sequence, &[0; 4], &words(&[0x5010, 500, 0, 0])].concat();
        (20 * number, ip_packet(false, TCP, (1, 2), &[&header, part].concat()))
    };
    file(RAW, (0..).zip(bytes.chunks(1000)).map(packet))
}

#[test]
fn captures_of_media_over_tcp_are_read_and_tls_is_named() {
    for (name, frame) in FRAMES {
        let call = read_bytes(&capture(443, &stream(frame, 500))).unwrap();
        assert_eq!(call.flows.len(), 1, "{name}");
        assert!(call.notes.iter().all(|note| !note.contains("TLS")), "{:?}", call.notes);
    }
    let tls = with_length(&[23, 3, 3], &[7; 900]).repeat(500);
    for (port, text) in [(443, "perhaps TURN over TLS, cannot be read"), (5349, "TURN over TLS cannot be read")] {
        let error = read_bytes(&capture(port, &tls)).unwrap_err().to_string();
        assert!(error.contains(text) && error.contains("webrtc-internals"), "{error}");
    }
}
