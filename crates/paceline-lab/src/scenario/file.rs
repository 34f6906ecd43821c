//! What may stand in a scenario file. Nothing here has a default that means something: absent is absent, and
//! [`resolve`](super::resolve) decides.

use super::overrides::Setting;
use super::problem::{Problem, suggestion};
use super::values::{Limit, Loss, Timed};
use crate::label::Label;
use paceline_units::{DataSize, Rate, Time, TimeDelta};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{DeserializeOwned, Deserializer, Error, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

/// A value that remembers where it stood.
#[derive(Clone, Debug, Deserialize)]
#[serde(transparent)]
pub struct Placed<T>(toml::Spanned<T>);

impl<T> Placed<T> {
    pub(crate) fn get(&self) -> &T {
        self.0.get_ref()
    }
    pub(crate) fn span(&self) -> Range<usize> {
        self.0.span()
    }
    fn replace(&mut self, value: T) {
        *self.0.get_mut() = value;
    }
}

impl<T: JsonSchema> JsonSchema for Placed<T> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        T::schema_name()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        T::json_schema(generator)
    }
    fn inline_schema() -> bool {
        T::inline_schema()
    }
}

/// A scenario.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScenarioFile {
    /// Its id, such as `mmsys16/table1`.
    pub id: Placed<String>,
    /// A line on it.
    pub title: String,
    /// The document, section, table or figure that it follows; none if absent.
    #[serde(default)]
    pub source: String,
    /// How long a run lasts.
    pub duration: Placed<TimeDelta>,
    /// Runs that a reproduction wants; 1 if absent.
    pub repeats: Option<Placed<u32>>,
    /// The file of numbers that no source gives, assumed once for all experiments of a paper; none
    /// if absent.
    pub constants: Option<Placed<String>>,
    /// The network.
    pub path: Path,
    /// The flows, at least one; an error if absent.
    #[serde(default)]
    pub flow: Vec<Placed<Flow>>,
    /// How metrics are taken; as its keys say if absent.
    #[serde(default)]
    pub measure: MeasureTable,
    /// Variants of the experiment; none if absent.
    #[serde(default)]
    pub case: Vec<CaseTable>,
    /// Published values to stand beside measured ones; none if absent.
    #[serde(default)]
    pub expect: Vec<ExpectTable>,
    /// Bounds that the mean over the runs must keep; none if absent.
    #[serde(default)]
    pub assert: Vec<AssertTable>,
}

/// The network: a chain of hops each way.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Path {
    /// Propagation there and back, half of it for each way that gives no delay of its own; 0 ms if absent.
    pub rtt: Option<Placed<TimeDelta>>,
    /// Hops that the forward media crosses; one unlimited hop if absent.
    pub forward: Option<Way>,
    /// Hops of the way back; one unlimited hop if absent.
    pub reverse: Option<Way>,
}

/// One way of the path: one hop in short, or `hops`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Way {
    /// The hops, in order, with nothing else beside them; one hop of the keys beside it if absent.
    pub hops: Option<Placed<Vec<Hop>>>,
    /// As in a hop; unlimited if absent.
    pub capacity: Option<Placed<CapacityValue>>,
    /// As in a hop; a line if absent.
    pub burst: Option<Placed<DataSize>>,
    /// As in a hop; drop-tail of 300 ms if absent.
    pub queue: Option<Placed<Queue>>,
    /// As in a hop; half of `path.rtt` if absent.
    pub delay: Option<Placed<Timed<TimeDelta>>>,
    /// As in a hop; none if absent.
    pub jitter: Option<Placed<JitterTable>>,
    /// As in a hop; none if absent.
    pub loss: Option<Placed<Timed<Loss>>>,
}

