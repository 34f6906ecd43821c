// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tables and keys of a scenario file. An absent key stays absent here; [`resolve`](super::resolve) knows every
//! default.

use super::forms::{Limit, Timed};
use super::parameters::Parameters;
use super::text_span::{Spanned, Table};
use super::values::{CapacityValue, Loss, Server};
use paceline_netsim::flow::source::SourceEntry;
use paceline_netsim::link::queue::QueueEntry;
use paceline_netsim::plan::Direction;
use paceline_netsim::records::Label;
use paceline_units::{DataSize, Dscp, Rate, Time, TimeDelta};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

/// A scenario.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScenarioFile {
    /// Its id, such as `mmsys16/table1`.
    pub id: Spanned<String>,
    /// One line that describes it.
    pub title: String,
    /// The document, section, table or figure that it follows; none if absent.
    #[serde(default)]
    pub source: String,
    /// The duration of a run.
    pub duration: Spanned<TimeDelta>,
    /// The number of runs of a reproduction; 1 if absent.
    pub repeats: Option<Spanned<u32>>,
    /// The file of constants that are assumed for all experiments of a paper; none if absent.
    pub constants: Option<Spanned<String>>,
    /// The network.
    pub path: Path,
    /// The flows, at least one; an error if absent.
    #[serde(default)]
    pub flow: Vec<Flow>,
    /// The definitions with which metrics are computed; the defaults of its keys if absent.
    #[serde(default)]
    pub measure: MeasureTable,
    /// Variants of the experiment; none if absent.
    #[serde(default)]
    pub case: Vec<CaseTable>,
    /// Published values to compare with measured ones; none if absent.
    #[serde(default)]
    pub expect: Vec<ExpectTable>,
    /// Bounds on the mean over the runs; none if absent.
    #[serde(default)]
    pub assert: Vec<AssertTable>,
}

/// The network: a chain of hops each way.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Path {
    /// A typical access network, of which `paceline list paths` shows all. Keys beside it replace its values, and assumed
    /// constants of the path do not apply. With `--set` it replaces the whole path; none if absent.
    pub preset: Option<Spanned<String>>,
    /// Propagation delay of both ways, half of it for each way without a delay of its own; 0 ms if absent.
    pub rtt: Option<Spanned<TimeDelta>>,
    /// Hops of the forward way; one unlimited hop if absent.
    pub forward: Option<Way>,
    /// Hops of the reverse way; one unlimited hop if absent.
    pub reverse: Option<Way>,
}

/// One way of the path: the keys of one hop, or `hops`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Way {
    /// The hops, in order, without any other key; one hop of the other keys if absent.
    pub hops: Option<Spanned<Vec<Hop>>>,
    #[serde(rename = "$hop")]
    #[schemars(flatten)]
    pub hop: Table<HopKeys>,
}

/// One hop.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Hop {
    /// Its name; `forward/0`, `forward/1`, … or `reverse/0`, … if absent.
    pub id: Option<Spanned<String>>,
    #[serde(rename = "$hop")]
    #[schemars(flatten)]
    pub keys: Table<HopKeys>,
}

/// The keys of a hop besides its name.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct HopKeys {
    /// The rate at which it sends packets on; unlimited if absent.
    pub capacity: Option<Spanned<CapacityValue>>,
    /// Its link server; a line if absent.
    pub server: Option<Server>,
    /// Its queue; drop-tail of 300 ms if absent.
    pub queue: Option<Spanned<Queue>>,
    /// Propagation delay; 0 ms if absent, but half of `path.rtt` for the first hop of a way without any.
    pub delay: Option<Spanned<Timed<TimeDelta>>>,
    /// Random addition to the delay of each packet; none if absent.
    pub jitter: Option<Spanned<JitterTable>>,
    /// Random loss on the wire; none if absent.
    pub loss: Option<Spanned<Timed<Loss>>>,
    /// Size of the largest IP packet that it carries. Larger ones are dropped, with `mtu` as the reason; 1500 B if
    /// absent.
    pub mtu: Option<Spanned<Timed<DataSize>>>,
    /// Whether it clears the ECN field of every packet that enters (bleaching); false if absent.
    pub clears_ecn: Option<Spanned<bool>>,
}

