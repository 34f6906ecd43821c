//! The collector: receives the events of a run and returns a [`WindowResult`] for each window.

use super::accumulators::{FlowTotals, HopTotals, RateBins, TargetInForce, WindowTotals, holds};
use super::documents::{FlowResult, LinkResult, Pooled, StreamResult, WindowResult};
use super::{Accumulator, Delays, METRICS, convergence, fairness, find, link_share, rate};
use paceline::FecScheme;
use paceline_flow::MediaKind;
use paceline_netsim::plan::{HopPlan, Plan};
use paceline_records::{EventObserver, EventRecord, MetricKind, PacketClass};
use paceline_scenario::{LossMeasure, Quantity, Scenario, Window};
use paceline_units::{DataSize, Time};
use std::borrow::Cow;

/// Receives the events of a run.
pub struct Collector<'a> {
    scenario: &'a Scenario,
    /// The plan with its links as they are by now; they may be changed while a run goes on.
    plan: Cow<'a, Plan>,
    /// The whole run first. Windows that are requested twice are gathered once.
    windows: Vec<WindowTotals>,
    /// Index of each requested window.
    requested: Vec<usize>,
    /// What metrics gather on their own, of each window.
    own: Vec<Vec<(&'static str, Box<dyn Accumulator>)>>,
    wants_signals: bool,
    /// Of each flow.
    rates: Vec<RateBins>,
    targets: Vec<TargetInForce>,
    /// Whether pooled distributions cover the flow.
    pooled: Vec<bool>,
    /// Called when each second of the run is over.
    on_second: &'a dyn Fn(),
    seconds_over: usize,
}

impl<'a> Collector<'a> {
    /// Creates a collector for a run as a whole and for each of `windows`. `on_second` is called when each second of the
    /// run is over.
    pub fn new(scenario: &'a Scenario, windows: &[Window], on_second: &'a dyn Fn()) -> Self {
        let whole = Window { from: Time::ZERO, to: Time::ZERO + scenario.plan.duration };
        Self::with_whole(whole, true, scenario, windows, on_second)
    }

    /// Creates a collector for what the scenario requests in `windows` alone: the result of the whole run is empty, and
    /// delays of each packet are gathered only if a delay is requested.
    pub fn of_requested(scenario: &'a Scenario, windows: &[Window], on_second: &'a dyn Fn()) -> Self {
        let empty = Window { from: Time::ZERO, to: Time::ZERO };
        let is_delay = |q: &Quantity| find(&q.metric).is_some_and(|metric| metric.kind == MetricKind::Delay);
        Self::with_whole(empty, scenario.quantities().any(is_delay), scenario, windows, on_second)
    }

    fn with_whole(
        whole: Window,
        packet_delays: bool,
        scenario: &'a Scenario,
        requested: &[Window],
        on_second: &'a dyn Fn(),
    ) -> Self {
        let plan = &scenario.plan;
        let mut distinct = vec![whole];
        let mut index = |window: &Window| {
            distinct.iter().position(|known| known == window).unwrap_or_else(|| {
                distinct.push(*window);
                distinct.len() - 1
            })
        };
        let requested = requested.iter().map(&mut index).collect();
        let own = |window: &Window| -> Vec<_> {
            METRICS.iter().filter_map(|m| Some((m.id, m.accumulator?(scenario, *window)?))).collect()
        };
        let own: Vec<Vec<_>> = distinct.iter().map(own).collect();
        let seconds = plan.duration.as_secs_f64() as usize + 1;
        let has_media = plan.flows.iter().any(|f| f.media().is_some());
        Self {
            scenario,
            plan: Cow::Borrowed(plan),
            requested,
            wants_signals: own[0].iter().any(|(_, accumulator)| accumulator.wants_signals()),
            own,
            rates: plan.flows.iter().map(|f| RateBins::new(seconds, f.media().is_some())).collect(),
            targets: vec![None; plan.flows.len()],
            pooled: plan.flows.iter().map(|f| packet_delays && (f.media().is_some() || !has_media)).collect(),
            windows: distinct.into_iter().map(|w| WindowTotals::new(scenario, w, packet_delays)).collect(),
            on_second,
            seconds_over: 0,
        }
    }

    /// Returns the results, of the whole run and then of each requested window in order, and the bytes that each flow
    /// received in each second.
    pub fn finish(self) -> (Vec<WindowResult>, Vec<Vec<u64>>) {
        let end = Time::ZERO + self.scenario.plan.duration;
        self.finish_at(end)
    }

