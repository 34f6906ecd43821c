//! Captures with other addresses, and of packets only the headers of RTP and RTCP. What only looks like RTP, such as a DNS query
//! whose id begins so, is left out: a first pass finds the streams and their routes.

use super::write_error;
use crate::error::ReadError;
use crate::readers::capture::{JUMP, PACKETS_MIN, ROUTES_MAX, STREAMS_MAX, rises};
use crate::readers::datagram::{Datagram, FORMAT, Route, each_datagram};
use paceline_wire::{ExtensionIds, RtpHeader, is_rtcp};
use pcap_file::DataLink;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption, InterfaceTsResolution,
};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::IpAddr;
use std::path::Path;

/// Types of RTCP that name people: source description, and goodbye with its reason.
const NAMES: [u8; 2] = [202, 203];
/// Types of RTCP that are copied: requests for pictures and packets, reports, feedback. Of others only the header stays.
const COPIED: [u8; 7] = [192, 193, 200, 201, 205, 206, 207];
/// The header of an RTCP packet, in clear in SRTCP too.
const RTCP_HEADER: usize = 8;

type Open<'a> = &'a mut dyn FnMut() -> Result<Box<dyn Read>, ReadError>;

/// Rewrites a capture of any link type as pcapng with IP packets. `open` is called twice. Returns how many packets it has, and how many are left out.
pub(super) fn copy(open: Open<'_>, output: &mut dyn Write, to: &Path) -> Result<(u64, u64), ReadError> {
    let mut streams = Streams::default();
    each_datagram(open()?, &mut |datagram| streams.add(datagram))?;
    let routes = streams.routes();
    let mut copy = Copy { routes, writer: None, interfaces: 0, addresses: BTreeMap::new(), kept: 0 };
    let mut result = Ok(());
    let pass = each_datagram(open()?, &mut |datagram| {
        if result.is_ok() {
            result = copy.datagram(datagram, output).map_err(write_error(to));
        }
    })?;
    result?;
    if copy.kept == 0 {
        let problem = "no RTP streams in it, so nothing of it can be kept".to_owned();
        return Err(ReadError::Empty { format: FORMAT, problem });
    }
    // A segment of TCP may have several messages.
    Ok((copy.kept, pass.packets.saturating_sub(copy.kept)))
}

/// What a stream of one SSRC at one interface looks like.
#[derive(Default)]
struct Stream {
    packets: u32,
    /// Sequence numbers that rose by little.
    steps: u32,
    highest: u16,
    routes: BTreeSet<Route>,
}

/// Streams by SSRC and interface.
#[derive(Default)]
struct Streams(BTreeMap<(u32, u32), Stream>);

impl Streams {
    fn add(&mut self, datagram: &Datagram<'_>) {
        let Some((header, _)) = rtp(datagram.payload) else { return };
        let key = (header.ssrc, datagram.interface);
        if self.0.len() >= STREAMS_MAX && !self.0.contains_key(&key) {
            return;
        }
        let stream = self.0.entry(key).or_default();
        let step = header.sequence.wrapping_sub(stream.highest);
        stream.steps += u32::from(stream.packets > 0 && (1..=JUMP).contains(&step));
        if stream.packets == 0 || step < 1 << 15 {
            stream.highest = header.sequence;
        }
        stream.packets += 1;
        if stream.routes.len() < ROUTES_MAX {
            stream.routes.insert(datagram.route);
        }
    }

    /// Returns the interfaces and routes of streams. In a stream, of which there may be a copy, sequence numbers rise.
    fn routes(&self) -> BTreeSet<(u32, Route)> {
        let streams =
            self.0.iter().filter(|(_, stream)| stream.packets >= PACKETS_MIN && rises(stream.packets, stream.steps));
        let routes =
            streams.flat_map(|((_, interface), stream)| stream.routes.iter().map(|route| (*interface, *route)));
        routes.collect()
    }
}

struct Copy {
    /// Where streams are.
    routes: BTreeSet<(u32, Route)>,
    writer: Option<PcapNgWriter<Vec<u8>>>,
    interfaces: u32,
    /// Addresses by order of appearance.
    addresses: BTreeMap<IpAddr, u32>,
    kept: u64,
}

