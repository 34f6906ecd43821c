//! A link of real packets: it reads them where they are sent, asks the network model when and whether they arrive, and hands
//! them over at that time.
//!
//! The model is [`Network`], the one of the simulator, and it decides from arrival times alone. So what a link did can be
//! computed again from what came to it, to the nanosecond; only when a packet was handed over is the machine's doing, and
//! how late that was is counted.

use crate::clock::Monotonic;
use crate::port::{Came, Port};
use crate::wait::{Rank, Timing, be_punctual};
use hdrhistogram::Histogram;
use paceline_lab::machine::Percentiles;
use paceline_lab::network::{End, Network, Wake};
use paceline_lab::rows::{PacketClass, RowSink};
use paceline_units::{Time, TimeDelta};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

/// One of the link's two sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Where the forward path begins.
    Near = 0,
    /// Where it ends.
    Far = 1,
}

impl Side {
    /// The other one.
    pub fn other(self) -> Self {
        match self {
            Self::Near => Self::Far,
            Self::Far => Self::Near,
        }
    }
}

/// What a packet is to the network model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// Number of its flow in the plan.
    pub flow: usize,
    /// What kind of packet; it says which end sent it, too.
    pub class: PacketClass,
}

/// What the link knows of a flow.
#[derive(Clone, Copy, Debug)]
pub struct Carried {
    /// On which side it begins.
    pub sender: Side,
    /// From then on its ends are silent, as in the simulator: a kernel still resets what was under way.
    pub stop: Time,
}

/// Who tells packets apart: by the side that one came from and its bytes. `None`: nobody in the plan sent it.
pub trait Classify {
    /// What the packet is.
    fn classify(&mut self, from: Side, packet: &[u8]) -> Option<Known>;
}

/// What the machine did to a link's packets, which a model would not have.
#[derive(Clone, Debug)]
pub struct Handling {
    /// How late packets were handed over, ns after they were due.
    pub late: Histogram<u64>,
    /// Packets that the far side's device did not take.
    pub refused: u64,
    /// Packets of nobody, which went no further.
    pub strangers: u64,
    /// Packets that came.
    pub came: u64,
}

/// Lateness that a histogram can hold: ten seconds.
const LATEST: u64 = 10_000_000_000;

impl Default for Handling {
    fn default() -> Self {
        let late = Histogram::new_with_bounds(1, LATEST, 3).expect("these bounds are possible");
        Self { late, refused: 0, strangers: 0, came: 0 }
    }
}

impl Handling {
    /// How late packets were handed over, µs.
    pub fn late_us(&self) -> Percentiles {
        percentiles(&self.late)
    }
}

/// Of a histogram of ns, in µs.
pub(crate) fn percentiles(late: &Histogram<u64>) -> Percentiles {
    let at = |quantile| late.value_at_quantile(quantile) as f64 / 1e3;
    Percentiles { p50: at(0.5), p99: at(0.99), max: late.max() as f64 / 1e3 }
}

/// Room for one packet as it is read: the largest there can be.
const ROOM: usize = 65_536;

/// At most so many packets are read from one side before the other, and what is due, have their turn.
const BATCH: usize = 32;

/// A network model between two ports.
pub struct Link<'a, R, P> {
    network: Network<R>,
    ports: [P; 2],
    classify: &'a mut dyn Classify,
    /// Where each packet under way has its bytes, by handle.
    bytes: Vec<Vec<u8>>,
    flows: Vec<Carried>,
    clock: Monotonic,
    timing: Timing,
    handling: Handling,
}

impl<'a, R: RowSink, P: Port> Link<'a, R, P> {
    /// A link between the near port and the far one; `flows` are those of the network.
    pub fn new(
        network: Network<R>,
        ports: [P; 2],
        classify: &'a mut dyn Classify,
        flows: Vec<Carried>,
        clock: Monotonic,
        timing: Timing,
    ) -> Self {
        Self { network, ports, classify, bytes: Vec::new(), flows, clock, timing, handling: Handling::default() }
    }

    /// Carries packets until `end`, or until `stop` is set and what is under way has arrived: a second later at most.
    ///
    /// # Errors
    /// A port is gone.
    pub fn run(mut self, end: Time, stop: &AtomicBool) -> io::Result<(Network<R>, Handling)> {
        const LOOK_UP: TimeDelta = TimeDelta::from_millis(50);
        const LINGER: TimeDelta = TimeDelta::from_secs(1);
        be_punctual(Rank::Link);
        let mut buffer = vec![0; ROOM];
        let mut leave = None;
        loop {
            let mut quiet = true;
            for side in [Side::Near, Side::Far] {
                for _ in 0..BATCH {
                    let Some(came) = self.ports[side as usize].receive(&mut buffer)? else { break };
                    quiet = false;
                    self.take(side, &came, &buffer[..came.len], end);
                }
            }
            let now = self.clock.now();
            self.hand_over(now.min(end));
            if stop.load(Ordering::Relaxed) {
                leave.get_or_insert(now + LINGER);
            }
            let is_empty = self.network.poll_timeout() == Time::MAX;
            if now >= end || leave.is_some_and(|leave| is_empty || now >= leave) {
                return Ok((self.network, self.handling));
            }
            if quiet {
                let next = self.network.poll_timeout().min(end).min(now + LOOK_UP);
                let descriptors = [self.ports[0].fd(), self.ports[1].fd()];
                self.timing.wait(&descriptors, next - self.clock.now());
            }
        }
    }

    /// A packet came from a side. What was due before it is handed over before it.
    #[inline]
    fn take(&mut self, from: Side, came: &Came, packet: &[u8], end: Time) {
        let now = self.clock.now();
        if now >= end {
            return; // nothing is decided after the end
        }
        self.hand_over(now);
        // Before time zero nobody sends yet but the kernel.
        let known = if now < Time::ZERO { None } else { self.classify.classify(from, packet) };
        let Some(known) = known.filter(|known| now < self.flows[known.flow].stop) else {
            self.handling.strangers += 1;
            return;
        };
        self.handling.came += 1;
        let handle = self.network.blank();
        if self.bytes.len() <= handle as usize {
            self.bytes.resize_with(handle as usize + 1, Vec::new);
        }
        let bytes = &mut self.bytes[handle as usize];
        bytes.clear();
        bytes.extend_from_slice(packet);
        self.network.packet_mut(handle).ecn = came.ecn;
        let sender = if known.class.goes_back() { End::Receiver } else { End::Sender };
        self.network.launch(now, known.flow, sender, known.class, came.size, handle);
    }

    /// Hands over what is due.
    #[inline]
    fn hand_over(&mut self, now: Time) {
        while let Some((due, wake)) = self.network.poll(now) {
            let Wake::Arrived { flow, end, handle } = wake else { continue };
            let sender = self.flows[flow].sender;
            let side = if end == End::Sender { sender } else { sender.other() };
            let bytes = &mut self.bytes[handle as usize];
            // The clock is read for each: one after the other they are ever later.
            let late = (self.clock.now() - due).as_nanos().max(0) as u64;
            self.handling.late.saturating_record(late);
            if self.ports[side as usize].send(bytes, self.network.packet(handle).ecn).is_err() {
                self.handling.refused += 1;
            }
            self.network.give_back(handle);
        }
    }
}
