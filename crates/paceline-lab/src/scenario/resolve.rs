//! File to plan: the one place where defaults live, and where what only makes sense together is checked.

use super::catalogue::Origin;
use super::file::{
    CapacityValue, Flow, FlowDirection, Hop, JitterTable, Order, Placed, Queue, ScenarioFile, SourceTable,
    TraceDirection, TraceEnd, TraceTable, Way,
};
use super::problem::{Problem, suggestion};
use super::values::{Limit, Loss, Timed};
use crate::metrics::{self, METRICS};
use crate::plan::{
    Assert, ClockPlan, ControllerPlan, Direction, Expect, FlowPlan, HopPlan, LossMeasure, Measure, Plan, QueueMeasure,
    QueuePlan, SourcePlan, StreamPlan, Window, with_headers,
};
use crate::trace::{self, Shape, Trace};
use paceline::{ConfigError, Registry, Setup};
use paceline_flow::source::{
    Audio, AudioConfig, Encoder, EncoderConfig, FrameTrace, FrameTraceConfig, Ideal, IdealConfig, Ladder, SourceError,
    ladder_rung, parse_frame_sizes,
};
use paceline_flow::{IP_UDP_HEADERS, MediaKind};
use paceline_link::queue::{DISCIPLINES, DropTailLimit};
use paceline_link::{Capacity, End, Jitter, JitterOrder, LossModel, Schedule};
use paceline_units::{DataSize, Fraction, Rate, Streams, Time, TimeDelta};
use std::collections::BTreeMap;
use std::sync::Arc;

const QUEUE_LIMIT: TimeDelta = TimeDelta::from_millis(300);
const START_RATE: Rate = Rate::from_kbps(300);
const MIN_RATE: Rate = Rate::from_kbps(30);
const RTCP_INTERVAL: TimeDelta = TimeDelta::from_secs(1);
const PACER_LIMIT: TimeDelta = TimeDelta::from_secs(2);
const FPS: f64 = 30.0;
const SOURCE_MIN: Rate = Rate::from_kbps(50);
const SOURCE_MAX: Rate = Rate::from_kbps(2000);
const FILES: &str = "files are looked up beside the scenario file, then from the working directory";
const FORMATS: &str = "`paceline list traces` shows the formats";
const DURATION_MAX: TimeDelta = TimeDelta::from_secs(7 * 86_400);

/// Fills in every default, or complains.
pub(crate) fn resolve(file: ScenarioFile, text: &str, origin: &Origin, registry: &Registry) -> Result<Plan, Problem> {
    Resolver { text, origin, registry, notes: Vec::new() }.plan(file)
}

struct Resolver<'a> {
    text: &'a str,
    origin: &'a Origin,
    registry: &'a Registry,
    notes: Vec<String>,
}

type Checked<T> = Result<T, Problem>;