impl Copy {
    /// Returns what is kept of a payload: of streams, and of RTCP on their routes in both directions.
    fn payload(&self, datagram: &Datagram<'_>) -> Option<Vec<u8>> {
        let (from, to) = datagram.route;
        let is_on = |route: Route| self.routes.contains(&(datagram.interface, route));
        let is_wanted = is_on((from, to)) || is_rtcp(datagram.payload) && is_on((to, from));
        is_wanted.then(|| kept(datagram.payload)).flatten()
    }

    fn datagram(&mut self, datagram: &Datagram<'_>, output: &mut dyn Write) -> std::io::Result<()> {
        let Some(payload) = self.payload(datagram) else { return Ok(()) };
        let data = packet(datagram, &payload, &mut self.addresses);
        let failed = |error: pcap_file::pcapng::PcapNgWriteError| std::io::Error::other(error.to_string());
        let mut writer = match self.writer.take() {
            Some(writer) => writer,
            None => PcapNgWriter::new(Vec::new()).map_err(failed)?,
        };
        while self.interfaces <= datagram.interface {
            self.interfaces += 1;
            let options = vec![InterfaceDescriptionOption::IfTsResol(InterfaceTsResolution::NANO)];
            let interface = InterfaceDescriptionBlock { linktype: DataLink::RAW, snaplen: 0, options };
            writer.write_pcapng_block(interface).map_err(failed)?;
        }
        let options = match datagram.direction {
            0 => Vec::new(),
            direction => vec![EnhancedPacketOption::Flags(direction)],
        };
        let block = EnhancedPacketBlock {
            interface_id: datagram.interface,
            timestamp: datagram.since,
            original_len: (datagram.bytes as u32).max(data.len() as u32),
            data: data.into(),
            options,
        };
        writer.write_pcapng_block(block).map_err(failed)?;
        self.kept += 1;
        output.write_all(writer.get_ref())?;
        writer.get_mut().clear();
        self.writer = Some(writer);
        Ok(())
    }
}

/// Returns the header of RTP, or RTCP without names; `None` for everything else.
fn kept(payload: &[u8]) -> Option<Vec<u8>> {
    if payload.first()? >> 6 != 2 {
        return None;
    }
    if is_rtcp(payload) {
        return Some(without_names(payload).unwrap_or_else(|| header_only(payload)));
    }
    let (_, header) = rtp(payload)?;
    Some(payload[..header.min(payload.len())].to_vec())
}

/// Returns the header of RTP and its length.
fn rtp(payload: &[u8]) -> Option<(RtpHeader, usize)> {
    let none = ExtensionIds { abs_send_time: 0, transport_sequence: 0 };
    if is_rtcp(payload) { None } else { RtpHeader::parse(payload, &none).ok() }
}

/// Returns RTCP with zeros after its first header: it is encrypted or cut.
fn header_only(packet: &[u8]) -> Vec<u8> {
    let mut out = packet.to_vec();
    out.iter_mut().skip(RTCP_HEADER).for_each(|byte| *byte = 0);
    out
}

/// Returns a compound without the packets that have names. `None`: it is no compound in clear.
fn without_names(compound: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut rest = compound;
    while !rest.is_empty() {
        let [first, kind, high, low, ..] = *rest else { return None };
        let length = 4 * (usize::from(u16::from_be_bytes([high, low])) + 1);
        if first >> 6 != 2 || !(192..=223).contains(&kind) || length > rest.len() {
            return None;
        }
        let (packet, after) = rest.split_at(length);
        match (COPIED.contains(&kind), NAMES.contains(&kind)) {
            (true, _) => out.extend_from_slice(packet),
            (false, true) => {}
            (false, false) => out.extend(header_only(packet)),
        }
        rest = after;
    }
    Some(out)
}

