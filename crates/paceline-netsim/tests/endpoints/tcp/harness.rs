// SPDX-License-Identifier: MIT OR Apache-2.0
//! A test network: TCP flows over paths given by functions, and a bottleneck link.

use paceline::Signals;
use paceline_netsim::flow::tcp::{
    Profile, Segment, SegmentKind, TcpConfig, TcpReceiver, TcpReceiverEvent, TcpSender, TcpSenderEvent, Workload,
};
use paceline_units::{DataSize, RandomStreams, Rate, Time, TimeDelta};
use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::rc::Rc;

pub const MS: fn(i64) -> TimeDelta = TimeDelta::from_millis;
pub const AT: fn(i64) -> Time = Time::from_millis;
pub const S: fn(i64) -> Time = Time::from_secs;

pub fn config(congestion: &'static str, profile: Profile) -> TcpConfig {
    TcpConfig { congestion, profile, ..TcpConfig::default() }
}

/// Returns the arrival times of a segment that is sent now: none, one or two.
pub type Path = Box<dyn FnMut(Time, &Segment) -> [Option<Time>; 2]>;

/// A path with a constant delay.
pub fn delay(delay: TimeDelta) -> Path {
    Box::new(move |now, _| [Some(now + delay), None])
}

pub type Link = Rc<RefCell<Bottleneck>>;

/// A link with a drop-tail queue. The packet in service is not in the queue.
pub struct Bottleneck {
    rate: Rate,
    delay: TimeDelta,
    limit: DataSize,
    /// Framing overhead per packet on this link.
    pub framing: DataSize,
    free: Time,
    /// Start of service and size of the queued packets.
    waiting: VecDeque<(Time, DataSize)>,
    queued: DataSize,
    pub drops: u64,
    /// Arrival and queueing time of each accepted packet.
    pub waits: Vec<(Time, TimeDelta)>,
}

impl Bottleneck {
    pub fn new(rate: Rate, delay: TimeDelta, limit: DataSize) -> Link {
        Rc::new(RefCell::new(Self {
            rate,
            delay,
            limit,
            framing: DataSize::ZERO,
            free: Time::ZERO,
            waiting: VecDeque::new(),
            queued: DataSize::ZERO,
            drops: 0,
            waits: Vec::new(),
        }))
    }

    fn carry(&mut self, now: Time, segment: &Segment) -> Option<Time> {
        while let Some(&(start, size)) = self.waiting.front()
            && start <= now
        {
            self.waiting.pop_front();
            self.queued -= size;
        }
        let size = segment.size() + self.framing;
        let start = self.free.max(now);
        if start > now {
            if self.queued + size > self.limit {
                self.drops += 1;
                return None;
            }
            self.waiting.push_back((start, size));
            self.queued += size;
        }
        self.waits.push((now, start - now));
        self.free = start + size / self.rate;
        Some(self.free + self.delay)
    }

    /// The path through this bottleneck, for one of its flows.
    pub fn path(this: &Link) -> Path {
        let link = Rc::clone(this);
        Box::new(move |now, segment| [link.borrow_mut().carry(now, segment), None])
    }

    /// Percentile of the queueing time of packets that arrived from `from` on, in milliseconds.
    pub fn percentile(&self, from: Time, percent: usize) -> f64 {
        let mut waits: Vec<_> = self.waits.iter().filter(|(at, _)| *at >= from).map(|(_, wait)| *wait).collect();
        waits.sort();
        waits[(waits.len() - 1) * percent / 100].as_millis_f64()
    }
}

/// A sender, a receiver, and their recorded outputs.
pub struct Flow {
    pub sender: TcpSender,
    pub receiver: TcpReceiver,
    forward: Path,
    backward: Path,
    pub data: u64,
    pub resent: u64,
    pub control: u64,
    pub acks: u64,
    /// In-order data with its times.
    pub reads: Vec<(Time, DataSize)>,
    pub signals: Vec<(Time, u8, f64)>,
    pub transfers: Vec<(Time, DataSize, TimeDelta)>,
    pub sent: Vec<(Time, Segment, SegmentKind)>,
    /// Calls of `handle_timeout` of sender and receiver.
    pub wakes: [u64; 2],
    /// The earliest scheduled wake-up.
    armed: [Time; 2],
    stream: ReadCheck,
}

