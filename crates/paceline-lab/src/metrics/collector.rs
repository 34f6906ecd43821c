// SPDX-License-Identifier: MIT OR Apache-2.0
//! The collector: receives the events of a run and returns a [`WindowResult`] for each window.

use super::accumulators::{
    FlowTotals, Freezes, JitterBuffer, Needs, PlayoutBuffer, RateBins, Rendered, ScoreSums, Spans, TargetInForce,
    TargetSum, Totals, Tracks, Viewer,
};
use super::documents::{LinkResult, Pooled, WindowResult};
use super::results::{FlowInWindow, flow_result, link_result};
use super::run_data::RunData;
use super::{Accumulator, Delays, METRICS, MetricSpec, fairness, others};
use paceline_netsim::plan::{FlowPlan, Plan, StreamPlan};
use paceline_netsim::records::{EventObserver, EventRecord, MetricKind, PacketClass, PacketRecord};
use paceline_scenario::{Quantity, Scenario, Window};
use paceline_units::{DataSize, Ecn, FlowId, Time, TimeDelta};
use std::borrow::Cow;
use std::ops::Range;

pub struct Collector<'a> {
    scenario: &'a Scenario,
    /// The plan with every link update so far.
    plan: Cow<'a, Plan>,
    /// The whole run first. Windows that are requested twice are gathered once.
    windows: Vec<WindowState>,
    tracks: Tracks,
    /// Those windows in which freezes are followed.
    freeze_tracks: Tracks,
    /// Numbers of the windows with accumulators that metrics have of their own.
    accumulating: Vec<usize>,
    spans: Spans,
    /// Index of each requested window.
    requested: Vec<usize>,
    wants_signals: bool,
    flows: Vec<FlowState>,
    /// Of each stream of each flow.
    streams: Vec<Vec<StreamState>>,
    on_second: &'a dyn Fn(),
    /// The end of the current second. The first arrival at or after it calls `on_second`.
    second_end: Time,
}

/// The state of one flow that does not depend on the window.
struct FlowState {
    stop: Time,
    /// The propagation delay, if it is constant.
    base_owd: Option<TimeDelta>,
    /// Whether pooled distributions cover the flow.
    pooled: bool,
    rates: RateBins,
    target: TargetInForce,
}

/// The state of a stream that does not depend on the window.
#[derive(Clone)]
struct StreamState {
    /// The time at which its first pause begins; [`Time::MAX`] without any.
    first_pause: Time,
    /// Capture time of the last complete frame.
    captured: Option<Time>,
    playout: PlayoutBuffer,
    jitter_buffer: JitterBuffer,
    /// `None` if its source has no resolution.
    viewer: Option<Viewer>,
}

impl StreamState {
    fn of_flow(flow: &FlowPlan) -> Vec<Self> {
        let Some(media) = flow.media() else { return Vec::new() };
        let of_stream = |plan: &StreamPlan| {
            let first_pause = plan.pause_between(Time::ZERO, Time::MAX).unwrap_or(Time::MAX);
            let viewer = Viewer::new(plan, media.media_use, flow.start, flow.stop);
            let jitter_buffer = JitterBuffer::new(media.media_use);
            Self { first_pause, captured: None, playout: PlayoutBuffer::default(), jitter_buffer, viewer }
        };
        media.streams.iter().map(of_stream).collect()
    }
}