/// A queue. Which of the keys make sense depends on `discipline`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Queue {
    /// Its discipline, of which `paceline list queues` shows all; `drop-tail` if absent.
    pub discipline: Option<Spanned<String>>,
    /// Its limit: a drain time, a size or a number of packets; that of its discipline, which `paceline list queues NAME`
    /// shows if absent.
    pub limit: Option<Spanned<Limit>>,
    /// Whether a limit or mark given as drain time follows each change of capacity. If not, it is converted to bytes
    /// once, at the first rate or a trace's mean; true if absent.
    pub follows_capacity: Option<bool>,
    #[serde(rename = "$parameters")]
    #[schemars(flatten)]
    pub parameters: Table<Parameters<QueueEntry>>,
}

/// Truncated Gaussian jitter (RFC 8868, section 4.5.3).
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JitterTable {
    /// Standard deviation.
    pub std: Spanned<TimeDelta>,
    /// The largest jitter; three standard deviations if absent.
    pub limit: Option<Spanned<TimeDelta>>,
    /// Whether a packet may overtake another; `keep` if absent.
    pub order: Option<Order>,
}

/// Whether jitter may reorder packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// No.
    Keep,
    /// Yes.
    Reorder,
}

/// A flow.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// Its name.
    pub id: Spanned<String>,
    /// Its kind, `media` or `tcp`; `media` if absent. Which of the other keys make sense depends on it.
    pub kind: Option<Spanned<String>>,
    /// The number of flows like this; 1 if absent. Several have the ids `<id>-1`, `<id>-2`, …
    pub count: Option<Spanned<u32>>,
    /// The way that its data takes; `forward` if absent.
    pub direction: Option<Direction>,
    /// The time at which it starts; at 0 if absent.
    pub start: Option<Spanned<Time>>,
    /// The seed draws its start uniformly from this span after `start`; exactly at `start` if absent.
    pub start_spread: Option<Spanned<TimeDelta>>,
    /// The time at which it stops; with the run if absent.
    pub stop: Option<Spanned<Time>>,
    /// Hops of its data, by name; the whole way if absent.
    pub route: Option<Vec<Spanned<String>>>,
    /// Hops of its reports or acknowledgements, by name; the whole way back if absent.
    pub report_route: Option<Vec<Spanned<String>>>,
    /// An extra one-way delay of its own, each way; none if absent.
    pub access_delay: Option<Spanned<TimeDelta>>,
    /// The Differentiated Services codepoint of its packets, both ways, by name (`EF`, `AF41`) or number; `DF` (0) if absent.
    pub dscp: Option<Spanned<Dscp>>,
    /// The hosts at its ends; hosts that take no time and delay no packet if absent.
    pub host: Option<Spanned<HostTable>>,
    #[serde(rename = "$media")]
    #[schemars(flatten)]
    pub media: Table<MediaKeys>,
    #[serde(rename = "$tcp")]
    #[schemars(flatten)]
    pub tcp: Table<TcpKeys>,
}

