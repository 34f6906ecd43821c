// SPDX-License-Identifier: MIT OR Apache-2.0
//! Aggregates events for the page: one point per 100 ms, kept for six minutes.
//!
//! Events arrive unordered. A point is closed when the newest event is [`GRACE`] past its end. Later events of that
//! point, such as the frames that a browser reports four times a second, count in the first open point. The stored
//! results contain every event at its own time.

use paceline_netsim::link::LossModel;
use paceline_netsim::link::queue::QueueLimit;
use paceline_netsim::plan::{HopPlan, Plan};
use paceline_netsim::records::{DropReason, EventObserver, EventRecord, HalfName, PacketRecord, RunHeader};
use paceline_units::{Rate, Time, TimeDelta};
use serde::Serialize;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Length of a point.
pub const POINT: TimeDelta = TimeDelta::from_millis(100);

/// Largest delay of packet events on an idle machine.
const GRACE: TimeDelta = TimeDelta::from_millis(150);

/// Closed points kept: six minutes.
const MAX_POINTS: usize = 3600;

/// Largest number of open points. An event further ahead closes older points.
const MAX_OPEN: usize = 50;

/// Counters of one 100 ms interval and the state of the link at its end.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Point {
    /// End of the interval, s.
    t: f64,
    /// Capacity, bit/s; `None` if unlimited.
    capacity: Option<f64>,
    /// Propagation delay, ms.
    delay: f64,
    /// Random loss probability; `None` for a loss model with several parameters.
    loss: Option<f64>,
    /// Drain time of a full queue, ms; `None` if the queue limit has no drain time.
    queue: Option<f64>,
    /// Longest queuing delay at the hop of a packet of any flow, ms.
    waited: Option<f64>,
    /// Counters of each flow.
    flows: Vec<FlowPoint>,
}

/// Counters of a flow's data packets, without its feedback. Bytes include headers.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FlowPoint {
    sent: u64,
    received: u64,
    packets: u32,
    dropped: u32,
    /// Packets dropped by a queue, on overflow or by its AQM.
    by_queue: u32,
    /// Mean queuing delay of its packets at the hop, ms: never above `waited` of the same point.
    queued: Option<f64>,
    /// Last reported round-trip time, ms.
    rtt: Option<f64>,
    /// Target, bit/s.
    target: Option<f64>,
    /// Frames rendered, and frames dropped before them.
    frames: u32,
    lost_frames: u32,
    /// Latest value of each signal of the send half, then of the receive half.
    signals: Vec<Option<f64>>,
}

/// An open point.
#[derive(Clone, Debug, Default)]
struct Bin {
    waited: Option<TimeDelta>,
    flows: Vec<FlowBin>,
}

#[derive(Clone, Debug, Default)]
struct FlowBin {
    point: FlowPoint,
    queued: TimeDelta,
    crossed: u32,
}

/// The points of a run.
#[derive(Debug)]
pub struct LiveSeries {
    /// The plan before any link update.
    original: Plan,
    /// The plan with all link updates so far.
    plan: Plan,
    /// Number of send half signals of each flow: the offset of its receive half signals.
    offsets: Vec<usize>,
    /// Number of signals of each flow.
    signals: Vec<usize>,
    open: VecDeque<Bin>,
    newest: Time,
    points: VecDeque<Arc<str>>,
    /// Points closed since the start of the run.
    closed: u64,
    /// Last known values of each flow.
    carried: Vec<FlowPoint>,
}

impl LiveSeries {
    fn new(plan: &Plan, header: &RunHeader) -> Self {
        let offsets = header.signals.iter().map(|[send, _]| send.len()).collect();
        let signals: Vec<usize> = header.signals.iter().map(|halves| halves.iter().map(Vec::len).sum()).collect();
        let carried = signals.iter().map(|count| FlowPoint { signals: vec![None; *count], ..FlowPoint::default() });
        Self {
            carried: carried.collect(),
            original: plan.clone(),
            plan: plan.clone(),
            offsets,
            signals,
            open: VecDeque::new(),
            newest: Time::ZERO,
            points: VecDeque::new(),
            closed: 0,
        }
    }

    /// Returns the kept points from number `from` on, as JSON, and the number of the next point.
    pub fn since(&self, from: u64) -> (Vec<Arc<str>>, u64) {
        let kept = self.closed - self.points.len() as u64;
        let skip = from.max(kept) - kept;
        (self.points.iter().skip(skip as usize).cloned().collect(), self.closed)
    }

