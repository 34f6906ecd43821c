// SPDX-License-Identifier: MIT OR Apache-2.0
//! Captures with other addresses, and of packets only the headers of RTP and RTCP. What only looks like RTP, such as a DNS query
//! whose id begins so, is left out: a first pass finds the flows and their routes.

use super::packet::{rtcp, rtp_header};
use super::write_error;
use crate::error::ReadError;
use crate::readers::capture::{Routes, routes};
use crate::readers::datagram::{Datagram, FORMAT, each_datagram};
use paceline_wire::is_rtcp;
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

type Open<'a> = &'a mut dyn FnMut() -> Result<Box<dyn Read>, ReadError>;

/// Rewrites a capture of any link type as pcapng with IP packets. `open` is called twice. Returns how many packets it has, and how many are left out.
pub(super) fn copy(open: Open<'_>, output: &mut dyn Write, to: &Path) -> Result<(u64, u64), ReadError> {
    let routes = routes(open()?)?;
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

struct Copy {
    routes: Routes,
    writer: Option<PcapNgWriter<Vec<u8>>>,
    interfaces: u32,
    /// Addresses by order of appearance.
    addresses: BTreeMap<IpAddr, u32>,
    kept: u64,
}

impl Copy {
    /// Returns what is kept of a payload: of flows, and of RTCP on their routes in both directions.
    fn payload(&self, datagram: &Datagram<'_>) -> Option<Vec<u8>> {
        let (from, to) = datagram.route;
        let ids = |route| self.routes.get(&(datagram.interface, route));
        match is_rtcp(datagram.payload) {
            true if datagram.payload[0] >> 6 == 2 => {
                ids((from, to)).or(ids((to, from))).map(|_| rtcp(datagram.payload))
            }
            true => None,
            false => rtp_header(datagram.payload, ids((from, to))?),
        }
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

/// Builds IP and UDP headers. Their lengths are those of the whole packet; checksums would be those of the old addresses.
fn packet(datagram: &Datagram<'_>, payload: &[u8], addresses: &mut BTreeMap<IpAddr, u32>) -> Vec<u8> {
    let ((from, from_port), (to, to_port)) = datagram.route;
    let mut number = |address: IpAddr| {
        let next = addresses.len() as u32 + 1;
        *addresses.entry(address).or_insert(next)
    };
    let (from_number, to_number) = (number(from), number(to));
    // Reports may be longer than they were.
    let headers = if from.is_ipv4() { 28 } else { 48 };
    let bytes = datagram.bytes.max(headers + payload.len() as u64).min(0xFFFF) as u16;
    let mut out = Vec::with_capacity(48 + payload.len());
    let udp_length = if from.is_ipv4() {
        out.extend_from_slice(&[0x45, datagram.ecn as u8]);
        out.extend_from_slice(&bytes.to_be_bytes());
        out.extend_from_slice(&[0, 0, 0, 0, 64, 17, 0, 0]);
        for number in [from_number, to_number] {
            out.extend_from_slice(&(0x0A00_0000 | number & 0x00FF_FFFF).to_be_bytes());
        }
        bytes - 20
    } else {
        let length = bytes - 40;
        out.extend_from_slice(&[0x60, (datagram.ecn as u8) << 4, 0, 0]);
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
    use crate::readers::test_capture::{self, RAW, file, push, rtp, udp, words};

    /// Builds the IP packet of an RTP packet.
    type IpBuilder = fn(&[u8]) -> Vec<u8>;

    /// A capture with 60 RTP packets in 3 s.
    fn pcap(link: u32, link_header: &[u8], ip: IpBuilder) -> Vec<u8> {
        let packet = |index: u16| [link_header, &ip(&rtp(7, index, &[0x55; 400]))].concat();
        file(link, (0..60).map(|index| (50 * u32::from(index), packet(index))))
    }

    fn v4(rtp: &[u8]) -> Vec<u8> {
        // With the ECN field of L4S.
        let header = [&[0x45, 1][..], &words(&[28 + rtp.len() as u16, 0, 0]), &[64, 17, 0, 0]].concat();
        [&header[..], &[192, 168, 1, 118, 198, 51, 100, 7], &udp((5000, 6000), rtp)].concat()
    }

    fn v6(rtp: &[u8]) -> Vec<u8> {
        let header = [&[0x60, 0x10, 0, 0][..], &words(&[8 + rtp.len() as u16]), &[17, 64]].concat();
        [&header[..], &[0xFD; 16], &[0xFC; 16], &udp((5000, 6000), rtp)].concat()
    }

    fn redacted(file: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        copy(&mut || Ok(Box::new(std::io::Cursor::new(file.to_vec()))), &mut out, Path::new("")).unwrap();
        out
    }

    #[test]
    fn queries_of_names_are_left_out_although_they_look_like_rtp() {
        let mut file = pcap(RAW, &[], v4);
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
                push(&mut file, 3000, &packet);
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
        let mut file = pcap(RAW, &[], v4);
        let mut packet = v4(&report);
        let contains = |file: &[u8]| redacted(file).windows(8).any(|window| window == report);
        // From another port.
        packet[20..22].copy_from_slice(&7000u16.to_be_bytes());
        push(&mut file, 3000, &packet);
        assert!(!contains(&file));
        let (from, to) = (packet[12..16].to_vec(), packet[16..20].to_vec());
        packet[12..24].copy_from_slice(&[&to[..], &from, &6000u16.to_be_bytes(), &5000u16.to_be_bytes()].concat());
        push(&mut file, 3000, &packet);
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
            (RAW, Vec::new(), v6),
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

    /// A name as text, URL-escaped, in base64, in hex, as an address, in UTF-16, in punycode, quoted, and on two lines.
    const SECRETS: [&[u8]; 9] = [
        b"kanarie-vogel",
        b"%6B%61%6E%61%72%69%65",
        b"a2FuYXJpZS12b2dlbA==",
        b"6b616e617269652d766f67656c",
        &[203, 0, 113, 77],
        b"k\0a\0n\0a\0r\0i\0e\0",
        b"xn--kanarie-vgel-9ib",
        b"=6B=61=6E=61=72=69=65",
        b"kanarie-\r\n vogel",
    ];

    /// A message in each packet after its RTP: SDES, APP, XR, a report with an extension, and what is no RTP.
    fn messages(secret: &[u8]) -> Vec<Vec<u8>> {
        let padded = |mut bytes: Vec<u8>| {
            bytes.resize(bytes.len().next_multiple_of(4), 0);
            bytes
        };
        let packet = |first: u8, kind: u8, body: Vec<u8>| {
            let body = padded(body);
            [&[first, kind, 0, (body.len() / 4) as u8], &body[..]].concat()
        };
        let ssrc = [0, 0, 0, 7];
        let sdes = [&ssrc[..], &[1, secret.len() as u8], secret, &[0]].concat();
        let report = packet(0x80, 201, ssrc.to_vec());
        vec![
            [report.clone(), packet(0x81, 202, sdes)].concat(),
            [report.clone(), packet(0x80, 204, [&ssrc, secret].concat())].concat(),
            packet(0x80, 207, [&ssrc[..], &[7, 0, 0, (secret.len().div_ceil(4)) as u8], secret].concat()),
            packet(0x80, 201, [&ssrc, secret].concat()),
            packet(0x8F, 206, [&ssrc[..], &[0; 4], secret].concat()),
            [&report[..], secret, &[0x80, 0, 0, 1]].concat(),
            [&[0, 1, 0, 60, 0x21, 0x12, 0xA4, 0x42][..], &[0; 12], &[0, 6, 0, secret.len() as u8], secret].concat(),
            secret.to_vec(),
        ]
    }

    #[test]
    fn captures_keep_no_secret_at_any_place() {
        let mut file = file(RAW, []);
        let clean = test_capture::file(RAW, (0..60).map(|index| (50 * u32::from(index), v4(&rtp(7, index, &[])))));
        for index in 0..60u32 {
            let secret = SECRETS[index as usize % SECRETS.len()];
            let short = &secret[..secret.len().min(16)];
            // A CSRC, the elements MID (1) and RID (4), an element of two bytes, and text after them.
            let elements =
                [&[0x10 | (short.len() - 1) as u8][..], short, &[0x40 | (short.len() - 1) as u8], short].concat();
            let words = elements.len().div_ceil(4);
            let mut rtp =
                [&[0x91, 96, 0, index as u8, 0, 0, 0, 0, 0, 0, 0, 7][..], &secret[..4], &[0xBE, 0xDE, 0, words as u8]]
                    .concat();
            rtp.extend_from_slice(&elements);
            rtp.resize(20 + 4 * words, 0);
            rtp.extend_from_slice(secret);
            push(&mut file, index * 50, &v4(&rtp));
            messages(secret).iter().for_each(|message| push(&mut file, index * 50, &v4(message)));
        }
        let out = redacted(&file);
        let has = |bytes: &[u8], secret: &[u8]| bytes.windows(secret.len()).any(|window| window == secret);
        for secret in SECRETS {
            assert!(has(&file, secret) && !has(&out, secret), "{}", String::from_utf8_lossy(secret));
            // Also of halves.
            assert!(secret.len() < 8 || !has(&out, &secret[..secret.len() / 2]), "{}", String::from_utf8_lossy(secret));
        }
        let [with, without] = [&out, &clean].map(|bytes| read_bytes(bytes).unwrap());
        assert_eq!((with.flows.len(), without.flows.len()), (1, 1));
        let sent =
            |call: &crate::model::Call| call.flows[0].get(crate::model::Quantity::SentRate).map(|s| s.points.len());
        assert_eq!(sent(&with), sent(&without));
        assert_eq!(read_bytes(&out).unwrap().flows, read_bytes(&file).unwrap().flows);
    }

    #[test]
    fn a_capture_without_rtp_is_an_error() {
        let file = pcap(RAW, &[], |_| vec![0; 40]);
        let open = &mut || -> Result<Box<dyn Read>, ReadError> { Ok(Box::new(std::io::Cursor::new(file.clone()))) };
        let error = copy(open, &mut Vec::new(), Path::new("")).unwrap_err();
        assert!(error.to_string().contains("no RTP streams"), "{error}");
    }
}
