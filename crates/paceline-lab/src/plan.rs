//! The plan: a scenario with nothing left open. Made by [`resolve`](crate::scenario), read by every world.

use crate::label::Label;
use crate::rows::HalfName;
use crate::stats::Statistic;
use paceline::Protection;
use paceline_flow::source::{self, AudioConfig, EncoderConfig, FrameTraceConfig, IdealConfig, Ladder};
use paceline_flow::tcp::{TcpConfig, Workload};
use paceline_flow::{IP_UDP_HEADERS, MAX_RTP_PACKET, MEDIA_HEADERS, MediaKind};
use paceline_link::queue::DropTailLimit;
use paceline_link::{Capacity, Jitter, LossModel, Schedule};
use paceline_units::{DataSize, Rate, Time, TimeDelta};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A scenario, resolved.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Scenario id, such as `mmsys16/table1`.
    pub id: String,
    /// A line on it.
    pub title: String,
    /// Where it comes from.
    pub source: String,
    /// How long a run lasts.
    pub duration: TimeDelta,
    /// Runs that a reproduction wants.
    pub repeats: u32,
    /// Every hop, forward path first.
    pub hops: Vec<HopPlan>,
    /// How many of the hops are the forward path.
    pub forward_hops: usize,
    /// Index of the hop that `links` results call `link`: the slowest that forward flows cross, or any
    /// flow's, where none goes forward.
    pub bottleneck: usize,
    /// The flows.
    pub flows: Vec<FlowPlan>,
    /// How metrics are taken.
    pub measure: Measure,
    /// Which runs count; none: all.
    pub keep: Option<Keep>,
    /// Which case of the experiment this is; empty: none, or the scenario as written.
    pub case: Label,
    /// Every case of the experiment.
    pub cases: Vec<Label>,
    /// What was assumed because no source gives it.
    pub constants: Vec<Constant>,
    /// Published values of this case, to stand beside measured ones.
    pub expects: Vec<Expect>,
    /// Bounds that runs of this case must keep.
    pub asserts: Vec<Assert>,
    /// What values and bounds of other cases are divided by, by key.
    pub references: BTreeMap<usize, Quantity>,
    /// What a reader should know: traces taken, what headers count, what limits follow.
    pub notes: Vec<String>,
}

impl Plan {
    /// Everything that runs of this plan are asked for, each as often as it is asked.
    pub fn quantities(&self) -> impl Iterator<Item = &Quantity> {
        let expects = self.expects.iter().map(|e| (&e.of, e.over.as_ref()));
        let asserts = self.asserts.iter().map(|a| (&a.of, a.over.as_ref()));
        let own = expects.chain(asserts).flat_map(|(of, over)| {
            let here = match over {
                Some(Reference::Here(quantity)) => Some(quantity),
                _ => None,
            };
            core::iter::once(of).chain(here)
        });
        own.chain(self.references.values()).chain(self.keep.iter().map(|keep| &keep.of))
    }

    /// Whether runs of this plan are asked for anything, by its own values and bounds or by those of another case.
    pub fn is_asked(&self) -> bool {
        !(self.expects.is_empty() && self.asserts.is_empty() && self.references.is_empty())
    }

    /// Whether a run of this plan counts; `value` says what a quantity came to in it.
    pub fn counts(&self, value: impl FnOnce(&Quantity) -> Option<f64>) -> bool {
        self.keep.as_ref().is_none_or(|keep| keep.keeps(value(&keep.of)))
    }
}

/// One hop.
#[derive(Clone, Debug)]
pub struct HopPlan {
    /// Its name in results.
    pub id: String,
    /// How fast; none: unlimited.
    pub capacity: Option<Capacity>,
    /// A token bucket in place of a line.
    pub burst: Option<DataSize>,
    /// Its queue.
    pub queue: QueuePlan,
    /// Propagation delay.
    pub delay: Schedule<TimeDelta>,
    /// Jitter.
    pub jitter: Option<Jitter>,
    /// Loss on the wire.
    pub loss: Schedule<LossModel>,
}

