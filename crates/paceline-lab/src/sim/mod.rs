//! The simulator: the world in virtual time.
//!
//! Components (hops, and the ends, access lines and inboxes of flows) are numbered; each has at most one pending event, at the
//! time its `poll_timeout` names. A woken component is served and drained; what it sends enters the next component at
//! the same instant. Packets live in one slab and are named by handle.

mod clock;
mod events;
mod host;
mod media;
mod network;
mod packets;
mod tcp;
mod trace_hash;

use crate::plan::{FlowKind, FlowPlan, Plan};
use crate::rows::RowSink;
use crate::world::{Outcome, World, WorldError};
use network::{Component, End, Network};
use paceline::Registry;
use paceline_units::{Streams, Time, TimeDelta};

/// The simulator.
#[derive(Clone, Copy, Debug, Default)]
pub struct Simulator;

impl World for Simulator {
    fn name(&self) -> &'static str {
        "sim"
    }

    fn run(&self, plan: &Plan, registry: &Registry, seed: u64, rows: &mut dyn RowSink) -> Result<Outcome, WorldError> {
        let mut run = Run::new(plan, registry, seed, rows)?;
        run.go();
        let Run { net, .. } = run;
        Ok(Outcome {
            trace_hash: net.trace_hash(),
            events: net.events.handled(),
            pending_max: net.events.pending_max(),
            delivered: net.delivered,
            machine: None,
        })
    }
}

/// Both ends of a flow, whatever its kind. To add a kind: a file that implements this, a variant of [`FlowKind`].
///
/// Each call drains what the end then has to send into the network and wakes it for its next timeout.
trait Ends {
    /// The flow begins at `start`: wakes each end for the first time.
    fn begin(&mut self, start: Time, net: &mut Network<'_>);
    /// An end's time has come.
    fn serve(&mut self, now: Time, end: End, net: &mut Network<'_>);
    /// A packet reached an end, which takes it and gives its slot back.
    fn handle(&mut self, now: Time, end: End, handle: u32, net: &mut Network<'_>);
}

struct Flow {
    ends: Box<dyn Ends>,
    stop: Time,
}

struct Run<'a> {
    flows: Vec<Flow>,
    net: Network<'a>,
    end: Time,
}

impl<'a> Run<'a> {
    fn new(plan: &Plan, registry: &Registry, seed: u64, rows: &'a mut dyn RowSink) -> Result<Self, WorldError> {
        let streams = Streams::new(seed);
        let signals = rows.wants_signals();
        let mut net = Network::new(plan, &streams, rows);
        let mut flows = Vec::new();
        for (id, flow) in plan.flows.iter().enumerate() {
            let start = begin(flow, &streams);
            let mut ends: Box<dyn Ends> = match &flow.kind {
                FlowKind::Media(media) => Box::new(media::build(id, flow, media, start, registry, &streams, signals)?),
                FlowKind::Tcp(tcp) => Box::new(tcp::build(id, flow, tcp, start, &streams, signals)),
            };
            ends.begin(start, &mut net);
            flows.push(Flow { ends, stop: flow.stop });
        }
        Ok(Self { flows, net, end: Time::ZERO + plan.duration })
    }

    fn go(&mut self) {
        while let Some((now, number)) = self.net.events.pop(self.end) {
            match self.net.component(number) {
                Component::Hop(hop) => {
                    while let Some(handle) = self.net.leave_hop(now, hop) {
                        self.go_on(now, handle);
                    }
                }
                Component::End(flow, end) => {
                    let flow = &mut self.flows[flow];
                    if now < flow.stop {
                        flow.ends.serve(now, end, &mut self.net);
                    }
                }
                Component::Inbox(flow, end) => {
                    while let Some(handle) = self.net.leave_inbox(now, flow, end) {
                        self.arrive(now, flow, end, handle);
                    }
                }
                Component::Access(flow, from) => {
                    while let Some(handle) = self.net.leave_access(now, flow, from) {
                        self.go_on(now, handle);
                    }
                }
            }
        }
    }

    /// A packet goes to the next hop of its route, or to its end.
    #[inline]
    fn go_on(&mut self, now: Time, handle: u32) {
        let row = self.net.packet(handle).row;
        let id = row.flow.0 as usize;
        let from = if row.class.goes_back() { End::Receiver } else { End::Sender };
        if self.net.enter_next_hop(now, id, from, handle) {
            return;
        }
        if !self.net.enter_inbox(now, id, from.other(), handle) {
            self.arrive(now, id, from.other(), handle);
        }
    }

    /// A packet is seen at its end, which hears it only while the flow lives.
    #[inline]
    fn arrive(&mut self, now: Time, id: usize, end: End, handle: u32) {
        self.net.arrived(now, id, end, handle);
        let flow = &mut self.flows[id];
        if now < flow.stop {
            flow.ends.handle(now, end, handle, &mut self.net);
        } else {
            self.net.give_back(handle);
        }
    }
}

/// When a flow begins: the seed draws it from the flow's spread.
fn begin(flow: &FlowPlan, streams: &Streams) -> Time {
    match flow.start_spread {
        TimeDelta::ZERO => flow.start,
        spread => flow.start + streams.stream(&format!("flow/{}/start", flow.id)).time_below(spread),
    }
}
