//! A copy of an input that can be shared.
//!
//! Text formats: in every string addresses, mDNS names, URLs, user agents, and the identities of session descriptions are replaced;
//! everything else stays as it is, byte for byte. Captures are rewritten with other addresses and without payload. Event logs
//! contain no addresses: libwebrtc leaves out SDES and APP.

use crate::error::ReadError;
use crate::readers::{Format, recognise};
use flate2::read::MultiGzDecoder;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption, InterfaceTsResolution,
};
use pcap_file::pcapng::{Block, PcapNgReader, PcapNgWriter};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, BufWriter, Cursor, Read, Write};
use std::path::Path;

/// The longest string that is held.
const TEXT_MAX: usize = 32 << 20;
/// Strings under these keys are replaced whole.
const KEYS: &[&str] = &[
    "UserAgent",
    "userAgent",
    "url",
    "origin",
    "ip",
    "address",
    "relatedAddress",
    "usernameFragment",
    "credential",
    "username",
    "deviceId",
    "groupId",
    "label",
    "trackIdentifier",
    "fingerprint",
    "base64Certificate",
    "rid_label",
    "peer",
    "brand",
    "fullVersionList",
];
/// Lines of a session description whose value is replaced.
const LINES: &[&str] = &[
    "o=",
    "s=",
    "i=",
    "u=",
    "e=",
    "p=",
    "a=ice-ufrag:",
    "a=ice-pwd:",
    "a=fingerprint:",
    "a=cname:",
    "a=msid:",
    "a=msid-semantic:",
];
/// What replaces them.
const REPLACED: &str = "x";

/// Writes a copy. Returns what it is.
///
/// # Errors
/// The input cannot be read, its format is unknown, or the copy cannot be written.
pub fn redact(from: &Path, to: &Path) -> Result<&'static str, ReadError> {
    let io = |path: &Path| {
        let path = path.to_path_buf();
        move |source| ReadError::Io { path, source }
    };
    if from.is_dir() {
        return Err(ReadError::Empty {
            format: "paceline-run",
            problem: "folders of results contain nothing to redact".to_owned(),
        });
    }
    let mut input: Box<dyn Read> = Box::new(BufReader::new(File::open(from).map_err(io(from))?));
    let mut head = Vec::new();
    input.by_ref().take(8192).read_to_end(&mut head).map_err(io(from))?;
    let mut input: Box<dyn Read> = Box::new(Cursor::new(head.clone()).chain(input));
    if head.starts_with(&[0x1F, 0x8B]) {
        input = Box::new(BufReader::new(MultiGzDecoder::new(input)));
        head.clear();
        input.by_ref().take(8192).read_to_end(&mut head).map_err(io(from))?;
        input = Box::new(Cursor::new(head.clone()).chain(input));
    }
    let format = recognise(&head).ok_or_else(|| ReadError::UnknownFormat { begins: "other bytes".to_owned() })?;
    let mut output = BufWriter::new(File::create(to).map_err(io(to))?);
    let what = match format {
        Format::Internals | Format::Lines => {
            text(&mut input, &mut output).map_err(io(from))?;
            "a text copy without addresses, user agents, URLs and identities"
        }
        Format::Capture => {
            capture(input, &mut output)?;
            "a capture with other addresses and headers alone"
        }
        Format::EventLog => {
            std::io::copy(&mut input, &mut output).map_err(io(from))?;
            "an unchanged copy: event logs contain no addresses"
        }
    };
    output.flush().map_err(io(to))?;
    Ok(what)
}

