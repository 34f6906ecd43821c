// SPDX-License-Identifier: MIT OR Apache-2.0
//! Statistics as lines of rtcstats. Each value is of a list: numbers by their names, and states of the W3C specification. Ids are replaced
//! by numbers; everything else is left out.
//!
//! A number may be an address, too, where it was written as text. So counters and times begin anew, and texts with numbers are rounded,
//! those of counters by their growth.

use crate::statistics::{KINDS, Sample, number};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::io::{Result, Write};

/// Counters, of which only the growth is read.
const COUNTERS: [&str; 20] = [
    "bytesReceived",
    "bytesSent",
    "framesEncoded",
    "headerBytesReceived",
    "headerBytesSent",
    "packetsLost",
    "packetsReceived",
    "packetsReceivedWithCe",
    "packetsReceivedWithEct1",
    "packetsReportedAsLost",
    "packetsReportedAsLostButRecovered",
    "packetsSent",
    "packetsSentWithEct1",
    "packetsWithBleachedEct1Marking",
    "responsesReceived",
    "retransmittedPacketsSent",
    "roundTripTimeMeasurements",
    "totalEncodeTime",
    "totalFreezesDuration",
    "totalPacketSendDelay",
];
/// Other numbers that are read.
const GAUGES: [&str; 7] = [
    "active",
    "availableOutgoingBitrate",
    "currentRoundTripTime",
    "framesPerSecond",
    "jitter",
    "roundTripTime",
    "targetBitrate",
];
/// References to other objects.
const IDS: [&str; 2] = ["mediaSourceId", "selectedCandidatePairId"];
/// Metrics with the words that they may have (`kind`, `RTCStatsIceCandidatePairState` and `RTCQualityLimitationReason`).
const WORDS: [(&str, &[&str]); 3] = [
    ("kind", &["audio", "video"]),
    ("state", &["frozen", "waiting", "in-progress", "failed", "succeeded"]),
    ("qualityLimitationReason", &["none", "cpu", "bandwidth", "other"]),
];

/// When the first sample was taken in the copy, and the earliest and the latest time, ms since 1970: others are read in another unit, or
/// as relative to the line before.
const BEGIN_MS: f64 = 1.5e12;
/// See [`BEGIN_MS`].
const RANGE_MS: (f64, f64) = (1e12, 2e12);
/// Digits after the first that a number in a text keeps.
const DIGITS: usize = 4;

pub(super) struct Copy<'a> {
    output: &'a mut dyn Write,
    /// The ids of the copy by ids and connections of the input.
    ids: BTreeMap<String, String>,
    /// The time of the first sample of each connection, whole ms.
    origins_ms: BTreeMap<String, f64>,
    /// Each counter by object and metric.
    counters: BTreeMap<(String, &'static str), Counter>,
    result: Result<()>,
}

/// The last value of a counter.
struct Counter {
    value: f64,
    copy: f64,
    is_text: bool,
}

impl<'a> Copy<'a> {
    pub(super) fn new(output: &'a mut dyn Write) -> Self {
        Self { output, ids: BTreeMap::new(), origins_ms: BTreeMap::new(), counters: BTreeMap::new(), result: Ok(()) }
    }

    /// Writes a sample of a connection. After an error nothing is written.
    pub(super) fn add(&mut self, connection: &str, sample: &Sample<'_>) {
        if self.result.is_err() {
            return;
        }
        let connection = self.id(connection);
        let line = match *sample {
            Sample::Object { id, kind, at_ms, values } => {
                let kind = KINDS.into_iter().find(|known| *known == kind && at_ms.is_finite() && at_ms >= 0.0);
                let Some(kind) = kind else { return };
                self.origins_ms.entry(connection.clone()).or_insert(at_ms.floor());
                let (id, at_ms) = (self.id(id), self.time(&connection, at_ms));
                if at_ms >= RANGE_MS.1 {
                    return;
                }
                let members = self.members(&connection, &id, kind, values);
                json!(["getStats", connection, {id: members}, at_ms])
            }
            Sample::Removed { id } => json!(["getStats", connection, {self.id(id): null}, 0]),
            Sample::Cap { at_ms, bps } => {
                json!([
                    "setRemoteDescription",
                    connection,
                    format!("b=TIAS:{}", rounded(bps)),
                    self.time(&connection, at_ms)
                ])
            }
            Sample::Connected { at_ms, is_connected } => {
                let state = if is_connected { "connected" } else { "disconnected" };
                json!(["onconnectionstatechange", connection, state, self.time(&connection, at_ms)])
            }
        };
        self.result = writeln!(self.output, "{line}");
    }

    /// Returns the first error of writing.
    pub(super) fn finish(self) -> Result<()> {
        self.result
    }

    /// Returns the id in the copy. In the order of the alphabet they are in order of appearance.
    fn id(&mut self, id: &str) -> String {
        let next = format!("{:05}", self.ids.len() + 1);
        self.ids.entry(id.to_owned()).or_insert(next).clone()
    }

    fn time(&self, connection: &str, at_ms: f64) -> f64 {
        let origin_ms = self.origins_ms.get(connection).copied().unwrap_or(at_ms);
        (at_ms - origin_ms + BEGIN_MS).clamp(RANGE_MS.0, RANGE_MS.1)
    }

