// SPDX-License-Identifier: MIT OR Apache-2.0
//! The headers around a datagram or a segment of TCP: of IP, and of links, tunnels and relays. Each kind is one function and one line of a table.
//!
//! Tunnels in UDP are recognised by their content, because their ports vary. The first byte of RTP (128 to 191, RFC 7983) fits none.

use etherparse::{Ipv6ExtensionSlice, LaxIpSlice};
use paceline_units::Ecn;
use pcap_file::DataLink;
use std::net::IpAddr;

/// Headers around a packet at most.
const LAYERS_MAX: usize = 24;

/// Addresses and ports of a packet.
pub type Route = ((IpAddr, u16), (IpAddr, u16));

/// A datagram without its headers. Only the first bytes of the payload may exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unpacked<'a> {
    pub route: Route,
    pub payload: &'a [u8],
    /// Size of the innermost IP packet, of all its fragments.
    pub bytes: u64,
    /// ECN field of the innermost IP packet.
    pub ecn: Ecn,
}

/// A segment of TCP without its headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment<'a> {
    pub route: Route,
    pub sequence: u32,
    pub acknowledgment: Option<u32>,
    pub syn: bool,
    /// Ends the connection: FIN or RST.
    pub ends: bool,
    /// What there is of the payload.
    pub payload: &'a [u8],
    /// Size of the payload.
    pub size: usize,
    /// Size of the headers of IP and TCP.
    pub headers: u64,
}

/// What a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet<'a> {
    /// A UDP datagram.
    Datagram(Unpacked<'a>),
    /// A segment of TCP.
    Segment(Segment<'a>),
    /// A packet of this tunnel, whose content is encrypted.
    Encrypted(&'static str),
    /// Anything else.
    Other,
}

/// The header with which bytes begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Header {
    Link(DataLink),
    Ethernet,
    EtherType(u16),
    Ppp,
    Ip,
    /// By the number of IANA.
    Protocol(u8),
    /// None: this is the payload of a datagram.
    Payload,
    /// None: the rest is encrypted.
    Encrypted(&'static str),
}

/// What follows a header.
type Next<'a> = Option<(Header, &'a [u8])>;
type Remove = for<'a> fn(&'a [u8]) -> Next<'a>;
/// With the size of the payload of UDP, of which only the first bytes may exist.
type RemoveInUdp = for<'a> fn(&'a [u8], usize) -> Next<'a>;

const LINKS: &[(DataLink, Remove)] = &[
    (DataLink::ETHERNET, |data| Some((Header::Ethernet, data))),
    (DataLink::RAW, |data| Some((Header::Ip, data))),
    (DataLink::IPV4, |data| Some((Header::Ip, data))),
    (DataLink::IPV6, |data| Some((Header::Ip, data))),
    // What RAW is called in files of OpenBSD, and of other BSDs.
    (DataLink::Unknown(14), |data| Some((Header::Ip, data))),
    (DataLink::Unknown(12), |data| Some((Header::Ip, data))),
    // The family of addresses first, in either byte order; its numbers vary.
    (DataLink::NULL, |data| Some((Header::Ip, data.get(4..)?))),
    (DataLink::LOOP, |data| Some((Header::Ip, data.get(4..)?))),
    (DataLink::ENC, |data| Some((Header::Ip, data.get(12..)?))),
    // Linux "cooked": the protocol in the last two of 16 bytes; version 2: in the first two of 20.
    (DataLink::LINUX_SLL, |data| ether_type(data, 14, 16)),
    (DataLink::LINUX_SLL2, |data| ether_type(data, 0, 20)),
    (DataLink::C_HDLC, |data| ether_type(data, 2, 4)),
    (DataLink::PPP, |data| Some((Header::Ppp, data))),
    (DataLink::PPP_HDLC, |data| Some((Header::Ppp, data))),
    (DataLink::PPP_PPPD, |data| Some((Header::Ppp, data.get(2..)?))),
    (DataLink::PPP_WITH_DIR, |data| Some((Header::Ppp, data.get(1..)?))),
    (DataLink::PPP_ETHER, pppoe),
    (DataLink::MPLS, mpls),
    (DataLink::PFLOG, |data| Some((Header::Ip, data.get(usize::from(*data.first()?).next_multiple_of(4)..)?))),
    (DataLink::PKTAP, pktap),
    // What PKTAP is called in files of older macOS.
    (DataLink::USER2, pktap),
    (DataLink::PPI, ppi),
    (DataLink::NFLOG, nflog),
    (DataLink::IEEE802_11, wifi),
    (DataLink::IEEE802_11_PRISM, |data| wifi(data.get(144..)?)),
    (DataLink::IEEE802_11_RADIOTAP, |data| wifi(data.get(usize::from(little(data, 2)?)..)?)),
];

