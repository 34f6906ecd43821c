// SPDX-License-Identifier: MIT OR Apache-2.0
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

/// The flows of one end of a session.
pub struct Flows {
    /// Those that it sends.
    pub sent: Vec<SessionFlow>,
    /// Those that the other end sends.
    pub received: Vec<SessionFlow>,
}

impl Flows {
    /// Builds the flows of the sender or the receiver of a session, with the plans of those that this end sends. The session starts at time
    /// zero. Both ends derive the same stream identifiers from that of the session. `signals` is whether controllers of `own` emit signals.
    ///
    /// # Errors
    /// A controller or a source cannot be built.
    pub fn build(
        id: SessionId,
        terms: &Terms,
        is_sender: bool,
        (own, signals): (&[FlowPlan], bool),
        registry: &Registry,
    ) -> Result<Self, WorldError> {
        let unknown = || WorldError::Broken { cause: "a controller of the other host is not known".to_owned() };
        let others = terms.plans(is_sender, false, registry).ok_or_else(unknown)?;
        let ssrcs = Ssrcs::of_session(id, terms);
        let build = |plans: &[FlowPlan], back: bool, signals: bool| {
            let first = if back { terms.count(false) } else { 0 };
            // The other direction has other frames.
            let streams = RandomStreams::new(terms.seed.wrapping_add(back.into()));
            let flow = |(index, plan)| session_flow(index, plan, &ssrcs, first, &streams, signals, registry);
            plans.iter().enumerate().map(flow).collect::<Result<Vec<_>, _>>()
        };
        Ok(Self { sent: build(own, !is_sender, signals)?, received: build(&others, is_sender, false)? })
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
