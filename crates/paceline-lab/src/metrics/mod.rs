//! From rows to numbers: a [`Collector`] listens to a run and answers a [`WindowResult`] for each span asked for.
//!
//! The papers measure differently (`docs/metrics.md`); which reading a metric takes is the scenario's choice
//! ([`Measure`]), made once.

mod actuation;
mod freezes;
mod histogram;
mod registry;

pub use histogram::Distribution;
pub use registry::{Kind, METRICS, MetricSpec, find};

use crate::plan::{FlowPlan, Measure, Plan, Quantity, Window};
use crate::rows::{PacketClass, PacketRow, Row, RowSink};
use crate::stats::{Summary, jain};
use actuation::Actuation;
use freezes::Freezes;
use histogram::Times;
use paceline::FecScheme;
use paceline_units::{DataSize, Ecn, Rate, Time, TimeDelta};
use serde::Serialize;

/// What a span of a run came to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WindowResult {
    /// The span, s.
    pub window_s: (f64, f64),
    /// Every hop.
    pub links: Vec<LinkResult>,
    /// The forward bottleneck again.
    pub link: LinkResult,
    /// Every flow.
    pub flows: Vec<FlowResult>,
    /// Jain's index of the rates, in 1 s bins, of the flows whose data crosses `link`, averaged over the bins in which
    /// all of them that live in the span live.
    pub jain: Option<f64>,
    /// The same of the media flows among them.
    pub media_jain: Option<f64>,
    /// Queuing delays of all media flows together, each as the papers sample it; of all flows, where none is media.
    #[serde(skip)]
    pub pooled: Pooled,
}

/// Distributions over all media flows; over all flows, where none is media.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pooled {
    /// Round-trip time over its minimum, at each RTCP sample.
    pub rtcp: Option<Distribution>,
    /// One-way delay over propagation, each packet.
    pub one_way: Option<Distribution>,
    /// Round-trip time, at each RTCP sample.
    pub rtt: Option<Distribution>,
    /// One-way delay, each packet.
    pub owd: Option<Distribution>,
}

/// What a hop came to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkResult {
    /// Its name.
    pub id: String,
    /// Bits served, those then lost on the wire included, over bits that could have been; none for an unlimited hop.
    pub utilization: Option<f64>,
    /// Bytes dropped over bytes that came.
    pub loss_ratio: f64,
    /// Packets dropped.
    pub dropped_packets: u64,
    /// Packets that it marked (congestion experienced), and that crossed it.
    pub marked_packets: u64,
    /// Waiting time of each packet that crossed, without its own serialisation.
    pub queue_ms: Option<Distribution>,
    /// Mean capacity over the span, bit/s; none for an unlimited hop.
    pub capacity_bps: Option<f64>,
}

