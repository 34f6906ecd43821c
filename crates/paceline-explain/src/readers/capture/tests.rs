// SPDX-License-Identifier: MIT OR Apache-2.0
//! Small captures of the classic format, written by hand.

use super::*;
use crate::model::Quantity;
use crate::readers::read_bytes;
use crate::readers::test_capture::{self, RAW, UDP, ip_packet, udp, words};

const LINUX_SLL: u32 = 113;
const LINUX_SLL2: u32 = 276;

/// A packet of RTP with its time in ms.
type Packet = (u32, Vec<u8>);

/// Time, ms, last byte of the sender's and of the receiver's address, SSRC, sequence number.
fn rtp(ms: u32, route: (u8, u8), ssrc: u16, sequence: u16) -> Packet {
    let rtp = test_capture::rtp(ssrc, sequence, &[0; 200]);
    (ms, ip_packet(false, UDP, route, &udp((5000, 6000), &rtp)))
}

fn file(link: u32, packets: &[Packet]) -> Vec<u8> {
    test_capture::file(link, packets.iter().cloned())
}

fn call(link: u32, packets: &[Packet]) -> Call {
    read_bytes(&file(link, packets)).unwrap()
}

fn route_changes(flow: &Flow) -> Vec<Time> {
    flow.marks.iter().filter(|mark| mark.kind == MarkKind::RouteChange).map(|mark| mark.at).collect()
}

#[test]
fn a_stream_is_followed_from_one_route_to_the_next() {
    let packets: Vec<Packet> = (0..200u16)
        .flat_map(|index| {
            let route = |switch: u16| if index < switch { (1, 2) } else { (1, 3) };
            let ms = 50 * u32::from(index);
            [rtp(ms, route(40), 7, index), rtp(ms + 10, route(43), 8, index)]
        })
        .collect();
    let call = call(RAW, &packets);
    assert_eq!(call.flows.len(), 1, "{call:?}");
    let flow = &call.flows[0];
    assert!((flow.span.1 - flow.span.0).as_secs_f64() > 9.9);
    // Once, although both streams change.
    assert_eq!(route_changes(flow), [Time::from_secs(2)]);
}

#[test]
fn copies_of_a_stream_on_two_routes_count_once() {
    let packets: Vec<Packet> = (0..200u16)
        .flat_map(|index| [(1, 2), (2, 3)].map(|route| rtp(50 * u32::from(index), route, 7, index)))
        .collect();
    let call = call(RAW, &packets);
    let sent = call.flows[0].get(Quantity::SentRate).unwrap();
    let mean = sent.mean(Time::ZERO, Time::MAX).unwrap();
    assert!((mean - 8.0 * 240.0 * 20.0).abs() < 500.0, "{mean}");
    assert_eq!(route_changes(&call.flows[0]), []);
}

/// Linux "cooked" captures of all interfaces, or packets inside and outside of a tunnel.
#[test]
fn packets_that_were_captured_twice_count_once() {
    let with_copies = |after_ms: u32, mark: u8| {
        let packets = (0..200u16).flat_map(|index| {
            let (ms, first) = rtp(50 * u32::from(index), (1, 2), 7, index);
            let mut copy = first.clone();
            *copy.last_mut().unwrap() = mark;
            [(ms, first), (ms + after_ms, copy)]
        });
        let call = call(RAW, &packets.collect::<Vec<_>>());
        let mean = call.flows[0].get(Quantity::SentRate).unwrap().mean(Time::ZERO, Time::MAX).unwrap();
        let notes = call.notes.iter().filter(|note| note.contains("in the file twice")).count();
        ((mean / (8.0 * 240.0 * 20.0)).round(), notes)
    };
    assert_eq!(with_copies(1, 0), (1.0, 1));
    assert_eq!(with_copies(30, 0), (2.0, 0), "a retransmission on the wire");
    assert_eq!(with_copies(1, 1), (2.0, 0), "other content");
}

/// A stream with receiver reports, of which the file has this many bytes of each packet.
fn cut_at(bytes: usize) -> Vec<u8> {
    let report = |n: u16| [&[0x81, 201][..], &words(&[7, 0, 9, 0, 7, 0, n / 10, 0, n, 0, 0, 0, 0, 0, 0])].concat();
    let mut file = file(RAW, &[]);
    for n in 0..400u16 {
        let (ms, packet) = rtp(20 * u32::from(n), (1, 2), 7, n);
        test_capture::push_cut(&mut file, ms, &packet, bytes);
        if n % 50 == 49 {
            let packet = ip_packet(false, UDP, (2, 1), &udp((6000, 5000), &report(n)));
            test_capture::push_cut(&mut file, ms + 5, &packet, bytes);
        }
    }
    file
}

#[test]
fn reports_that_are_cut_say_nothing_and_headers_that_are_cut_are_named() {
    let lost = |bytes: usize| {
        let call = read_bytes(&cut_at(bytes)).unwrap();
        let has_note = call.notes.iter().any(|note| note.contains("packets are cut at"));
        assert!(call.flows[0].get(Quantity::Feedback).is_some(), "{bytes}");
        (call.flows[0].get(Quantity::PacketsLost).is_some(), has_note)
    };
    assert_eq!([lost(300), lost(60), lost(48)], [(true, false), (true, false), (false, true)]);
    let error = read_bytes(&cut_at(36)).unwrap_err().to_string();
    assert!(error.contains("no RTP in what is left of its packets; packets are cut at 36 bytes"), "{error}");
}