/// What is accumulated for one window apart from the others, because it cannot be merged from spans.
struct WindowState {
    window: Window,
    spans: Range<usize>,
    /// Of each flow.
    targets: Vec<TargetSum>,
    /// Of each stream of each flow; without any event if freezes are not needed.
    freezes: Vec<Vec<Freezes>>,
    /// Of each stream of each flow; empty if freezes are not needed.
    scores: Vec<Vec<ScoreSums>>,
    needs: Needs,
    /// The accumulators that metrics have of their own.
    own: Vec<(&'static str, Box<dyn Accumulator>)>,
}

impl WindowState {
    /// `metrics` are those that are read in this window.
    fn new(scenario: &Scenario, window: Window, spans: Range<usize>, needs: Needs, metrics: &[&MetricSpec]) -> Self {
        let flows = &scenario.plan.flows;
        let streams = || flows.iter().map(|f| f.media().map_or(0, |m| m.streams.len()));
        let accumulator = |m: &&MetricSpec| Some((m.id, m.accumulator?(scenario, window)?));
        Self {
            window,
            spans,
            targets: vec![TargetSum::default(); flows.len()],
            freezes: streams().map(|n| vec![Freezes::default(); n]).collect(),
            scores: streams().map(|n| vec![ScoreSums::default(); n]).collect(),
            needs,
            own: metrics.iter().filter_map(accumulator).collect(),
        }
    }
}

impl<'a> Collector<'a> {
    /// Creates a collector for a run as a whole and for each of `windows`. `on_second` is called when each second of the
    /// run is over.
    pub fn new(scenario: &'a Scenario, windows: &[Window], on_second: &'a dyn Fn()) -> Self {
        let whole = Window { from: Time::ZERO, to: Time::ZERO + scenario.plan.duration };
        Self::with_whole(Some(whole), scenario, windows, on_second)
    }

    /// Creates a collector for what the scenario requests in `windows` alone: the result of the whole run is empty, and
    /// delays and freezes are gathered only where they are requested.
    pub fn of_requested(scenario: &'a Scenario, windows: &[Window], on_second: &'a dyn Fn()) -> Self {
        Self::with_whole(None, scenario, windows, on_second)
    }

    /// Without `whole`, only what the scenario requests is gathered.
    fn with_whole(
        whole: Option<Window>,
        scenario: &'a Scenario,
        requested: &[Window],
        on_second: &'a dyn Fn(),
    ) -> Self {
        let plan = &scenario.plan;
        let everything = whole.is_some();
        let mut distinct = vec![whole.unwrap_or(Window { from: Time::ZERO, to: Time::ZERO })];
        let mut index = |window: &Window| {
            distinct.iter().position(|known| known == window).unwrap_or_else(|| {
                distinct.push(*window);
                distinct.len() - 1
            })
        };
        let requested = requested.iter().map(&mut index).collect();
        let of_window = |(index, window): (usize, &Window)| {
            let named: Vec<&Quantity> =
                scenario.quantities().filter(|q| q.windows().binary_search(window).is_ok()).collect();
            // Windows that the scenario does not name are those of a program, which may read any metric.
            let is_read = |m: &&MetricSpec| index == 0 || named.is_empty() || named.iter().any(|q| q.reads(m.id));
            METRICS.iter().filter(is_read).collect()
        };
        let metrics: Vec<Vec<&MetricSpec>> = distinct.iter().enumerate().map(of_window).collect();
        let always = Needs { packet_delays: false, round_trips: everything, freezes: everything, shares: everything };
        let of_metrics = |metrics: &Vec<&MetricSpec>| metrics.iter().map(|m| needs(m)).fold(always, Needs::or);
        let of_windows: Vec<Needs> = metrics.iter().map(of_metrics).collect();
        // The first window is empty if only what is requested is gathered.
        let needed = of_windows.iter().skip(usize::from(!everything)).copied().fold(always, Needs::or);
        let tracks = |is_wanted: fn(&Needs) -> bool| {
            let numbered = distinct.iter().copied().zip(0..).zip(&of_windows);
            Tracks::new(numbered.filter(|(_, needs)| is_wanted(needs)).map(|(window, _)| window))
        };
        let (tracks, freeze_tracks) = (tracks(|_| true), tracks(|needs| needs.freezes));
        let spans = Spans::new(&distinct, &Totals::new(scenario, needed));
        let windows = distinct.iter().zip(&metrics).zip(of_windows);
        let windows: Vec<WindowState> = windows
            .map(|((window, metrics), needs)| {
                WindowState::new(scenario, *window, spans.within(*window), needs, metrics)
            })
            .collect();
        let seconds = plan.duration.as_secs_f64() as usize + 1;
        let has_media = plan.flows.iter().any(|f| f.media().is_some());
        let flow = |f: &FlowPlan| FlowState {
            stop: f.stop,
            base_owd: f.constant_base_owd(plan),
            pooled: needed.packet_delays && (f.media().is_some() || !has_media),
            rates: RateBins::new(seconds, f.media().is_some()),
            target: None,
        };
        Self {
            scenario,
            plan: Cow::Borrowed(plan),
            requested,
            wants_signals: windows
                .iter()
                .flat_map(|state| &state.own)
                .any(|(_, accumulator)| accumulator.wants_signals()),
            flows: plan.flows.iter().map(flow).collect(),
            streams: plan.flows.iter().map(StreamState::of_flow).collect(),
            accumulating: (0..windows.len()).filter(|index| !windows[*index].own.is_empty()).collect(),
            windows,
            tracks,
            freeze_tracks,
            spans,
            on_second,
            second_end: Time::from_secs(1),
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
            for stream in 0..self.streams[index].len() {
                self.render(index, stream, flow.stop.min(end));
            }
            let windows = &mut self.windows;
            for (stream, state) in self.streams[index].iter_mut().enumerate() {
                let Some(viewer) = &mut state.viewer else { continue };
                viewer.settle(flow.stop.min(end), |piece| {
                    for WindowState { window, scores, .. } in windows.iter_mut().filter(|state| state.needs.freezes) {
                        scores[index][stream].add(piece, window.from, window.to);
                    }
                });
            }
            for WindowState { window, freezes, .. } in self.windows.iter_mut().filter(|state| state.needs.freezes) {
                let (from, to) = (flow.start.max(window.from), flow.stop.min(window.to));
                for (stream, freezes) in freezes[index].iter_mut().enumerate() {
                    let begin = freezes.last().unwrap_or(from);
                    let end = pause(&self.scenario.plan, index, stream, begin, to).unwrap_or(to);
                    freezes.finish(from, end);
                }
            }
        }
        let results: Vec<WindowResult> = (0..self.windows.len()).map(|index| self.result(index)).collect();
        let results = core::iter::once(&0).chain(&self.requested).map(|index| results[*index].clone()).collect();
        (results, self.flows.into_iter().map(|flow| flow.rates.into_received_seconds()).collect())
    }