    /// Returns the same for a run that ended at `end`, at or before the duration of its plan. The whole run ends there.
    pub fn finish_at(mut self, end: Time) -> (Vec<WindowResult>, Vec<Vec<u64>>) {
        let whole = &mut self.windows[0].window;
        whole.to = whole.to.min(end);
        for (index, flow) in self.scenario.plan.flows.iter().enumerate() {
            self.settle_target(index, flow.stop.min(end));
            for WindowTotals { window, flows, .. } in &mut self.windows {
                let (from, to) = (flow.start.max(window.from), flow.stop.min(window.to));
                flows[index].streams.iter_mut().for_each(|s| s.freezes.finish(from, to));
            }
        }
        let results: Vec<WindowResult> = (0..self.windows.len()).map(|index| self.result(index)).collect();
        let results = core::iter::once(&0).chain(&self.requested).map(|index| results[*index].clone()).collect();
        (results, self.rates.into_iter().map(|bins| bins.received).collect())
    }

    /// Adds the target of a flow that was in force up to `at`.
    fn settle_target(&mut self, flow: usize, at: Time) {
        let target = self.targets[flow];
        if let Some((rate, since)) = target {
            self.rates[flow].add_target(rate, since, at);
        }
        for WindowTotals { window, flows, .. } in &mut self.windows {
            flows[flow].add_target(target, at, window);
        }
    }

    fn result(&self, index: usize) -> WindowResult {
        let WindowTotals { window, hops, flows, one_way } = &self.windows[index];
        let run = RunData { scenario: self.scenario, plan: &self.plan, rates: &self.rates };
        let links: Vec<LinkResult> = hops.iter().zip(&self.plan.hops).map(|(h, p)| link_result(h, p, window)).collect();
        let own = self.own[index].iter().map(|(id, accumulator)| (*id, accumulator.values())).collect();
        let pool = |of: fn(&FlowTotals) -> &Delays| {
            let mut all = Delays::new();
            flows.iter().zip(&self.pooled).filter(|(_, pooled)| **pooled).for_each(|(f, _)| all.merge(of(f)));
            all.distribution()
        };
        let mut result = WindowResult {
            window_s: window.seconds(),
            link: links[self.plan.bottleneck].clone(),
            links,
            flows: Vec::new(),
            jain: fairness::index(&run, window, |_| true),
            media_jain: fairness::index(&run, window, |f| f.media().is_some()),
            pooled: Pooled {
                rtcp: pool(|f| &f.rtt_queue),
                one_way: one_way.distribution(),
                rtt: pool(|f| &f.rtt),
                owd: pool(|f| &f.owd),
            },
            own,
        };
        let received: u64 = flows.iter().map(|f| f.received).sum();
        for (index, flow) in flows.iter().enumerate() {
            let flow = run.flow_result(flow, index, window, received, &result);
            result.flows.push(flow);
        }
        result
    }

    /// Returns the windows in which a time lies.
    #[inline]
    fn holding(&mut self, at: Time) -> impl Iterator<Item = &mut WindowTotals> {
        self.windows.iter_mut().filter(move |totals| holds(&totals.window, at))
    }
}

