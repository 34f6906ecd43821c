// SPDX-License-Identifier: MIT OR Apache-2.0
//! Statistics of browsers (W3C Identifiers for WebRTC's Statistics API) to flows: what was sent, and what was received.
//!
//! Counters are spread over the seconds between two samples; values of states hold until the next sample.

use crate::model::{Call, Confidence, Flow, Limit, Mark, MarkKind, Media, NEWEST_FIRST, Origin, Quantity, Series};
use paceline_units::{Time, TimeDelta};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The length of an interval: the usual period of samples.
const BIN_S: f64 = 1.0;
/// Intervals at most, 3 days: bounds the memory.
const BINS_MAX: usize = 1 << 18;
/// Objects of a connection at most, and limits and states of it: bounds the memory.
pub const OBJECTS_MAX: usize = 4096;
/// A value holds at most for this many intervals.
const HOLDS: usize = 5;
/// Series of states at most, also of objects that are gone: bounds the memory.
const STATES_MAX: usize = 4 * OBJECTS_MAX;
/// Layers of a source whose targets are compared. Assumed: twice the layers of a simulcast.
const LAYERS_MAX: usize = 8;
/// One of so many samples may be out of order without a note. Assumed: a clock that is set sometimes.
const EARLIER_SHARE: u64 = 20;
/// A shorter jitter may repeat on a quiet path, s. Assumed: forty ticks of 8 kHz, the coarsest clock in use.
const JITTER: f64 = 0.005;

/// Returns what a state of ICE or of a connection says about it, if it says so.
pub fn is_connected(state: &str) -> Option<bool> {
    match state.trim_matches('"') {
        "connected" | "completed" => Some(true),
        "disconnected" | "failed" => Some(false),
        _ => None,
    }
}

/// The events of such states, with and without `on`.
pub fn is_state(event: &str) -> bool {
    matches!(event.trim_start_matches("on"), "iceconnectionstatechange" | "connectionstatechange")
}

/// The types of objects that are read. Readers may leave out all others.
pub const KINDS: [&str; 6] =
    ["outbound-rtp", "inbound-rtp", "remote-inbound-rtp", "candidate-pair", "transport", "media-source"];

/// The metrics that are read. Readers may leave out all others.
pub const METRICS: &[&str] = &[
    "timestamp",
    "active",
    "availableOutgoingBitrate",
    "bytesReceived",
    "bytesSent",
    "currentRoundTripTime",
    "frames",
    "framesEncoded",
    "framesPerSecond",
    "freezeCount",
    "headerBytesReceived",
    "headerBytesSent",
    "jitter",
    "kind",
    "mediaSourceId",
    "nominated",
    "packetsLost",
    "packetsReceived",
    "packetsReceivedWithCe",
    "packetsReceivedWithEct1",
    "packetsReportedAsLost",
    "packetsReportedAsLostButRecovered",
    "packetsSent",
    "packetsSentWithEct1",
    "packetsWithBleachedEct1Marking",
    "qualityLimitationReason",
    "responsesReceived",
    "retransmittedPacketsSent",
    "roundTripTime",
    "roundTripTimeMeasurements",
    "selectedCandidatePairChanges",
    "selectedCandidatePairId",
    "state",
    "targetBitrate",
    "totalEncodeTime",
    "totalFreezesDuration",
    "totalPacketSendDelay",
];

/// A part of the statistics of a connection, as a reader found it.
pub enum Sample<'a> {
    /// The values of an object of this type by metric, at a time in ms since 1970.
    Object {
        id: &'a str,
        /// Its type.
        kind: &'a str,
        /// The time of its report.
        at_ms: f64,
        values: &'a Map<String, Value>,
    },
    /// An object is gone.
    Removed { id: &'a str },
    /// The session set an upper limit, bit/s.
    Cap {
        /// The time, ms since 1970.
        at_ms: f64,
        /// The limit.
        bps: f64,
    },
    /// The connection was made, or was lost.
    Connected {
        /// The time, ms since 1970.
        at_ms: f64,
        /// Whether it was made.
        is_connected: bool,
    },
}