/// The keys of media flows.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct MediaKeys {
    /// Media: its controller; an error if absent.
    pub controller: Option<Spanned<String>>,
    /// Media: whether it is cross traffic, which keeps its controller under `--controllers` and in suites and has no score; false if
    /// absent.
    pub cross_traffic: Option<Spanned<bool>>,
    /// Media: its membership in a group of flows of one sender whose rates are coupled (RFC 8699); not coupled if absent.
    pub coupling: Option<Spanned<CouplingTable>>,
    /// Media: what they are for, on which the score depends: a `conversation`, a `game` that a server renders, the
    /// `teleoperation` of a machine, or a `contribution` to a live broadcast; `conversation` if absent.
    #[serde(rename = "use")]
    pub media_use: Option<Spanned<String>>,
    /// Media: numbers of the controller that differ from its defaults; none if absent.
    #[serde(default)]
    pub config: Table<BTreeMap<String, Spanned<f64>>>,
    /// Media: first target; 300 kbps if absent.
    pub start_rate: Option<Spanned<Rate>>,
    /// Media: lowest target, of which both ends learn when it changes; 30 kbps if absent.
    pub min_rate: Option<Spanned<Timed<Rate>>>,
    /// Media: highest target, below what its sources can use, of which both ends learn at the start and when it changes;
    /// unlimited if absent.
    pub max_rate: Option<Spanned<Timed<Rate>>>,
    /// Media: times at which both ends learn that the network route is another one, so that the controller starts again at
    /// `start_rate`; the hops stay, and their keys say how the path changes; none if absent.
    pub route_change_at: Option<Spanned<Vec<Time>>>,
    /// Media: whether the sender has a network, as a list of [time, true or false]; while it has none, it sends nothing;
    /// always if absent.
    pub available: Option<Spanned<Vec<(Time, bool)>>>,
    /// Media: a cap from outside, as a list of [time, rate]: from each time on a middlebox, such as an SFU, sends the sender a REMB of
    /// this rate at once and then every second; none if absent.
    pub remb: Option<Spanned<Vec<(Time, Rate)>>>,
    /// Media: the source of its one video stream; `{}` if absent.
    pub encoder: Option<Table<SourceTable>>,
    /// Media: the source of an additional audio stream; none if absent.
    pub audio: Option<Table<SourceTable>>,
    /// Media: its streams, in place of `encoder` and `audio`; the streams of those if absent.
    #[serde(default)]
    pub stream: Vec<Stream>,
    /// Media: the receiver's clock; the defaults of its keys if absent.
    pub clock: Option<Spanned<ClockTable>>,
    /// Media: size of the largest RTP packet with its extensions, retransmissions and FEC included; IP and UDP add 28 B;
    /// 1200 B if absent.
    pub packet_size: Option<Spanned<DataSize>>,
    /// Media: smallest deterministic interval of RTCP reports; 1 s if absent.
    pub rtcp_interval: Option<Spanned<TimeDelta>>,
    /// Media: time between per-packet reports, and shortest time between messages of the receive half, of which a newer one
    /// replaces one that waits; that of the controller if absent.
    pub feedback_interval: Option<Spanned<TimeDelta>>,
    /// Media: longest time that the pacer's queue may take to drain; 2 s if absent.
    pub pacer_limit: Option<Spanned<TimeDelta>>,
    /// Media: request lost packets again and retransmit them; true if absent.
    pub retransmit: Option<Spanned<bool>>,
    /// Media: forward error correction and the budget for retransmissions; the defaults of its keys if absent.
    pub protection: Option<Spanned<ProtectionTable>>,
    /// Media: what carries its packets both ways: `udp`, or `tcp` (CUBIC), as through a TURN server over TCP or with ICE over TCP,
    /// where they come late and are never lost; only in the simulator; `udp` if absent.
    pub transport: Option<Spanned<String>>,
}

/// The membership of a media flow in a group of coupled flows (RFC 8699). The flows of a group share the sum of their rates.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CouplingTable {
    /// The name of its group: flows with the same direction that share a bottleneck.
    pub group: Spanned<String>,
    /// Its weight when the group shares the sum; 1 if absent.
    pub priority: Option<Spanned<f64>>,
    /// How a new rate of one flow changes the sum, in the whole group alike: `active` (section 5.3.1), by the difference, or
    /// `conservative` (section 5.3.2), where a decrease lowers the sum in proportion; `active` if absent.
    pub algorithm: Option<Spanned<String>>,
}

/// The keys of TCP flows.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct TcpKeys {
    /// TCP: its congestion control; `cubic` if absent.
    pub congestion: Option<Spanned<String>>,
    /// TCP: explicit congestion notification: `off`, `classic` (RFC 3168), `abe` (RFC 8511), `accurate` (RFC 9768) or
    /// `l4s`, which is the same with ECT(1); `off`, with `dctcp` `accurate`, with `prague` `l4s` if absent.
    pub ecn: Option<Spanned<String>>,
    /// TCP: `rfc`, which follows the RFCs exactly, or `linux`, which follows the kernel; `linux` if absent.
    pub profile: Option<Spanned<String>>,
    /// TCP: payload of a full segment; 1448 B if absent, or less if a hop of the route has a smaller MTU than 1500 B.
    pub segment: Option<Spanned<DataSize>>,
    /// TCP: the receiver's window; that to which Linux grows it, 3 MiB, and on the testbed the kernel's own if absent.
    pub receive_window: Option<Spanned<DataSize>>,
    /// TCP: the data to send, and when; endless if absent.
    pub workload: Option<Table<WorkloadTable>>,
}

/// The host at each end of a flow: how long it takes for a packet, and how long it delays packets that leave and packets that
/// arrive, in order.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostTable {
    /// Media: the time that the sender's host takes to send a packet, so that a burst lasts longer, as measured in
    /// Chromium; 75 us if absent.
    pub packet_time: Option<Spanned<TimeDelta>>,
    /// Mean delay of each packet, exponentially distributed; none if absent.
    pub jitter: Option<Spanned<TimeDelta>>,
    /// Mean time between stalls, exponentially distributed; none if absent.
    pub stall_every: Option<Spanned<TimeDelta>>,
    /// Mean length of a stall, in which no packet passes; each lasts between half and one and a half times as long;
    /// with `stall_every` an error if absent.
    pub stall: Option<Spanned<TimeDelta>>,
}