/// A queue discipline with its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueuePlan {
    /// `drop-tail`.
    DropTail {
        /// What may wait.
        limit: DropTailLimit,
        /// From where on ECN-capable packets are marked.
        mark: Option<DropTailLimit>,
    },
}

/// Which way a flow's data goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Along the forward path.
    Forward,
    /// Along the reverse path.
    Reverse,
}

/// One flow: what its kind does not change, and its kind.
#[derive(Clone, Debug)]
pub struct FlowPlan {
    /// Its name in results.
    pub id: String,
    /// The name of the table that stands for it and others alike (`count`).
    pub group: Option<String>,
    /// Which way its data goes.
    pub direction: Direction,
    /// When it begins, at the earliest.
    pub start: Time,
    /// The seed draws the begin uniformly from this span after `start`.
    pub start_spread: TimeDelta,
    /// When it ends: both ends fall silent.
    pub stop: Time,
    /// Hops of its data, in order.
    pub route: Vec<usize>,
    /// Hops of what comes back (reports, acknowledgements), in order.
    pub return_route: Vec<usize>,
    /// Extra one-way delay of its own, each way, before the first hop.
    pub access_delay: TimeDelta,
    /// The machines that its ends run on; none: they add nothing.
    pub host: Option<HostPlan>,
    /// What it is.
    pub kind: FlowKind,
}

/// What a machine adds to packets that leave it and to those that arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostPlan {
    /// Mean of what each packet waits.
    pub jitter: TimeDelta,
    /// Mean pause between stalls; none: it never stalls.
    pub stall_every: Option<TimeDelta>,
    /// Mean length of a stall.
    pub stall: TimeDelta,
}

/// What a flow is.
#[derive(Clone, Debug)]
pub enum FlowKind {
    /// `media`: real-time media under a controller.
    Media(MediaPlan),
    /// `tcp`: one TCP sender and receiver.
    Tcp(TcpPlan),
}

impl FlowKind {
    /// The names by which scenarios ask for kinds, with a line on each.
    pub const NAMES: [(&'static str, &'static str); 2] =
        [("media", "real-time media under a controller"), ("tcp", "TCP: bulk, on-off or short transfers")];

    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Media(_) => "media",
            Self::Tcp(_) => "tcp",
        }
    }
}

/// What only a media flow has.
#[derive(Clone, Debug)]
pub struct MediaPlan {
    /// Its controller.
    pub controller: ControllerPlan,
    /// First target.
    pub start_rate: Rate,
    /// Lowest target.
    pub min_rate: Rate,
    /// The receiver's clock.
    pub clock: ClockPlan,
    /// Its streams.
    pub streams: Vec<StreamPlan>,
    /// Smallest deterministic interval of RTCP reports.
    pub rtcp_interval: TimeDelta,
    /// Longest time that the pacer's queue may take to drain.
    pub pacer_limit: TimeDelta,
    /// Ask for lost packets and send them again.
    pub retransmit: bool,
    /// Forward error correction, and what bounds retransmissions.
    pub protection: Protection,
}

impl MediaPlan {
    /// The most that its sources use of the network, headers included.
    pub fn most(&self) -> Rate {
        self.streams.iter().map(|s| with_headers(s.source.range().1)).sum()
    }
}

/// What only a TCP flow has.
#[derive(Clone, Debug)]
pub struct TcpPlan {
    /// Congestion control, profile and numbers.
    pub config: TcpConfig,
    /// What there is to send, and when.
    pub workload: Workload,
}

impl FlowPlan {
    /// What a media flow has; `None` of another kind.
    pub fn media(&self) -> Option<&MediaPlan> {
        match &self.kind {
            FlowKind::Media(media) => Some(media),
            FlowKind::Tcp(_) => None,
        }
    }

    /// The same, to change it.
    pub fn media_mut(&mut self) -> Option<&mut MediaPlan> {
        match &mut self.kind {
            FlowKind::Media(media) => Some(media),
            FlowKind::Tcp(_) => None,
        }
    }

    /// What results call its control: the controller, or TCP's congestion control.
    pub fn control(&self) -> &str {
        match &self.kind {
            FlowKind::Media(media) => &media.controller.name,
            FlowKind::Tcp(tcp) => tcp.config.congestion,
        }
    }