/// Receives the name of a connection and a sample of it, besides the [`Call`].
pub type Tee<'a> = dyn FnMut(&str, &Sample<'_>) + 'a;

/// Accumulates samples.
#[derive(Default)]
pub struct Statistics {
    origin_ms: Option<f64>,
    end_ms: f64,
    objects: BTreeMap<String, Object>,
    sent: Direction,
    received: Direction,
    selected: Option<String>,
    /// Samples of the object that has most.
    most_samples: u64,
    /// Limits and states of the connection.
    caps: usize,
    states: usize,
    left_out: bool,
    /// Samples that were used, and those that are left out because later ones of their object were used.
    samples: u64,
    earlier: u64,
    /// Samples that are earlier than the one before them.
    backward: u64,
}

#[derive(Default)]
struct Object {
    at_ms: f64,
    /// The time of the sample before, used or not.
    last_ms: f64,
    samples: u64,
    values: BTreeMap<String, f64>,
    reason: Option<String>,
    reported: bool,
}

/// The bins of a counter, and the first one that was touched: before it nothing is known.
struct Counter {
    first: usize,
    bins: Vec<f64>,
}

#[derive(Default)]
struct Direction {
    counters: BTreeMap<Quantity, Counter>,
    /// Bytes and whether there is a target, by stream.
    targets: BTreeMap<String, (f64, bool)>,
    /// The media source of each stream.
    sources: BTreeMap<String, String>,
    /// By quantity and object: interval and last value in it.
    states: BTreeMap<(Quantity, String), Vec<(usize, f64)>>,
    round_trip: Vec<(f64, f64)>,
    encode: BTreeMap<Quantity, (Vec<f64>, Vec<f64>)>,
    marks: Vec<(f64, MarkKind)>,
    media: Option<Media>,
    seen: bool,
}

impl Statistics {
    pub fn add(&mut self, sample: &Sample<'_>) {
        match *sample {
            Sample::Object { id, kind, at_ms, values } => self.add_object(id, kind, at_ms, values),
            Sample::Removed { id } => drop(self.objects.remove(id)),
            Sample::Cap { at_ms, bps } if self.caps < OBJECTS_MAX => {
                self.caps += 1;
                self.sent.marks.push((self.time(at_ms), MarkKind::CapSet(bps)));
            }
            Sample::Connected { at_ms, is_connected } if self.states < OBJECTS_MAX => {
                self.states += 1;
                let mark = (self.time(at_ms), MarkKind::Connected(is_connected));
                self.received.marks.push(mark.clone());
                self.sent.marks.push(mark);
            }
            Sample::Cap { .. } | Sample::Connected { .. } => {}
        }
    }

    /// Returns the time since the first sample, s. Before it, an event has no time of its own.
    fn time(&self, at_ms: f64) -> f64 {
        self.origin_ms.map_or(0.0, |origin| ((at_ms - origin) / 1e3).clamp(0.0, BINS_MAX as f64 * BIN_S))
    }