/// One hop.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Hop {
    /// Its name; `forward/0`, `forward/1`, … or `reverse/0`, … if absent.
    pub id: Option<Placed<String>>,
    /// How fast it serves; unlimited if absent.
    pub capacity: Option<Placed<CapacityValue>>,
    /// Size of a token bucket: so much may pass at once after a pause, as through a shaper. On a line every packet
    /// takes its own time; a line if absent.
    pub burst: Option<Placed<DataSize>>,
    /// Its queue; drop-tail of 300 ms if absent.
    pub queue: Option<Placed<Queue>>,
    /// Propagation delay; 0 ms if absent, but half of `path.rtt` for the first hop of a way without any.
    pub delay: Option<Placed<Timed<TimeDelta>>>,
    /// What is added to the delay, packet by packet; nothing if absent.
    pub jitter: Option<Placed<JitterTable>>,
    /// Random loss on the wire; none if absent.
    pub loss: Option<Placed<Timed<Loss>>>,
}

/// A rate, a list of [time, rate], or a recorded trace.
#[derive(Clone, Debug)]
pub enum CapacityValue {
    /// Constant or stepped.
    Rates(Timed<Rate>),
    /// Recorded.
    Trace(TraceTable),
}

/// A recorded capacity.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TraceTable {
    /// The file: mahimahi, HSDPA, Ghent 4G, AlphaRTC JSON or `time,rate` CSV, told apart by content.
    pub trace: Placed<String>,
    /// Which direction of a trace that has both; `downlink` if absent.
    pub direction: Option<TraceDirection>,
    /// What happens after the last entry; as the format's own tools do if absent.
    pub end: Option<TraceEnd>,
}

/// Which direction of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TraceDirection {
    /// Towards the user.
    Downlink,
    /// From the user.
    Uplink,
}

/// What happens after a trace's last entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TraceEnd {
    /// It starts again.
    Loop,
    /// The last value holds.
    Hold,
}

/// A queue.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Queue {
    /// Its discipline; `drop-tail` if absent.
    pub discipline: Option<Placed<String>>,
    /// Its limit: a drain time, a size or a number of packets.
    pub limit: Placed<Limit>,
    /// From where on ECN-capable packets are marked (congestion experienced) as they are queued: a drain time, a size or
    /// a number of packets; no packet is marked if absent.
    pub mark: Option<Placed<Limit>>,
    /// Whether a limit or mark given as drain time follows each change of capacity, or is turned into bytes once, at the
    /// first rate or a trace's mean; true if absent.
    pub follows_capacity: Option<bool>,
}

/// Truncated Gaussian jitter (RFC 8868, section 4.5.3).
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JitterTable {
    /// Standard deviation.
    pub std: Placed<TimeDelta>,
    /// The largest jitter; three standard deviations if absent.
    pub limit: Option<Placed<TimeDelta>>,
    /// Whether a packet may overtake another; `keep` if absent.
    pub order: Option<Order>,
}

/// May jitter reorder?
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// No.
    Keep,
    /// Yes.
    Reorder,
}

