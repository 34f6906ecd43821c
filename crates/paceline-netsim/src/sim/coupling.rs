// SPDX-License-Identifier: MIT OR Apache-2.0
//! Coupled flows (RFC 8699): each group has a flow state exchange, which gets every new rate of its senders and hands back the
//! shares.

use super::Flow;
use crate::flow::MediaSender;
use crate::plan::Plan;
use crate::records::EventObserver;
use paceline::FlowStateExchange;
use paceline_units::Time;

/// The groups of coupled flows of a plan.
pub(super) struct CoupledGroups {
    groups: Vec<Group>,
    /// The group of each flow; empty without groups.
    of_flow: Vec<Option<usize>>,
}

struct Group {
    name: String,
    exchange: FlowStateExchange,
    /// The flows, with their priorities.
    members: Vec<(usize, f64)>,
}

impl CoupledGroups {
    pub fn new(plan: &Plan) -> Self {
        let mut groups: Vec<Group> = Vec::new();
        if plan.coupled_flow().is_none() {
            return Self { groups, of_flow: Vec::new() };
        }
        let mut of_flow = vec![None; plan.flows.len()];
        for (flow, plan) in plan.flows.iter().enumerate() {
            let Some(coupling) = plan.media().and_then(|media| media.coupling.as_ref()) else { continue };
            let known = groups.iter().position(|group| group.name == coupling.group);
            let index = known.unwrap_or_else(|| {
                let (name, exchange) = (coupling.group.clone(), FlowStateExchange::new(coupling.algorithm));
                groups.push(Group { name, exchange, members: Vec::new() });
                groups.len() - 1
            });
            groups[index].members.push((flow, coupling.priority));
            of_flow[flow] = Some(index);
        }
        Self { groups, of_flow }
    }

    /// Returns whether the flow is coupled.
    pub fn contains(&self, flow: usize) -> bool {
        self.of_flow.get(flow).is_some_and(Option::is_some)
    }

    /// Handles the rate that the sender of `flow` has calculated, if it has, and adds the other flows whose share changed to
    /// `changed`.
    pub fn handle<R: EventObserver>(
        &mut self,
        now: Time,
        flow: usize,
        flows: &mut [Flow<R>],
        changed: &mut Vec<usize>,
    ) {
        let Some(index) = self.of_flow[flow] else { return };
        let Group { exchange, members, .. } = &mut self.groups[index];
        update_members(now, exchange, members, flow, flows);
        let Some(sender) = flows[flow].endpoints.media_sender() else { return };
        let Some(calculated) = sender.calculated_rate() else { return };
        exchange.update(now, flow, calculated, sender.round_trip_time());
        for (member, _) in members.iter() {
            let Some(share) = exchange.rate(*member) else { continue };
            let Some(sender) = flows[*member].endpoints.media_sender() else { continue };
            exchange.set_used(*member, sender.set_coupled_rate(now, share));
            if *member != flow {
                changed.push(*member);
            }
        }
    }
}

/// Updates who takes part: a flow that stops or pauses leaves (section 5.3.1, step 2), and `flow` joins if it starts or resumes
/// (step 1). Updates the desired rates.
fn update_members<R: EventObserver>(
    now: Time,
    exchange: &mut FlowStateExchange,
    members: &[(usize, f64)],
    flow: usize,
    flows: &mut [Flow<R>],
) {
    for (member, priority) in members {
        let has_stopped = flows[*member].stop <= now;
        let Some(sender) = flows[*member].endpoints.media_sender() else { continue };
        let desired = sender.desired_rate();
        let takes_part = !has_stopped && !desired.is_zero();
        match exchange.contains(*member) {
            true if takes_part => exchange.set_desired(*member, desired),
            true => leave(now, exchange, *member, sender),
            false if takes_part && *member == flow => {
                if let Some(rate) = sender.couple() {
                    exchange.register(flow, *priority, rate);
                    exchange.set_desired(flow, desired);
                }
            }
            false => {}
        }
    }
}

fn leave(now: Time, exchange: &mut FlowStateExchange, flow: usize, sender: &mut MediaSender) {
    exchange.remove(flow);
    sender.uncouple(now);
}