const ETHER_TYPES: &[(u16, Remove)] = &[
    (0x0800, |data| Some((Header::Ip, data))),
    (0x86DD, |data| Some((Header::Ip, data))),
    // Tags of VLANs, also of providers.
    (0x8100, |data| ether_type(data, 2, 4)),
    (0x88A8, |data| ether_type(data, 2, 4)),
    (0x9100, |data| ether_type(data, 2, 4)),
    (0x9200, |data| ether_type(data, 2, 4)),
    (0x8847, mpls),
    (0x8848, mpls),
    (0x8864, pppoe),
    // Provider backbone bridges (IEEE 802.1ah), after the number of the service.
    (0x88E7, |data| Some((Header::Ethernet, data.get(4..)?))),
    (0x88E5, |data| Some((Header::Encrypted("MACsec"), data))),
    (0x880B, |data| Some((Header::Ppp, data))),
    (0x6558, |data| Some((Header::Ethernet, data))),
    // ERSPAN: version 2 has 8 bytes; version 3 has 12, and 8 more if its last bit is set.
    (0x88BE, |data| Some((Header::Ethernet, data.get(8..)?))),
    (0x22EB, |data| Some((Header::Ethernet, data.get(12 + 8 * usize::from(data.get(11)? & 1)..)?))),
];

const PROTOCOLS: &[(u8, Remove)] = &[
    (4, |data| Some((Header::Ip, data))),
    (41, |data| Some((Header::Ip, data))),
    (47, gre),
    (50, |data| Some((Header::Encrypted("IPsec"), data))),
    (51, authentication),
    // EtherIP (RFC 3378).
    (97, |data| Some((Header::Ethernet, data.get(2..)?))),
    (115, l2tp_in_ip),
    (137, mpls),
    (143, |data| Some((Header::Ethernet, data))),
];

const IN_UDP: &[RemoveInUdp] =
    &[turn_channel, turn_indication, vxlan, geneve, gtp, teredo, tzsp, l2tp, l2tp_in_udp, socks, ip_in_udp, wireguard];

/// Ports of tunnels whose packets have no mark: IPsec (RFC 3948), OpenVPN.
const ENCRYPTED_PORTS: [(u16, &str); 2] = [(4500, "IPsec"), (1194, "OpenVPN")];

/// Removes the headers around a datagram. `None`: the link type is not read.
pub fn unpack(link: DataLink, data: &[u8]) -> Option<Packet<'_>> {
    LINKS.iter().find(|(known, _)| *known == link)?;
    Some(inside(link, data).unwrap_or(Packet::Other))
}

fn inside(link: DataLink, data: &[u8]) -> Option<Packet<'_>> {
    let mut ends: Option<Ends> = None;
    let mut datagram: Option<Unpacked<'_>> = None;
    let (mut header, mut data) = (Header::Link(link), data);
    for _ in 0..LAYERS_MAX {
        (header, data) = match header {
            Header::Link(link) => find(LINKS, link)?(data)?,
            Header::Ethernet => ethernet(data)?,
            Header::EtherType(number) => find(ETHER_TYPES, number)?(data)?,
            Header::Ppp => ppp(data)?,
            Header::Ip => {
                let (found, protocol, payload) = ip(data)?;
                (ends, datagram) = (Some(found), None);
                (Header::Protocol(protocol), payload)
            }
            Header::Protocol(UDP) => {
                let (found, size) = udp(ends?, data)?;
                datagram = Some(found);
                let inner = IN_UDP.iter().find_map(|remove| remove(found.payload, size));
                let encrypted = || encrypted_by_port(&found).map(|tunnel| (Header::Encrypted(tunnel), found.payload));
                inner.or_else(encrypted).unwrap_or((Header::Payload, found.payload))
            }
            Header::Protocol(TCP) => return Some(Packet::Segment(tcp(ends?, data)?)),
            Header::Protocol(number) => find(PROTOCOLS, number)?(data)?,
            Header::Payload => return Some(Packet::Datagram(Unpacked { payload: data, ..datagram? })),
            Header::Encrypted(tunnel) => return Some(Packet::Encrypted(tunnel)),
        };
    }
    None
}

