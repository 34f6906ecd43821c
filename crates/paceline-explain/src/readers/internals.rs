//! Dumps of chrome://webrtc-internals, of current and of older versions of Chromium, as text or gzip.
//!
//! The document is read as a stream: of all series only those of known metrics are kept, and a connection is finished before the
//! next one, so that memory does not grow with the file.

use crate::error::ReadError;
use crate::model::Call;
use crate::statistics::{METRICS, Statistics, number, session_cap};
use serde::Deserialize;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;

/// Name of the format.
pub const FORMAT: &str = "webrtc-internals";

/// The longest text in the document. The longest known are series of 1000 points, below 100 kB, and session descriptions.
const TEXT_MAX: usize = 32 << 20;
/// Points of a series at most: Chromium keeps 1000.
const POINTS_MAX: usize = 100_000;
/// Objects of a connection at most.
const OBJECTS_MAX: usize = 4096;

/// Reads a dump.
///
/// # Errors
/// It is no JSON, or has no connection with statistics.
pub fn read(input: impl Read) -> Result<Call, ReadError> {
    let mut call = Call { format: FORMAT.to_owned(), ..Call::default() };
    let mut json = serde_json::Deserializer::from_reader(LimitedText::new(input));
    let result = Document(&mut call).deserialize(&mut json);
    if let Err(error) = result {
        let place = format!("line {}, column {}", error.line(), error.column());
        if call.flows.is_empty() {
            return Err(ReadError::Damaged { format: FORMAT, place, problem: error.to_string() });
        }
        call.notes.push(format!("the dump is cut or damaged at {place}; what precedes is used"));
    }
    if call.flows.is_empty() {
        let problem = match call.notes.iter().any(|note| note == LEGACY) {
            true => LEGACY,
            false => "no connection in it sent or received RTP",
        };
        return Err(ReadError::Empty { format: FORMAT, problem: problem.to_owned() });
    }
    call.notes.dedup();
    Ok(call)
}

const LEGACY: &str = "it has legacy statistics (goog…), which are not read; save the dump with \
     chrome://webrtc-internals set to standard getStats";

/// The document; what is known of it goes to the call.
struct Document<'a>(&'a mut Call);

impl<'de> DeserializeSeed<'de> for Document<'_> {
    type Value = ();
    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Document<'_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the object of a webrtc-internals dump")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "PeerConnections" => map.next_value_seed(Connections(&mut *self.0))?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

struct Connections<'a>(&'a mut Call);

impl<'de> DeserializeSeed<'de> for Connections<'_> {
    type Value = ();
    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Connections<'_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the connections of a dump")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut number = 0;
        while map.next_key::<IgnoredAny>()?.is_some() {
            number += 1;
            let mut connection = Connection::default();
            let result = map.next_value_seed(&mut connection);
            // Of a cut connection, the part before the cut is used.
            connection.finish(number, self.0);
            result?;
        }
        Ok(())
    }
}

/// One connection.
#[derive(Default)]
struct Connection {
    /// Objects by id.
    objects: BTreeMap<String, Series>,
    /// Time, ms, and upper limit, bit/s, of session descriptions.
    caps: Vec<(Option<f64>, f64)>,
    legacy: bool,
    unplaced: usize,
    left_out: bool,
}

#[derive(Default)]
struct Series {
    kind: String,
    metrics: BTreeMap<String, (f64, f64, Vec<Value>)>,
}