/// A flow.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// Its name.
    pub id: Placed<String>,
    /// What it is, `media` or `tcp`; `media` if absent. Which of the other keys make sense depends on it.
    pub kind: Option<Placed<String>>,
    /// How many flows like this there are; 1 if absent. Several are called `<id>-1`, `<id>-2`, …
    pub count: Option<Placed<u32>>,
    /// Which way its data goes; `forward` if absent.
    pub direction: Option<FlowDirection>,
    /// When it begins; at 0 if absent.
    pub start: Option<Placed<Time>>,
    /// The seed draws the begin uniformly from this span after `start`; exactly at `start` if absent.
    pub start_spread: Option<Placed<TimeDelta>>,
    /// When it ends; with the run if absent.
    pub stop: Option<Placed<Time>>,
    /// Hops of its data, by name; the whole way if absent.
    pub route: Option<Vec<Placed<String>>>,
    /// Hops of what comes back, by name; the whole way back if absent.
    pub report_route: Option<Vec<Placed<String>>>,
    /// An extra one-way delay of its own, each way; none if absent.
    pub access_delay: Option<Placed<TimeDelta>>,
    /// The machines that its ends run on; none that would hold a packet if absent.
    pub host: Option<Placed<HostTable>>,
    /// Media: its controller; an error if absent.
    pub controller: Option<Placed<String>>,
    /// Media: numbers of the controller that differ from its defaults; none if absent.
    #[serde(default)]
    pub config: BTreeMap<String, Placed<f64>>,
    /// Media: first target; 300 kbps if absent.
    pub start_rate: Option<Placed<Rate>>,
    /// Media: lowest target; 30 kbps if absent.
    pub min_rate: Option<Placed<Rate>>,
    /// Media: its one video stream, in short; `{}` if absent.
    pub encoder: Option<Placed<SourceTable>>,
    /// Media: an audio stream beside it, in short; none if absent.
    pub audio: Option<Placed<SourceTable>>,
    /// Media: its streams, at length; those in short if absent.
    #[serde(default)]
    pub stream: Vec<Placed<Stream>>,
    /// Media: the receiver's clock; as its keys say if absent.
    pub clock: Option<Placed<ClockTable>>,
    /// Media: smallest deterministic interval of RTCP reports; 1 s if absent.
    pub rtcp_interval: Option<Placed<TimeDelta>>,
    /// Media: longest time that the pacer's queue may take to drain; 2 s if absent.
    pub pacer_limit: Option<Placed<TimeDelta>>,
    /// Media: ask for lost packets and send them again; true if absent.
    pub retransmit: Option<Placed<bool>>,
    /// Media: forward error correction and the budget for retransmissions; as its keys say if absent.
    pub protection: Option<Placed<ProtectionTable>>,
    /// TCP: its congestion control; `cubic` if absent.
    pub congestion: Option<Placed<String>>,
    /// TCP: `rfc`, to the letter, or `linux`, as the kernel does; `linux` if absent.
    pub profile: Option<Placed<String>>,
    /// TCP: payload of a full segment; 1448 B if absent.
    pub segment: Option<Placed<DataSize>>,
    /// TCP: the receiver's window; unlimited if absent.
    pub receive_window: Option<Placed<DataSize>>,
    /// TCP: what there is to send, and when; endless if absent.
    pub workload: Option<Placed<WorkloadTable>>,
}

impl Flow {
    /// Every key that was written and that only flows of one kind have: that kind, the key, and where its value stands.
    pub(crate) fn own_keys(&self) -> Vec<(&'static str, &'static str, Range<usize>)> {
        fn of<T>(
            kind: &'static str,
            key: &'static str,
            place: &Option<Placed<T>>,
        ) -> Option<(&'static str, &'static str, Range<usize>)> {
            Some((kind, key, place.as_ref()?.span()))
        }
        let config = self.config.values().next().map(|v| ("media", "config", v.span()));
        let stream = self.stream.first().map(|s| ("media", "stream", s.span()));
        let written = [
            of("media", "controller", &self.controller),
            config,
            of("media", "start_rate", &self.start_rate),
            of("media", "min_rate", &self.min_rate),
            of("media", "encoder", &self.encoder),
            of("media", "audio", &self.audio),
            stream,
            of("media", "clock", &self.clock),
            of("media", "rtcp_interval", &self.rtcp_interval),
            of("media", "pacer_limit", &self.pacer_limit),
            of("media", "retransmit", &self.retransmit),
            of("media", "protection", &self.protection),
            of("tcp", "congestion", &self.congestion),
            of("tcp", "profile", &self.profile),
            of("tcp", "segment", &self.segment),
            of("tcp", "receive_window", &self.receive_window),
            of("tcp", "workload", &self.workload),
        ];
        written.into_iter().flatten().collect()
    }
}

/// The machine at each end of a flow: how long it holds packets that leave and packets that arrived, in order.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostTable {
    /// Mean of what each packet waits, exponentially distributed; nothing if absent.
    pub jitter: Option<Placed<TimeDelta>>,
    /// Mean time between stalls, exponentially distributed; none if absent.
    pub stall_every: Option<Placed<TimeDelta>>,
    /// Mean length of a stall, in which nothing passes; each lasts between half and one and a half times as
    /// long; with `stall_every` an error if absent.
    pub stall: Option<Placed<TimeDelta>>,
}

