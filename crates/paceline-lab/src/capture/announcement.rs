// SPDX-License-Identifier: MIT OR Apache-2.0
//! Session announcements, from which Wireshark recognises RTP ports: a session description (SDP, RFC 8866) of each media flow at
//! each tap, in an announcement (SAP, RFC 2974) at time zero on a separate interface. No endpoint sends them.

use super::pending::Record;
use super::taps::{Direction, Taps};
use etherparse::{IpNumber, Ipv4Header, UdpHeader};
use paceline::FecScheme;
use paceline_netsim::flow::{MediaKind, StreamInfo};
use paceline_netsim::plan::{MediaPlan, Plan};
use paceline_units::{StreamId, Time};
use paceline_wire::ExtensionIds;
use std::net::Ipv4Addr;

/// Multicast group and port of announcements (RFC 2974, section 3).
const GROUP: [u8; 4] = [224, 2, 127, 254];
const PORT: u16 = 9875;
/// Header: version 1, IPv4, announcement, not encrypted, no authentication.
const SAP: [u8; 2] = [0x20, 0];

pub(super) fn all(plan: &Plan, taps: &Taps) -> Vec<Record> {
    let mut records = Vec::new();
    for (index, flow) in plan.flows.iter().enumerate() {
        let Some(media) = flow.media() else { continue };
        for (interface, tap) in taps.iter().enumerate().take(taps.session() as usize) {
            let (sender, receiver) = taps.ends(interface as u32, index as u16, 0);
            let text = description(&format!("{} at {}", flow.id, tap.name), media, sender.0, receiver);
            let number = 1 + (records.len() % 0xFFFF) as u16; // 0 means no hash (RFC 2974)
            let comment = format!("flow={} at={}", flow.id, tap.name.replace(' ', "-"));
            let bytes = packet(sender.0, number, &text);
            let size = bytes.len() as u32;
            records.push(Record {
                at: Time::ZERO,
                interface: taps.session(),
                direction: Direction::Out,
                bytes,
                size,
                comment,
            });
        }
    }
    records
}

fn description(name: &str, media: &MediaPlan, sender: [u8; 4], (address, port): ([u8; 4], u16)) -> String {
    let (sender, address) = (Ipv4Addr::from(sender), Ipv4Addr::from(address));
    // All streams share one port, so one media section describes them.
    let (mut types, mut maps) = (Vec::new(), String::new());
    let mut add = |payload_type: u8, map: &str| {
        if !types.contains(&payload_type) {
            types.push(payload_type);
            maps += &format!("a=rtpmap:{payload_type} {map}\r\n");
        }
    };
    for stream in &media.streams {
        let names = StreamInfo { id: StreamId(0), kind: stream.kind, ssrc: 0, rtx_ssrc: 0, clock_rate: 0 };
        match stream.kind {
            MediaKind::Video => {
                add(names.payload_type(), "VP8/90000");
                add(names.rtx_payload_type(), "rtx/90000");
                if media.protection.fec != FecScheme::None {
                    add(names.red_payload_type(), "red/90000");
                    add(names.red_rtx_payload_type(), "rtx/90000");
                    add(names.ulpfec_payload_type(), "ulpfec/90000");
                }
            }
            MediaKind::Audio => add(names.payload_type(), "opus/48000/2"),
        }
    }
    let types: Vec<String> = types.iter().map(u8::to_string).collect();
    let ids = ExtensionIds::default();
    format!(
        "v=0\r\no=paceline 1 1 IN IP4 {sender}\r\ns={name}\r\nc=IN IP4 {address}\r\nt=0 0\r\n\
         m=video {port} RTP/AVPF {}\r\na=rtcp-mux\r\n{maps}\
         a=extmap:{} http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time\r\n\
         a=extmap:{} http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01\r\n",
        types.join(" "),
        ids.abs_send_time,
        ids.transport_sequence,
    )
}

fn packet(source: [u8; 4], number: u16, description: &str) -> Vec<u8> {
    let mut sap = SAP.to_vec();
    sap.extend(number.to_be_bytes());
    sap.extend(source);
    sap.extend(b"application/sdp\0");
    sap.extend(description.as_bytes());
    let mut ip = Ipv4Header::new((UdpHeader::LEN + sap.len()) as u16, 1, IpNumber::UDP, source, GROUP)
        .expect("a description is shorter than 64 KB");
    ip.header_checksum = ip.calc_header_checksum();
    let udp = UdpHeader::with_ipv4_checksum(PORT, PORT, &ip, &sap).expect("a description is shorter than 64 KB");
    [&ip.to_bytes()[..], &udp.to_bytes(), &sap].concat()
}
