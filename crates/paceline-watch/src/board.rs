//! Rows summed up for people: a point each 100 ms, of which the last minutes are kept.
//!
//! Rows come as soon as they are told, so those of one time may come a moment apart. A point is closed when the newest row is
//! [`GRACE`] past its end; what comes for it later, as what a browser is asked for four times a second, counts in the first
//! that is open. The run's results have every row at its time.

use paceline_lab::plan::{HopPlan, Plan, QueuePlan};
use paceline_lab::rows::{DropReason, HalfName, PacketRow, Row, RowSink, RunHeader};
use paceline_link::LossModel;
use paceline_link::queue::DropTailLimit;
use paceline_units::{Rate, Time, TimeDelta};
use serde::Serialize;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Length of a point.
pub const POINT: TimeDelta = TimeDelta::from_millis(100);

/// Rows of packets come this long after their time at most, unless the machine is busy.
const GRACE: TimeDelta = TimeDelta::from_millis(150);

/// Points that are kept: six minutes.
const KEPT: usize = 3600;

/// Points that are open at once at most; a row further ahead closes the others.
const OPEN: usize = 50;

/// What happened in 100 ms, and how things stood at their end.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Point {
    /// Its end, s.
    t: f64,
    /// Capacity, bit/s; none: unlimited.
    capacity: Option<f64>,
    /// Propagation delay, ms.
    delay: f64,
    /// Share lost on the wire by chance; none: by a model that is no single number.
    loss: Option<f64>,
    /// Drain time of a full queue, ms; none: it is bounded otherwise.
    queue: Option<f64>,
    /// Longest that a packet had waited at the hop, ms.
    waited: Option<f64>,
    /// Each flow.
    flows: Vec<FlowPoint>,
}

/// The same of a flow. Bytes count headers; of a flow's data, not of its reports.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FlowPoint {
    sent: u64,
    received: u64,
    packets: u32,
    dropped: u32,
    /// Those of them that a queue dropped: it was full, or its discipline did not wait for that.
    by_queue: u32,
    /// Mean one-way delay over propagation, ms.
    queued: Option<f64>,
    /// Last round-trip time that a report gave, ms.
    rtt: Option<f64>,
    /// Target, bit/s.
    target: Option<f64>,
    /// Frames rendered, and frames given up.
    frames: u32,
    lost_frames: u32,
    /// The latest value of each signal of the send half, then of the receive half.
    signals: Vec<Option<f64>>,
}

/// A point that is still open.
#[derive(Clone, Debug, Default)]
struct Bin {
    waited: Option<TimeDelta>,
    flows: Vec<FlowBin>,
}

#[derive(Clone, Debug, Default)]
struct FlowBin {
    point: FlowPoint,
    queued: TimeDelta,
    arrived: u32,
}

/// What a page is told of the run.
#[derive(Debug)]
pub struct Board {
    scenario: Plan,
    /// As the links are by now.
    plan: Plan,
    /// Signals of each flow's send half: those of its receive half come after them.
    offsets: Vec<usize>,
    /// Signals of each flow in all.
    signals: Vec<usize>,
    open: VecDeque<Bin>,
    newest: Time,
    points: VecDeque<Arc<str>>,
    /// Points closed since the run began.
    closed: u64,
    /// What is known from points before.
    carried: Vec<FlowPoint>,
}

impl Board {
    fn new(plan: &Plan, header: &RunHeader) -> Self {
        let offsets = header.signals.iter().map(|[send, _]| send.len()).collect();
        let signals: Vec<usize> = header.signals.iter().map(|halves| halves.iter().map(Vec::len).sum()).collect();
        let carried = signals.iter().map(|count| FlowPoint { signals: vec![None; *count], ..FlowPoint::default() });
        Self {
            carried: carried.collect(),
            scenario: plan.clone(),
            plan: plan.clone(),
            offsets,
            signals,
            open: VecDeque::new(),
            newest: Time::ZERO,
            points: VecDeque::new(),
            closed: 0,
        }
    }

    /// Points from number `from` on, as JSON, and the number of the next. Those that are not kept any more are left out.
    pub fn since(&self, from: u64) -> (Vec<Arc<str>>, u64) {
        let kept = self.closed - self.points.len() as u64;
        let skip = from.max(kept) - kept;
        (self.points.iter().skip(skip as usize).cloned().collect(), self.closed)
    }