/// What a flow came to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowResult {
    /// Its name.
    pub id: String,
    /// `media` or `tcp`.
    pub kind: &'static str,
    /// Its controller, or TCP's congestion control.
    pub controller: Option<String>,
    /// When it began, s.
    pub start_s: f64,
    /// When it ended, s.
    pub stop_s: f64,
    /// Bytes that arrived, all headers included, over the span that it lived; bit/s.
    pub throughput_bps: f64,
    /// Bytes of rendered frames, or that TCP's application read, over the same; bit/s.
    pub goodput_bps: f64,
    /// Mean target, bit/s.
    pub target_bps: Option<f64>,
    /// Bytes that arrived, all headers included.
    pub received_bytes: u64,
    /// Packets that arrived ECN-capable, marked ones included.
    pub ecn_packets: u64,
    /// Packets that arrived marked (congestion experienced).
    pub marked_packets: u64,
    /// Bytes of rendered frames, or that TCP's application read.
    pub useful_bytes: u64,
    /// Bytes of media packets that arrived on their first way, headers included, or that TCP's application read.
    pub good_bytes: u64,
    /// Bytes of forward error correction that arrived; none: the flow has none.
    pub fec_bytes: Option<u64>,
    /// Bytes of retransmissions that arrived; none but for media.
    pub rtx_bytes: Option<u64>,
    /// Bytes of forward error correction over bytes sent; none: the flow has none.
    pub fec_share: Option<f64>,
    /// Bytes of retransmissions over bytes sent; none but for media.
    pub rtx_share: Option<f64>,
    /// Largest of the 5 s means of forward error correction that was sent over the target; none as above, or no whole 5
    /// s with a target.
    pub fec_over_target_max: Option<f64>,
    /// Target times the time it was in force, bit.
    pub target_bits: f64,
    /// Bytes that the slowest hop of its route could have passed while it lived; none: no hop has a capacity.
    pub capacity_bytes: Option<u64>,
    /// Whether its data crosses `link`.
    pub crosses_link: bool,
    /// Throughput over what it could have had: its sources' maximum or the least capacity on its route, second by
    /// second.
    pub attained: Option<f64>,
    /// Throughput over that of all flows.
    pub share: Option<f64>,
    /// Standard deviation of what arrives in whole seconds, over its mean; none: no whole second, or nothing arrived.
    pub rate_cv: Option<f64>,
    /// Seconds from the span's start, or the flow's, to the first second in which it receives 90 % of what it could
    /// have, with the slowest hop's capacity shared equally among the flows that cross it then; none: never.
    pub converge_s: Option<f64>,
    /// Least and largest of the 5 s means of what was sent over its target, from the span's start on; none: no whole
    /// 5 s with a target.
    pub sent_over_target: Option<(f64, f64)>,
    /// Bytes lost over bytes sent, or over bytes received, as the scenario measures.
    pub loss_ratio: f64,
    /// Bytes dropped in the network.
    pub lost_bytes: u64,
    /// Bytes sent towards the receiver.
    pub sent_bytes: u64,
    /// One-way delay of each packet.
    pub owd_ms: Option<Distribution>,
    /// Round-trip time, as RTCP samples it.
    pub rtt_ms: Option<Distribution>,
    /// Round-trip time over its minimum, as RTCP samples it.
    pub rtt_sampled_queue_ms: Option<Distribution>,
    /// REMBs that its receiver sent.
    pub rembs: u64,
    /// How often its controller found the path over-used anew; none: it has no detector, or nobody asked.
    pub overuses: Option<u64>,
    /// Mean of the fractions lost that reports told its sender; none: no report told one.
    pub reported_loss: Option<f64>,
    /// Its streams.
    pub streams: Vec<StreamResult>,
}

/// What a stream came to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StreamResult {
    /// Its name.
    pub id: String,
    /// `video` or `audio`.
    pub kind: &'static str,
    /// Bytes of rendered frames; bit/s.
    pub throughput_bps: f64,
    /// Mean target of its flow, bit/s.
    pub target_bps_mean: Option<f64>,
    /// From capture to rendering.
    pub frame_delay_ms: Option<Distribution>,
    /// Gaps between rendered frames over max(3 x mean, mean + 150 ms), the one still open at the end included; one if
    /// nothing was rendered at all.
    pub freezes: u64,
    /// Their total, s.
    pub freeze_s: f64,
    /// Frames that were rendered.
    pub frames: u64,
    /// Frames between rendered ones that were not: given up by the receiver, or refused by the pacer, which leaves a
    /// hole in the picture numbers.
    pub frames_dropped: u64,
}

/// Listens to a run.
pub struct Collector<'a> {
    plan: &'a Plan,
    /// The whole run first; each span is measured once, however often it is asked for.
    spans: Vec<Span>,
    /// Which span each window asked for is.
    windows: Vec<usize>,
    /// Bytes received by each flow in each second of the run.
    seconds: Vec<Vec<u64>>,
    /// Whether pooled distributions are over a flow, among others.
    pooled: Vec<bool>,
    /// What each media flow sent, against its target.
    actuation: Vec<Option<Actuation>>,
    /// Whether some value asked for is made of over-use signals, and which flows are in over-use now.
    hears_overuse: bool,
    over: Vec<bool>,
    /// Called as each second of the run is over.
    ticked: &'a dyn Fn(),
    last_tick: usize,
}

