//! The test track as a world: a plan's hops become a link of real packets between two network namespaces, its media flows UDP
//! sockets, its TCP flows the kernel's own, and its time the machine's.

use crate::classify::ByPort;
use crate::link::{Classify, Side};
use crate::media::{self, Lateness, MediaEnd};
use crate::track::{MediaEnds, Run, Track, address_of};
use crate::wait::Timing;
use crate::{Unavailable, broken};
use paceline::Registry;
use paceline_lab::moves::Moves;
use paceline_lab::network::End;
use paceline_lab::plan::{FlowKind, Plan};
use paceline_lab::rows::RowSink;
use paceline_lab::sim;
use paceline_lab::world::{Outcome, World, WorldError};

/// The test track.
#[derive(Clone, Debug)]
pub struct Testbed {
    /// How exactly the link and the ends keep their times.
    pub timing: Timing,
    /// Where somebody moves the link.
    pub moves: Option<Moves>,
}

impl Default for Testbed {
    /// Sleeping: a run then takes a few per cent of a core, and a tenth of a millisecond is little beside a queue.
    fn default() -> Self {
        Self { timing: Timing::Sleep, moves: None }
    }
}

impl Testbed {
    /// What this machine lacks to be a test track; `None`: nothing, for it has just been one.
    pub fn missing() -> Option<Unavailable> {
        Track::open().err()
    }
}

impl World for Testbed {
    fn name(&self) -> &'static str {
        "testbed"
    }

    fn real_time(&self) -> bool {
        true
    }

    fn run(&self, plan: &Plan, registry: &Registry, seed: u64, rows: &mut dyn RowSink) -> Result<Outcome, WorldError> {
        Track::open()?.moved_by(self.moves.clone()).run(self.timing, &Sockets, plan, registry, seed, rows)
    }
}

/// Ends of media flows that are the simulator's, over UDP sockets.
struct Sockets;

impl MediaEnds for Sockets {
    fn classify<'a>(&'a self, run: &Run<'a>) -> Box<dyn Classify + 'a> {
        Box::new(ByPort::new(run.plan, run.senders))
    }

    fn serve(&self, side: Side, run: &Run<'_>) -> Result<Lateness, WorldError> {
        media::run(media_ends(run, side)?, run).map_err(broken)
    }
}

/// The ends of media flows on one side, whose namespace the calling thread is in.
fn media_ends(run: &Run<'_>, side: Side) -> Result<Vec<MediaEnd>, WorldError> {
    let mut ends = Vec::new();
    for (id, flow) in run.plan.flows.iter().enumerate() {
        let FlowKind::Media(media) = &flow.kind else { continue };
        let start = sim::begin(flow, run.streams);
        // Both ends are made, and one of them is used: the draws are then those of the simulator.
        let entry = paceline_lab::media::controller(flow, media, run.registry)?;
        let made = paceline_lab::media::build(id, flow, media, start, entry, run.streams, run.signals)?;
        let end = if run.senders[id] == side { End::Sender } else { End::Receiver };
        let (here, there) = (address_of(side), address_of(side.other()));
        ends.push(MediaEnd::new(id, made, end, here, there, flow.stop).map_err(broken)?);
    }
    Ok(ends)
}