    fn add_object(&mut self, id: &str, kind: &str, at_ms: f64, values: &Map<String, Value>) {
        if !KINDS.contains(&kind) || !at_ms.is_finite() || at_ms < 0.0 {
            return;
        }
        if self.objects.len() >= OBJECTS_MAX && !self.objects.contains_key(id) {
            self.left_out = true;
            return;
        }
        let origin = *self.origin_ms.get_or_insert(at_ms);
        let at = (at_ms - origin) / 1e3;
        let object = self.objects.entry(id.to_owned()).or_default();
        self.backward += u64::from(at_ms < std::mem::replace(&mut object.last_ms, at_ms));
        if !(0.0..BINS_MAX as f64 * BIN_S).contains(&at) {
            self.left_out |= at > 0.0;
            self.earlier += u64::from(at < 0.0);
            return;
        }
        self.end_ms = self.end_ms.max(at_ms);
        let numbers: BTreeMap<String, f64> = values
            .iter()
            .filter(|(name, _)| METRICS.contains(&name.as_str()))
            .filter_map(|(name, value)| Some((name.clone(), number(value)?)))
            .collect();
        let text = |name: &str| values.get(name).and_then(Value::as_str);
        let before = std::mem::take(&mut object.values);
        let (before_at, first) = (object.at_ms, before.is_empty());
        if !first && at_ms <= before_at {
            // The report of a repeated sample, or one out of order.
            self.earlier += u64::from(at_ms < before_at);
            object.values = before;
            return;
        }
        let step = Step { at, from: (before_at - origin) / 1e3, first, before: &before, now: &numbers };
        match kind {
            "outbound-rtp" => {
                let reason = text("qualityLimitationReason").map(str::to_owned);
                if let Some(source) = text("mediaSourceId").filter(|_| self.sent.sources.len() < OBJECTS_MAX) {
                    self.sent.sources.insert(id.to_owned(), source.to_owned());
                }
                outbound(&mut self.sent, id, &step, reason.as_deref(), object.reason.as_deref());
                self.sent.carries(text("kind"), step.delta("bytesSent"));
                object.reason = reason.or(object.reason.take());
            }
            "inbound-rtp" => inbound(&mut self.received, &step, text("kind")),
            "remote-inbound-rtp" => {
                // These counts come with other reports than the rest.
                ecn(&mut self.sent, &step);
                if first || !(is_repeated(&before, &numbers) || is_silent(&before, &numbers)) || !object.reported {
                    remote(&mut self.sent, id, &step);
                    object.reported = true;
                }
            }
            "candidate-pair" => {
                let selected = match &self.selected {
                    Some(selected) => selected == id,
                    None => text("state") == Some("succeeded"),
                };
                if selected {
                    if let Some(bps) = numbers.get("availableOutgoingBitrate") {
                        self.sent.state(Quantity::Estimate, "pair", at, *bps);
                    }
                    if let Some(rtt) = numbers.get("currentRoundTripTime") {
                        self.sent.state(Quantity::RoundTrip, "pair", at, *rtt);
                        self.received.state(Quantity::RoundTrip, "pair", at, *rtt);
                    }
                    if let Some(answers) = step.delta("responsesReceived") {
                        self.received.count(Quantity::PathAnswers, step.from, at, answers);
                    }
                }
            }
            "transport" => {
                if let Some(pair) = text("selectedCandidatePairId").filter(|pair| !pair.is_empty()) {
                    let changed = self.selected.as_deref().is_some_and(|selected| selected != pair);
                    if changed {
                        self.sent.marks.push((at, MarkKind::RouteChange));
                        self.received.marks.push((at, MarkKind::RouteChange));
                    }
                    self.selected = Some(pair.to_owned());
                }
            }
            _ => {
                if let Some(fps) = numbers.get("framesPerSecond") {
                    self.sent.state(Quantity::SourceFrameRate, id, at, *fps);
                }
            }
        }
        object.at_ms = at_ms;
        object.samples += 1;
        self.samples += 1;
        self.most_samples = self.most_samples.max(object.samples);
        object.values = numbers;
    }

    /// Returns the flows, and adds notes to them.
    pub fn finish(mut self, format: &str, name: &str) -> Call {
        // The round trip is that of both directions.
        self.received.round_trip = self.sent.round_trip.clone();
        let span_s = self.origin_ms.map_or(0.0, |origin| (self.end_ms - origin) / 1e3);
        let prefix = if name.is_empty() { String::new() } else { format!("{name} ") };
        let sent = self.sent.flow(format!("{prefix}sent"), true, span_s);
        let received = self.received.flow(format!("{prefix}received"), false, span_s);
        let interval_s = span_s / (self.most_samples.max(2) - 1) as f64;
        let mut notes = vec![format!(
            "statistics have one sample every {interval_s:.1} s or so: shorter events and single packets are not visible"
        )];
        if self.left_out {
            notes.push(format!("samples of more than {OBJECTS_MAX} objects, or after three days, are left out"));
        }
        if self.backward > self.samples {
            notes.push(NEWEST_FIRST.to_owned());
        } else if self.earlier * EARLIER_SHARE > self.samples {
            notes.push(format!(
                "{} of {} samples are earlier than those before them and are left out: if several dumps were joined, explain each",
                self.earlier,
                self.earlier + self.samples
            ));
        }
        let flows = [sent, received].into_iter().flatten().collect();
        let mut call = Call { format: format.to_owned(), flows, notes };
        call.flows.iter_mut().for_each(|flow| flow.interval = TimeDelta::from_secs_f64(interval_s));
        call.drop_short();
        call
    }
}

