//! Samples of getStats as JSON lines: one report a line, as an object by id, as a list, or inside an object with `stats`, `report`,
//! `reports` or `value`; and dumps of rtcstats, whose lines are `[method, connection, value, …, time]`.

use crate::error::ReadError;
use crate::model::Call;
use crate::statistics::{Statistics, number, session_cap};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::io::BufRead;

/// Name of the format.
pub const FORMAT: &str = "getstats-lines";
/// First line of a dump of rtcstats.
pub const RTCSTATS: &str = "RTCStatsDump";

/// The longest line: a report of hundreds of streams is below 1 MB.
const LINE_MAX: u64 = 32 << 20;
/// Connections and objects at most.
const CONNECTIONS_MAX: usize = 64;
const OBJECTS_MAX: usize = 4096;

#[derive(Default)]
struct Connection {
    statistics: Statistics,
    /// The last report, for lines that have only what changed.
    last: BTreeMap<String, Map<String, Value>>,
}

/// Reads samples.
///
/// # Errors
/// A line is no JSON or no report, or nothing in them sent or received RTP.
pub fn read(mut input: impl BufRead) -> Result<Call, ReadError> {
    let mut connections: BTreeMap<String, Connection> = BTreeMap::new();
    let mut clock_ms = 0.0;
    let (mut line, mut number_of_line, mut understood, mut compressed) = (Vec::new(), 0u64, 0u64, false);
    let mut notes = Vec::new();
    let damaged =
        |line: u64, problem: String| ReadError::Damaged { format: FORMAT, place: format!("line {line}"), problem };
    loop {
        line.clear();
        number_of_line += 1;
        let count = std::io::Read::take(&mut input, LINE_MAX).read_until(b'\n', &mut line)?;
        if count == 0 {
            break;
        }
        if count as u64 == LINE_MAX {
            return Err(damaged(number_of_line, format!("longer than {} MB", LINE_MAX >> 20)));
        }
        let text = line.trim_ascii();
        if text.is_empty() || text == RTCSTATS.as_bytes() {
            continue;
        }
        let value: Value = match serde_json::from_slice(text) {
            Ok(value) => value,
            // A cut last line is usual in logs.
            Err(error) if understood > 0 => {
                notes.push(format!("line {number_of_line} is no JSON ({error}); the lines after it are not read"));
                break;
            }
            Err(error) => return Err(damaged(number_of_line, format!("no JSON: {error}"))),
        };
        match value {
            Value::Array(items) if items.first().is_some_and(|first| first.is_object()) => {
                for item in &items {
                    understood += u64::from(object(connection(&mut connections, ""), item, None));
                }
            }
            Value::Array(items) => match event(&mut connections, &items, &mut clock_ms) {
                Event::Report => understood += 1,
                Event::Compressed => compressed = true,
                Event::Other => {}
            },
            Value::Object(members) => understood += u64::from(report(connection(&mut connections, ""), &members, None)),
            _ => return Err(damaged(number_of_line, "neither an object nor a list".to_owned())),
        }
    }
    let mut call = Call { format: FORMAT.to_owned(), notes, ..Call::default() };
    let several = connections.len() > 1;
    for (index, connection) in connections.into_values().enumerate() {
        let name = if several { format!("connection {}", index + 1) } else { String::new() };
        let mut part = connection.statistics.finish(FORMAT, &name);
        call.flows.append(&mut part.flows);
        call.notes.append(&mut part.notes);
    }
    call.notes.sort();
    call.notes.dedup();
    if call.flows.is_empty() {
        let problem = match compressed {
            true => "the reports have abbreviated names, which are not read; export the dump without compression",
            false => "no line has outbound-rtp or inbound-rtp statistics of two times",
        };
        return Err(ReadError::Empty { format: FORMAT, problem: problem.to_owned() });
    }
    Ok(call)
}

fn connection<'a>(connections: &'a mut BTreeMap<String, Connection>, name: &str) -> &'a mut Connection {
    let name = match connections.len() < CONNECTIONS_MAX || connections.contains_key(name) {
        true => name.to_owned(),
        false => connections.keys().next().cloned().unwrap_or_default(),
    };
    connections.entry(name).or_default()
}

