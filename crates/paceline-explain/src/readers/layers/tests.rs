// SPDX-License-Identifier: MIT OR Apache-2.0
//! The same packets of RTP in each encapsulation, and damaged headers.

use super::*;
use crate::model::{Call, Flow};
use crate::readers::read_bytes;
use crate::readers::test_capture::{self, RAW, ip_packet, rtp, udp, words};

/// What a tunnel adds in UDP between two other hosts.
fn in_udp(header: &[u8], inner: &[u8]) -> Vec<u8> {
    ip_packet(false, UDP, (8, 9), &udp((40000, 41000), &[header, inner].concat()))
}

/// A TURN message with the payload of a datagram of IPv4.
fn relayed(ip: &[u8], message: &dyn Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    ip_packet(false, UDP, (ip[15], ip[19]), &udp((5000, 3478), &message(&ip[28..])))
}

fn channel(rtp: &[u8]) -> Vec<u8> {
    let mut message = [words(&[0x4001, rtp.len() as u16]), rtp.to_vec()].concat();
    message.resize(message.len().next_multiple_of(4), 0);
    message
}

fn indication(kind: u16, rtp: &[u8]) -> Vec<u8> {
    let mut attributes =
        [words(&[0x0012, 8]), vec![0, 1, 1, 1, 1, 1, 1, 1], words(&[0x0013, rtp.len() as u16]), rtp.to_vec()].concat();
    attributes.resize(attributes.len().next_multiple_of(4), 0);
    [words(&[kind, attributes.len() as u16]), STUN_COOKIE.to_vec(), vec![7; 12], attributes].concat()
}

const ETHERNET: [u8; 12] = [2; 12];

fn ethernet_of(kind: u16, inner: &[u8]) -> Vec<u8> {
    [&ETHERNET, &words(&[kind])[..], inner].concat()
}

fn ipv4_frame(ip: &[u8]) -> Vec<u8> {
    ethernet_of(0x0800, ip)
}

type Wrap = Box<dyn Fn(&[u8]) -> Vec<u8>>;
type WrapRef<'a> = &'a dyn Fn(&[u8]) -> Vec<u8>;

