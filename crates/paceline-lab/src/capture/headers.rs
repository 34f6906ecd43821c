// SPDX-License-Identifier: MIT OR Apache-2.0
//! Serialisation of packets: IPv4, then UDP or TCP.

use super::taps::Route;
use super::timestamps::Stamps;
use etherparse::{IpDscp, IpEcn, IpNumber, Ipv4Header, TcpHeader, TcpOptionElement, UdpHeader};
use paceline_netsim::flow::Datagram;
use paceline_netsim::flow::tcp::{Segment, TcpConfig};
use paceline_netsim::records::{PacketClass, TappedPacket};
use paceline_units::{DataSize, Ecn};

/// The usual initial value. Simulated hops do not decrement it.
const TIME_TO_LIVE: u8 = 64;

/// Window scale of an unlimited window: the maximum (RFC 7323, section 2.3).
const SHIFT_MAX: u8 = 14;

const FITS: &str = "packets are shorter than 64 KB";

/// Returns the bytes of a media packet, as far as they exist, and its length. The UDP checksum is 0, not computed (RFC
/// 768), because it covers payload that does not exist. Padding includes the last octet, which contains its length (RFC
/// 3550, section 5.1) and which parsers read.
pub(super) fn datagram(packet: &TappedPacket<'_>, route: Route, datagram: &Datagram) -> (Vec<u8>, u32) {
    let payload = (packet.packet.size - DataSize::from_bytes(20 + 8)).as_bytes() as usize;
    let udp = UdpHeader::without_ipv4_checksum(route.source.1, route.destination.1, payload).expect(FITS);
    let ip = ip(packet, route, IpNumber::UDP, UdpHeader::LEN + payload);
    let mut bytes = [&ip.to_bytes()[..], &udp.to_bytes(), datagram.bytes()].concat();
    if packet.packet.class == PacketClass::Padding {
        let padding = payload - datagram.bytes().len();
        bytes.resize(ip.total_len.into(), 0);
        bytes[usize::from(ip.total_len) - 1] = padding as u8;
    }
    (bytes, ip.total_len.into())
}

/// Returns the headers of a TCP segment, and its length. The checksum is correct for data of zeros.
pub(super) fn segment(
    packet: &TappedPacket<'_>,
    route: Route,
    segment: &Segment,
    stamps: Stamps,
    config: &TcpConfig,
) -> (Vec<u8>, u32) {
    let (shift, window) = window(config.window());
    // A SYN's window is not scaled (RFC 7323, section 2.2).
    let window =
        if segment.flags.syn { window.checked_shl(shift.into()).map_or(u16::MAX, narrow) } else { narrow(window) };
    let mut tcp = TcpHeader::new(route.source.1, route.destination.1, segment.sequence as u32, window);
    tcp.syn = segment.flags.syn;
    tcp.ack = segment.flags.ack;
    (tcp.ece, tcp.cwr) = (segment.ece, segment.cwr);
    // A segment below the maximum size is the last of the data to send.
    tcp.psh = (1..config.segment.as_bytes()).contains(&segment.payload.into());
    if segment.flags.ack {
        tcp.acknowledgment_number = segment.acknowledgment as u32;
    }
    tcp.set_options(&options(segment, stamps, shift, config)).expect("three SACK blocks and timestamps fit");
    let payload = vec![0; segment.payload as usize];
    let ip = ip(packet, route, IpNumber::TCP, tcp.header_len() + payload.len());
    tcp.checksum = tcp.calc_checksum_ipv4(&ip, &payload).expect(FITS);
    ([&ip.to_bytes()[..], &tcp.to_bytes()].concat(), ip.total_len.into())
}

/// Returns the options in the order and with the padding of Linux.
fn options(segment: &Segment, stamps: Stamps, shift: u8, config: &TcpConfig) -> Vec<TcpOptionElement> {
    use TcpOptionElement::{
        MaximumSegmentSize, Noop, SelectiveAcknowledgement, SelectiveAcknowledgementPermitted, Timestamp, WindowScale,
    };
    let times = Timestamp(stamps.value, stamps.echo);
    if segment.flags.syn {
        // The option's size counts the timestamps, which the segment's size does not (RFC 6691).
        let most = config.segment.as_bytes() as u16 + 12;
        let scale = WindowScale(shift);
        return vec![MaximumSegmentSize(most), SelectiveAcknowledgementPermitted, times, Noop, scale];
    }
    let mut options = vec![Noop, Noop, times];
    let mut blocks = segment.sack.iter().map(|(start, end)| (start as u32, end as u32));
    if let Some(first) = blocks.next() {
        options.extend([Noop, Noop, SelectiveAcknowledgement(first, [blocks.next(), blocks.next(), None])]);
    }
    options
}

/// Returns scale and scaled value of a window, rounded up.
fn window(receive: DataSize) -> (u8, u64) {
    let (most, bytes) = (u64::from(u16::MAX), receive.as_bytes());
    let scaled = |shift: &u8| bytes.div_ceil(1 << shift);
    let shift = (0..SHIFT_MAX).find(|shift| scaled(shift) <= most).unwrap_or(SHIFT_MAX);
    (shift, scaled(&shift).min(most))
}

fn narrow(window: u64) -> u16 {
    window.min(u16::MAX.into()) as u16
}

fn ip(packet: &TappedPacket<'_>, route: Route, protocol: IpNumber, payload: usize) -> Ipv4Header {
    let payload = u16::try_from(payload).expect(FITS);
    let mut ip = Ipv4Header::new(payload, TIME_TO_LIVE, protocol, route.source.0, route.destination.0).expect(FITS);
    ip.identification = packet.packet.packet as u16;
    ip.ecn = match packet.ecn {
        Ecn::NotEct => IpEcn::NotEct,
        Ecn::Ect1 => IpEcn::Ect1,
        Ecn::Ect0 => IpEcn::Ect0,
        Ecn::Ce => IpEcn::CongestionExperienced,
    };
    ip.dscp = IpDscp::try_new(packet.dscp.bits()).expect("six bits");
    ip.header_checksum = ip.calc_header_checksum();
    debug_assert_eq!(u64::from(ip.total_len), packet.packet.size.as_bytes(), "sizes include the headers");
    ip
}
