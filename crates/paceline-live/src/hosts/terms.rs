// SPDX-License-Identifier: MIT OR Apache-2.0
//! The terms of a session: what both ends must know to build the endpoints of its flows.

use crate::hosts::message::TERMS_MAX;
use paceline_units::{Rate, TimeDelta};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Maximum rate of all flows of a direction together: above it, packets do not leave as paced. What waits in pacers is at most that of two
/// seconds.
pub const RATE_MAX: u64 = 10_000_000_000;

/// Durations that a session may have, ms.
pub const DURATION_MS: RangeInclusive<u64> = 1000..=3_600_000;

/// Maximum number of flows in each direction, and of their streams together.
pub const FLOWS_MAX: u16 = 256;

/// Maximum number of streams of a flow.
pub const STREAMS_MAX: usize = 8;

/// Maximum time without an active flow: an end that hears nothing for twice as long ends the session.
const GAP_MAX_MS: u64 = 5000;

/// Maximum length of a name, bytes.
const NAME_MAX: usize = 64;

/// Maximum number of parameters of a controller, and of a source.
const PARAMETERS_MAX: usize = 32;

/// The terms, which a sender proposes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Terms {
    /// The media flows.
    pub flows: Vec<FlowTerms>,
    /// Duration of the media, ms.
    pub duration_ms: u64,
    /// Seed of the random streams of both ends.
    pub seed: u64,
    /// Whether a TCP flow from sender to receiver runs beside them.
    pub tcp: bool,
}

/// The terms of equal flows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FlowTerms {
    /// Name of the controller.
    pub controller: String,
    /// Parameters of the controller that differ from their defaults.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub config: BTreeMap<String, f64>,
    pub streams: Vec<StreamTerms>,
    /// Whether lost packets are requested and sent again; `true` if absent.
    #[serde(skip_serializing_if = "Clone::clone")]
    pub retransmit: bool,
    /// Forward error correction; none if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fec: Option<String>,
    /// Budget of retransmissions; half of the target if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resend_budget: Option<String>,
    /// First target, bit/s.
    pub start_bps: u64,
    /// Lowest target, bit/s.
    pub min_bps: u64,
    /// Their start after that of the session, ms; 0 if absent.
    #[serde(skip_serializing_if = "is_default")]
    pub start_ms: u64,
    /// Their end after the start of the session, ms; with the session if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_ms: Option<u64>,
    /// Number of these flows; 1 if absent.
    #[serde(skip_serializing_if = "is_one")]
    pub count: u16,
    /// Whether the receiver sends them; `false` if absent.
    #[serde(skip_serializing_if = "is_default")]
    pub back: bool,
}

/// The terms of a stream. The end that receives it needs no more than its kind, which the source has, and its highest rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StreamTerms {
    /// Name of the source.
    pub source: String,
    /// Parameters of the source, besides its highest rate, that differ from their defaults: bit/s, s, bytes, or without unit. They, the
    /// weight and the pauses count for a stream that the receiver sends.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub config: BTreeMap<String, f64>,
    /// Highest rate of the source, bit/s.
    pub max_bps: u64,
    /// Weight for the division of the target among streams; 1 if absent.
    #[serde(skip_serializing_if = "is_one")]
    pub priority: f64,
    /// Whether it pauses while the target does not cover its lowest rate; `false` if absent.
    #[serde(skip_serializing_if = "is_default")]
    pub suspends: bool,
}

impl Default for FlowTerms {
    /// Without a name, streams and rates, which are not acceptable.
    fn default() -> Self {
        Self {
            controller: String::new(),
            config: BTreeMap::new(),
            streams: Vec::new(),
            retransmit: true,
            fec: None,
            resend_budget: None,
            start_bps: 0,
            min_bps: 0,
            start_ms: 0,
            stop_ms: None,
            count: 1,
            back: false,
        }
    }
}

impl Default for StreamTerms {
    /// Without a name and a rate, which are not acceptable.
    fn default() -> Self {
        Self::new("", 0)
    }
}

impl StreamTerms {
    /// Returns a stream of this source and highest rate, in bit/s, with defaults.
    pub fn new(source: &str, max_bps: u64) -> Self {
        Self { source: source.to_owned(), config: BTreeMap::new(), max_bps, priority: 1.0, suspends: false }
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn is_one<T: PartialEq + From<u8>>(value: &T) -> bool {
    *value == T::from(1)
}

/// A rule that terms break, and the key of scenarios that it is about.
pub type Problem = (&'static str, &'static str);

/// Returns the first rule that is broken.
fn first_problem<const N: usize>(rules: [(bool, &'static str, &'static str); N]) -> Option<Problem> {
    rules.into_iter().find_map(|(is_broken, rule, key)| is_broken.then_some((rule, key)))
}

impl Terms {
    /// Returns the bytes for a message.
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("numbers and names are JSON")
    }

    /// Reads terms and checks their bounds; `None` if they are not acceptable.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let terms: Self = (bytes.len() <= TERMS_MAX).then(|| serde_json::from_slice(bytes).ok()).flatten()?;
        terms.problem().is_none().then_some(terms)
    }