struct Step<'a> {
    at: f64,
    from: f64,
    first: bool,
    before: &'a BTreeMap<String, f64>,
    now: &'a BTreeMap<String, f64>,
}

impl Step<'_> {
    /// Returns the growth of a counter. A counter that falls was reset.
    fn delta(&self, name: &str) -> Option<f64> {
        let (before, now) = (self.before.get(name)?, self.now.get(name)?);
        (!self.first && now >= before).then_some(now - before)
    }

    /// Returns the growth of a counter that may fall, as that of lost packets.
    fn signed(&self, name: &str) -> Option<f64> {
        (!self.first).then(|| Some(self.now.get(name)? - self.before.get(name)?)).flatten()
    }
}

impl Direction {
    /// Notes that a stream of this kind carried bytes.
    fn carries(&mut self, kind: Option<&str>, bytes: Option<f64>) {
        let media = match kind.filter(|_| bytes.is_some_and(|bytes| bytes > 0.0)) {
            Some("video") => Some(Media::Video),
            Some("audio") => Some(Media::Audio),
            _ => None,
        };
        self.media = self.media.max(media);
    }

    fn count(&mut self, quantity: Quantity, from: f64, to: f64, amount: f64) {
        if to <= from {
            return;
        }
        let (first, last) = bins_of(from, to);
        let counter = self.counters.entry(quantity).or_insert(Counter { first, bins: Vec::new() });
        counter.first = counter.first.min(first);
        spread(&mut counter.bins, (first, last), (from, to), amount);
    }

    fn state(&mut self, quantity: Quantity, id: &str, at: f64, value: f64) {
        let key = (quantity, id.to_owned());
        if self.states.len() >= STATES_MAX && !self.states.contains_key(&key) {
            return;
        }
        let samples = self.states.entry(key).or_default();
        let index = ((at / BIN_S) as usize).min(BINS_MAX - 1);
        match samples.last_mut().filter(|(last, _)| *last == index) {
            Some(last) => last.1 = value,
            None => samples.push((index, value)),
        }
    }

    /// A mean over the interval: amount and number.
    fn ratio(&mut self, quantity: Quantity, from: f64, to: f64, (amount, number): (f64, f64)) {
        if to > from {
            let (amounts, numbers) = self.encode.entry(quantity).or_default();
            spread(amounts, bins_of(from, to), (from, to), amount);
            spread(numbers, bins_of(from, to), (from, to), number);
        }
    }