/// Copies JSON text with its strings redacted.
fn text(input: &mut dyn Read, output: &mut dyn Write) -> std::io::Result<()> {
    let mut key = String::new();
    // A string of which it is not known yet whether it is a key.
    let mut held: Option<String> = None;
    let mut current: Option<(Vec<u8>, bool)> = None;
    let mut buffer = [0; 1 << 16];
    loop {
        let count = input.read(&mut buffer)?;
        if count == 0 {
            break;
        }
        for byte in &buffer[..count] {
            match &mut current {
                Some((bytes, escaped)) => match (*byte, *escaped) {
                    (b'"', false) => {
                        let bytes = std::mem::take(bytes);
                        current = None;
                        held = Some(String::from_utf8_lossy(&bytes).into_owned());
                    }
                    (byte, was_escaped) => {
                        *escaped = byte == b'\\' && !was_escaped;
                        bytes.push(byte);
                        if bytes.len() > TEXT_MAX {
                            return Err(std::io::Error::other("a string is too long"));
                        }
                    }
                },
                None => {
                    if let Some(text) = held.take() {
                        match byte {
                            b' ' | b'\t' | b'\r' | b'\n' => held = Some(text),
                            b':' => {
                                write!(output, "\"{text}\"")?;
                                key = text;
                            }
                            _ => write!(output, "\"{}\"", redacted(&key, &text))?,
                        }
                    }
                    match byte {
                        b'"' => current = Some((Vec::new(), false)),
                        _ if held.is_some() => {}
                        _ => output.write_all(&[*byte])?,
                    }
                }
            }
        }
    }
    if let Some(text) = held {
        write!(output, "\"{}\"", redacted(&key, &text))?;
    }
    Ok(())
}

/// Returns a JSON string, still escaped, without what identifies people or machines.
fn redacted(key: &str, text: &str) -> String {
    if KEYS.contains(&key) {
        return if text.is_empty() { String::new() } else { REPLACED.to_owned() };
    }
    // Lines of session descriptions end in escaped line breaks; those inside a string of JSON are escaped twice.
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let end = ["\\r", "\\n"].iter().filter_map(|end| rest.find(end)).min().unwrap_or(rest.len());
        let (line, after) = rest.split_at(end);
        let after_break = after.get(..2).unwrap_or(after);
        out += &line_redacted(line);
        out += after_break;
        rest = &after[after_break.len()..];
    }
    out
}

fn line_redacted(line: &str) -> String {
    let trimmed = line.trim_start_matches('\\');
    if let Some(start) = LINES.iter().find(|start| trimmed.starts_with(**start)) {
        let kept = line.len() - trimmed.len();
        return format!("{}{start}{REPLACED}{}", &line[..kept], if line.ends_with('\\') { "\\" } else { "" });
    }
    let is_part = |c: char| c.is_ascii_alphanumeric() || ".:-_%[]".contains(c);
    let mut out = String::with_capacity(line.len());
    let mut word = String::new();
    for c in line.chars().chain(['\u{0}']) {
        if is_part(c) {
            word.push(c);
            continue;
        }
        out += &word_redacted(&word);
        word.clear();
        if c != '\u{0}' {
            out.push(c);
        }
    }
    out
}

/// Replaces IPv4 and IPv6 addresses, with a port or without, and mDNS names.
fn word_redacted(word: &str) -> String {
    let bare = word.trim_matches(['[', ']']).split('%').next().unwrap_or_default();
    let v4 = bare.split(':').next().unwrap_or_default();
    let is_v4 = v4.parse::<std::net::Ipv4Addr>().is_ok();
    let is_v6 = bare.matches(':').count() >= 2 && bare.parse::<std::net::Ipv6Addr>().is_ok();
    if is_v4 || is_v6 || word.ends_with(".local") { "0.0.0.0".to_owned() } else { word.to_owned() }
}

/// Rewrites a pcapng file: addresses by order of appearance, RTP headers and RTCP, nothing else.
fn capture(input: Box<dyn Read>, output: &mut dyn Write) -> Result<(), ReadError> {
    let damaged = |problem: String| ReadError::Damaged { format: "pcapng", place: "a block".to_owned(), problem };
    let mut reader = PcapNgReader::with_capacity(input, 4 << 20).map_err(|error| damaged(error.to_string()))?;
    let mut writer = PcapNgWriter::new(Vec::new()).map_err(|error| damaged(error.to_string()))?;
    let mut addresses: BTreeMap<[u8; 4], u32> = BTreeMap::new();
    while let Some(block) = reader.next_block() {
        // What precedes a damaged block is kept.
        let Ok((block, _)) = block else { break };
        let written = match block {
            Block::InterfaceDescription(interface) => writer.write_pcapng_block(InterfaceDescriptionBlock {
                linktype: interface.linktype,
                snaplen: 0,
                options: vec![InterfaceDescriptionOption::IfTsResol(InterfaceTsResolution::NANO)],
            }),
            Block::EnhancedPacket(packet) => {
                let Some(data) = headers_only(&packet.data, &mut addresses) else { continue };
                let options = packet
                    .options
                    .iter()
                    .filter(|option| {
                        matches!(option, pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption::Flags(_))
                    })
                    .cloned()
                    .collect();
                let original_len = packet.original_len.max(data.len() as u32);
                writer.write_pcapng_block(EnhancedPacketBlock { data: data.into(), options, original_len, ..packet })
            }
            _ => continue,
        };
        written.map_err(|error| damaged(error.to_string()))?;
        output.write_all(writer.get_ref())?;
        writer.get_mut().clear();
    }
    output.write_all(writer.get_ref())?;
    Ok(())
}

