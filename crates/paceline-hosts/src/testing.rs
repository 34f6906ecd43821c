//! Flows of a session for tests.

use crate::flow_number::Ssrcs;
use crate::message::SessionId;
use crate::session_flow::SessionFlow;
use paceline::Registry;
use paceline_netsim::backend::EPOCH;
use paceline_netsim::media_flow::{self, PreparedFlow};
use paceline_scenario::{Changes, Origin, Registries};
use paceline_units::{RandomStreams, Time, TimeDelta};
use paceline_wire::ExtensionIds;

/// Returns the SSRCs of a session of one flow with one stream.
pub(crate) fn ssrcs(id: SessionId) -> Ssrcs {
    Ssrcs::new(id, [1])
}

/// Returns flow number `number` of this session that starts at time zero, with this controller and a source of 1 Mbit/s.
pub(crate) fn flow(id: SessionId, number: usize, controller: &str) -> SessionFlow {
    let text = format!(
        "id = \"hosts\"\ntitle = \"Hosts\"\nduration = \"60 s\"\n[path.forward]\n[path.reverse]\n[[flow]]\nid = \"media\"\n\
         controller = \"{controller}\"\nstart_rate = \"1 Mbps\"\nencoder = {{ source = \"encoder\", max = \"1 Mbps\" }}\n"
    );
    let registry = Registry::standard();
    let registries = Registries { controllers: &registry, metrics: None };
    let origin = Origin::from_text("hosts", text);
    let scenario = paceline_scenario::load(&origin, &Changes::default(), registries).expect("the scenario is valid");
    let plan = &scenario.plan.flows[0];
    let media = plan.media().expect("it is a media flow");
    let entry = media_flow::controller(plan, media, &registry).expect("the controller exists");
    let prepared = PreparedFlow::new(0, plan, media, entry, &RandomStreams::new(1), false).expect("the flow is valid");
    let mut streams = prepared.stream_infos().to_vec();
    let ssrcs = Ssrcs::new(id, vec![1; number + 1]);
    let receiver_ssrc = ssrcs.of(number).receiver;
    [streams[0].ssrc, streams[0].rtx_ssrc] = ssrcs.of(number).streams[0];
    let extensions = ExtensionIds::default();
    let terms = media_flow::Terms { extensions, streams, source: None, wall_clock: EPOCH, receiver_ssrc };
    let flow = prepared.begin(Time::ZERO, terms).expect("the flow is valid");
    SessionFlow { flow, start: TimeDelta::ZERO, stop: TimeDelta::from_secs(3600) }
}