    /// The most that it uses of the network, headers included; none: whatever there is.
    pub fn most(&self) -> Option<Rate> {
        self.media().map(MediaPlan::most)
    }

    /// Propagation delay of its route for a packet sent at `at`, access line included.
    pub fn base_owd(&self, plan: &Plan, at: Time) -> TimeDelta {
        self.propagation(&self.route, plan, at)
    }

    /// Propagation delay of both its routes, in force at `at`, access line included each way: the smallest round-trip
    /// time.
    pub fn base_rtt_at(&self, plan: &Plan, at: Time) -> TimeDelta {
        self.propagation(&self.route, plan, at) + self.propagation(&self.return_route, plan, at)
    }

    fn propagation(&self, route: &[usize], plan: &Plan, at: Time) -> TimeDelta {
        route.iter().fold(self.access_delay, |sum, hop| sum + *plan.hops[*hop].delay.at(at))
    }
}

/// A rate of encoded media as it is on the network when cut into full packets.
pub(crate) fn with_headers(payload: Rate) -> Rate {
    let packet = MAX_RTP_PACKET as f64;
    payload.scale((packet + IP_UDP_HEADERS.as_bytes() as f64) / (packet - MEDIA_HEADERS.as_bytes() as f64))
}

/// A controller with the numbers that differ from its defaults.
#[derive(Clone, Debug, PartialEq)]
pub struct ControllerPlan {
    /// Its name.
    pub name: String,
    /// Field and value.
    pub config: Vec<(String, f64)>,
    /// The signal that tells how its over-use detector finds the path, if it has one: half, index, value for over-use.
    pub overuse: Option<(HalfName, u8, f64)>,
}

/// A receiver's clock against the world's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClockPlan {
    /// Its reading at time zero; none: drawn from the seed, up to an hour.
    pub offset: Option<TimeDelta>,
    /// How much faster it runs, parts per billion.
    pub drift_ppb: i64,
}

/// One stream of a flow.
#[derive(Clone, Debug)]
pub struct StreamPlan {
    /// Its name in results.
    pub id: String,
    /// What it carries.
    pub kind: MediaKind,
    /// Its weight when streams share the target.
    pub priority: f64,
    /// What it sends.
    pub source: SourcePlan,
}

/// A source with its numbers.
#[derive(Clone, Debug)]
pub enum SourcePlan {
    /// `ideal`.
    Ideal(IdealConfig),
    /// `encoder`.
    Encoder(EncoderConfig),
    /// `frames`.
    Frames(FrameTraceConfig, Arc<Ladder>),
    /// `audio`.
    Audio(AudioConfig),
}

impl SourcePlan {
    /// The names by which scenarios ask for sources, with a line on each.
    pub const NAMES: [(&'static str, &'static str); 4] = [
        ("encoder", "statistical video encoder of RFC 8593, section 5"),
        ("ideal", "frames of exactly the target rate"),
        ("frames", "recorded frame sizes on a ladder of bitrates, RFC 8593, section 6"),
        ("audio", "constant-bitrate audio"),
    ];

    /// Lowest and highest rate, headers not included.
    pub fn range(&self) -> (Rate, Rate) {
        match self {
            Self::Ideal(c) => (c.min, c.max),
            Self::Encoder(c) => (c.min, c.max),
            Self::Frames(c, _) => (c.min, c.max),
            Self::Audio(c) => (c.rate, c.rate),
        }
    }

    /// RTP timestamp units per second of what it makes.
    pub fn clock_rate(&self) -> u32 {
        match self {
            Self::Ideal(_) | Self::Encoder(_) | Self::Frames(..) => source::VIDEO_CLOCK,
            Self::Audio(_) => source::AUDIO_CLOCK,
        }
    }
}

/// Which queuing delay `queue_*` metrics mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueMeasure {
    /// Waiting time of each packet at the bottleneck.
    #[default]
    Packet,
    /// Round-trip time over its minimum, sampled when RTCP gives a sample (mmsys16, fhmn13).
    Rtcp,
    /// One-way delay over propagation, jitter included (med16).
    OneWay,
}