    fn record(&mut self, event: &EventRecord) {
        let at = event.at();
        if at < Time::ZERO {
            return;
        }
        self.newest = self.newest.max(at);
        if let EventRecord::LinkUpdated { at, hop, to } = *event {
            self.plan.update_hop(&self.original, at, hop.into(), to);
        }
        let bottleneck = self.plan.bottleneck;
        match *event {
            EventRecord::Sent { packet, .. } if !packet.class.is_from_receiver() => {
                self.flow(at, packet, |flow| {
                    flow.point.sent += packet.size.as_bytes();
                    flow.point.packets += 1;
                });
            }
            EventRecord::Arrived { packet, .. } if !packet.class.is_from_receiver() => {
                self.flow(at, packet, |flow| flow.point.received += packet.size.as_bytes());
            }
            EventRecord::Dropped { packet, reason, .. } if !packet.class.is_from_receiver() => {
                self.flow(at, packet, |flow| {
                    flow.point.dropped += 1;
                    flow.point.by_queue +=
                        u32::from(matches!(reason, DropReason::Overflow | DropReason::Aqm | DropReason::Purge));
                });
            }
            EventRecord::Crossed { hop, packet, waited, .. } if usize::from(hop) == bottleneck => {
                let bin = self.bin(at);
                bin.waited = bin.waited.max(Some(waited));
                if !packet.class.is_from_receiver() {
                    self.flow(at, packet, |flow| {
                        flow.queued += waited;
                        flow.crossed += 1;
                    });
                }
            }
            EventRecord::Decision { flow, target, .. } => {
                self.value(at, flow.0, |point| point.target = Some(target.as_bps_f64()));
            }
            EventRecord::RoundTrip { flow, rtt, .. } => {
                self.value(at, flow.0, |point| point.rtt = Some(round(rtt.as_millis_f64())));
            }
            EventRecord::Frame { flow, dropped, .. } => self.value(at, flow.0, |point| {
                point.frames += 1;
                point.lost_frames += u32::from(dropped);
            }),
            EventRecord::Signal { flow, half, signal, value, .. } => {
                let offset = match half {
                    HalfName::Send => 0,
                    HalfName::Receive => self.offsets[usize::from(flow.0)],
                };
                self.value(at, flow.0, |point| {
                    if let Some(slot) = point.signals.get_mut(offset + usize::from(signal)) {
                        *slot = Some(round(value));
                    }
                });
            }
            _ => {}
        }
        self.close();
    }

    fn flow(&mut self, at: Time, packet: PacketRecord, act: impl FnOnce(&mut FlowBin)) {
        act(&mut self.bin(at).flows[usize::from(packet.flow.0)]);
    }

    fn value(&mut self, at: Time, flow: u16, act: impl FnOnce(&mut FlowPoint)) {
        act(&mut self.bin(at).flows[usize::from(flow)].point);
    }

    /// Returns the open point that contains this time, or the first open one if that point is closed.
    fn bin(&mut self, at: Time) -> &mut Bin {
        let number = (at.as_nanos() / POINT.as_nanos()) as u64;
        let mut index = number.saturating_sub(self.closed) as usize;
        while index >= MAX_OPEN {
            self.close_first();
            index -= 1;
        }
        while self.open.len() <= index {
            self.open.push_back(self.empty());
        }
        &mut self.open[index]
    }

    fn empty(&self) -> Bin {
        let flow = |signals: &usize| {
            let point = FlowPoint { signals: vec![None; *signals], ..FlowPoint::default() };
            FlowBin { point, ..FlowBin::default() }
        };
        Bin { waited: None, flows: self.signals.iter().map(flow).collect() }
    }

    fn close(&mut self) {
        while Time::ZERO + POINT * (self.closed + 1) as i64 + GRACE <= self.newest {
            self.close_first();
        }
    }

    fn close_first(&mut self) {
        let bin = self.open.pop_front().unwrap_or_else(|| self.empty());
        self.closed += 1;
        let end = Time::ZERO + POINT * self.closed as i64;
        let hop = &self.plan.hops[self.plan.bottleneck];
        let flows = bin.flows.into_iter().zip(&mut self.carried).map(|(bin, carried)| {
            let mut point = bin.point;
            point.queued = (bin.crossed > 0).then(|| round(bin.queued.as_millis_f64() / f64::from(bin.crossed)));
            point.target = point.target.or(carried.target);
            point.rtt = point.rtt.or(carried.rtt);
            point.signals.iter_mut().zip(&carried.signals).for_each(|(value, before)| *value = value.or(*before));
            *carried = point.clone();
            point
        });
        let point = Point {
            t: end.as_secs_f64(),
            waited: bin.waited.map(|waited| round(waited.as_millis_f64())),
            flows: flows.collect(),
            ..link_state(hop, end)
        };
        if self.points.len() == MAX_POINTS {
            self.points.pop_front();
        }
        self.points.push_back(serde_json::to_string(&point).expect("numbers are JSON").into());
    }
}

