// SPDX-License-Identifier: MIT OR Apache-2.0
//! Samples of getStats as JSON in the shapes in which people store them, and dumps of rtcstats.
//!
//! A report is an object by id, a list of objects or of `[id, object]`, or stands inside other objects and lists, with a time beside it.
//! Lines of rtcstats are `[method, connection, value, …, time]`.

use super::internals::{LEGACY, milliseconds};
use crate::error::ReadError;
use crate::model::Call;
use crate::statistics::{
    self, METRICS, OBJECTS_MAX, Sample, Statistics, Tee, is_connected, is_state, number, session_cap,
};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::io::BufRead;
use values::Values;

mod abbreviations;
mod servers;
mod values;

/// Name of the format.
pub const FORMAT: &str = "getstats-lines";
/// First line of a dump of rtcstats.
pub const RTCSTATS: &str = "RTCStatsDump";

/// Connections at most, and bytes of an id, of a name of a connection and of a text that is kept: both bound the memory.
const CONNECTIONS_MAX: usize = 64;
const TEXT_MAX: usize = 1024;
/// Objects that a short line may repeat at most, over all lines: bounds the time. A hundred of them for 11 hours.
const REPEATS_MAX: usize = 1 << 22;

#[derive(Default)]
struct Connection {
    name: String,
    statistics: Statistics,
    /// The last report, for lines that have only what changed.
    last: BTreeMap<String, Map<String, Value>>,
    /// A time that is missing is that of the last report.
    keeps_times: bool,
    legacy: bool,
}

/// What was read.
struct Lines<'a> {
    tee: &'a mut Tee<'a>,
    connections: BTreeMap<String, Connection>,
    clock_ms: f64,
    /// Objects with statistics.
    understood: u64,
    /// Objects without changes that may still be repeated.
    repeats_left: usize,
    /// Reports leave out what is gone, as those of Jitsi, and not what did not change.
    leaves_out_gone: bool,
    /// Abbreviations without a name.
    unknown: BTreeSet<String>,
    /// Objects with metrics inside of other objects.
    left_out: usize,
    notes: Vec<String>,
}

/// Reads samples, each of which `tee` receives too.
///
/// # Errors
/// A value is no JSON or is too long, or nothing in them sent or received RTP.
pub fn read<'a>(input: impl BufRead, tee: &'a mut Tee<'a>) -> Result<Call, ReadError> {
    read_up_to(REPEATS_MAX, input, tee)
}

fn read_up_to<'a>(repeats_left: usize, input: impl BufRead, tee: &'a mut Tee<'a>) -> Result<Call, ReadError> {
    let mut lines = Lines {
        tee,
        connections: BTreeMap::new(),
        clock_ms: 0.0,
        understood: 0,
        repeats_left,
        leaves_out_gone: false,
        unknown: BTreeSet::new(),
        left_out: 0,
        notes: Vec::new(),
    };
    let mut values = Values::new(input);
    let mut damage: Option<(u64, u64, String)> = None;
    while let Some(found) = values.next()? {
        if let Some(value) = &found.value {
            lines.document(value, "", None);
        }
        if let Some(problem) = found.problem {
            damage.get_or_insert((0, found.line, problem)).0 += 1;
        }
    }
    match damage {
        Some((_, line, problem)) if lines.understood == 0 => {
            let problem = format!("no JSON: {problem}; the usual form is one report per line");
            return Err(ReadError::Damaged { format: FORMAT, place: format!("line {line}"), problem });
        }
        Some((count, line, problem)) => lines.notes.push(format!(
            "{count} of the values are cut or damaged, first at line {line} ({problem}); their whole parts are used"
        )),
        None => {}
    }
    lines.finish()
}

