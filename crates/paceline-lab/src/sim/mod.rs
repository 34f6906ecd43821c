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
use paceline::{Entry, Registry};
use paceline_units::{Streams, Time, TimeDelta};

/// The simulator.
#[derive(Clone, Copy, Debug, Default)]
pub struct Simulator;

impl World for Simulator {
    fn name(&self) -> &'static str {
        "sim"
    }

    fn run(&self, plan: &Plan, registry: &Registry, seed: u64, rows: &mut dyn RowSink) -> Result<Outcome, WorldError> {
        let mut run = Simulation::new(plan, registry, seed, rows)?;
        run.advance(Time::MAX);
        Ok(run.outcome())
    }
}

/// Both ends of a flow, whatever its kind. To add a kind: a file that implements this, a variant of [`FlowKind`].
///
/// Each call drains what the end then has to send into the network and wakes it for its next timeout.
trait Ends<R> {
    /// The flow begins at `start`: wakes each end for the first time.
    fn begin(&mut self, start: Time, net: &mut Network<R>);
    /// An end's time has come.
    fn serve(&mut self, now: Time, end: End, net: &mut Network<R>);
    /// A packet reached an end, which takes it and gives its slot back.
    fn handle(&mut self, now: Time, end: End, handle: u32, net: &mut Network<R>);
}

struct Flow<R> {
    ends: Box<dyn Ends<R> + Send>,
    stop: Time,
}

/// A run that goes as far as it is told to, and may be looked at before it goes on. In how many pieces it is made changes
/// nothing.
pub struct Simulation<R> {
    flows: Vec<Flow<R>>,
    net: Network<R>,
    end: Time,
}

impl<R: RowSink> Simulation<R> {
    /// A run of the plan, before its first event.
    ///
    /// # Errors
    /// A flow's controller or source cannot be built.
    pub fn new(plan: &Plan, registry: &Registry, seed: u64, rows: R) -> Result<Self, WorldError> {
        Self::seated(plan, registry, None, seed, rows)
    }

    /// The same, with a controller of the caller's in the place of one media flow's.
    ///
    /// # Errors
    /// As of [`new`](Self::new).
    pub fn seated(
        plan: &Plan,
        registry: &Registry,
        seat: Option<(usize, &Entry)>,
        seed: u64,
        rows: R,
    ) -> Result<Self, WorldError> {
        let streams = Streams::new(seed);
        let signals = rows.wants_signals();
        let mut net = Network::new(plan, &streams, rows);
        let mut flows = Vec::new();
        for (id, flow) in plan.flows.iter().enumerate() {
            let start = begin(flow, &streams);
            let mut ends: Box<dyn Ends<R> + Send> = match &flow.kind {
                FlowKind::Media(media) => {
                    let seated = seat.filter(|(seat, _)| *seat == id).map(|(_, entry)| entry);
                    let entry = seated.map_or_else(|| crate::media::controller(flow, media, registry), Ok)?;
                    let flow = crate::media::build(id, flow, media, start, entry, &streams, signals)?;
                    Box::new(media::MediaEnds { id, flow })
                }
                FlowKind::Tcp(tcp) => Box::new(tcp::build(id, flow, tcp, start, &streams, signals)),
            };
            ends.begin(start, &mut net);
            flows.push(Flow { ends, stop: flow.stop });
        }
        Ok(Self { flows, net, end: Time::ZERO + plan.duration })
    }

    /// Goes on to `until`, what happens then included, or to the plan's end if that comes first.
    pub fn advance(&mut self, until: Time) {
        let until = until.min(self.end);
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

    /// Serves the sender of a flow at `at`, which is not before the time that the run has come to: whoever told its
    /// controller something from outside wants it asked.
    pub fn ask(&mut self, flow: usize, at: Time) {
        self.net.wake(flow, End::Sender, at);
    }

    /// Who hears what happens.
    pub fn rows(&mut self) -> &mut R {
        self.net.rows()
    }

    /// What it has come to so far.
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
