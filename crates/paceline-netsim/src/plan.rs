// SPDX-License-Identifier: MIT OR Apache-2.0
//! The plan: a scenario with every value resolved. `paceline-scenario` builds it; every world runs it.

use crate::flow::parameter::Values;
use crate::flow::source::{SourceConfig, SourceEntry};
use crate::flow::tcp::{TcpConfig, Workload};
use crate::flow::{IP_UDP_HEADERS, MEDIA_HEADERS, MediaKind};
pub use crate::link::HopPlan;
use crate::link::Schedule;
use crate::records::{HalfName, Label};
use paceline::{Bounds, Coupling, Entry, Protection, Setup, SignalShape};
use paceline_units::{DataSize, Dscp, Rate, StreamId, Time, TimeDelta};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A scenario, resolved.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Scenario id, such as `mmsys16/table1`.
    pub id: String,
    /// Title, in one line.
    pub title: String,
    /// Source of the scenario, such as a paper and a table.
    pub source: String,
    /// The case of the scenario; empty for the scenario itself.
    pub case: Label,
    /// Duration of a run.
    pub duration: TimeDelta,
    /// Every hop, forward path first.
    pub hops: Vec<HopPlan>,
    /// Number of hops of the forward path.
    pub forward_hops: usize,
    /// Index of the bottleneck, the hop that results call `link`: the slowest hop of the forward flows, or of all flows if
    /// there is no forward flow.
    pub bottleneck: usize,
    pub flows: Vec<FlowPlan>,
}

/// The way that a flow's data takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema), schemars(rename = "FlowDirection"))]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Along `path.forward`.
    #[default]
    Forward,
    /// Along `path.reverse`.
    Reverse,
}

/// One flow: common parameters, and those of its kind.
#[derive(Clone, Debug)]
pub struct FlowPlan {
    /// Name in results.
    pub id: String,
    /// Name of the scenario table that defines several equal flows (`count`).
    pub group: Option<String>,
    /// Direction of its data.
    pub direction: Direction,
    /// Earliest start.
    pub start: Time,
    /// The seed draws the start uniformly from this span after `start`.
    pub start_spread: TimeDelta,
    /// End of the flow: neither end sends from then on.
    pub stop: Time,
    /// Indices of the hops of its data, in order.
    pub route: Vec<usize>,
    /// Indices of the hops of its return path (reports, acknowledgements), in order.
    pub return_route: Vec<usize>,
    /// Additional one-way delay before the first hop, in each direction.
    pub access_delay: TimeDelta,
    /// Model of the hosts of its ends; `None`: they take no time, or they are real.
    pub host: Option<HostPlan>,
    /// Differentiated Services codepoint of the packets of both ends.
    pub dscp: Dscp,
    pub kind: FlowKind,
}

/// The time that a host takes to send packets, and the delay that it adds to departing and arriving ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostPlan {
    /// The time between two packets of a burst of media.
    pub packet_time: TimeDelta,
    /// Mean delay of a packet.
    pub jitter: TimeDelta,
    /// Mean pause between stalls; `None` means no stalls.
    pub stall_every: Option<TimeDelta>,
    /// Mean length of a stall.
    pub stall: TimeDelta,
}

impl HostPlan {
    /// Time that the host of a media flow takes for a packet unless the scenario gives another: about the medians of three
    /// calls of Chromium 156, 68 to 76 µs (docs/algorithms/googcc.md).
    pub const PACKET_TIME: TimeDelta = TimeDelta::from_micros(75);

    /// Returns whether packets are delayed between the endpoint and the network.
    pub fn delays_packets(&self) -> bool {
        self.jitter != TimeDelta::ZERO || self.stall_every.is_some()
    }
}

/// The kind of a flow, with its parameters.
#[derive(Clone, Debug)]
pub enum FlowKind {
    /// `media`: real-time media under a controller.
    Media(MediaPlan),
    /// `tcp`: one TCP sender and receiver.
    Tcp(TcpPlan),
}

impl FlowKind {
    /// Names of the kinds in scenarios, each with a description.
    pub const NAMES: [(&'static str, &'static str); 2] =
        [("media", "real-time media under a controller"), ("tcp", "TCP: bulk, on-off or short transfers")];

    /// Returns the name of the kind.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Media(_) => "media",
            Self::Tcp(_) => "tcp",
        }
    }
}

/// What media are for. Only the score of a run depends on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MediaUse {
    /// People talk.
    #[default]
    Conversation,
    /// A server renders a game.
    Game,
    /// A person drives a machine by its camera.
    Teleoperation,
    /// A live broadcast is on its way from the camera to the studio.
    Contribution,
}