    /// Adds the target of a flow that was in force up to `at`.
    fn settle_target(&mut self, flow: usize, at: Time) {
        let FlowState { target, rates, .. } = &mut self.flows[flow];
        let target = *target;
        if let Some((rate, since)) = target {
            rates.add_target(rate, since, at);
        }
        let Some((_, since)) = target else { return };
        for index in self.tracks.between(since, at) {
            let WindowState { window, targets, .. } = &mut self.windows[*index];
            targets[flow].add(target, at, window);
        }
    }

    fn result(&self, index: usize) -> WindowResult {
        let WindowState { window, spans, targets, freezes, scores, needs, own } = &self.windows[index];
        let empty = Totals::new(self.scenario, *needs);
        let Totals { hops, flows, one_way } = &self.spans.sums(spans.clone(), empty);
        let rates = self.flows.iter().map(|flow| &flow.rates).collect();
        let run = RunData::new(self.scenario, &self.plan, rates);
        let links: Vec<LinkResult> = hops.iter().zip(&self.plan.hops).map(|(h, p)| link_result(h, p, window)).collect();
        let own = own.iter().map(|(id, accumulator)| (*id, accumulator.values())).collect();
        let pool = |of: fn(&FlowTotals) -> &Delays| {
            let mut all = Delays::new();
            flows.iter().zip(&self.flows).filter(|(_, state)| state.pooled).for_each(|(f, _)| all.merge(of(f)));
            all.distribution()
        };
        let shares = |value: &dyn Fn() -> Option<f64>| if needs.shares { value() } else { None };
        let mut result = WindowResult {
            window_s: window.seconds(),
            link: links[self.plan.bottleneck].clone(),
            links,
            flows: Vec::new(),
            jain: shares(&|| fairness::index(&run, window, |_| true)),
            media_jain: shares(&|| fairness::index(&run, window, |f| f.media().is_some())),
            active_jain: shares(&|| fairness::active_index(&run, window)),
            others_keep: None,
            pooled: Pooled {
                rtcp: pool(|f| &f.rtt_queue),
                one_way: one_way.distribution(),
                rtt: pool(|f| &f.rtt),
                owd: pool(|f| &f.owd),
            },
            own,
        };
        let received: u64 = flows.iter().map(|f| f.received).sum();
        for (index, totals) in flows.iter().enumerate() {
            let flow = FlowInWindow {
                totals,
                target: targets[index],
                freezes: &freezes[index],
                scores: &scores[index],
                needs,
            };
            let flow = flow_result(&run, &flow, index, window, received, &result);
            result.flows.push(flow);
        }
        result.others_keep = others::kept(&result, &self.plan);
        result
    }
}

impl EventObserver for Collector<'_> {
    /// Passes each event to a function of its own, so that a short one does not save the registers of the longest. The simulator
    /// calls those of frequent events itself.
    fn on_event(&mut self, event: &EventRecord) {
        match event {
            EventRecord::Sent { at, packet } => self.on_sent(*at, packet),
            EventRecord::Crossed { at, hop, packet, waited, left, marked } => {
                self.on_crossed(*at, *hop, packet, *waited, *left, *marked);
            }
            EventRecord::Arrived { at, packet, delay, ecn } => self.on_arrived(*at, packet, *delay, *ecn),
            EventRecord::Read { at, flow, size } => self.on_read(*at, *flow, *size),
            EventRecord::Signal { .. } if !self.wants_signals => {}
            _ => self.on_other_event(event),
        }
    }