    /// Returns what is wrong with the terms; `None` if they are acceptable.
    pub fn problem(&self) -> Option<Problem> {
        let any = |is_wrong: &dyn Fn(bool) -> bool| is_wrong(false) || is_wrong(true);
        let (most, counts) = (usize::from(FLOWS_MAX), "the flows of a direction have at most 256 streams together");
        let rates = "the highest rates of all flows of a direction must be at most 10 Gbit/s together";
        let gaps = "in each direction that has flows, at most 5 s may be without an active flow";
        let size = "too many different flows or parameters for one datagram";
        let is_late = |flow: &FlowTerms| flow.start_ms.max(flow.stop_ms.map_or(0, |stop| stop - 1)) >= self.duration_ms;
        let late = "a flow must start before the session ends, and stop by then";
        let rules = || {
            first_problem([
                (self.count(false) == 0, "the sender must send at least one flow", "direction"),
                (any(&|back| self.count(back) > most), "the number of flows must be from 1 to 256", "count"),
                (any(&|back| self.stream_count(back) > most), counts, "stream"),
                (!DURATION_MS.contains(&self.duration_ms), "the duration must be from 1 s to 1 h", "duration"),
                (any(&|back| self.highest_bps(back) > RATE_MAX.into()), rates, "encoder.max"),
                (self.flows.iter().any(is_late), late, "start"),
                (any(&|back| self.longest_gap_ms(back) > GAP_MAX_MS), gaps, "start"),
                (self.to_bytes().len() > TERMS_MAX, size, "id"),
            ])
        };
        self.flows.iter().find_map(FlowTerms::problem).or_else(rules)
    }

    /// Returns the terms of the flows of one direction.
    pub fn direction(&self, back: bool) -> impl Iterator<Item = &FlowTerms> {
        self.flows.iter().filter(move |flow| flow.back == back)
    }

    /// Returns the sum of the highest rates of one direction, bit/s.
    pub fn highest_bps(&self, back: bool) -> u128 {
        self.direction(back).map(|flow| flow.highest_bps() * u128::from(flow.count)).sum()
    }

    /// Returns the longest time without an active flow of one direction, ms; 0 if it has no flows.
    fn longest_gap_ms(&self, back: bool) -> u64 {
        let mut lives: Vec<_> = self.direction(back).map(|flow| (flow.start_ms, flow.stop_ms)).collect();
        lives.sort_unstable();
        let has_flows = !lives.is_empty();
        let (mut longest, mut until) = (0, 0);
        for (start, stop) in lives {
            longest = longest.max(start.saturating_sub(until));
            until = until.max(stop.unwrap_or(self.duration_ms));
        }
        if has_flows { longest.max(self.duration_ms.saturating_sub(until)) } else { 0 }
    }

    /// Returns the number of flows of one direction.
    pub fn count(&self, back: bool) -> usize {
        self.direction(back).map(|flow| usize::from(flow.count)).sum()
    }

    /// Returns the number of streams of all flows of one direction.
    pub fn stream_count(&self, back: bool) -> usize {
        self.direction(back).map(|flow| usize::from(flow.count) * flow.streams.len()).sum()
    }

    /// Returns the number of streams of each flow of a session: those of the sender, then those of the receiver.
    pub fn streams_of_flows(&self) -> impl Iterator<Item = usize> {
        let flows = self.direction(false).chain(self.direction(true));
        flows.flat_map(|flow| (0..flow.count).map(|_| flow.streams.len()))
    }

    /// Returns the duration of the media.
    pub fn duration(&self) -> TimeDelta {
        TimeDelta::from_millis(self.duration_ms as i64)
    }
}