    fn members(&mut self, connection: &str, id: &str, kind: &str, values: &Map<String, Value>) -> Map<String, Value> {
        let object = format!("{connection} {id}");
        let mut members = Map::from_iter([("type".to_owned(), kind.into())]);
        let mut add = |metric: &str, value: Value| drop(members.insert(metric.to_owned(), value));
        let of = |metric: &str| values.get(metric).and_then(number);
        for metric in COUNTERS {
            if let Some(value) = of(metric) {
                let is_text = values[metric].is_string();
                let counter =
                    self.counters.entry((object.clone(), metric)).or_insert(Counter { value, copy: 0.0, is_text });
                let growth = value - counter.value;
                let copy = counter.copy + if is_text || counter.is_text { rounded(growth) } else { growth };
                *counter = Counter { value, copy, is_text };
                add(metric, copy.into());
            }
        }
        for metric in GAUGES {
            if let Some(value) = of(metric) {
                add(metric, if values[metric].is_string() { rounded(value) } else { value }.into());
            }
        }
        if let Some(at_ms) = of("timestamp") {
            add("timestamp", self.time(connection, at_ms).into());
        }
        let text = |metric: &str| values.get(metric).and_then(Value::as_str);
        for metric in IDS {
            if let Some(id) = text(metric).filter(|id| !id.is_empty()) {
                add(metric, self.id(id).into());
            }
        }
        for (metric, words) in WORDS {
            if let Some(text) = text(metric) {
                add(metric, words.iter().find(|word| **word == text).copied().unwrap_or("other").into());
            }
        }
        members
    }
}

/// Returns a number with its first digits.
fn rounded(value: f64) -> f64 {
    format!("{value:.DIGITS$e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Flow;
    use crate::readers::{internals, lines, read_bytes};

    /// Returns the copy of a text, and the flows of the text and of the copy without their names.
    fn copied(text: &str) -> (String, [Vec<Flow>; 2]) {
        let mut output = Vec::new();
        let mut copy = Copy::new(&mut output);
        match text.starts_with('{') {
            true => internals::read(text.as_bytes(), &mut |name, sample| copy.add(name, sample)),
            false => lines::read(text.as_bytes(), &mut |name, sample| copy.add(name, sample)),
        }
        .unwrap();
        copy.finish().unwrap();
        let flows = [text.as_bytes(), &output].map(|bytes| {
            let flows = read_bytes(bytes).unwrap().flows.into_iter();
            flows.map(|flow| Flow { name: String::new(), ..flow }).collect()
        });
        (String::from_utf8(output).unwrap(), flows)
    }

    #[test]
    fn the_copy_of_rtcstats_is_the_same_call_without_text() {
        let mut text = "[\"create\",\"me@a.example\",{\"label\":\"cam\"},1700000000000]\n".to_owned();
        for second in 0..20u64 {
            let at = 1_700_000_000_000 + 1000 * second;
            let object = json!({"type": "outbound-rtp", "label": "cam", "bytesSent": (100_000 * second).to_string(),
                "mediaSourceId": "me-cam", "qualityLimitationReason": "Me Myself", "active": second < 10});
            text += &format!("{}\n", json!(["getstats", "me@a.example", {"O-me": object}, at]));
        }
        text += "[\"oniceconnectionstatechange\",\"me@a.example\",\"failed\",1700000015000]\n";
        text += "[\"setRemoteDescription\",\"me@a.example\",{\"sdp\":\"o=me 1\\r\\nb=AS:300\\r\\n\"},1700000020000]\n";
        let (copy, [before, after]) = copied(&text);
        for secret in ["cam", "me", "example", "Myself"] {
            let quoted = copy.replace("mediaSourceId", "").replace("timestamp", "");
            assert!(text.contains(secret) && !quoted.contains(secret), "{secret} is in {copy}");
        }
        assert_eq!((after.len(), after[0].marks.len()), (1, 4), "{:?}", after[0].marks);
        assert_eq!(after, before);
    }

    #[test]
    fn the_copy_of_a_dump_is_the_same_call_without_text() {
        let series = |kind: &str, values: Vec<Value>| {
            let (start, end) = ("2026-02-03T10:20:00.000Z", "2026-02-03T10:20:19.000Z");
            json!({"startTime": start, "endTime": end, "statsType": kind, "values": Value::from(values).to_string()})
        };
        let each = |value: &dyn Fn(u64) -> Value| (0..20).map(value).collect::<Vec<_>>();
        let stats = json!({
            "OTme-bytesSent": series("outbound-rtp", each(&|second| json!(100_000 * second))),
            "OTme-usernameFragment": series("outbound-rtp", each(&|_| json!("abcd"))),
            "T-selectedCandidatePairId": series("transport", each(&|second| json!(["CP1", "CP2"][second as usize / 10]))),
            "CP2-availableOutgoingBitrate": series("candidate-pair", each(&|_| json!(9e5))),
        });
        let log = json!([{"type": "setRemoteDescription", "value": "o=me 1\r\nb=AS:300\r\n"}]);
        let connection = json!({"url": "https://a.example", "stats": stats, "updateLog": log});
        let dump = json!({"PeerConnections": {"1-1": {}, "1-2": connection}, "UserAgent": "Mozilla/5.0"}).to_string();
        let (copy, [before, after]) = copied(&dump);
        for secret in ["OTme", "abcd", "CP2", "o=me", "a.example", "Mozilla"] {
            assert!(dump.contains(secret) && !copy.contains(secret), "{secret} is in {copy}");
        }
        assert_eq!(after[0].marks.len(), 2, "a limit and a change of the route: {:?}", after[0].marks);
        assert_eq!(after, before);
    }
}
