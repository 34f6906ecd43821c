// SPDX-License-Identifier: MIT OR Apache-2.0
//! The model of a call, which every reader fills and every rule reads.
//!
//! A [`Call`] has flows; a [`Flow`] is one transport in one direction, with the series that its congestion controller sees and
//! causes. A [`Series`] names its origin and the confidence in it, because inputs differ: a capture at both ends knows the delay of
//! each packet, a page of statistics has one round-trip time per second.

use paceline_units::{Time, TimeDelta};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// A call, as far as an input shows it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Call {
    /// The format of the input, such as `pcapng`.
    pub format: String,
    /// Flows, in order of their first appearance.
    pub flows: Vec<Flow>,
    /// What the input cannot show, and what was wrong with it. For people; without addresses and names.
    pub notes: Vec<String>,
}

/// A transport in one direction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Flow {
    /// Name, unique in the call.
    pub name: String,
    /// Whether the end that made the input sent it.
    pub is_sent: bool,
    /// Video if the input names a video stream of it, else audio if it names one; `None` if it names neither.
    pub media: Option<Media>,
    /// First and last time of the flow.
    pub span: (Time, Time),
    /// The mean time between two samples of statistics; zero for packets.
    pub interval: TimeDelta,
    pub series: BTreeMap<Quantity, Series>,
    /// Single events, in order of time.
    pub marks: Vec<Mark>,
}

/// What a flow carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Media {
    /// Sound alone.
    Audio,
    /// Pictures, perhaps with sound.
    Video,
}

/// What a series measures. Rates count whole IP packets where the input has packets, and RTP payload in statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Quantity {
    /// The target of the controller, bit/s.
    Target,
    /// The bandwidth estimate, bit/s, where it differs from the target.
    Estimate,
    /// Sent, bit/s, in the interval from the point to the next.
    SentRate,
    /// Received at the far end, bit/s, in the interval from the point to the next.
    ReceivedRate,
    /// Upper limit of the receiver or of the session, bit/s.
    Cap,
    /// Smallest one-way delay of the interval above the smallest of the call, s.
    DelayLow,
    /// Largest one-way delay of the interval above the smallest of the call, s.
    DelayHigh,
    /// Longest time by which two consecutive arrivals of the interval lie further apart than their departures, s.
    ArrivalGap,
    /// Jitter of arrivals by RFC 3550, section 6.4.1, s.
    Jitter,
    /// Round-trip time, s.
    RoundTrip,
    /// Packets that were sent in the interval from the point to the next.
    PacketsSent,
    /// Of these, packets that did not arrive.
    PacketsLost,
    /// Retransmissions in the interval from the point to the next, packets.
    Repairs,
    /// Reports on congestion that reached the sender in the interval from the point to the next.
    Feedback,
    /// Reports on congestion that the receiver sent in the interval from the point to the next.
    FeedbackSent,
    /// Mean time in the pacer of the sender, s.
    PacerDelay,
    /// Frames per second that were encoded.
    FrameRate,
    /// Frames per second of the source.
    SourceFrameRate,
    /// Mean time to encode a frame, s.
    EncodeTime,
    /// Answers of the other end to checks of the path (STUN), in the interval from the point to the next.
    PathAnswers,
    /// Packets that were sent ECN-capable (ECT, RFC 3168; in statistics ECT(1) of RFC 9331), in the interval from the point to the next.
    EctSent,
    /// Packets that arrived ECN-capable, without a mark of congestion.
    EctArrived,
    /// Packets that arrived with a mark of congestion (CE).
    CeArrived,
    /// Packets that were sent ECN-capable and arrived as not capable: a hop cleared the field.
    EctCleared,
    /// Packets that were sent ECN-capable and did not arrive.
    EctLost,
    /// Packets that reports first called lost, and later received.
    Recovered,
}