/// Checks the data that the application of the receiver reads: every byte once, in order, and after its arrival.
#[derive(Default)]
struct ReadCheck {
    connection: u32,
    /// Ranges that have arrived and were not read: start and end.
    arrived: Vec<(u64, u64)>,
    read: u64,
}

impl ReadCheck {
    fn handle_arrival(&mut self, segment: &Segment) {
        if segment.flags.syn && segment.connection > self.connection {
            *self = Self { connection: segment.connection, arrived: Vec::new(), read: 1 };
        }
        if segment.connection == self.connection && segment.payload > 0 {
            self.arrived.push((segment.sequence, segment.sequence + segment.payload as u64));
        }
    }
    fn handle_read(&mut self, size: DataSize) {
        let end = self.read + size.as_bytes();
        self.arrived.sort_unstable();
        let mut covered = self.read;
        for (start, stop) in &self.arrived {
            if *start <= covered {
                covered = covered.max(*stop);
            }
        }
        assert_eq!(covered, end, "the application reads exactly the data that is in order");
        self.read = end;
        self.arrived.retain(|(_, stop)| *stop > end);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum NetEvent {
    WakeSender,
    WakeReceiver,
    /// A segment in `Net::in_flight`.
    AtSender(usize),
    AtReceiver(usize),
}

pub struct Net {
    pub now: Time,
    pub flows: Vec<Flow>,
    heap: BinaryHeap<Reverse<(Time, u64, usize, NetEvent)>>,
    count: u64,
    in_flight: Vec<Segment>,
    free: Vec<usize>,
    /// Check the scoreboards after every segment.
    pub check_scoreboards: bool,
    /// Record every sent segment.
    pub keep_segments: bool,
}

impl Net {
    pub fn new() -> Self {
        Self {
            now: Time::ZERO,
            flows: Vec::new(),
            heap: BinaryHeap::new(),
            count: 0,
            in_flight: Vec::new(),
            free: Vec::new(),
            check_scoreboards: false,
            keep_segments: false,
        }
    }

    pub fn add(&mut self, config: TcpConfig, workload: Workload, start: Time, forward: Path, backward: Path) {
        let random = RandomStreams::new(7).stream(&format!("tcp/{}", self.flows.len()));
        self.flows.push(Flow {
            sender: TcpSender::new(config, workload, start, random, Signals::enabled()),
            receiver: TcpReceiver::new(config),
            forward,
            backward,
            data: 0,
            resent: 0,
            control: 0,
            acks: 0,
            reads: Vec::new(),
            signals: Vec::new(),
            transfers: Vec::new(),
            sent: Vec::new(),
            wakes: [0; 2],
            armed: [Time::MAX; 2],
            stream: ReadCheck::default(),
        });
        let flow = self.flows.len() - 1;
        self.drain_sender(flow);
    }

    /// Adds a bulk flow through `link`, with a delay of `way` back.
    pub fn add_bulk(&mut self, config: TcpConfig, start: Time, link: &Link, way: TimeDelta) {
        self.add(config, Workload::Bulk, start, Bottleneck::path(link), delay(way));
    }

    /// Runs a bulk flow through `link`, with a delay of `way` back, from zero until `end`.
    pub fn run_bulk(config: TcpConfig, link: &Link, way: TimeDelta, end: Time) -> Self {
        let mut net = Self::new();
        net.add_bulk(config, Time::ZERO, link, way);
        net.run_until(end);
        net
    }

    pub fn run_until(&mut self, end: Time) {
        while let Some(&Reverse((at, _, flow, what))) = self.heap.peek()
            && at <= end
        {
            self.heap.pop();
            self.now = at;
            self.step(flow, what);
        }
        self.now = end;
    }

    /// Bytes read from `from` to before `to`.
    pub fn read(&self, flow: usize, from: Time, to: Time) -> DataSize {
        self.flows[flow].reads.iter().filter(|(at, _)| (from..to).contains(at)).map(|(_, size)| *size).sum()
    }

    fn step(&mut self, index: usize, what: NetEvent) {
        let (now, flow) = (self.now, &mut self.flows[index]);
        match what {
            // A wake-up that was replaced by an earlier one is skipped.
            NetEvent::WakeSender if flow.armed[0] != now => {}
            NetEvent::WakeReceiver if flow.armed[1] != now => {}
            NetEvent::WakeSender => {
                flow.armed[0] = Time::MAX;
                if flow.sender.poll_timeout().is_some_and(|due| due <= now) {
                    flow.sender.handle_timeout(now);
                    flow.wakes[0] += 1;
                }
                self.drain_sender(index);
            }
            NetEvent::WakeReceiver => {
                flow.armed[1] = Time::MAX;
                if flow.receiver.poll_timeout().is_some_and(|due| due <= now) {
                    flow.receiver.handle_timeout(now);
                    flow.wakes[1] += 1;
                }
                self.drain_receiver(index);
            }
            NetEvent::AtSender(at) => {
                self.free.push(at);
                flow.sender.handle_segment(now, &self.in_flight[at]);
                self.drain_sender(index);
            }
            NetEvent::AtReceiver(at) => {
                self.free.push(at);
                let segment = self.in_flight[at];
                flow.stream.handle_arrival(&segment);
                flow.receiver.handle_segment(now, &segment);
                self.drain_receiver(index);
            }
        }
    }

    fn drain_sender(&mut self, index: usize) {
        let now = self.now;
        while let Some((segment, sent)) = self.flows[index].sender.poll_transmit(now) {
            let flow = &mut self.flows[index];
            match sent {
                SegmentKind::Data => flow.data += 1,
                SegmentKind::Retransmission => flow.resent += 1,
                SegmentKind::Control => flow.control += 1,
            }
            if self.keep_segments {
                flow.sent.push((now, segment, sent));
            }
            for at in (flow.forward)(now, &segment).into_iter().flatten() {
                self.send(at, index, segment, NetEvent::AtReceiver);
            }
        }
        let flow = &mut self.flows[index];
        while let Some(event) = flow.sender.poll_event() {
            match event {
                TcpSenderEvent::Signal(signal, value) => flow.signals.push((now, signal, value)),
                TcpSenderEvent::TransferDone { size, took } => flow.transfers.push((now, size, took)),
            }
        }
        if self.check_scoreboards {
            flow.sender.check();
        }
        let wake = flow.sender.poll_timeout().unwrap_or(Time::MAX);
        assert!(wake > now || now == Time::ZERO, "a due wake-up was not handled");
        self.arm(index, 0, wake, NetEvent::WakeSender);
    }

    fn drain_receiver(&mut self, index: usize) {
        let now = self.now;
        while let Some(segment) = self.flows[index].receiver.poll_transmit(now) {
            let flow = &mut self.flows[index];
            flow.acks += 1;
            for at in (flow.backward)(now, &segment).into_iter().flatten() {
                self.send(at, index, segment, NetEvent::AtSender);
            }
        }
        let flow = &mut self.flows[index];
        let mut events = 0;
        while let Some(TcpReceiverEvent::Read(size)) = flow.receiver.poll_event() {
            flow.reads.push((now, size));
            flow.stream.handle_read(size);
            events += 1;
        }
        assert!(events <= 1);
        let wake = flow.receiver.poll_timeout().unwrap_or(Time::MAX);
        assert!(wake > now);
        self.arm(index, 1, wake, NetEvent::WakeReceiver);
    }

    fn arm(&mut self, index: usize, end: usize, wake: Time, what: NetEvent) {
        let armed = &mut self.flows[index].armed[end];
        if wake < *armed {
            *armed = wake;
            self.count += 1;
            self.heap.push(Reverse((wake, self.count, index, what)));
        }
    }

    fn send(&mut self, at: Time, index: usize, segment: Segment, what: fn(usize) -> NetEvent) {
        let place = self.free.pop().unwrap_or_else(|| {
            self.in_flight.push(segment);
            self.in_flight.len() - 1
        });
        self.in_flight[place] = segment;
        self.count += 1;
        self.heap.push(Reverse((at, self.count, index, what(place))));
    }
}
