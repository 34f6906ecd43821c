// SPDX-License-Identifier: MIT OR Apache-2.0
//! The testbed as a world: hops of the plan become a link of real packets between two network namespaces. Media
//! flows use UDP sockets, TCP flows the TCP of the kernel, and time is the monotonic clock.

use crate::testbed::classify::ByPort;
use crate::testbed::error::{Unavailable, broken};
use crate::testbed::lateness::Lateness;
use crate::testbed::link::{Classifier, Side};
use crate::testbed::media_endpoint::{self, UdpEndpoint};
use crate::testbed::testbed_network::{MediaEndpoints, TestbedNetwork, address_of};
use crate::testbed::testbed_run::TestbedRun;
use crate::testbed::timing::Timing;
use paceline::Registry;
use paceline_netsim::link_control::LinkControl;
use paceline_netsim::network::FlowEnd;
use paceline_netsim::plan::{FlowKind, Plan};
use paceline_netsim::records::EventObserver;
use paceline_netsim::world::{Outcome, World, WorldError};
use paceline_netsim::{media_flow, sim};

#[derive(Clone, Debug)]
pub struct Testbed {
    /// The accuracy with which the link and the endpoints wait.
    pub timing: Timing,
    /// Source of link updates during a run.
    pub link_control: Option<LinkControl>,
}

impl Default for Testbed {
    /// Uses [`Timing::Sleep`]: a few per cent of a core, and 0.1 ms of lateness, which is small against queuing delay.
    fn default() -> Self {
        Self { timing: Timing::Sleep, link_control: None }
    }
}

impl Testbed {
    /// Returns the reason why the testbed is not available; `None` if it is. This opens the network of a testbed.
    pub fn missing() -> Option<Unavailable> {
        TestbedNetwork::open().err()
    }
}

impl World for Testbed {
    fn name(&self) -> &'static str {
        "testbed"
    }

    fn real_time(&self) -> bool {
        true
    }

    fn run(
        &self,
        plan: &Plan,
        registry: &Registry,
        seed: u64,
        observer: &mut dyn EventObserver,
    ) -> Result<Outcome, WorldError> {
        let network = TestbedNetwork::open()?.with_link_control(self.link_control.clone());
        network.run(self.timing, &UdpEndpoints, plan, registry, seed, observer)
    }
}

/// The endpoints of the simulator, over UDP sockets.
struct UdpEndpoints;

impl MediaEndpoints for UdpEndpoints {
    fn classify<'a>(&'a self, run: &TestbedRun<'a>) -> Box<dyn Classifier + 'a> {
        Box::new(ByPort::new(run.plan, run.senders))
    }

    fn serve(&self, side: Side, run: &TestbedRun<'_>) -> Result<Lateness, WorldError> {
        media_endpoint::run(endpoints(run, side)?, run)
    }
}

/// Creates the media endpoints of one side, in the namespace of the calling thread.
fn endpoints(run: &TestbedRun<'_>, side: Side) -> Result<Vec<UdpEndpoint>, WorldError> {
    let mut ends = Vec::new();
    for (id, flow) in run.plan.flows.iter().enumerate() {
        let FlowKind::Media(media) = &flow.kind else { continue };
        let start = sim::start_time(flow, run.streams);
        // Build both ends and use one, so that the random draws equal those of the simulator.
        let entry = media_flow::controller(flow, media, run.registry)?;
        let built = media_flow::build(id, flow, media, start, entry, run.streams, run.signals)?;
        let end = if run.senders[id] == side { FlowEnd::Sender } else { FlowEnd::Receiver };
        let (here, there) = (address_of(side), address_of(side.other()));
        ends.push(UdpEndpoint::new(id, built, end, here, there, flow.stop).map_err(broken)?);
    }
    Ok(ends)
}
