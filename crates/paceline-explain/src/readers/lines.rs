//! Samples of getStats as JSON lines: one report a line, as an object by id, as a list, or inside an object with `stats`, `report`,
//! `reports` or `value`; and dumps of rtcstats, whose lines are `[method, connection, value, …, time]`.

use super::internals::LEGACY;
use crate::error::ReadError;
use crate::model::Call;
use crate::statistics::{Sample, Statistics, Tee, number, session_cap};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::io::{BufRead, Read};

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
    name: String,
    statistics: Statistics,
    /// The last report, for lines that have only what changed.
    last: BTreeMap<String, Map<String, Value>>,
    legacy: bool,
}

/// What was read.
struct Lines<'a> {
    tee: &'a mut Tee<'a>,
    connections: BTreeMap<String, Connection>,
    clock_ms: f64,
    /// Reports with statistics.
    understood: u64,
    compressed: bool,
    notes: Vec<String>,
}

/// Reads samples, each of which `tee` receives too.
///
/// # Errors
/// A line is no JSON or no report, or nothing in them sent or received RTP.
pub fn read<'a>(mut input: impl BufRead, tee: &'a mut Tee<'a>) -> Result<Call, ReadError> {
    let mut lines =
        Lines { tee, connections: BTreeMap::new(), clock_ms: 0.0, understood: 0, compressed: false, notes: Vec::new() };
    let (mut line, mut number_of_line, mut any) = (Vec::new(), 0u64, false);
    loop {
        line.clear();
        number_of_line += 1;
        let count = input.by_ref().take(LINE_MAX).read_until(b'\n', &mut line)?;
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
            Err(error) if lines.understood > 0 => {
                let note = format!("line {number_of_line} is no JSON ({error}); the lines after it are not read");
                lines.notes.push(note);
                break;
            }
            // One report on several lines.
            Err(error) if error.is_eof() && !any => {
                lines.documents(line, &mut input, number_of_line)?;
                break;
            }
            Err(error) => return Err(damaged(number_of_line, format!("no JSON: {error}"))),
        };
        any = true;
        if !lines.document(value) {
            return Err(damaged(number_of_line, "neither an object nor a list".to_owned()));
        }
    }
    lines.finish()
}

fn damaged(line: u64, problem: String) -> ReadError {
    ReadError::Damaged { format: FORMAT, place: format!("line {line}"), problem }
}

impl Lines<'_> {
    /// Reads documents that have line breaks.
    fn documents(&mut self, begun: Vec<u8>, input: &mut impl BufRead, line: u64) -> Result<(), ReadError> {
        let mut text = begun;
        input.take(LINE_MAX).read_to_end(&mut text)?;
        for value in serde_json::Deserializer::from_slice(&text).into_iter::<Value>() {
            match value {
                Ok(value) => drop(self.document(value)),
                Err(error) if self.understood > 0 => {
                    self.notes.push(format!("the text is cut or damaged ({error}); what precedes is used"));
                    break;
                }
                Err(error) => {
                    return Err(damaged(line, format!("no JSON: {error}; the usual form is one report per line")));
                }
            }
        }
        Ok(())
    }

    /// Reads a report, several, or an event. Returns false if it is none.
    fn document(&mut self, value: Value) -> bool {
        match value {
            Value::Array(items) if items.first().is_some_and(|first| first.is_object()) => {
                let connection = connection(&mut self.connections, "");
                for members in items.iter().filter_map(Value::as_object) {
                    self.understood += u64::from(report(connection, self.tee, members, None));
                }
            }
            Value::Array(items) => match event(&mut self.connections, self.tee, &items, &mut self.clock_ms) {
                Event::Report => self.understood += 1,
                Event::Compressed => self.compressed = true,
                Event::Other => {}
            },
            Value::Object(members) => {
                self.understood += u64::from(report(connection(&mut self.connections, ""), self.tee, &members, None));
            }
            _ => return false,
        }
        true
    }

    fn finish(self) -> Result<Call, ReadError> {
        let mut call = Call { format: FORMAT.to_owned(), notes: self.notes, ..Call::default() };
        let legacy = self.connections.values().any(|connection| connection.legacy);
        let parts = self.connections.into_values().map(|connection| connection.statistics.finish(FORMAT, ""));
        let mut parts: Vec<Call> = parts.collect();
        // Connections without flows have no number.
        let several = parts.iter().filter(|part| !part.flows.is_empty()).count() > 1;
        let mut number = 0;
        for part in &mut parts {
            number += u32::from(!part.flows.is_empty());
            for flow in part.flows.iter_mut().filter(|_| several) {
                flow.name = format!("connection {number} {}", flow.name);
            }
            call.flows.append(&mut part.flows);
            call.notes.append(&mut part.notes);
        }
        call.notes.sort();
        call.notes.dedup();
        if call.flows.is_empty() {
            let problem = match (legacy, self.compressed) {
                (true, _) => LEGACY,
                (_, true) => {
                    "the reports have abbreviated names, which are not read; export the dump without compression"
                }
                _ => call.why_empty("no line has outbound-rtp or inbound-rtp statistics of two times"),
            };
            return Err(ReadError::Empty { format: FORMAT, problem: problem.to_owned() });
        }
        Ok(call)
    }
}