impl MediaUse {
    /// The names in scenarios.
    pub const NAMES: [(&'static str, Self); 4] = [
        ("conversation", Self::Conversation),
        ("game", Self::Game),
        ("teleoperation", Self::Teleoperation),
        ("contribution", Self::Contribution),
    ];
}

/// The parameters of a media flow.
#[derive(Clone, Debug)]
pub struct MediaPlan {
    pub media_use: MediaUse,
    /// Whether it is cross traffic: it keeps its controller when others are compared, and has no score.
    pub is_cross_traffic: bool,
    pub controller: ControllerPlan,
    /// Membership in a group of coupled flows.
    pub coupling: Option<CouplingPlan>,
    /// First target rate.
    pub start_rate: Rate,
    /// Minimum target rate.
    pub min_rate: Rate,
    /// The receiver's clock.
    pub clock: ClockPlan,
    pub streams: Vec<StreamPlan>,
    /// Size of the largest RTP packet, without IP and UDP headers.
    pub packet_size: DataSize,
    /// Minimum deterministic interval of RTCP reports.
    pub rtcp_interval: TimeDelta,
    /// Interval of the feedback for the controller; `None` means the controller's own.
    pub feedback_interval: Option<TimeDelta>,
    /// Maximum drain time of the pacer's queue.
    pub pacer_limit: TimeDelta,
    /// Whether the receiver requests lost packets and the sender retransmits them.
    pub retransmit: bool,
    /// Forward error correction, and limits of retransmission.
    pub protection: Protection,
    /// What carries its packets.
    pub transport: Transport,
    /// What its ends learn during the run about limits and network, in order of time.
    pub changes: Vec<(Time, FlowChange)>,
}

/// What carries the packets of a media flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    /// Datagrams of UDP.
    #[default]
    Udp,
    /// TCP, each way a connection.
    Tcp,
}

impl Transport {
    /// The names in scenarios.
    pub const NAMES: [(&'static str, Self); 2] = [("udp", Self::Udp), ("tcp", Self::Tcp)];
}

/// The length before each packet of a media flow over TCP (RFC 4571).
pub const FRAMING: DataSize = DataSize::from_bytes(2);

/// A fact about limits, network or streams that the ends of a media flow learn during a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FlowChange {
    /// New limits of the target.
    Bounds(Bounds),
    /// Another network route. The controller starts again with this setup.
    Route(Setup),
    /// Whether the sender has a network.
    Availability(bool),
    /// A REMB of a middlebox reaches the sender.
    Remb(Rate),
    /// The highest rate of the encoded media of a stream; zero: it pauses.
    StreamMax(StreamId, Rate),
    StreamMuted(StreamId, bool),
    StreamEnd(StreamId),
}

impl Plan {
    /// Returns a media flow over TCP, if there is one.
    pub fn flow_over_tcp(&self) -> Option<&FlowPlan> {
        self.flows.iter().find(|flow| flow.media().is_some_and(|media| media.transport == Transport::Tcp))
    }

    /// Returns a flow that is coupled with others, if there is one.
    pub fn coupled_flow(&self) -> Option<&FlowPlan> {
        self.flows.iter().find(|flow| flow.media().is_some_and(|media| media.coupling.is_some()))
    }
}

impl MediaPlan {
    /// Interval of RTCP reports if none is given.
    pub const RTCP_INTERVAL: TimeDelta = TimeDelta::from_secs(1);
    /// Maximum drain time of the pacer's queue if none is given.
    pub const PACER_LIMIT: TimeDelta = TimeDelta::from_secs(2);

    /// Returns the setup of its controller at the start.
    pub fn setup(&self) -> Setup {
        let (start, min, max) = (self.start_rate, self.min_rate, self.max_rate());
        Setup::new(start, min, max).with_packet_size(self.packet_size)
    }

    /// Returns the configuration of the connections that carry its packets; `None` over UDP.
    pub fn over_tcp(&self) -> Option<TcpConfig> {
        let config = TcpConfig { segment: self.packet_size + FRAMING, ..TcpConfig::default() };
        (self.transport == Transport::Tcp).then_some(config)
    }

    /// Returns the maximum rate of its sources on the network at any time, headers included.
    pub fn max_rate(&self) -> Rate {
        self.streams.iter().map(|s| with_headers(s.source.range().1, self.packet_size)).sum()
    }

    /// Returns the mean of the maximum rate of its sources on the network from `from` to `to`, headers included.
    pub fn mean_max_rate(&self, from: Time, to: Time) -> Rate {
        self.streams.iter().map(|s| with_headers(s.mean_max(from, to), self.packet_size)).sum()
    }
}

/// The parameters of a TCP flow.
#[derive(Clone, Debug)]
pub struct TcpPlan {
    /// Congestion control, profile and parameters.
    pub config: TcpConfig,
    /// The data to send over time.
    pub workload: Workload,
}

impl TcpPlan {
    /// Returns whether it sends unlimited data on one connection.
    pub fn is_bulk(&self) -> bool {
        self.workload == Workload::Bulk
    }
}

impl FlowPlan {
    /// Returns the parameters of a media flow; `None` for another kind.
    pub fn media(&self) -> Option<&MediaPlan> {
        match &self.kind {
            FlowKind::Media(media) => Some(media),
            FlowKind::Tcp(_) => None,
        }
    }