    fn flow(mut self, name: String, is_sent: bool, span_s: f64) -> Option<Flow> {
        if !self.seen {
            return None;
        }
        let time = |at: f64| Time::ZERO + TimeDelta::from_secs_f64(at);
        let span = (Time::ZERO, time(span_s));
        let mut flow = Flow { name, is_sent, media: self.media, span, ..Flow::default() };
        let whole = (span_s / BIN_S) as usize;
        // Without an entry nothing was counted.
        if let Some(feedback) = self.counters.get_mut(&Quantity::Feedback) {
            feedback.bins.resize(whole, 0.0);
        }
        // Points, by time in s. A value that is not finite is none.
        let mut add = |quantity, points: &mut dyn Iterator<Item = (f64, f64)>| {
            let points = points.map(|(at, value)| (time(at), value));
            flow.series.insert(quantity, Series::of(Origin::Statistics, Confidence::Coarse, points));
        };
        let begins = || (0..whole).map(|index| index as f64 * BIN_S);
        for (quantity, Counter { first, bins }) in self.counters {
            let scale = if matches!(quantity, Quantity::SentRate | Quantity::ReceivedRate) { 8.0 / BIN_S } else { 1.0 };
            add(quantity, &mut begins().zip(bins.iter().map(|value| value * scale)).skip(first));
        }
        for (quantity, (amounts, numbers)) in self.encode {
            let mean = |(amount, number): (&f64, &f64)| if *number > 0.0 { amount / number } else { f64::NAN };
            add(quantity, &mut begins().zip(amounts.iter().zip(&numbers).map(mean)));
        }
        let has_targets = has_targets(&self.targets);
        self.states.retain(|(quantity, _), _| *quantity != Quantity::Target || has_targets);
        for (quantity, bins) in sums(&self.states, &self.sources, whole) {
            add(quantity, &mut begins().zip(bins));
        }
        // A report has a round-trip time for each stream, of which the longest counts.
        self.round_trip.sort_by(|a, b| a.0.total_cmp(&b.0).then(b.1.total_cmp(&a.1)));
        self.round_trip.dedup_by_key(|(at, _)| *at);
        // Times of RTCP are better than those of STUN, which come late.
        if self.round_trip.len() >= 3 {
            add(Quantity::RoundTrip, &mut self.round_trip.iter().copied());
        }
        flow.marks = self.marks.into_iter().map(|(at, kind)| Mark { at: time(at), kind }).collect();
        flow.finish();
        Some(flow)
    }
}

/// Returns the first and the last interval of a span.
fn bins_of(from: f64, to: f64) -> (usize, usize) {
    ((from / BIN_S) as usize, ((to / BIN_S) as usize).min(BINS_MAX - 1))
}

/// Adds an amount to the intervals of a span, as much to each second of it.
fn spread(bins: &mut Vec<f64>, (first, last): (usize, usize), (from, to): (f64, f64), amount: f64) {
    if bins.len() <= last {
        bins.resize(last + 1, 0.0);
    }
    for (index, bin) in bins.iter_mut().enumerate().take(last + 1).skip(first) {
        let (start, end) = (index as f64 * BIN_S, (index + 1) as f64 * BIN_S);
        *bin += amount * (to.min(end) - from.max(start)).max(0.0) / (to - from);
    }
}

/// Streams without a target carry at most this share of the bytes if targets are used. Assumed: audio beside video.
const WITHOUT_TARGET: f64 = 0.1;

/// Returns whether the targets of streams add up to that of the transport: up to version 96, Chromium has one for audio only.
fn has_targets(streams: &BTreeMap<String, (f64, bool)>) -> bool {
    let all: f64 = streams.values().map(|(bytes, _)| bytes).sum();
    let without: f64 = streams.values().filter(|(_, has_target)| !has_target).map(|(bytes, _)| bytes).sum();
    without <= WITHOUT_TARGET * all
}

/// Returns the state of each quantity over all objects. NaN: unknown.
fn sums(
    states: &BTreeMap<(Quantity, String), Vec<(usize, f64)>>,
    sources: &BTreeMap<String, String>,
    whole: usize,
) -> BTreeMap<Quantity, Vec<f64>> {
    let mut sums: BTreeMap<Quantity, Vec<f64>> = BTreeMap::new();
    // The layers of a source, whose targets were added.
    let mut added: BTreeMap<&str, Vec<Vec<f64>>> = BTreeMap::new();
    for ((quantity, id), samples) in states {
        let held = held(samples, whole);
        let layers =
            sources.get(id).filter(|_| *quantity == Quantity::Target).map(|source| added.entry(source).or_default());
        let sum = sums.entry(*quantity).or_insert_with(|| vec![f64::NAN; whole]);
        for (index, (total, value)) in sum.iter_mut().zip(&held).enumerate().filter(|(_, (_, value))| !value.is_nan()) {
            let so_far = if total.is_nan() { 0.0 } else { *total };
            let is_same = |layer: &Vec<f64>| layer[index] == *value;
            *total = match quantity {
                Quantity::SourceFrameRate | Quantity::RoundTrip | Quantity::Jitter => so_far.max(*value),
                // Safari: each layer has the target of all.
                _ if layers.as_ref().is_some_and(|layers| layers.iter().any(is_same)) => so_far,
                _ => so_far + value,
            };
        }
        if let Some(layers) = layers.filter(|layers| layers.len() < LAYERS_MAX) {
            layers.push(held);
        }
    }
    sums
}

