// SPDX-License-Identifier: MIT OR Apache-2.0
//! A link of real packets: it reads packets at one port and sends them at the other when the network model delivers
//! them.
//!
//! The model is the [`Network`] of the simulator, whose decisions depend on arrival times alone. The arrivals therefore
//! reproduce every decision of a link to the nanosecond. Only the time of sending depends on the host; the link records
//! how late that was.

use crate::testbed::clock::Monotonic;
use crate::testbed::lateness::{self, Lateness};
use crate::testbed::link_port::{LinkPort, ReceivedPacket};
use crate::testbed::timing::{Rests, Role, Timing, enter_realtime};
use paceline_netsim::link_control::LinkControl;
use paceline_netsim::network::{FlowEnd, HeaderClass, Network, Wake};
use paceline_netsim::plan::Plan;
use paceline_netsim::records::{EventObserver, EventRecord, PacketClass, Percentiles};
use paceline_units::{Time, TimeDelta};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// A side of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The start of the forward path.
    Near = 0,
    /// The end of the forward path.
    Far = 1,
}

impl Side {
    /// Returns the opposite side.
    pub fn other(self) -> Self {
        match self {
            Self::Near => Self::Far,
            Self::Far => Self::Near,
        }
    }
}

/// A packet as the network model identifies it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketIdentity {
    /// Number of the flow in the plan.
    pub flow: usize,
    /// Class of the packet, which also determines the end that sent it.
    pub class: PacketClass,
    /// By what queues classify the packet; `None` for the flow and DSCP of the plan.
    pub header: Option<HeaderClass>,
}

/// A flow that the link carries.
#[derive(Clone, Copy, Debug)]
pub struct LinkFlow {
    pub sender: Side,
    /// The link discards packets of the flow from then on, as in the simulator; a kernel still resets open connections.
    pub stop: Time,
}

/// Identifies packets.
pub trait Classifier {
    /// Identifies a packet by its bytes and the side that sent it; `None` if it belongs to no flow.
    fn classify(&mut self, from: Side, packet: &[u8]) -> Option<PacketIdentity>;
}

/// Statistics of a link that the network model does not have.
#[derive(Clone, Debug)]
pub struct LinkStats {
    /// The lateness with which packets were sent.
    pub late: Lateness,
    /// Number of packets that a port did not accept.
    pub send_failures: u64,
    /// Number of packets of no flow; the link discards them.
    pub unclassified: u64,
    /// Number of packets received.
    pub received: u64,
}

impl Default for LinkStats {
    fn default() -> Self {
        Self { late: lateness::empty(), send_failures: 0, unclassified: 0, received: 0 }
    }
}

impl LinkStats {
    /// Returns the lateness with which packets were sent, µs.
    pub fn late_us(&self) -> Percentiles {
        lateness::percentiles(&self.late)
    }
}

/// Size of the receive buffer: the maximum size of an IP packet.
const BUFFER: usize = 65_536;

/// Maximum number of packets to read from one side before serving the other side and due packets.
const BATCH: usize = 32;

/// A network model between two ports.
pub struct Link<'a, R, P> {
    network: Network<R>,
    ports: [P; 2],
    classifier: &'a mut dyn Classifier,
    /// Bytes of each packet in transit, by handle.
    bytes: Vec<Vec<u8>>,
    flows: Vec<LinkFlow>,
    clock: Monotonic,
    timing: Timing,
    stats: LinkStats,
    control: Option<ControlledPlan<'a>>,
}

/// The source of link updates, the original plan, and the plan with every update so far.
struct ControlledPlan<'a> {
    control: &'a LinkControl,
    scenario: &'a Plan,
    plan: Plan,
}

impl<'a, R: EventObserver, P: LinkPort> Link<'a, R, P> {
    /// Creates a link between the near port and the far port; `flows` are those of the network.
    pub fn new(
        network: Network<R>,
        ports: [P; 2],
        classifier: &'a mut dyn Classifier,
        flows: Vec<LinkFlow>,
        clock: Monotonic,
        timing: Timing,
    ) -> Self {
        let stats = LinkStats::default();
        Self { network, ports, classifier, bytes: Vec::new(), flows, clock, timing, stats, control: None }
    }

    /// Sets the source of updates of the hops, which are those of `plan`, and of the request to end the run.
    pub fn with_link_control(self, control: &'a LinkControl, plan: &'a Plan) -> Self {
        Self { control: Some(ControlledPlan { control, scenario: plan, plan: plan.clone() }), ..self }
    }