    /// Returns the parameters of a media flow for modification; `None` for another kind.
    pub fn media_mut(&mut self) -> Option<&mut MediaPlan> {
        match &mut self.kind {
            FlowKind::Media(media) => Some(media),
            FlowKind::Tcp(_) => None,
        }
    }

    /// Returns the name of the controller or of TCP's congestion control.
    pub fn control(&self) -> &str {
        match &self.kind {
            FlowKind::Media(media) => &media.controller.name,
            FlowKind::Tcp(tcp) => tcp.config.congestion,
        }
    }

    /// Returns the size of its largest IP packet.
    pub fn largest_packet(&self) -> DataSize {
        match &self.kind {
            FlowKind::Media(media) => {
                media.over_tcp().map_or(media.packet_size + IP_UDP_HEADERS, |config| config.full_packet())
            }
            FlowKind::Tcp(tcp) => tcp.config.full_packet(),
        }
    }

    /// Returns the maximum rate on the network, headers included; `None` means unlimited.
    pub fn max_rate(&self) -> Option<Rate> {
        self.media().map(MediaPlan::max_rate)
    }

    /// Returns the propagation delay of the data path in force at `at`, access line included.
    pub fn base_owd(&self, plan: &Plan, at: Time) -> TimeDelta {
        self.propagation(&self.route, plan, at)
    }

    /// Returns the same if no hop of the route ever changes its delay.
    pub fn constant_base_owd(&self, plan: &Plan) -> Option<TimeDelta> {
        let is_constant = |hop: &usize| plan.hops[*hop].delay.points().len() == 1;
        self.route.iter().all(is_constant).then(|| self.base_owd(plan, Time::ZERO))
    }

    /// Returns the minimum round-trip time in force at `at`: propagation delay of both paths, access lines included.
    pub fn base_rtt_at(&self, plan: &Plan, at: Time) -> TimeDelta {
        self.propagation(&self.route, plan, at) + self.propagation(&self.return_route, plan, at)
    }

    fn propagation(&self, route: &[usize], plan: &Plan, at: Time) -> TimeDelta {
        route.iter().fold(self.access_delay, |sum, hop| sum + *plan.hops[*hop].delay.at(at))
    }
}

/// Returns the rate on the network of media with this encoded rate, in RTP packets of `packet_size`.
pub fn with_headers(payload: Rate, packet_size: DataSize) -> Rate {
    let packet = packet_size.as_bytes() as f64;
    payload.scale((packet + IP_UDP_HEADERS.as_bytes() as f64) / (packet - MEDIA_HEADERS.as_bytes() as f64))
}

/// A controller with the parameters that differ from its defaults.
#[derive(Clone, Debug, PartialEq)]
pub struct ControllerPlan {
    pub name: String,
    /// Name and value of each parameter.
    pub config: Vec<(String, f64)>,
    /// The signal of its over-use detector, if any: half, index, and the value that means over-use.
    pub overuse: Option<(HalfName, u8, f64)>,
    /// The limits of the target from each time on, in place of those of the flow; empty for the flow's own. Oracles have them.
    pub limits: Vec<(Time, Bounds)>,
}

impl ControllerPlan {
    /// Returns the plan of a controller with these parameters. The state `overuse` of a signal `usage`, in either half, means over-use.
    pub fn new(entry: &Entry, config: Vec<(String, f64)>) -> Self {
        let (send, receive) = entry.signals();
        let overuse = [(HalfName::Send, send), (HalfName::Receive, receive)].into_iter().find_map(|(half, signals)| {
            let index = signals.iter().position(|s| s.name == "usage")?;
            let SignalShape::State(states) = signals[index].shape else { return None };
            let over = states.iter().position(|state| *state == "overuse")?;
            Some((half, index as u8, over as f64))
        });
        Self { name: entry.name().to_owned(), config, overuse, limits: Vec::new() }
    }
}

/// The membership of a flow in a group of coupled flows (RFC 8699).
#[derive(Clone, Debug, PartialEq)]
pub struct CouplingPlan {
    /// Name of the group.
    pub group: String,
    /// Priority of the flow, above zero.
    pub priority: f64,
    /// Algorithm; the same in the whole group.
    pub algorithm: Coupling,
}

/// The clock of a receiver, relative to the clock of the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClockPlan {
    /// Reading at time zero; `None` draws up to one hour from the seed.
    pub offset: Option<TimeDelta>,
    /// Drift, parts per billion; positive is faster.
    pub drift_ppb: i64,
}