/// The protection of the video of a media flow.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProtectionTable {
    /// Forward error correction: `none`, or `ulpfec` (RFC 5109), switched by the reported losses, at most half of the
    /// target; `none` if absent.
    pub fec: Option<Spanned<String>>,
    /// Budget of retransmissions: `half` of the target, or for each NACK the bytes that the target sends in one `rtt`;
    /// `half` if absent.
    pub resend_budget: Option<Spanned<String>>,
}

/// The data that a TCP flow sends, and when. Which keys make sense depends on `kind`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkloadTable {
    /// `bulk`, `on-off`, `short` or `bursts`.
    pub kind: Spanned<String>,
    /// `on-off`: how long it sends, each time on a new connection; for `on-off` an error if absent.
    pub on: Option<Spanned<TimeDelta>>,
    /// `on-off`: how long it pauses; for `on-off` an error if absent.
    pub off: Option<Spanned<TimeDelta>>,
    /// `short`, `bursts`: smallest and largest transfer, each on a new connection; the seed draws uniformly between them; for
    /// these an error if absent.
    pub size: Option<Spanned<(DataSize, DataSize)>>,
    /// `short`: mean pause between transfers; `bursts`: mean time from one burst to the next, which is the same in all flows
    /// of the table; the seed draws from an exponential distribution; for these an error if absent.
    pub pause: Option<Spanned<TimeDelta>>,
    /// `short`: whether it begins with a pause, as a source in the OFF state of RFC 8867, section 5.7; `false` if absent.
    pub begins_off: Option<Spanned<bool>>,
}

/// A stream of a flow.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stream {
    /// Its name.
    pub id: Spanned<String>,
    /// Its weight when streams share the target; 1 if absent.
    pub priority: Option<Spanned<f64>>,
    /// The highest rate of its encoded media, in addition to that of its source; while it is 0 bps, the stream pauses;
    /// unlimited if absent.
    pub max_rate: Option<Spanned<Timed<Rate>>>,
    /// Whether it is muted, as a list of [time, true or false]: its source then makes its lowest rate, as a camera of black
    /// pictures, and its limits stay; never if absent.
    pub muted: Option<Spanned<Vec<(Time, bool)>>>,
    /// The time at which it is removed from the flow; with the flow if absent.
    pub stop: Option<Spanned<Time>>,
    /// Whether it pauses while the target does not cover its lowest rate after the highest rates of the streams before it,
    /// as a layer of simulcast; false if absent.
    pub suspend: Option<bool>,
    /// Its source.
    pub encoder: Table<SourceTable>,
}

/// A source. Which keys make sense depends on `source`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SourceTable {
    /// Its name, of which `paceline list sources` shows all; `audio` in `audio`, else `frames` where that is given, else
    /// `encoder` if absent.
    pub source: Option<Spanned<String>>,
    #[serde(rename = "$parameters")]
    #[schemars(flatten)]
    pub parameters: Table<Parameters<SourceEntry>>,
}

/// The receiver's clock, relative to that of the run.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClockTable {
    /// Its reading at time zero; drawn from the seed if absent.
    pub offset: Option<TimeDelta>,
    /// Its drift (positive: fast), in parts per million; 0 if absent.
    pub drift_ppm: Option<Spanned<f64>>,
}

/// The definitions with which metrics are computed.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MeasureTable {
    /// The delay that `queue_*` metrics measure: `packet`, waiting at the bottleneck, `rtcp`, round-trip time over its
    /// minimum as RTCP samples it, or `one-way`, one-way delay over propagation; `packet` if absent.
    pub queue: Option<Spanned<String>>,
    /// The bytes by which losses are divided, `sent` or `received`; `sent` if absent.
    pub loss: Option<Spanned<String>>,
    /// The runs that count; all if absent.
    pub include_if: Option<Spanned<IncludeIfTable>>,
    /// The rate of each flow under an oracle, on a bottleneck that shares a medium: the constant rate with the best score; none if absent.
    pub oracle_rate: Option<Spanned<Rate>>,
}

