//! The simulator: the world in virtual time.
//!
//! Time goes from event to event of the [`Network`]. A woken end is served and drained; what it sends enters the network
//! at the same instant.

mod media;
mod tcp;

use crate::network::{End, Network, Wake};
use crate::plan::{FlowKind, FlowPlan, Plan};
use crate::rows::RowSink;
use crate::world::{Outcome, World, WorldError};
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
        let mut simulation = Simulation::new(plan, registry, seed, rows)?;
        simulation.advance(Time::ZERO + plan.duration);
        Ok(simulation.outcome())
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

/// A run under way. In how many steps it goes on changes nothing: same rows, same trace hash.
pub struct Simulation<'a> {
    flows: Vec<Flow>,
    net: Network<'a>,
}

impl<'a> Simulation<'a> {
    /// A run at its beginning.
    ///
    /// # Errors
    /// A controller or a source cannot be built.
    pub fn new(plan: &Plan, registry: &Registry, seed: u64, rows: &'a mut dyn RowSink) -> Result<Self, WorldError> {
        let streams = Streams::new(seed);
        let signals = rows.wants_signals();
        let mut net = Network::new(plan, &streams, rows);
        let mut flows = Vec::new();
        for (id, flow) in plan.flows.iter().enumerate() {
            let start = begin(flow, &streams);
            let mut ends: Box<dyn Ends> = match &flow.kind {
                FlowKind::Media(media) => {
                    let flow = crate::media::build(id, flow, media, start, registry, &streams, signals)?;
                    Box::new(media::MediaEnds { id, flow })
                }
                FlowKind::Tcp(tcp) => Box::new(tcp::build(id, flow, tcp, start, &streams, signals)),
            };
            ends.begin(start, &mut net);
            flows.push(Flow { ends, stop: flow.stop });
        }
        Ok(Self { flows, net })
    }

    /// Everything that happens by `until`.
    pub fn advance(&mut self, until: Time) {
        while let Some((now, wake)) = self.net.poll(until) {
            match wake {
                Wake::Due { flow, end } => {
                    let flow = &mut self.flows[flow];
                    if now < flow.stop {
                        flow.ends.serve(now, end, &mut self.net);
                    }
                }
                // An end hears a packet only while the flow lives.
                Wake::Arrived { flow, end, handle } => {
                    let flow = &mut self.flows[flow];
                    if now < flow.stop {
                        flow.ends.handle(now, end, handle, &mut self.net);
                    } else {
                        self.net.give_back(handle);
                    }
                }
            }
        }
    }

    /// What came of it so far.
    pub fn outcome(&self) -> Outcome {
        self.net.outcome()
    }
}

/// When a flow begins: the seed draws it from the flow's spread.
pub fn begin(flow: &FlowPlan, streams: &Streams) -> Time {
    match flow.start_spread {
        TimeDelta::ZERO => flow.start,
        spread => flow.start + streams.stream(&format!("flow/{}/start", flow.id)).time_below(spread),
    }
}