impl<'de> DeserializeSeed<'de> for &mut Connection {
    type Value = ();
    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for &mut Connection {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a connection")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "stats" => map.next_value_seed(StatsOf(self))?,
                "updateLog" => map.next_value_seed(LogOf(self))?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

struct StatsOf<'a>(&'a mut Connection);

impl<'de> DeserializeSeed<'de> for StatsOf<'_> {
    type Value = ();
    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

/// A series as it is stored: `values` is the text of a JSON array.
#[derive(Deserialize)]
struct Stored {
    #[serde(default, rename = "startTime")]
    start: Option<String>,
    #[serde(default, rename = "endTime")]
    end: Option<String>,
    #[serde(default, rename = "statsType")]
    kind: Option<String>,
    #[serde(default)]
    values: Value,
}

impl<'de> Visitor<'de> for StatsOf<'_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the statistics of a connection")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            // Computed metrics have names in brackets; ids contain hyphens.
            let split = if key.contains("-[") { None } else { key.rsplit_once('-') };
            match split.filter(|(_, metric)| METRICS.contains(metric)) {
                Some((id, metric)) => {
                    let stored: Stored = map.next_value()?;
                    self.0.add(id, metric, stored);
                }
                None => {
                    self.0.legacy |= key.starts_with("Conn-") || key.contains("-goog");
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

impl Connection {
    fn add(&mut self, id: &str, metric: &str, stored: Stored) {
        let kind = stored.kind.unwrap_or_else(|| kind_of(id).to_owned());
        if !["outbound-rtp", "inbound-rtp", "remote-inbound-rtp", "candidate-pair", "transport", "media-source"]
            .contains(&kind.as_str())
        {
            return;
        }
        let mut values: Vec<Value> = match stored.values {
            Value::String(text) => serde_json::from_str(&text).unwrap_or_default(),
            Value::Array(values) => values,
            _ => Vec::new(),
        };
        values.truncate(POINTS_MAX);
        let time = |text: Option<String>| text.as_deref().and_then(milliseconds);
        let (Some(start), Some(end)) = (time(stored.start), time(stored.end)) else { return };
        if self.objects.len() >= OBJECTS_MAX && !self.objects.contains_key(id) {
            self.left_out = true;
            return;
        }
        let series = self.objects.entry(id.to_owned()).or_default();
        series.kind = kind;
        series.metrics.insert(metric.to_owned(), (start, end, values));
    }

    /// Adds the flows of the connection to a call.
    fn finish(self, number: usize, call: &mut Call) {
        if self.legacy && self.objects.is_empty() {
            call.notes.push(LEGACY.to_owned());
        }
        let mut samples: Vec<(f64, &str, &str, Map<String, Value>)> = Vec::new();
        let mut unplaced = self.unplaced;
        for (id, series) in &self.objects {
            let mut by_time: BTreeMap<u64, Map<String, Value>> = BTreeMap::new();
            let times = times(series);
            for (metric, (start, end, values)) in &series.metrics {
                let Some(from) = place(&times, *start, *end, values.len()) else {
                    unplaced += 1;
                    continue;
                };
                for (value, at) in values.iter().zip(&times[from..]) {
                    by_time.entry(at.max(0.0) as u64).or_default().insert(metric.clone(), value.clone());
                }
            }
            samples
                .extend(by_time.into_iter().map(|(at, values)| (at as f64, id.as_str(), series.kind.as_str(), values)));
        }
        // The transport first: it names the pair of candidates that is used.
        samples.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| (a.2 != "transport").cmp(&(b.2 != "transport"))));
        let mut statistics = Statistics::default();
        for (at, id, kind, values) in samples {
            statistics.add(id, kind, at, &values);
        }
        for (at, bps) in self.caps {
            statistics.cap(at.unwrap_or(0.0), bps);
        }
        let mut part = statistics.finish(FORMAT, &format!("connection {number}"));
        call.flows.append(&mut part.flows);
        call.notes.append(&mut part.notes);
        if unplaced > 0 {
            call.notes.push(format!("{unplaced} series with gaps cannot be placed in time and are left out"));
        }
        if self.left_out {
            call.notes.push(format!("objects beyond {OBJECTS_MAX} of a connection are left out"));
        }
    }
}

/// Returns the type of an object of 2020 and before, whose series do not name it.
fn kind_of(id: &str) -> &'static str {
    let prefixes = [
        ("RTCOutboundRTP", "outbound-rtp"),
        ("RTCInboundRTP", "inbound-rtp"),
        ("RTCRemoteInboundRtp", "remote-inbound-rtp"),
        ("RTCIceCandidatePair_", "candidate-pair"),
        ("RTCTransport_", "transport"),
        ("RTCVideoSource", "media-source"),
        ("RTCAudioSource", "media-source"),
    ];
    prefixes.iter().find(|(prefix, _)| id.starts_with(prefix)).map_or("", |(_, kind)| kind)
}

/// Returns the times of an object's samples: its `timestamp` (since Chromium 117), else one sample a second from the first start.
fn times(series: &Series) -> Vec<f64> {
    if let Some((_, _, values)) = series.metrics.get("timestamp") {
        let times: Vec<f64> = values.iter().filter_map(number).collect();
        if !times.is_empty() {
            return times;
        }
    }
    let start = series.metrics.values().map(|(start, _, _)| *start).fold(f64::MAX, f64::min);
    let end = series.metrics.values().map(|(start, _, values)| start + 1e3 * values.len() as f64).fold(0.0, f64::max);
    let count = (((end - start) / 1e3).ceil().max(0.0) as usize).min(POINTS_MAX);
    (0..count).map(|index| start + 1e3 * index as f64).collect()
}

