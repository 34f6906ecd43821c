// SPDX-License-Identifier: MIT OR Apache-2.0
//! Redacted copies: one has no text of the input and no payload, the same flows if the input can be read, and a copy of the copy is the same.

use paceline_explain::readers::datagram::{Datagram, each_datagram};
use paceline_explain::readers::{Format, read_bytes, recognise};
use paceline_explain::redact::redact;
use paceline_explain::statistics::{KINDS, METRICS};
use paceline_wire::{ExtensionIds, Rtcp, RtpHeader, is_rtcp, parse_compound};
use serde_json::Value;
use std::fs;
use std::net::IpAddr;
use std::path::Path;

/// Checks one input, with files in `folder`. Returns whether it is copied.
pub fn check_in(folder: &Path, bytes: &[u8]) -> bool {
    let Some(copy) = copy_of(folder, bytes) else { return false };
    match recognise(&copy[..copy.len().min(8192)]) {
        Some(Format::Lines) => check_lines(&copy),
        Some(Format::Capture) => {
            let pass =
                each_datagram(Box::new(std::io::Cursor::new(copy.clone())), &mut |datagram| check_datagram(datagram));
            assert!(pass.is_ok_and(|pass| pass.cut.is_none()), "the copy is whole");
        }
        Some(Format::EventLog) => {}
        other => panic!("the format of a copy of {} bytes is {other:?}", copy.len()),
    }
    if let Ok(call) = read_bytes(bytes) {
        let copied = read_bytes(&copy).expect("the copy can be read, as the input");
        assert_eq!(copied.flows.len(), call.flows.len());
    }
    assert!(copy_of(folder, &copy).is_some_and(|again| is_same(&copy, &again)), "a copy of the copy is another one");
    true
}

/// Returns the copy, if there is one.
fn copy_of(folder: &Path, bytes: &[u8]) -> Option<Vec<u8>> {
    let [from, to] = ["in", "out"].map(|name| folder.join(name));
    fs::write(&from, bytes).expect("the folder can be written");
    let _ = fs::remove_file(&to);
    match redact(&from, &to) {
        Ok(what) => {
            assert!(!what.is_empty());
            Some(fs::read(&to).expect("a copy was written"))
        }
        Err(error) => {
            assert!(!error.to_string().is_empty() && !error.help().is_empty() && !to.exists());
            None
        }
    }
}

/// Returns whether two copies are equal; numbers of statistics up to rounding.
fn is_same(copy: &[u8], again: &[u8]) -> bool {
    copy == again
        || (copy.starts_with(b"[")
            && copy.iter().filter(|byte| **byte == b'\n').eq(again.iter().filter(|byte| **byte == b'\n')))
}

/// Checks that each text of the lines is one of rtcstats, the number of an id, or the cap of a session.
fn check_lines(copy: &[u8]) {
    for line in std::str::from_utf8(copy).expect("the copy is text").lines() {
        check_texts(&serde_json::from_str(line).expect("a line is JSON"));
    }
}

fn check_texts(value: &Value) {
    match value {
        Value::String(text) => assert!(is_known(text), "{text:?} is in a copy"),
        Value::Array(items) => items.iter().for_each(check_texts),
        Value::Object(members) => members.iter().for_each(|(name, value)| {
            assert!(is_known(name), "{name:?} is in a copy");
            check_texts(value);
        }),
        _ => {}
    }
}

fn is_known(text: &str) -> bool {
    const WORDS: [&str; 15] = [
        "getStats",
        "setRemoteDescription",
        "onconnectionstatechange",
        "connected",
        "disconnected",
        "type",
        "frozen",
        "waiting",
        "in-progress",
        "failed",
        "succeeded",
        "none",
        "cpu",
        "bandwidth",
        "other",
    ];
    let is_number = |text: &str| text.len() >= 5 && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_cap = |text: &str| text.strip_prefix("b=TIAS:").is_some_and(|number| number.parse::<f64>().is_ok());
    WORDS.contains(&text) || KINDS.contains(&text) || METRICS.contains(&text) || is_number(text) || is_cap(text)
}

/// Checks that a datagram has a numbered address, and a header of RTP alone, or reports without names and texts.
fn check_datagram(datagram: &Datagram<'_>) {
    let ((from, _), (to, _)) = datagram.route;
    for address in [from, to] {
        assert!(match address {
            IpAddr::V4(address) => address.octets()[0] == 10,
            IpAddr::V6(address) => address.octets()[..12] == [0x20, 1, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0],
        });
    }
    let payload = datagram.payload;
    if !is_rtcp(payload) {
        let (_, length) = RtpHeader::parse(payload, &ExtensionIds::default()).expect("a header of RTP");
        assert!(length == payload.len() && payload[0] & 0x2F == 0, "payload, padding or a CSRC: {payload:02x?}");
        return;
    }
    match parse_compound(payload) {
        Ok(packets) => assert!(packets.into_iter().all(|packet| match packet {
            Rtcp::Sdes { .. } | Rtcp::Bye { .. } => false,
            Rtcp::App { data, .. } => data.is_empty(),
            _ => true,
        })),
        Err(_) => assert!(payload.iter().skip(8).all(|byte| *byte == 0), "{payload:02x?}"),
    }
}