/// Name, link type, and what makes a packet of a packet of IPv4.
fn encapsulations() -> Vec<(&'static str, u32, Wrap)> {
    fn before(header: Vec<u8>) -> Wrap {
        Box::new(move |ip| [&header, ip].concat())
    }
    fn tunnel(header: Vec<u8>, frame: fn(&[u8]) -> Vec<u8>) -> Wrap {
        Box::new(move |ip| ipv4_frame(&in_udp(&header, &frame(ip))))
    }
    fn protocol(number: u8, header: Vec<u8>, frame: fn(&[u8]) -> Vec<u8>) -> Wrap {
        Box::new(move |ip| ipv4_frame(&ip_packet(false, number, (8, 9), &[header.clone(), frame(ip)].concat())))
    }
    let same: fn(&[u8]) -> Vec<u8> = |ip| ip.to_vec();
    let gtp = |flags: u8, extensions: Vec<u8>| -> Wrap {
        Box::new(move |ip| {
            let size = (extensions.len() + ip.len()) as u16;
            ipv4_frame(&in_udp(&[vec![flags, 0xFF], words(&[size, 0, 7]), extensions.clone()].concat(), ip))
        })
    };
    let turn = |message: fn(&[u8]) -> Vec<u8>| -> Wrap { Box::new(move |ip| ipv4_frame(&relayed(ip, &message))) };
    let pppoe = |protocol: &'static [u8]| -> Wrap {
        Box::new(move |ip| {
            let size = (protocol.len() + ip.len()) as u16;
            ethernet_of(0x8864, &[&[0x11, 0][..], &words(&[1, size]), protocol, ip].concat())
        })
    };
    vec![
        ("raw", 101, before(vec![])),
        ("raw of BSD", 12, before(vec![])),
        ("IPv4", 228, before(vec![])),
        ("Ethernet", 1, Box::new(ipv4_frame)),
        ("802.3 with SNAP", 1, before([&ETHERNET[..], &words(&[100]), &[0xAA, 0xAA, 3, 0, 0, 0, 8, 0]].concat())),
        ("loopback of BSD", 0, before(vec![2, 0, 0, 0])),
        ("loopback of OpenBSD", 108, before(vec![0, 0, 0, 2])),
        ("enc", 109, before(vec![0; 12])),
        ("cooked", 113, before([&[0; 14][..], &[8, 0]].concat())),
        ("cooked 2", 276, before([&[8, 0][..], &[0; 18]].concat())),
        ("HDLC of Cisco", 104, before(vec![0x0F, 0, 8, 0])),
        ("PPP", 9, before(vec![0xFF, 3, 0, 0x21])),
        ("PPP in HDLC", 50, before(vec![0xFF, 3, 0, 0x21])),
        ("PPPoE as link", 51, before(vec![0x11, 0, 0, 1, 0, 0, 0, 0x21])),
        ("pflog", 117, before([&[61, 2][..], &[0; 62]].concat())),
        (
            "pktap",
            258,
            Box::new(|ip| [&[108, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0][..], &[0; 96], &ipv4_frame(ip)].concat()),
        ),
        (
            "pktap of older macOS",
            149,
            Box::new(|ip| [&[12, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0][..], &ipv4_frame(ip)].concat()),
        ),
        ("PPI", 192, Box::new(|ip| [&[0, 0, 8, 0, 1, 0, 0, 0][..], &ipv4_frame(ip)].concat())),
        ("nflog", 239, before(vec![2, 0, 0, 0, 5, 0, 10, 0, b'p', 0, 0, 0, 8, 0, 9, 0])),
        ("802.11", 105, before([&[0x88, 1][..], &[0; 24], &[0xAA, 0xAA, 3, 0, 0, 0, 8, 0]].concat())),
        (
            "radiotap",
            127,
            before([&[0, 0, 8, 0, 0, 0, 0, 0, 8, 2][..], &[0; 22], &[0xAA, 0xAA, 3, 0, 0, 0, 8, 0]].concat()),
        ),
        ("VLAN", 1, before([&ETHERNET[..], &words(&[0x8100, 5, 0x0800])].concat())),
        ("QinQ", 1, before([&ETHERNET[..], &words(&[0x88A8, 5, 0x8100, 6, 0x0800])].concat())),
        (
            "four tags",
            1,
            before([&ETHERNET[..], &words(&[0x9100, 5, 0x8100, 6, 0x8100, 7, 0x8100, 8, 0x0800])].concat()),
        ),
        ("PPPoE", 1, pppoe(&[0, 0x21])),
        ("PPPoE, short", 1, pppoe(&[0x21])),
        ("MPLS", 1, before([&ETHERNET[..], &words(&[0x8847, 1, 0x0040, 1, 0x0140])].concat())),
        (
            "Ethernet in MPLS",
            1,
            Box::new(|ip| ethernet_of(0x8847, &[words(&[1, 0x0140, 0, 0]), ipv4_frame(ip)].concat())),
        ),
        ("EtherIP", 1, protocol(97, vec![0x30, 0], ipv4_frame)),
        ("FOU", 1, tunnel(vec![], same)),
        ("GUE", 1, tunnel(vec![0, 4, 0, 0], same)),
        ("MPLS in UDP", 1, tunnel(vec![0, 1, 1, 64], same)),
        ("LISP", 1, tunnel(vec![0xC0, 1, 2, 3, 0, 0, 0, 1], same)),
        ("L2TP 3 in UDP", 1, tunnel(vec![0, 3, 0, 0, 0, 0, 0, 7], ipv4_frame)),
        ("Prism", 119, before([&[0; 144][..], &[8, 1], &[0; 22], &[0xAA, 0xAA, 3, 0, 0, 0, 8, 0]].concat())),
        ("IP in IP", 1, protocol(4, vec![], same)),
        ("IPv4 in IPv6", 1, Box::new(|ip| ethernet_of(0x86DD, &ip_packet(true, 4, (8, 9), ip)))),
        ("GRE", 1, protocol(47, words(&[0, 0x0800]), same)),
        ("GRE with key", 1, protocol(47, words(&[0xB000, 0x0800, 0, 0, 0, 1, 0, 2]), same)),
        ("Ethernet in GRE", 1, protocol(47, words(&[0, 0x6558]), ipv4_frame)),
        (
            "PPTP",
            1,
            protocol(47, [words(&[0x3081, 0x880B, 100, 7, 0, 1, 0, 2]), vec![0xFF, 3, 0, 0x21]].concat(), same),
        ),
        ("ERSPAN 1", 1, protocol(47, words(&[0, 0x88BE]), ipv4_frame)),
        ("ERSPAN 2", 1, protocol(47, words(&[0x1000, 0x88BE, 0, 1, 0x1000, 0, 0, 0]), ipv4_frame)),
        ("ERSPAN 3", 1, protocol(47, words(&[0x1000, 0x22EB, 0, 1, 0x2000, 0, 0, 0, 0, 1, 0, 0, 0, 0]), ipv4_frame)),
        ("authentication", 1, protocol(51, [vec![4, 4], vec![0; 22]].concat(), same)),
        ("VXLAN", 1, tunnel(vec![8, 0, 0, 0, 0, 0, 9, 0], ipv4_frame)),
        ("VXLAN with a group", 1, tunnel(vec![0x88, 0, 0, 5, 0, 0, 9, 0], ipv4_frame)),
        ("VXLAN-GPE", 1, tunnel(vec![12, 0, 0, 1, 0, 0, 9, 0], same)),
        ("Geneve", 1, tunnel([words(&[0, 0x6558]), vec![0, 0, 9, 0]].concat(), ipv4_frame)),
        ("Geneve with options", 1, tunnel([words(&[0x0240, 0x0800]), vec![0, 0, 9, 0], vec![1; 8]].concat(), same)),
        ("GTP-U", 1, gtp(0x30, vec![])),
        ("GTP-U with number", 1, gtp(0x32, vec![0, 1, 0, 0])),
        ("GTP-U of 5G", 1, gtp(0x34, vec![0, 0, 0, 0x85, 1, 0, 9, 0])),
        ("TZSP", 1, tunnel(vec![1, 0, 0, 1, 0, 10, 1, 50, 1], ipv4_frame)),
        ("L2TP", 1, tunnel([words(&[0x0002, 7, 8]), vec![0xFF, 3, 0, 0x21]].concat(), same)),
        ("L2TP version 3", 1, protocol(115, vec![0, 0, 0, 7], ipv4_frame)),
        ("L2TP version 3 with a cookie", 1, protocol(115, vec![0x55; 12], ipv4_frame)),
        ("backbone bridge", 1, Box::new(|ip| ethernet_of(0x88E7, &[&[0, 0, 0, 7][..], &ipv4_frame(ip)].concat()))),
        ("SOCKS", 1, turn(|rtp| [&[0, 0, 0, 1, 10, 0, 0, 9, 4, 5][..], rtp].concat())),
        ("TURN channel", 1, turn(channel)),
        ("TURN Send", 1, turn(|rtp| indication(0x0016, rtp))),
        ("TURN Data", 1, turn(|rtp| indication(0x0017, rtp))),
        (
            "TURN in VLAN in VXLAN",
            1,
            Box::new(|ip| {
                let tagged = [&ETHERNET[..], &words(&[0x8100, 5, 0x0800]), &relayed(ip, &channel)].concat();
                ipv4_frame(&in_udp(&[8, 0, 0, 0, 0, 0, 9, 0], &tagged))
            }),
        ),
        (
            "first fragment",
            1,
            Box::new(|ip| {
                let mut fragment = ip[..ip.len() - 100].to_vec();
                fragment[2..4].copy_from_slice(&words(&[ip.len() as u16 - 100]));
                fragment[6] = 0x20;
                ipv4_frame(&fragment)
            }),
        ),
    ]
}