impl Lines<'_> {
    /// Reads a report, an event of rtcstats, or anything that contains some of them.
    fn document(&mut self, value: &Value, connection: &str, time_ms: Option<f64>) {
        match value {
            // The message of a socket in a log.
            Value::String(text) if text.starts_with(['[', '{']) => {
                if let Ok(value) = serde_json::from_str(text) {
                    self.document(&value, connection, time_ms);
                }
            }
            Value::Array(items) => match items.as_slice() {
                [Value::String(_) | Value::Number(_), _, _, ..] => self.event(items),
                _ if items.iter().any(|item| entry(item).is_some()) => {
                    self.report(connection, items.iter().filter_map(entry).collect(), time_ms);
                }
                _ if items.iter().any(is_statistics) => {
                    self.report(
                        connection,
                        items.iter().filter_map(Value::as_object).map(|s| (None, s)).collect(),
                        time_ms,
                    );
                }
                _ => items.iter().for_each(|item| self.document(item, connection, time_ms)),
            },
            Value::Object(members) => self.object(value, members, connection, time_ms),
            _ => {}
        }
    }

    fn object(&mut self, value: &Value, members: &Map<String, Value>, connection: &str, time_ms: Option<f64>) {
        let time_ms = TIMES.iter().find_map(|name| members.get(*name).and_then(time)).or(time_ms);
        let handle = members.get("handle_id").filter(|_| connection.is_empty()).map(Value::to_string);
        let connection = handle.as_deref().unwrap_or(connection);
        if is_statistics(value) {
            return self.report(connection, vec![(None, members)], time_ms);
        }
        if members.iter().any(|(id, value)| is_statistics(value) || self.is_known(connection, id)) {
            return self.map(connection, members, time_ms, self.leaves_out_gone);
        }
        let parts: Vec<_> =
            members.iter().filter(|(_, value)| !value.is_number() && has_statistics(value, DEPTH)).collect();
        // Several reports side by side are those of several times, or of several connections.
        // Small numbers are ids, as of users.
        let epoch = |name: &String| time(&Value::String(name.clone())).filter(|time| *time >= EPOCH_MS);
        let are_times = parts.iter().all(|(name, _)| epoch(name).is_some());
        for (name, value) in &parts {
            match (are_times, parts.len() > 1 && connection.is_empty()) {
                (true, _) => self.document(value, connection, epoch(name)),
                (false, true) => self.document(value, name, time_ms),
                (false, false) => self.document(value, connection, time_ms),
            }
        }
    }

    /// Returns whether the last report of a connection has this id.
    fn is_known(&self, connection: &str, id: &str) -> bool {
        self.connections.get(connection).is_some_and(|connection| connection.last.contains_key(id))
    }

    /// Reads an object of objects by id, in which null stands for one that is gone, and so does absence if it `leaves_out_gone`.
    fn map(&mut self, name: &str, members: &Map<String, Value>, time_ms: Option<f64>, leaves_out_gone: bool) {
        let connection = connection(&mut self.connections, name);
        let absent = |id: &&String| leaves_out_gone && !members.contains_key(*id);
        let absent: Vec<String> = connection.last.keys().filter(absent).cloned().collect();
        for id in members.iter().filter(|(_, value)| value.is_null()).map(|(id, _)| id).chain(&absent) {
            connection.last.remove(id);
            connection.add(self.tee, &Sample::Removed { id });
        }
        let statistics = members.iter().filter_map(|(id, value)| Some((Some(id.as_str()), value.as_object()?)));
        self.report(name, statistics.collect(), time_ms);
    }

    /// Reads the objects of a report, with their ids.
    fn report(&mut self, name: &str, mut objects: Vec<(Option<&str>, &Map<String, Value>)>, time_ms: Option<f64>) {
        // The transport first: it names the pair of candidates that is used. Then by id, and not as they are listed.
        objects.sort_by_cached_key(|(id, values)| {
            let id = id.map_or_else(|| id_of(values), str::to_owned);
            (values.get("type").is_none_or(|kind| kind != "transport"), id)
        });
        let connection = connection(&mut self.connections, name);
        connection.keeps_times = self.leaves_out_gone;
        for (id, values) in objects {
            let id = id.map_or_else(|| id_of(values), str::to_owned);
            self.left_out += servers::left_out(values);
            let read = match servers::standard(&id, values) {
                Some(objects) => {
                    objects.iter().filter(|(id, values)| connection.sample(self.tee, id, values, time_ms)).count()
                }
                None => usize::from(connection.sample(self.tee, &id, values, time_ms)),
            };
            self.understood += read as u64;
        }
    }

    /// Reads an event of rtcstats.
    fn event(&mut self, items: &[Value]) {
        let [method, name, value, after @ ..] = items else { return };
        // The time is last; newer dumps of Jitsi have a sequence number after it.
        let first = after.first().and_then(number).filter(|time| *time >= EPOCH_MS);
        self.leaves_out_gone |= first.is_some() && after.len() == 2;
        if let Some(time) = first.or(after.last().and_then(number)) {
            self.clock_ms = if time >= EPOCH_MS { time } else { self.clock_ms + time.max(0.0) };
        }
        let method = method.as_str().or(method.as_u64().map(abbreviations::method)).unwrap_or_default();
        let (name, at_ms) = (name.as_str().unwrap_or_default(), self.clock_ms);
        match (method, value) {
            ("connectionInfo", _) => self.leaves_out_gone |= value.get("statsFormat").is_some(),
            ("g" | "getStats", Value::Object(members)) if method == "g" || members.contains_key("t") => {
                self.compressed(name, members);
            }
            ("getStats" | "getstats", Value::Object(members)) => {
                let shared = members.get("timestamp").and_then(number).filter(|time| *time > 0.0);
                match members.values().any(|value| has_statistics(value, 1)) || !members.values().all(Value::is_array) {
                    true => self.map(name, members, shared.or(Some(at_ms)), self.leaves_out_gone),
                    false => self.document(value, name, Some(at_ms)),
                }
            }
            ("getStats" | "getstats", _) => self.document(value, name, Some(at_ms)),
            (event, Value::String(state)) if is_state(event) => {
                if let Some(is_connected) = is_connected(state) {
                    let connection = connection(&mut self.connections, name);
                    connection.add(self.tee, &Sample::Connected { at_ms, is_connected });
                }
            }
            ("setRemoteDescription", _) => {
                let sdp = value.get("sdp").or(value.get(0).and_then(|first| first.get("sdp"))).unwrap_or(value);
                if let Some(bps) = sdp.as_str().and_then(session_cap) {
                    connection(&mut self.connections, name).add(self.tee, &Sample::Cap { at_ms, bps });
                }
            }
            _ => {}
        }
    }

    /// Reads a report of rtcstats-js 2: only what changed, under abbreviated names. What is absent did not change.
    fn compressed(&mut self, name: &str, members: &Map<String, Value>) {
        let at_ms =
            ["t", "timestamp"].iter().find_map(|name| members.get(*name).and_then(number)).unwrap_or(self.clock_ms);
        let mut report: Map<String, Value> = members.clone();
        report.retain(|id, _| id != "t" && id != "timestamp");
        for value in report.values_mut() {
            let Value::Object(values) = value else { continue };
            *values = std::mem::take(values).into_iter().filter_map(|(key, value)| self.full(&key, value)).collect();
            values.entry("timestamp").or_insert(at_ms.into());
        }
        // Of what did not change, only what is read is repeated, and not twice at a time.
        let last = &connection(&mut self.connections, name).last;
        let is_read = |kind: &str| statistics::KINDS.contains(&kind);
        let now_ms = time(&at_ms.into()).unwrap_or(at_ms);
        for (id, values) in last.iter().filter(|(id, _)| !members.contains_key(*id)) {
            if !values.get("type").and_then(Value::as_str).is_some_and(is_read)
                || values.get("timestamp").and_then(time).is_some_and(|last_ms| last_ms >= now_ms)
            {
                continue;
            }
            let Some(left) = self.repeats_left.checked_sub(1) else { break };
            self.repeats_left = left;
            report.insert(id.clone(), serde_json::json!({"timestamp": at_ms}));
        }
        self.map(name, &report, Some(at_ms), false);
    }

    /// Returns the full name of a property, and the value with the full name of a type.
    fn full(&mut self, key: &str, value: Value) -> Option<(String, Value)> {
        let Some(name) = abbreviations::property(key) else {
            if self.unknown.len() < UNKNOWN_MAX {
                self.unknown.insert(key.to_owned());
            }
            return None;
        };
        let kind = number(&value).filter(|_| name == "type").and_then(abbreviations::kind);
        Some((name.to_owned(), kind.map_or(value, Value::from)))
    }

    fn finish(mut self) -> Result<Call, ReadError> {
        if !self.unknown.is_empty() {
            let names: Vec<String> = self.unknown.into_iter().collect();
            self.notes.push(format!("abbreviations without a known name are left out: {}", names.join(", ")));
        }
        if self.left_out > 0 {
            self.notes
                .push(format!("{} objects with statistics inside of other statistics are not read", self.left_out));
        }
        if self.repeats_left == 0 {
            self.notes.push("too many objects did not change: the last lines have only what changed".to_owned());
        }
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
            let problem = match legacy {
                true => LEGACY,
                false => call.why_empty("no report has outbound-rtp or inbound-rtp statistics of two times"),
            };
            return Err(ReadError::Empty { format: FORMAT, problem: problem.to_owned() });
        }
        Ok(call)
    }
}