struct Span {
    window: Window,
    hops: Vec<Hop>,
    flows: Vec<Flow>,
    /// One-way delay over propagation of the flows that pooled distributions are over.
    one_way: Times,
}

struct Hop {
    crossed: u64,
    /// Bytes that were served, and then lost on the wire.
    lost_on_wire: u64,
    dropped: u64,
    dropped_packets: u64,
    marked_packets: u64,
    waited: Times,
}

struct Flow {
    sent: u64,
    received: u64,
    ecn_packets: u64,
    marked_packets: u64,
    /// Bytes of media, of forward error correction and of retransmissions that arrived.
    media: u64,
    fec: Repair,
    rtx: Repair,
    lost: u64,
    owd: Times,
    rtt: Times,
    rtt_queue: Times,
    /// Bytes that TCP's application read.
    read: u64,
    rembs: u64,
    overuses: u64,
    /// Sum of the fractions lost that reports told, and how many did.
    reported_loss: (f64, u64),
    /// Target in force, since when, and its integral so far in bit.
    target: Option<(Rate, Time)>,
    target_bits: f64,
    target_time: TimeDelta,
    streams: Vec<Stream>,
}

/// How much is gathered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Detail {
    All,
    /// All but the distributions that each packet and frame counts in.
    NoPacketDelays,
}

/// Bytes of one kind of repair.
#[derive(Clone, Copy, Default)]
struct Repair {
    sent: u64,
    received: u64,
}

struct Stream {
    bytes: u64,
    frames: u64,
    dropped: u64,
    delay: Times,
    freezes: Freezes,
}

impl<'a> Collector<'a> {
    /// Listens to a run of `plan`, for the run as a whole and for each of `windows`. `ticked` is called as each second
    /// of the run is over.
    pub fn new(plan: &'a Plan, windows: &[Window], ticked: &'a dyn Fn()) -> Self {
        let whole = Window { from: Time::ZERO, to: Time::ZERO + plan.duration };
        Self::over(whole, Detail::All, plan, windows, ticked)
    }

    /// The same for `windows` alone, and of those only what the plan asks for: the run as a whole is a span of nothing, and
    /// where no delay is asked for that of each packet is not gathered.
    pub fn of_asked(plan: &'a Plan, windows: &[Window], ticked: &'a dyn Fn()) -> Self {
        let nothing = Window { from: Time::ZERO, to: Time::ZERO };
        let is_delay = |q: &Quantity| find(&q.metric).is_some_and(|metric| metric.kind == Kind::Delay);
        let detail = if plan.quantities().any(is_delay) { Detail::All } else { Detail::NoPacketDelays };
        Self::over(nothing, detail, plan, windows, ticked)
    }

    fn over(whole: Window, detail: Detail, plan: &'a Plan, windows: &[Window], ticked: &'a dyn Fn()) -> Self {
        let mut spans = vec![whole];
        let windows = windows.iter().map(|window| {
            spans.iter().position(|span| span == window).unwrap_or_else(|| {
                spans.push(*window);
                spans.len() - 1
            })
        });
        let windows = windows.collect();
        let spans = spans.into_iter().map(|window| Span::new(plan, window, detail)).collect();
        let length = plan.duration.as_secs_f64() as usize + 1;
        let seconds = vec![vec![0; length]; plan.flows.len()];
        let actuation = plan.flows.iter().map(|f| f.media().map(|_| Actuation::new(length))).collect();
        let media = plan.flows.iter().any(|f| f.media().is_some());
        let delays = detail == Detail::All;
        let pooled = plan.flows.iter().map(|f| delays && (f.media().is_some() || !media)).collect();
        let hears_overuse = plan.quantities().any(|q| q.metric == "overuses");
        let over = vec![false; plan.flows.len()];
        Self { plan, spans, windows, seconds, pooled, actuation, hears_overuse, over, ticked, last_tick: 0 }
    }