/// What losses are divided by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LossMeasure {
    /// Bytes sent (mmsys16, med16).
    #[default]
    Sent,
    /// Bytes received (fhmn13).
    Received,
}

/// How metrics are taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Measure {
    /// Which queuing delay.
    pub queue: QueueMeasure,
    /// Losses over what.
    pub loss: LossMeasure,
}

/// A span of a run, from its first time to before its last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Window {
    /// From here.
    pub from: Time,
    /// To before here.
    pub to: Time,
}

impl Window {
    /// Both ends, s.
    pub fn seconds(&self) -> (f64, f64) {
        (self.from.as_secs_f64(), self.to.as_secs_f64())
    }
}

/// A number that a run comes to.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantity {
    /// Metric id.
    pub metric: String,
    /// The flow it is taken of; none: the run as a whole.
    pub flow: Option<usize>,
    /// The span it is taken over.
    pub window: Window,
}

/// Which runs count, where a paper left out the others.
#[derive(Clone, Debug, PartialEq)]
pub struct Keep {
    /// What is asked of a run.
    pub of: Quantity,
    /// What it comes to at least.
    pub at_least: f64,
    /// What to know of a case that keeps fewer than half of its runs.
    pub note: Option<String>,
}

impl Keep {
    /// Whether a run with this value counts; without a value it does not.
    pub fn keeps(&self, value: Option<f64>) -> bool {
        value.is_some_and(|value| value >= self.at_least)
    }

    /// Whether fewer than half of the runs count: what a case shows that way is not what it is about.
    pub fn too_few(counting: usize, made: usize) -> bool {
        2 * counting < made
    }

    /// How many runs count, and which.
    pub fn told(&self, counting: usize, made: usize) -> String {
        format!("kept {counting} of {made}, those with {} of {} or more", self.of.metric, self.at_least)
    }
}

/// What a quantity is divided by, run by run of the same seed.
#[derive(Clone, Debug, PartialEq)]
pub enum Reference {
    /// A quantity of the same run.
    Here(Quantity),
    /// One of the run of another case: that case's plan has it among its [`Plan::references`].
    Elsewhere {
        /// Which case.
        case: Label,
        /// Key of the quantity in that plan.
        key: usize,
    },
}

/// A published value.
#[derive(Clone, Debug, PartialEq)]
pub struct Expect {
    /// What it is compared with ...
    pub of: Quantity,
    /// ... or, with this, the ratio of that to this.
    pub over: Option<Reference>,
    /// What was published, in the metric's unit.
    pub published: f64,
    /// How far the measured mean may lie from it; none: as for every metric of its kind.
    pub tolerance: Option<f64>,
    /// The bounds (by id) whose holding the value supports.
    pub claim: Option<String>,
    /// What to know where it is not reproduced.
    pub remark: Remark,
    /// Its place among the values and bounds of the scenario file.
    pub place: usize,
}

/// A bound that runs must keep.
#[derive(Clone, Debug, PartialEq)]
pub struct Assert {
    /// Its name.
    pub id: String,
    /// What is bounded ...
    pub of: Quantity,
    /// ... or, with this, the ratio of that to this.
    pub over: Option<Reference>,
    /// Which number of several runs is bounded.
    pub runs: Statistic,
    /// The lowest and the highest that it may be.
    pub bounds: (f64, f64),
    /// What to know where it does not hold.
    pub remark: Remark,
    /// Its place among the values and bounds of the scenario file.
    pub place: usize,
}

/// What to know of a value that is not reproduced.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Remark {
    /// The cause, as far as it is known.
    pub note: Option<String>,
    /// The `--set` changes under which it is reproduced.
    pub moved_by: Vec<String>,
}

/// A number that a paper does not give.
#[derive(Clone, Debug, PartialEq)]
pub struct Constant {
    /// Its name.
    pub id: String,
    /// The key of scenarios that it stands for; `media.` and `tcp.` are all flows of that kind.
    pub key: String,
    /// Its value, as a scenario would write it.
    pub value: String,
    /// The lowest and the highest that are plausible, likewise.
    pub range: (String, String),
    /// Why this value.
    pub why: String,
    /// Whether it changed anything in this plan.
    pub applied: bool,
}