    /// Carries packets until `end`, or until `stop` is set and packets in transit have arrived, at most one second
    /// later.
    pub fn run(mut self, end: Time, stop: &AtomicBool) -> io::Result<(Network<R>, LinkStats)> {
        const POLL_INTERVAL: TimeDelta = TimeDelta::from_millis(50);
        const LINGER: TimeDelta = TimeDelta::from_secs(1);
        let mut rests = enter_realtime(Role::Link).then(|| Rests::new(Instant::now()));
        let mut buffer = vec![0; BUFFER];
        let mut leave = None;
        loop {
            let mut quiet = true;
            for side in [Side::Near, Side::Far] {
                for _ in 0..BATCH {
                    let Some(received) = self.ports[side as usize].receive(&mut buffer)? else { break };
                    quiet = false;
                    self.handle_packet(side, &received, &buffer[..received.len], end);
                }
            }
            let now = self.clock.now();
            self.send_due(now.min(end));
            self.apply_updates(now, end, stop);
            if stop.load(Ordering::Relaxed) {
                leave.get_or_insert(now + LINGER);
            }
            let next = self.network.poll_timeout();
            if now >= end || leave.is_some_and(|leave| next.is_none() || now >= leave) {
                return Ok((self.network, self.stats));
            }
            let waits_from = Instant::now();
            if quiet {
                let next = next.unwrap_or(end).min(end).min(now + POLL_INTERVAL);
                let descriptors = [self.ports[0].fd(), self.ports[1].fd()];
                self.timing.wait(&descriptors, next - self.clock.now());
            }
            if let Some(rests) = &mut rests {
                rests.take(waits_from);
            }
        }
    }

    /// Applies requested updates to the hops, and ends the run if requested.
    fn apply_updates(&mut self, now: Time, end: Time, stop: &AtomicBool) {
        let Some(controlled) = &mut self.control else { return };
        if controlled.control.is_stopped() {
            stop.store(true, Ordering::Relaxed);
        }
        if !(Time::ZERO..end).contains(&now) {
            return;
        }
        for (hop, to) in controlled.control.take_requests() {
            for change in controlled.plan.update_hop(controlled.scenario, now, hop, to) {
                self.network.change(now, hop, change);
            }
            self.network.emit(&EventRecord::LinkUpdated { at: now, hop: hop as u16, to });
        }
    }

    /// Handles a packet from a side, after sending the packets that were due before.
    #[inline]
    fn handle_packet(&mut self, from: Side, received: &ReceivedPacket, packet: &[u8], end: Time) {
        let now = self.clock.now();
        if now >= end {
            return; // the model makes no decision after the end
        }
        self.send_due(now);
        // Before time zero only the kernel sends.
        let identity = if now < Time::ZERO { None } else { self.classifier.classify(from, packet) };
        let Some(PacketIdentity { flow, class, header }) = identity.filter(|of| now < self.flows[of.flow].stop) else {
            self.stats.unclassified += 1;
            return;
        };
        self.stats.received += 1;
        let handle = self.network.packets.alloc();
        if self.bytes.len() <= handle as usize {
            self.bytes.resize_with(handle as usize + 1, Vec::new);
        }
        let bytes = &mut self.bytes[handle as usize];
        bytes.clear();
        bytes.extend_from_slice(packet);
        let of_model = self.network.packets.get_mut(handle);
        (of_model.ecn, of_model.header) = (received.ecn, header);
        let sender = if class.is_from_receiver() { FlowEnd::Receiver } else { FlowEnd::Sender };
        self.network.send(now, flow, sender, class, received.size, handle);
    }

    /// Sends the packets that are due by `now`.
    #[inline]
    fn send_due(&mut self, now: Time) {
        while let Some((due, wake)) = self.network.poll(now) {
            let Wake::Arrived { flow, end, handle } = wake else { continue };
            let sender = self.flows[flow].sender;
            let side = if end == FlowEnd::Sender { sender } else { sender.other() };
            let bytes = &mut self.bytes[handle as usize];
            // Read the clock for each packet, because sending takes time.
            let late = (self.clock.now() - due).as_nanos().max(0) as u64;
            self.stats.late.saturating_record(late);
            if self.ports[side as usize].send(bytes, self.network.packets.get(handle).ecn).is_err() {
                self.stats.send_failures += 1;
            }
            self.network.packets.free(handle);
        }
    }
}