impl Resolver<'_> {
    fn complain<T>(&self, place: &Placed<T>, message: impl Into<String>) -> Problem {
        Problem::at(&self.origin.name, self.text, place.span(), message)
    }

    /// A complaint about the key before a value.
    fn complain_of_key<T>(&self, key: &str, value: &Placed<T>, message: impl Into<String>) -> Problem {
        let value = value.span();
        let start = self.text[..value.start].rfind(key);
        let span = start.map_or(value, |start| start..start + key.len());
        Problem::at(&self.origin.name, self.text, span, message)
    }

    fn not_negative(&self, place: &Placed<TimeDelta>) -> Checked<TimeDelta> {
        match *place.get() {
            negative if negative < TimeDelta::ZERO => {
                Err(self.complain(place, "a delay is not negative").help("0 ms is the least"))
            }
            delay => Ok(delay),
        }
    }

    fn plan(mut self, file: ScenarioFile) -> Checked<Plan> {
        let duration = *file.duration.get();
        if !duration.is_positive() || duration > DURATION_MAX {
            return Err(self
                .complain(&file.duration, "a run lasts longer than nothing and at most a week")
                .help("write it like \"60 s\""));
        }
        let repeats = file.repeats.as_ref().map_or(1, |r| *r.get());
        if let Some(place) = file.repeats.as_ref().filter(|r| !(1..=10_000).contains(r.get())) {
            return Err(self
                .complain(place, "repeats are 1 to 10000")
                .help("leave the key out for one; `run --repeats` takes a number too"));
        }
        if file.id.get().is_empty() || file.id.get().contains(char::is_whitespace) {
            let word = file.id.get().split_whitespace().collect::<Vec<_>>().join("-");
            let word = if word.is_empty() { "my-scenario" } else { &word };
            return Err(self.complain(&file.id, "an id is a word").help(format!("write it like \"{word}\"")));
        }

        let half = file.path.rtt.as_ref().map(|rtt| self.not_negative(rtt)).transpose()?.map(|rtt| rtt / 2);
        let mut hops = self.way(file.path.forward.as_ref(), "forward", half)?;
        let forward_hops = hops.len();
        hops.extend(self.way(file.path.reverse.as_ref(), "reverse", half)?);
        for (index, hop) in hops.iter().enumerate() {
            if hops[..index].iter().any(|other| other.id == hop.id) {
                let message = format!("two hops are called `{}`", hop.id);
                let written = [&file.path.forward, &file.path.reverse].into_iter().flatten();
                let hops = written.filter_map(|way| way.hops.as_ref()).flat_map(|hops| hops.get());
                let named = hops.filter_map(|h| h.id.as_ref()).rfind(|id| *id.get() == hop.id);
                let problem = match named {
                    Some(place) => self.complain(place, message),
                    None => Problem::of(&self.origin.name, self.text, message),
                };
                return Err(problem.help("results name hops by `id`; give each a name of its own"));
            }
        }
        let end = Time::ZERO + duration;
        let bottleneck = (0..forward_hops)
            .min_by_key(|h| {
                hops[*h].capacity.as_ref().map_or(DataSize::from_bytes(u64::MAX), |c| c.volume(Time::ZERO, end))
            })
            .unwrap_or(0);

        if file.flow.is_empty() {
            let problem = Problem::of(&self.origin.name, self.text, "a scenario needs at least one [[flow]]");
            return Err(problem.help("add [[flow]] with id = \"video\" and controller = \"gcc-2016\""));
        }
        let mut flows: Vec<FlowPlan> = Vec::new();
        for flow in &file.flow {
            let flow = self.flow(flow, &hops, forward_hops, end)?;
            if flows.iter().any(|other| other.id == flow.id) {
                let place = &file.flow[flows.len()].get().id;
                let problem = self.complain(place, format!("two flows are called `{}`", flow.id));
                return Err(problem.help("results name flows by `id`; give each a name of its own"));
            }
            flows.push(flow);
        }

        let measure = self.measure(&file)?;
        let flow_index = |place: &Option<Placed<String>>, resolver: &Self| -> Checked<Option<usize>> {
            let Some(place) = place else { return Ok(None) };
            let names: Vec<&str> = flows.iter().map(|f| f.id.as_str()).collect();
            match names.iter().position(|n| n == place.get()) {
                Some(index) => Ok(Some(index)),
                None => {
                    let problem = resolver.complain(place, format!("no flow `{}`", place.get()));
                    Err(problem.help(suggestion(place.get(), &names)))
                }
            }
        };
        let mut expects = Vec::new();
        for e in &file.expect {
            let (metric, window) = (self.metric(&e.metric)?, self.window(&e.window, end)?);
            let published = *e.published.get();
            if !published.is_finite() {
                let problem = self.complain(&e.published, "a published value is a number");
                return Err(problem.help("write it in the metric's unit; `paceline list metrics` shows units"));
            }
            expects.push(Expect { metric, flow: flow_index(&e.flow, &self)?, window, published });
        }
        let mut asserts = Vec::new();
        for a in &file.assert {
            let (metric, window) = (self.metric(&a.metric)?, self.window(&a.window, end)?);
            let bounds = *a.bounds.get();
            if bounds.0.is_nan() || bounds.1.is_nan() || bounds.0 > bounds.1 {
                let problem = self.complain(&a.bounds, "bounds are [lowest, highest]");
                return Err(problem.help(match bounds.0 > bounds.1 {
                    true => format!("write [{:?}, {:?}]", bounds.1, bounds.0),
                    false => "-inf and inf stand for no bound".to_owned(),
                }));
            }
            asserts.push(Assert { id: a.id.clone(), metric, flow: flow_index(&a.flow, &self)?, window, bounds });
        }
        self.notes.push(format!(
            "rates and sizes count whole IP packets: {} of IP and UDP headers on each, and RTP with its extensions",
            IP_UDP_HEADERS
        ));
        let (id, title, source) = (file.id.get().clone(), file.title, file.source);
        let notes = self.notes;
        Ok(Plan {
            id,
            title,
            source,
            duration,
            repeats,
            hops,
            forward_hops,
            bottleneck,
            flows,
            measure,
            expects,
            asserts,
            notes,
        })
    }

    // ---- path

    fn way(&mut self, way: Option<&Way>, name: &str, half_rtt: Option<TimeDelta>) -> Checked<Vec<HopPlan>> {
        let none = Hop { id: None, capacity: None, queue: None, delay: None, jitter: None, loss: None };
        let Some(way) = way else { return Ok(vec![self.hop(&none, name.to_owned(), half_rtt)?]) };
        let short = Hop {
            capacity: way.capacity.clone(),
            queue: way.queue.clone(),
            delay: way.delay.clone(),
            jitter: way.jitter.clone(),
            loss: way.loss.clone(),
            ..none
        };
        let Some(hops) = &way.hops else { return Ok(vec![self.hop(&short, name.to_owned(), half_rtt)?]) };
        let beside = [
            way.capacity.as_ref().map(Placed::span),
            way.queue.as_ref().map(Placed::span),
            way.delay.as_ref().map(Placed::span),
            way.jitter.as_ref().map(Placed::span),
            way.loss.as_ref().map(Placed::span),
        ];
        if let Some(span) = beside.into_iter().flatten().next() {
            let message = "with `hops`, nothing may stand beside it";
            return Err(Problem::at(&self.origin.name, self.text, span, message).help("move it into a hop"));
        }
        let (place, hops) = (hops, hops.get());
        if hops.is_empty() {
            let problem = self.complain(place, format!("path.{name}.hops has no hop"));
            return Err(problem.help("leave the key out for one unlimited hop"));
        }
        // The first hop carries the delay that nobody claims.
        let claimed = hops.iter().any(|h| h.delay.is_some());
        let mut plans = Vec::new();
        for (index, hop) in hops.iter().enumerate() {
            let id = hop.id.as_ref().map_or_else(|| format!("{name}/{index}"), |id| id.get().clone());
            let delay = half_rtt.filter(|_| index == 0 && !claimed);
            plans.push(self.hop(hop, id, delay)?);
        }
        Ok(plans)
    }

    fn hop(&mut self, hop: &Hop, id: String, delay: Option<TimeDelta>) -> Checked<HopPlan> {
        let capacity = hop.capacity.as_ref().map(|c| self.capacity(c, &id)).transpose()?;
        let queue = self.queue(hop.queue.as_ref(), capacity.as_ref(), &id)?;
        let delay = match &hop.delay {
            Some(place) => {
                let schedule = self.schedule(place, place.get(), |d| Ok(*d))?;
                if schedule.points().iter().any(|(_, d)| *d < TimeDelta::ZERO) {
                    return Err(self.complain(place, "a delay is not negative").help("0 ms is the least"));
                }
                schedule
            }
            None => Schedule::constant(delay.unwrap_or(TimeDelta::ZERO)),
        };
        let jitter = hop.jitter.as_ref().map(|j| self.jitter(j)).transpose()?;
        let loss = match &hop.loss {
            Some(place) => self.schedule(place, place.get(), |l| self.loss(l))?,
            None => Schedule::constant(LossModel::NONE),
        };
        Ok(HopPlan { id, capacity, queue, delay, jitter, loss })
    }

    fn capacity(&mut self, place: &Placed<CapacityValue>, id: &str) -> Checked<Capacity> {
        match place.get() {
            CapacityValue::Rates(rates) => {
                let schedule = self.schedule(place, rates, |r| Ok(*r))?;
                if schedule.points().iter().all(|(_, r)| r.is_zero()) {
                    return Err(self
                        .complain(place, "a capacity of nothing carries nothing")
                        .help("leave the key out for an unlimited hop"));
                }
                Capacity::rates(schedule, End::Hold)
                    .map_err(|e| self.complain(place, e.to_string()).help("write it like \"1 Mbps\""))
            }
            CapacityValue::Trace(table) => self.trace(table, id),
        }
    }

    fn trace(&mut self, table: &TraceTable, id: &str) -> Checked<Capacity> {
        let file = table.trace.get();
        let text = self.origin.read(file).map_err(|e| self.complain(&table.trace, e).help(FILES))?;
        let direction = match table.direction {
            Some(TraceDirection::Uplink) => trace::Direction::Uplink,
            Some(TraceDirection::Downlink) | None => trace::Direction::Downlink,
        };
        let trace = Trace::read(&text, direction).map_err(|e| {
            let message = format!("{file}, line {}: {} (`{}`)", e.line, e.cause, e.text);
            self.complain(&table.trace, message).help(e.hint)
        })?;
        let end = match (table.end, trace.end) {
            (Some(TraceEnd::Hold), _) => End::Hold,
            (Some(TraceEnd::Loop), trace::End::Loop { period }) => End::Loop(period),
            (Some(TraceEnd::Loop), trace::End::Hold) if trace.duration().is_positive() => End::Loop(trace.duration()),
            (Some(TraceEnd::Loop), trace::End::Hold) => {
                let problem = self.complain(&table.trace, "a trace of one entry has no length to loop over");
                return Err(problem.help("write end = \"hold\""));
            }
            (None, trace::End::Loop { period }) => End::Loop(period),
            (None, trace::End::Hold) => End::Hold,
        };
        let what = if matches!(end, End::Loop(_)) { "loops" } else { "holds its last value" };
        self.notes.push(format!("{id}: {}; at its end it {what}", trace.describe()));
        let capacity = match trace.shape {
            Shape::Rates(points) => {
                let points = points.into_iter().map(|(t, r)| (Time::ZERO + t, r)).collect();
                let schedule = Schedule::new(points).expect("a trace's times start at 0 and increase");
                Capacity::rates(schedule, end)
            }
            Shape::Opportunities { at, bytes_each } => Capacity::opportunities(at, bytes_each, end),
        };
        capacity.map_err(|e| self.complain(&table.trace, format!("{file}: {e}")).help(FORMATS))
    }

    fn queue(&mut self, place: Option<&Placed<Queue>>, capacity: Option<&Capacity>, id: &str) -> Checked<QueuePlan> {
        let Some(place) = place else {
            return Ok(QueuePlan::DropTail(DropTailLimit::DrainTime(QUEUE_LIMIT)));
        };
        let queue = place.get();
        if let Some(name) = queue.discipline.as_ref().filter(|d| DISCIPLINES.iter().all(|(n, _)| n != d.get())) {
            let known: Vec<&str> = DISCIPLINES.iter().map(|(n, _)| *n).collect();
            let problem = self.complain(name, format!("no queue discipline `{}`", name.get()));
            return Err(problem.help(suggestion(name.get(), &known)));
        }
        let limit = match *queue.limit.get() {
            Limit::Bytes(bytes) => DropTailLimit::Bytes(bytes),
            Limit::Packets(packets) => DropTailLimit::Packets(packets),
            Limit::Time(time) if queue.follows_capacity.unwrap_or(true) => DropTailLimit::DrainTime(time),
            Limit::Time(time) => {
                let Some(capacity) = capacity else {
                    let problem = self.complain(&queue.limit, "a drain time needs a capacity to drain at");
                    return Err(problem.help("give the hop a `capacity`, or write the limit like \"60 KB\""));
                };
                // An hour's mean: of a constant, the constant; of a trace, the trace's.
                let mean = Rate::of(capacity.volume(Time::ZERO, Time::from_secs(3600)), TimeDelta::from_secs(3600));
                DropTailLimit::Bytes(mean * time)
            }
        };
        let nothing = match limit {
            DropTailLimit::Bytes(bytes) => bytes < DataSize::from_bytes(1500),
            DropTailLimit::Packets(packets) => packets == 0,
            DropTailLimit::DrainTime(time) => !time.is_positive(),
        };
        if nothing {
            let problem = self.complain(&queue.limit, "a queue must hold at least one packet of 1500 bytes");
            return Err(problem.help("for the shortest queue write \"1 packet\""));
        }
        if let DropTailLimit::DrainTime(time) = limit
            && capacity.is_some()
        {
            self.notes.push(format!("{id}: the queue's limit of {time} follows each change of capacity"));
        }
        Ok(QueuePlan::DropTail(limit))
    }

    fn jitter(&self, place: &Placed<JitterTable>) -> Checked<Jitter> {
        let table = place.get();
        let std = *table.std.get();
        if !std.is_positive() {
            let problem = self.complain(&table.std, "a standard deviation is more than nothing");
            return Err(problem.help("leave `jitter` out for none"));
        }
        let limit = table.limit.as_ref().map_or(std * 3, |l| *l.get());
        if let Some(place) = table.limit.as_ref().filter(|l| !l.get().is_positive()) {
            let problem = self.complain(place, "the largest jitter is more than nothing");
            return Err(problem.help("leave `limit` out for three standard deviations"));
        }
        let order = match table.order {
            Some(Order::Reorder) => JitterOrder::Reorder,
            Some(Order::Keep) | None => JitterOrder::Keep,
        };
        Ok(Jitter { std, limit, order })
    }

    fn loss(&self, loss: &Loss) -> Checked<LossModel> {
        let table = match loss {
            Loss::Fraction(probability) => return Ok(LossModel::Bernoulli { probability: *probability }),
            Loss::Model(table) => table,
        };
        let model = table.model.get().as_str();
        let numbers = [
            ("probability", &table.probability),
            ("to_bad", &table.to_bad),
            ("to_good", &table.to_good),
            ("good", &table.good),
            ("bad", &table.bad),
        ];
        let takes: &[&str] = match model {
            "bernoulli" => &["probability"],
            "gilbert-elliott" => &["to_bad", "to_good", "good", "bad"],
            _ => {
                let known: Vec<&str> = LossModel::NAMES.iter().map(|(n, _)| *n).collect();
                let problem = self.complain(&table.model, format!("no loss model `{model}`"));
                return Err(problem.help(suggestion(model, &known)));
            }
        };
        for (key, value) in numbers {
            if let Some(place) = value.as_ref().filter(|_| !takes.contains(&key)) {
                let problem = self.complain_of_key(key, place, format!("the loss model `{model}` has no `{key}`"));
                return Err(problem.help(suggestion(key, takes)));
            }
        }
        let needed = |key: &str, value: &Option<Placed<Fraction>>| match value {
            Some(place) => Ok(*place.get()),
            None => {
                let problem = self.complain(&table.model, format!("the loss model `{model}` needs `{key}`"));
                Err(problem.help(format!("add `{key} = \"1 %\"`")))
            }
        };
        Ok(match model {
            "bernoulli" => LossModel::Bernoulli { probability: needed("probability", &table.probability)? },
            _ => LossModel::GilbertElliott {
                to_bad: needed("to_bad", &table.to_bad)?,
                to_good: needed("to_good", &table.to_good)?,
                good: get(&table.good, Fraction::ZERO),
                bad: get(&table.bad, Fraction::ONE),
                is_bad: false,
            },
        })
    }

    fn schedule<P, T, U>(
        &self,
        place: &Placed<P>,
        timed: &Timed<T>,
        convert: impl Fn(&T) -> Checked<U>,
    ) -> Checked<Schedule<U>> {
        match timed {
            Timed::Constant(value) => convert(value).map(Schedule::constant),
            Timed::Schedule(points) => {
                let first = points.first().map(|(t, _)| *t);
                let points = points.iter().map(|(t, v)| Ok((*t, convert(v)?))).collect::<Checked<Vec<_>>>()?;
                let back = points.windows(2).find(|pair| pair[1].0 <= pair[0].0).map(|pair| (pair[0].0, pair[1].0));
                let complaint = || {
                    let message = match back {
                        Some((before, after)) => format!("times must increase, and {after} comes after {before}"),
                        None => "times must start at 0s".to_owned(),
                    };
                    self.complain(place, message).help("write it like [[\"0s\", …], [\"50s\", …]]")
                };
                if first != Some(Time::ZERO) {
                    return Err(complaint());
                }
                Schedule::new(points).ok_or_else(complaint)
            }
        }
    }

    // ---- flows

    fn flow(&mut self, place: &Placed<Flow>, hops: &[HopPlan], forward_hops: usize, end: Time) -> Checked<FlowPlan> {
        let flow = place.get();
        if let Some(kind) = flow.kind.as_ref().filter(|k| k.get() != "media") {
            let problem = self.complain(kind, format!("no kind of flow `{}`", kind.get()));
            return Err(problem.help(suggestion(kind.get(), &["media"])));
        }
        let start = flow.start.as_ref().map_or(Time::ZERO, |s| *s.get());
        let stop = flow.stop.as_ref().map_or(end, |s| *s.get());
        if let Some(place) = flow.stop.as_ref().filter(|_| stop <= start) {
            let problem = self.complain(place, format!("flow `{}` stops before it starts", flow.id.get()));
            return Err(problem.help(format!("it starts at {start}; `stop` must be later, or absent for the end")));
        }
        if start >= end {
            let place = flow.start.as_ref().expect("it was written");
            let problem = self.complain(place, format!("flow `{}` starts after the run has ended", flow.id.get()));
            return Err(problem.help(format!("the run lasts {}", end - Time::ZERO)));
        }
        let streams = self.streams(place)?;
        let controller = self.controller(flow, &streams)?;
        let (direction, forward) = match flow.direction {
            Some(FlowDirection::Reverse) => (Direction::Reverse, false),
            Some(FlowDirection::Forward) | None => (Direction::Forward, true),
        };
        let ways = [0..forward_hops, forward_hops..hops.len()];
        let media_route = self.route(&flow.route, hops, ways[usize::from(!forward)].clone())?;
        let report_route = self.route(&flow.report_route, hops, ways[usize::from(forward)].clone())?;
        let access_delay = flow.access_delay.as_ref().map_or(Ok(TimeDelta::ZERO), |delay| self.not_negative(delay))?;
        let propagation =
            |route: &[usize]| route.iter().fold(access_delay, |sum, hop| sum + hops[*hop].delay.points()[0].1);
        let positive = |place: &Option<Placed<TimeDelta>>, default| match place {
            Some(p) if !p.get().is_positive() => {
                let problem = self.complain(p, "this time must be more than nothing");
                Err(problem.help(format!("leave the key out for {default}")))
            }
            Some(p) => Ok(*p.get()),
            None => Ok(default),
        };
        let drift = flow.clock.as_ref().and_then(|c| c.drift_ppm.as_ref());
        if let Some(place) = drift.filter(|d| !(-100_000.0..=100_000.0).contains(d.get())) {
            let problem = self.complain(place, "a clock drifts by at most 100000 ppm");
            return Err(problem.help("crystals are within 100 ppm of each other"));
        }
        Ok(FlowPlan {
            id: flow.id.get().clone(),
            direction,
            start,
            stop: stop.min(end),
            controller,
            start_rate: flow.start_rate.as_ref().map_or(START_RATE, |r| *r.get()),
            min_rate: flow.min_rate.as_ref().map_or(MIN_RATE, |r| *r.get()),
            base_rtt: propagation(&media_route) + propagation(&report_route),
            media_route,
            report_route,
            access_delay,
            clock: ClockPlan {
                offset: flow.clock.as_ref().and_then(|c| c.offset),
                drift_ppb: drift.map_or(0, |d| (d.get() * 1000.0) as i64),
            },
            streams,
            rtcp_interval: positive(&flow.rtcp_interval, RTCP_INTERVAL)?,
            pacer_limit: positive(&flow.pacer_limit, PACER_LIMIT)?,
            retransmit: flow.retransmit.unwrap_or(true),
        })
    }

    fn route(
        &self,
        names: &Option<Vec<Placed<String>>>,
        hops: &[HopPlan],
        way: std::ops::Range<usize>,
    ) -> Checked<Vec<usize>> {
        let Some(names) = names else { return Ok(way.collect()) };
        let known: Vec<&str> = hops[way.clone()].iter().map(|h| h.id.as_str()).collect();
        let find = |place: &Placed<String>| match known.iter().position(|k| k == place.get()) {
            Some(index) => Ok(way.start + index),
            None => {
                let problem = self.complain(place, format!("no hop `{}` on this way", place.get()));
                Err(problem.help(suggestion(place.get(), &known)))
            }
        };
        names.iter().map(find).collect()
    }

    fn controller(&self, flow: &Flow, streams: &[StreamPlan]) -> Checked<ControllerPlan> {
        let name = flow.controller.get();
        let Some(entry) = self.registry.get(name) else {
            let known: Vec<&str> = self.registry.iter().map(|e| e.name()).collect();
            return Err(self
                .complain(&flow.controller, format!("no controller `{name}`"))
                .help(suggestion(name, &known)));
        };
        let config: Vec<(String, f64)> = flow.config.iter().map(|(k, v)| (k.clone(), *v.get())).collect();
        let setup = Setup {
            start: flow.start_rate.as_ref().map_or(START_RATE, |r| *r.get()),
            min: flow.min_rate.as_ref().map_or(MIN_RATE, |r| *r.get()),
            max: streams.iter().map(|s| with_headers(s.source.range().1)).sum(),
        };
        entry.build(&setup, &config).map_err(|error| match &error {
            ConfigError::UnknownField { name, known, .. } => {
                self.complain_of_key(name, &flow.config[name], error.to_string()).help(suggestion(name, known))
            }
            ConfigError::OutOfRange { name, unit, .. } => {
                let default = entry.fields().iter().find(|f| f.name == *name).map_or(0.0, |f| f.default);
                let problem = self.complain(&flow.config[*name], error.to_string());
                problem.help(format!("its default is {}", format!("{default} {unit}").trim_end()))
            }
            ConfigError::Setup { .. } => {
                let place = flow.min_rate.as_ref().or(flow.start_rate.as_ref());
                let problem = match (place, &flow.encoder) {
                    (Some(place), _) => self.complain(place, error.to_string()),
                    (None, Some(encoder)) => self.complain(encoder, error.to_string()),
                    (None, None) => self.complain(&flow.controller, error.to_string()),
                };
                problem.help("change `min_rate` or `start_rate` of the flow, or the `max` of its sources")
            }
            _ => {
                self.complain(&flow.controller, error.to_string()).help("`paceline list controllers --json` shows all")
            }
        })?;
        Ok(ControllerPlan { name: name.clone(), config })
    }

    fn streams(&mut self, place: &Placed<Flow>) -> Checked<Vec<StreamPlan>> {
        let flow = place.get();
        if let Some(short) = flow.encoder.as_ref().or(flow.audio.as_ref()).filter(|_| !flow.stream.is_empty()) {
            let problem = self.complain(short, "a flow says its streams in short or at length, not both");
            return Err(problem.help("move it into a [[flow.stream]]"));
        }
        let mut streams: Vec<StreamPlan> = Vec::new();
        if flow.stream.is_empty() {
            let empty = SourceTable::default();
            let table = flow.encoder.as_ref().map_or(&empty, |e| e.get());
            streams.push(self.stream("video", 1.0, table, flow.encoder.as_ref(), "encoder")?);
            if let Some(audio) = &flow.audio {
                streams.push(self.stream("audio", 1.0, audio.get(), Some(audio), "audio")?);
            }
        }
        for stream in &flow.stream {
            let s = stream.get();
            let priority = s.priority.as_ref().map_or(1.0, |p| *p.get());
            if let Some(place) = s.priority.as_ref().filter(|p| !(p.get().is_finite() && *p.get() > 0.0)) {
                return Err(self.complain(place, "a priority is a number above 0").help("1 is the usual weight"));
            }
            if streams.iter().any(|other| other.id == *s.id.get()) {
                let problem = self.complain(&s.id, format!("two streams are called `{}`", s.id.get()));
                return Err(problem.help("give each a name of its own"));
            }
            streams.push(self.stream(s.id.get(), priority, s.encoder.get(), Some(&s.encoder), "encoder")?);
        }
        if streams.len() > 8 {
            return Err(self.complain(&flow.id, "a flow has at most 8 streams").help("make two flows of it"));
        }
        Ok(streams)
    }

    fn stream(
        &mut self,
        id: &str,
        priority: f64,
        table: &SourceTable,
        place: Option<&Placed<SourceTable>>,
        default: &str,
    ) -> Checked<StreamPlan> {
        let implied = if table.frames.is_some() { "frames" } else { default };
        let name = table.source.as_ref().map_or(implied, |s| s.get().as_str());
        let source = match name {
            "ideal" => SourcePlan::Ideal(ideal(table)),
            "encoder" => SourcePlan::Encoder(encoder(table)),
            "frames" => self.frames(table, place)?,
            "audio" => SourcePlan::Audio(audio(table)),
            _ => {
                let place = table.source.as_ref().expect("every default is known");
                let known: Vec<&str> = SourcePlan::NAMES.iter().map(|(n, _)| *n).collect();
                let problem = self.complain(place, format!("no source `{name}`"));
                return Err(problem.help(suggestion(name, &known)));
            }
        };
        if let Some((key, span)) = table.spans().into_iter().find(|(key, _)| !reads(name, key)) {
            let readers: Vec<_> = SourcePlan::NAMES.iter().filter(|(n, _)| reads(n, key)).collect();
            let list = readers.iter().map(|(n, _)| format!("`{n}`")).collect::<Vec<_>>().join(", ");
            let message = format!("a source of `{name}` does not read `{key}`");
            let problem = Problem::at(&self.origin.name, self.text, span, message);
            return Err(problem.help(format!("take it out, or write source = one of {list}")));
        }
        try_source(&source).map_err(|error| {
            let (key, message) = complaint_of(error);
            let written = table.spans().into_iter().find(|(k, _)| *k == key).map(|(_, span)| span);
            let problem = match written.or_else(|| place.map(Placed::span)) {
                Some(span) => Problem::at(&self.origin.name, self.text, span, message),
                None => Problem::of(&self.origin.name, self.text, message),
            };
            problem.help(match key {
                "fps" => "30 is usual",
                "min" | "max" => "`min` and `max` bound the encoded media; if absent they are 50 kbps and 2 Mbps",
                _ => "leave the key out for its default; `paceline schema` says what each is",
            })
        })?;
        let kind = if matches!(source, SourcePlan::Audio(_)) { MediaKind::Audio } else { MediaKind::Video };
        Ok(StreamPlan { id: id.to_owned(), kind, priority, source })
    }

    fn frames(&mut self, table: &SourceTable, place: Option<&Placed<SourceTable>>) -> Checked<SourcePlan> {
        let Some(folder) = &table.frames else {
            let message = "a source of `frames` needs the folder of recorded frame sizes";
            let problem = match (&table.source, place) {
                (Some(place), _) => self.complain(place, message),
                (None, Some(place)) => self.complain(place, message),
                (None, None) => Problem::of(&self.origin.name, self.text, message),
            };
            return Err(problem.help("add frames = \"folder\""));
        };
        let files = self.origin.read_folder(folder.get()).map_err(|e| self.complain(folder, e).help(FILES))?;
        /// Recordings by rate, for each resolution (as a number first, to find the highest).
        type Ladders = BTreeMap<(u32, String), Vec<(Rate, Vec<u32>)>>;
        let mut ladders = Ladders::new();
        for (name, text) in &files {
            let Some((resolution, rate)) = ladder_rung(name) else { continue };
            let sizes = parse_frame_sizes(text).map_err(|e| {
                let message = format!("{}/{name}, {e}", folder.get());
                self.complain(folder, message).help("a line is: index type X timestamp(s) size(bytes)")
            })?;
            let lines: u32 = resolution.trim_end_matches('p').parse().unwrap_or(0);
            ladders.entry((lines, resolution.to_owned())).or_default().push((rate, sizes));
        }
        let known: Vec<String> = ladders.keys().map(|(_, r)| r.clone()).collect();
        let rungs = match &table.resolution {
            Some(wanted) => {
                let known: Vec<&str> = known.iter().map(String::as_str).collect();
                let found = ladders.into_iter().find(|((_, r), _)| r == wanted.get());
                found.ok_or_else(|| {
                    let problem = self.complain(wanted, format!("no frame sizes of resolution `{}`", wanted.get()));
                    problem.help(suggestion(wanted.get(), &known))
                })?
            }
            None => ladders.pop_last().ok_or_else(|| {
                let problem = self.complain(folder, format!("{} holds no frame sizes", folder.get()));
                problem.help("files are called <content>_<resolution>_<kbps>.txt, such as talk_720p_1000.txt")
            })?,
        };
        let ((_, resolution), rungs) = rungs;
        self.notes.push(format!(
            "frame sizes: {} rungs of {resolution} from {}, each scaled to its nominal rate",
            rungs.len(),
            folder.get()
        ));
        let ladder = Ladder::new(rungs).map_err(|e| {
            let problem = self.complain(folder, format!("{}: {e}", folder.get()));
            problem.help("every file of one resolution holds the same frames, encoded at another rate")
        })?;
        let standard = FrameTraceConfig::default();
        let (min, max) = range(table);
        Ok(SourcePlan::Frames(
            FrameTraceConfig {
                fps: get(&table.fps, FPS),
                min,
                max,
                start: START_RATE.min(max).max(min),
                reaction_delay: get(&table.reaction_delay, standard.reaction_delay),
                ..standard
            },
            Arc::new(ladder),
        ))
    }

    // ---- measures

    fn measure(&self, file: &ScenarioFile) -> Checked<Measure> {
        let unknown = |place: &Placed<String>, known: &[&str]| {
            self.complain(place, format!("no way to measure called `{}`", place.get()))
                .help(suggestion(place.get(), known))
        };
        let queue = match file.measure.queue.as_ref().map(|q| (q, q.get().as_str())) {
            None | Some((_, "packet")) => QueueMeasure::Packet,
            Some((_, "rtcp")) => QueueMeasure::Rtcp,
            Some((_, "one-way")) => QueueMeasure::OneWay,
            Some((place, _)) => return Err(unknown(place, &["packet", "rtcp", "one-way"])),
        };
        let loss = match file.measure.loss.as_ref().map(|l| (l, l.get().as_str())) {
            None | Some((_, "sent")) => LossMeasure::Sent,
            Some((_, "received")) => LossMeasure::Received,
            Some((place, _)) => return Err(unknown(place, &["sent", "received"])),
        };
        Ok(Measure { queue, loss })
    }

    fn metric(&self, place: &Placed<String>) -> Checked<String> {
        if metrics::find(place.get()).is_some() {
            return Ok(place.get().clone());
        }
        let known: Vec<&str> = METRICS.iter().map(|m| m.id).collect();
        let problem = self.complain(place, format!("no metric `{}`", place.get()));
        Err(problem.help(suggestion(place.get(), &known)))
    }

    fn window(&self, place: &Option<Placed<(Time, Time)>>, end: Time) -> Checked<Window> {
        let Some(place) = place else { return Ok(Window { from: Time::ZERO, to: end }) };
        let (from, to) = *place.get();
        if from >= to || to > end {
            let problem = self.complain(place, "a window is [from, to] within the run");
            return Err(problem.help(format!("the run lasts {}", end - Time::ZERO)));
        }
        Ok(Window { from, to })
    }
}

