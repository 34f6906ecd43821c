// SPDX-License-Identifier: MIT OR Apache-2.0
//! The simulator: the world in virtual time.
//!
//! Time advances from event to event of the [`Network`]. An endpoint that is due handles its timeout; the packets that it
//! sends enter the network at the same instant.

mod coupling;
mod media;
mod over_tcp;
mod stoppable;
mod tcp;

use crate::controller_failure::ControllerFailure;
use crate::flow::MediaSender;
use crate::media_flow;
use crate::network::{FlowEnd, Network, Wake};
use crate::plan::{FlowKind, FlowPlan, Plan};
use crate::records::EventObserver;
use crate::world::{Outcome, World, WorldError};
use coupling::CoupledGroups;
use over_tcp::OverTcp;
use paceline::{Entry, Registry};
use paceline_units::{RandomStreams, Time, TimeDelta};

pub use stoppable::StoppableSimulator;

#[derive(Clone, Copy, Debug, Default)]
pub struct Simulator;

impl World for Simulator {
    fn name(&self) -> &'static str {
        crate::records::SIMULATOR
    }

    fn run(
        &self,
        plan: &Plan,
        registry: &Registry,
        seed: u64,
        observer: &mut dyn EventObserver,
    ) -> Result<Outcome, WorldError> {
        self.simulate(plan, registry, seed, observer)
    }
}

impl Simulator {
    /// Does the same as [`run`](World::run), and calls an observer of a known type directly.
    ///
    /// # Errors
    /// See [`WorldError`].
    pub fn simulate<R: EventObserver>(
        &self,
        plan: &Plan,
        registry: &Registry,
        seed: u64,
        observer: R,
    ) -> Result<Outcome, WorldError> {
        let mut run = Simulation::new(plan, registry, seed, observer)?;
        run.advance(run.end).map_err(|failure| failure.in_run(plan, seed))?;
        Ok(run.outcome())
    }
}

/// The result of a call of a flow, which fails if its controller does.
type Handled = Result<(), ControllerFailure>;

/// Both endpoints of a flow of any kind. To add a kind: a file that implements this trait, and a variant of [`FlowKind`].
trait FlowEndpoints<R: EventObserver> {
    fn id(&self) -> usize;
    /// Returns the time at which `end` has to handle its next timeout; `None` for never.
    fn poll_timeout(&self, now: Time, end: FlowEnd) -> Option<Time>;
    fn handle_timeout(&mut self, now: Time, end: FlowEnd);
    /// Handles a packet that reached `end`, and frees its slot.
    fn handle_packet(&mut self, now: Time, end: FlowEnd, handle: u32, net: &mut Network<R>);
    /// Moves the packets and events that `end` has produced into the network.
    fn drain(&mut self, now: Time, end: FlowEnd, net: &mut Network<R>);
    fn media_sender(&mut self) -> Option<&mut MediaSender> {
        None
    }

    #[inline(always)]
    fn schedule(&self, now: Time, end: FlowEnd, net: &mut Network<R>) {
        net.wake(self.id(), end, self.poll_timeout(now, end).map(|due| due.max(now)));
    }
    /// Checks that the half of the controller at `end` has not failed.
    fn check_controller(&mut self, now: Time, end: FlowEnd) -> Handled {
        let _ = (now, end);
        Ok(())
    }
    /// Handles a timeout of `end`, and everything that follows from it.
    fn on_timeout(&mut self, now: Time, end: FlowEnd, net: &mut Network<R>) -> Handled {
        self.handle_timeout(now, end);
        self.drain(now, end, net);
        self.schedule(now, end, net);
        self.check_controller(now, end)
    }
    /// Handles a packet that reached `end`, and everything that follows from it.
    fn on_packet(&mut self, now: Time, end: FlowEnd, handle: u32, net: &mut Network<R>) -> Handled {
        self.handle_packet(now, end, handle, net);
        self.drain(now, end, net);
        self.schedule(now, end, net);
        self.check_controller(now, end)
    }
}

struct Flow<R> {
    endpoints: Box<dyn FlowEndpoints<R> + Send>,
    stop: Time,
}

/// A run that advances step by step and can be inspected between steps. The number of steps does not change the result.
pub struct Simulation<R> {
    flows: Vec<Flow<R>>,
    coupled: CoupledGroups,
    net: Network<R>,
    end: Time,
}

impl<R: EventObserver> Simulation<R> {
    /// Creates a run of the plan, before its first event.
    ///
    /// # Errors
    /// A flow's controller or source cannot be built, or the controller fails at the start.
    pub fn new(plan: &Plan, registry: &Registry, seed: u64, observer: R) -> Result<Self, WorldError> {
        Self::with_controller(plan, registry, None, seed, observer)
    }