    fn on_sent(&mut self, at: Time, packet: &PacketRecord) {
        let index = usize::from(packet.flow.0);
        if packet.class.is_from_receiver() {
            if let Some(totals) = self.spans.containing(at) {
                totals.flows[index].feedback += packet.size.as_bytes();
            }
            return;
        }
        self.flows[index].rates.add_sent(at, packet.size, packet.class == PacketClass::Fec);
        if let Some(totals) = self.spans.containing(at) {
            totals.flows[index].add_sent(packet);
        }
    }

    fn on_crossed(&mut self, _: Time, hop: u16, packet: &PacketRecord, waited: TimeDelta, left: Time, marked: bool) {
        if let Some(totals) = self.spans.containing(left) {
            let hop = &mut totals.hops[usize::from(hop)];
            hop.crossed += packet.size.as_bytes();
            hop.waited.add(waited);
            if marked {
                hop.marked_packets += 1;
            }
        }
    }

    fn on_arrived(&mut self, at: Time, packet: &PacketRecord, delay: TimeDelta, ecn: Ecn) {
        if packet.class.is_from_receiver() {
            return;
        }
        if at >= self.second_end {
            self.end_seconds(at);
        }
        let index = usize::from(packet.flow.0);
        let flow = &mut self.flows[index];
        // Packets in transit when the flow stops do not count.
        if at >= flow.stop {
            return;
        }
        flow.rates.add_received(at, packet.size);
        // Propagation is taken at the time of sending.
        let changing_owd = || self.scenario.plan.flows[index].base_owd(&self.plan, at - delay);
        let queued = flow.pooled.then(|| delay - flow.base_owd.unwrap_or_else(changing_owd));
        if let Some(totals) = self.spans.containing(at) {
            totals.flows[index].add_arrived(packet, delay, ecn);
            if let Some(queued) = queued {
                totals.one_way.add(queued);
            }
        }
    }

    fn wants_signals(&self) -> bool {
        self.wants_signals
    }
}