/// From what a series was computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// Packets that were seen at both ends.
    BothEnds,
    /// Packets that were seen at the sender.
    Sender,
    /// Packets that were seen at the receiver.
    Receiver,
    /// Reports of the receiver.
    Reports,
    /// Values that the sender logged.
    Log,
    /// Statistics of the browser, some times a minute.
    Statistics,
}

/// How far a series can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// Measured, with a long interval or an unknown clock.
    Coarse,
    /// Measured for each packet or at each change.
    Exact,
}

/// Values over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// From what it was computed.
    pub origin: Origin,
    /// How far it can be trusted.
    pub confidence: Confidence,
    /// Time and value, in order of time.
    pub points: Vec<(Time, f64)>,
}

/// A single event.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    pub at: Time,
    /// What happened.
    pub kind: MarkKind,
}

/// The kind of a single event.
#[derive(Clone, Debug, PartialEq)]
pub enum MarkKind {
    /// The controller detected over-use.
    OverUse,
    /// The application or the transport changed the route.
    RouteChange,
    /// A probe gave this estimate, bit/s.
    ProbeDone(f64),
    /// A probe gave no estimate.
    ProbeFailed,
    /// The sender began a cluster of probe packets at this rate, bit/s.
    ProbeSent(f64),
    /// The video stood still until this event, for this time.
    Freeze(TimeDelta),
    /// The encoder says that this limits its quality.
    Limited(Limit),
    /// The session or the receiver set this upper limit, bit/s.
    CapSet(f64),
    /// The sender began (true) or ended (false) to be limited by the application.
    ApplicationLimited(bool),
    /// A stream was switched on or off.
    Active(bool),
    /// The connection was made (true), or was lost or failed (false), as ICE or the connection itself says.
    Connected(bool),
}

/// What limits the quality of an encoder, by its own words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Nothing.
    None,
    /// The target rate.
    Bandwidth,
    /// The processor.
    Cpu,
    /// Something else.
    Other,
}

/// The shortest flow that is explained. Assumed: a rate needs some intervals.
const SHORTEST: TimeDelta = TimeDelta::from_secs(1);
/// Notes on flows that were removed.
const SILENT: &str = "directions in which nothing was sent or received are left out";
const SHORT: &str = "flows of less than 1 s are left out";
/// A note on samples whose times fall.
pub const NEWEST_FIRST: &str = "the reports are in reverse order";

impl Call {
    /// Removes flows that carried nothing or are too short to be explained, and says so.
    pub fn drop_short(&mut self) {
        for (note, is_dropped) in [(SILENT, Flow::is_silent as fn(&Flow) -> bool), (SHORT, Flow::is_short)] {
            let before = self.flows.len();
            self.flows.retain(|flow| !is_dropped(flow));
            if self.flows.len() < before {
                self.notes.push(note.to_owned());
            }
        }
    }

    /// Returns why a call has no flows: what was dropped, else `otherwise`.
    pub fn why_empty(&self, otherwise: &'static str) -> &'static str {
        let has = |wanted: &str| self.notes.iter().any(|note| note == wanted);
        match (has(SHORT), has(SILENT)) {
            _ if has(NEWEST_FIRST) => NEWEST_FIRST,
            (true, _) => "no flow of RTP lasts for 1 s",
            (_, true) => "no stream in it sent or received anything",
            _ => otherwise,
        }
    }
}

impl Series {
    /// Creates an empty series.
    pub fn new(origin: Origin, confidence: Confidence) -> Self {
        Self { origin, confidence, points: Vec::new() }
    }

    /// Creates a series of these points, each of which is added by [`push`](Self::push).
    pub fn of(origin: Origin, confidence: Confidence, points: impl IntoIterator<Item = (Time, f64)>) -> Self {
        let mut series = Self::new(origin, confidence);
        points.into_iter().for_each(|(at, value)| series.push(at, value));
        series
    }

    /// Adds a point. A point before the last one is left out.
    pub fn push(&mut self, at: Time, value: f64) {
        if value.is_finite() && self.points.last().is_none_or(|(last, _)| *last <= at) {
            self.points.push((at, value));
        }
    }