impl FlowTerms {
    /// Returns what is wrong with the terms; `None` if they are acceptable.
    pub fn problem(&self) -> Option<Problem> {
        let is_name = |name: &str| {
            !name.is_empty()
                && name.len() <= NAME_MAX
                && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
        };
        let configs = || [&self.config].into_iter().chain(self.streams.iter().map(|stream| &stream.config));
        let optional = self.fec.iter().chain(&self.resend_budget);
        let sources = self.streams.iter().map(|stream| &stream.source);
        let names = [&self.controller].into_iter().chain(sources).chain(optional);
        let mut names = names.chain(configs().flat_map(BTreeMap::keys));
        let is_priority = |stream: &StreamTerms| stream.priority.is_finite() && stream.priority > 0.0;
        let has_rates = self.min_bps > 0
            && self.min_bps <= self.start_bps
            && u128::from(self.start_bps) <= self.highest_bps()
            && self.streams.iter().all(|stream| stream.max_bps > 0);
        let rates = "rates must be above zero, and the start rate must be from the lowest to the highest rate";
        let is_too_long = |config: &BTreeMap<_, _>| config.len() > PARAMETERS_MAX;
        let is_finite = configs().flat_map(BTreeMap::values).all(|value| value.is_finite());
        let stops = self.stop_ms.is_none_or(|stop| stop > self.start_ms);
        first_problem([
            (!(1..=STREAMS_MAX).contains(&self.streams.len()), "a flow has from 1 to 8 streams", "stream"),
            (!names.all(|name| is_name(name)), "names have up to 64 letters, digits, `-`, `_` and `.`", "config"),
            (configs().any(is_too_long), "a controller or a source has at most 32 parameters", "config"),
            (!is_finite, "parameters must be finite numbers", "config"),
            (!self.streams.iter().all(is_priority), "priorities must be above zero", "stream"),
            (!has_rates, rates, "min_rate"),
            (!stops, "a flow must stop after it starts", "start"),
            (!(1..=FLOWS_MAX).contains(&self.count), "the number of flows must be from 1 to 256", "count"),
        ])
    }

    /// Returns the sum of the highest rates of its sources, bit/s.
    fn highest_bps(&self) -> u128 {
        self.streams.iter().map(|stream| u128::from(stream.max_bps)).sum()
    }