    /// The results: first of the whole run, then of each window in order; and the bytes that each flow received in
    /// each second.
    pub fn finish(self) -> (Vec<WindowResult>, Vec<Vec<u64>>) {
        let end = Time::ZERO + self.plan.duration;
        self.finish_at(end)
    }

    /// The same of a run that ended at `end`, before its plan's duration was over: the whole run ends there.
    pub fn finish_at(mut self, end: Time) -> (Vec<WindowResult>, Vec<Vec<u64>>) {
        let whole = &mut self.spans[0].window;
        whole.to = whole.to.min(end);
        for (actuation, flow) in self.actuation.iter_mut().zip(&self.plan.flows) {
            actuation.iter_mut().for_each(|a| a.settle(flow.stop.min(end)));
        }
        for span in &mut self.spans {
            let window = span.window;
            for (flow, plan) in span.flows.iter_mut().zip(&self.plan.flows) {
                flow.settle_target(plan.stop.min(end), &window);
                let (from, to) = lived(plan.start, plan.stop, &window);
                flow.streams.iter_mut().for_each(|s| s.freezes.finish(from, to));
            }
        }
        let spans: Vec<WindowResult> = self.spans.iter().map(|span| self.result(span)).collect();
        let results = core::iter::once(&0).chain(&self.windows).map(|span| spans[*span].clone()).collect();
        (results, self.seconds)
    }

    fn result(&self, span: &Span) -> WindowResult {
        let plan = self.plan;
        let window = span.window;
        let links: Vec<LinkResult> = span.hops.iter().zip(&plan.hops).map(|(h, p)| h.result(p, &window)).collect();
        let received: u64 = span.flows.iter().map(|f| f.received).sum();
        let flows = span
            .flows
            .iter()
            .enumerate()
            .map(|(index, flow)| self.flow_result(flow, index, &window, received))
            .collect();
        let pool = |of: fn(&Flow) -> &Times| {
            let mut all = Times::new();
            span.flows.iter().zip(&self.pooled).filter(|(_, pooled)| **pooled).for_each(|(f, _)| all.merge(of(f)));
            all.distribution()
        };
        WindowResult {
            window_s: window.seconds(),
            link: links[plan.bottleneck].clone(),
            links,
            flows,
            jain: self.jain(&window, |_| true),
            media_jain: self.jain(&window, |f| f.media().is_some()),
            pooled: Pooled {
                rtcp: pool(|f| &f.rtt_queue),
                one_way: span.one_way.distribution(),
                rtt: pool(|f| &f.rtt),
                owd: pool(|f| &f.owd),
            },
        }
    }

