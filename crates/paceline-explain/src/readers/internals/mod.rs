// SPDX-License-Identifier: MIT OR Apache-2.0
//! Dumps of chrome://webrtc-internals, of current and of older versions of Chromium, as text or gzip.
//!
//! The document is read as a stream: of all series only those of known metrics are kept, and a connection is finished before the
//! next one, so that memory does not grow with the file.

use crate::error::ReadError;
use crate::model::Call;
use crate::statistics::{
    KINDS, METRICS, OBJECTS_MAX, Sample, Statistics, Tee, is_connected, is_state, number, session_cap,
};
use serde::Deserialize;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;
pub(super) use times::milliseconds;
use times::{Grid, POINTS_MAX, RATES, Series, place};

mod times;

/// Name of the format.
pub const FORMAT: &str = "webrtc-internals";

/// The longest text in the document. The longest known are series of 1000 points, below 100 kB, and session descriptions.
const TEXT_MAX: usize = 32 << 20;

/// Reads a dump, of which `tee` receives the samples too.
///
/// # Errors
/// It is no JSON, or has no connection with statistics.
pub fn read(input: impl Read, tee: &mut Tee<'_>) -> Result<Call, ReadError> {
    let mut call = Call { format: FORMAT.to_owned(), ..Call::default() };
    let mut json = serde_json::Deserializer::from_reader(LimitedText::new(input));
    let result = Object(Document(&mut call, tee)).deserialize(&mut json);
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
            false => call.why_empty("no connection in it sent or received RTP"),
        };
        return Err(ReadError::Empty { format: FORMAT, problem: problem.to_owned() });
    }
    call.notes.sort();
    call.notes.dedup();
    Ok(call)
}

/// Why legacy statistics give no call.
pub const LEGACY: &str = "it has legacy statistics (goog…, ssrc), which are not read; record standard getStats, \
     to which chrome://webrtc-internals can be set";

/// The document; what is known of it goes to the call.
struct Document<'a>(&'a mut Call, &'a mut Tee<'a>);

/// An object of the document that is read member by member.
trait Members {
    /// What it is, for errors.
    const NAME: &'static str;
    fn read<'de, A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error>;
}

/// Reads an object.
struct Object<T>(T);

impl<'de, T: Members> DeserializeSeed<'de> for Object<T> {
    type Value = ();
    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, T: Members> Visitor<'de> for Object<T> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::NAME)
    }
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error> {
        self.0.read(map)
    }
}

impl Members for Document<'_> {
    const NAME: &'static str = "the object of a webrtc-internals dump";
    fn read<'de, A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "PeerConnections" => map.next_value_seed(Object(Connections(&mut *self.0, &mut *self.1)))?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

struct Connections<'a>(&'a mut Call, &'a mut Tee<'a>);

impl Members for Connections<'_> {
    const NAME: &'static str = "the connections of a dump";
    fn read<'de, A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        // Connections without flows have no number.
        let (mut number, mut all) = (1, 0);
        while map.next_key::<IgnoredAny>()?.is_some() {
            let mut connection = Connection::default();
            let result = map.next_value_seed(Object(&mut connection));
            // Of a cut connection, the part before the cut is used.
            let flows = self.0.flows.len();
            all += 1;
            connection.finish(number, self.0, &mut |sample| (self.1)(&format!("{all}"), sample));
            number += usize::from(self.0.flows.len() > flows);
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
    /// Time, ms, and whether the connection was made or lost.
    states: Vec<(f64, bool)>,
    /// A loss of the connection has its time as text without a zone.
    has_untimed_loss: bool,
    legacy: bool,
    unplaced: usize,
    left_out: bool,
}

impl Members for &mut Connection {
    const NAME: &'static str = "a connection";
    fn read<'de, A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "stats" => map.next_value_seed(Object(StatsOf(self)))?,
                "updateLog" => map.next_value_seed(LogOf(self))?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

struct StatsOf<'a>(&'a mut Connection);

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