/// How a media flow protects its video.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProtectionTable {
    /// Forward error correction: `none`, or `ulpfec` (RFC 5109), switched by the losses that reports tell, at most half of
    /// the target; `none` if absent.
    pub fec: Option<Placed<String>>,
    /// Bytes that may be sent again: `half` of the target, or for each NACK what the target sends in one `rtt`; `half` if
    /// absent.
    pub resend_budget: Option<Placed<String>>,
}

/// What a TCP flow has to send, and when. Which keys make sense depends on `kind`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkloadTable {
    /// `bulk`, `on-off` or `short`.
    pub kind: Placed<String>,
    /// `on-off`: how long it sends, each time on a new connection; for `on-off` an error if absent.
    pub on: Option<Placed<TimeDelta>>,
    /// `on-off`: how long it pauses; for `on-off` an error if absent.
    pub off: Option<Placed<TimeDelta>>,
    /// `short`: smallest and largest transfer, each on a new connection, drawn evenly between them
    /// by the seed; for `short` an error if absent.
    pub size: Option<Placed<(DataSize, DataSize)>>,
    /// `short`: mean pause between transfers, drawn from an exponential distribution by the seed; for `short` an error
    /// if absent.
    pub pause: Option<Placed<TimeDelta>>,
}

/// Which way a flow's data goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FlowDirection {
    /// Along `path.forward`.
    Forward,
    /// Along `path.reverse`.
    Reverse,
}

/// A stream of a flow.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stream {
    /// Its name.
    pub id: Placed<String>,
    /// Its weight when streams share the target; 1 if absent.
    pub priority: Option<Placed<f64>>,
    /// What it sends.
    pub encoder: Placed<SourceTable>,
}

/// A source. Which keys make sense depends on `source`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SourceTable {
    /// `encoder`, `ideal`, `frames` or `audio`; `audio` in `audio`, else `frames` where that is given, else `encoder`
    /// if absent.
    pub source: Option<Placed<String>>,
    /// Frames per second; 30 if absent.
    pub fps: Option<Placed<f64>>,
    /// Lowest rate of encoded media; 50 kbps if absent.
    pub min: Option<Placed<Rate>>,
    /// Highest rate of encoded media; 2 Mbps if absent.
    pub max: Option<Placed<Rate>>,
    /// Rate of audio; 20 kbps if absent.
    pub rate: Option<Placed<Rate>>,
    /// Time in which a source that has reacted to a target ignores others (RFC 8593, tau_v); 200 ms if absent.
    pub reaction_delay: Option<Placed<TimeDelta>>,
    /// Scale of the Laplace noise on frame sizes (RFC 8593, SCALE_B); 0.15 if absent.
    pub size_noise: Option<Placed<f64>>,
    /// Scale of the Laplace noise on frame intervals (RFC 8593, SCALE_t); 0.15 if absent.
    pub interval_noise: Option<Placed<f64>>,
    /// Size of a key frame over a mean frame (RFC 8593, K_B / B_0); 3.24 if absent.
    pub key_ratio: Option<Placed<f64>>,
    /// Frames over which a key frame's excess is paid back (RFC 8593, K_d); 8 if absent.
    pub key_frames: Option<Placed<u32>>,
    /// Time between key frames; only on request if absent.
    pub key_period: Option<Placed<TimeDelta>>,
    /// Folder of recorded frame sizes, `<content>_<resolution>_<kbps>.txt` each; none if absent.
    pub frames: Option<Placed<String>>,
    /// Which resolution of them; the highest if absent.
    pub resolution: Option<Placed<String>>,
}