/// Times above this are since 1970 and not since the last line: 1973, in ms.
const EPOCH_MS: f64 = 1e11;
/// Members that may have the time of a report.
const TIMES: [&str; 6] = ["timestamp", "time", "ts", "date", "createdAt", "t"];
/// Levels in which reports are looked for, and abbreviations that are named, at most.
const DEPTH: u32 = 8;
const UNKNOWN_MAX: usize = 16;

/// Reads a time as ms: numbers of ms, of seconds or of µs since 1970, and ISO 8601.
fn time(value: &Value) -> Option<f64> {
    let time = number(value).or_else(|| milliseconds(value.as_str()?)).filter(|time| *time > 0.0)?;
    Some(match time {
        // Seconds of the years 2001 to 2286.
        1e9..1e10 => time * 1e3,
        // Firefox and some libraries give µs.
        1e14.. => time / 1e3,
        _ => time,
    })
}

/// Returns whether it is an object of a report.
fn is_statistics(value: &Value) -> bool {
    value.as_object().is_some_and(|values| kind_of(values).is_some() || servers::is_janus(values))
}

/// Returns the type of an object of a report, by its members if it is not named.
fn kind_of(values: &Map<String, Value>) -> Option<&str> {
    let has = |names: [&str; 2]| names.into_iter().all(|name| values.contains_key(name));
    match values.get("type").and_then(Value::as_str) {
        Some(kind) if KINDS.contains(&kind) || kind.starts_with("goog") => Some(kind),
        Some(_) => None,
        None if has(["bytesSent", "packetsSent"]) && has(["ssrc"; 2]) => Some("outbound-rtp"),
        None if has(["bytesReceived", "packetsReceived"]) && has(["ssrc"; 2]) => Some("inbound-rtp"),
        None if has(["fractionLost", "roundTripTime"]) => Some("remote-inbound-rtp"),
        None if has(["state", "currentRoundTripTime"]) => Some("candidate-pair"),
        None => None,
    }
}