    /// Returns the values at times in `[from, to)`.
    pub fn within(&self, from: Time, to: Time) -> &[(Time, f64)] {
        let start = self.points.partition_point(|(at, _)| *at < from);
        let end = self.points.partition_point(|(at, _)| *at < to);
        &self.points[start.min(end)..end]
    }

    /// Returns the value that holds at `at`: that of the last point up to it.
    pub fn at(&self, at: Time) -> Option<f64> {
        self.points[..self.points.partition_point(|(time, _)| *time <= at)].last().map(|(_, value)| *value)
    }

    /// Returns the sum of the values in `[from, to)`.
    pub fn sum(&self, from: Time, to: Time) -> f64 {
        self.within(from, to).iter().map(|(_, value)| value).sum()
    }

    /// Returns the mean of the values in `[from, to)`.
    pub fn mean(&self, from: Time, to: Time) -> Option<f64> {
        let values = self.within(from, to);
        (!values.is_empty()).then(|| values.iter().map(|(_, value)| value).sum::<f64>() / values.len() as f64)
    }

    /// Returns the largest value in `[from, to)`.
    pub fn max(&self, from: Time, to: Time) -> Option<f64> {
        self.within(from, to).iter().map(|(_, value)| *value).reduce(f64::max)
    }

    /// Returns the smallest value in `[from, to)`.
    pub fn min(&self, from: Time, to: Time) -> Option<f64> {
        self.within(from, to).iter().map(|(_, value)| *value).reduce(f64::min)
    }

    /// Returns the value below which this share of the values in `[from, to)` lies.
    pub fn quantile(&self, from: Time, to: Time, share: f64) -> Option<f64> {
        let values = sorted(self.within(from, to).iter().map(|(_, value)| *value));
        values.get(((values.len() as f64 * share) as usize).min(values.len().saturating_sub(1))).copied()
    }
}

impl Flow {
    /// Returns the series of a quantity, if the input has it.
    pub fn get(&self, quantity: Quantity) -> Option<&Series> {
        self.series.get(&quantity).filter(|series| !series.points.is_empty())
    }

    /// Returns the series that the rules follow: the target, else the estimate, else the sent rate.
    pub fn rate(&self) -> Option<(Quantity, &Series)> {
        let quantities = [Quantity::Target, Quantity::Estimate, Quantity::SentRate, Quantity::ReceivedRate];
        quantities.into_iter().find_map(|quantity| Some((quantity, self.get(quantity)?)))
    }

    fn is_short(&self) -> bool {
        self.span.1 - self.span.0 < SHORTEST
    }

    /// Returns whether it has series of what was carried, and nothing was.
    fn is_silent(&self) -> bool {
        let mut carried =
            [Quantity::SentRate, Quantity::ReceivedRate].into_iter().filter_map(|q| self.get(q)).peekable();
        carried.peek().is_some() && carried.all(|series| series.points.iter().all(|(_, bps)| *bps == 0.0))
    }

    /// Returns the marks in `[from, to)`.
    pub fn marks(&self, from: Time, to: Time) -> impl Iterator<Item = &Mark> {
        self.marks.iter().filter(move |mark| (from..to).contains(&mark.at))
    }

    /// Returns lost and sent packets in `[from, to)`.
    pub fn losses(&self, from: Time, to: Time) -> Option<(f64, f64)> {
        let (lost, sent) = (self.get(Quantity::PacketsLost)?, self.get(Quantity::PacketsSent)?);
        Some((lost.sum(from, to), sent.sum(from, to)))
    }