    fn flow_result(&self, flow: &Flow, index: usize, window: &Window, all_received: u64) -> FlowResult {
        let plan = &self.plan.flows[index];
        let (from, to) = lived(plan.start, plan.stop, window);
        let seconds = (to - from).as_secs_f64().max(0.0);
        let per_second = |bytes: u64| if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 };
        let throughput_bps = per_second(flow.received);
        let denominator = match self.plan.measure.loss {
            crate::plan::LossMeasure::Sent => flow.sent,
            crate::plan::LossMeasure::Received => flow.received,
        };
        let target_bps = (flow.target_time.is_positive()).then(|| flow.target_bits / flow.target_time.as_secs_f64());
        let stream_plans = plan.media().map_or(&[][..], |m| &m.streams);
        let streams = flow.streams.iter().zip(stream_plans).map(|(s, p)| StreamResult {
            id: p.id.clone(),
            kind: match p.kind {
                paceline_flow::MediaKind::Video => "video",
                paceline_flow::MediaKind::Audio => "audio",
            },
            throughput_bps: per_second(s.bytes),
            target_bps_mean: target_bps,
            frame_delay_ms: s.delay.distribution(),
            freezes: s.freezes.count,
            freeze_s: s.freezes.total.as_secs_f64(),
            frames: s.frames,
            frames_dropped: s.dropped,
        });
        let useful_bytes = flow.read + flow.streams.iter().map(|s| s.bytes).sum::<u64>();
        let attainable = self.attainable(index, from, to);
        let media = plan.media();
        let resends = media.map(|_| flow.rtx);
        let corrects = media.filter(|m| m.protection.fec != FecScheme::None).map(|_| flow.fec);
        let of_sent = |repair: Repair| (flow.sent > 0).then(|| repair.sent as f64 / flow.sent as f64);
        let actuation = self.actuation[index].as_ref();
        FlowResult {
            id: plan.id.clone(),
            kind: plan.kind.name(),
            controller: Some(plan.control().to_owned()),
            start_s: plan.start.as_secs_f64(),
            stop_s: plan.stop.as_secs_f64(),
            throughput_bps,
            goodput_bps: per_second(useful_bytes),
            target_bps,
            received_bytes: flow.received,
            ecn_packets: flow.ecn_packets,
            marked_packets: flow.marked_packets,
            useful_bytes,
            good_bytes: flow.read + flow.media,
            fec_bytes: corrects.map(|fec| fec.received),
            rtx_bytes: resends.map(|rtx| rtx.received),
            fec_share: corrects.and_then(of_sent),
            rtx_share: resends.and_then(of_sent),
            fec_over_target_max: corrects.and_then(|_| actuation?.fec_range(from, to)).map(|(_, most)| most),
            target_bits: flow.target_bits,
            capacity_bytes: self.slowest(index, from, to).map(|(_, volume)| volume.as_bytes()),
            crosses_link: plan.route.contains(&self.plan.bottleneck),
            attained: attainable.filter(|a| *a > 0.0).map(|a| flow.received as f64 * 8.0 / a),
            share: (all_received > 0).then(|| flow.received as f64 / all_received as f64),
            rate_cv: self.variation(index, from, to),
            converge_s: self.converged(index, from, to),
            sent_over_target: actuation.and_then(|a| a.sent_range(from, to)),
            loss_ratio: if denominator > 0 { flow.lost as f64 / denominator as f64 } else { 0.0 },
            lost_bytes: flow.lost,
            sent_bytes: flow.sent,
            owd_ms: flow.owd.distribution(),
            rtt_ms: flow.rtt.distribution(),
            rtt_sampled_queue_ms: flow.rtt_queue.distribution(),
            rembs: flow.rembs,
            overuses: (self.hears_overuse && plan.media().is_some_and(|m| m.controller.overuse.is_some()))
                .then_some(flow.overuses),
            reported_loss: (flow.reported_loss.1 > 0).then(|| flow.reported_loss.0 / flow.reported_loss.1 as f64),
            streams: streams.collect(),
        }
    }

    /// The hop of a flow's route that passes least from `from` to `to`, and what it passes, if any hop has a
    /// capacity.
    fn slowest(&self, flow: usize, from: Time, to: Time) -> Option<(usize, DataSize)> {
        let to = to.max(from);
        let hops = self.plan.flows[flow].route.iter();
        let volumes = hops.filter_map(|h| Some((*h, self.plan.hops[*h].capacity.as_ref()?.volume(from, to))));
        volumes.min_by_key(|(_, volume)| *volume)
    }

    /// Bits that the flow's sources, or the capacity where that is less, allow from `from` to `to`.
    fn attainable(&self, flow: usize, from: Time, to: Time) -> Option<f64> {
        let most = self.most(flow);
        let bins = seconds_between(from, to);
        bins.map(|(a, b)| {
            let (_, volume) = self.slowest(flow, a, b)?;
            Some((volume.as_bits() as f64).min(most * (b - a).as_secs_f64()))
        })
        .sum()
    }

    /// The most that a flow can use, bit/s.
    fn most(&self, flow: usize) -> f64 {
        self.plan.flows[flow].most().map_or(f64::INFINITY, |most| most.as_bps_f64())
    }

    fn converged(&self, flow: usize, from: Time, to: Time) -> Option<f64> {
        let most = self.most(flow);
        let sharing = |hop: usize, at: Time| {
            let living = self.plan.flows.iter().filter(|f| f.start <= at && at < f.stop);
            living.filter(|f| f.route.contains(&hop)).count().max(1)
        };
        seconds_between(from, to).filter(|(a, b)| whole_second(*a, *b)).find_map(|(a, b)| {
            let (hop, volume) = self.slowest(flow, a, b)?;
            let fair = (volume.as_bits() as f64 / sharing(hop, a) as f64).min(most);
            let got = self.seconds[flow][a.as_secs_f64() as usize] as f64 * 8.0;
            (got >= 0.9 * fair).then(|| (b - from).as_secs_f64())
        })
    }

    fn variation(&self, flow: usize, from: Time, to: Time) -> Option<f64> {
        let bins = seconds_between(from, to).filter(|(a, b)| whole_second(*a, *b));
        let got: Vec<f64> = bins.map(|(a, _)| self.seconds[flow][a.as_secs_f64() as usize] as f64).collect();
        let summary = Summary::of(&got)?;
        (summary.mean > 0.0).then(|| summary.std / summary.mean)
    }

    fn jain(&self, window: &Window, counts: impl Fn(&FlowPlan) -> bool) -> Option<f64> {
        let living: Vec<usize> = (0..self.plan.flows.len())
            .filter(|f| counts(&self.plan.flows[*f]))
            .filter(|f| self.plan.flows[*f].route.contains(&self.plan.bottleneck))
            .filter(|f| self.plan.flows[*f].start < window.to && self.plan.flows[*f].stop > window.from)
            .collect();
        let from = living.iter().map(|f| self.plan.flows[*f].start).max()?.max(window.from);
        let to = living.iter().map(|f| self.plan.flows[*f].stop).min()?.min(window.to);
        let bins = seconds_between(from, to).filter(|(a, b)| whole_second(*a, *b));
        let indices: Vec<f64> = bins
            .filter_map(|(a, _)| {
                let bin = a.as_secs_f64() as usize;
                jain(&living.iter().map(|f| self.seconds[*f][bin] as f64).collect::<Vec<_>>())
            })
            .collect();
        (!indices.is_empty()).then(|| indices.iter().sum::<f64>() / indices.len() as f64)
    }
}