impl SourceTable {
    /// Every key that was written, and where its value stands.
    pub(crate) fn spans(&self) -> Vec<(&'static str, Range<usize>)> {
        fn of<T>(key: &'static str, place: &Option<Placed<T>>) -> Option<(&'static str, Range<usize>)> {
            Some((key, place.as_ref()?.span()))
        }
        let written = [
            of("source", &self.source),
            of("fps", &self.fps),
            of("min", &self.min),
            of("max", &self.max),
            of("rate", &self.rate),
            of("reaction_delay", &self.reaction_delay),
            of("size_noise", &self.size_noise),
            of("interval_noise", &self.interval_noise),
            of("key_ratio", &self.key_ratio),
            of("key_frames", &self.key_frames),
            of("key_period", &self.key_period),
            of("frames", &self.frames),
            of("resolution", &self.resolution),
        ];
        written.into_iter().flatten().collect()
    }
}

/// The receiver's clock against the world's.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClockTable {
    /// Its reading at time zero; drawn from the seed if absent.
    pub offset: Option<TimeDelta>,
    /// How much faster it runs, parts per million; 0 if absent.
    pub drift_ppm: Option<Placed<f64>>,
}

/// How metrics are taken.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MeasureTable {
    /// What `queue_*` metrics mean: `packet`, waiting at the bottleneck, `rtcp`, round-trip time over its minimum as RTCP
    /// samples it, or `one-way`, one-way delay over propagation; `packet` if absent.
    pub queue: Option<Placed<String>>,
    /// What losses are divided by, bytes `sent` or `received`; `sent` if absent.
    pub loss: Option<Placed<String>>,
    /// Which runs count; all if absent.
    pub keep: Option<Placed<KeepTable>>,
}

/// Which runs count, where a paper left out the others: those in which a metric is large enough. Of a ratio between cases
/// both runs of a seed must be kept.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KeepTable {
    /// Metric id.
    pub metric: Placed<String>,
    /// The flow it is taken of; the run as a whole if absent.
    pub flow: Option<Placed<String>>,
    /// What it comes to at least.
    pub at_least: Placed<f64>,
    /// What to know of a case that keeps fewer than half of its runs; nothing if absent.
    pub note: Option<String>,
}

/// A variant of the experiment.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CaseTable {
    /// What results call it, such as { threshold = "static" }.
    pub label: Placed<Label>,
    /// What is different in it: keys and values as of `--set`; nothing if absent.
    #[serde(default)]
    pub set: BTreeMap<String, Placed<Anything>>,
}

/// Any value.
#[derive(Clone, Debug, Deserialize)]
#[serde(transparent)]
pub struct Anything(pub(crate) toml::Value);

impl JsonSchema for Anything {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Anything".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        true.into()
    }
}

/// A published value.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExpectTable {
    /// Metric id.
    pub metric: Placed<String>,
    /// What was published, in the metric's unit.
    pub published: Placed<f64>,
    /// The cases that it belongs to: those whose label says all this; all if absent.
    pub case: Option<Placed<Label>>,
    /// The flow it is taken of; the run as a whole if absent.
    pub flow: Option<Placed<String>>,
    /// The span it is taken over, [from, to]; the whole run if absent.
    pub window: Option<Placed<(Time, Time)>>,
    /// What it is divided by, seed by seed, so that it is a ratio; nothing if absent.
    pub over: Option<Placed<OverTable>>,
    /// How far the measured mean may lie from it, in the metric's unit; as for every metric of its kind if absent.
    pub tolerance: Option<Placed<f64>>,
    /// Why it needs a tolerance of its own; for a tolerance an error if absent.
    pub why: Option<Placed<String>>,
    /// The id of an `[[assert]]` that the value supports; none if absent.
    pub claim: Option<Placed<String>>,
    /// What to know where it is not reproduced; nothing if absent.
    pub note: Option<String>,
    /// The `--set` changes under which it is reproduced; none if absent.
    #[serde(default)]
    pub moved_by: Vec<Placed<String>>,
}

