//! Statistics as lines of rtcstats: numbers, states, and other ids.

use crate::statistics::{METRICS, Sample, number};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::io::{Result, Write};

/// 2001, ms: a line without an earlier time is not relative to the line before.
const EARLIEST_MS: f64 = 1e12;

pub(super) struct Copy<'a> {
    output: &'a mut dyn Write,
    /// The ids of the copy by ids and connections of the input.
    ids: BTreeMap<String, String>,
    result: Result<()>,
}

impl<'a> Copy<'a> {
    pub(super) fn new(output: &'a mut dyn Write) -> Self {
        Self { output, ids: BTreeMap::new(), result: Ok(()) }
    }

    /// Writes a sample of a connection. After an error nothing is written.
    pub(super) fn add(&mut self, connection: &str, sample: &Sample<'_>) {
        if self.result.is_err() {
            return;
        }
        let connection = self.id(connection);
        let line = match *sample {
            Sample::Object { id, kind, at_ms, values } => {
                let known = METRICS.iter().filter_map(|metric| Some((*metric, values.get(*metric)?)));
                let mut members: Map<String, Value> =
                    known.filter_map(|(metric, value)| Some((metric.to_owned(), self.value(metric, value)?))).collect();
                members.insert("type".to_owned(), word(kind).unwrap_or_default().into());
                json!(["getStats", connection, {self.id(id): members}, at_ms.max(EARLIEST_MS)])
            }
            Sample::Removed { id } => json!(["getStats", connection, {self.id(id): null}, 0]),
            Sample::Cap { at_ms, bps } => {
                json!(["setRemoteDescription", connection, format!("b=TIAS:{bps}"), at_ms.max(EARLIEST_MS)])
            }
            Sample::Connected { at_ms, is_connected } => {
                let state = if is_connected { "connected" } else { "disconnected" };
                json!(["onconnectionstatechange", connection, state, at_ms.max(EARLIEST_MS)])
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

    fn value(&mut self, metric: &str, value: &Value) -> Option<Value> {
        match metric {
            "mediaSourceId" | "selectedCandidatePairId" => {
                Some(self.id(value.as_str().filter(|id| !id.is_empty())?).into())
            }
            "state" | "qualityLimitationReason" => Some(word(value.as_str()?).unwrap_or("other").into()),
            _ => number(value).map(Value::from),
        }
    }
}

/// Returns a text that is one of the short words of the specification in form.
fn word(text: &str) -> Option<&str> {
    let is_short = text.len() <= 24 && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
    is_short.then_some(text)
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