impl EventObserver for Collector<'_> {
    fn on_event(&mut self, event: &EventRecord) {
        match *event {
            EventRecord::Sent { at, packet } => {
                if packet.class.goes_back() {
                    return;
                }
                let index = usize::from(packet.flow.0);
                self.rates[index].add_sent(at, packet.size, packet.class == PacketClass::Fec);
                self.holding(at).for_each(|totals| totals.flows[index].add_sent(&packet));
            }
            EventRecord::Crossed { hop, packet, waited, left, marked, .. } => {
                for totals in self.holding(left) {
                    let hop = &mut totals.hops[usize::from(hop)];
                    hop.crossed += packet.size.as_bytes();
                    hop.waited.add(waited);
                    hop.marked_packets += u64::from(marked);
                }
            }
            EventRecord::Dropped { at, hop, packet, left, .. } => {
                let (hop, bytes) = (usize::from(hop), packet.size.as_bytes());
                if let Some(left) = left {
                    self.holding(left).for_each(|totals| totals.hops[hop].lost_on_wire += bytes);
                }
                for totals in self.holding(at) {
                    totals.hops[hop].dropped += bytes;
                    totals.hops[hop].dropped_packets += 1;
                    if !packet.class.goes_back() {
                        totals.flows[usize::from(packet.flow.0)].lost += bytes;
                    }
                }
            }
            EventRecord::Arrived { at, packet, delay, ecn } => {
                if packet.class.goes_back() {
                    return;
                }
                let (index, second) = (usize::from(packet.flow.0), (at.as_nanos() / 1_000_000_000) as usize);
                while self.seconds_over < second {
                    self.seconds_over += 1;
                    (self.on_second)();
                }
                let flow = &self.scenario.plan.flows[index];
                // Packets still under way when the flow stops belong to no time in which it lived.
                if at >= flow.stop {
                    return;
                }
                self.rates[index].received[second] += packet.size.as_bytes();
                // Propagation is taken at the time of sending.
                let queued = self.pooled[index].then(|| delay - flow.base_owd(&self.plan, at - delay));
                for totals in self.holding(at) {
                    totals.flows[index].add_arrived(&packet, delay, ecn);
                    if let Some(queued) = queued {
                        totals.one_way.add(queued);
                    }
                }
            }
            EventRecord::LinkUpdated { at, hop, to } => {
                self.plan.to_mut().update_hop(&self.scenario.plan, at, hop.into(), to);
            }
            EventRecord::Signal { .. } if !self.wants_signals => {}
            _ => self.on_other_event(event),
        }
    }

    fn wants_signals(&self) -> bool {
        self.wants_signals
    }
}

impl Collector<'_> {
    /// Handles an event that is not of a packet.
    fn on_other_event(&mut self, event: &EventRecord) {
        self.own.iter_mut().flatten().for_each(|(_, accumulator)| accumulator.on_event(event));
        match *event {
            EventRecord::RoundTrip { at, flow, rtt } => {
                let index = usize::from(flow.0);
                let base = self.scenario.plan.flows[index].base_rtt_at(&self.plan, at);
                for totals in self.holding(at) {
                    totals.flows[index].rtt.add(rtt);
                    totals.flows[index].rtt_queue.add(rtt - base);
                }
            }
            EventRecord::Decision { at, flow, target, .. } => {
                self.settle_target(usize::from(flow.0), at);
                self.targets[usize::from(flow.0)] = Some((target, at));
            }
            EventRecord::Read { at, flow, size } => {
                self.holding(at).for_each(|totals| totals.flows[usize::from(flow.0)].read += size.as_bytes());
            }
            EventRecord::Frame { at, flow, stream, captured, size, dropped } => {
                for totals in self.holding(at) {
                    let stream = &mut totals.flows[usize::from(flow.0)].streams[usize::from(stream.0)];
                    stream.bytes += size.as_bytes();
                    stream.frames += 1;
                    stream.dropped += u64::from(dropped);
                    stream.delay.add(at - captured);
                    stream.freezes.rendered(at);
                }
            }
            _ => {}
        }
    }
}

/// What was gathered of a run, for metrics that compute their values from bins of 1 s.
pub(crate) struct RunData<'a> {
    pub scenario: &'a Scenario,
    /// The plan with its links as they were at the end.
    pub plan: &'a Plan,
    /// Of each flow.
    pub rates: &'a [RateBins],
}

