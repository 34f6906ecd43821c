//! Flows of a session for tests.

use crate::hosts::flow_number::Ssrcs;
use crate::hosts::message::SessionId;
use crate::hosts::session_flow::SessionFlow;
use paceline::{Config, Controller, Decision, Entry, Event, Failure, Parameters, Registry, SendHalf, Setup, Signals};
use paceline_netsim::media_flow::{self, PreparedFlow};
use paceline_netsim::world::EPOCH;
use paceline_scenario::{Changes, Origin, Registries};
use paceline_units::{RandomStreams, Rate, Time, TimeDelta};
use paceline_wire::ExtensionIds;

/// Returns the SSRCs of a session of one flow with one stream.
pub(crate) fn ssrcs(id: SessionId) -> Ssrcs {
    Ssrcs::new(id, [1])
}

/// Returns flow number `number` of this session that starts at time zero, with this controller and a source of 1 Mbit/s.
/// The send half of the controller `failing` fails 300 ms after the start.
pub(crate) fn flow(id: SessionId, number: usize, controller: &str) -> SessionFlow {
    let text = format!(
        "id = \"hosts\"\ntitle = \"Hosts\"\nduration = \"60 s\"\n[path.forward]\n[path.reverse]\n[[flow]]\nid = \"media\"\n\
         controller = \"{controller}\"\nstart_rate = \"1 Mbps\"\nencoder = {{ source = \"encoder\", max = \"1 Mbps\" }}\n"
    );
    let mut registry = Registry::standard();
    registry.add(Entry::new("failing", "fails", "a test", Failing { is_due: true, failure: None }));
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

/// A controller of which each built half fails at its timeout.
#[derive(Clone, Debug)]
struct Failing {
    is_due: bool,
    failure: Option<Failure>,
}

impl Parameters for Failing {}

impl Config for Failing {
    fn halves(&self, _: &Setup) -> Controller {
        Controller::from_sender(self.clone())
    }
}

impl SendHalf for Failing {
    fn handle_event(&mut self, _: Time, event: &Event<'_>, _: &mut Signals) {
        if matches!(event, Event::Timeout) && self.is_due {
            *self = Self { is_due: false, failure: Some(Failure::new("gave up")) };
        }
    }
    fn decision(&self) -> Decision {
        Decision::new(Rate::from_kbps(300))
    }
    fn poll_timeout(&self) -> Option<Time> {
        self.is_due.then_some(Time::from_millis(300))
    }
    fn poll_failure(&mut self) -> Option<Failure> {
        self.failure.take()
    }
}