enum Event {
    Report,
    Compressed,
    Other,
}

/// Times above this are since 1970 and not since the last line: 2001, in ms.
const EPOCH_MS: f64 = 1e12;

/// Reads an event of rtcstats.
fn event(connections: &mut BTreeMap<String, Connection>, items: &[Value], clock_ms: &mut f64) -> Event {
    let [method, name, value, .., time] = items else { return Event::Other };
    if let Some(time) = number(time) {
        *clock_ms = if time >= EPOCH_MS { time } else { *clock_ms + time.max(0.0) };
    }
    let Some(method) = method.as_str() else { return Event::Compressed };
    let connection = connection(connections, name.as_str().unwrap_or_default());
    match method {
        "getStats" | "getstats" => match value.as_object() {
            Some(members) if report(connection, members, Some(*clock_ms)) => Event::Report,
            _ => Event::Compressed,
        },
        "g" => Event::Compressed,
        "setRemoteDescription" => {
            let sdp = value.get("sdp").or(value.get(0).and_then(|first| first.get("sdp"))).unwrap_or(value);
            if let Some(bps) = sdp.as_str().and_then(session_cap) {
                connection.statistics.cap(*clock_ms, bps);
            }
            Event::Other
        }
        _ => Event::Other,
    }
}

/// Reads a report. Returns whether it has statistics.
fn report(connection: &mut Connection, members: &Map<String, Value>, time_ms: Option<f64>) -> bool {
    for inner in ["stats", "report", "reports", "value", "data"] {
        let time = members.get("timestamp").or(members.get("time")).and_then(number).or(time_ms);
        match members.get(inner) {
            Some(Value::Object(inner)) => return report(connection, inner, time),
            Some(Value::Array(items)) => {
                let read = items.iter().filter(|item| object(connection, item, time)).count();
                return read > 0;
            }
            _ => {}
        }
    }
    if members.contains_key("type") && members.contains_key("id") {
        return object(connection, &Value::Object(members.clone()), time_ms);
    }
    let shared = members.get("timestamp").and_then(number).filter(|time| *time > 0.0).or(time_ms);
    // The transport first: it names the pair of candidates that is used.
    let mut any = false;
    let is_transport = |value: &Value| value["type"] == "transport";
    let (first, rest): (Vec<_>, Vec<_>) = members.iter().partition(|(_, value)| is_transport(value));
    for (id, value) in first.into_iter().chain(rest) {
        match value {
            Value::Object(values) => any |= sample(connection, id, values, shared),
            Value::Null => {
                connection.last.remove(id);
                connection.statistics.remove(id);
            }
            _ => {}
        }
    }
    any
}

fn object(connection: &mut Connection, item: &Value, time_ms: Option<f64>) -> bool {
    match (item.as_object(), item["id"].as_str()) {
        (Some(values), Some(id)) => sample(connection, id, values, time_ms),
        _ => false,
    }
}

/// Reads one object. Metrics that are missing are as in the last report.
fn sample(connection: &mut Connection, id: &str, values: &Map<String, Value>, time_ms: Option<f64>) -> bool {
    let known = connection.last.contains_key(id);
    if !known && (!values.contains_key("type") || connection.last.len() >= OBJECTS_MAX) {
        return false;
    }
    let merged = connection.last.entry(id.to_owned()).or_default();
    for (name, value) in values {
        merged.insert(name.clone(), value.clone());
    }
    // Of a remote object the time is that of its RTCP report, which repeats; a time of 0 stands for that of the report.
    let own = values.get("timestamp").and_then(number).filter(|time| *time > 0.0);
    let Some(at) = own.or(time_ms).or(merged.get("timestamp").and_then(number)) else { return false };
    // Firefox and some libraries give µs.
    let at = if at > 1e14 { at / 1e3 } else { at };
    let kind = merged.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    connection.statistics.add(id, &kind, at, merged);
    true
}