impl Members for StatsOf<'_> {
    const NAME: &'static str = "the statistics of a connection";
    fn read<'de, A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            // Computed metrics have names in brackets; ids contain hyphens.
            let (id, metric) = match key.split_once("-[") {
                Some((id, _)) => (id, &key[id.len() + 1..]),
                None => key.rsplit_once('-').unwrap_or_default(),
            };
            let rate = RATES.iter().find(|(rate, _)| *rate == metric);
            match (rate, METRICS.contains(&metric)) {
                (Some((rate, _)), _) => self.0.add_rate(id, rate, map.next_value()?),
                (None, true) => self.0.add(id, metric, map.next_value()?),
                (None, false) => {
                    self.0.legacy |= key.starts_with("Conn-") || key.contains("-goog");
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

impl Stored {
    fn values(&self) -> Vec<Value> {
        let mut values: Vec<Value> = match &self.values {
            Value::String(text) => serde_json::from_str(text).unwrap_or_default(),
            Value::Array(values) => values.clone(),
            _ => Vec::new(),
        };
        values.truncate(POINTS_MAX);
        values
    }
}

impl Connection {
    fn add(&mut self, id: &str, metric: &str, stored: Stored) {
        let values = stored.values();
        let time = |text: &Option<String>| text.as_deref().and_then(milliseconds);
        let (Some(start), Some(end)) = (time(&stored.start), time(&stored.end)) else { return };
        if let Some(series) = self.series(id, stored.kind) {
            series.metrics.insert(metric.to_owned(), (start, end, values));
        }
    }

    fn add_rate(&mut self, id: &str, rate: &'static str, stored: Stored) {
        let values = stored.values();
        if let Some(series) = self.series(id, stored.kind) {
            series.rates.insert(rate, values);
        }
    }

    /// Returns the series of an object, if it is of a kind that is read.
    fn series(&mut self, id: &str, kind: Option<String>) -> Option<&mut Series> {
        let kind = kind.unwrap_or_else(|| kind_of(id).to_owned());
        if !KINDS.contains(&kind.as_str()) {
            return None;
        }
        if self.objects.len() >= OBJECTS_MAX && !self.objects.contains_key(id) {
            self.left_out = true;
            return None;
        }
        let series = self.objects.entry(id.to_owned()).or_default();
        series.kind = kind;
        Some(series)
    }

    /// Adds the flows of the connection to a call.
    fn finish(self, number: usize, call: &mut Call, tee: &mut dyn FnMut(&Sample<'_>)) {
        if self.legacy && self.objects.is_empty() {
            call.notes.push(LEGACY.to_owned());
        }
        let mut samples: Vec<(f64, &str, &str, Map<String, Value>)> = Vec::new();
        let mut unplaced = self.unplaced;
        let grid = Grid::new(self.objects.values());
        for (id, series) in &self.objects {
            let mut by_time: BTreeMap<u64, Map<String, Value>> = BTreeMap::new();
            let times = grid.times(series);
            let last = series.metrics.values().map(|(_, end, _)| *end).fold(0.0, f64::max);
            for (metric, (start, end, values)) in &series.metrics {
                let Some(from) = place(&times, (*start, *end), values.len(), last) else {
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
        let mut add = |sample: Sample<'_>| {
            tee(&sample);
            statistics.add(&sample);
        };
        for (at_ms, id, kind, values) in &samples {
            add(Sample::Object { id, kind, at_ms: *at_ms, values });
        }
        for (at_ms, is_connected) in self.states {
            add(Sample::Connected { at_ms, is_connected });
        }
        self.caps.iter().for_each(|(at, bps)| add(Sample::Cap { at_ms: at.unwrap_or(0.0), bps: *bps }));
        let mut part = statistics.finish(FORMAT, &format!("connection {number}"));
        call.flows.append(&mut part.flows);
        call.notes.append(&mut part.notes);
        if unplaced > 0 {
            call.notes.push(format!("{unplaced} series with gaps cannot be placed in time and are left out"));
        }
        if self.has_untimed_loss {
            call.notes.push(
                "the connection was lost or failed: when is not known, because the times of its states have no zone"
                    .to_owned(),
            );
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
            self.0.has_untimed_loss |=
                is_state(&entry.kind) && is_connected(text) == Some(false) && number(&entry.timestamp).is_none();
            if is_state(&entry.kind)
                && let Some((is_connected, at)) = is_connected(text).zip(number(&entry.timestamp))
                && self.0.states.len() < OBJECTS_MAX
            {
                self.0.states.push((at, is_connected));
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