/// Returns a point with the state of a hop at a time.
fn link_state(hop: &HopPlan, at: Time) -> Point {
    // A step exactly at the end of a point belongs to the next point.
    let at = at - TimeDelta::from_nanos(1);
    let capacity = hop.capacity.as_ref().map(|capacity| capacity.rate_at(at));
    let drain = |bits: u64| capacity.filter(|c| *c > Rate::ZERO).map(|c| round(bits as f64 / c.as_bps_f64() * 1e3));
    Point {
        capacity: capacity.map(Rate::as_bps_f64),
        delay: round(hop.delay.at(at).as_millis_f64()),
        loss: match hop.loss.at(at) {
            LossModel::Bernoulli(probability) => Some(probability.get()),
            _ => None,
        },
        queue: match hop.queue.limit {
            QueueLimit::DrainTime(time) => Some(round(time.as_millis_f64())),
            QueueLimit::Bytes(size) => drain(size.as_bits()),
            QueueLimit::Packets(_) => None,
        },
        ..Point::default()
    }
}

/// Rounds to six digits: more are not visible in a plot.
fn round(value: f64) -> f64 {
    match value.abs() {
        0.0 => 0.0,
        large if large >= 1e6 => value.round(),
        small if small < 1e-3 => (value * 1e9).round() / 1e9,
        _ => (value * 1e6).round() / 1e6,
    }
}

/// The series, shared by the run and the pages.
#[derive(Clone, Debug)]
pub struct SharedSeries(Arc<Mutex<LiveSeries>>);

impl SharedSeries {
    pub fn new(plan: &Plan, header: &RunHeader) -> Self {
        Self(Arc::new(Mutex::new(LiveSeries::new(plan, header))))
    }

    pub fn lock(&self) -> MutexGuard<'_, LiveSeries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the initial state of the bottleneck.
    pub fn initial_link_state(&self) -> Point {
        let series = self.lock();
        link_state(&series.plan.hops[series.plan.bottleneck], Time::ZERO + POINT)
    }

    /// Returns the observer that adds the events of the run.
    pub fn observer(&self) -> LiveObserver {
        LiveObserver(self.clone())
    }
}

/// Adds the events of a run to the points of its page.
#[derive(Debug)]
pub struct LiveObserver(SharedSeries);