/// Returns the value that holds in each interval, from samples in order of time.
fn held(samples: &[(usize, f64)], whole: usize) -> Vec<f64> {
    let mut values = vec![f64::NAN; whole];
    let ends = samples.iter().skip(1).map(|(next, _)| *next).chain([usize::MAX]);
    for ((index, value), next) in samples.iter().zip(ends) {
        let end = next.min(index + HOLDS + 1).min(whole);
        values[(*index).min(end)..end].fill(*value);
    }
    values
}

/// Returns whether a report of the receiver is the last one again. Without the number of measurements, the time of the report and
/// the jitter distinguish two reports of a path on which nothing changes.
fn is_repeated(before: &BTreeMap<String, f64>, now: &BTreeMap<String, f64>) -> bool {
    let same = |name: &str| before.get(name) == now.get(name);
    let counts = ["roundTripTimeMeasurements", "packetsLost", "roundTripTime", "jitter"].into_iter().all(same);
    counts && (now.contains_key("roundTripTimeMeasurements") || same("timestamp"))
}

/// Returns whether a report shows that nothing arrived since the last one: each packet changes a jitter of this size, where it is
/// not rounded to milliseconds.
fn is_silent(before: &BTreeMap<String, f64>, now: &BTreeMap<String, f64>) -> bool {
    let same = |name: &str| before.get(name) == now.get(name);
    let is_exact = now.get("jitter").is_some_and(|jitter| *jitter >= JITTER && (jitter * 1e3).fract() > 1e-6);
    is_exact && same("jitter") && same("packetsLost")
}

fn outbound(sent: &mut Direction, id: &str, step: &Step<'_>, reason: Option<&str>, reason_before: Option<&str>) {
    let (at, from) = (step.at, step.from);
    if let Some(bytes) = step.delta("bytesSent") {
        sent.seen = true;
        if sent.targets.len() < STATES_MAX || sent.targets.contains_key(id) {
            let stream = sent.targets.entry(id.to_owned()).or_default();
            *stream = (stream.0 + bytes, stream.1 || step.now.contains_key("targetBitrate"));
        }
        sent.count(Quantity::SentRate, from, at, bytes + step.delta("headerBytesSent").unwrap_or(0.0));
    }
    if let Some(packets) = step.delta("packetsSent") {
        sent.count(Quantity::PacketsSent, from, at, packets);
        if let Some(delay) = step.delta("totalPacketSendDelay") {
            sent.ratio(Quantity::PacerDelay, from, at, (delay, packets));
        }
    }
    ecn(sent, step);
    if let Some(packets) = step.delta("retransmittedPacketsSent") {
        sent.count(Quantity::Repairs, from, at, packets);
    }
    if let Some(frames) = step.delta("framesEncoded") {
        sent.count(Quantity::FrameRate, from, at, frames / BIN_S);
        if let Some(time) = step.delta("totalEncodeTime") {
            sent.ratio(Quantity::EncodeTime, from, at, (time, frames));
        }
    }
    if let Some(target) = step.now.get("targetBitrate") {
        sent.state(Quantity::Target, id, at, *target);
    }
    let limit = |reason: &str| match reason {
        "none" => Limit::None,
        "bandwidth" => Limit::Bandwidth,
        "cpu" => Limit::Cpu,
        _ => Limit::Other,
    };
    // While the processor limits, each sample says so: a change long ago is no evidence.
    if let Some(reason) = reason.filter(|reason| Some(*reason) != reason_before || *reason == "cpu") {
        sent.marks.push((at, MarkKind::Limited(limit(reason))));
    }
    if let Some(active) =
        step.now.get("active").filter(|now| step.before.get("active").is_some_and(|before| before != *now))
    {
        sent.marks.push((at, MarkKind::Active(*active > 0.0)));
    }
}