fn find<T: PartialEq>(table: &[(T, Remove)], wanted: T) -> Option<Remove> {
    table.iter().find(|(known, _)| *known == wanted).map(|(_, remove)| *remove)
}

/// Returns two bytes as a number.
pub(super) fn big(data: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*data.get(at..)?.first_chunk()?))
}

fn little(data: &[u8], at: usize) -> Option<u16> {
    big(data, at).map(u16::swap_bytes)
}

/// Reads the type of what begins at `from`.
fn ether_type(data: &[u8], at: usize, from: usize) -> Next<'_> {
    Some((Header::EtherType(big(data, at)?), data.get(from..)?))
}

/// Ethernet II, or IEEE 802.3 with a length in place of the type.
fn ethernet(data: &[u8]) -> Next<'_> {
    if big(data, 12)? < 0x0600 { snap(data.get(14..)?) } else { ether_type(data, 12, 14) }
}

/// LLC with SNAP (IEEE 802.2).
fn snap(data: &[u8]) -> Next<'_> {
    data.starts_with(&[0xAA, 0xAA, 3, 0, 0, 0]).then(|| ether_type(data, 6, 8)).flatten()
}

/// PPP (RFC 1661), with or without the address and the control of HDLC. Numbers of protocols may have one byte.
fn ppp(data: &[u8]) -> Next<'_> {
    let data = data.strip_prefix(&[0xFF, 3]).unwrap_or(data);
    let short = data.first()? & 1 == 1;
    let (protocol, rest) = if short { (u16::from(data[0]), &data[1..]) } else { (big(data, 0)?, data.get(2..)?) };
    match protocol {
        0x0021 | 0x0057 => Some((Header::Ip, rest)),
        0x0281 => Some((Header::EtherType(0x8847), rest)),
        _ => None,
    }
}

/// PPPoE (RFC 2516): version, code 0 for data, session, length.
fn pppoe(data: &[u8]) -> Next<'_> {
    data.starts_with(&[0x11, 0]).then_some(())?;
    Some((Header::Ppp, data.get(6..)?))
}

/// A stack of labels (RFC 3032), and IP or Ethernet, perhaps after a control word that begins with 0 (RFC 4448).
fn mpls(data: &[u8]) -> Next<'_> {
    let bottom = data.chunks_exact(4).take(LAYERS_MAX).position(|label| label[2] & 1 == 1)?;
    let rest = data.get(4 * (bottom + 1)..)?;
    match rest.first()? >> 4 {
        4 | 6 => Some((Header::Ip, rest)),
        0 if rest.starts_with(&[0, 0]) => Some((Header::Ethernet, rest.get(4..)?)),
        _ => Some((Header::Ethernet, rest)),
    }
}

/// The header of `tcpdump -i pktap` (Darwin): its length, a type, and the link type of the packet.
fn pktap(data: &[u8]) -> Next<'_> {
    let word = |at: usize| Some(u32::from_le_bytes(*data.get(at..)?.first_chunk()?));
    Some((Header::Link(DataLink::from(word(8)?)), data.get(word(0)? as usize..)?))
}

/// Per-packet information: its length and the link type of the packet.
fn ppi(data: &[u8]) -> Next<'_> {
    let link = u32::from_le_bytes(*data.get(4..)?.first_chunk()?);
    Some((Header::Link(DataLink::from(link)), data.get(usize::from(little(data, 2)?)..)?))
}

/// Packets of the Linux firewall: a header of 4 bytes, and values with length and type, of which 9 is the packet.
fn nflog(data: &[u8]) -> Next<'_> {
    let mut rest = data.get(4..)?;
    loop {
        let (length, kind) = (usize::from(little(rest, 0)?), little(rest, 2)?);
        if kind == 9 {
            return Some((Header::Ip, rest.get(4..)?));
        }
        rest = rest.get(length.max(4).next_multiple_of(4)..)?;
    }
}

/// Frames of IEEE 802.11 with data.
fn wifi(data: &[u8]) -> Next<'_> {
    let [kind, flags, ..] = *data else { return None };
    let (is_data, has_qos) = (kind & 0x0F == 8 && kind & 0x40 == 0, kind & 0x80 != 0);
    let length = 24 + if flags & 3 == 3 { 6 } else { 0 } + if has_qos { 2 } else { 0 };
    let length = length + if has_qos && flags & 0x80 != 0 { 4 } else { 0 };
    match (is_data, flags & 0x40 != 0) {
        (false, _) => None,
        (true, true) => Some((Header::Encrypted("Wi-Fi"), data)),
        (true, false) => snap(data.get(length..)?),
    }
}