/// Types of objects: of the standard, of mediasoup, and those of legacy statistics.
const KINDS: &[&str] = &[
    "candidate-pair",
    "certificate",
    "codec",
    "compute-pressure",
    "csrc",
    "data-channel",
    "direct-transport",
    "ice-server",
    "inbound-rtp",
    "local-candidate",
    "media-playout",
    "media-source",
    "outbound-rtp",
    "peer-connection",
    "pipe-transport",
    "plain-rtp-transport",
    "receiver",
    "remote-candidate",
    "remote-inbound-rtp",
    "remote-outbound-rtp",
    "sender",
    "ssrc",
    "stream",
    "track",
    "transceiver",
    "transport",
    "VideoBwe",
    "webrtc-transport",
];

/// Returns whether a value contains statistics, or text that may.
fn has_statistics(value: &Value, depth: u32) -> bool {
    if is_statistics(value) {
        return true;
    }
    match value {
        Value::Array(items) if depth > 0 => items.iter().any(|item| has_statistics(item, depth - 1)),
        Value::Object(members) if depth > 0 => members.values().any(|member| has_statistics(member, depth - 1)),
        Value::String(text) => text.starts_with(['[', '{']),
        _ => false,
    }
}

/// Reads an entry of a map, `[id, object]`.
fn entry(value: &Value) -> Option<(Option<&str>, &Map<String, Value>)> {
    match value.as_array()?.as_slice() {
        [Value::String(id), statistics @ Value::Object(values)] if is_statistics(statistics) => {
            Some((Some(id), values))
        }
        _ => None,
    }
}