fn remote(sent: &mut Direction, id: &str, step: &Step<'_>) {
    sent.count(Quantity::Feedback, step.at, step.at + 1e-3, 1.0);
    if let Some(rtt) = step.now.get("roundTripTime") {
        sent.round_trip.push((step.at, *rtt));
    }
    if let Some(jitter) = step.now.get("jitter") {
        sent.state(Quantity::Jitter, id, step.at, *jitter);
    }
    // Receiver reports count losses; without them, those of congestion feedback (RFC 8888).
    let lost = step.signed("packetsLost").or_else(|| {
        Some(step.delta("packetsReportedAsLost")? - step.delta("packetsReportedAsLostButRecovered").unwrap_or(0.0))
    });
    if let Some(lost) = lost {
        sent.count(Quantity::PacketsLost, step.from, step.at, lost.max(0.0));
    }
}

/// Counts packets by their ECN fields, as the W3C names them.
const ECN: [(&str, Quantity); 5] = [
    ("packetsSentWithEct1", Quantity::EctSent),
    ("packetsReceivedWithEct1", Quantity::EctArrived),
    ("packetsReceivedWithCe", Quantity::CeArrived),
    ("packetsWithBleachedEct1Marking", Quantity::EctCleared),
    ("packetsReportedAsLostButRecovered", Quantity::Recovered),
];

fn ecn(direction: &mut Direction, step: &Step<'_>) {
    for (name, quantity) in ECN {
        if let Some(packets) = step.delta(name) {
            direction.count(quantity, step.from, step.at, packets);
        }
    }
}

fn inbound(received: &mut Direction, step: &Step<'_>, kind: Option<&str>) {
    let (at, from) = (step.at, step.from);
    received.carries(kind, step.delta("bytesReceived"));
    if let Some(bytes) = step.delta("bytesReceived") {
        received.seen = true;
        received.count(Quantity::ReceivedRate, from, at, bytes + step.delta("headerBytesReceived").unwrap_or(0.0));
    }
    if let Some(packets) = step.delta("packetsReceived") {
        let lost = step.signed("packetsLost").unwrap_or(0.0).max(0.0);
        received.count(Quantity::PacketsSent, from, at, packets + lost);
        received.count(Quantity::PacketsLost, from, at, lost);
    }
    ecn(received, step);
    if let Some(frozen) = step.delta("totalFreezesDuration").filter(|frozen| *frozen > 0.0) {
        received.marks.push((at, MarkKind::Freeze(TimeDelta::from_secs_f64(frozen.min(86400.0)))));
    }
}

/// Reads a number: numbers, booleans, and counters that were written as text.
pub fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64().filter(|number| number.is_finite()),
        Value::Bool(value) => Some(f64::from(u8::from(*value))),
        Value::String(text) => text.parse().ok().filter(|number: &f64| number.is_finite()),
        _ => None,
    }
}

/// Returns the upper limits of a session description, bit/s: `b=AS` (kbit/s, RFC 8866), `b=TIAS` (RFC 3890),
/// `x-google-max-bitrate` (kbit/s).
pub fn session_cap(sdp: &str) -> Option<f64> {
    let lines = sdp.split(['\n', '\r']);
    let caps = lines.filter_map(|line| {
        let kbps = |text: &str| text.trim().parse::<f64>().ok().map(|kbps| kbps * 1e3);
        match (line.strip_prefix("b=AS:"), line.strip_prefix("b=TIAS:"), line.split_once("x-google-max-bitrate=")) {
            (Some(text), _, _) => kbps(text),
            (_, Some(text), _) => text.trim().parse().ok(),
            (_, _, Some((_, text))) => kbps(text.split(';').next().unwrap_or("")),
            _ => None,
        }
    });
    // Each media section has its own: the video's is the largest.
    caps.filter(|bps: &f64| bps.is_finite() && *bps > 0.0).reduce(f64::max)
}

#[cfg(test)]
mod tests;
