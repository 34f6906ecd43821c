// SPDX-License-Identifier: MIT OR Apache-2.0
//! Statistics of media servers and native libraries under the names of the standard: mediasoup, whose reports have no ids, counters without a direction and
//! milliseconds; media events of Janus; objects of Flutter, Android and iOS, whose metrics are one level deeper; and names with `_` or `-`.

use crate::statistics::METRICS;
use serde_json::{Map, Value, json};

/// Names of mediasoup that have a standard one, if packets are sent and if they are received.
const COUNTERS: [(&str, [&str; 2]); 3] = [
    ("byteCount", ["bytesSent", "bytesReceived"]),
    ("packetCount", ["packetsSent", "packetsReceived"]),
    ("packetsRetransmitted", ["retransmittedPacketsSent", "retransmittedPacketsReceived"]),
];

/// Returns whether it is an object with statistics of a stream, as media events of Janus have it.
pub fn is_janus(values: &Map<String, Value>) -> bool {
    values.contains_key("media") && (values.contains_key("bytes-sent") || values.contains_key("bytes-received"))
}

/// Returns objects of the standard with their ids. `None`: it is one already.
pub fn standard(id: &str, values: &Map<String, Value>) -> Option<Vec<(String, Map<String, Value>)>> {
    if is_janus(values) {
        return Some(janus(id, values));
    }
    if let Some(flat) = flattened(values) {
        return Some(standard(id, &flat).unwrap_or_else(|| vec![(id.to_owned(), flat)]));
    }
    let kind = values.get("type")?.as_str()?;
    let is_transport = kind.ends_with("transport") && values.contains_key("sendBitrate");
    if is_transport {
        let pair = [("type", "candidate-pair".into()), ("state", "succeeded".into())];
        return Some(vec![(
            id.to_owned(),
            picked(pair, values, &[("availableOutgoingBitrate", "availableOutgoingBitrate", 1.0)]),
        )]);
    }
    values.get("byteCount")?;
    let is_sent = usize::from(kind == "inbound-rtp");
    let names: Vec<_> = COUNTERS.iter().map(|(from, to)| (*from, to[is_sent], 1.0)).collect();
    let mut stream = picked([("type", kind.into())], values, &names);
    // Losses and times of a stream that is sent are those of the reports about it.
    let reported = [("packetsLost", "packetsLost", 1.0), ("roundTripTime", "roundTripTime", 1e-3)];
    if kind != "outbound-rtp" {
        stream.extend(picked([], values, &reported[..1]));
        return Some(vec![(id.to_owned(), stream)]);
    }
    let remote = picked([("type", "remote-inbound-rtp".into())], values, &reported);
    Some(vec![(id.to_owned(), stream), (format!("{id} remote"), remote)])
}

/// Returns the number of members that are objects with metrics and are not read.
pub fn left_out(values: &Map<String, Value>) -> usize {
    let first = FIRST_LEVEL.iter().find(|name| values.get(**name).is_some_and(Value::is_object));
    let others = values.iter().filter(|(name, _)| first.is_none_or(|first| name != first));
    let metrics = |value: &Value| value.as_object().is_some_and(|inner| inner.keys().any(|name| is_metric(name)));
    others.filter(|(_, value)| metrics(value)).count()
}

fn is_metric(name: &str) -> bool {
    METRICS.contains(&camel_case(name).as_str())
}

/// Members that hold the metrics of an object of a native library.
const FIRST_LEVEL: [&str; 2] = ["values", "members"];

/// Returns an object with its metrics on the first level, under names in camel case. `None`: it is so already.
fn flattened(values: &Map<String, Value>) -> Option<Map<String, Value>> {
    let nested = FIRST_LEVEL.iter().find_map(|name| values.get(*name)?.as_object());
    // Chromium computes rates under names in brackets.
    let is_other = |name: &String| name.contains(['_', '-']) && !name.starts_with('[') || name == "timestampUs";
    if nested.is_none() && !values.keys().any(is_other) {
        return None;
    }
    let members = nested.into_iter().flatten().chain(values).filter(|(_, value)| !value.is_object());
    Some(members.map(|(name, value)| (camel_case(name), value.clone())).collect())
}

/// Returns a name in camel case; `timestamp` for one of µs, whose unit its size says.
fn camel_case(name: &str) -> String {
    let mut words = name.split(['_', '-']);
    let first = words.next().unwrap_or_default().to_owned();
    let name = words.fold(first, |name, word| match word.split_at_checked(1) {
        Some((letter, rest)) => name + &letter.to_ascii_uppercase() + rest,
        None => name,
    });
    if name == "timestampUs" { "timestamp".to_owned() } else { name }
}

/// Jitter and round-trip times of Janus are in milliseconds.
fn janus(id: &str, values: &Map<String, Value>) -> Vec<(String, Map<String, Value>)> {
    let part = |kind: &str, names: &[(&str, &str, f64)]| {
        (format!("{id} {kind}"), picked([("type", kind.into())], values, names))
    };
    vec![
        part("outbound-rtp", &[("bytes-sent", "bytesSent", 1.0), ("packets-sent", "packetsSent", 1.0)]),
        part(
            "inbound-rtp",
            &[
                ("bytes-received", "bytesReceived", 1.0),
                ("packets-received", "packetsReceived", 1.0),
                ("lost", "packetsLost", 1.0),
                ("jitter-local", "jitter", 1e-3),
            ],
        ),
        part(
            "remote-inbound-rtp",
            &[
                ("lost-by-remote", "packetsLost", 1.0),
                ("rtt", "roundTripTime", 1e-3),
                ("jitter-remote", "jitter", 1e-3),
            ],
        ),
    ]
}

/// Returns the values with these names under others, in other units.
fn picked<const N: usize>(
    fixed: [(&str, Value); N],
    values: &Map<String, Value>,
    names: &[(&str, &str, f64)],
) -> Map<String, Value> {
    let number = |name: &str| values.get(name).and_then(crate::statistics::number);
    let fixed = fixed.into_iter().map(|(name, value)| (name.to_owned(), value));
    let picked = names.iter().filter_map(|(from, to, scale)| Some(((*to).to_owned(), json!(number(from)? * scale))));
    let time = values.get("timestamp").map(|time| ("timestamp".to_owned(), time.clone()));
    fixed.chain(picked).chain(time).collect()
}