/// A capture of 10 s of a stream that loses packets 250 to 260.
fn file(link: u32, wrap: &dyn Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let packet = |number: u16| {
        let rtp = rtp(7, number, &vec![0x55; 900 + usize::from(number % 4)]);
        (20 * u32::from(number), wrap(&ip_packet(false, UDP, (1, 2), &udp((5000, 6000), &rtp))))
    };
    test_capture::file(link, (0..500).filter(|number| !(250..260).contains(number)).map(packet))
}

fn call(link: u32, wrap: &dyn Fn(&[u8]) -> Vec<u8>) -> Call {
    read_bytes(&file(link, wrap)).unwrap()
}

#[test]
fn every_encapsulation_gives_the_flows_of_the_packets_inside() {
    let expected: Vec<Flow> = call(RAW, &|ip| ip.to_vec()).flows;
    assert_eq!((expected.len(), expected[0].is_sent), (1, false));
    for (name, link, wrap) in encapsulations() {
        let flows = call(link, &wrap).flows;
        // A relay adds to the size.
        match name.contains("TURN") || name == "SOCKS" {
            true => assert_eq!(without_rates(&flows), without_rates(&expected), "{name}"),
            false => assert_eq!(flows, expected, "{name}"),
        }
    }
}

fn without_rates(flows: &[Flow]) -> Vec<Flow> {
    let mut flows = flows.to_vec();
    flows.iter_mut().for_each(|flow| flow.series.retain(|quantity, _| quantity.describe().1 != "Mbit/s"));
    flows
}