/// Returns the index of the first value among the times. A series that is shorter than its span has gaps and cannot be placed.
fn place(times: &[f64], start: f64, end: f64, count: usize) -> Option<usize> {
    let near = |wanted: f64| {
        let at = times.partition_point(|time| *time < wanted - 500.0);
        let candidates = at..(at + 3).min(times.len());
        candidates.min_by(|a, b| (times[*a] - wanted).abs().total_cmp(&(times[*b] - wanted).abs()))
    };
    if count == times.len() {
        return Some(0);
    }
    let (first, last) = (near(start)?, near(end)?);
    (last + 1 >= first && last + 1 - first == count).then_some(first)
}

/// Reads a time such as `2026-02-03T10:20:30.123Z` (ISO 8601, UTC), ms since 1970.
fn milliseconds(text: &str) -> Option<f64> {
    let (date, time) = text.trim().trim_end_matches('Z').split_once('T')?;
    let mut date = date.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let mut time = time.splitn(3, ':');
    let (hours, minutes) = (time.next()?.parse::<i64>().ok()?, time.next()?.parse::<i64>().ok()?);
    let seconds: f64 = time.next()?.parse().ok()?;
    if !(1970..3000).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Days since 1970 in the Gregorian calendar, with years that begin in March.
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 - 719_468;
    Some(((days * 86_400 + hours * 3600 + minutes * 60) as f64 + seconds) * 1e3)
}

struct LogOf<'a>(&'a mut Connection);

impl<'de> DeserializeSeed<'de> for LogOf<'_> {
    type Value = ();
    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

/// An entry of the log. Older versions have the time as text without a zone, which is not used.
#[derive(Deserialize)]
struct Entry {
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    value: Value,
    #[serde(default)]
    timestamp: Value,
}

impl<'de> Visitor<'de> for LogOf<'_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the log of a connection")
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while let Some(entry) = seq.next_element::<Entry>()? {
            // What the remote side sets limits the sender.
            let text = entry.value.as_str().unwrap_or_default();
            if entry.kind.starts_with("setRemoteDescription")
                && let Some(bps) = session_cap(&text.replace("\\r", "\r").replace("\\n", "\n"))
                && self.0.caps.last().is_none_or(|(_, last)| *last != bps)
                && self.0.caps.len() < OBJECTS_MAX
            {
                let at = number(&entry.timestamp);
                self.0.caps.push((at, bps));
            }
        }
        Ok(())
    }
}

/// Fails on a text that is longer than any of a dump, before it fills the memory.
struct LimitedText<R> {
    input: R,
    in_text: bool,
    escaped: bool,
    length: usize,
}

impl<R: Read> LimitedText<R> {
    fn new(input: R) -> Self {
        Self { input, in_text: false, escaped: false, length: 0 }
    }
}

impl<R: Read> Read for LimitedText<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.input.read(buffer)?;
        for byte in &buffer[..count] {
            match (byte, self.in_text, self.escaped) {
                (_, true, true) => self.escaped = false,
                (b'\\', true, _) => self.escaped = true,
                (b'"', _, _) => (self.in_text, self.length) = (!self.in_text, 0),
                _ => {}
            }
            self.length += usize::from(self.in_text);
            if self.length > TEXT_MAX {
                return Err(std::io::Error::other(format!("a text is longer than {} MB", TEXT_MAX >> 20)));
            }
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_times_of_the_calendar() {
        assert_eq!(milliseconds("1970-01-01T00:00:00.000Z"), Some(0.0));
        assert_eq!(milliseconds("2000-02-29T12:00:00.500Z"), Some(951_825_600_500.0));
        assert_eq!(milliseconds("2026-11-24T00:00:00Z"), Some(1_795_478_400_000.0));
        for bad in ["", "2026-11-24", "2026-13-01T00:00:00Z", "x-11-24T00:00:00Z", "Invalid Date"] {
            assert_eq!(milliseconds(bad), None, "{bad}");
        }
    }

    #[test]
    fn places_series_that_began_later_and_refuses_gaps() {
        let times: Vec<f64> = (0..10).map(|n| 1e12 + 1001.0 * f64::from(n)).collect();
        assert_eq!(place(&times, times[0], times[9], 10), Some(0));
        assert_eq!(place(&times, times[3].trunc(), times[9].trunc(), 7), Some(3));
        assert_eq!(place(&times, times[3], times[9], 5), None);
    }
}
