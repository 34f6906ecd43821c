//! The flows of a session, as both ends build them.

use crate::hosts::flow_number::Ssrcs;
use crate::hosts::message::SessionId;
use crate::hosts::terms::Terms;
use paceline::Registry;
use paceline_netsim::media_flow::{self, MediaFlow, PreparedFlow};
use paceline_netsim::plan::FlowPlan;
use paceline_netsim::world::{EPOCH, WorldError};
use paceline_units::{RandomStreams, Time, TimeDelta};
use paceline_wire::ExtensionIds;

/// A flow, built to start at its time.
pub struct SessionFlow {
    /// Its name in results.
    pub id: String,
    /// Its endpoints.
    pub flow: MediaFlow,
    /// Its start, from that of the session on.
    pub start: TimeDelta,
    /// Its end, from the start of the session on.
    pub stop: TimeDelta,
}

/// The flows of a session.
pub struct Flows {
    /// Those that the sender sends.
    pub forward: Vec<SessionFlow>,
    /// Those that the receiver sends.
    pub back: Vec<SessionFlow>,
}

impl Flows {
    /// Builds the flows with these plans, forward and back. The session starts at time zero. `signals` are those directions in which
    /// controllers emit signals. Both ends derive the same stream identifiers from that of the session.
    ///
    /// # Errors
    /// A controller or a source cannot be built.
    pub fn build(
        id: SessionId,
        terms: &Terms,
        [forward, back]: [&[FlowPlan]; 2],
        signals: [bool; 2],
        registry: &Registry,
    ) -> Result<Self, WorldError> {
        let ssrcs = Ssrcs::of_session(id, terms);
        let build = |plans: &[FlowPlan], first: usize, signals: bool| {
            // The other direction has other frames.
            let streams = RandomStreams::new(terms.seed.wrapping_add(u64::from(first > 0)));
            let flow = |(index, plan)| session_flow(index, plan, &ssrcs, first, &streams, signals, registry);
            plans.iter().enumerate().map(flow).collect::<Result<Vec<_>, _>>()
        };
        Ok(Self { forward: build(forward, 0, signals[0])?, back: build(back, forward.len(), signals[1])? })
    }
}

/// Builds flow `index` of a direction, of which the first one has the number `first` in the session.
fn session_flow(
    index: usize,
    plan: &FlowPlan,
    ssrcs: &Ssrcs,
    first: usize,
    streams: &RandomStreams,
    signals: bool,
    registry: &Registry,
) -> Result<SessionFlow, WorldError> {
    let media = plan.media().expect("a session has media flows");
    let entry = media_flow::controller(plan, media, registry)?;
    let prepared = PreparedFlow::new(index, plan, media, entry, streams, signals)?;
    let mut infos = prepared.stream_infos().to_vec();
    let ssrcs = ssrcs.of(first + index);
    for (info, [media, rtx]) in infos.iter_mut().zip(&ssrcs.streams) {
        (info.ssrc, info.rtx_ssrc) = (*media, *rtx);
    }
    let terms = media_flow::Terms {
        extensions: ExtensionIds::default(),
        streams: infos,
        source: None,
        wall_clock: EPOCH,
        receiver_ssrc: ssrcs.receiver,
    };
    let [start, stop] = [plan.start, plan.stop].map(|time| time - Time::ZERO);
    Ok(SessionFlow { id: plan.id.clone(), flow: prepared.begin(plan.start, terms)?, start, stop })
}