fn connection<'a>(connections: &'a mut BTreeMap<String, Connection>, name: &str) -> &'a mut Connection {
    let name = match connections.len() < CONNECTIONS_MAX || connections.contains_key(name) {
        true => name.to_owned(),
        false => connections.keys().next().cloned().unwrap_or_default(),
    };
    connections.entry(name).or_insert_with_key(|name| Connection { name: name.clone(), ..Connection::default() })
}

impl Connection {
    fn add(&mut self, tee: &mut Tee<'_>, sample: &Sample<'_>) {
        tee(&self.name, sample);
        self.statistics.add(sample);
    }
}

enum Event {
    Report,
    Compressed,
    Other,
}

/// Times above this are since 1970 and not since the last line: 2001, in ms.
const EPOCH_MS: f64 = 1e12;

/// Reads an event of rtcstats.
fn event(
    connections: &mut BTreeMap<String, Connection>,
    tee: &mut Tee<'_>,
    items: &[Value],
    clock_ms: &mut f64,
) -> Event {
    let [method, name, value, after @ ..] = items else { return Event::Other };
    // The time is last; newer dumps of Jitsi have a sequence number after it.
    let first = after.first().and_then(number).filter(|time| *time >= EPOCH_MS);
    if let Some(time) = first.or(after.last().and_then(number)) {
        *clock_ms = if time >= EPOCH_MS { time } else { *clock_ms + time.max(0.0) };
    }
    let Some(method) = method.as_str() else {
        // The code of a method: a report is an object of objects.
        let is_report = |members: &Map<String, Value>| !members.is_empty() && members.values().all(Value::is_object);
        let is_report = name.is_string() && value.as_object().is_some_and(is_report);
        return if is_report { Event::Compressed } else { Event::Other };
    };
    let connection = connection(connections, name.as_str().unwrap_or_default());
    match method {
        "getStats" | "getstats" => match value.as_object() {
            Some(members) if report(connection, tee, members, Some(*clock_ms)) => Event::Report,
            Some(members) if members.is_empty() => Event::Other,
            None if value.is_null() => Event::Other,
            _ => Event::Compressed,
        },
        "g" => Event::Compressed,
        "setRemoteDescription" => {
            let sdp = value.get("sdp").or(value.get(0).and_then(|first| first.get("sdp"))).unwrap_or(value);
            if let Some(bps) = sdp.as_str().and_then(session_cap) {
                connection.add(tee, &Sample::Cap { at_ms: *clock_ms, bps });
            }
            Event::Other
        }
        _ => Event::Other,
    }
}

/// Reads a report. Returns whether it has statistics.
fn report(connection: &mut Connection, tee: &mut Tee<'_>, members: &Map<String, Value>, time_ms: Option<f64>) -> bool {
    for inner in ["stats", "report", "reports", "value", "data"] {
        let time = members.get("timestamp").or(members.get("time")).and_then(number).or(time_ms);
        match members.get(inner) {
            Some(Value::Object(inner)) => return report(connection, tee, inner, time),
            Some(Value::Array(items)) => {
                let read = items.iter().filter(|item| object(connection, tee, item, time)).count();
                return read > 0;
            }
            _ => {}
        }
    }
    if members.contains_key("type") && members.contains_key("id") {
        return object(connection, tee, &Value::Object(members.clone()), time_ms);
    }
    let shared = members.get("timestamp").and_then(number).filter(|time| *time > 0.0).or(time_ms);
    // The transport first: it names the pair of candidates that is used.
    let mut any = false;
    let is_transport = |value: &Value| value["type"] == "transport";
    let (first, rest): (Vec<_>, Vec<_>) = members.iter().partition(|(_, value)| is_transport(value));
    for (id, value) in first.into_iter().chain(rest) {
        match value {
            Value::Object(values) => any |= sample(connection, tee, id, values, shared),
            Value::Null => {
                connection.last.remove(id);
                connection.add(tee, &Sample::Removed { id });
            }
            _ => {}
        }
    }
    any
}