    /// Returns the sum of the highest rates of its sources.
    pub fn max(&self) -> Rate {
        Rate::from_bps(self.highest_bps().try_into().unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(crate) fn terms() -> Terms {
        Terms { flows: vec![flow()], duration_ms: 10_000, seed: u64::MAX, tcp: false }
    }

    pub(crate) fn flow() -> FlowTerms {
        FlowTerms {
            controller: "googcc".to_owned(),
            streams: vec![stream()],
            start_bps: 300_000,
            min_bps: 30_000,
            ..FlowTerms::default()
        }
    }

    fn stream() -> StreamTerms {
        StreamTerms::new("encoder", 2_000_000)
    }

    fn parameters(names: impl IntoIterator<Item = String>) -> BTreeMap<String, f64> {
        names.into_iter().zip([0.1, -3.0, 1e-300].into_iter().cycle()).collect()
    }

    #[test]
    fn terms_survive_writing_and_reading() {
        let longest = "x".repeat(NAME_MAX);
        let named = FlowTerms {
            controller: longest.clone(),
            streams: vec![StreamTerms { source: longest.clone(), ..stream() }],
            ..flow()
        };
        let with_parameters = FlowTerms {
            config: parameters(["alpha".to_owned(), longest]),
            streams: vec![StreamTerms {
                config: parameters(["fps".to_owned()]),
                priority: 0.5,
                suspends: true,
                ..stream()
            }],
            retransmit: false,
            fec: Some("ulpfec".to_owned()),
            resend_budget: Some("rtt".to_owned()),
            count: FLOWS_MAX,
            back: true,
            ..flow()
        };
        let most = FlowTerms { config: parameters((0..PARAMETERS_MAX).map(|n| n.to_string())), ..flow() };
        let early = FlowTerms { stop_ms: Some(3000), ..flow() };
        let late = FlowTerms { start_ms: 3000 + GAP_MAX_MS, ..flow() };
        let layers =
            FlowTerms { streams: vec![stream(); STREAMS_MAX], count: FLOWS_MAX / STREAMS_MAX as u16, ..flow() };
        let all =
            [vec![flow()], vec![late, early], vec![named, with_parameters], vec![most], vec![flow(); 7], vec![layers]];
        for flows in all {
            let terms = Terms { flows, ..terms() };
            assert!(terms.to_bytes().len() <= TERMS_MAX, "{}", terms.to_bytes().len());
            assert_eq!(Terms::from_bytes(&terms.to_bytes()), Some(terms));
        }
    }

    #[test]
    fn terms_outside_the_bounds_are_refused() {
        let changes: [fn(&mut Terms); 36] = [
            |t| t.flows.clear(),
            |t| t.flows[0].back = true,
            |t| t.flows[0].count = 0,
            |t| t.flows[0].count = FLOWS_MAX + 1,
            |t| t.flows = vec![FlowTerms { count: FLOWS_MAX, ..flow() }, flow()],
            |t| t.flows.push(FlowTerms { count: FLOWS_MAX + 1, back: true, ..flow() }),
            |t| t.flows = vec![flow(); 20],
            |t| t.flows[0].controller = "a\"b".to_owned(),
            |t| t.flows[0].streams[0].source = String::new(),
            |t| t.flows[0].streams.clear(),
            |t| t.flows[0].streams = vec![stream(); STREAMS_MAX + 1],
            |t| {
                (t.flows[0].streams, t.flows[0].count) =
                    (vec![stream(); STREAMS_MAX], FLOWS_MAX / STREAMS_MAX as u16 + 1)
            },
            |t| t.flows[0].streams.push(StreamTerms { max_bps: 0, ..stream() }),
            |t| t.flows[0].fec = Some("a b".to_owned()),
            |t| t.flows[0].streams[0].source = "x".repeat(NAME_MAX + 1),
            |t| t.flows[0].config = parameters(["a\" b".to_owned()]),
            |t| t.flows[0].streams[0].config = parameters([String::new()]),
            |t| t.flows[0].config = parameters((0..=PARAMETERS_MAX).map(|n| n.to_string())),
            |t| t.flows[0].config = BTreeMap::from([("alpha".to_owned(), f64::INFINITY)]),
            |t| t.flows[0].start_bps = stream().max_bps + 1,
            |t| t.flows[0].start_bps = t.flows[0].min_bps - 1,
            |t| t.flows[0].min_bps = 0,
            |t| t.flows[0].streams[0].max_bps = RATE_MAX + 1,
            |t| (t.flows[0].streams[0].max_bps, t.flows[0].count) = (RATE_MAX / 2, 3),
            |t| {
                let streams = vec![StreamTerms { max_bps: u64::MAX, ..stream() }; 2];
                t.flows.push(FlowTerms { streams, back: true, ..flow() });
            },
            |t| (t.flows[0].start_ms, t.flows[0].stop_ms) = (100, Some(100)),
            |t| t.flows[0].start_ms = GAP_MAX_MS + 1,
            |t| t.flows.push(FlowTerms { start_ms: t.duration_ms, ..flow() }),
            |t| t.flows[0].stop_ms = Some(t.duration_ms + 1),
            |t| t.flows[0].stop_ms = Some(u64::MAX),
            |t| {
                t.flows = vec![
                    FlowTerms { stop_ms: Some(u64::MAX), ..flow() },
                    FlowTerms { start_ms: u64::MAX - 1, ..flow() },
                ]
            },
            |t| t.flows[0].stop_ms = Some(t.duration_ms - GAP_MAX_MS - 1),
            |t| t.flows = vec![flow(), FlowTerms { start_ms: GAP_MAX_MS + 1, back: true, ..flow() }],
            |t| t.flows.push(FlowTerms { stop_ms: Some(t.duration_ms - GAP_MAX_MS - 1), back: true, ..flow() }),
            |t| t.duration_ms = DURATION_MS.end() + 1,
            |t| t.duration_ms = 999,
        ];
        for change in changes {
            let mut changed = terms();
            change(&mut changed);
            assert!(changed.problem().is_some(), "{changed:?}");
            assert_eq!(Terms::from_bytes(&changed.to_bytes()), None, "{changed:?}");
        }
        let mut longest = Terms { duration_ms: *DURATION_MS.end(), ..terms() };
        longest.flows[0].streams[0].max_bps = RATE_MAX;
        assert!(longest.problem().is_none());
        assert_eq!(Terms::from_bytes(b"{}"), None);
        let text = String::from_utf8(terms().to_bytes()).unwrap();
        for (from, to) in [("300000", "1e999"), ("300000", "-1"), ("\"seed\"", "\"more\""), ("\"source\"", "\"sauce\"")]
        {
            assert_eq!(Terms::from_bytes(text.replace(from, to).as_bytes()), None, "{to}");
        }
    }

    proptest! {
        #[test]
        fn altered_bytes_are_refused_or_within_the_bounds(
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
            cut in any::<prop::sample::Index>(),
            is_cut in any::<bool>(),
        ) {
            let mut source = flow();
            source.config = parameters(["alpha".to_owned()]);
            let mut bytes = Terms { flows: vec![source, flow()], ..terms() }.to_bytes();
            for (index, byte) in changes {
                let len = bytes.len();
                bytes[index.index(len)] = byte;
            }
            if is_cut {
                bytes.truncate(cut.index(bytes.len()));
            }
            if let Some(read) = Terms::from_bytes(&bytes) {
                prop_assert_eq!(read.problem(), None);
                prop_assert_eq!(Terms::from_bytes(&read.to_bytes()), Some(read));
            }
        }

        #[test]
        fn random_bytes_are_no_terms(bytes in prop::collection::vec(any::<u8>(), 0..TERMS_MAX + 10)) {
            prop_assert_eq!(Terms::from_bytes(&bytes), None);
        }
    }
}