    fn row(&mut self, row: &Row) {
        let at = row.at();
        if at < Time::ZERO {
            return;
        }
        self.newest = self.newest.max(at);
        if let Row::Moved { at, hop, to } = *row {
            self.plan.move_hop(&self.scenario, at, hop.into(), to);
        }
        let bottleneck = self.plan.bottleneck;
        match *row {
            Row::Sent { packet, .. } if !packet.class.goes_back() => {
                self.flow(at, packet, |flow| {
                    flow.point.sent += packet.size.as_bytes();
                    flow.point.packets += 1;
                });
            }
            Row::Arrived { packet, delay, .. } if !packet.class.goes_back() => {
                let base = self.plan.flows[usize::from(packet.flow.0)].base_owd(&self.plan, at - delay);
                self.flow(at, packet, |flow| {
                    flow.point.received += packet.size.as_bytes();
                    flow.queued += (delay - base).max(TimeDelta::ZERO);
                    flow.arrived += 1;
                });
            }
            Row::Dropped { packet, reason, .. } if !packet.class.goes_back() => {
                self.flow(at, packet, |flow| {
                    flow.point.dropped += 1;
                    flow.point.by_queue += u32::from(reason != DropReason::Loss);
                });
            }
            Row::Crossed { hop, waited, .. } if usize::from(hop) == bottleneck => {
                let bin = self.bin(at);
                bin.waited = bin.waited.max(Some(waited));
            }
            Row::Decision { flow, target, .. } => {
                self.value(at, flow.0, |point| point.target = Some(target.as_bps_f64()));
            }
            Row::RoundTrip { flow, rtt, .. } => {
                self.value(at, flow.0, |point| point.rtt = Some(round(rtt.as_millis_f64())));
            }
            Row::Frame { flow, dropped, .. } => self.value(at, flow.0, |point| {
                point.frames += 1;
                point.lost_frames += u32::from(dropped);
            }),
            Row::Signal { flow, half, signal, value, .. } => {
                let offset = match half {
                    HalfName::Send => 0,
                    HalfName::Receive => self.offsets[usize::from(flow.0)],
                };
                self.value(at, flow.0, |point| {
                    if let Some(place) = point.signals.get_mut(offset + usize::from(signal)) {
                        *place = Some(round(value));
                    }
                });
            }
            _ => {}
        }
        self.close();
    }

    fn flow(&mut self, at: Time, packet: PacketRow, act: impl FnOnce(&mut FlowBin)) {
        act(&mut self.bin(at).flows[usize::from(packet.flow.0)]);
    }

    fn value(&mut self, at: Time, flow: u16, act: impl FnOnce(&mut FlowPoint)) {
        act(&mut self.bin(at).flows[usize::from(flow)].point);
    }

    /// The open point in which a time lies; the first, if its own is closed.
    fn bin(&mut self, at: Time) -> &mut Bin {
        let number = (at.as_nanos() / POINT.as_nanos()) as u64;
        let mut index = number.saturating_sub(self.closed) as usize;
        while index >= OPEN {
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
            point.queued = (bin.arrived > 0).then(|| round(bin.queued.as_millis_f64() / f64::from(bin.arrived)));
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
            ..standing(hop, end)
        };
        if self.points.len() == KEPT {
            self.points.pop_front();
        }
        self.points.push_back(serde_json::to_string(&point).expect("numbers are JSON").into());
    }
}

/// How a hop stands at a time.
fn standing(hop: &HopPlan, at: Time) -> Point {
    // The last instant before it: a step at the end of a point belongs to the next.
    let at = at - TimeDelta::from_nanos(1);
    let capacity = hop.capacity.as_ref().map(|capacity| capacity.rate_at(at));
    let QueuePlan::DropTail { limit, .. } = hop.queue;
    let drain = |bits: u64| capacity.filter(|c| *c > Rate::ZERO).map(|c| round(bits as f64 / c.as_bps_f64() * 1e3));
    Point {
        capacity: capacity.map(Rate::as_bps_f64),
        delay: round(hop.delay.at(at).as_millis_f64()),
        loss: match hop.loss.at(at) {
            LossModel::Bernoulli { probability } => Some(probability.get()),
            LossModel::GilbertElliott { .. } => None,
        },
        queue: match limit {
            DropTailLimit::DrainTime(time) => Some(round(time.as_millis_f64())),
            DropTailLimit::Bytes(size) => drain(size.as_bits()),
            DropTailLimit::Packets(_) => None,
        },
        ..Point::default()
    }
}

/// Six digits: a picture shows no more, and JSON is shorter.
fn round(value: f64) -> f64 {
    match value.abs() {
        0.0 => 0.0,
        large if large >= 1e6 => value.round(),
        small if small < 1e-3 => (value * 1e9).round() / 1e9,
        _ => (value * 1e6).round() / 1e6,
    }
}

/// The board, as the run and the pages share it.
#[derive(Clone, Debug)]
pub struct Shared(Arc<Mutex<Board>>);

impl Shared {
    pub fn new(plan: &Plan, header: &RunHeader) -> Self {
        Self(Arc::new(Mutex::new(Board::new(plan, header))))
    }

    pub fn lock(&self) -> MutexGuard<'_, Board> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How the moved hop stands as the run begins.
    pub fn standing(&self) -> Point {
        let board = self.lock();
        standing(&board.plan.hops[board.plan.bottleneck], Time::ZERO + POINT)
    }