    /// Creates a run in which `controller`, a flow number and a registry entry, replaces the controller of one media flow.
    ///
    /// # Errors
    /// A flow's controller or source cannot be built, or the controller fails at the start.
    pub fn with_controller(
        plan: &Plan,
        registry: &Registry,
        controller: Option<(usize, &Entry)>,
        seed: u64,
        observer: R,
    ) -> Result<Self, WorldError> {
        let streams = RandomStreams::new(seed);
        let signals = observer.wants_signals();
        let mut net = Network::new(plan, &streams, observer);
        let mut flows = Vec::new();
        for (id, flow) in plan.flows.iter().enumerate() {
            let start = start_time(flow, &streams);
            let endpoints: Box<dyn FlowEndpoints<R> + Send> = match &flow.kind {
                FlowKind::Media(media) => {
                    let replaced = controller.filter(|(replaced, _)| *replaced == id).map(|(_, entry)| entry);
                    let entry = replaced.map_or_else(|| media_flow::controller(flow, media, registry), Ok)?;
                    let tcp = media.over_tcp().map(|config| OverTcp::new(flow, config, start, &streams)).map(Box::new);
                    let mut flow = media_flow::build(id, flow, media, start, entry, &streams, signals)?;
                    for end in [FlowEnd::Sender, FlowEnd::Receiver] {
                        flow.check_controller(Time::ZERO, end).map_err(|failure| failure.in_run(plan, seed))?;
                    }
                    Box::new(media::MediaEndpoints { id, flow, tcp })
                }
                FlowKind::Tcp(tcp) => Box::new(tcp::TcpEndpoints::new(id, flow, tcp, start, &streams, signals)),
            };
            flows.push((start, Flow { endpoints, stop: flow.stop }));
        }
        for id in start_order(&plan.flows) {
            let (start, flow) = &flows[id];
            flow.endpoints.schedule(*start, FlowEnd::Sender, &mut net);
            flow.endpoints.schedule(*start, FlowEnd::Receiver, &mut net);
        }
        let flows = flows.into_iter().map(|(_, flow)| flow).collect();
        Ok(Self { flows, coupled: CoupledGroups::new(plan), net, end: Time::ZERO + plan.duration })
    }

    /// Advances to `until`, events at that time included, or to the end of the plan if that is earlier.
    ///
    /// # Errors
    /// A controller failed. The run must not be used afterwards.
    pub fn advance(&mut self, until: Time) -> Result<(), ControllerFailure> {
        let until = until.min(self.end);
        while let Some((now, wake)) = self.net.poll(until) {
            match wake {
                Wake::Due { flow, end } => {
                    if now < self.flows[flow].stop {
                        self.on_timeout(now, flow, end)?;
                    }
                }
                // After its stop a flow discards arriving packets.
                Wake::Arrived { flow, end, handle } => {
                    if now < self.flows[flow].stop {
                        self.on_packet(now, flow, end, handle)?;
                    } else {
                        self.net.packets.free(handle);
                    }
                }
            }
        }
        Ok(())
    }

    fn on_timeout(&mut self, now: Time, flow: usize, end: FlowEnd) -> Handled {
        if end == FlowEnd::Sender && self.coupled.contains(flow) {
            self.flows[flow].endpoints.handle_timeout(now, end);
            return self.couple(now, flow);
        }
        self.flows[flow].endpoints.on_timeout(now, end, &mut self.net)
    }

    fn on_packet(&mut self, now: Time, flow: usize, end: FlowEnd, handle: u32) -> Handled {
        if end == FlowEnd::Sender && self.coupled.contains(flow) {
            self.flows[flow].endpoints.handle_packet(now, end, handle, &mut self.net);
            return self.couple(now, flow);
        }
        self.flows[flow].endpoints.on_packet(now, end, handle, &mut self.net)
    }

    /// Shares the rate that the sender of a coupled flow has calculated, and handles everything that follows at the senders of
    /// the group. A packet that is sent can lead to another rate, which is shared as well.
    fn couple(&mut self, now: Time, flow: usize) -> Handled {
        let mut changed = vec![flow];
        while let Some(flow) = changed.pop() {
            self.coupled.handle(now, flow, &mut self.flows, &mut changed);
            let endpoints = &mut self.flows[flow].endpoints;
            // Frames that are due now have waited for the share.
            endpoints.handle_timeout(now, FlowEnd::Sender);
            endpoints.drain(now, FlowEnd::Sender, &mut self.net);
            endpoints.check_controller(now, FlowEnd::Sender)?;
            if endpoints.media_sender().is_some_and(|sender| sender.calculated_rate().is_some()) {
                changed.push(flow);
            } else {
                endpoints.schedule(now, FlowEnd::Sender, &mut self.net);
            }
        }
        Ok(())
    }

    /// Wakes the sender of a flow at `at`, which is not before the current time of the run. Call this after an outside
    /// agent has changed the state of the flow's controller.
    pub fn wake_sender(&mut self, flow: usize, at: Time) {
        self.net.wake(flow, FlowEnd::Sender, Some(at));
    }

    /// Returns the observer of the run.
    pub fn observer(&mut self) -> &mut R {
        self.net.observer()
    }

    /// Returns the outcome so far.
    pub fn outcome(&self) -> Outcome {
        self.net.outcome()
    }
}

/// Returns the flows in the order of their first events, where these are at the same time: by id, and ids that end in a number by that
/// number. Events at equal times run in the order in which they were scheduled, so no result depends on the order of the flows in
/// the plan.
fn start_order(flows: &[FlowPlan]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..flows.len()).collect();
    order.sort_by_key(|index| {
        let id = &flows[*index].id;
        // Of two numbers in decimal, the shorter one is smaller.
        (id.trim_end_matches(|c: char| c.is_ascii_digit()), id.len(), id)
    });
    order
}

/// Returns the time at which a flow starts. The seed draws it uniformly from `start_spread`.
pub fn start_time(flow: &FlowPlan, streams: &RandomStreams) -> Time {
    match flow.start_spread {
        TimeDelta::ZERO => flow.start,
        spread => flow.start + streams.stream(&format!("flow/{}/start", flow.id)).time_below(spread),
    }
}