/// GRE (RFC 2784, 2890), and its version 1 of PPTP (RFC 2637).
fn gre(data: &[u8]) -> Next<'_> {
    let (flags, kind) = (big(data, 0)?, big(data, 2)?);
    let words = [0x8000, 0x2000, 0x1000].into_iter().filter(|flag| flags & flag != 0).count();
    let words = words + usize::from(flags & 7 == 1 && flags & 0x80 != 0);
    // Routing fields (0x4000) are not in use; version 1 of ERSPAN has no header and no sequence number.
    let kind = if kind == 0x88BE && flags & 0x1000 == 0 { 0x6558 } else { kind };
    (flags & 0x4000 == 0).then_some((Header::EtherType(kind), data.get(4 + 4 * words..)?))
}

/// The authentication header of IPsec (RFC 4302), if it is not part of the header of IP.
fn authentication(data: &[u8]) -> Next<'_> {
    let [next, length, ..] = *data else { return None };
    Some((Header::Protocol(next), data.get(4 * (usize::from(length) + 2)..)?))
}

/// ChannelData of TURN (RFC 8656, section 12.4): number, length, and up to 3 bytes of padding.
fn turn_channel(data: &[u8], size: usize) -> Next<'_> {
    let length = usize::from(big(data, 2)?);
    let fits = (0x40..0x80).contains(data.first()?) && (4 + length..8 + length).contains(&size);
    fits.then_some((Header::Payload, &data[4..data.len().min(4 + length)]))
}

/// The attribute DATA of Send and Data indications of TURN (RFC 8656, sections 11.1 and 18.4).
fn turn_indication(data: &[u8], _: usize) -> Next<'_> {
    let is_indication = matches!(big(data, 0)?, 0x0016 | 0x0017) && data.get(4..8)? == STUN_COOKIE;
    let mut rest = data.get(20..).filter(|_| is_indication)?;
    loop {
        let (kind, length) = (big(rest, 0)?, usize::from(big(rest, 2)?));
        if kind == 0x0013 {
            return Some((Header::Payload, &rest[4..rest.len().min(4 + length)]));
        }
        rest = rest.get(4 + length.next_multiple_of(4)..)?;
    }
}

/// Returns the payload of ChannelData or of an indication of this size, of which only the first bytes may exist.
pub(super) fn in_turn(data: &[u8], size: usize) -> Option<&[u8]> {
    let (_, payload) = turn_channel(data, size).or_else(|| turn_indication(data, size))?;
    Some(payload)
}

/// The magic cookie of STUN (RFC 8489, section 5), in the bytes 4 to 7.
pub(super) const STUN_COOKIE: [u8; 4] = [0x21, 0x12, 0xA4, 0x42];

/// VXLAN (RFC 7348), and VXLAN-GPE, which names what follows.
fn vxlan(data: &[u8], _: usize) -> Next<'_> {
    let rest = data.get(8..)?;
    match *data {
        [8, 0, 0, 0, _, _, _, 0, ..] => Some((Header::Ethernet, rest)),
        // With a group policy, whose first byte may be that of RTP.
        [0x88, _, _, _, _, _, _, 0, ..] if is_ethernet(rest) => Some((Header::Ethernet, rest)),
        [12, 0, 0, 1 | 2, _, _, _, 0, ..] => Some((Header::Ip, rest)),
        [12, 0, 0, 3, _, _, _, 0, ..] => Some((Header::Ethernet, rest)),
        _ => None,
    }
}

/// Geneve (RFC 8926): the length of its options in words, the type of what follows.
fn geneve(data: &[u8], _: usize) -> Next<'_> {
    let (first, kind) = (*data.first()?, big(data, 2)?);
    let fits = first < 0x40 && data.get(1)? & 0x3F == 0 && data.get(7) == Some(&0);
    let fits = fits && matches!(kind, 0x6558 | 0x0800 | 0x86DD);
    fits.then_some((Header::EtherType(kind), data.get(8 + 4 * usize::from(first)..)?))
}

/// GTP-U (3GPP TS 29.281), version 1, with its extension headers.
fn gtp(data: &[u8], size: usize) -> Next<'_> {
    let (flags, length) = (*data.first()?, usize::from(big(data, 2)?));
    (flags >> 4 == 3 && data.get(1) == Some(&0xFF) && size == 8 + length).then_some(())?;
    let mut at = 8;
    if flags & 7 != 0 {
        at += 4;
        while flags & 4 != 0 && *data.get(at - 1)? != 0 {
            at += 4 * usize::from(*data.get(at)?).max(1);
        }
    }
    Some((Header::Ip, data.get(at..)?))
}