    /// What the run writes on it with.
    pub fn sink(&self) -> Sink {
        Sink(self.clone())
    }
}

/// Where the rows of the run go that is watched.
#[derive(Debug)]
pub struct Sink(Shared);

impl RowSink for Sink {
    fn row(&mut self, _: &Row) {}
    fn early(&mut self, row: &Row) {
        self.0.lock().row(row);
    }
    fn wants_signals(&self) -> bool {
        true
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use paceline::Registry;
    use paceline_lab::moves::Move;
    use paceline_lab::rows::PacketClass;
    use paceline_lab::scenario::{Changes, Origin, load};
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
        let header = paceline_lab::run::header(&plan, &registry, "test", 1);
        (plan, header)
    }

    fn ms(t: i64) -> Time {
        Time::from_millis(t)
    }

    fn packet(class: PacketClass) -> PacketRow {
        PacketRow { packet: 0, flow: FlowId(0), class, size: DataSize::from_bytes(1000) }
    }

    fn arrived(at: i64, delay: i64) -> Row {
        let delay = TimeDelta::from_millis(delay);
        Row::Arrived { at: ms(at), packet: packet(PacketClass::Media), delay, ecn: Ecn::NotEct }
    }

    fn points(board: &Board) -> Vec<Value> {
        board.since(0).0.iter().map(|point| serde_json::from_str(point).unwrap()).collect()
    }

    #[test]
    fn rows_are_summed_up_whatever_their_order() {
        let (plan, header) = call();
        let mut board = Board::new(&plan, &header);
        let flow = FlowId(0);
        let (target, pacing) = (Rate::from_kbps(700), Rate::from_kbps(900));
        let dropped = |at: i64, reason| {
            let packet = packet(PacketClass::Media);
            Row::Dropped { at: ms(at), hop: 0, packet, reason, left: None }
        };
        for row in [
            dropped(30, DropReason::Loss),
            dropped(40, DropReason::Overflow),
            dropped(140, DropReason::Loss),
            dropped(141, DropReason::Early),
            dropped(240, DropReason::Loss),
            arrived(130, 25),
            arrived(90, 35),
            Row::Sent { at: ms(20), packet: packet(PacketClass::Media) },
            Row::Sent { at: ms(20), packet: packet(PacketClass::ReceiverControl) },
            arrived(60, 45),
            Row::Decision { at: ms(10), flow, target, pacing },
            Row::Signal { at: ms(50), flow, half: HalfName::Receive, signal: 1, value: 2.5 },
            Row::Moved { at: ms(150), hop: 0, to: Move::Capacity(Rate::from_kbps(300)) },
        ] {
            board.row(&row);
        }
        assert_eq!(points(&board).len(), 0, "150 ms are before 100 ms and the grace");
        board.row(&arrived(450, 25));
        let told = points(&board);
        assert_eq!(told.len(), 3);
        let (first, second, third) = (&told[0]["flows"][0], &told[1]["flows"][0], &told[2]["flows"][0]);
        assert_eq!(
            (&told[0]["t"], &told[0]["capacity"], &told[1]["capacity"]),
            (&json!(0.1), &json!(1e6), &json!(3e5))
        );
        assert_eq!((&first["sent"], &first["packets"], &first["received"]), (&json!(1000), &json!(1), &json!(2000)));
        let drops = [first, second, third].map(|flow| [&flow["dropped"], &flow["by_queue"]]);
        assert_eq!(drops, [[2, 1], [2, 1], [1, 0]]);
        // 45 and 35 ms, of which 25 are propagation.
        assert_eq!((&first["queued"], &second["queued"], &third["queued"]), (&json!(15.0), &json!(0.0), &Value::Null));
        assert_eq!((&first["target"], &third["target"]), (&json!(700e3), &json!(700e3)), "it holds");
        let place = header.signals[0][0].len() + 1;
        assert_eq!((&first["signals"][place], &third["signals"][place]), (&json!(2.5), &json!(2.5)));
        assert_eq!(first["signals"].as_array().unwrap().len(), header.signals[0].iter().map(Vec::len).sum::<usize>());
        assert_eq!((board.since(2).0.len(), board.since(3).0.len(), board.since(3).1), (1, 0, 3));
        // What comes too late counts where it still can.
        board.row(&arrived(90, 35));
        board.row(&arrived(550, 25));
        let told = points(&board);
        let received: Vec<&Value> = told.iter().map(|point| &point["flows"][0]["received"]).collect();
        assert_eq!(received, [2000, 1000, 0, 1000]);
    }

    #[test]
    fn it_never_grows_beyond_what_it_keeps() {
        let (plan, header) = call();
        let mut board = Board::new(&plan, &header);
        board.row(&arrived(10, 25));
        board.row(&arrived(1_000_000, 25));
        let (all, next) = board.since(0);
        assert_eq!((all.len(), next), (KEPT, 9_998));
        assert!(board.open.len() <= OPEN, "{}", board.open.len());
    }
}