impl RowSink for Collector<'_> {
    fn row(&mut self, row: &Row) {
        match *row {
            Row::Sent { at, packet } if !packet.class.goes_back() => {
                let index = packet.flow.0 as usize;
                if let Some(actuation) = &mut self.actuation[index] {
                    actuation.sent(at, packet.size, packet.class == PacketClass::Fec);
                }
                for span in holding(&mut self.spans, at) {
                    let flow = &mut span.flows[index];
                    flow.sent += packet.size.as_bytes();
                    match packet.class {
                        PacketClass::Fec => flow.fec.sent += packet.size.as_bytes(),
                        PacketClass::Retransmission => flow.rtx.sent += packet.size.as_bytes(),
                        _ => {}
                    }
                }
            }
            Row::Crossed { hop, packet, waited, left, marked, .. } => {
                for span in holding(&mut self.spans, left) {
                    let hop = &mut span.hops[hop as usize];
                    hop.crossed += packet.size.as_bytes();
                    hop.waited.add(waited);
                    hop.marked_packets += u64::from(marked);
                }
            }
            Row::Dropped { at, hop, packet, left, .. } => {
                let bytes = packet.size.as_bytes();
                if let Some(left) = left {
                    holding(&mut self.spans, left).for_each(|span| span.hops[hop as usize].lost_on_wire += bytes);
                }
                for span in holding(&mut self.spans, at) {
                    let hop = &mut span.hops[hop as usize];
                    hop.dropped += bytes;
                    hop.dropped_packets += 1;
                    if !packet.class.goes_back() {
                        span.flows[packet.flow.0 as usize].lost += bytes;
                    }
                }
            }
            Row::Arrived { at, packet, delay, ecn } if !packet.class.goes_back() => {
                self.arrived(at, packet, delay, ecn)
            }
            Row::RoundTrip { at, flow, rtt } => {
                let index = flow.0 as usize;
                let base = self.plan.flows[index].base_rtt_at(self.plan, at);
                for span in holding(&mut self.spans, at) {
                    span.flows[index].rtt.add(rtt);
                    span.flows[index].rtt_queue.add(rtt - base);
                }
            }
            Row::Decision { at, flow, target, .. } => {
                if let Some(actuation) = &mut self.actuation[flow.0 as usize] {
                    actuation.decided(at, target);
                }
                for span in &mut self.spans {
                    let flow = &mut span.flows[flow.0 as usize];
                    flow.settle_target(at, &span.window);
                    flow.target = Some((target, at));
                }
            }
            Row::FractionLost { at, flow, fraction } => {
                for span in holding(&mut self.spans, at) {
                    let (sum, n) = &mut span.flows[flow.0 as usize].reported_loss;
                    (*sum, *n) = (*sum + fraction, *n + 1);
                }
            }
            Row::Remb { at, flow, .. } => {
                holding(&mut self.spans, at).for_each(|span| span.flows[flow.0 as usize].rembs += 1);
            }
            Row::Read { at, flow, size } => {
                for span in holding(&mut self.spans, at) {
                    span.flows[flow.0 as usize].read += size.as_bytes();
                }
            }
            Row::Frame { at, flow, stream, captured, size, dropped } => {
                for span in holding(&mut self.spans, at) {
                    let stream = &mut span.flows[flow.0 as usize].streams[stream.0 as usize];
                    stream.bytes += size.as_bytes();
                    stream.frames += 1;
                    stream.dropped += dropped as u64;
                    stream.delay.add(at - captured);
                    stream.freezes.rendered(at);
                }
            }
            Row::Signal { at, flow, half, signal, value } if self.hears_overuse => {
                let index = flow.0 as usize;
                let overuse = self.plan.flows[index].media().and_then(|m| m.controller.overuse);
                if let Some((_, _, state)) = overuse.filter(|(h, s, _)| (*h, *s) == (half, signal)) {
                    let over = value == state;
                    if over && !self.over[index] {
                        holding(&mut self.spans, at).for_each(|span| span.flows[index].overuses += 1);
                    }
                    self.over[index] = over;
                }
            }
            _ => {}
        }
    }

    fn wants_signals(&self) -> bool {
        self.hears_overuse
    }
}