/// Builds IP and UDP headers. Their lengths are those of the whole packet; checksums would be those of the old addresses.
fn packet(datagram: &Datagram<'_>, payload: &[u8], addresses: &mut BTreeMap<IpAddr, u32>) -> Vec<u8> {
    let ((from, from_port), (to, to_port)) = datagram.route;
    let mut number = |address: IpAddr| {
        let next = addresses.len() as u32 + 1;
        *addresses.entry(address).or_insert(next)
    };
    let (from_number, to_number) = (number(from), number(to));
    let bytes = datagram.bytes.clamp(28, 0xFFFF) as u16;
    let mut out = Vec::with_capacity(48 + payload.len());
    let udp_length = if from.is_ipv4() {
        out.extend_from_slice(&[0x45, 0]);
        out.extend_from_slice(&bytes.to_be_bytes());
        out.extend_from_slice(&[0, 0, 0, 0, 64, 17, 0, 0]);
        for number in [from_number, to_number] {
            out.extend_from_slice(&(0x0A00_0000 | number & 0x00FF_FFFF).to_be_bytes());
        }
        bytes - 20
    } else {
        let length = bytes.saturating_sub(40).max(8);
        out.extend_from_slice(&[0x60, 0, 0, 0]);
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(&[17, 64]);
        for number in [from_number, to_number] {
            // Documentation prefix (RFC 3849).
            out.extend_from_slice(&(0x2001_0DB8_u128 << 96 | u128::from(number)).to_be_bytes());
        }
        length
    };
    for value in [from_port, to_port, udp_length, 0] {
        out.extend_from_slice(&value.to_be_bytes());
    }
    out.extend_from_slice(payload);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::readers::read_bytes;

    /// Builds the IP packet of an RTP packet.
    type IpBuilder = fn(&[u8]) -> Vec<u8>;

    /// A classic pcap with 60 RTP packets in 3 s.
    fn pcap(link: u32, link_header: &[u8], ip: IpBuilder) -> Vec<u8> {
        let mut file = [0xA1B2_C3D4_u32.to_le_bytes(), 0x0004_0002_u32.to_le_bytes()].concat();
        for value in [0, 0, 65535, link] {
            file.extend_from_slice(&u32::to_le_bytes(value));
        }
        for index in 0..60u32 {
            let mut rtp = vec![0x80, 96, 0, index as u8, 0, 0, 0, 0, 0, 0, 0, 7];
            rtp.extend_from_slice(&[0x55; 400]);
            let data = [link_header, &ip(&rtp)].concat();
            let length = data.len() as u32;
            for value in [1_700_000_000 + index / 20, index % 20 * 50_000, length, length] {
                file.extend_from_slice(&u32::to_le_bytes(value));
            }
            file.extend_from_slice(&data);
        }
        file
    }

    fn udp(rtp: &[u8]) -> Vec<u8> {
        let length = (8 + rtp.len()) as u16;
        [5000u16, 6000, length, 0].into_iter().flat_map(u16::to_be_bytes).chain(rtp.iter().copied()).collect()
    }

    fn v4(rtp: &[u8]) -> Vec<u8> {
        let length = (28 + rtp.len()) as u16;
        let [high, low] = length.to_be_bytes();
        let header = [0x45, 0, high, low, 0, 0, 0, 0, 64, 17, 0, 0, 192, 168, 1, 118, 198, 51, 100, 7];
        [&header[..], &udp(rtp)].concat()
    }

    fn v6(rtp: &[u8]) -> Vec<u8> {
        let [high, low] = ((8 + rtp.len()) as u16).to_be_bytes();
        let header = [0x60, 0, 0, 0, high, low, 17, 64];
        [&header[..], &[0xFD; 16], &[0xFC; 16], &udp(rtp)].concat()
    }

    fn redacted(file: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        copy(&mut || Ok(Box::new(std::io::Cursor::new(file.to_vec()))), &mut out, Path::new("")).unwrap();
        out
    }

    /// Adds a packet to a file of raw IP.
    fn push(file: &mut Vec<u8>, data: &[u8]) {
        let length = data.len() as u32;
        for value in [1_700_000_003, 0, length, length] {
            file.extend_from_slice(&u32::to_le_bytes(value));
        }
        file.extend_from_slice(data);
    }

    #[test]
    fn queries_of_names_are_left_out_although_they_look_like_rtp() {
        let mut file = pcap(101, &[], v4);
        let calls = file.clone();
        for id in [0x80C5u16, 0x8F12] {
            // 40 of them have one SSRC, but their sequence numbers do not rise.
            for _ in 0..40 {
                let mut query = id.to_be_bytes().to_vec();
                query.extend_from_slice(&[1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 6]);
                query.extend_from_slice(b"secret\x07example\x03org\0\0\x01\0\x01");
                query.extend_from_slice(&[0; 60]);
                let mut packet = v4(&query);
                packet[22..24].copy_from_slice(&53u16.to_be_bytes());
                push(&mut file, &packet);
            }
        }
        let out = redacted(&file);
        assert!(!out.windows(6).any(|window| window == b"secret"));
        assert_eq!(out, redacted(&calls));
        assert_eq!(read_bytes(&out).unwrap().flows.len(), 1);
    }

    #[test]
    fn reports_stay_on_the_routes_of_streams_and_in_reverse() {
        let report = [0x80, 201, 0, 1, 0, 0, 0, 99];
        let mut file = pcap(101, &[], v4);
        let mut packet = v4(&report);
        let contains = |file: &[u8]| redacted(file).windows(8).any(|window| window == report);
        // From another port.
        packet[20..22].copy_from_slice(&7000u16.to_be_bytes());
        push(&mut file, &packet);
        assert!(!contains(&file));
        let (from, to) = (packet[12..16].to_vec(), packet[16..20].to_vec());
        packet[12..24].copy_from_slice(&[&to[..], &from, &6000u16.to_be_bytes(), &5000u16.to_be_bytes()].concat());
        push(&mut file, &packet);
        assert!(contains(&file));
    }

    #[test]
    fn captures_of_every_link_type_are_the_same_call_without_their_addresses() {
        let ethernet = |kind: [u8; 2]| [&[2; 12][..], &kind].concat();
        let vlan = [&[2; 12][..], &[0x81, 0, 0, 5, 8, 0]].concat();
        let cooked = [&[0, 4, 0, 1, 0, 6, 2, 2, 2, 2, 2, 2, 0, 0][..], &[8, 0]].concat();
        let cases: [(u32, Vec<u8>, IpBuilder); 6] = [
            (1, ethernet([8, 0]), v4),
            (1, ethernet([0x86, 0xDD]), v6),
            (1, vlan, v4),
            (113, cooked, v4),
            (0, vec![2, 0, 0, 0], v4),
            (101, Vec::new(), v6),
        ];
        for (link, header, ip) in cases {
            let file = pcap(link, &header, ip);
            let out = redacted(&file);
            assert_eq!(read_bytes(&out).unwrap(), read_bytes(&file).unwrap(), "link type {link}");
            for secret in [&[192, 168, 1, 118][..], &[0xFD; 16], &[0xFC; 16], &[0x55; 8], &[2; 6]] {
                assert!(!out.windows(secret.len()).any(|window| window == secret), "link type {link}: {secret:?}");
            }
            assert!(out.len() < file.len() / 2);
        }
    }

    #[test]
    fn names_in_rtcp_are_left_out_and_reports_stay() {
        let report = [0x80, 201, 0, 1, 0, 0, 0, 7];
        let names = [0x81, 202, 0, 3, 0, 0, 0, 7, 1, 4, b'n', b'a', b'm', b'e', 0, 0];
        assert_eq!(kept(&[&report[..], &names].concat()).unwrap(), report);
        // SRTCP: what follows the first header is encrypted.
        let encrypted = [&report[..], &[0x13; 14]].concat();
        assert_eq!(kept(&encrypted).unwrap(), [&report[..], &[0; 14]].concat());
        // Cut after the name, or in clear with the trailer of SRTCP.
        for end in [&[][..], &[0x80, 0, 0, 1, 7, 7, 7, 7]] {
            let compound = [&report[..], &names[..names.len() - 2], end].concat();
            assert_eq!(kept(&compound).unwrap(), [&report[..], &vec![0; compound.len() - 8]].concat());
        }
        let app = [0x80, 204, 0, 3, 0, 0, 0, 7, b'n', b'a', b'm', b'e', 1, 2, 3, 4];
        assert_eq!(kept(&[&report[..], &app].concat()).unwrap(), [&report[..], &app[..8], &[0; 8]].concat());
        assert_eq!(kept(&[0, 1, 0, 0]), None);
    }

    #[test]
    fn a_capture_without_rtp_is_an_error() {
        let file = pcap(101, &[], |_| vec![0; 40]);
        let open = &mut || -> Result<Box<dyn Read>, ReadError> { Ok(Box::new(std::io::Cursor::new(file.clone()))) };
        let error = copy(open, &mut Vec::new(), Path::new("")).unwrap_err();
        assert!(error.to_string().contains("no RTP streams"), "{error}");
    }
}