#[test]
fn missing_packets_mean_the_receiver() {
    let with_gaps = |missing: u16| {
        let packets: Vec<Packet> = (0..400u16)
            .filter(|n| n % 100 != 50 || n / 100 >= missing)
            .map(|n| rtp(20 * u32::from(n), (1, 2), 7, n))
            .collect();
        call(RAW, &packets).flows[0].is_sent
    };
    assert!(with_gaps(0) && with_gaps(2));
    assert!(!with_gaps(3));
    // A route has one direction, also if one of its streams has no losses.
    let packets: Vec<Packet> = (0..400u16)
        .flat_map(|n| {
            [Some(rtp(20 * u32::from(n), (1, 2), 7, n)), (n % 50 != 25).then(|| rtp(20 * u32::from(n), (1, 2), 8, n))]
        })
        .flatten()
        .collect();
    let call = call(RAW, &packets);
    assert_eq!(call.flows.iter().map(|flow| flow.is_sent).collect::<Vec<_>>(), [false]);
}

#[test]
fn cooked_captures_say_which_packets_were_sent() {
    let version_1 = |kind: u8| [&[0, kind, 0, 1, 0, 6][..], &[2; 8], &[8, 0]].concat();
    let version_2 = |kind: u8| [&[8, 0, 0, 0, 0, 0, 0, 2, 0, 1, kind, 6][..], &[2; 8]].concat();
    let headers: [&dyn Fn(u8) -> Vec<u8>; 2] = [&version_1, &version_2];
    for (link, header) in [LINUX_SLL, LINUX_SLL2].into_iter().zip(headers) {
        let packets: Vec<Packet> = (0..100u16)
            .flat_map(|n| {
                [(4, (1, 2), 7), (0, (2, 1), 8)].map(|(kind, route, ssrc)| {
                    let (ms, packet) = rtp(50 * u32::from(n), route, ssrc, n);
                    (ms, [header(kind), packet].concat())
                })
            })
            .collect();
        let call = call(link, &packets);
        assert_eq!(call.flows.iter().map(|flow| flow.is_sent).collect::<Vec<_>>(), [true, false], "{link}");
        assert!(call.notes.iter().all(|note| !note.contains("does not say")), "{:?}", call.notes);
    }
}

#[test]
fn errors_name_what_is_there() {
    let failed = |link: u32, packets: &[Packet]| read_bytes(&file(link, packets)).unwrap_err().to_string();
    let stream = |count: u16, step: u32| (0..count).map(|n| rtp(step * u32::from(n), (1, 2), 7, n)).collect::<Vec<_>>();
    for (link, count, step, part) in [
        (RAW, 10, 100, "fewer than 20 packets"),
        (RAW, 100, 0, "the same time"),
        (RAW, 100, 5, "1 s"),
        (107, 100, 100, "link type FRELAY "),
    ] {
        let error = failed(link, &stream(count, step));
        assert!(error.contains(part), "{error}: expected {part}");
    }
}

/// Names of NetBIOS and DNS: a random id whose first bits are those of RTP, and the same flags and counts in each message.
#[test]
fn other_protocols_that_look_like_rtp_are_no_streams() {
    let mut packets: Vec<Packet> = (0..200u16).map(|n| rtp(50 * u32::from(n), (1, 2), 0, 0x0110)).collect();
    let error = read_bytes(&file(RAW, &packets)).unwrap_err().to_string();
    assert!(error.contains("no RTP in it"), "{error}");
    packets.extend((0..200u16).map(|n| rtp(10_000 + 50 * u32::from(n), (1, 2), 7, n)));
    assert_eq!(call(RAW, &packets).flows.len(), 1);
}

/// A stream of 100 packets whose IP headers have these ECN fields, by sequence number.
fn with_ecn(is_v6: bool, ecn: impl Fn(u16) -> u8) -> Flow {
    let packets = (0..100u16).map(|index| {
        let mut packet = ip_packet(is_v6, UDP, (1, 2), &udp((5000, 6000), &test_capture::rtp(7, index, &[0; 200])));
        packet[1] |= if is_v6 { ecn(index) << 4 } else { ecn(index) };
        (50 * u32::from(index), packet)
    });
    read_bytes(&test_capture::file(RAW, packets)).unwrap().flows.remove(0)
}

#[test]
fn ecn_fields_of_ip_headers_count() {
    for is_v6 in [false, true] {
        // Streams of which nothing says whether they were sent count as sent.
        let flow = with_ecn(is_v6, |index| if index < 50 { 1 } else { 0 });
        let sent = flow.get(Quantity::EctSent).map(|series| series.sum(Time::ZERO, Time::MAX));
        assert_eq!(sent, Some(50.0), "IPv6: {is_v6}");
        assert!(flow.get(Quantity::CeArrived).is_none());
        let none = with_ecn(is_v6, |_| 0);
        assert!(none.get(Quantity::EctSent).is_none());
    }
}