impl RunData<'_> {
    /// Returns the hop of a flow's route that can carry least from `from` to `to`, and how much that is; `None` if no hop
    /// has a capacity.
    pub fn slowest(&self, flow: usize, from: Time, to: Time) -> Option<(usize, DataSize)> {
        let to = to.max(from);
        let hops = self.plan.flows[flow].route.iter();
        let volumes = hops.filter_map(|h| Some((*h, self.plan.hops[*h].capacity.as_ref()?.volume(from, to))));
        volumes.min_by_key(|(_, volume)| *volume)
    }

    /// Returns the most that the sources of a flow make, bit/s; infinite for TCP.
    pub fn most(&self, flow: usize) -> f64 {
        self.plan.flows[flow].max_rate().map_or(f64::INFINITY, |most| most.as_bps_f64())
    }

    fn flow_result(
        &self,
        totals: &FlowTotals,
        index: usize,
        window: &Window,
        all_received: u64,
        result: &WindowResult,
    ) -> FlowResult {
        let plan = &self.scenario.plan.flows[index];
        let (from, to) = (plan.start.max(window.from), plan.stop.min(window.to));
        let seconds = (to - from).as_secs_f64().max(0.0);
        let per_second = |bytes: u64| if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 };
        let denominator = match self.scenario.measure.loss {
            LossMeasure::Sent => totals.sent,
            LossMeasure::Received => totals.received,
        };
        let target_bps =
            totals.target_time.is_positive().then(|| totals.target_bits / totals.target_time.as_secs_f64());
        let stream_plans = plan.media().map_or(&[][..], |m| &m.streams);
        let streams = totals.streams.iter().zip(stream_plans).map(|(s, p)| StreamResult {
            id: p.id.clone(),
            kind: match p.kind {
                MediaKind::Video => "video",
                MediaKind::Audio => "audio",
            },
            throughput_bps: per_second(s.bytes),
            target_bps_mean: target_bps,
            frame_delay_ms: s.delay.distribution(),
            freezes: s.freezes.count,
            freeze_s: s.freezes.total.as_secs_f64(),
            frames: s.frames,
            frames_dropped: s.dropped,
        });
        let useful_bytes = totals.read + totals.streams.iter().map(|s| s.bytes).sum::<u64>();
        let rtx = plan.media().map(|_| totals.rtx);
        let fec = plan.media().filter(|m| m.protection.fec != FecScheme::None).map(|_| totals.fec);
        let of_sent = |bytes: u64| (totals.sent > 0).then(|| bytes as f64 / totals.sent as f64);
        let rates = &self.rates[index];
        FlowResult {
            id: plan.id.clone(),
            kind: plan.kind.name(),
            controller: Some(plan.control().to_owned()),
            start_s: plan.start.as_secs_f64(),
            stop_s: plan.stop.as_secs_f64(),
            throughput_bps: per_second(totals.received),
            goodput_bps: per_second(useful_bytes),
            target_bps,
            received_bytes: totals.received,
            ecn_packets: totals.ecn_packets,
            marked_packets: totals.marked_packets,
            useful_bytes,
            good_bytes: totals.read + totals.media,
            fec_bytes: fec.map(|fec| fec.received),
            rtx_bytes: rtx.map(|rtx| rtx.received),
            fec_share: fec.and_then(|fec| of_sent(fec.sent)),
            rtx_share: rtx.and_then(|rtx| of_sent(rtx.sent)),
            fec_over_target_max: fec.and_then(|_| rates.fec_over_target(from, to)).map(|(_, most)| most),
            target_bits: totals.target_bits,
            capacity_bytes: self.slowest(index, from, to).map(|(_, volume)| volume.as_bytes()),
            crosses_link: plan.route.contains(&self.plan.bottleneck),
            link_share: link_share::share(self, index, totals.received, from, to),
            share: (all_received > 0).then(|| totals.received as f64 / all_received as f64),
            rate_cv: rate::variation(self, index, from, to),
            convergence_time_s: convergence::time(self, index, from, to),
            sent_over_target: rates.sent_over_target(from, to),
            loss_ratio: if denominator > 0 { totals.lost as f64 / denominator as f64 } else { 0.0 },
            lost_bytes: totals.lost,
            sent_bytes: totals.sent,
            owd_ms: totals.owd.distribution(),
            rtt_ms: totals.rtt.distribution(),
            rtt_sampled_queue_ms: totals.rtt_queue.distribution(),
            remb_count: result.own("remb_count", index).unwrap_or(0.0) as u64,
            overuse_count: result.own("overuse_count", index).map(|n| n as u64),
            reported_loss: result.own("reported_loss", index),
            streams: streams.collect(),
        }
    }
}

fn link_result(totals: &HopTotals, plan: &HopPlan, window: &Window) -> LinkResult {
    let span = (window.to - window.from).as_secs_f64();
    let volume = plan.capacity.as_ref().map(|c| c.volume(window.from, window.to).as_bytes() as f64);
    let came = (totals.crossed + totals.dropped) as f64;
    LinkResult {
        id: plan.id.clone(),
        utilization: volume.filter(|v| *v > 0.0).map(|v| (totals.crossed + totals.lost_on_wire) as f64 / v),
        loss_ratio: if came > 0.0 { totals.dropped as f64 / came } else { 0.0 },
        dropped_packets: totals.dropped_packets,
        marked_packets: totals.marked_packets,
        queue_ms: totals.waited.distribution(),
        capacity_bps: volume.map(|v| v * 8.0 / span),
    }
}