/// IPv6 in UDP of Teredo (RFC 4380), after an indication of the origin if there is one.
fn teredo(data: &[u8], size: usize) -> Next<'_> {
    let (data, size) = if data.starts_with(&[0, 0]) { (data.get(8..)?, size.checked_sub(8)?) } else { (data, size) };
    let fits = data.first()? >> 4 == 6 && size == 40 + usize::from(big(data, 4)?);
    fits.then_some((Header::Ip, data))
}

/// TaZmen Sniffer Protocol: version, type, the link 1 for Ethernet, and tags until the tag 1.
fn tzsp(data: &[u8], _: usize) -> Next<'_> {
    let mut rest = data.strip_prefix(&[1, 0, 0, 1])?;
    loop {
        match *rest.first()? {
            0 => rest = &rest[1..],
            1 => return Some((Header::Ethernet, &rest[1..])),
            _ => rest = rest.get(2 + usize::from(*rest.get(1)?)..)?,
        }
    }
}

/// L2TP version 2 (RFC 2661): data messages with PPP in the frame of HDLC.
fn l2tp(data: &[u8], size: usize) -> Next<'_> {
    let flags = big(data, 0)?;
    let has_length = flags & 0x4000 != 0;
    (flags & 0xB4FF == 2 && (!has_length || usize::from(big(data, 2)?) == size)).then_some(())?;
    let mut at = 6 + if has_length { 2 } else { 0 } + if flags & 0x0800 != 0 { 4 } else { 0 };
    if flags & 0x0200 != 0 {
        at += 2 + usize::from(big(data, at)?);
    }
    let rest = data.get(at..)?;
    rest.starts_with(&[0xFF, 3]).then_some((Header::Ppp, rest))
}

/// L2TP version 3 in IP (RFC 3931): a session, and a cookie of 0, 4 or 8 bytes.
fn l2tp_in_ip(data: &[u8]) -> Next<'_> {
    let frames = [4, 8, 12].into_iter().filter_map(|from| data.get(from..));
    Some((Header::Ethernet, frames.into_iter().find(|frame| is_ethernet(frame))?))
}

/// The same in UDP.
fn l2tp_in_udp(data: &[u8], _: usize) -> Next<'_> {
    l2tp_in_ip(data.strip_prefix(&[0, 3, 0, 0])?)
}

/// A packet of IP without a header (FOU), after GUE or a label of MPLS (RFC 7510), or after LISP (RFC 9300) or two labels: its length is
/// that of the rest. The first byte of LISP may be that of RTP: then the checksum of IPv4 must be right.
fn ip_in_udp(data: &[u8], size: usize) -> Next<'_> {
    [0, 4, 8].into_iter().find_map(|from| {
        let ip = data.get(from..)?;
        let (length, sum) = match ip.first()? >> 4 {
            4 => (usize::from(big(ip, 2)?), (0..10).map(|word| big(ip, 2 * word).map_or(0, u32::from)).sum::<u32>()),
            6 => (40 + usize::from(big(ip, 4)?), 0),
            _ => return None,
        };
        let is_right = sum > 0 && sum.is_multiple_of(0xFFFF);
        (from + length == size && (is_right || !looks_like_rtp(data))).then_some((Header::Ip, ip))
    })
}

/// Returns whether this is Ethernet with a known type.
fn is_ethernet(data: &[u8]) -> bool {
    big(data, 12).is_some_and(|kind| find(ETHER_TYPES, kind).is_some())
}

/// A request of a SOCKS proxy (RFC 1928, section 7) with RTP: no fragment, address of IPv4 or IPv6, port.
fn socks(data: &[u8], _: usize) -> Next<'_> {
    let rest = match *data {
        [0, 0, 0, 1, ..] => data.get(10..)?,
        [0, 0, 0, 4, ..] => data.get(22..)?,
        _ => return None,
    };
    looks_like_rtp(rest).then_some((Header::Payload, rest))
}

/// Returns whether the first byte is that of RTP or RTCP (RFC 7983).
fn looks_like_rtp(data: &[u8]) -> bool {
    data.first().is_some_and(|first| (128..192).contains(first))
}

