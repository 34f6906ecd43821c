// SPDX-License-Identifier: MIT OR Apache-2.0
//! Small inputs of each format, written by hand after the formats of Chromium 156, except for the capture, which is a simulated
//! call's.

use crate::generator::{formats::Made, generate};
use serde_json::{Value, json};

/// Seconds of the samples.
pub const SECONDS: usize = 40;
/// 2026-01-01T00:00:00Z, ms since 1970.
const BEGAN_MS: u64 = 1_767_225_600_000;

/// The target rate of a second: it falls at 20 s.
fn target(second: usize) -> u64 {
    if second < 20 { 1_700_000 } else { 600_000 }
}

/// The round-trip time of a second: a queue stands from 18 s to 22 s.
fn rtt(second: usize) -> f64 {
    if (18..22).contains(&second) { 0.4 } else { 0.05 }
}

fn bytes(second: usize) -> u64 {
    (0..second).map(|second| target(second) / 8).sum()
}

/// A dump of webrtc-internals.
pub fn internals() -> String {
    let series = |kind: &str, values: Vec<Value>| {
        let time = |index: usize| {
            let ms = BEGAN_MS + 1000 * index as u64 - 1_767_225_600_000;
            format!("2026-01-01T00:00:{:02}.{:03}Z", ms / 1000, ms % 1000)
        };
        let text = serde_json::to_string(&values).unwrap();
        json!({"startTime": time(0), "endTime": time(values.len() - 1), "statsType": kind, "values": text})
    };
    let each = |value: &dyn Fn(usize) -> Value| (0..SECONDS).map(value).collect::<Vec<_>>();
    let times = || each(&|s| json!(BEGAN_MS + 1000 * s as u64));
    let stats = json!({
        "OT01V1-timestamp": series("outbound-rtp", times()),
        "OT01V1-bytesSent": series("outbound-rtp", each(&|s| json!(bytes(s)))),
        "OT01V1-packetsSent": series("outbound-rtp", each(&|s| json!(bytes(s) / 1000))),
        "OT01V1-targetBitrate": series("outbound-rtp", each(&|s| json!(target(s)))),
        "OT01V1-qualityLimitationReason": series("outbound-rtp", each(&|_| json!("none"))),
        "OT01V1-[bytesSent_in_bits/s]": series("outbound-rtp", each(&|s| json!(target(s)))),
        "RIV1-timestamp": series("remote-inbound-rtp", times()),
        "RIV1-roundTripTime": series("remote-inbound-rtp", each(&|s| json!(rtt(s)))),
        "RIV1-roundTripTimeMeasurements": series("remote-inbound-rtp", each(&|s| json!(s))),
        "RIV1-packetsLost": series("remote-inbound-rtp", each(&|_| json!(0))),
        "T01-timestamp": series("transport", times()),
        "T01-selectedCandidatePairId": series("transport", each(&|_| json!("CPa_b"))),
        "CPa_b-timestamp": series("candidate-pair", times()),
        "CPa_b-availableOutgoingBitrate": series("candidate-pair", each(&|s| json!(target(s)))),
    });
    let log = json!([
        {"type": "createOffer", "value": "", "timestamp": BEGAN_MS},
        {"type": "setRemoteDescription", "value": "type: answer, sdp: v=0\r\nm=video 9\r\nb=AS:5000\r\na=ice-ufrag:secret\r\n", "timestamp": BEGAN_MS},
    ]);
    let dump = json!({
        "UserAgent": "Mozilla/5.0 secret", "getUserMedia": [],
        "PeerConnections": {"9-1": {"pid": 9, "url": "https://secret.example/", "rtcConfiguration": "{}", "stats": stats, "updateLog": log}},
    });
    serde_json::to_string_pretty(&dump).unwrap()
}

/// Samples of getStats.
pub fn lines() -> String {
    let line = |second: usize| {
        let ms = BEGAN_MS + 1000 * second as u64;
        let report = json!({
            "O1": {"id": "O1", "type": "outbound-rtp", "timestamp": ms, "bytesSent": bytes(second), "packetsSent": bytes(second) / 1000,
                "targetBitrate": target(second)},
            "R1": {"id": "R1", "type": "remote-inbound-rtp", "timestamp": ms, "roundTripTime": rtt(second),
                "roundTripTimeMeasurements": second, "packetsLost": 0},
        });
        format!("{report}\n")
    };
    (0..SECONDS).map(line).collect()
}

/// A dump of rtcstats in which a report has only what changed.
pub fn rtcstats() -> String {
    let mut text = "RTCStatsDump\n{\"fileFormat\":3}\n".to_owned();
    for second in 0..SECONDS {
        let ms = if second == 0 { BEGAN_MS as f64 } else { 1000.0 };
        let mut report = json!({"O1": {"bytesSent": bytes(second), "packetsSent": bytes(second) / 1000}});
        if second == 0 {
            report["O1"]["type"] = json!("outbound-rtp");
        }
        if second == 0 || target(second) != target(second - 1) {
            report["O1"]["targetBitrate"] = json!(target(second));
        }
        text += &format!("{}\n", json!(["getStats", "9-1", report, ms]));
    }
    text
}

/// A protobuf field of bytes.
pub fn field(number: u64, body: &[u8]) -> Vec<u8> {
    [varint(number << 3 | 2), varint(body.len() as u64), body.to_vec()].concat()
}

/// A protobuf field of a number.
pub fn number(field: u64, value: u64) -> Vec<u8> {
    [varint(field << 3), varint(value)].concat()
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// An RTC event log of version 2: packets every 10 ms in records of 100, and an over-use at 20 s.
pub fn event_log() -> Vec<u8> {
    let mut log = field(16, &[number(1, 500), number(2, 2), number(3, BEGAN_MS)].concat());
    for second in 0..30u64 {
        let begin = 1000 * (second + 1);
        // Deltas of 10 ms and of 1: type 0, widths 4 and 1.
        let mut tens = vec![0b0000_0011];
        tens.extend([0xAA; 50]);
        let mut ones = vec![0b0000_0000];
        ones.extend([0xFF; 13]);
        let packets = [
            number(1, begin),
            number(4, 100 * second % 65536),
            [varint(5 << 3 | 5), 90_000u32.to_le_bytes().to_vec()].concat(),
            [varint(6 << 3 | 5), 7u32.to_le_bytes().to_vec()].concat(),
            number(8, if second < 20 { 1000 } else { 400 }),
            number(9, 20),
            number(11, 99),
            number(15, 100 * second % 65536),
            field(101, &tens),
            field(104, &ones),
            field(115, &ones),
        ];
        log.extend(field(3, &packets.concat()));
        let state = if second == 20 { 3 } else { 1 };
        let bps = if second < 20 { 900_000 } else { 400_000 };
        log.extend(field(19, &[number(1, begin), number(2, bps), number(3, state)].concat()));
    }
    log.extend(field(23, &[number(1, 25_000), number(2, 5), number(3, 3)].concat()));
    log
}

/// A capture at the sender, cut after its first part.
pub fn capture() -> Vec<u8> {
    let mut bytes = Made::new(&generate(3)).capture(true);
    bytes.truncate(200_000);
    bytes
}