/// Which keys a source reads; the others would be ignored, which nobody means.
fn reads(source: &str, key: &str) -> bool {
    match source {
        "audio" => matches!(key, "source" | "rate"),
        "ideal" => matches!(key, "source" | "fps" | "min" | "max"),
        "frames" => {
            matches!(key, "source" | "fps" | "min" | "max" | "reaction_delay" | "frames" | "resolution")
        }
        _ => !matches!(key, "rate" | "frames" | "resolution"),
    }
}

/// A source's complaint in the words of the scenario: the key, and what is wrong with it.
fn complaint_of(error: SourceError) -> (&'static str, String) {
    let key = match error.field {
        "burst_frames" => "key_frames",
        "burst_ratio" => "key_ratio",
        "size_scale" => "size_noise",
        "interval_scale" => "interval_noise",
        "key_frame_period" => "key_period",
        "start" => "min",
        field => field,
    };
    let expected = error.expected.replace("`burst_frames`", "`key_frames`");
    (key, format!("`{key}` is {}, expected {expected}", error.value))
}

fn get<T: Copy>(place: &Option<Placed<T>>, default: T) -> T {
    place.as_ref().map_or(default, |p| *p.get())
}

fn range(table: &SourceTable) -> (Rate, Rate) {
    (get(&table.min, SOURCE_MIN), get(&table.max, SOURCE_MAX))
}

