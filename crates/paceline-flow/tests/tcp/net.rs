//! Flows over a path that a function decides, and a bottleneck for such a function.

use paceline::Signals;
use paceline_flow::tcp::{
    Segment, TcpConfig, TcpReceiver, TcpReceiverEvent, TcpSender, TcpSenderEvent, TcpSent, Workload,
};
use paceline_units::{DataSize, Rate, Streams, Time, TimeDelta};
use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::rc::Rc;

/// When a segment that leaves now arrives: never, once or twice.
pub type Path = Box<dyn FnMut(Time, &Segment) -> [Option<Time>; 2]>;

/// A path that only takes its time.
pub fn delay(delay: TimeDelta) -> Path {
    Box::new(move |now, _| [Some(now + delay), None])
}

/// A drop-tail queue before a link; the packet in service is not in the queue.
pub struct Bottleneck {
    rate: Rate,
    delay: TimeDelta,
    limit: DataSize,
    /// What every packet carries besides itself on this link.
    pub framing: DataSize,
    free: Time,
    /// Begin of service and size of packets that wait.
    waiting: VecDeque<(Time, DataSize)>,
    queued: DataSize,
    pub drops: u64,
    /// Arrival and waiting time of each packet that was let in.
    pub waits: Vec<(Time, TimeDelta)>,
}

impl Bottleneck {
    pub fn new(rate: Rate, delay: TimeDelta, limit: DataSize) -> Rc<RefCell<Self>> {
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
    pub fn path(this: &Rc<RefCell<Self>>) -> Path {
        let link = Rc::clone(this);
        Box::new(move |now, segment| [link.borrow_mut().carry(now, segment), None])
    }

    /// Percentile of the waiting time of packets that came in from `from` on, in milliseconds.
    pub fn percentile(&self, from: Time, percent: usize) -> f64 {
        let mut waits: Vec<_> = self.waits.iter().filter(|(at, _)| *at >= from).map(|(_, wait)| *wait).collect();
        waits.sort();
        waits[(waits.len() - 1) * percent / 100].as_millis_f64()
    }
}

/// One sender, one receiver, and what was seen of them.
pub struct Flow {
    pub sender: TcpSender,
    pub receiver: TcpReceiver,
    forward: Path,
    backward: Path,
    pub data: u64,
    pub resent: u64,
    pub control: u64,
    pub acks: u64,
    /// In-order bytes with their times.
    pub reads: Vec<(Time, DataSize)>,
    pub signals: Vec<(Time, u8, f64)>,
    pub transfers: Vec<(Time, DataSize, TimeDelta)>,
    pub sent: Vec<(Time, Segment, TcpSent)>,
    /// Calls of `handle_timeout` of sender and receiver.
    pub wakes: [u64; 2],
    /// The earliest wake-up scheduled.
    armed: [Time; 2],
    stream: Stream,
}

/// What the receiver's application must have read: every byte once, in order, and none before it arrived.
#[derive(Default)]
struct Stream {
    connection: u32,
    /// Arrived and not yet read, start to end, apart.
    arrived: Vec<(u64, u64)>,
    read: u64,
}

impl Stream {
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
        assert_eq!(covered, end, "the application reads all that is in order and nothing else");
        self.read = end;
        self.arrived.retain(|(_, stop)| *stop > end);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    WakeSender,
    WakeReceiver,
    /// A segment in `Net::travelling`.
    AtSender(usize),
    AtReceiver(usize),
}

pub struct Net {
    pub now: Time,
    pub flows: Vec<Flow>,
    heap: BinaryHeap<Reverse<(Time, u64, usize, What)>>,
    count: u64,
    travelling: Vec<Segment>,
    free: Vec<usize>,
    /// Recount every scoreboard after every segment.
    pub checks: bool,
    /// Keep every segment sent.
    pub keeps: bool,
}

impl Net {
    pub fn new() -> Self {
        Self {
            now: Time::ZERO,
            flows: Vec::new(),
            heap: BinaryHeap::new(),
            count: 0,
            travelling: Vec::new(),
            free: Vec::new(),
            checks: false,
            keeps: false,
        }
    }

