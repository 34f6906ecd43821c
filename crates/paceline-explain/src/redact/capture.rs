//! Captures with other addresses, and of packets only the headers of RTP and RTCP.

use super::io_error;
use crate::error::ReadError;
use crate::readers::capture::FORMAT;
use crate::readers::datagram::{Datagram, each_datagram};
use paceline_wire::{ExtensionIds, RtpHeader, is_rtcp};
use pcap_file::DataLink;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption, InterfaceTsResolution,
};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::IpAddr;
use std::path::Path;

/// Types of RTCP that name people: source description, and goodbye with its reason.
const NAMES: [u8; 2] = [202, 203];

/// Rewrites a capture of any link type as pcapng with IP packets. Returns how many packets it has, and how many are left out.
pub(super) fn copy(input: Box<dyn Read>, output: &mut dyn Write, to: &Path) -> Result<(u64, u64), ReadError> {
    let mut copy = Copy { writer: None, interfaces: 0, addresses: BTreeMap::new(), kept: 0 };
    let mut result = Ok(());
    let pass = each_datagram(input, &mut |datagram| {
        if result.is_ok() {
            result = copy.datagram(datagram, output).map_err(io_error(to));
        }
    })?;
    result?;
    if copy.kept == 0 {
        let problem = "no RTP or RTCP in it, so nothing of it can be kept".to_owned();
        return Err(ReadError::Empty { format: FORMAT, problem });
    }
    Ok((copy.kept, pass.packets - copy.kept))
}

struct Copy {
    writer: Option<PcapNgWriter<Vec<u8>>>,
    interfaces: u32,
    /// Addresses by order of appearance.
    addresses: BTreeMap<IpAddr, u32>,
    kept: u64,
}

impl Copy {
    fn datagram(&mut self, datagram: &Datagram<'_>, output: &mut dyn Write) -> std::io::Result<()> {
        let Some(payload) = kept(datagram.payload) else { return Ok(()) };
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
        return Some(without_names(payload).unwrap_or_else(|| payload.to_vec()));
    }
    let none = ExtensionIds { abs_send_time: 0, transport_sequence: 0 };
    let (_, header) = RtpHeader::parse(payload, &none).ok()?;
    Some(payload[..header.min(payload.len())].to_vec())
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
        if !NAMES.contains(&kind) {
            out.extend_from_slice(packet);
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
    type Ip = fn(&[u8]) -> Vec<u8>;

    /// A classic pcap with 60 RTP packets in 3 s.
    fn pcap(link: u32, link_header: &[u8], ip: Ip) -> Vec<u8> {
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
        copy(Box::new(std::io::Cursor::new(file.to_vec())), &mut out, Path::new("")).unwrap();
        out
    }

    #[test]
    fn captures_of_every_link_type_are_the_same_call_without_their_addresses() {
        let ethernet = |kind: [u8; 2]| [&[2; 12][..], &kind].concat();
        let vlan = [&[2; 12][..], &[0x81, 0, 0, 5, 8, 0]].concat();
        let cooked = [&[0, 4, 0, 1, 0, 6, 2, 2, 2, 2, 2, 2, 0, 0][..], &[8, 0]].concat();
        let cases: [(u32, Vec<u8>, Ip); 6] = [
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
        assert_eq!(kept(&encrypted).unwrap(), encrypted);
        assert_eq!(kept(&[0, 1, 0, 0]), None);
    }

    #[test]
    fn a_capture_without_rtp_is_an_error() {
        let file = pcap(101, &[], |_| vec![0; 40]);
        let error = copy(Box::new(std::io::Cursor::new(file)), &mut Vec::new(), Path::new("")).unwrap_err();
        assert!(error.to_string().contains("no RTP or RTCP"), "{error}");
    }
}