/// Returns the tunnel to whose port a datagram belongs.
fn encrypted_by_port(datagram: &Unpacked<'_>) -> Option<&'static str> {
    let ((_, from), (_, to)) = datagram.route;
    let known = ENCRYPTED_PORTS.into_iter().find(|(port, _)| [from, to].contains(port));
    // Media may use the port, and so may its DTLS and STUN (RFC 7983).
    let is_media = datagram.payload.first().is_some_and(|first| matches!(first, 20..=63 | 128..=191))
        || datagram.payload.get(4..8) == Some(&STUN_COOKIE[..]);
    known.filter(|_| !is_media).map(|(_, tunnel)| tunnel)
}

/// Data of WireGuard: its type 4 with three reserved bytes, receiver, counter, and blocks of 16 bytes.
fn wireguard(data: &[u8], size: usize) -> Next<'_> {
    let fits = data.starts_with(&[4, 0, 0, 0]) && size >= 32 && size.is_multiple_of(16);
    fits.then_some((Header::Encrypted("WireGuard"), data))
}

/// Addresses and size of a packet of IP.
#[derive(Clone, Copy)]
struct Ends {
    from: IpAddr,
    to: IpAddr,
    bytes: u64,
    headers: u64,
    ecn: Ecn,
    is_fragment: bool,
}

const TCP: u8 = 6;
const UDP: u8 = 17;

/// Reads the header of IP. Fragments but the first have no header of what they contain.
fn ip(data: &[u8]) -> Option<(Ends, u8, &[u8])> {
    let (slice, _) = LaxIpSlice::from_slice(data).ok()?;
    let (bytes, offset) = match &slice {
        LaxIpSlice::Ipv4(ip) => (u64::from(ip.header().total_len()), ip.header().fragments_offset()),
        LaxIpSlice::Ipv6(ip) => {
            let offset = ip.extensions().clone().into_iter().find_map(|extension| match extension {
                Ipv6ExtensionSlice::Fragment(fragment) => Some(fragment.fragment_offset()),
                _ => None,
            });
            (40 + u64::from(ip.header().payload_length()), offset.unwrap_or_default())
        }
    };
    if offset.value() != 0 {
        return None;
    }
    let payload = slice.payload();
    let headers = (payload.payload.as_ptr() as usize).checked_sub(data.as_ptr() as usize)?;
    let (from, to, is_fragment) = (slice.source_addr(), slice.destination_addr(), slice.is_fragmenting_payload());
    // The last two bits of the second byte, or of the traffic class from the fifth bit on (RFC 3168, section 5).
    let second = *data.get(1)?;
    let ecn = Ecn::from_bits(if from.is_ipv4() { second } else { second >> 4 });
    let ends = Ends { from, to, bytes, headers: headers as u64, ecn, is_fragment };
    Some((ends, payload.ip_number.0, payload.payload))
}

/// Reads the header of UDP. Returns the size of the payload, too. The header has the length of all fragments.
fn udp(ends: Ends, data: &[u8]) -> Option<(Unpacked<'_>, usize)> {
    let (from, to, length) = (big(data, 0)?, big(data, 2)?, big(data, 4)?);
    let payload = data.get(8..)?;
    let size = match usize::from(length) {
        0 => payload.len(),
        length => length.checked_sub(8)?,
    };
    let bytes = if ends.is_fragment { ends.headers + u64::from(length) } else { ends.bytes };
    let route = ((ends.from, from), (ends.to, to));
    Some((Unpacked { route, payload: &payload[..payload.len().min(size)], bytes, ecn: ends.ecn }, size))
}

/// Reads the header of TCP (RFC 9293, section 3.1).
fn tcp(ends: Ends, data: &[u8]) -> Option<Segment<'_>> {
    let word = |at: usize| Some(u32::from_be_bytes(*data.get(at..)?.first_chunk()?));
    let (from, to, words, flags) = (big(data, 0)?, big(data, 2)?, *data.get(12)? >> 4, *data.get(13)?);
    let length = 4 * usize::from(words);
    let payload = data.get(length.max(20)..)?;
    let headers = ends.headers + length as u64;
    // Segments that the network card will divide may have no length of IP. A fragment is a part of a segment.
    let size = if ends.is_fragment { 0 } else { ends.bytes.saturating_sub(headers) as usize };
    Some(Segment {
        route: ((ends.from, from), (ends.to, to)),
        sequence: word(4)?,
        acknowledgment: if flags & 0x10 != 0 { word(8) } else { None },
        syn: flags & 2 != 0,
        ends: flags & 5 != 0,
        payload,
        size: size.max(payload.len()),
        headers,
    })
}

#[cfg(test)]
mod tests;