    pub fn add(&mut self, config: TcpConfig, workload: Workload, start: Time, forward: Path, backward: Path) {
        let random = Streams::new(7).stream(&format!("tcp/{}", self.flows.len()));
        self.flows.push(Flow {
            sender: TcpSender::new(config, workload, start, random, Signals::heard()),
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
            stream: Stream::default(),
        });
        let flow = self.flows.len() - 1;
        self.drain_sender(flow);
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

    fn step(&mut self, index: usize, what: What) {
        let (now, flow) = (self.now, &mut self.flows[index]);
        match what {
            // One that an earlier wake-up has replaced is passed over.
            What::WakeSender if flow.armed[0] != now => {}
            What::WakeReceiver if flow.armed[1] != now => {}
            What::WakeSender => {
                flow.armed[0] = Time::MAX;
                if flow.sender.poll_timeout() <= now {
                    flow.sender.handle_timeout(now);
                    flow.wakes[0] += 1;
                }
                self.drain_sender(index);
            }
            What::WakeReceiver => {
                flow.armed[1] = Time::MAX;
                if flow.receiver.poll_timeout() <= now {
                    flow.receiver.handle_timeout(now);
                    flow.wakes[1] += 1;
                }
                self.drain_receiver(index);
            }
            What::AtSender(at) => {
                self.free.push(at);
                flow.sender.handle_segment(now, &self.travelling[at]);
                self.drain_sender(index);
            }
            What::AtReceiver(at) => {
                self.free.push(at);
                let segment = self.travelling[at];
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
                TcpSent::Data => flow.data += 1,
                TcpSent::Retransmission => flow.resent += 1,
                TcpSent::Control => flow.control += 1,
            }
            if self.keeps {
                flow.sent.push((now, segment, sent));
            }
            for at in (flow.forward)(now, &segment).into_iter().flatten() {
                self.send(at, index, segment, What::AtReceiver);
            }
        }
        let flow = &mut self.flows[index];
        while let Some(event) = flow.sender.poll_event() {
            match event {
                TcpSenderEvent::Signal(signal, value) => flow.signals.push((now, signal, value)),
                TcpSenderEvent::TransferDone { size, took } => flow.transfers.push((now, size, took)),
            }
        }
        if self.checks {
            flow.sender.check();
        }
        let wake = flow.sender.poll_timeout();
        assert!(wake > now || now == Time::ZERO, "a wake-up that is due was not dealt with");
        self.arm(index, 0, wake, What::WakeSender);
    }

    fn drain_receiver(&mut self, index: usize) {
        let now = self.now;
        while let Some(segment) = self.flows[index].receiver.poll_transmit(now) {
            let flow = &mut self.flows[index];
            flow.acks += 1;
            for at in (flow.backward)(now, &segment).into_iter().flatten() {
                self.send(at, index, segment, What::AtSender);
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
        let wake = flow.receiver.poll_timeout();
        assert!(wake > now);
        self.arm(index, 1, wake, What::WakeReceiver);
    }

    fn arm(&mut self, index: usize, end: usize, wake: Time, what: What) {
        let armed = &mut self.flows[index].armed[end];
        if wake < *armed {
            *armed = wake;
            self.count += 1;
            self.heap.push(Reverse((wake, self.count, index, what)));
        }
    }

    fn send(&mut self, at: Time, index: usize, segment: Segment, what: fn(usize) -> What) {
        let place = self.free.pop().unwrap_or_else(|| {
            self.travelling.push(segment);
            self.travelling.len() - 1
        });
        self.travelling[place] = segment;
        self.count += 1;
        self.heap.push(Reverse((at, self.count, index, what(place))));
    }
}
