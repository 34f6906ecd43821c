// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parsing of IP packets, and rewriting of their ECN field.

use etherparse::{IpEcn, IpNumber, Ipv4HeaderSlice, TcpHeaderSlice, UdpHeaderSlice};
use paceline_units::{Dscp, Ecn};

/// The transport header of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport<'a> {
    /// A UDP datagram.
    Udp {
        /// Source port.
        from: u16,
        /// Destination port.
        to: u16,
        payload: &'a [u8],
    },
    /// A TCP segment.
    Tcp {
        /// Source port.
        from: u16,
        /// Destination port.
        to: u16,
        /// Sequence number of the first byte.
        sequence: u32,
        /// Length in sequence numbers; SYN and FIN count as one each.
        length: u32,
        /// Whether SYN is set.
        syn: bool,
    },
}

impl<'a> Transport<'a> {
    /// Parses a packet; `None` if it is not IPv4, is truncated, is a fragment, or is neither UDP nor TCP.
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        let ip = Ipv4HeaderSlice::from_slice(bytes).ok()?;
        let body = bytes.get(ip.slice().len()..ip.total_len() as usize)?;
        if ip.is_fragmenting_payload() {
            return None;
        }
        Some(match ip.protocol() {
            IpNumber::UDP => {
                let udp = UdpHeaderSlice::from_slice(body).ok()?;
                let payload = &body[udp.slice().len()..];
                Transport::Udp { from: udp.source_port(), to: udp.destination_port(), payload }
            }
            IpNumber::TCP => {
                let tcp = TcpHeaderSlice::from_slice(body).ok()?;
                let data = (body.len() - tcp.slice().len()) as u32;
                let length = data + tcp.syn() as u32 + tcp.fin() as u32;
                let (from, to) = (tcp.source_port(), tcp.destination_port());
                Transport::Tcp { from, to, sequence: tcp.sequence_number(), length, syn: tcp.syn() }
            }
            _ => return None,
        })
    }
}

/// Returns the ECN field of a packet (RFC 3168, section 5); [`Ecn::NotEct`] if it is neither IPv4 nor IPv6.
#[inline]
pub fn ecn(packet: &[u8]) -> Ecn {
    match packet {
        [first, second, ..] if first >> 4 == 4 => Ecn::from_bits(second & 3),
        // The traffic class is between the version, 4 bits, and the flow label, 20 bits (RFC 8200, section 3).
        [first, second, ..] if first >> 4 == 6 => Ecn::from_bits(second >> 4 & 3),
        _ => Ecn::NotEct,
    }
}

/// Returns the DSCP of a packet (RFC 2474, section 3); [`Dscp::DEFAULT`] if it is neither IPv4 nor IPv6.
#[inline]
pub fn dscp(packet: &[u8]) -> Dscp {
    match packet {
        [first, second, ..] if first >> 4 == 4 => Dscp::from_bits(second >> 2),
        [first, second, ..] if first >> 4 == 6 => Dscp::from_bits((first & 0xf) << 2 | second >> 6),
        _ => Dscp::DEFAULT,
    }
}

/// Sets the ECN field of a packet, and updates the header checksum of IPv4.
pub fn set_ecn(packet: &mut [u8], ecn: Ecn) {
    if self::ecn(packet) == ecn {
        return;
    }
    if let [first, second, ..] = packet
        && *first >> 4 == 6
    {
        *second = *second & !0x30 | (ecn as u8) << 4;
        return;
    }
    let Ok(ip) = Ipv4HeaderSlice::from_slice(packet) else { return };
    let mut header = ip.to_header();
    header.ecn = IpEcn::try_new(ecn as u8).expect("two bits");
    header.header_checksum = header.calc_header_checksum();
    let bytes = header.to_bytes();
    packet[..bytes.len()].copy_from_slice(&bytes);
}

/// Returns whether a packet is IPv6 to a multicast address. The kernel sends such packets by itself (neighbour and router
/// discovery, group membership).
pub fn is_ipv6_multicast(packet: &[u8]) -> bool {
    packet.first().is_some_and(|first| first >> 4 == 6) && packet.get(24) == Some(&0xff)
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::PacketBuilder;

    fn built(builder: etherparse::PacketBuilderStep<etherparse::UdpHeader>, payload: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        builder.write(&mut bytes, payload).unwrap();
        bytes
    }

    #[test]
    fn parses_and_marks_datagrams() {
        let builder = PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).udp(1234, 5678);
        let mut bytes = built(builder, b"payload");
        let transport = Transport::Udp { from: 1234, to: 5678, payload: b"payload" };
        assert_eq!((Transport::parse(&bytes), ecn(&bytes)), (Some(transport), Ecn::NotEct));
        for field in [Ecn::Ect0, Ecn::Ect1, Ecn::Ce, Ecn::NotEct] {
            set_ecn(&mut bytes, field);
            let ip = Ipv4HeaderSlice::from_slice(&bytes).unwrap();
            assert_eq!(ip.header_checksum(), ip.to_header().calc_header_checksum());
            assert_eq!(ecn(&bytes), field);
        }
        assert_eq!(dscp(&bytes), Dscp::DEFAULT);
        bytes[1] |= 34 << 2;
        assert_eq!((dscp(&bytes), ecn(&bytes)), ("AF41".parse().unwrap(), Ecn::NotEct));
        assert_eq!((dscp(&bytes[..1]), dscp(&[0x50, 0xff])), (Dscp::DEFAULT, Dscp::DEFAULT));
        assert!((0..bytes.len()).all(|n| Transport::parse(&bytes[..n]).is_none()), "truncated packets are rejected");
    }

    #[test]
    fn marks_ipv6_without_a_change_of_other_fields() {
        let builder = || PacketBuilder::ipv6([0xfd; 16], [0xfe; 16], 64);
        let mut bytes = Vec::new();
        builder().udp(1234, 5678).write(&mut bytes, b"payload").unwrap();
        // Traffic class 0xb8 (expedited forwarding) and flow label 0xabcde.
        bytes[..4].copy_from_slice(&[0x6b, 0x8a, 0xbc, 0xde]);
        assert_eq!(dscp(&bytes), "EF".parse().unwrap());
        let before = bytes.clone();
        for field in [Ecn::Ect0, Ecn::Ect1, Ecn::Ce, Ecn::NotEct] {
            set_ecn(&mut bytes, field);
            assert_eq!(ecn(&bytes), field);
            assert_eq!(bytes[1], 0x8a | (field as u8) << 4);
        }
        assert_eq!(bytes, before);
        assert!(!is_ipv6_multicast(&bytes));
        bytes[24] = 0xff;
        assert!(is_ipv6_multicast(&bytes) && !is_ipv6_multicast(&bytes[..24]));
        assert_eq!((Transport::parse(&bytes), ecn(&[0x50, 0xff]), ecn(&[0x6f])), (None, Ecn::NotEct, Ecn::NotEct));
    }

    #[test]
    fn segment_length_includes_syn_and_fin() {
        let builder = || PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).tcp(40_000, 80, 77, 1000);
        let mut bytes = Vec::new();
        builder().syn().write(&mut bytes, &[]).unwrap();
        let of = |length, syn| Some(Transport::Tcp { from: 40_000, to: 80, sequence: 77, length, syn });
        assert_eq!(Transport::parse(&bytes), of(1, true));
        bytes.clear();
        builder().fin().write(&mut bytes, &[0; 100]).unwrap();
        assert_eq!(Transport::parse(&bytes), of(101, false));
    }
}