#[test]
fn packets_of_ipv6_are_read_in_tunnels_and_in_fragments() {
    let v6 = |ip: &[u8]| ip_packet(true, UDP, (1, 2), &ip[20..]);
    let expected = call(RAW, &v6).flows;
    let fragment =
        |ip: &[u8]| ip_packet(true, 44, (1, 2), &[&[UDP, 0, 0, 1, 0, 0, 0, 9], &ip[20..ip.len() - 100]].concat());
    let kinds: [(&str, WrapRef<'_>); 4] = [
        ("6in4", &|ip| ip_packet(false, 41, (8, 9), &v6(ip))),
        ("Teredo", &|ip| in_udp(&[], &v6(ip))),
        ("Teredo with origin", &|ip| in_udp(&[0; 8], &v6(ip))),
        ("fragment", &fragment),
    ];
    for (name, wrap) in kinds {
        let flows = call(RAW, wrap).flows;
        match name {
            // Its header counts.
            "fragment" => assert_eq!(without_rates(&flows), without_rates(&expected)),
            _ => assert_eq!(flows, expected, "{name}"),
        }
    }
}

#[test]
fn later_fragments_are_not_packets() {
    let later = |ip: &[u8]| {
        let mut fragment = ip.to_vec();
        fragment[7] = 5;
        fragment
    };
    assert!(read_bytes(&file(RAW, &later)).unwrap_err().to_string().contains("no UDP datagram"));
}

#[test]
fn encrypted_tunnels_are_named() {
    let size = |ip: &[u8]| vec![0x55; ip.len().next_multiple_of(16)];
    for (name, wrap) in [
        (
            "WireGuard",
            &(|ip: &[u8]| in_udp(&[4, 0, 0, 0, 1, 2, 3, 4, 1, 0, 0, 0, 0, 0, 0, 0], &size(ip))) as WrapRef<'_>,
        ),
        ("IPsec", &|ip| ip_packet(false, 50, (8, 9), &size(ip))),
        ("IPsec", &|ip| ip_packet(false, UDP, (8, 9), &udp((4500, 4500), &size(ip)))),
        ("OpenVPN", &|ip| ip_packet(false, UDP, (8, 9), &udp((50000, 1194), &size(ip)))),
    ] {
        let error = read_bytes(&file(RAW, wrap)).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains("encrypted"), "{error}");
    }
}

/// Each header cut after each byte, and with each byte changed.
#[test]
fn damaged_headers_are_skipped() {
    let rtp = rtp(7, 1, &[0x55; 40]);
    let ip = ip_packet(false, UDP, (1, 2), &udp((5000, 6000), &rtp));
    for (name, link, wrap) in encapsulations().into_iter().filter(|(name, ..)| *name != "first fragment") {
        let (link, whole) = (DataLink::from(link), wrap(&ip));
        assert!(matches!(unpack(link, &whole), Some(Packet::Datagram(_))), "{name}");
        for at in 0..whole.len() {
            assert!(unpack(link, &whole[..at]).is_some(), "{name} {at}");
            for value in [0, 0x45, 0x7F, 0xFF] {
                let mut changed = whole.clone();
                changed[at] = value;
                assert!(unpack(link, &changed).is_some(), "{name} {at}");
            }
        }
    }
}

#[test]
fn endless_headers_end() {
    let tags = [&ETHERNET[..], &words(&[0x8100, 1]).repeat(10_000)].concat();
    assert_eq!(unpack(DataLink::ETHERNET, &tags), Some(Packet::Other));
    let pktap = [12, 0, 0, 0, 1, 0, 0, 0, 2, 1, 0, 0].repeat(10_000);
    assert_eq!(unpack(DataLink::PKTAP, &pktap), Some(Packet::Other));
}