/// The condition under which a run counts, where a paper leaves the others out: a metric is large enough. Of a ratio
/// between cases both runs of a seed must count.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IncludeIfTable {
    /// Metric id.
    pub metric: Spanned<String>,
    /// The flow that is measured; the run as a whole if absent.
    pub flow: Option<Spanned<String>>,
    /// The lowest value of the metric with which a run counts.
    pub at_least: Spanned<f64>,
    /// A remark on a case in which fewer than half of the runs count; none if absent.
    pub note: Option<String>,
}

/// A variant of the experiment.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CaseTable {
    /// Its label in results, such as { threshold = "static" }.
    pub label: Spanned<Label>,
    /// The values that it changes, with keys as in `--set`; none if absent.
    #[serde(default)]
    pub set: BTreeMap<String, Spanned<AnyValue>>,
}

/// Any value.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub struct AnyValue(pub toml::Value);

impl JsonSchema for AnyValue {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "AnyValue".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        true.into()
    }
}

/// A published value.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExpectTable {
    /// The published value, in the metric's unit.
    pub published: Spanned<f64>,
    /// The largest distance of the measured mean, in the metric's unit; the tolerance of every metric of its kind if
    /// absent.
    pub tolerance: Option<Spanned<f64>>,
    /// The reason for a tolerance; for a tolerance an error if absent.
    pub why: Option<Spanned<String>>,
    /// The id of an `[[assert]]` that the value supports; none if absent.
    pub claim: Option<Spanned<String>>,
    #[serde(rename = "$quantity")]
    #[schemars(flatten)]
    pub quantity: Table<QuantityKeys>,
}

/// A bound.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AssertTable {
    /// Its name; several bounds with one name pass or fail together.
    pub id: String,
    /// The statistic of several runs that is bounded: their `mean`, the `lowest` or the `highest`; `mean` if absent.
    pub runs: Option<Spanned<String>>,
    /// The lowest and the highest allowed value, in the metric's unit.
    pub bounds: Spanned<(f64, f64)>,
    /// The bounds apply to the metric in each window of this length within `window`, or with `change` in each window from one change
    /// of the path's capacity or delay to the next; the measured value is the share of windows that are within the bounds. The
    /// bounds apply to `window` as a whole if absent.
    pub each: Option<Spanned<String>>,
    /// With `each`: the lowest allowed share of windows that are within the bounds; 1 if absent.
    pub share: Option<Spanned<f64>>,
    /// The reason for the bounds; none if absent, but a suite needs one.
    pub why: Option<Spanned<String>>,
    #[serde(rename = "$quantity")]
    #[schemars(flatten)]
    pub quantity: Table<QuantityKeys>,
}

/// The measured quantity of a published value or a bound.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct QuantityKeys {
    /// Metric id.
    pub metric: Spanned<String>,
    /// The cases to which it belongs: those whose label contains all of these pairs; all if absent.
    pub case: Option<Spanned<Label>>,
    /// The flow that is measured; the run as a whole if absent.
    pub flow: Option<Spanned<String>>,
    /// The stream of the flow that is measured; the flow as a whole if absent.
    pub stream: Option<Spanned<String>>,
    /// The span of time that is measured, [from, to]; the whole run if absent.
    pub window: Option<Spanned<(Time, Time)>>,
    /// The reference by which it is divided, seed by seed, so that it is a ratio; none if absent.
    pub relative_to: Option<Spanned<ReferenceTable>>,
    /// The key of the scenario that was chosen by a sweep of it, so that it is no evidence; none if absent.
    pub fitted: Option<String>,
    /// A remark for when it is not reproduced; none if absent.
    pub note: Option<String>,
    /// The `--set` changes with which it is reproduced; none if absent.
    #[serde(default)]
    pub reproduced_with: Vec<Spanned<String>>,
}

/// The reference of a ratio: the same quantity, except for these keys.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReferenceTable {
    /// The pairs in which the label of its case differs; the same case if absent.
    pub case: Option<Spanned<Label>>,
    /// Metric id; that of the value if absent.
    pub metric: Option<Spanned<String>>,
    /// The flow that is measured; that of the value if absent.
    pub flow: Option<Spanned<String>>,
    /// The stream of the flow that is measured; that of the value if absent.
    pub stream: Option<Spanned<String>>,
    /// The span of time that is measured, [from, to]; that of the value if absent.
    pub window: Option<Spanned<(Time, Time)>>,
}

/// Returns the JSON schema of scenario files.
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(ScenarioFile).to_value()
}