/// Returns the IPv4 and UDP headers with other addresses, the RTP header, or the whole RTCP packet; nothing of other packets.
fn headers_only(data: &[u8], addresses: &mut BTreeMap<[u8; 4], u32>) -> Option<Vec<u8>> {
    // With or without an Ethernet header.
    let ip_at = if data.first()? >> 4 == 4 { 0 } else { 14 };
    let ip = data.get(ip_at..)?;
    let header = usize::from(ip.first()? & 0x0F) * 4;
    if ip[0] >> 4 != 4 || *ip.get(9)? != 17 || header < 20 {
        return None;
    }
    let udp = ip.get(header..header + 8)?;
    let payload = ip.get(header + 8..)?;
    let is_rtp = payload.first()? >> 6 == 2;
    let kept = match is_rtp {
        true if paceline_wire::is_rtcp(payload) => payload.len(),
        true => {
            let none = paceline_wire::ExtensionIds { abs_send_time: 0, transport_sequence: 0 };
            paceline_wire::RtpHeader::parse(payload, &none).ok()?.1
        }
        false => return None,
    };
    let mut out = vec![0; ip_at];
    if ip_at == 14 {
        out[12..14].copy_from_slice(&[0x08, 0x00]);
    }
    out.extend_from_slice(&ip[..20]);
    out[ip_at] = 0x45;
    for at in [12, 16] {
        let old: [u8; 4] = ip.get(at..at + 4)?.try_into().ok()?;
        let next = addresses.len() as u32 + 1;
        let number = *addresses.entry(old).or_insert(next);
        out[ip_at + at..ip_at + at + 4].copy_from_slice(&(0x0A00_0000 | number).to_be_bytes());
    }
    // The checksum would be that of the old addresses.
    out[ip_at + 10..ip_at + 12].fill(0);
    out.extend_from_slice(&udp[..6]);
    out.extend_from_slice(&[0, 0]);
    out.extend_from_slice(&payload[..kept.min(payload.len())]);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copied(text_in: &str) -> String {
        let mut out = Vec::new();
        text(&mut text_in.as_bytes(), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn replaces_addresses_and_identities_and_nothing_else() {
        let dump = r#"{"UserAgent": "Mozilla/5.0 (X)", "n": 1.5, "log": [{"type": "setRemoteDescription", "value": "v=0\r\no=- 46117 2 IN IP4 127.0.0.1\r\nb=AS:300\r\na=ice-ufrag:abcd\r\na=candidate:1 1 udp 2122 192.168.1.7 50000 typ host\r\n"}], "address": "10.0.0.5", "ip6": "fe80::1", "name": "0f3c.local", "bytesSent": "[1,2,3]"}"#;
        let out = copied(dump);
        for secret in ["Mozilla", "46117", "127.0.0.1", "abcd", "192.168.1.7", "10.0.0.5", "fe80::1", "0f3c.local"] {
            assert!(!out.contains(secret), "{secret} is in {out}");
        }
        for kept in
            ["\"n\": 1.5", "b=AS:300", "\\r\\n", "typ host", "\"bytesSent\": \"[1,2,3]\"", "setRemoteDescription"]
        {
            assert!(out.contains(kept), "{kept} is not in {out}");
        }
        assert!(serde_json::from_str::<serde_json::Value>(&out).is_ok(), "{out}");
    }

    #[test]
    fn numbers_and_ids_stay() {
        let text = r#"["getStats","9-1",{"IT01V123":{"type":"inbound-rtp","time":"10:20:30","v":"1.2.3"}}, 17]"#;
        assert_eq!(copied(text), text);
    }
}