/// A bound.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AssertTable {
    /// Its name; several bounds may share one, and hold together.
    pub id: String,
    /// Metric id.
    pub metric: Placed<String>,
    /// Which number of several runs is bounded, their `mean`, the `lowest` or the `highest`; `mean` if absent.
    pub runs: Option<Placed<String>>,
    /// The lowest and the highest that it may be, in the metric's unit.
    pub bounds: Placed<(f64, f64)>,
    /// The cases that it belongs to: those whose label says all this; all if absent.
    pub case: Option<Placed<Label>>,
    /// The flow it is taken of; the run as a whole if absent.
    pub flow: Option<Placed<String>>,
    /// The span it is taken over, [from, to]; the whole run if absent.
    pub window: Option<Placed<(Time, Time)>>,
    /// What it is divided by, seed by seed, so that the bounds are on the ratio; nothing if absent.
    pub over: Option<Placed<OverTable>>,
    /// What to know where it does not hold; nothing if absent.
    pub note: Option<String>,
    /// The `--set` changes under which it holds; none if absent.
    #[serde(default)]
    pub moved_by: Vec<Placed<String>>,
}

/// What a value is divided by: as the value itself, except for these.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OverTable {
    /// The same case, except for this of its label; the same case if absent.
    pub case: Option<Placed<Label>>,
    /// Metric id; the value's own if absent.
    pub metric: Option<Placed<String>>,
    /// The flow it is taken of; the value's own if absent.
    pub flow: Option<Placed<String>>,
    /// The span it is taken over, [from, to]; the value's own if absent.
    pub window: Option<Placed<(Time, Time)>>,
}

impl ScenarioFile {
    /// Puts every media flow under `controller`. A flow that was under another leaves that one's numbers behind; what `--set`
    /// says of its config stays.
    pub(crate) fn control_all_by(&mut self, controller: &str, settings: &[Setting]) {
        for (index, flow) in self.flow.iter_mut().enumerate() {
            let flow = flow.0.get_mut();
            let Some(own) = flow.controller.as_mut().filter(|own| own.get() != controller) else { continue };
            own.replace(controller.to_owned());
            let names = [flow.id.get().clone(), index.to_string()];
            let is_set = |name: &str| {
                names.iter().any(|flow| {
                    let config = format!("flow.{flow}.config");
                    settings.iter().any(|s| s.key() == config || s.key() == format!("{config}.{name}"))
                })
            };
            flow.config.retain(|name, _| is_set(name));
        }
    }
}

/// Text to a scenario or a file of constants, or the complaint.
pub(crate) fn parse<T: DeserializeOwned>(name: &str, text: &str) -> Result<T, Problem> {
    if let Err(error) = toml::from_str::<toml::Table>(text) {
        let span = error.span().unwrap_or(0..0);
        let hint = match error.message() {
            "duplicate key" => "each key stands once in its table",
            _ => "a line of TOML is key = value; text stands in double quotes, a list in [ ], a table in { }",
        };
        return Err(Problem::at(name, text, span, first_line(error.message())).help(hint));
    }
    toml::from_str(text).map_err(|error| {
        let (message, hint) = explain(&first_line(error.message()));
        let problem = match error.span().filter(|span| !span.is_empty()) {
            Some(span) => Problem::at(name, text, span, message),
            None => Problem::of(name, text, message),
        };
        problem.help(hint.unwrap_or_else(|| "`paceline schema` prints everything that a scenario may say".to_owned()))
    })
}

/// The JSON schema of scenario files.
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(ScenarioFile).to_value()
}

fn first_line(message: &str) -> String {
    message.lines().next().unwrap_or_default().to_owned()
}