fn object(connection: &mut Connection, tee: &mut Tee<'_>, item: &Value, time_ms: Option<f64>) -> bool {
    match (item.as_object(), item["id"].as_str()) {
        (Some(values), Some(id)) => sample(connection, tee, id, values, time_ms),
        _ => false,
    }
}

/// Reads one object. Metrics that are missing are as in the last report.
fn sample(
    connection: &mut Connection,
    tee: &mut Tee<'_>,
    id: &str,
    values: &Map<String, Value>,
    time_ms: Option<f64>,
) -> bool {
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
    connection.legacy |= matches!(kind.as_str(), "ssrc" | "VideoBwe") || kind.starts_with("goog");
    let sample = Sample::Object { id, kind: &kind, at_ms: at, values: merged };
    tee(&connection.name, &sample);
    connection.statistics.add(&sample);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: impl AsRef<[u8]>) -> Result<Call, ReadError> {
        super::read(text.as_ref(), &mut |_, _| ())
    }

    fn failed(text: &str) -> String {
        read(text).unwrap_err().to_string()
    }

    fn report(second: u64) -> Value {
        let ms = 1_700_000_000_000 + 1000 * second;
        serde_json::json!({"O": {"id": "O", "type": "outbound-rtp", "timestamp": ms, "bytesSent": 100_000 * second}})
    }

    #[test]
    fn reports_with_line_breaks_are_read_like_lines() {
        let reports: Vec<Value> = (0..20).map(report).collect();
        let lines: String = reports.iter().map(|report| format!("{report}\n")).collect();
        let expected = read(lines).unwrap();
        let pretty: String = reports.iter().map(|report| format!("{report:#}\n")).collect();
        assert_eq!(read(&pretty).unwrap(), expected);
        assert_eq!(read(format!("{:#}", Value::from(reports))).unwrap(), expected);
        let cut = read(&pretty.as_bytes()[..pretty.len() - 40]).unwrap();
        assert!(cut.notes.iter().any(|note| note.contains("cut or damaged")), "{:?}", cut.notes);
        assert!(failed("{\n\"a\": 1").contains("one report per line"));
    }

    #[test]
    fn messages_distinguish_legacy_and_abbreviated_reports_from_none() {
        for kind in ["ssrc", "googCandidatePair", "VideoBwe"] {
            let text = format!("[\"getStats\",\"PC_0\",{{\"a\":{{\"type\":\"{kind}\"}}}},1700000000000]\n");
            assert!(failed(&text).contains("legacy"), "{kind}: {}", failed(&text));
        }
        let abbreviated = "[7,\"PC_0\",{\"a\":{\"b\":1}},1700000000000]\n";
        assert!(failed(abbreviated).contains("abbreviated"), "{}", failed(abbreviated));
        let none = "[39,null,{\"a\":1},1700000000000]\n[61,null,[[\"video\",\"a\",\"b\"]],\"60-0\",1040]\n[\"close\",null,1001,2353]\n";
        assert!(failed(none).contains("no line has"), "{}", failed(none));
    }

    #[test]
    fn a_sequence_number_is_not_the_time() {
        let line = |second: u64| {
            format!(
                "{}\n",
                serde_json::json!(["getstats", "PC_0", report(second), 1_700_000_000_000 + 1000 * second, second])
            )
        };
        let text: String = (0..20).map(line).collect();
        let text = text.replace("\"timestamp\":17", "\"was\":17");
        let call = read(text).unwrap();
        assert_eq!(call.flows[0].span.1, paceline_units::Time::from_secs(19));
    }

    #[test]
    fn connections_without_flows_have_no_number() {
        let line = |name: &str, second: u64| {
            let report = if name == "PC_1" { serde_json::json!({}) } else { report(second) };
            format!("{}\n", serde_json::json!(["getstats", name, report, 1_700_000_000_000 + 1000 * second]))
        };
        let all = (0..20).flat_map(|second| ["PC_0", "PC_1", "PC_2"].map(|name| line(name, second)));
        let call = read(all.collect::<String>()).unwrap();
        let names: Vec<&str> = call.flows.iter().map(|flow| flow.name.as_str()).collect();
        assert_eq!(names, ["connection 1 sent", "connection 2 sent"]);
    }
}