/// One stream of a flow.
#[derive(Clone, Debug)]
pub struct StreamPlan {
    /// Name in results.
    pub id: String,
    pub kind: MediaKind,
    /// Weight for the division of the target among streams.
    pub priority: f64,
    /// Source of its media.
    pub source: SourcePlan,
    /// Highest rate of its encoded media in addition to that of the source; zero while it pauses.
    pub max: Schedule<Rate>,
    /// Whether it is muted: its source then makes its lowest rate.
    pub muted: Schedule<bool>,
    /// The time at which it is removed; [`Time::MAX`] for never.
    pub stop: Time,
    /// Whether it pauses while the target does not cover its lowest rate after the highest rates of the streams before it.
    pub suspends: bool,
}

impl StreamPlan {
    /// Returns whether it pauses, ends or has another highest rate during a run.
    pub fn changes_during_run(&self) -> bool {
        self.limits_change() || self.muted.points() != [(Time::ZERO, false)]
    }

    /// Returns whether it changes during the run in another way than by being muted.
    pub fn limits_change(&self) -> bool {
        self.suspends || self.stop != Time::MAX || self.max.points() != [(Time::ZERO, Rate::MAX)]
    }

    /// Returns the highest rate of its encoded media in force; zero while it pauses and after its end.
    pub fn max_at(&self, now: Time) -> Rate {
        let (min, max) = self.source.range();
        match *self.max.at(now) {
            limit if limit.is_zero() || now >= self.stop => Rate::ZERO,
            _ if *self.muted.at(now) => min,
            limit => max.min(limit).max(min),
        }
    }

    /// Returns whether that rate is the same at all times.
    fn is_steady(&self) -> bool {
        self.stop == Time::MAX && self.max.points().len() == 1 && self.muted.points().len() == 1
    }

    /// Returns the times at which that rate may change, in order, and the end.
    pub fn changes(&self) -> impl Iterator<Item = Time> {
        let limits = self.max.points().iter().map(|(at, _)| *at);
        let times = limits.chain(self.muted.points().iter().map(|(at, _)| *at)).filter(|at| *at < self.stop);
        times.chain([self.stop]).collect::<BTreeSet<_>>().into_iter()
    }

    /// Returns the times from `from` to `to` in which it is active: it neither pauses nor is muted, and has not ended.
    pub fn active_times(&self, from: Time, to: Time) -> Vec<(Time, Time)> {
        let is_active = |at: Time| !self.max_at(at).is_zero() && !*self.muted.at(at);
        let mut active: Vec<(Time, Time)> = Vec::new();
        let changes: Vec<Time> = self.changes().filter(|at| from < *at && *at < to).chain([to]).collect();
        let mut begin = from;
        for end in changes {
            match active.last_mut() {
                _ if begin >= end || !is_active(begin) => {}
                Some(last) if last.1 == begin => last.1 = end,
                _ => active.push((begin, end)),
            }
            begin = end;
        }
        active
    }

    /// Returns the mean of that rate from `from` to `to`.
    pub fn mean_max(&self, from: Time, to: Time) -> Rate {
        if self.is_steady() {
            return self.max_at(from);
        }
        let changes = self.changes().filter(|at| from < *at && *at < to).chain([to]);
        let (mut bits, mut begin) = (0.0, from);
        for end in changes {
            bits += self.max_at(begin).as_bps_f64() * (end - begin).as_secs_f64();
            begin = end;
        }
        if from < to { Rate::from_bps_f64(bits / (to - from).as_secs_f64()) } else { self.max_at(from) }
    }

    /// Returns the time at which its first pause after `from` and before `to` begins, if there is one; a pause at `from`
    /// counts as well.
    pub fn pause_between(&self, from: Time, to: Time) -> Option<Time> {
        if self.is_steady() {
            return self.max_at(from).is_zero().then_some(from);
        }
        let times = core::iter::once(from).chain(self.changes().filter(|at| from < *at && *at < to));
        times.into_iter().find(|at| self.max_at(*at).is_zero())
    }
}

/// A source with its parameters.
#[derive(Clone, Debug)]
pub struct SourcePlan {
    pub entry: &'static SourceEntry,
    /// The values of its parameters, without texts.
    pub values: Values,
    /// Its configuration.
    pub config: Arc<dyn SourceConfig>,
    /// The lines of a picture, with 16:9 as many columns; `None` if the source is no video.
    pub lines: Option<u32>,
}

impl SourcePlan {
    /// Returns the minimum and maximum rate, without headers.
    pub fn range(&self) -> (Rate, Rate) {
        self.config.range()
    }

    /// Returns the RTP clock rate, Hz.
    pub fn clock_rate(&self) -> u32 {
        self.entry.clock_rate()
    }
}