impl EventObserver for LiveObserver {
    fn on_event(&mut self, _: &EventRecord) {}
    fn on_unordered_event(&mut self, event: &EventRecord) {
        self.0.lock().record(event);
    }
    fn wants_signals(&self) -> bool {
        true
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use paceline::Registry;
    use paceline_netsim::records::LinkUpdate;
    use paceline_netsim::records::PacketClass;
    use paceline_scenario::{Changes, Origin, load};
    use paceline_units::{DataSize, Ecn, FlowId};
    use serde_json::{Value, json};

    const CALL: &str = r#"
id = "test/watch"
title = "A call"
duration = "60s"
[path]
rtt = "50ms"
[path.forward]
capacity = "1Mbps"
queue = { discipline = "drop-tail", limit = "300ms" }
[[flow]]
id = "video"
controller = "gcc-2016"
"#;

    pub fn call() -> (Plan, RunHeader) {
        let registry = Registry::standard();
        let plan = load(&Origin::from_text("call.toml", CALL), &Changes::default(), &registry).unwrap();
        let header = plan.plan.header(&registry, "test", 1);
        (plan.plan, header)
    }

    fn ms(t: i64) -> Time {
        Time::from_millis(t)
    }

    fn packet(class: PacketClass) -> PacketRecord {
        PacketRecord { packet: 0, flow: FlowId(0), class, size: DataSize::from_bytes(1000) }
    }

    fn arrived(at: i64, delay: i64) -> EventRecord {
        let delay = TimeDelta::from_millis(delay);
        EventRecord::Arrived { at: ms(at), packet: packet(PacketClass::Media), delay, ecn: Ecn::NotEct }
    }

    fn crossed(at: i64, waited: i64) -> EventRecord {
        let (packet, waited) = (packet(PacketClass::Media), TimeDelta::from_millis(waited));
        EventRecord::Crossed { at: ms(at), hop: 0, packet, waited, left: ms(at), marked: false }
    }

    fn points(series: &LiveSeries) -> Vec<Value> {
        series.since(0).0.iter().map(|point| serde_json::from_str(point).unwrap()).collect()
    }

    #[test]
    fn aggregates_unordered_events() {
        let (plan, header) = call();
        let mut series = LiveSeries::new(&plan, &header);
        let flow = FlowId(0);
        let (target, pacing) = (Rate::from_kbps(700), Rate::from_kbps(900));
        let dropped = |at: i64, reason| {
            let packet = packet(PacketClass::Media);
            EventRecord::Dropped { at: ms(at), hop: 0, packet, reason, left: None }
        };
        for event in [
            dropped(30, DropReason::Loss),
            dropped(40, DropReason::Overflow),
            dropped(140, DropReason::Loss),
            dropped(141, DropReason::Aqm),
            dropped(240, DropReason::Loss),
            crossed(91, 4),
            crossed(95, 10),
            crossed(130, 0),
            arrived(130, 25),
            arrived(90, 35),
            EventRecord::Sent { at: ms(20), packet: packet(PacketClass::Media) },
            EventRecord::Sent { at: ms(20), packet: packet(PacketClass::ReceiverControl) },
            arrived(60, 45),
            EventRecord::Decision { at: ms(10), flow, target, pacing },
            EventRecord::Signal { at: ms(50), flow, half: HalfName::Receive, signal: 1, value: 2.5 },
            EventRecord::LinkUpdated { at: ms(150), hop: 0, to: LinkUpdate::Capacity(Rate::from_kbps(300)) },
        ] {
            series.record(&event);
        }
        assert_eq!(points(&series).len(), 0, "150 ms is less than 100 ms plus the grace time");
        series.record(&arrived(450, 25));
        let closed = points(&series);
        assert_eq!(closed.len(), 3);
        let (first, second, third) = (&closed[0]["flows"][0], &closed[1]["flows"][0], &closed[2]["flows"][0]);
        assert_eq!(
            (&closed[0]["t"], &closed[0]["capacity"], &closed[1]["capacity"]),
            (&json!(0.1), &json!(1e6), &json!(3e5))
        );
        assert_eq!((&first["sent"], &first["packets"], &first["received"]), (&json!(1000), &json!(1), &json!(2000)));
        let drops = [first, second, third].map(|flow| [&flow["dropped"], &flow["by_queue"]]);
        assert_eq!(drops, [[2, 1], [2, 1], [1, 0]]);
        assert_eq!((&first["queued"], &second["queued"], &third["queued"]), (&json!(7.0), &json!(0.0), &Value::Null));
        let longest = closed.iter().map(|point| &point["waited"]);
        assert_eq!(longest.collect::<Vec<_>>(), [&json!(10.0), &json!(0.0), &Value::Null]);
        assert_eq!((&first["target"], &third["target"]), (&json!(700e3), &json!(700e3)), "the target is carried over");
        let index = header.signals[0][0].len() + 1;
        assert_eq!((&first["signals"][index], &third["signals"][index]), (&json!(2.5), &json!(2.5)));
        assert_eq!(first["signals"].as_array().unwrap().len(), header.signals[0].iter().map(Vec::len).sum::<usize>());
        assert_eq!((series.since(2).0.len(), series.since(3).0.len(), series.since(3).1), (1, 0, 3));
        // A late event counts in the first open point.
        series.record(&arrived(90, 35));
        series.record(&arrived(550, 25));
        let closed = points(&series);
        let received: Vec<&Value> = closed.iter().map(|point| &point["flows"][0]["received"]).collect();
        assert_eq!(received, [2000, 1000, 0, 1000]);
    }

    #[test]
    fn bounds_the_number_of_points() {
        let (plan, header) = call();
        let mut series = LiveSeries::new(&plan, &header);
        series.record(&arrived(10, 25));
        series.record(&arrived(1_000_000, 25));
        let (all, next) = series.since(0);
        assert_eq!((all.len(), next), (MAX_POINTS, 9_998));
        assert!(series.open.len() <= MAX_OPEN, "{}", series.open.len());
    }
}