    /// Returns the times at which the connection was lost, and until when: that of the flow's end if it did not return.
    pub fn disconnections(&self) -> Vec<(Time, Time)> {
        let mut found: Vec<(Time, Time)> = Vec::new();
        let mut lost = None;
        for mark in &self.marks {
            match (&mark.kind, lost) {
                (MarkKind::Connected(false), None) => lost = Some(mark.at),
                (MarkKind::Connected(true), Some(since)) => {
                    found.push((since, mark.at));
                    lost = None;
                }
                _ => {}
            }
        }
        found.extend(lost.map(|since| (since, self.span.1.max(since))));
        found
    }

    /// Sorts the marks and removes empty series.
    pub fn finish(&mut self) {
        self.marks.sort_by_key(|mark| mark.at);
        self.series.retain(|_, series| !series.points.is_empty());
    }
}

/// Returns values in order.
pub(crate) fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

impl Quantity {
    /// Returns what the series measures, with the unit in which it is shown and the number of such units in the unit of the
    /// series.
    pub fn describe(self) -> (&'static str, &'static str, f64) {
        match self {
            Self::Target => ("target", "Mbit/s", 1e-6),
            Self::Estimate => ("estimate", "Mbit/s", 1e-6),
            Self::SentRate => ("sent", "Mbit/s", 1e-6),
            Self::ReceivedRate => ("received", "Mbit/s", 1e-6),
            Self::Cap => ("upper limit", "Mbit/s", 1e-6),
            Self::DelayLow => ("lowest delay", "ms", 1e3),
            Self::DelayHigh => ("highest delay", "ms", 1e3),
            Self::ArrivalGap => ("gap of arrivals", "ms", 1e3),
            Self::Jitter => ("jitter", "ms", 1e3),
            Self::RoundTrip => ("round-trip time", "ms", 1e3),
            Self::PacketsSent => ("packets sent", "packets", 1.0),
            Self::PacketsLost => ("packets lost", "packets", 1.0),
            Self::Repairs => ("retransmissions", "packets", 1.0),
            Self::Feedback => ("reports received", "reports", 1.0),
            Self::FeedbackSent => ("reports sent", "reports", 1.0),
            Self::PacerDelay => ("time in the pacer", "ms", 1e3),
            Self::FrameRate => ("frames encoded", "1/s", 1.0),
            Self::SourceFrameRate => ("frames of the source", "1/s", 1.0),
            Self::EncodeTime => ("time to encode a frame", "ms", 1e3),
            Self::PathAnswers => ("answers to checks of the path", "answers", 1.0),
            Self::EctSent => ("packets sent with ECT", "packets", 1.0),
            Self::EctArrived => ("packets arrived with ECT", "packets", 1.0),
            Self::CeArrived => ("packets arrived with CE", "packets", 1.0),
            Self::EctCleared => ("packets whose ECT was cleared", "packets", 1.0),
            Self::EctLost => ("packets with ECT lost", "packets", 1.0),
            Self::Recovered => ("packets reported lost, then received", "packets", 1.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_that_carried_nothing_or_are_short_are_dropped_and_named() {
        let flow = |bps: f64, seconds: i64| {
            let mut sent = Series::new(Origin::Sender, Confidence::Exact);
            sent.push(Time::ZERO, bps);
            let mut flow = Flow { span: (Time::ZERO, Time::from_secs(seconds)), ..Flow::default() };
            flow.series.insert(Quantity::SentRate, sent);
            flow
        };
        let dropped = |flows: &[Flow]| {
            let mut call = Call { flows: flows.to_vec(), ..Call::default() };
            call.drop_short();
            call
        };
        let call = dropped(&[flow(1e6, 5), flow(0.0, 5), flow(1e6, 0)]);
        assert_eq!((call.flows.as_slice(), call.notes.len()), (&[flow(1e6, 5)][..], 2));
        assert_eq!(dropped(&[flow(1e6, 5)]).notes, Vec::<String>::new());
        assert!(dropped(&[flow(0.0, 5)]).why_empty("-").contains("anything"));
        assert!(dropped(&[flow(1e6, 0)]).why_empty("-").contains("1 s"));
        assert_eq!(dropped(&[]).why_empty("-"), "-");
    }
}