/// Returns the id of an object, or what distinguishes it from others.
fn id_of(values: &Map<String, Value>) -> String {
    if let Some(id) = values.get("id").and_then(Value::as_str) {
        return id.to_owned();
    }
    let names = ["type", "transportId", "ssrc", "rtxSsrc", "rid", "mid", "mindex", "media"];
    let parts = names.iter().filter_map(|name| values.get(*name)).map(Value::to_string);
    parts.collect::<Vec<_>>().join(" ")
}

fn connection<'a>(connections: &'a mut BTreeMap<String, Connection>, name: &str) -> &'a mut Connection {
    let is_new = connections.len() < CONNECTIONS_MAX && name.len() <= TEXT_MAX;
    let name = match is_new || connections.contains_key(name) {
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

    /// Reads one object. Metrics that are missing are as in the last report.
    fn sample(&mut self, tee: &mut Tee<'_>, id: &str, values: &Map<String, Value>, time_ms: Option<f64>) -> bool {
        let known = self.last.contains_key(id);
        let is_full = self.last.len() >= OBJECTS_MAX || id.len() > TEXT_MAX;
        if !known && (kind_of(values).is_none() && !values.contains_key("type") || is_full) {
            return false;
        }
        let merged = self.last.entry(id.to_owned()).or_default();
        for (name, value) in values.iter().filter(|(name, _)| *name == "type" || METRICS.contains(&name.as_str())) {
            let kept = match value {
                Value::Array(_) | Value::Object(_) => Value::Null,
                Value::String(text) if text.len() > TEXT_MAX => Value::Null,
                value => value.clone(),
            };
            merged.insert(name.clone(), kept);
        }
        if let Some(kind) = kind_of(values).filter(|_| !merged.contains_key("type")) {
            merged.insert("type".to_owned(), kind.into());
        }
        // Of a remote object the time is that of its RTCP report, which repeats; a time of 0 stands for that of the report.
        let own = values.get("timestamp").and_then(time);
        let Some(at_ms) = own.or(time_ms).or(merged.get("timestamp").and_then(time)) else { return false };
        if own.is_some() || !self.keeps_times {
            merged.insert("timestamp".to_owned(), at_ms.into());
        }
        let kind = merged.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
        self.legacy |= matches!(kind.as_str(), "ssrc" | "VideoBwe") || kind.starts_with("goog");
        let sample = Sample::Object { id, kind: &kind, at_ms, values: merged };
        tee(&self.name, &sample);
        self.statistics.add(&sample);
        true
    }
}

#[cfg(test)]
mod tests;