impl Collector<'_> {
    #[inline]
    fn on_read(&mut self, at: Time, flow: FlowId, size: DataSize) {
        if let Some(totals) = self.spans.containing(at) {
            totals.flows[usize::from(flow.0)].read += size.as_bytes();
        }
    }

    #[cold]
    fn end_seconds(&mut self, at: Time) {
        while at >= self.second_end {
            self.second_end += TimeDelta::from_secs(1);
            (self.on_second)();
        }
    }

    /// Handles an event that is not frequent.
    #[inline(never)]
    fn on_other_event(&mut self, event: &EventRecord) {
        match *event {
            EventRecord::Dropped { at, hop, packet, left, .. } => {
                let (hop, bytes) = (usize::from(hop), packet.size.as_bytes());
                if let Some(totals) = left.and_then(|left| self.spans.containing(left)) {
                    totals.hops[hop].lost_on_wire += bytes;
                }
                if let Some(totals) = self.spans.containing(at) {
                    totals.hops[hop].dropped += bytes;
                    totals.hops[hop].dropped_packets += 1;
                    if !packet.class.is_from_receiver() {
                        totals.flows[usize::from(packet.flow.0)].lost += bytes;
                    }
                }
            }
            EventRecord::LinkUpdated { at, hop, to } => {
                self.plan.to_mut().update_hop(&self.scenario.plan, at, hop.into(), to);
                for (flow, plan) in self.flows.iter_mut().zip(&self.plan.flows) {
                    flow.base_owd = plan.constant_base_owd(&self.plan);
                }
            }
            EventRecord::Frame { at, flow, stream, captured, size, dropped } => {
                let (flow, stream) = (usize::from(flow.0), usize::from(stream.0));
                let state = &mut self.streams[flow][stream];
                let previous = state.captured.replace(captured).unwrap_or(captured);
                let discarded = state.playout.is_discarded(at - captured);
                if let Some(totals) = self.spans.containing(at) {
                    let stream = &mut totals.flows[flow].streams[stream];
                    stream.add_frame(at, captured, size, dropped, previous);
                    stream.discarded += u64::from(discarded);
                }
                if !self.freeze_tracks.is_empty() {
                    self.streams[flow][stream].jitter_buffer.complete(at, captured, size);
                    self.render(flow, stream, at);
                }
            }
            _ => self.on_controller_event(event),
        }
    }

    /// Handles the frames of a stream that are rendered up to `until`.
    fn render(&mut self, flow: usize, stream: usize, until: Time) {
        let state = &mut self.streams[flow][stream];
        while let Some(Rendered { at, captured, size }) = state.jitter_buffer.next(until) {
            for index in self.freeze_tracks.between(at, at) {
                let freezes = &mut self.windows[*index].freezes[flow][stream];
                if state.first_pause <= at
                    && let Some(pause) =
                        freezes.last().and_then(|last| pause(&self.scenario.plan, flow, stream, last, at))
                {
                    freezes.interrupt(pause);
                }
                freezes.rendered(at);
            }
            if let Some(viewer) = &mut state.viewer {
                let windows = &mut self.windows;
                viewer.rendered(at, captured, size, |piece| {
                    // A window that ends within the piece has a part of it.
                    for index in self.freeze_tracks.between(piece.from(), at) {
                        let WindowState { window, scores, .. } = &mut windows[*index];
                        scores[flow][stream].add(piece, window.from, window.to);
                    }
                });
            }
        }
    }

    /// Handles an event that is not of a packet, a frame, a link or what was read.
    fn on_controller_event(&mut self, event: &EventRecord) {
        for index in &self.accumulating {
            self.windows[*index].own.iter_mut().for_each(|(_, accumulator)| accumulator.on_event(event));
        }
        match *event {
            EventRecord::RoundTrip { at, flow, rtt } => {
                let index = usize::from(flow.0);
                let base = self.scenario.plan.flows[index].base_rtt_at(&self.plan, at);
                if let Some(totals) = self.spans.containing(at) {
                    totals.flows[index].rtt.add(rtt);
                    totals.flows[index].rtt_queue.add(rtt - base);
                }
            }
            EventRecord::Decision { at, flow, target, .. } => {
                self.settle_target(usize::from(flow.0), at);
                self.flows[usize::from(flow.0)].target = Some((target, at));
            }
            _ => {}
        }
    }
}

/// Returns what a metric reads. A score of quality depends on delays.
fn needs(metric: &MetricSpec) -> Needs {
    let packet_delays = matches!(metric.kind, MetricKind::Delay | MetricKind::Score);
    Needs {
        packet_delays,
        round_trips: packet_delays || metric.reads_round_trips,
        freezes: metric.reads_freezes,
        shares: metric.reads_shares,
    }
}

fn pause(plan: &Plan, flow: usize, stream: usize, from: Time, to: Time) -> Option<Time> {
    plan.flows[flow].media()?.streams[stream].pause_between(from, to)
}