impl Collector<'_> {
    /// A packet of a flow's data arrived.
    fn arrived(&mut self, at: Time, packet: PacketRow, delay: TimeDelta, ecn: Ecn) {
        let (index, bytes) = (packet.flow.0 as usize, packet.size.as_bytes());
        let second = (at.as_nanos() / 1_000_000_000) as usize;
        while self.last_tick < second {
            self.last_tick += 1;
            (self.ticked)();
        }
        // What was still under way when the flow stopped belongs to no time that it lived.
        if at >= self.plan.flows[index].stop {
            return;
        }
        self.seconds[index][second] += bytes;
        let queued = self.pooled[index].then(|| delay - self.plan.flows[index].base_owd(self.plan, at - delay));
        for span in holding(&mut self.spans, at) {
            let flow = &mut span.flows[index];
            flow.received += bytes;
            flow.ecn_packets += u64::from(ecn.is_capable());
            flow.marked_packets += u64::from(ecn == Ecn::Ce);
            match packet.class {
                PacketClass::Media => flow.media += bytes,
                PacketClass::Fec => flow.fec.received += bytes,
                PacketClass::Retransmission => flow.rtx.received += bytes,
                _ => {}
            }
            flow.owd.add(delay);
            if let Some(queued) = queued {
                span.one_way.add(queued);
            }
        }
    }
}