/// What serde says, as Paceline says it: what is wrong, and what to write instead.
fn explain(message: &str) -> (String, Option<String>) {
    let names: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    if let Some((wrong, known)) = message.strip_prefix("unknown ").and(names.split_first()) {
        let what = if message.starts_with("unknown variant") { "value" } else { "key" };
        let hint = if known.is_empty() { "nothing may stand here".to_owned() } else { suggestion(wrong, known) };
        return (format!("unknown {what} `{wrong}`"), Some(hint));
    }
    if let (Some(key), true) = (names.first(), message.starts_with("missing field")) {
        let (value, more) = match *key {
            "id" => ("\"a-name\"", ""),
            "title" => ("\"A line on it\"", ""),
            "duration" => ("\"60 s\"", ""),
            "limit" => ("\"300 ms\"", ""),
            "metric" => ("\"utilization\"", "; `paceline list metrics` shows all"),
            "at_least" => ("1", ""),
            "bounds" => ("[0.8, 1.0]", ""),
            "controller" => ("\"gcc-2016\"", "; `paceline list controllers` shows all"),
            "model" => ("\"gilbert-elliott\"", "; `paceline list losses` shows all"),
            "std" => ("\"5 ms\"", ""),
            "label" => ("{ threshold = \"static\" }", ""),
            "published" => ("0.84", ""),
            "range" => ("[0.05, 0.2]", ""),
            "why" => ("\"one sentence with the source\"", ""),
            _ => ("…", ""),
        };
        return (message.to_owned(), Some(format!("add `{key} = {value}`{more}")));
    }
    // Quantities say after a semicolon how they are written.
    if let Some((what, how)) = message.split_once("; write ") {
        return (what.to_owned(), Some(format!("write {how}")));
    }
    // "invalid type: integer `60`, expected a time", "invalid length 1, expected a tuple of size 2"
    let Some((found, expected)) = message.strip_prefix("invalid ").and_then(|m| m.split_once(", expected ")) else {
        return (message.to_owned(), None);
    };
    let found = match found.strip_prefix("length ") {
        Some(length) => &format!("a list of {length}"),
        None => found.split_once(": ").map_or(found, |(_, what)| what),
    };
    let expected = match expected {
        "f64" => "a number",
        "u32" => "a whole number, not negative",
        "a tuple of size 2" => "a pair of values",
        other => other,
    };
    let number = names.first().and_then(|n| n.parse::<f64>().ok()).filter(|_| !found.starts_with("string"));
    let hint = match (expected, number) {
        ("a pair of values", _) => Some(
            "a schedule is written [[\"0s\", …], [\"50s\", …]], a window [\"10s\", \"60s\"], bounds [0.2, 1.0] or [0.2, inf]"
                .to_owned(),
        ),
        ("a number", _) if found.starts_with("string") => Some("write the number without quotes".to_owned()),
        ("a whole number, not negative", _) => Some("write it like 10, without quotes".to_owned()),
        ("a boolean", _) => Some("write true or false, without quotes".to_owned()),
        (e, Some(n)) if e.starts_with("a time") => Some(format!("write \"{n} s\" or \"{n} ms\"")),
        (e, Some(n)) if e.starts_with("a rate") => Some(format!("write \"{n} bps\"")),
        (e, Some(n)) if e.starts_with("a fraction") => Some(format!("write \"{} %\"", n * 100.0)),
        (e, Some(n)) if e.starts_with("a queue limit") => Some(format!("write \"{n} ms\" or \"{n} packets\"")),
        (e, Some(n)) if e.starts_with("a string") => Some(format!("write \"{n}\"")),
        _ => None,
    };
    (format!("expected {expected}, found {found}"), hint)
}

impl<'de> Deserialize<'de> for CapacityValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = CapacityValue;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "a rate like \"1 Mbps\", a list like [[\"0s\", \"1 Mbps\"], [\"50s\", \"2.5 Mbps\"]], \
                     or a table like { trace = \"file\" }",
                )
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<CapacityValue, E> {
                Rate::deserialize(text.into_deserializer()).map(|r| CapacityValue::Rates(Timed::Constant(r)))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<CapacityValue, A::Error> {
                let points = Vec::deserialize(SeqAccessDeserializer::new(seq))?;
                Ok(CapacityValue::Rates(Timed::Schedule(points)))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<CapacityValue, A::Error> {
                TraceTable::deserialize(MapAccessDeserializer::new(map)).map(CapacityValue::Trace)
            }
        }
        deserializer.deserialize_any(Either)
    }
}

impl JsonSchema for CapacityValue {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Capacity".into()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let rates = generator.subschema_for::<Timed<Rate>>();
        let trace = generator.subschema_for::<TraceTable>();
        schemars::json_schema!({ "anyOf": [rates, trace] })
    }
}
