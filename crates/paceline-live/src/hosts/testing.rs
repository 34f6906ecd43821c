// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sessions for tests.

use crate::hosts::flow_number::Ssrcs;
use crate::hosts::message::SessionId;
use crate::hosts::receiver::Receiver;
use crate::hosts::send_side::SendSide;
use crate::hosts::session_flow::{Flows, SessionFlow};
use crate::hosts::terms::tests::{flow as flow_terms, terms};
use crate::hosts::terms::{FlowTerms, StreamTerms, Terms};
use crate::testbed::socket::Socket;
use paceline::{Config, Controller, Decision, Entry, Event, Failure, Parameters, Registry, SendHalf, Setup, Signals};
use paceline_netsim::plan::Plan;
use paceline_units::{Rate, Time, TimeDelta};
use std::sync::atomic::AtomicBool;

/// Returns the SSRCs of a session of one flow with one stream.
pub(crate) fn ssrcs(id: SessionId) -> Ssrcs {
    Ssrcs::new(id, [1])
}

/// Returns all controllers, and `failing`, whose send half fails 300 ms after the start.
pub(crate) fn registry() -> Registry {
    let mut registry = Registry::standard();
    registry.add(Entry::new("failing", "fails", "a test", Failing { is_due: true, failure: None }));
    registry
}

/// Returns a receiver of open sessions.
pub(crate) fn receiver<'a>(socket: &'a Socket, registry: &'a Registry, stop: &'a AtomicBool) -> Receiver<'a> {
    Receiver {
        socket,
        key: [1; 32],
        secret: None,
        registry,
        max_back_rate: Rate::from_kbps(100_000),
        signals: false,
        on_start: &|_, _| (),
        on_event: &|_| (),
        stop,
    }
}

/// Returns the plan of a sender of these terms, and its flows.
pub(crate) fn sender(id: SessionId, terms: &Terms) -> (Plan, Flows) {
    let registry = registry();
    let plan = terms.own_plan(terms.plans(false, true, &registry).expect("controllers and sources are known"));
    let flows = Flows::build(id, terms, true, (&plan.flows, false), &registry).expect("the flows are valid");
    (plan, flows)
}

/// Returns the flow of a session of one hour under this controller, with a source of 1 Mbit/s.
pub(crate) fn flow(id: SessionId, controller: &str) -> SessionFlow {
    let streams = vec![StreamTerms::new("encoder", 1_000_000)];
    let flow = FlowTerms { controller: controller.to_owned(), streams, start_bps: 1_000_000, ..flow_terms() };
    let terms = Terms { flows: vec![flow], duration_ms: 3_600_000, ..terms() };
    sender(id, &terms).1.sent.remove(0)
}

/// Returns the sending side of a session of this flow.
pub(crate) fn send_side(
    id: SessionId,
    flow: SessionFlow,
    start: Time,
    duration: TimeDelta,
    rtt: TimeDelta,
) -> SendSide {
    SendSide::new(ssrcs(id), vec![flow], 0, start, duration, rtt)
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