/// The spans in which a time lies.
#[inline]
fn holding(spans: &mut [Span], at: Time) -> impl Iterator<Item = &mut Span> {
    spans.iter_mut().filter(move |span| span.window.from <= at && at < span.window.to)
}

impl Span {
    fn new(plan: &Plan, window: Window, detail: Detail) -> Self {
        let packet_delays = || if detail == Detail::All { Times::new() } else { Times::none() };
        let hop = |_| Hop {
            crossed: 0,
            lost_on_wire: 0,
            dropped: 0,
            dropped_packets: 0,
            marked_packets: 0,
            waited: packet_delays(),
        };
        let stream = || Stream { bytes: 0, frames: 0, dropped: 0, delay: packet_delays(), freezes: Freezes::new() };
        let flow = |f: &FlowPlan| Flow {
            sent: 0,
            received: 0,
            ecn_packets: 0,
            marked_packets: 0,
            media: 0,
            fec: Repair::default(),
            rtx: Repair::default(),
            lost: 0,
            owd: packet_delays(),
            rtt: Times::new(),
            rtt_queue: Times::new(),
            read: 0,
            rembs: 0,
            overuses: 0,
            reported_loss: (0.0, 0),
            target: None,
            target_bits: 0.0,
            target_time: TimeDelta::ZERO,
            streams: f.media().map_or(&[][..], |m| &m.streams).iter().map(|_| stream()).collect(),
        };
        let (hops, flows) = (plan.hops.iter().map(hop).collect(), plan.flows.iter().map(flow).collect());
        Self { window, hops, flows, one_way: packet_delays() }
    }
}

impl Hop {
    fn result(&self, plan: &crate::plan::HopPlan, window: &Window) -> LinkResult {
        let span = (window.to - window.from).as_secs_f64();
        let volume = plan.capacity.as_ref().map(|c| c.volume(window.from, window.to).as_bytes() as f64);
        let came = (self.crossed + self.dropped) as f64;
        LinkResult {
            id: plan.id.clone(),
            utilization: volume.filter(|v| *v > 0.0).map(|v| (self.crossed + self.lost_on_wire) as f64 / v),
            loss_ratio: if came > 0.0 { self.dropped as f64 / came } else { 0.0 },
            dropped_packets: self.dropped_packets,
            marked_packets: self.marked_packets,
            queue_ms: self.waited.distribution(),
            capacity_bps: volume.map(|v| v * 8.0 / span),
        }
    }
}

impl Flow {
    /// Adds the target in force up to `at`, as far as it lies in the window.
    fn settle_target(&mut self, at: Time, window: &Window) {
        if let Some((rate, since)) = self.target {
            let span = at.min(window.to) - since.max(window.from);
            if span.is_positive() {
                self.target_bits += rate.as_bps_f64() * span.as_secs_f64();
                self.target_time += span;
            }
        }
    }
}

/// The part of a window in which a flow lives.
fn lived(start: Time, stop: Time, window: &Window) -> (Time, Time) {
    (start.max(window.from), stop.min(window.to))
}

/// A span cut at whole seconds.
fn seconds_between(from: Time, to: Time) -> impl Iterator<Item = (Time, Time)> {
    let next = |t: Time| Time::from_secs(t.as_nanos() / 1_000_000_000 + 1);
    core::iter::successors((from < to).then_some(from), move |t| Some(next(*t)).filter(|n| *n < to))
        .map(move |t| (t, next(t).min(to)))
}

fn whole_second(a: Time, b: Time) -> bool {
    (b - a) == TimeDelta::from_secs(1)
}

/// Which queuing delays the scenario's `queue_*` metrics mean, of the run as a whole.
pub(crate) fn queue_of<'r>(result: &'r WindowResult, measure: &Measure) -> Option<&'r Distribution> {
    use crate::plan::QueueMeasure;
    match measure.queue {
        QueueMeasure::Packet => result.link.queue_ms.as_ref(),
        QueueMeasure::Rtcp => result.pooled.rtcp.as_ref(),
        QueueMeasure::OneWay => result.pooled.one_way.as_ref(),
    }
}