fn ideal(table: &SourceTable) -> IdealConfig {
    let (min, max) = range(table);
    IdealConfig { fps: get(&table.fps, FPS), min, max, start: START_RATE.min(max).max(min) }
}

fn encoder(table: &SourceTable) -> EncoderConfig {
    let standard = EncoderConfig::default();
    let (min, max) = range(table);
    EncoderConfig {
        fps: get(&table.fps, FPS),
        min,
        max,
        start: START_RATE.min(max).max(min),
        reaction_delay: get(&table.reaction_delay, standard.reaction_delay),
        burst_frames: get(&table.key_frames, standard.burst_frames),
        burst_ratio: get(&table.key_ratio, standard.burst_ratio),
        size_scale: get(&table.size_noise, standard.size_scale),
        interval_scale: get(&table.interval_noise, standard.interval_scale),
        key_frame_period: table.key_period.as_ref().map(|p| *p.get()),
        ..standard
    }
}

fn audio(table: &SourceTable) -> AudioConfig {
    let standard = AudioConfig::default();
    AudioConfig { rate: get(&table.rate, standard.rate), ..standard }
}

/// Builds the source once, to hear its complaint while there is still a place to point at.
fn try_source(source: &SourcePlan) -> Result<(), SourceError> {
    let random = Streams::new(0).stream("trial");
    match source.clone() {
        SourcePlan::Ideal(c) => Ideal::new(c, Time::ZERO).map(|_| ()),
        SourcePlan::Encoder(c) => Encoder::new(c, Time::ZERO, random).map(|_| ()),
        SourcePlan::Frames(c, ladder) => FrameTrace::new(c, ladder, Time::ZERO).map(|_| ()),
        SourcePlan::Audio(c) => Audio::new(c, Time::ZERO).map(|_| ()),
    }
}
